//! Where rotational disks were sent: sector over time, by thread.

use std::collections::BTreeMap;

use serde::Serialize;

use sim::plan::Plan;
use sim::recorder::Recorder;

/// Commands of rotational disks.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SeekDetails {
    /// Reads and writes that they took in the measured time. Only the first of them are below.
    pub commands: u64,
    /// By disk and thread.
    pub threads: Vec<SeekThread>,
}

/// Commands that begin with a bio of one thread, to one disk, in the order of their times.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SeekThread {
    /// Name of the device.
    pub device: String,
    /// The job and the number of its clone from 0; empty if no thread's, as in a replay.
    pub thread: String,
    /// When the device took each, from the end of the ramp.
    pub time_ns: Vec<u64>,
    /// First sector of each.
    pub sector: Vec<u64>,
    /// Length of each, sectors.
    pub sectors: Vec<u32>,
}

impl SeekDetails {
    /// Nothing if they were not collected.
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
