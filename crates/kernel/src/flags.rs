//! Operation, flags and priority of a request in the numbers of the shim (`shim/block.h`).

use blkmq::request::{IoClass, IoPrio, Op, OpFlags};

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
