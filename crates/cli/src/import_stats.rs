//! `blksim import-stats`: a capture in numbers, and how fast it was read.

use std::time::Instant;

use trace::blktrace::{DeviceChoice, Options};
use trace::import_stats as import;

use crate::args::ImportStatsArgs;
use crate::error::Error;
use crate::{OK, output, stats_text};

/// Reads the files once and prints. JSON holds no wall-clock time: equal files give equal bytes.
pub(crate) fn import_stats(args: &ImportStatsArgs) -> Result<u8, Error> {
    let device = match &args.trace_device {
        Some(name) => DeviceChoice::Named(name.clone()),
        None => DeviceChoice::Only,
    };
    let options = Options {
        device,
        strict: args.strict,
        salvage: args.salvage,
        ..Options::default()
    };
    let started = now();
    let stats = import(&args.files, options)?;
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        output::print(&stats_text::json(&stats))?;
    } else {
        output::print(&stats_text::text(&stats, seconds))?;
    }
    Ok(OK)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the speed of reading is what the user asks for"
)]
fn now() -> Instant {
    Instant::now()
}
