//! Operation and priority of a request, from the kernel's output: letters of a block event, numbers
//! of a probe.
//!
//! Kernel: kernel/trace/blktrace.c (blk_fill_rwbs()), include/linux/blk_types.h, ioprio.h.

use blkmq::request::{IoClass, IoPrio, Op, OpFlags};
use trace::ftrace::IoPriority;

/// Operation and switches from the kernel's letters (blk_fill_rwbs()), of a request of so many
/// sectors.
pub(super) fn op_of_rwbs(rwbs: &str, sectors: u32) -> (Op, OpFlags) {
    let mut letters = rwbs.chars().peekable();
    let mut flags = OpFlags::default();
    // A first F is a preflush, unless it is the flush operation itself (FN, FF).
    let first = letters.peek() == Some(&'F');
    if first {
        letters.next();
    }
    let op = match (letters.next(), letters.peek()) {
        (Some('W'), _) => Op::Write,
        (Some('D'), Some('E')) => SECURE_ERASE,
        (Some('D'), _) => Op::Discard,
        (Some('R'), _) => Op::Read,
        // Of those without a letter of their own the one that has a length.
        (Some('N'), _) if sectors > 0 => Op::WriteZeroes,
        _ if first => Op::Flush,
        _ => Op::Read,
    };
    flags.preflush = first && op != Op::Flush;
    for letter in letters {
        match letter {
            'F' => flags.fua = true,
            'A' => flags.rahead = true,
            'S' => flags.sync = true,
            'M' => flags.meta = true,
            _ => {}
        }
    }
    (op, flags)
}

/// To schedulers an erase is an operation without a kind of its own, as write zeroes is: kyber has
/// both in one domain. A note reports it, as two of them may merge in the kernel.
const SECURE_ERASE: Op = Op::WriteZeroes;

/// Operation from cmd_flags: REQ_OP_MASK.
pub(super) fn op_of_flags(cmd_flags: u32) -> Op {
    match cmd_flags & 0xff {
        0 => Op::Read,
        2 => Op::Flush,
        3 => Op::Discard,
        5 => SECURE_ERASE,
        9 => Op::WriteZeroes,
        number if number % 2 == 1 => Op::Write,
        _ => Op::Read,
    }
}

/// A priority as the block layer's model knows it: hints do not count.
pub(crate) fn ioprio(raw: IoPriority) -> IoPrio {
    let class = match raw.class {
        1 => IoClass::RealTime,
        2 => IoClass::BestEffort,
        3 => IoClass::Idle,
        _ => IoClass::None,
    };
    IoPrio {
        class,
        level: raw.level,
    }
}

#[cfg(test)]
mod tests;
