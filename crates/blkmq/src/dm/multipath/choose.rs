//! The choice of a path, as a machine that asks one question at a time.
//!
//! Up to 4.6 all questions are answered under m->lock; later each one is an access of its own,
//! described by [`Access`]. The same order of questions serves both, and the caller decides what
//! other CPUs may do between two of them. For a bio-based target the same machine holds bios: only
//! the steps after the choice differ. Kernel: multipath_clone_and_map() up to the clone,
//! choose_pgpath(), choose_path_in_pg(), pg_init_all_paths(), __map_bio() in drivers/md/dm-mpath.c
//! (6.1.192; __multipath_map() in 4.5 and 4.6, __multipath_map_bio() in 4.12, __map_bio_fast() in
//! 4.20).

mod answer;
mod bio;

use bio::AtBio;

use super::Flag;
use crate::dm::table::QueueMode;
use crate::dm::{GroupId, Mapped, Mapping, PathId};
use crate::request::Status;
use crate::rules::{BioMap, DeviceMapper, FlagRead, Hold, Repeat, TargetLock, Unready};

/// One question, or one change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    /// Which path is the current one?
    CurrentPath,
    /// Which group is the current one?
    CurrentGroup,
    /// Is this flag set?
    Flag(Flag),
    /// The same, read under m->lock.
    FlagLocked(Flag),
    /// Is it the last request that the current path gets in a row? Counts it.
    RepeatRunsOut,
    /// Is any path in use?
    AnyValid,
    /// Was a group named to begin with?
    NextGroup,
    /// The same under m->lock, and it is cleared.
    TakeNextGroup,
    /// Is the group bypassed, if there is another one?
    Bypassed(GroupId),
    /// The path that the selector of a group chooses.
    Select(GroupId),
    BecomesCurrent(PathId),
    /// The path and its group become the current ones, and the group may have to be initialised.
    Switch(PathId),
    Set(Flag),
    Clear(Flag),
    /// Clears the current path and group.
    Forget,
    /// Must requests be held though no path is left?
    MustPushBack,
    /// Initialises the group, unless that is in progress. Is it in progress now?
    Initialise,
    /// The bio is added to the target's list.
    Hold,
    /// The same if bios are held where no path is left. Is it?
    HoldIfQueues,
    /// The worker that maps the bios of the list is called.
    CallWorker,
    /// Must the device defer a bio that is not held?
    MustDefer,
}

/// The access that an answer needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// A read of one word.
    Word,
    TargetLock,
    /// The lock of a group's selector, if it has one.
    Selector(GroupId),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    Done,
    /// Yes or no.
    Is(bool),
    /// A path, or none.
    Path(Option<PathId>),
    /// A group, or none.
    Group(Option<GroupId>),
}

/// The origin of the group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum From {
    /// A message named it.
    Next,
    /// It is the current one.
    Current,
    /// In the order of groups, first those that are not bypassed.
    Order { bypassed: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    CurrentPath,
    QueueIo { locked: bool },
    Repeat,
    AnyValid,
    NoneValid,
    NextGroup,
    TakeNextGroup,
    CurrentGroup,
    Bypassed(GroupId, bool),
    Select(GroupId, From),
    Current(PathId),
    Compare(PathId),
    Switch(PathId),
    DelayRetry,
    Forget,
    PushBack,
    Waits { flag: Flag, locked: bool },
    Initialise,
    Bio(AtBio),
    Over(Mapping),
}

/// There is a path: may it be used?
const CHOSEN: At = At::Waits {
    flag: Flag::QueueIo,
    locked: false,
};

/// A choice in progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Choice {
    at: At,
    rules: DeviceMapper,
    groups: u16,
    bytes: u32,
    /// The bio rules of the target; none: it maps requests.
    bios: Option<BioMap>,
    /// The group waits for its initialisation, as read before the selector is asked.
    queue_io: bool,
    /// The path so far.
    path: Option<PathId>,
    /// The origin of its group.
    from: From,
    /// The last group that was asked.
    group: GroupId,
}

impl Choice {
    /// Of a path for a request or a bio of so many bytes, from so many groups.
    pub fn new(rules: DeviceMapper, mode: QueueMode, groups: usize, bytes: u32) -> Choice {
        Choice {
            at: At::CurrentPath,
            rules,
            groups: groups as u16,
            bytes,
            bios: match mode {
                QueueMode::Request => None,
                QueueMode::Bio => Some(rules.bio_map),
            },
            queue_io: false,
            path: None,
            from: From::Next,
            group: GroupId(0),
        }
    }

    /// The next question; an error ends the choice with its result.
    pub fn ask(&self) -> Result<Ask, Mapping> {
        Ok(match self.at {
            At::CurrentPath => Ask::CurrentPath,
            At::QueueIo { locked } => flag(Flag::QueueIo, locked),
            At::Repeat => Ask::RepeatRunsOut,
            At::AnyValid => Ask::AnyValid,
            At::NoneValid => Ask::Clear(Flag::QueueIo),
            At::NextGroup => Ask::NextGroup,
            At::TakeNextGroup => Ask::TakeNextGroup,
            At::CurrentGroup | At::Compare(_) => Ask::CurrentGroup,
            At::Bypassed(group, _) => Ask::Bypassed(group),
            At::Select(group, _) => Ask::Select(group),
            At::Current(path) => Ask::BecomesCurrent(path),
            At::Switch(path) => Ask::Switch(path),
            At::DelayRetry => Ask::Set(Flag::InitDelayRetry),
            At::Forget => Ask::Forget,
            At::PushBack => Ask::MustPushBack,
            At::Waits { flag: of, locked } => flag(of, locked),
            At::Initialise => Ask::Initialise,
            At::Bio(at) => at.ask(),
            At::Over(mapping) => return Err(mapping),
        })
    }

    /// The access for an answer, where the choice is not under m->lock as a whole.
    pub fn access(&self, ask: Ask) -> Access {
        let checked = self.rules.flag_read == FlagRead::TwiceIfSet;
        match ask {
            Ask::CurrentPath
            | Ask::CurrentGroup
            | Ask::Flag(_)
            | Ask::AnyValid
            | Ask::NextGroup
            | Ask::CallWorker
            | Ask::MustDefer
            | Ask::Bypassed(_) => Access::Word,
            Ask::Set(_) | Ask::Clear(_) | Ask::MustPushBack if !checked => Access::Word,
            Ask::Select(group) => Access::Selector(group),
            Ask::FlagLocked(_)
            | Ask::RepeatRunsOut
            | Ask::TakeNextGroup
            | Ask::BecomesCurrent(_)
            | Ask::Switch(_)
            | Ask::Set(_)
            | Ask::Clear(_)
            | Ask::Forget
            | Ask::MustPushBack
            | Ask::Hold
            | Ask::HoldIfQueues
            | Ask::Initialise => Access::TargetLock,
        }
    }

    /// Continues with the answer. Panics if it is not one to the question.
    pub fn answer(&mut self, answer: Answer) {
        self.at = match (self.at, answer) {
            (At::CurrentPath, Answer::Path(path)) => {
                self.path = path;
                self.current(path)
            }
            (At::QueueIo { locked }, Answer::Is(true)) if self.looks_again(locked) => {
                At::QueueIo { locked: true }
            }
            (At::QueueIo { .. }, Answer::Is(true)) => self.chosen(),
            (At::QueueIo { .. }, Answer::Is(false)) => match self.rules.repeat {
                Repeat::ByTarget => At::Repeat,
                Repeat::ByRoundRobin | Repeat::One => At::AnyValid,
            },
            (At::Repeat, Answer::Is(true)) => At::AnyValid,
            (At::Repeat, Answer::Is(false)) => self.chosen(),
            (At::AnyValid, Answer::Is(true)) => At::NextGroup,
            (At::AnyValid, Answer::Is(false)) => At::NoneValid,
            (At::NoneValid, Answer::Done) => At::Forget,
            (At::NextGroup, Answer::Group(None)) => At::CurrentGroup,
            (At::NextGroup, Answer::Group(_)) => At::TakeNextGroup,
            (At::TakeNextGroup, Answer::Group(Some(group))) => At::Select(group, From::Next),
            (At::TakeNextGroup, Answer::Group(None)) => At::CurrentGroup,
            (At::CurrentGroup, Answer::Group(Some(group))) => At::Select(group, From::Current),
            (At::CurrentGroup, Answer::Group(None)) => self.group_from(0, false),
            (At::Bypassed(group, wanted), Answer::Is(is)) => match is == wanted {
                true => At::Select(group, From::Order { bypassed: wanted }),
                false => self.group_from(group.0 + 1, wanted),
            },
            (At::Select(group, from), Answer::Path(Some(path))) => {
                (self.path, self.from, self.group) = (Some(path), from, group);
                match (self.rules.target_lock, self.rules.repeat) {
                    // The count of a target belongs to its current path.
                    (TargetLock::Whole, _) | (_, Repeat::ByTarget) => At::Current(path),
                    (TargetLock::Changes, _) => At::Compare(path),
                }
            }
            (At::Select(group, from), Answer::Path(None)) => match from {
                From::Next => At::CurrentGroup,
                From::Current => self.group_from(0, false),
                From::Order { bypassed } => self.group_from(group.0 + 1, bypassed),
            },
            (At::Current(path), Answer::Done) => At::Compare(path),
            (At::Compare(_), Answer::Group(Some(of))) if of == self.group => self.found(),
            (At::Compare(path), Answer::Group(_)) => At::Switch(path),
            (At::Switch(_), Answer::Done) => self.found(),
            (At::DelayRetry, Answer::Done) => self.chosen(),
            (At::Forget, Answer::Done) => {
                self.path = None;
                match self.bios {
                    None => At::PushBack,
                    Some(BioMap::UnderLock) => At::Bio(AtBio::HoldIfQueues),
                    Some(_) => At::Bio(AtBio::Queues),
                }
            }
            (At::PushBack, Answer::Is(true)) => At::Over(held(self.rules.no_path)),
            (At::PushBack, Answer::Is(false)) => At::Over(Mapping::Kill(Status::IoError)),
            (At::Waits { flag, locked }, Answer::Is(is)) => self.waits(flag, locked, is),
            (At::Initialise, Answer::Is(_)) if self.bios.is_some() => At::Over(Mapping::Held),
            (At::Initialise, Answer::Is(goes_on)) => At::Over(self.unready(goes_on)),
            (At::Bio(at), answer) => self.bio(at, answer),
            (at, answer) => unreachable!("{answer:?} at {at:?}"),
        };
    }

    /// The step after the current path, if there is one.
    fn current(&self, path: Option<PathId>) -> At {
        match (self.bios, path) {
            (Some(BioMap::ReadsOnce), _) => At::Bio(AtBio::QueueIo),
            (Some(BioMap::Stays), Some(_)) => self.chosen(),
            (_, None) => At::AnyValid,
            (_, Some(_)) => At::QueueIo { locked: false },
        }
    }

    fn chosen(&self) -> At {
        match self.bios {
            None | Some(BioMap::UnderLock) => CHOSEN,
            Some(_) if self.queue_io => At::Bio(AtBio::Hold),
            Some(_) => self.over_to_path(),
        }
    }

    fn over_to_path(&self) -> At {
        At::Over(Mapping::To(Mapped {
            path: self.path.expect("one was chosen"),
            bytes: self.bytes,
        }))
    }

    /// A flag for which requests wait is set, or is not.
    fn waits(&self, flag: Flag, locked: bool, on: bool) -> At {
        match (on, flag) {
            (true, _) if self.looks_again(locked) => At::Waits { flag, locked: true },
            (true, _) if self.bios.is_some() => At::Bio(AtBio::Hold),
            (true, _) => At::Initialise,
            (false, Flag::QueueIo) => At::Waits {
                flag: Flag::InitRequired,
                locked: false,
            },
            (false, _) => self.over_to_path(),
        }
    }

    /// A flag that is set is read once more.
    fn looks_again(&self, locked: bool) -> bool {
        !locked && self.rules.flag_read == FlagRead::TwiceIfSet
    }

    /// The group of this number, or the step after the last one.
    fn group_from(&self, number: u16, bypassed: bool) -> At {
        match (number < self.groups, bypassed) {
            (true, _) => At::Bypassed(GroupId(number), bypassed),
            (false, false) if self.groups > 0 => At::Bypassed(GroupId(0), true),
            (false, _) => At::Forget,
        }
    }

    /// A path was found, and its group is the current one.
    fn found(&self) -> At {
        match self.from {
            From::Order { bypassed: true } => At::DelayRetry,
            From::Next | From::Current | From::Order { .. } => self.chosen(),
        }
    }

    fn unready(&self, goes_on: bool) -> Mapping {
        match self.rules.unready {
            Unready::Requeue => Mapping::Requeue,
            Unready::DelayIfStarted if !goes_on => Mapping::Requeue,
            Unready::DelayIfStarted | Unready::Delay => Mapping::DelayRequeue,
        }
    }
}

fn flag(flag: Flag, locked: bool) -> Ask {
    match locked {
        true => Ask::FlagLocked(flag),
        false => Ask::Flag(flag),
    }
}

fn held(hold: Hold) -> Mapping {
    match hold {
        Hold::Requeue => Mapping::Requeue,
        Hold::Delay => Mapping::DelayRequeue,
    }
}
