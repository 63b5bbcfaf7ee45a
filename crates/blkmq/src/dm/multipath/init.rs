//! Initialisation of a group by its hardware handler: an activation of each of its paths.
//!
//! Not here: when a work item runs, and what an activation does on the device.
//! Kernel: __pg_init_all_paths(), activate_path_work(), pg_init_done(), pg_init_limit_reached(),
//! flush_multipath_work() in drivers/md/dm-mpath.c (6.1.192).

use super::{Activation, Flag, Multipath};
use crate::dm::PathId;

/// The result of the activation of a path (SCSI_DH_*).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InitResult {
    /// SCSI_DH_OK.
    Ok,
    /// SCSI_DH_NOSYS: the device has no handler.
    NoHandler,
    /// SCSI_DH_DEV_TEMP_BUSY: another group may work.
    TemporarilyBusy,
    /// SCSI_DH_RETRY: later.
    Retry,
    /// SCSI_DH_IMM_RETRY: at once.
    RetryAtOnce,
    /// SCSI_DH_RES_TEMP_UNAVAIL: the same.
    Unavailable,
    /// SCSI_DH_DEV_OFFLINED.
    Offlined,
    /// SCSI_DH_IO and all others.
    Failed,
}

impl Multipath {
    /// Initialises the group unless that is in progress. True if it is, now.
    pub(super) fn initialise(&mut self) -> bool {
        if self.init_in_progress > 0 || self.flags.has(Flag::InitDisabled) {
            return false;
        }
        self.init_count += 1;
        self.flags.set(Flag::InitRequired, false);
        let Some(group) = self.current_group else {
            return false;
        };
        let delay = match self.flags.has(Flag::InitDelayRetry) {
            true => self.pg_init_delay_msecs,
            false => 0,
        };
        let (first, count) = (self.group(group).first, self.group(group).count);
        for path in (first..first + count).map(|path| PathId(path as u16)) {
            if self.is_active(path) {
                self.ask_activation(path, delay);
            }
        }
        self.init_in_progress > 0
    }

    /// The work item of a path runs. True: its device is activated, and [`Multipath::init_done`]
    /// follows; if the path has failed, the activation ends here. Panics if none was queued.
    pub fn begin_activation(&mut self, path: PathId) -> bool {
        let activation = &mut self.paths[path.index()].activation;
        assert_eq!(*activation, Activation::Queued, "work of {path:?}");
        *activation = Activation::Idle;
        let active = self.is_active(path);
        if !active {
            self.init_done(path, InitResult::Offlined);
        }
        active
    }

    /// An activation has ended (pg_init_done()).
    pub fn init_done(&mut self, path: PathId, result: InitResult) {
        let (group, _) = self.place(path);
        let mut error = true;
        match result {
            InitResult::Ok => error = false,
            InitResult::NoHandler if !self.handler => error = false,
            InitResult::TemporarilyBusy => self.bypass(group, true),
            InitResult::Retry | InitResult::RetryAtOnce | InitResult::Unavailable => {
                if self.init_limit_reached() {
                    self.fail(path);
                }
                error = false;
            }
            InitResult::NoHandler | InitResult::Offlined | InitResult::Failed => self.fail(path),
        }
        if error {
            // A path that has failed is no longer the current one, so that its group stays.
            if self.current_path == Some(path) {
                self.forget();
            }
        } else if !self.flags.has(Flag::InitRequired) {
            self.groups[group.index()].bypassed = false;
        }
        self.init_in_progress -= 1;
        if self.init_in_progress > 0 {
            return;
        }
        if self.flags.has(Flag::InitRequired) {
            let delay = result == InitResult::Retry;
            self.flags.set(Flag::InitDelayRetry, delay);
            if self.initialise() {
                return;
            }
        }
        self.flags.set(Flag::QueueIo, false);
        self.kick_list();
        self.todo.wake = true;
    }

    /// A suspension waits until no activation is in progress (true: it has to), and allows no new
    /// one.
    pub fn stop_initialising(&mut self) -> bool {
        let waits = self.handler && self.init_in_progress > 0;
        self.flags.set(Flag::InitDisabled, waits);
        waits
    }

    pub fn may_initialise(&mut self) {
        self.flags.set(Flag::InitDisabled, false);
    }

    /// pg_init_retries are used up; otherwise the group is initialised once more.
    fn init_limit_reached(&mut self) -> bool {
        let again = self.init_count <= self.pg_init_retries && !self.flags.has(Flag::InitDisabled);
        if again {
            self.flags.set(Flag::InitRequired, true);
        }
        !again
    }
}
