//! Losses that a capture reports: records of blktrace, events of ftrace.
//!
//! Nothing is filled in: the verdict reports it, and the mode is chosen by it.

use trace::blktrace::{Row, Warning};
use trace::capture::CaptureDir;

use super::Error;
use super::event;
use super::setup::Setup;

/// Losses of the trace of a device, in words.
pub(super) fn of_device(dir: &CaptureDir, device: &str) -> Result<Vec<String>, Error> {
    let mut rows = event::damage(dir, device)?;
    rows.retain(|row| {
        matches!(
            row.warning,
            Warning::SequenceGap
                | Warning::Dropped
                | Warning::MissingCpu
                | Warning::TruncatedRecord
        )
    });
    let named = |row: &Row| {
        let (row, name) = (row.to_string(), format!("{device}: "));
        if row.starts_with(&name) {
            row
        } else {
            name + &row
        }
    };
    Ok(rows.iter().map(named).collect())
}

#[derive(Clone, Debug, Default)]
pub(super) struct DroppedRecords {
    ftrace: u64,
    /// For each device with losses, in words.
    blktrace: Vec<String>,
}

impl DroppedRecords {
    pub(super) fn read(dir: &CaptureDir, setups: &[Setup]) -> Result<DroppedRecords, Error> {
        let mut dropped_records = DroppedRecords::default();
        for setup in setups {
            let losses = of_device(dir, &setup.device)?;
            dropped_records.blktrace.extend(losses);
        }
        if dir.files.contains_key("ftrace.txt") {
            dropped_records.ftrace = event::dropped_by_ftrace(dir)?;
        }
        Ok(dropped_records)
    }

    /// blktrace has everything, ftrace has not.
    pub(super) fn only_ftrace(&self) -> bool {
        self.ftrace > 0 && self.blktrace.is_empty()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.blktrace.clone();
        if self.ftrace > 0 {
            notes.push(format!(
                "ftrace.txt: {} events were lost: its ring buffer ran over",
                self.ftrace
            ));
        }
        notes
    }
}
