//! Reads one file, plain, gzip or xz, through one large buffer.
//!
//! The first bytes of the file decide the compression, not its name. Records are not parsed here.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::{Error, Result};

/// Bytes read at once: a few system calls per thousand records, and it stays in the L2 cache.
const BUFFER: usize = 256 << 10;
/// Memory limit of the xz decoder: its largest preset asks for 65 MiB, a corrupt file for
/// gigabytes.
const XZ_MEMORY: u64 = 256 << 20;

enum Source {
    Plain(File),
    Gzip(Box<MultiGzDecoder<BufReader<Prefixed>>>),
    Xz(Box<XzDecoder<BufReader<Prefixed>>>),
}

/// A file whose first bytes were read already.
struct Prefixed {
    first: [u8; 6],
    start: usize,
    end: usize,
    file: File,
}

impl Read for Prefixed {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.start == self.end {
            return self.file.read(out);
        }
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.first[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}

/// A window onto the file's (decompressed) bytes.
pub(super) struct Bytes {
    source: Source,
    path: PathBuf,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the file.
    offset: u64,
    ended: bool,
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytes")
            .field("path", &self.path)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Bytes {
    /// Opens a regular file and finds out how it is compressed.
    pub(super) fn open(path: &Path) -> Result<Bytes> {
        let io = |source| Error::io(path, 0, source);
        // A pipe or a device could keep us waiting for ever.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(Error::input(path, "not a regular file"));
        }
        let mut file = File::open(path).map_err(io)?;
        let mut first = [0; 6];
        let end = read_up_to(&mut file, &mut first).map_err(io)?;
        let packed = path
            .extension()
            .is_some_and(|end| end == "xz" || end == "gz");
        if end == 0 && packed {
            let what = "has no byte, so that it is no compressed file; expected one";
            return Err(Error::input(path, what));
        }
        let mut buffer = vec![0; BUFFER].into_boxed_slice();
        let mut plain_end = 0;
        let source = if first[..end].starts_with(&[0x1f, 0x8b]) {
            let prefixed = Prefixed {
                first,
                start: 0,
                end,
                file,
            };
            Source::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(
                65536, prefixed,
            ))))
        } else if first[..end].starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            let prefixed = Prefixed {
                first,
                start: 0,
                end,
                file,
            };
            let stream =
                Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED).map_err(|e| io(e.into()))?;
            let input = BufReader::with_capacity(65536, prefixed);
            Source::Xz(Box::new(XzDecoder::new_stream(input, stream)))
        } else {
            buffer[..end].copy_from_slice(&first[..end]);
            plain_end = end;
            Source::Plain(file)
        };
        let path = path.to_path_buf();
        Ok(Bytes {
            source,
            path,
            buffer,
            start: 0,
            end: plain_end,
            offset: 0,
            ended: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Offset of the first byte of `have()`.
    #[inline]
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes in the window. May be fewer than there are in the file.
    #[inline]
    pub(super) fn have(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Makes the window at least `count` bytes wide, or as wide as the remainder of the file.
    /// Panics if `count` is larger than the buffer.
    #[inline]
    pub(super) fn want(&mut self, count: usize) -> Result<()> {
        if self.end - self.start < count && !self.ended {
            self.fill(count)?;
        }
        Ok(())
    }

    /// Consumes `count` bytes, which must be in the window.
    #[inline]
    pub(super) fn skip(&mut self, count: usize) {
        assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    #[cold]
    fn fill(&mut self, count: usize) -> Result<()> {
        assert!(
            count <= self.buffer.len(),
            "a record is smaller than the buffer"
        );
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < count && !self.ended {
            let free = &mut self.buffer[self.end..];
            let read = match &mut self.source {
                Source::Plain(file) => file.read(free),
                Source::Gzip(decoder) => decoder.read(free),
                Source::Xz(decoder) => decoder.read(free),
            };
            match read {
                Ok(0) => self.ended = true,
                Ok(more) => self.end += more,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    let offset = self.offset + self.end as u64;
                    // Bytes decompressed before the damage can still be used by `salvage`.
                    self.ended = true;
                    return Err(Error::io(&self.path, offset, self.describe(e)));
                }
            }
        }
        Ok(())
    }

    fn describe(&self, error: std::io::Error) -> std::io::Error {
        let name = match self.source {
            Source::Plain(_) => return error,
            Source::Gzip(_) => "gzip",
            Source::Xz(_) => "xz",
        };
        std::io::Error::new(error.kind(), format!("damaged {name} data: {error}"))
    }
}

fn read_up_to(file: &mut File, out: &mut [u8]) -> std::io::Result<usize> {
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
