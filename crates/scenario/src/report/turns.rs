//! Turns of queues with schedulers that serve one queue at a time.

use serde::Serialize;

use super::tokens::device_of;
use sim::plan::Plan;
use sim::recorder::Recorder;

/// Turns of queues of schedulers.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct TurnDetails {
    /// Number of turns; the first 4096 are listed.
    pub count: u64,
    /// Turns by device, queue and tree, in the order of their first turn.
    pub queues: Vec<QueueTurns>,
}

/// Turns of one queue that was in one tree of the scheduler.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct QueueTurns {
    /// Name of the device.
    pub device: String,
    /// The queue, as the scheduler's lines in blktrace name it.
    pub group: String,
    /// Name of the tree.
    pub tree: String,
    /// Start of each turn, from the start of the run.
    pub from_ns: Vec<u64>,
    /// End of each turn.
    pub to_ns: Vec<u64>,
    /// 1 if the device idled for the next request of the queue, else 0.
    pub awaited: Vec<u8>,
}

impl TurnDetails {
    /// `None` if there were none, or they were not collected.
    pub(super) fn new(plan: &Plan, recorder: &Recorder) -> Option<TurnDetails> {
        let turns = &recorder.readings.as_ref()?.turns;
        if turns.first.is_empty() {
            return None;
        }
        let mut queues: Vec<QueueTurns> = Vec::new();
        for turn in &turns.first {
            let device = device_of(plan, turn.queue);
            let (group, tree) = (turn.sample.group_name(&plan.groups), turn.sample.name());
            let is_it =
                |of: &QueueTurns| of.device == device && of.group == group && of.tree == tree;
            let index = queues.iter().position(is_it).unwrap_or_else(|| {
                queues.push(QueueTurns {
                    device: device.clone(),
                    group: group.clone(),
                    tree: tree.clone(),
                    from_ns: Vec::new(),
                    to_ns: Vec::new(),
                    awaited: Vec::new(),
                });
                queues.len() - 1
            });
            let of = &mut queues[index];
            of.from_ns.push(turn.from.0);
            of.to_ns.push(turn.to.0);
            of.awaited.push(u8::from(turn.awaited));
        }
        Some(TurnDetails {
            count: turns.count,
            queues,
        })
    }
}
