//! Seeks of rotational disks: sector over time, by thread.

use std::collections::BTreeMap;

use serde::Serialize;

use sim::plan::Plan;
use sim::recorder::Recorder;

/// Commands of rotational disks.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SeekDetails {
    /// Reads and writes that the disks took in the measured time; the first 4096 are listed.
    pub commands: u64,
    /// Commands by disk and thread.
    pub threads: Vec<SeekThread>,
}

/// Commands of one disk that begin with a bio of one thread, in order of time.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SeekThread {
    /// Name of the device.
    pub device: String,
    /// Job and number of the clone, from 0; empty if it is of no thread, as in a replay.
    pub thread: String,
    /// Time at which the device took each, from the end of the ramp.
    pub time_ns: Vec<u64>,
    /// First sector of each.
    pub sector: Vec<u64>,
    /// Length of each.
    pub sectors: Vec<u32>,
}

impl SeekDetails {
    /// `None` if they were not collected.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> Option<SeekDetails> {
        let seeks = recorder.seeks.as_ref()?;
        let mut first = seeks.first.clone();
        first.sort_by_key(|seek| seek.at);
        let mut threads = BTreeMap::new();
        for seek in &first {
            let of = threads
                .entry((seek.disk.index(), seek.thread))
                .or_insert_with(|| SeekThread {
                    device: plan.disks[seek.disk.index()].device.name.clone(),
                    thread: thread_of(plan, seek.thread),
                    time_ns: Vec::new(),
                    sector: Vec::new(),
                    sectors: Vec::new(),
                });
            of.time_ns.push(seek.at.since(recorder.from).0);
            of.sector.push(seek.sector.0);
            of.sectors.push(seek.sectors.0);
        }
        Some(SeekDetails {
            commands: seeks.count,
            threads: threads.into_values().collect(),
        })
    }
}

fn thread_of(plan: &Plan, thread: Option<usize>) -> String {
    let of = thread.map(|thread| &plan.threads[thread]);
    of.map_or_else(String::new, |of| format!("{} {}", of.name, of.clone))
}
