//! Paths fail and are reinstated; I/O that is held while no path is left.
//!
//! Kernel: fail_path(), reinstate_path(), bypass_pg(), switch_pg_num(), queue_if_no_path(),
//! multipath_presuspend(), multipath_resume(), multipath_busy() in drivers/md/dm-mpath.c (6.1.192).

use super::{Activation, Busy, Flag, Multipath, Uevent};
use crate::dm::table::QueueMode;
use crate::dm::{GroupId, PathId};
use crate::rules::{Held, Pathless, PushBack, Saved};

impl Multipath {
    /// A path fails. No effect on one that has failed.
    pub fn fail(&mut self, path: PathId) {
        if !self.is_active(path) {
            return;
        }
        let (group, place) = self.place(path);
        self.groups[group.index()].selector.fail(place);
        let of = &mut self.paths[path.index()];
        of.active = false;
        of.fail_count += 1;
        self.todo.uevent = Some(Uevent::PathFailed(path));
        self.valid_paths -= 1;
        if self.current_path == Some(path) {
            self.current_path = None;
        }
        self.arm_timer();
    }

    /// A path is reinstated. With the first one held requests are mapped again.
    pub fn reinstate(&mut self, path: PathId) {
        if !self.is_active(path) {
            let (group, place) = self.place(path);
            self.groups[group.index()].selector.reinstate(place);
            self.paths[path.index()].active = true;
            self.todo.uevent = Some(Uevent::PathReinstated(path));
            self.valid_paths += 1;
            if self.valid_paths == 1 {
                self.current_path = None;
                self.bring_back();
            } else if self.handler && self.current_group == Some(group) {
                self.ask_activation(path, 0);
            }
        }
        self.cancel_timer();
    }

    /// A group is bypassed as long as there is another one, or is not any more.
    pub fn bypass(&mut self, group: GroupId, bypassed: bool) {
        self.groups[group.index()].bypassed = bypassed;
        self.forget();
    }

    /// Sends the next request to a group. No group is bypassed any longer: the kernel's loop clears
    /// the mark of each group that it visits, and continues after the named one.
    pub fn switch_group(&mut self, group: GroupId) {
        for of in &mut self.groups {
            of.bypassed = false;
        }
        self.forget();
        self.next_group = Some(group);
    }

    /// Message or feature queue_if_no_path, or fail_if_no_path (false). `save`: for a suspension.
    pub(super) fn set_queue_if_no_path(&mut self, value: bool, save: bool) {
        let was = self.queues_if_no_path();
        let saved = self.flags.has(Flag::SavedQueueIfNoPath);
        let (new, keeps) = match self.rules.saved {
            Saved::Follows => (if save { was } else { value }, false),
            Saved::WhileSuspended if save => (was, !was && saved),
            Saved::WhileSuspended => (false, value),
        };
        if !keeps {
            self.flags.set(Flag::SavedQueueIfNoPath, new);
        }
        let stays = self.rules.push_back == PushBack::FlagAlone && self.noflush;
        self.flags.set(Flag::QueueIfNoPath, value || stays);
        if !value {
            self.bring_back();
        }
    }

    /// Requests are held when no path is left.
    pub fn queues_if_no_path(&self) -> bool {
        self.flags.has(Flag::QueueIfNoPath)
    }

    /// The time in which held requests may wait for a path is over.
    pub fn timer_expires(&mut self) {
        self.set_queue_if_no_path(false, false);
    }

    /// A suspension begins (presuspend). Without flush it need not wait for held I/O.
    pub fn suspend(&mut self, noflush: bool) {
        self.noflush = noflush;
        let always = match self.rules.saved {
            Saved::Follows => true,
            Saved::WhileSuspended => !noflush || self.queue_mode == QueueMode::Bio,
        };
        if always {
            self.set_queue_if_no_path(false, true);
        }
    }

    /// A suspension without flush is in progress (dm_noflush_suspending()).
    pub fn suspends_noflush(&self) -> bool {
        self.noflush
    }

    /// The suspension is complete: nothing is in flight.
    pub fn suspended(&mut self) {
        self.noflush = false;
        self.suspended = true;
    }

    pub fn resume(&mut self) {
        self.suspended = false;
        let saved = self.flags.has(Flag::SavedQueueIfNoPath);
        match self.rules.saved {
            Saved::Follows => self.flags.set(Flag::QueueIfNoPath, saved),
            Saved::WhileSuspended if saved => {
                self.flags.set(Flag::QueueIfNoPath, true);
                self.flags.set(Flag::SavedQueueIfNoPath, false);
            }
            Saved::WhileSuspended => {}
        }
    }

    /// __must_push_back() of a request: it is held, not ended, when no path is left.
    pub fn must_push_back(&self) -> bool {
        self.queues_if_no_path()
            || match self.rules.push_back {
                PushBack::SavedDiffers => self.differs() && self.noflush,
                PushBack::FlagAlone => false,
                PushBack::Noflush => self.noflush,
            }
    }

    /// queue_if_no_path differs from its saved value.
    pub(super) fn differs(&self) -> bool {
        self.queues_if_no_path() != self.flags.has(Flag::SavedQueueIfNoPath)
    }

    /// multipath_busy(): would a request that is mapped now wait below?
    pub fn busy(&self) -> Busy {
        if self.init_in_progress > 0 {
            return Busy::Yes;
        }
        if self.valid_paths == 0 && self.queues_if_no_path() {
            let busy = match self.rules.pathless {
                Pathless::Busy => true,
                Pathless::Maps => self.queue_mode != QueueMode::Request,
            };
            return if busy { Busy::Yes } else { Busy::No };
        }
        let next = self.next_group.filter(|_| self.current_path.is_none());
        let group = next.or(self.current_group);
        let first = group.and_then(|group| self.active_from(self.group(group).first, group));
        first.map_or(Busy::No, Busy::Ask)
    }

    /// The next active path of the group of this one.
    pub fn active_after(&self, path: PathId) -> Option<PathId> {
        let (group, _) = self.place(path);
        self.active_from(path.index() + 1, group)
    }

    fn active_from(&self, from: usize, group: GroupId) -> Option<PathId> {
        let group = self.group(group);
        let mut paths = (from..group.first + group.count).map(|path| PathId(path as u16));
        paths.find(|&path| self.is_active(path))
    }

    /// All questions at once. `path_busy`: whether the driver of a path says that it is busy.
    pub fn is_busy(&self, path_busy: impl Fn(PathId) -> bool) -> bool {
        let mut path = match self.busy() {
            Busy::Yes => return true,
            Busy::No => return false,
            Busy::Ask(first) => Some(first),
        };
        while let Some(asked) = path {
            if !path_busy(asked) {
                return false;
            }
            path = self.active_after(asked);
        }
        true
    }

    /// Queues the activation of a path, unless it is queued already.
    pub(super) fn ask_activation(&mut self, path: PathId, ms: u32) {
        let activation = &mut self.paths[path.index()].activation;
        if *activation == Activation::Idle {
            *activation = Activation::Asked { ms };
            self.init_in_progress += 1;
        }
    }

    /// Held requests must be mapped again.
    pub(super) fn bring_back(&mut self) {
        self.todo.run_queue = self.queue_mode == QueueMode::Request;
        self.kick_list();
    }

    /// process_queued_io_list().
    pub(super) fn kick_list(&mut self) {
        if self.queue_mode == QueueMode::Bio {
            self.todo.call_worker = true;
        } else if self.rules.held == Held::KickList {
            self.todo.kick_list = true;
        }
    }

    /// enable_nopath_timeout().
    pub(super) fn arm_timer(&mut self) {
        let wanted = self.valid_paths == 0 && self.queues_if_no_path() && self.timeout_secs > 0;
        if wanted && self.rules.no_path_timer {
            self.todo.arm_timer = Some(self.timeout_secs);
            self.todo.cancel_timer = false;
        }
    }

    /// disable_nopath_timeout().
    pub(super) fn cancel_timer(&mut self) {
        self.todo.cancel_timer = self.rules.no_path_timer && self.timeout_secs > 0;
        self.todo.arm_timer = None;
    }
}
