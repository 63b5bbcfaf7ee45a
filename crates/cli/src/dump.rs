//! `blksim dump`: the events of a capture as the text that blkparse prints.

use trace::blkparse::{Format, Options, Text};
use trace::blktrace::{Categories, DeviceChoice, Reader};

use crate::args::DumpArgs;
use crate::error::Error;
use crate::{OK, output};

/// Bytes of text that are written at a time.
const BLOCK: usize = 1 << 16;

/// Prints while it reads. Lines before damage are printed, then the error.
pub(crate) fn dump(args: &DumpArgs) -> Result<u8, Error> {
    let options = options(args)?;
    let mut reading = args.reading.options();
    if reading.device == DeviceChoice::Only {
        reading.device = DeviceChoice::All;
    }
    let mut reader = Reader::open(&args.files, reading)?;
    let mut text = Text::new(&mut reader, options);
    let mut out = Vec::with_capacity(2 * BLOCK);
    loop {
        let next = text.next(&mut out);
        let more = matches!(next, Ok(true));
        if out.len() >= BLOCK || !more {
            output::print_bytes(&out)?;
            out.clear();
        }
        next?;
        if !more {
            break;
        }
    }
    for line in reader.warnings().rows(reader.files()) {
        output::print_note(&format!("warning: {line}\n"));
    }
    Ok(OK)
}

fn options(args: &DumpArgs) -> Result<Options, Error> {
    let wrong = |option: &str, what: String| Error::usage(option, what);
    let format = args.text_format.as_deref().map(Format::parse).transpose();
    let formats = args
        .action_format
        .iter()
        .map(|text| Options::action_format(text));
    let options = Options {
        format: format.map_err(|what| wrong("-f", what))?,
        formats: formats
            .collect::<Result<_, _>>()
            .map_err(|what| wrong("-F", what))?,
        categories: args
            .set_mask
            .or_else(|| args.action.iter().copied().reduce(Categories::with)),
        times: args.stopwatch.clone(),
        track: args.track,
        programs: args.programs,
        by_name: args.hash_by_name,
        no_summary: output::is_quiet(),
        messages: args.messages,
    };
    let formats = options.formats.iter().map(|(_, format)| format);
    if !args.track && formats.chain(&options.format).any(Format::needs_tracking) {
        return Err(wrong(
            "-f",
            "%u: no times between events without -t".to_owned(),
        ));
    }
    Ok(options)
}
