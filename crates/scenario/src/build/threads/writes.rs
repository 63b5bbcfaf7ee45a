//! How the threads of a job write, what they read back, and priorities of their I/Os.

use blkmq::request::{IoClass, IoPrio};
use trace::fio::{self, FioJob, SizePriority};
use trace::ftrace::IoPriority;

use sim::plan::{CmdPrio, PerDirection, SizePrio, VerifyPlan, WritesPlan};

pub(super) fn plan(job: &FioJob) -> WritesPlan {
    let writes = &job.writes;
    let sync = writes.sync && job.rw.write;
    WritesPlan {
        dsync: sync,
        fua: sync,
        end_fsync: writes.end_fsync || writes.fsync_on_close,
        verify: (writes.verify && job.rw.write).then_some(VerifyPlan {
            backlog: writes.verify_backlog,
            batch: writes.verify_backlog_batch,
            after: writes.do_verify,
        }),
    }
}

/// Of thinktime_iotime alone, blocks do not count (handle_thinktime()).
pub(super) fn thinktime_blocks(job: &FioJob) -> u32 {
    let timed = job.control.thinktime_iotime > blkmq::time::Duration::ZERO;
    match timed && job.setting("thinktime_blocks").is_none() {
        true => u32::MAX,
        false => job.thinktime_blocks,
    }
}

pub(super) fn cmdprio(job: &FioJob) -> CmdPrio {
    let (of, own) = (&job.cmdprio, job.cmdprio.priorities());
    let shares = |percent: u8, own: IoPriority, split: &[SizePriority]| {
        let all = SizePrio {
            sectors: 0,
            percent,
            prio: prio(own),
        };
        let share = |share: &SizePriority| SizePrio {
            sectors: (share.bytes / 512) as u32,
            percent: share.percent,
            prio: prio(share.priority.unwrap_or(own)),
        };
        let all = Some(all).filter(|all| all.percent > 0);
        all.into_iter().chain(split.iter().map(share)).collect()
    };
    let fio::PerDirection { read, write, .. } = own;
    CmdPrio {
        shares: PerDirection {
            read: shares(of.percentage.read, read, &of.split.read),
            write: shares(of.percentage.write, write, &of.split.write),
            trim: Vec::new(),
        },
    }
}

fn prio(of: IoPriority) -> IoPrio {
    IoPrio {
        class: match of.class {
            1 => IoClass::RealTime,
            2 => IoClass::BestEffort,
            3 => IoClass::Idle,
            _ => IoClass::None,
        },
        level: of.level,
    }
}
