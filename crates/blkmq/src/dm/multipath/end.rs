//! A request with a path: its clone is allocated or not, is given up, or ends.
//!
//! Kernel: multipath_clone_and_map(), multipath_release_clone(), multipath_end_io() in
//! drivers/md/dm-mpath.c (6.1.192), do_end_io() (4.6).

use super::{InitResult, Multipath};
use crate::dm::selector::EndOfIo;
use crate::dm::{Ending, Mapped, Mapping, PathId};
use crate::request::Status;
use crate::rules::{EndRule, NoClone, Undo};
use crate::time::SimTime;

impl Multipath {
    /// The queue of the path has no tag for a clone. `dying`: its device goes away.
    pub fn no_clone(&mut self, path: PathId, dying: bool) -> Mapping {
        if dying && self.rules.no_clone != NoClone::Requeue {
            self.init_in_progress += 1;
            self.init_done(path, InitResult::Offlined);
        }
        match (self.rules.no_clone, dying) {
            (NoClone::Requeue, _) | (NoClone::Delay, true) | (NoClone::RequeueToMerge, false) => {
                Mapping::Requeue
            }
            (NoClone::Delay, false) | (NoClone::RequeueToMerge, true) => Mapping::DelayRequeue,
        }
    }

    /// The clone was allocated: the selector counts it (start_io()).
    pub fn start(&mut self, mapped: Mapped) {
        self.accounts[mapped.path.index()].start(mapped.bytes);
    }

    /// The clone is given up before the device had it (multipath_release_clone() while mapping).
    pub fn undo(&mut self, mapped: Mapped, started: SimTime, now: SimTime) {
        match self.rules.undo {
            Undo::Forgotten => {}
            Undo::TakenBack => self.account_end(mapped, started, now),
        }
    }

    pub fn end(
        &mut self,
        mapped: Mapped,
        status: Status,
        started: SimTime,
        now: SimTime,
    ) -> Ending {
        let ending = match self.is_path_error(status) {
            true => self.end_with_error(mapped.path, status),
            false => Ending::Done(status),
        };
        self.account_end(mapped, started, now);
        ending
    }

    /// The selector counts an I/O no longer (end_io()).
    pub fn account_end(&mut self, mapped: Mapped, started: SimTime, now: SimTime) {
        let (group, _) = self.place(mapped.path);
        let selector = &self.groups[group.index()].selector;
        let end = EndOfIo {
            bytes: mapped.bytes,
            started,
            now,
        };
        selector.end(&mut self.accounts[mapped.path.index()], end);
    }

    /// Another path may do better (blk_path_error(); noretry_error() before it).
    pub fn is_path_error(&self, status: Status) -> bool {
        match status {
            Status::Ok
            | Status::NotSupported
            | Status::NoSpace
            | Status::Target
            | Status::Medium
            | Status::Protection => false,
            Status::Nexus => self.rules.end == EndRule::IoError,
            Status::IoError
            | Status::Timeout
            | Status::Again
            | Status::Resource
            | Status::Transport => true,
        }
    }

    fn end_with_error(&mut self, path: PathId, status: Status) -> Ending {
        self.fail(path);
        if self.valid_paths == 0 {
            if !self.must_push_back() {
                return Ending::Done(match self.rules.end {
                    EndRule::IoError => Status::IoError,
                    EndRule::AsItIs | EndRule::DelayForResource => status,
                });
            }
            let conflict = status == Status::Nexus && self.queues_if_no_path();
            if conflict && self.rules.end == EndRule::IoError {
                return Ending::Done(status);
            }
        }
        match (self.rules.end, status) {
            (EndRule::DelayForResource, Status::Resource) => Ending::DelayRequeue,
            _ => Ending::Requeue,
        }
    }
}
