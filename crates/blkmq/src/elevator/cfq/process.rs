//! Process: CFQ's state of an I/O context on this device, for all tasks that share the context.
//!
//! Its queues are in its slots (`merge.rs`). Kernel: struct cfq_io_context in
//! include/linux/iocontext.h (2.6.32), struct cfq_io_cq in block/cfq-iosched.c (4.20).

use super::Cfq;
use super::ids::GroupId;
use super::learn::{SeekMean, ThinkTime};
use super::queue::Class;
use crate::request::{IoClass, IoContextId, IoPrio, Request, RequestPool};
use crate::rules::{SliceBoost, SliceGroups};

/// Level of a task without a priority (IOPRIO_NORM).
pub(super) const LEVEL_NORMAL: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Process {
    /// The process has submitted a request, and a task of it lives (nr_tasks, active_ref).
    pub(super) lives: bool,
    pub(super) ioprio: IoPrio,
    pub(super) group: GroupId,
    pub(super) think: ThinkTime,
    /// Mean over all its requests (2.6.32).
    pub(super) seeks: SeekMean,
    pub(super) last_request_pos: u64,
}

impl Cfq {
    pub(super) fn process(&mut self, p: IoContextId) -> &mut Process {
        if self.processes.len() <= p.0 as usize {
            self.processes.resize(p.0 as usize + 1, Process::default());
        }
        &mut self.processes[p.0 as usize]
    }

    /// The process submits a request: initialises a new process, and updates the state after
    /// changes of priority or group (cfq_get_io_context(), check_ioprio_changed(),
    /// check_blkcg_changed()).
    pub(super) fn greet(&mut self, pool: &RequestPool, rq: &Request) {
        let p = rq.io_context;
        let submitter = self.submitters.of(p);
        let ioprio = match rq.ioprio.class {
            IoClass::None => submitter.ioprio,
            _ => rq.ioprio,
        };
        let group = match self.rules.groups {
            SliceGroups::None => GroupId(0),
            _ => GroupId(rq.group),
        };
        let now = self.now;
        let process = self.process(p);
        if !process.lives {
            *process = Process {
                lives: true,
                ioprio,
                group,
                think: ThinkTime {
                    last_end: now,
                    ..ThinkTime::default()
                },
                ..Process::default()
            };
            return;
        }
        let before = *process;
        process.group = group;
        if before.ioprio != ioprio {
            if !self.rules.async_of_old_priority {
                self.process(p).ioprio = ioprio;
            }
            self.ioprio_changes(pool, p);
            self.process(p).ioprio = ioprio;
        }
        if before.group != group {
            self.group_changes(pool, p);
        }
    }

    fn group_changes(&mut self, pool: &RequestPool, p: IoContextId) {
        let chained = |q| self.ties.tie(q).is_ok_and(|tie| tie.new.is_some());
        let loses = self.ties.slot(p, true).is_some_and(chained);
        self.reservations_lost |= loses && !self.rules.merge.group_change_drops_chain;
        let kinds: &[bool] = match self.rules.merge.group_change_drops_async {
            true => &[false, true],
            false => &[true],
        };
        for q in kinds.iter().filter_map(|&sync| self.ties.slot(p, sync)) {
            trace_msg!(self, q, "changed cgroup");
        }
        let changed = self.ties.change_group(p);
        self.hold_true(changed);
        self.bury(pool);
    }

    fn ioprio_changes(&mut self, pool: &RequestPool, p: IoContextId) {
        let place = self.table_place(p);
        let given = self.ties.change_ioprio(p, place);
        if let Some((q, true)) = self.hold_true(given) {
            self.begin_queue(q, p, false);
            trace_msg!(self, q, "alloced");
        }
        self.bury(pool);
        if let Some(q) = self.ties.slot(p, true) {
            self.queues[q].flags.prio_changed = true;
        }
    }

    /// The entry of its asynchronous queue in the table (cfq_async_queue_prio()).
    pub(super) fn table_place(&self, p: IoContextId) -> usize {
        let process = &self.processes[p.0 as usize];
        let (class, level) = match (process.ioprio.class, self.rules.boost) {
            (IoClass::None, SliceBoost::Exclusive) => (IoClass::BestEffort, LEVEL_NORMAL),
            (IoClass::None, SliceBoost::Meta) => {
                let nice = self.submitters.of(p).nice;
                (nice.class, nice.level)
            }
            (class, _) => (class, process.ioprio.level),
        };
        let level = usize::from(level);
        let within = match class {
            IoClass::RealTime => level,
            IoClass::None | IoClass::BestEffort => 8 + level,
            IoClass::Idle => 16,
        };
        let group = match self.rules.groups {
            SliceGroups::Hierarchy => process.group.index(),
            SliceGroups::None | SliceGroups::Flat => 0,
        };
        group * TABLE_PLACES + within
    }

    /// A queue takes the priority of a process (cfq_init_prio_data()).
    pub(super) fn take_priority(&mut self, q: super::QId, p: IoContextId) {
        if !self.queues[q].flags.prio_changed {
            return;
        }
        let ioprio = self.processes[p.0 as usize].ioprio;
        let IoPrio { class, level } = match ioprio.class {
            IoClass::None => self.submitters.of(p).nice,
            IoClass::Idle => IoPrio {
                class: IoClass::Idle,
                level: 7,
            },
            _ => ioprio,
        };
        let queue = &mut self.queues[q];
        queue.class = Class::of(class);
        queue.level = level;
        if ioprio.class == IoClass::Idle {
            queue.flags.idle_window = false;
        }
        queue.org_class = queue.class;
        queue.org_level = level;
        queue.flags.prio_changed = false;
    }
}

/// The number of asynchronous queues of a device or group: two classes of eight levels, and IDLE.
pub(super) const TABLE_PLACES: usize = 17;
