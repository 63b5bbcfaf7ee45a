//! `blksim analyze`: a capture in numbers and pictures, and how fast it was read.
//!
//! Read next: `capture/text.rs` and `capture/json.rs`; the page is `html/analyze.rs`.

use std::time::Instant;

use blkmq::time::SimTime;
use scenario::table::parquet::Parquet;
use scenario::table::{Cell, Column, Kind};
use trace::blktrace::DeviceChoice;
use trace::direction;
use trace::matching::Io;

use crate::args::AnalyzeArgs;
use crate::capture::{Read, json, text};
use crate::error::Error;
use crate::output::{OutputFile, Written};
use crate::outputs::{Outputs, Reported};
use crate::{OK, html, plot};

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
    let mut rows = rows.map(|file| (file, Parquet::new(columns())));
    let started = now();
    let each = |io: &Io, process: Option<&str>, genesis| match &mut rows {
        Some((file, rows)) => file.append(&rows.add(&row(io, process, genesis))),
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
    let rows = rows.map(|(file, rows)| file.put_bytes(&rows.finish()));
    let rows = rows.transpose()?;
    let drawn = match &args.plot {
        Some(dir) => plot::put(dir, &html::pictures(&read.of))?,
        None => Vec::new(),
    };
    let mut written = rows.into_iter().chain(drawn);
    outputs.write(&read, || written.try_for_each(Written::keep))?;
    Ok(OK)
}

/// `--parquet FILE`: a row for each bio, in the order of completions. Times are ns after the first
/// event.
fn columns() -> Vec<Column> {
    let numbers = [
        "queued_ns",
        "got_request_ns",
        "merged_ns",
        "inserted_ns",
        "issued_ns",
        "completed_ns",
        "sector",
        "bytes",
        "error",
        "pid",
        "cpu",
        "parts",
        "requeues",
    ];
    let numbers = numbers.map(|name| Column::new(name, Kind::Integer));
    let texts = ["device", "process", "op", "direction"].map(|name| Column::new(name, Kind::Text));
    numbers.into_iter().chain(texts).collect()
}

fn row<'a>(io: &'a Io, process: Option<&'a str>, genesis: SimTime) -> [Cell<'a>; 17] {
    let since = |time: Option<SimTime>| time.map(|time| time.since(genesis).0).into();
    [
        since(io.queued),
        since(io.got_request),
        since(io.merged),
        since(io.inserted),
        since(io.issued),
        since(io.completed),
        io.sector.into(),
        io.bytes.into(),
        io.completed.map(|_| u32::from(io.error)).into(),
        io.pid.into(),
        io.cpu.into(),
        io.parts.into(),
        io.requeues.into(),
        io.device.to_string().into(),
        process.into(),
        io.rwbs().as_str().to_owned().into(),
        direction(io).into(),
    ]
}

#[expect(
    clippy::disallowed_methods,
    reason = "the speed of reading is what the user asks for"
)]
fn now() -> Instant {
    Instant::now()
}
