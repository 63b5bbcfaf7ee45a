//! What the SCSI mid-layer counts for one logical unit: budgets, restarts, blocked states.
//!
//! Each method is atomic here; in the kernel the counters are words of their own, and the order
//! of `restarts` and the busy count is what keeps a queue from hanging.
//! Kernel: scsi_mq_get_budget(), scsi_queue_rq(), scsi_end_request() in drivers/scsi/scsi_lib.c.

use crate::device::{Action, Actions};
use crate::plan::BusyKind;
use blkmq::request::RequestId;
use blkmq::time::Duration;

/// SCSI_QUEUE_DELAY.
const QUEUE_DELAY: Duration = Duration::from_millis(3);

/// SCSI_DEFAULT_DEVICE_BLOCKED: looks at an idle unit before it gets a command again.
const DEVICE_BLOCKED_MAX: u32 = 3;

/// SCSI_DEFAULT_HOST_BLOCKED: offers to an idle host before it gets a command again.
const HOST_BLOCKED_MAX: u32 = 7;

/// The mid-layer above one unit.
#[derive(Debug)]
pub(super) struct MidLayer {
    // Settings.
    lun_depth: u32,

    // State.
    /// budget_map: tokens that are free.
    tokens_free: Vec<u32>,
    /// Tokens of commands the low-level driver has, by slot.
    token_of: Vec<Option<u32>>,
    /// Commands the low-level driver has (SCMD_STATE_INFLIGHT).
    host_busy: u32,
    /// Failed attempts to get a budget since the queue was run for them.
    restarts: u32,
    device_blocked: u32,
    host_blocked: u32,
    /// The unit is on the host's starved list.
    starved: bool,
}

impl MidLayer {
    /// An idle unit of this depth. Panics if it is zero.
    pub(super) fn new(lun_depth: u32, requests: u32) -> MidLayer {
        assert!(lun_depth > 0, "a unit takes commands");
        MidLayer {
            lun_depth,
            tokens_free: (0..lun_depth).rev().collect(),
            token_of: vec![None; requests as usize],
            host_busy: 0,
            restarts: 0,
            device_blocked: 0,
            host_blocked: 0,
            starved: false,
        }
    }

    /// scsi_mq_get_budget().
    pub(super) fn get_budget(&mut self, out: &mut Actions) -> Option<u32> {
        if let Some(token) = self.device_ready() {
            return Some(token);
        }
        self.restarts += 1;
        if self.device_busy() == 0 {
            // No completion will see `restarts`.
            out.push(Action::RunQueues { delay: QUEUE_DELAY });
        }
        None
    }

    /// scsi_dev_queue_ready().
    fn device_ready(&mut self) -> Option<u32> {
        let token = self.tokens_free.pop()?;
        if self.device_blocked > 0 {
            let alone = self.device_busy() == 1;
            if alone {
                self.device_blocked -= 1;
            }
            if !alone || self.device_blocked > 0 {
                self.put_budget(token);
                return None;
            }
        }
        Some(token)
    }

    /// scsi_mq_put_budget().
    pub(super) fn put_budget(&mut self, token: u32) {
        self.tokens_free.push(token);
        assert!(
            self.tokens_free.len() <= self.lun_depth as usize,
            "token {token} came back twice"
        );
    }

    /// scsi_host_queue_ready(): true hands the command to the low-level driver, false gives its
    /// budget back.
    pub(super) fn admit(&mut self, rq: RequestId, token: u32) -> bool {
        if self.host_blocked > 0 {
            let idle = self.host_busy == 0;
            if idle {
                self.host_blocked -= 1;
            } else {
                self.starved = true;
            }
            if !idle || self.host_blocked > 0 {
                self.put_budget(token);
                return false;
            }
        }
        self.starved = false;
        self.host_busy += 1;
        let held = self.token_of[rq.0 as usize].replace(token);
        assert_eq!(held, None, "request {} was issued twice", rq.0);
        true
    }

    /// queuecommand refused: scsi_set_blocked(), and all comes back. Panics if the command was
    /// not admitted.
    pub(super) fn reject(&mut self, rq: RequestId, busy: BusyKind) {
        match busy {
            BusyKind::Resource => self.host_blocked = HOST_BLOCKED_MAX,
            BusyKind::DevResource => self.device_blocked = DEVICE_BLOCKED_MAX,
        }
        self.release(rq);
    }

    /// scsi_mq_requeue_cmd(): all comes back. Panics if the command was not admitted.
    pub(super) fn give_back(&mut self, rq: RequestId) {
        self.release(rq);
    }

    /// scsi_finish_command() and scsi_end_request(). Panics if the command was not admitted.
    ///
    /// Deviation(D9): one step. The kernel gives the budget back before the end of the request and
    /// asks for the re-run after it.
    pub(super) fn ended(&mut self, rq: RequestId, out: &mut Actions) {
        self.release(rq);
        self.host_blocked = 0;
        self.device_blocked = 0;
        // scsi_run_queue_async().
        if self.starved {
            self.starved = false;
        } else if self.restarts > 0 {
            self.restarts = 0;
        } else {
            return;
        }
        let delay = Duration::ZERO;
        out.push(Action::RunQueues { delay });
    }

    /// Commands of the host.
    pub(super) fn host_busy(&self) -> u32 {
        self.host_busy
    }

    /// For stall reports.
    pub(super) fn describe(&self) -> String {
        format!(
            "{} of {} budgets used, restarts {}, blocked: device {} host {}{}",
            self.device_busy(),
            self.lun_depth,
            self.restarts,
            self.device_blocked,
            self.host_blocked,
            if self.starved { ", starved" } else { "" }
        )
    }

    /// scsi_device_busy(): budgets in use, also of commands that wait above.
    fn device_busy(&self) -> u32 {
        self.lun_depth - self.tokens_free.len() as u32
    }

    fn release(&mut self, rq: RequestId) {
        let token = self.token_of[rq.0 as usize].take();
        self.put_budget(token.expect("the command was handed to the driver"));
        self.host_busy -= 1;
    }
}
