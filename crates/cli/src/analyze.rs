//! `blksim analyze`: a capture in numbers and pictures, and how fast it was read.
//!
//! Read next: `capture/text.rs` and `capture/json.rs`; the page is `html/analyze.rs`.

mod parquet;

use std::time::Instant;

use trace::blktrace::DeviceChoice;
use trace::matching::Io;

use crate::args::AnalyzeArgs;
use crate::capture::{Read, json, text};
use crate::error::Error;
use crate::output::{OutputFile, Written};
use crate::outputs::{Outputs, Reported};
use crate::{OK, html, plot};
use parquet::Parquet;

impl Reported for Read {
    fn text(&self) -> String {
        text::text(self)
    }

    fn json(&self) -> String {
        json::json(self)
    }

    fn csv(&self) -> String {
        json::csv(&self.of)
    }

    fn html(&self) -> String {
        html::analyze(self)
    }
}

/// Reads the files once and writes what was asked for.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<u8, Error> {
    let mut options = args.reading.options();
    if options.device == DeviceChoice::Only {
        options.device = DeviceChoice::All;
    }
    let reports = [&args.reports.json, &args.reports.csv, &args.reports.html];
    if let Some(file) = &args.parquet
        && (file.as_os_str() == "-" || reports.into_iter().flatten().any(|other| other == file))
    {
        let what = "goes to the same place as another output; expected a file of its own";
        return Err(Error::usage("--parquet", what));
    }
    let outputs = Outputs::open(&args.reports)?;
    let rows = args.parquet.as_deref().map(OutputFile::open).transpose()?;
    let mut rows = rows.map(Parquet::new);
    let started = now();
    let each = |io: &Io, process: Option<&str>, genesis| match &mut rows {
        Some(rows) => rows.add(io, process, genesis),
        None => Ok(()),
    };
    let of = trace::analyze(&args.files, options, each)?;
    let names: Vec<String> = args
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let read = Read {
        name: names.join(" "),
        of,
        seconds: started.elapsed().as_secs_f64(),
    };
    let rows = rows.map(Parquet::finish).transpose()?;
    let drawn = match &args.plot {
        Some(dir) => plot::put(dir, &html::pictures(&read.of))?,
        None => Vec::new(),
    };
    let mut written = rows.into_iter().chain(drawn);
    outputs.write(&read, || written.try_for_each(Written::keep))?;
    Ok(OK)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the speed of reading is what the user asks for"
)]
fn now() -> Instant {
    Instant::now()
}
