//! The multipath target: groups of paths, the paths in use, and held I/O.
//!
//! The data that m->lock guards, with the selectors, which have locks of their own, and the paths'
//! accounts. A method leaves work for its caller in [`Todo`]. Not here: requests and clones.
//! Kernel: struct multipath, struct priority_group, struct pgpath in drivers/md/dm-mpath.c
//! (6.1.192).

mod choose;
mod end;
mod fail;
mod forced;
mod init;
mod message;
mod status;

pub use choose::{Access, Answer, Ask, Choice};
pub use init::InitResult;
pub use message::Message;

use super::selector::{Account, Selector};
use super::table::{QueueMode, Table};
use super::{GroupId, Incoming, Mapping, PathId};
use crate::request::BioId;
use crate::rules::{DeviceMapper, TargetLock};
use std::collections::VecDeque;

/// A flag of the target (MPATHF_*).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flag {
    /// Requests are held until the group is initialised.
    QueueIo,
    /// Requests are held when no path is left.
    QueueIfNoPath,
    /// The value before the suspension, or as [`Saved`](crate::rules::Saved) says.
    SavedQueueIfNoPath,
    /// The group must not be initialised now.
    InitDisabled,
    /// The group must be initialised.
    InitRequired,
    /// The next initialisation waits.
    InitDelayRetry,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    pub fn has(self, flag: Flag) -> bool {
        self.0 & Flags::bit(flag) != 0
    }

    /// Sets or clears the flag.
    pub fn set(&mut self, flag: Flag, on: bool) {
        match on {
            true => self.0 |= Flags::bit(flag),
            false => self.0 &= !Flags::bit(flag),
        }
    }

    const fn bit(flag: Flag) -> u8 {
        1 << flag as u8
    }
}

/// Whether a request that is mapped now would wait below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    Yes,
    /// It would not.
    No,
    /// If the driver of this path and those of all active ones [after](Multipath::active_after) it
    /// say that they are busy.
    Ask(PathId),
}

/// Work that a method leaves to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Todo {
    /// The upper queue is run (dm_table_run_md_queue_async()).
    pub run_queue: bool,
    /// The requeue list is kicked (process_queued_io_list()).
    pub kick_list: bool,
    /// The worker that maps held bios is called (process_queued_bios).
    pub call_worker: bool,
    /// Arms the timer of held requests, for so many seconds.
    pub arm_timer: Option<u64>,
    /// The timer is cancelled.
    pub cancel_timer: bool,
    /// The waiters for the initialisation are woken.
    pub wake: bool,
    /// A uevent of a path that has failed or was reinstated (dm_path_uevent()): the last one, since
    /// the owner of the lock changes one path and takes this.
    pub uevent: Option<Uevent>,
}

/// DM_UEVENT_PATH_FAILED or DM_UEVENT_PATH_REINSTATED.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Uevent {
    PathFailed(PathId),
    PathReinstated(PathId),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Multipath {
    // Settings.
    rules: DeviceMapper,
    queue_mode: QueueMode,
    /// The device has a hardware handler.
    handler: bool,
    pg_init_retries: u32,
    pg_init_delay_msecs: u32,
    /// Module parameter queue_if_no_path_timeout_secs; 0: never.
    timeout_secs: u64,

    // State.
    flags: Flags,
    current_path: Option<PathId>,
    current_group: Option<GroupId>,
    /// The group that the next choice begins with.
    next_group: Option<GroupId>,
    valid_paths: u32,
    /// Requests until the selector chooses again, where the target counts them.
    repeat_left: u32,
    /// Activations of paths in progress.
    init_in_progress: u32,
    init_count: u32,
    paths: Vec<Path>,
    accounts: Vec<Account>,
    groups: Vec<Group>,
    /// Bios that wait for a path or for its group (queued_bios).
    held: VecDeque<BioId>,
    /// DMF_NOFLUSH_SUSPENDING: while a suspension without flush is in progress.
    noflush: bool,
    suspended: bool,
    todo: Todo,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Path {
    group: GroupId,
    active: bool,
    fail_count: u32,
    activation: Activation,
}

/// The work item activate_path of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Activation {
    Idle,
    /// To be queued, with this delay.
    Asked {
        ms: u32,
    },
    Queued,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Group {
    first: usize,
    count: usize,
    bypassed: bool,
    selector: Selector,
}

impl Multipath {
    /// multipath_ctr(), with all paths in use. `nodes`: NUMA node of each CPU; `timeout_secs`:
    /// module parameter queue_if_no_path_timeout_secs.
    pub fn new(table: &Table, rules: DeviceMapper, nodes: &[u16], timeout_secs: u64) -> Multipath {
        let mut of = Multipath {
            rules,
            queue_mode: table.queue_mode,
            handler: table.hw_handler.is_some(),
            pg_init_retries: table.pg_init_retries,
            pg_init_delay_msecs: table.pg_init_delay_msecs,
            timeout_secs,
            flags: Flags::default(),
            current_path: None,
            current_group: None,
            next_group: table.first_group.map(GroupId),
            valid_paths: table.paths().count() as u32,
            repeat_left: 0,
            init_in_progress: 0,
            init_count: 0,
            paths: Vec::new(),
            accounts: Vec::new(),
            groups: Vec::new(),
            held: VecDeque::new(),
            noflush: false,
            suspended: false,
            todo: Todo::default(),
        };
        if table.queue_if_no_path {
            of.set_queue_if_no_path(true, false);
        }
        of.flags.set(Flag::QueueIo, true);
        for (number, group) in (0..).map(GroupId).zip(&table.groups) {
            let selector = Selector::new(group, &rules, nodes);
            let count = group.paths.len();
            let account = selector.empty_account();
            of.accounts.extend((0..count).map(|_| account));
            of.groups.push(Group {
                first: of.paths.len(),
                count,
                bypassed: false,
                selector,
            });
            of.paths.extend((0..count).map(|_| Path {
                group: number,
                active: true,
                fail_count: 0,
                activation: Activation::Idle,
            }));
        }
        of.todo = Todo::default();
        of
    }

    /// Finds a path for a request in one call (__multipath_map()).
    pub fn map(&mut self, io: Incoming) -> Mapping {
        let mut choice = self.choice(io);
        loop {
            match choice.ask() {
                Ok(ask) => {
                    let answer = self.answer(ask, io);
                    choice.answer(answer);
                }
                Err(mapping) => return mapping,
            }
        }
    }

    /// A choice that has not begun.
    pub fn choice(&self, io: Incoming) -> Choice {
        Choice::new(self.rules, self.queue_mode, self.groups.len(), io.bytes)
    }

    /// Makes room for so many held bios.
    pub fn reserve(&mut self, bios: usize) {
        self.held.reserve(bios);
    }

    /// Swaps the held bios for the worker's list, which is empty and has the same capacity.
    pub fn take_held(&mut self, list: &mut VecDeque<BioId>) {
        debug_assert!(list.is_empty(), "the worker has bios left");
        core::mem::swap(&mut self.held, list);
    }

    /// Held bios, the oldest first.
    pub fn held(&self) -> impl Iterator<Item = BioId> + '_ {
        self.held.iter().copied()
    }

    /// New bios wait for the initialisation of the group, so that no worker is called.
    pub fn queues_io(&self) -> bool {
        self.flags.has(Flag::QueueIo)
    }

    /// There is work for the caller.
    pub fn wants_anything(&self) -> bool {
        let asked = |path: &Path| matches!(path.activation, Activation::Asked { .. });
        self.todo != Todo::default() || self.init_in_progress > 0 && self.paths.iter().any(asked)
    }

    pub fn paths_of(&self, group: GroupId) -> core::ops::Range<usize> {
        let of = self.group(group);
        of.first..of.first + of.count
    }

    /// Work of the last methods.
    pub fn take_todo(&mut self) -> Todo {
        core::mem::take(&mut self.todo)
    }

    /// The next path whose activation must be queued on kmpath_handlerd, and the delay in ms. Each
    /// path is returned once.
    pub fn take_activation(&mut self) -> Option<(PathId, u32)> {
        let mut paths = (0..).map(PathId).zip(&mut self.paths);
        paths.find_map(|(id, path)| {
            let Activation::Asked { ms } = path.activation else {
                return None;
            };
            path.activation = Activation::Queued;
            Some((id, ms))
        })
    }

    /// A path is in use.
    pub fn is_active(&self, path: PathId) -> bool {
        self.paths[path.index()].active
    }

    pub fn paths(&self) -> u16 {
        self.paths.len() as u16
    }

    /// Activations of paths are in progress, or requests wait for one.
    pub fn is_initialising(&self) -> bool {
        self.init_in_progress > 0 || self.flags.has(Flag::QueueIo)
    }

    /// Activations of paths are in progress.
    pub fn is_activating(&self) -> bool {
        self.init_in_progress > 0
    }

    /// It is suspended: messages are refused (EBUSY).
    pub fn is_suspended(&self) -> bool {
        self.suspended
    }

    pub fn valid_paths(&self) -> u32 {
        self.valid_paths
    }

    /// No selector counts anything in flight: always if there is nothing, unless counts leak.
    pub fn accounts_are_empty(&self) -> bool {
        self.accounts.iter().all(Account::is_empty)
    }

    /// Panics unless counts, lists and flags agree.
    pub fn check(&self) {
        let active = self.paths.iter().filter(|path| path.active).count();
        assert_eq!(self.valid_paths as usize, active, "paths in use");
        if let Some(path) = self.current_path {
            let group = self.paths[path.index()].group;
            assert_eq!(self.current_group, Some(group), "group of {path:?}");
            // Without the lock a path may fail between its choice and the switch to its group.
            let whole = self.rules.target_lock == TargetLock::Whole;
            assert!(
                !whole || self.is_active(path),
                "current {path:?} has failed"
            );
        }
        for group in &self.groups {
            let is_active = |path: usize| self.paths[group.first + path].active;
            group.selector.check(is_active);
        }
        let under_way = |path: &&Path| path.activation != Activation::Idle;
        let queued = self.paths.iter().filter(under_way).count();
        assert!(queued <= self.init_in_progress as usize, "activations");
        if !self.handler {
            assert!(!self.flags.has(Flag::InitRequired), "there is no handler");
        }
    }

    fn group(&self, group: GroupId) -> &Group {
        &self.groups[group.index()]
    }

    /// A path's group, and its index in it.
    fn place(&self, path: PathId) -> (GroupId, usize) {
        let group = self.paths[path.index()].group;
        (group, path.index() - self.group(group).first)
    }
}

#[cfg(test)]
mod tests;
