//! Answers of the target to the questions of a choice, and their effects on it.

use super::{Answer, Ask};
use crate::dm::multipath::{Flag, Multipath};
use crate::dm::{GroupId, Incoming, PathId};
use crate::request::BioId;
use crate::rules::{BioMap, PushBack, Repeat};

impl Multipath {
    pub fn answer(&mut self, ask: Ask, io: Incoming) -> Answer {
        match ask {
            Ask::CurrentPath => Answer::Path(self.current_path),
            Ask::CurrentGroup => Answer::Group(self.current_group),
            Ask::Flag(flag) | Ask::FlagLocked(flag) => Answer::Is(self.flags.has(flag)),
            Ask::RepeatRunsOut => Answer::Is(self.repeat_runs_out()),
            Ask::AnyValid => Answer::Is(self.valid_paths > 0),
            Ask::NextGroup => Answer::Group(self.next_group),
            Ask::TakeNextGroup => Answer::Group(self.next_group.take()),
            Ask::Bypassed(group) => Answer::Is(self.group(group).bypassed),
            Ask::Select(group) => Answer::Path(self.select(group, io)),
            Ask::BecomesCurrent(path) => {
                self.current_path = Some(path);
                Answer::Done
            }
            Ask::Switch(path) => self.switch(path),
            Ask::Set(flag) => self.set(flag, true),
            Ask::Clear(flag) => self.set(flag, false),
            Ask::Forget => {
                self.forget();
                Answer::Done
            }
            Ask::MustPushBack => Answer::Is(self.must_push_back()),
            Ask::Initialise => Answer::Is(self.initialise()),
            Ask::Hold => {
                self.hold(io.bio.expect("a bio-based target maps bios"));
                Answer::Done
            }
            Ask::HoldIfQueues => {
                let holds = self.queues_if_no_path();
                if holds {
                    self.hold(io.bio.expect("a bio-based target maps bios"));
                }
                Answer::Is(holds)
            }
            Ask::CallWorker => {
                self.todo.call_worker = true;
                Answer::Done
            }
            Ask::MustDefer => Answer::Is(self.must_defer()),
        }
    }

    /// A bio goes to the list (__multipath_queue_bio() in 6.1).
    pub fn hold(&mut self, bio: BioId) {
        self.held.push_back(bio);
        if self.rules.bio_map == BioMap::UnderLock && !self.flags.has(Flag::QueueIo) {
            self.todo.call_worker = true;
        }
    }

    /// A bio that is neither mapped nor held is deferred to the resume of the device
    /// (must_push_back_bio() in 4.20).
    pub fn must_defer(&self) -> bool {
        match self.rules.push_back {
            PushBack::FlagAlone => self.queues_if_no_path(),
            PushBack::SavedDiffers => self.differs() && self.noflush,
            PushBack::Noflush => self.noflush,
        }
    }

    /// No path and no group is the current one.
    pub(in crate::dm::multipath) fn forget(&mut self) {
        self.current_path = None;
        self.current_group = None;
    }

    fn set(&mut self, flag: Flag, on: bool) -> Answer {
        self.flags.set(flag, on);
        Answer::Done
    }

    /// A count of 0 never runs out: the path stays until it fails.
    fn repeat_runs_out(&mut self) -> bool {
        let counts = self.repeat_left > 0;
        self.repeat_left = self.repeat_left.saturating_sub(1);
        counts && self.repeat_left == 0
    }

    fn select(&mut self, group: GroupId, io: Incoming) -> Option<PathId> {
        let group = &mut self.groups[group.index()];
        let accounts = &self.accounts[group.first..][..group.count];
        let place = group.selector.select(accounts, io)?;
        if self.rules.repeat == Repeat::ByTarget {
            self.repeat_left = group.selector.repeat_count(place);
        }
        Some(PathId((group.first + place) as u16))
    }

    /// __switch_pg().
    pub(in crate::dm::multipath) fn switch(&mut self, path: PathId) -> Answer {
        self.current_path = Some(path);
        self.current_group = Some(self.paths[path.index()].group);
        self.flags.set(Flag::InitRequired, self.handler);
        self.flags.set(Flag::QueueIo, self.handler);
        self.init_count = 0;
        Answer::Done
    }
}
