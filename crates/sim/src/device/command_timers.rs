//! One timer for each command, whose handler completes that command and no other.
//!
//! Holds no events: the machine does. An interrupt counts more than the clock, as CPUs of a machine
//! need not agree on the time to the nanosecond. Kernel: null_cmd_timer_expired() in
//! null_blk/main.c, sdebug_q_cmd_hrt_complete() in scsi_debug.c.

use blkmq::request::RequestId;
use blkmq::time::SimTime;

#[derive(Debug)]
pub(super) struct CommandTimers {
    slots: Vec<CommandTimer>,
}

#[derive(Clone, Debug)]
struct CommandTimer {
    /// Expiry; `NEVER` if not armed.
    due: SimTime,
    /// A handler has completed a command of this slot and may look again.
    taken: bool,
}

impl CommandTimers {
    pub(super) fn new(requests: u32) -> CommandTimers {
        let idle = CommandTimer {
            due: SimTime::NEVER,
            taken: false,
        };
        CommandTimers {
            slots: vec![idle; requests as usize],
        }
    }

    /// Starts the timer of a command. Panics if it is running.
    pub(super) fn arm(&mut self, rq: RequestId, due: SimTime) {
        let timer = &mut self.slots[rq.0 as usize];
        assert_eq!(
            timer.due,
            SimTime::NEVER,
            "request {} was issued twice",
            rq.0
        );
        timer.due = due;
    }

    /// A look of the timer's handler: whether it completes the command, which it does once each
    /// time the timer was armed.
    pub(super) fn take(&mut self, rq: RequestId, now: SimTime) -> bool {
        let timer = &mut self.slots[rq.0 as usize];
        let second_look = core::mem::replace(&mut timer.taken, false);
        // The slot may have been issued again since this handler completed its command.
        let is_early = second_look && now < timer.due;
        if timer.due == SimTime::NEVER || is_early {
            return false;
        }
        timer.due = SimTime::NEVER;
        timer.taken = true;
        true
    }
}
