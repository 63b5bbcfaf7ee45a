//! Opens a file, whichever way it is compressed: plain, gzip, xz, zstd or bzip2.
//!
//! The first bytes of the file decide the compression, not its name. `-` is standard input. A file
//! is read once, from its beginning to its end, so that a pipe will do.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Memory limit of the xz decoder: its largest preset asks for 65 MiB, a corrupt file for
/// gigabytes. The decoder of zstd has such a limit of its own, 128 MiB.
const XZ_MEMORY: u64 = 256 << 20;
/// Compressed bytes read at once.
const CHUNK: usize = 64 << 10;

/// Ends of file names that compressed files have.
const ENDS: [&str; 4] = [".xz", ".gz", ".zst", ".bz2"];

/// A file name without the end that a compressed file has.
pub(crate) fn bare_name(name: &str) -> &str {
    let bare = ENDS.iter().find_map(|end| name.strip_suffix(end));
    bare.unwrap_or(name)
}

pub(crate) enum Packed {
    Plain(Prefixed),
    Gzip(Box<MultiGzDecoder<BufReader<Prefixed>>>),
    Xz(Box<XzDecoder<BufReader<Prefixed>>>),
    Zstd(Box<Zstd>),
    Bzip2(Box<MultiBzDecoder<BufReader<Prefixed>>>),
}

impl Packed {
    /// Reads the first bytes and finds out how the file is compressed.
    pub(crate) fn open(path: &Path) -> Result<Packed> {
        let is_input = path == Path::new("-");
        let mut file = File::open(if is_input {
            Path::new("/dev/stdin")
        } else {
            path
        })?;
        let mut first = [0; 6];
        let end = read_up_to(&mut file, &mut first)?;
        let named = path.file_name().and_then(|name| name.to_str());
        if end == 0 && named.is_some_and(|name| bare_name(name) != name) {
            let what = "has no byte, so that it is no compressed file; expected one";
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
        let prefixed = Prefixed {
            first,
            start: 0,
            end,
            file,
        };
        let buffered = |prefixed| BufReader::with_capacity(CHUNK, prefixed);
        Ok(match &first[..end] {
            [0x1f, 0x8b, ..] => Packed::Gzip(Box::new(MultiGzDecoder::new(buffered(prefixed)))),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => {
                let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
                Packed::Xz(Box::new(XzDecoder::new_stream(buffered(prefixed), stream)))
            }
            // A frame of data, or one to be skipped, which pzstd begins with.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Packed::Zstd(Box::new(Zstd {
                    input: buffered(prefixed),
                    decoder: FrameDecoder::new(),
                    inside: false,
                }))
            }
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
                Packed::Bzip2(Box::new(MultiBzDecoder::new(buffered(prefixed))))
            }
            _ => Packed::Plain(prefixed),
        })
    }

    fn name(&self) -> Option<&'static str> {
        match self {
            Packed::Plain(_) => None,
            Packed::Gzip(_) => Some("gzip"),
            Packed::Xz(_) => Some("xz"),
            Packed::Zstd(_) => Some("zstd"),
            Packed::Bzip2(_) => Some("bzip2"),
        }
    }
}

impl Read for Packed {
    /// Errors name the compression.
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = match self {
            Packed::Plain(file) => file.read(out),
            Packed::Gzip(decoder) => decoder.read(out),
            Packed::Xz(decoder) => decoder.read(out),
            Packed::Zstd(decoder) => decoder.read(out),
            Packed::Bzip2(decoder) => decoder.read(out),
        };
        read.map_err(|error| match self.name() {
            Some(name) if error.kind() != ErrorKind::Interrupted => {
                Error::new(error.kind(), format!("damaged {name} data: {error}"))
            }
            _ => error,
        })
    }
}

/// A file whose first bytes were read already.
pub(crate) struct Prefixed {
    first: [u8; 6],
    start: usize,
    end: usize,
    file: File,
}

impl Read for Prefixed {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.start == self.end {
            return self.file.read(out);
        }
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.first[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}

/// Frames of zstd, one after the other.
pub(crate) struct Zstd {
    input: BufReader<Prefixed>,
    decoder: FrameDecoder,
    /// A frame was begun and is not at its end.
    inside: bool,
}

impl Zstd {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        loop {
            if !self.inside && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(of_zstd)?;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(out);
            }
            let want = self.decoder.get_checksum_from_data();
            if want.is_some() && want != self.decoder.get_calculated_checksum() {
                return Err(Error::other("the checksum is wrong"));
            }
            self.inside = false;
        }
    }

    /// Steps to the next frame with data; false at the end of the file.
    fn begin(&mut self) -> Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.input.by_ref().take(u64::from(length));
                    std::io::copy(&mut skipped, &mut std::io::sink())?;
                }
                Err(error) => return Err(of_zstd(error)),
            }
        }
        Ok(false)
    }
}

/// An error of the decoder, whose text has its inner errors as Rust prints them.
fn of_zstd(error: FrameDecoderError) -> Error {
    let mut inner: &dyn std::error::Error = &error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    match inner.downcast_ref::<Error>() {
        Some(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Error::new(error.kind(), "unexpected end of file")
        }
        _ => Error::other(error),
    }
}

fn read_up_to(file: &mut File, out: &mut [u8]) -> Result<usize> {
    let mut count = 0;
    while count < out.len() {
        match file.read(&mut out[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(count)
}
