//! What blkmq has, as the shim has it: operation, flags and priority of a request in its numbers
//! (`shim/block.h`), ranges of actuators; and names of C for blkmq.

use crate::library::RANGES_MAX;
use blkmq::queue::QueueSettings;
use blkmq::request::{IoClass, IoPrio, Op, OpFlags};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The operation and flags of cmd_flags, as `shim/block.h` numbers them.
pub(crate) fn opf(op: Op, flags: OpFlags) -> u32 {
    let op = match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
        Op::WriteZeroes => 9,
    };
    let flags = [
        (flags.sync, 3),
        (flags.meta, 4),
        (flags.nomerge, 6),
        (flags.fua, 9),
        (flags.preflush, 10),
        (flags.rahead, 11),
        (flags.nowait, 13),
        (flags.polled, 14),
        (!flags.noidle, 7),
    ];
    let set = flags.iter().filter(|(set, _)| *set);
    op | set.fold(0, |bits, (_, bit)| bits | 1 << (8 + bit))
}

pub(crate) fn ioprio(prio: IoPrio) -> u16 {
    let class = match prio.class {
        IoClass::None => 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << 13 | u16::from(prio.level)
}

/// Sectors of each actuator.
pub(crate) fn ranges_of(queue: &QueueSettings) -> [[u64; 2]; RANGES_MAX] {
    let mut of_c = [[0; 2]; RANGES_MAX];
    for (to, range) in of_c.iter_mut().zip(&queue.access_ranges) {
        *to = [range.start, range.end - range.start];
    }
    of_c
}

/// A name that lives as long as the program, as those of built-in schedulers do.
pub(crate) fn intern(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}
