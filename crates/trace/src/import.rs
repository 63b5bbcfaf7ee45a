//! Statistics of a whole capture: the data of `blksim import`.
//!
//! Reads, matches and counts in one pass. Reads no clock and prints nothing: the caller measures
//! the time and writes the report.

use std::path::Path;

use blkmq::time::SimTime;

use crate::Result;
use crate::blktrace::{Action, Options, Reader, Row};
use crate::matching::{Btt, BttTable, Latencies, Matcher};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportStats {
    pub events: u64,
    /// Process and wall clock notes.
    pub notes: u64,
    /// Events of devices that were not asked for.
    pub skipped: u64,
    /// Bytes of records, after decompression.
    pub bytes: u64,
    /// Time of the first event, as recorded.
    pub genesis: SimTime,
    /// Time of the last event, as recorded.
    pub end: SimTime,
    /// Events by `action as usize`.
    pub actions: [u64; Action::COUNT],
    /// Damage that the capture can live with.
    pub warnings: Vec<Row>,
    pub completed: u64,
    pub unfinished: u64,
    /// The most bios in flight at once.
    pub in_flight_max: u64,
    /// Passthrough events, which are not matched.
    pub passthrough: u64,
    /// Latencies by the honest definitions.
    pub latencies: Latencies,
    /// Latencies as btt defines them.
    pub btt: BttTable,
}

impl ImportStats {
    pub fn count(&self, action: Action) -> u64 {
        self.actions[action as usize]
    }
}

/// Reads a capture and counts. With `strict` an event that the matching cannot explain is an error
/// too.
pub fn import_stats<P: AsRef<Path>>(paths: &[P], options: Options) -> Result<ImportStats> {
    let strict = options.strict;
    let mut reader = Reader::open(paths, options)?;
    let (mut btt, mut matcher) = (Btt::new(), Matcher::new());
    let (mut latencies, mut actions) = (Latencies::default(), [0; Action::COUNT]);
    let (mut completed, mut unfinished) = (0, 0);
    let (mut events, mut end) = (0, SimTime::ZERO);
    while let Some(event) = reader.next()? {
        events += 1;
        end = end.max(event.time);
        actions[event.action as usize] += 1;
        btt.add(&event);
        for io in matcher.add(&event) {
            latencies.add(io);
            completed += u64::from(io.completed.is_some());
            unfinished += u64::from(io.completed.is_none());
        }
    }
    unfinished += matcher.finish().len() as u64;
    let mut warnings = reader.warnings().clone();
    warnings.merge(&matcher.warnings());
    if strict {
        warnings.refuse(reader.files())?;
    }
    Ok(ImportStats {
        events,
        notes: reader.notes(),
        skipped: reader.skipped(),
        bytes: reader.bytes(),
        genesis: reader.genesis(),
        end,
        actions,
        warnings: warnings.rows(reader.files()),
        completed,
        unfinished,
        in_flight_max: matcher.in_flight_max() as u64,
        passthrough: matcher.passthrough(),
        latencies,
        btt: *btt.table(),
    })
}
