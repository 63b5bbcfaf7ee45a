//! State of the SCSI mid-layer for a host and its logical units: budgets, restarts, blocked states.
//!
//! Each method is atomic here; in the kernel the counters are separate words, and the order of
//! `restarts` and the busy count keeps a queue from hanging. Kernel: scsi_mq_get_budget(),
//! scsi_queue_rq(), scsi_end_request(), scsi_mq_lld_busy() in drivers/scsi/scsi_lib.c.

use super::{Action, Actions, Reply, TurnedDown};
use crate::plan::BusyKind;
use blkmq::request::RequestId;
use blkmq::time::Duration;

/// SCSI_QUEUE_DELAY.
const QUEUE_DELAY: Duration = Duration::from_millis(3);

/// SCSI_DEFAULT_DEVICE_BLOCKED: looks at a blocked idle unit until it gets a command again.
const DEVICE_BLOCKED_MAX: u32 = 3;

/// SCSI_DEFAULT_HOST_BLOCKED: offers to a blocked idle host until it gets a command again.
const HOST_BLOCKED_MAX: u32 = 7;

/// The mid-layer above the units of one host.
#[derive(Debug)]
pub(super) struct MidLayer {
    // Settings.
    /// Commands of a unit, as its queue_depth says.
    lun_depth: u32,

    // State.
    units: Vec<Unit>,
    /// Tokens of commands the low-level driver has, by slot.
    token_of: Vec<Option<u32>>,
    /// Commands the low-level driver has (SCMD_STATE_INFLIGHT).
    host_busy: u32,
    host_blocked: u32,
    /// The host's starved_list, first come first.
    starved: Vec<u16>,
}

#[derive(Debug)]
struct Unit {
    /// budget_map: free tokens. Tokens of different units have different numbers.
    tokens_free: Vec<u32>,
    /// Failed attempts to get a budget since the queue was last run for them.
    restarts: u32,
    device_blocked: u32,
}

impl MidLayer {
    /// `units` idle units of this depth. Panics if either is zero.
    pub(super) fn new(units: u16, lun_depth: u32, requests: u32) -> MidLayer {
        assert!(lun_depth > 0, "a unit takes commands");
        assert!(units > 0, "a host has a unit");
        let unit = |unit: u16| {
            let first = u32::from(unit) * lun_depth;
            Unit {
                tokens_free: (first..first + lun_depth).rev().collect(),
                restarts: 0,
                device_blocked: 0,
            }
        };
        MidLayer {
            lun_depth,
            units: (0..units).map(unit).collect(),
            token_of: vec![None; requests as usize],
            host_busy: 0,
            host_blocked: 0,
            starved: Vec::with_capacity(usize::from(units)),
        }
    }

    /// scsi_mq_get_budget().
    pub(super) fn get_budget(&mut self, unit: u16, out: &mut Actions) -> Option<u32> {
        if let Some(token) = self.device_ready(unit) {
            return Some(token);
        }
        self.units[usize::from(unit)].restarts += 1;
        if self.device_busy(unit) == 0 {
            // No completion will see `restarts`.
            out.push(Action::RunQueues {
                unit: Some(unit),
                delay: QUEUE_DELAY,
            });
        }
        None
    }

    /// scsi_dev_queue_ready().
    fn device_ready(&mut self, unit: u16) -> Option<u32> {
        let of = &mut self.units[usize::from(unit)];
        let token = of.tokens_free.pop()?;
        if of.device_blocked > 0 {
            let alone = of.tokens_free.len() as u32 + 1 == self.lun_depth;
            if alone {
                of.device_blocked -= 1;
            }
            if !alone || of.device_blocked > 0 {
                self.put_budget(token);
                return None;
            }
        }
        Some(token)
    }

    /// scsi_mq_put_budget().
    pub(super) fn put_budget(&mut self, token: u32) {
        let depth = self.lun_depth;
        let tokens = &mut self.units[(token / depth) as usize].tokens_free;
        tokens.push(token);
        assert!(
            tokens.len() <= depth as usize,
            "token {token} came back twice"
        );
    }

    /// scsi_mq_lld_busy(): only the state of the unit; a full host does not count.
    pub(super) fn is_busy(&self, unit: u16) -> bool {
        let blocked = self.units[usize::from(unit)].device_blocked > 0;
        blocked || self.device_busy(unit) == self.lun_depth
    }

    /// scsi_host_queue_ready(): if true the low-level driver gets the command, if false its budget
    /// is released.
    pub(super) fn admit(&mut self, rq: RequestId, token: u32) -> bool {
        let unit = self.unit_of(token);
        if self.host_blocked > 0 {
            let idle = self.host_busy == 0;
            if idle {
                self.host_blocked -= 1;
            } else if !self.starved.contains(&unit) {
                self.starved.push(unit);
            }
            if !idle || self.host_blocked > 0 {
                self.put_budget(token);
                return false;
            }
        }
        self.starved.retain(|&other| other != unit);
        self.host_busy += 1;
        let held = self.token_of[rq.0 as usize].replace(token);
        assert_eq!(held, None, "request {} was issued twice", rq.0);
        true
    }

    /// queuecommand refused: scsi_set_blocked(), and budget and host slot are released. Panics if
    /// the command was not admitted.
    pub(super) fn reject(&mut self, rq: RequestId, busy: BusyKind) {
        let unit = self.release(rq);
        match busy {
            BusyKind::Resource => self.host_blocked = HOST_BLOCKED_MAX,
            BusyKind::DevResource => {
                self.units[usize::from(unit)].device_blocked = DEVICE_BLOCKED_MAX;
            }
        }
    }

    /// queuecommand answers that the host ([`BusyKind::Resource`]) or the unit (`DevResource`) is
    /// busy, or the mid-layer requeues the command. The block layer gets BLK_STS_RESOURCE for
    /// either kind of busy: DEV_RESOURCE is for units that a transport has blocked. Panics if the
    /// command was not admitted.
    pub(super) fn turn_down(&mut self, rq: RequestId, why: TurnedDown) -> Reply {
        let why = match why {
            TurnedDown::Busy(busy) => {
                self.reject(rq, busy);
                TurnedDown::Busy(BusyKind::Resource)
            }
            TurnedDown::GivenBack => {
                self.give_back(rq);
                why
            }
        };
        Reply::turned_down(why, true)
    }

    /// scsi_mq_requeue_cmd(): budget and host slot are released. Panics if the command was not
    /// admitted.
    pub(super) fn give_back(&mut self, rq: RequestId) {
        self.release(rq);
    }

    /// scsi_finish_command() and scsi_end_request(). Panics if the command was not admitted.
    ///
    /// Deviation(D9): one step. The kernel releases the budget before the end of the request and
    /// asks for the re-run after it.
    pub(super) fn ended(&mut self, rq: RequestId, out: &mut Actions) {
        let unit = self.release(rq);
        self.host_blocked = 0;
        let of = &mut self.units[usize::from(unit)];
        of.device_blocked = 0;
        // scsi_run_queue_async(): the starved units, and then this unit's own queue.
        let starves = !self.starved.is_empty();
        let own = (starves || of.restarts > 0) && !self.starved.contains(&unit);
        if !starves {
            of.restarts = 0;
        }
        for unit in self.starved.drain(..).chain(own.then_some(unit)) {
            out.push(Action::RunQueues {
                unit: Some(unit),
                delay: Duration::ZERO,
            });
        }
    }

    pub(super) fn host_busy(&self) -> u32 {
        self.host_busy
    }

    pub(super) fn describe(&self) -> String {
        let units = self.units.iter().enumerate();
        let texts = units.map(|(number, of)| {
            let starved = self.starved.iter().any(|&unit| usize::from(unit) == number);
            format!(
                "{}{} of {} budgets used, restarts {}, blocked: device {} host {}{}",
                match self.units.len() {
                    1 => String::new(),
                    _ => format!("unit {number}: "),
                },
                self.device_busy(number as u16),
                self.lun_depth,
                of.restarts,
                of.device_blocked,
                self.host_blocked,
                if starved { ", starved" } else { "" }
            )
        });
        texts.collect::<Vec<_>>().join("; ")
    }

    /// scsi_device_busy(): budgets in use, also of commands that are not with the driver yet.
    fn device_busy(&self, unit: u16) -> u32 {
        self.lun_depth - self.units[usize::from(unit)].tokens_free.len() as u32
    }

    fn unit_of(&self, token: u32) -> u16 {
        (token / self.lun_depth) as u16
    }

    /// Releases a command; returns its unit.
    fn release(&mut self, rq: RequestId) -> u16 {
        let token = self.token_of[rq.0 as usize].take();
        let token = token.expect("the command was handed to the driver");
        self.put_budget(token);
        self.host_busy -= 1;
        self.unit_of(token)
    }
}
