//! `blksim analyze`: a capture in numbers, and how fast it was read.

use std::time::Instant;

use trace::import_stats;

use crate::args::AnalyzeArgs;
use crate::error::Error;
use crate::{OK, output, stats_text};

/// Reads the files once and prints. JSON holds no wall-clock time: equal files give equal bytes.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<u8, Error> {
    let started = now();
    let stats = import_stats(&args.files, args.reading.options())?;
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
