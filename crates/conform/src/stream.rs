//! All events of a capture in one order, and related events, found before the replay.
//!
//! A decision of a path without a record shows in the task's next event: whether a request is
//! plugged, whether a run asks the scheduler once more. The model's part is in `hypothesis.rs`.

mod decision;
mod returns;
mod unprobed;

use std::collections::BTreeMap;
use std::rc::Rc;

use blkmq::request::{IoPrio, QueueId};
use blkmq::time::{Duration, Jiffies};

use super::event::{Event, Kind};
use super::lines::Log;
use super::ticks::Ticks;
pub(super) use decision::Decision;
pub(super) use returns::Return;
pub(super) use unprobed::{UNKNOWN, Unprobed};

/// Events of all devices, with the relations of each.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) events: Vec<Event>,
    pub(super) queue: Vec<QueueId>,
    pub(super) task: Vec<usize>,
    /// The task's next event, interrupts aside.
    pub(super) next: Vec<Option<usize>>,
    /// For an event that shows a decision of the scheduler.
    pub(super) decisions: Vec<Option<Decision>>,
    /// Decisions are those of recorded calls.
    pub(super) calls: bool,
    /// For an answer that no probe shows: D that can be of its request.
    pub(super) unprobed: BTreeMap<usize, Unprobed>,
    /// For a dispatch call: its answer; of an answer: its call.
    pub(super) other_end: Vec<Option<usize>>,
    /// For a C: the next event of its CPU is the scheduler's finish hook.
    pub(super) finish_follows: Vec<bool>,
    /// For a task: how many requests it announces to a plug, whose tags are then taken together.
    /// That is not recorded. But io_uring does so, whose bios must not wait: as many as it ever
    /// submits at once.
    pub(super) announces: Vec<u16>,
    /// For a G after a line of a log about its allocation: how many requests it was for.
    pub(super) batches: BTreeMap<usize, u16>,
    /// For a Q: the bio must not wait for a tag, and there was none.
    pub(super) would_block: Vec<bool>,
    /// For a Q: there was no tag, and its task waited; the G that ended that.
    pub(super) waited: Vec<Option<usize>>,
    /// For a task's events between a Q and its G: it waits for a tag, and runs the queue or flushes
    /// its plug meanwhile.
    pub(super) while_waiting: Vec<bool>,
    /// For an R: the request's later life; its I after the requeue list is of the same kind.
    pub(super) returns: Vec<Return>,
    /// For a Q: the group of the bio.
    pub(super) group: Vec<u16>,
    /// For a Q: priority of the bio, where that is known.
    pub(super) ioprio: Vec<Option<IoPrio>>,
    /// Scheduler events of timers.
    pub(super) events_of_timer: Vec<usize>,
    /// The last answer of which there is a D.
    pub(super) last_issued: usize,
    /// Logs of schedulers, device by device, where they are compared.
    pub(super) logs: Vec<Log>,
    /// Ticks as the logs show them.
    pub(super) ticks: Option<Rc<Ticks>>,
    /// For a task: the one whose I/O context it has, which is its own but for a worker of io_uring.
    pub(super) context: Vec<usize>,
    pub(super) tasks: usize,
    pub(super) cpus: usize,
    /// The earliest tick that a probe read.
    pub(super) first_tick: Jiffies,
}

impl Stream {
    /// `events`: each with the number of its device, in order.
    pub(super) fn new(events: Vec<(QueueId, Event)>) -> Stream {
        let (queue, events): (Vec<QueueId>, Vec<Event>) = events.into_iter().unzip();
        let mut stream = Stream {
            next: vec![None; events.len()],
            decisions: vec![None; events.len()],
            calls: true,
            other_end: vec![None; events.len()],
            finish_follows: vec![false; events.len()],
            would_block: vec![false; events.len()],
            waited: vec![None; events.len()],
            while_waiting: vec![false; events.len()],
            returns: vec![Return::default(); events.len()],
            group: vec![0; events.len()],
            ioprio: vec![None; events.len()],
            cpus: events
                .iter()
                .map(|e| usize::from(e.cpu) + 1)
                .max()
                .unwrap_or(1),
            queue,
            events,
            ..Stream::default()
        };
        stream.number_tasks();
        stream.find_refused();
        stream.find_waiting();
        stream.find_returns();
        stream.join_calls();
        stream.find_unprobed();
        stream.join_priorities();
        let of_timer =
            |event: &Event| matches!(event.kind, Kind::SchedulerEvent(of) if of.is_of_timer());
        let reported = stream.events.iter().enumerate();
        let reported = reported.filter(|(_, event)| of_timer(event));
        stream.events_of_timer = reported.map(|(index, _)| index).collect();
        let ticks = stream.events.iter().filter_map(|event| match event.kind {
            Kind::Arrive { at, .. } | Kind::Ask { at, .. } | Kind::Answer { at, .. } => Some(at),
            _ => None,
        });
        stream.first_tick = ticks.min().unwrap_or_default();
        stream
    }

    /// The earliest run of a scheduler's timer after its tick, of those with an event: on this
    /// machine none is known to be faster. Nothing if there is no such event.
    pub(super) fn after_tick(&self, hz: u32) -> Duration {
        let tick = 1_000_000_000 / u64::from(hz);
        let reported = self.events_of_timer.iter();
        let after = reported.map(|&index| self.events[index].time.0 % tick);
        Duration(after.min().unwrap_or_default())
    }

    /// Idle tasks have one number on all CPUs.
    fn number_tasks(&mut self) {
        let mut known: BTreeMap<(u32, u16), usize> = BTreeMap::new();
        let mut last: Vec<Option<usize>> = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            let cpu = if event.pid == 0 { event.cpu } else { 0 };
            let fresh = known.len();
            let task = *known.entry((event.pid, cpu)).or_insert(fresh);
            if task == last.len() {
                last.push(None);
            }
            self.task.push(task);
            if matches!(
                event.kind,
                Kind::Complete { .. }
                    | Kind::Finish { .. }
                    | Kind::SchedulerEvent(_)
                    | Kind::Line(_)
            ) {
                continue;
            }
            if let Some(before) = last[task].replace(index) {
                self.next[before] = Some(index);
            }
        }
        self.tasks = known.len();
        self.context = (0..self.tasks).collect();
        self.join_lines();
    }

    /// Workers share the I/O context of the task that they work for, or, where that did nothing by
    /// itself, of each other (create_io_thread(): CLONE_IO).
    pub(super) fn share_contexts(&mut self, workers: &BTreeMap<u32, u32>) {
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        let parents = workers.values().collect::<std::collections::BTreeSet<_>>();
        for (event, &task) in self.events.iter().zip(&self.task) {
            if parents.contains(&event.pid) {
                first.insert(event.pid, task);
            }
        }
        for (event, &task) in self.events.iter().zip(&self.task) {
            if let Some(&parent) = workers.get(&event.pid) {
                self.context[task] = *first.entry(parent).or_insert(task);
            }
        }
    }

    /// The task's next event comes after a line.
    fn join_lines(&mut self) {
        let mut next: Vec<Option<usize>> = vec![None; self.tasks];
        for (index, event) in self.events.iter().enumerate().rev() {
            let task = self.task[index];
            match event.kind {
                Kind::Line(_) => self.next[index] = next[task],
                Kind::Complete { .. } | Kind::Finish { .. } | Kind::SchedulerEvent(_) => {}
                _ => next[task] = Some(index),
            }
        }
    }

    /// A bio that must not wait (NOWAIT) ends in its task, with an error.
    fn find_refused(&mut self) {
        let mut last: Vec<Option<usize>> = vec![None; self.tasks];
        let (mut at_once, mut most) = (vec![0; self.tasks], vec![1; self.tasks]);
        self.announces = vec![1; self.tasks];
        for (index, event) in self.events.iter().enumerate() {
            let task = self.task[index];
            match event.kind {
                Kind::Line(_) => continue,
                Kind::Queue => at_once[task] += 1,
                Kind::Unplug { .. } | Kind::Insert | Kind::Issue => at_once[task] = 0,
                _ => {}
            }
            most[task] = most[task].max(at_once[task]);
            let before = last[task].replace(index);
            let ends = event.kind == Kind::Complete { failed: true };
            let Some(before) = before.filter(|_| ends) else {
                continue;
            };
            let bio = &self.events[before];
            let same = (bio.sector, bio.sectors, bio.op) == (event.sector, event.sectors, event.op);
            self.would_block[before] = bio.kind == Kind::Queue && same;
            if self.would_block[before] {
                self.announces[task] = 0;
            }
        }
        for (announced, most) in self.announces.iter_mut().zip(most) {
            *announced = (*announced).max(if *announced == 0 { most } else { 1 });
        }
    }

    /// A task that finds no tag runs the queue, flushes its plug and sleeps. Between its Q and its
    /// G there are events that show that, or its CPU does something else. Kernel: blk_mq_get_tag().
    fn find_waiting(&mut self) {
        // By CPU: latest event, and latest one that is not of the same task.
        let mut seen: Vec<(Option<usize>, Option<usize>)> = vec![(None, None); self.cpus];
        let mut asked: Vec<Option<(usize, bool)>> = vec![None; self.tasks];
        for index in 0..self.events.len() {
            let (event, task) = (&self.events[index], self.task[index]);
            if matches!(event.kind, Kind::Line(_)) {
                continue;
            }
            let (last, other) = &mut seen[usize::from(event.cpu)];
            if let Some(before) = last.replace(index)
                && self.task[before] != task
            {
                *other = Some(before);
            }
            let left = |since: usize| {
                self.events[since].cpu != event.cpu || other.is_some_and(|at| at > since)
            };
            match event.kind {
                Kind::Complete { .. }
                | Kind::Finish { .. }
                | Kind::Arrive { .. }
                | Kind::Line(_)
                | Kind::SchedulerEvent(_) => {}
                Kind::Queue => asked[task] = Some((index, false)),
                Kind::Issue
                | Kind::Requeue
                | Kind::Unplug { .. }
                | Kind::Insert
                | Kind::Ask { .. }
                | Kind::Answer { .. } => {
                    if let Some((_, waits)) = &mut asked[task] {
                        *waits = true;
                        self.while_waiting[index] = true;
                    }
                }
                Kind::Get => {
                    if let Some((since, waits)) = asked[task].take()
                        && (waits || left(since))
                    {
                        self.waited[since] = Some(index);
                    }
                }
                _ => asked[task] = None,
            }
        }
    }

    fn join_calls(&mut self) {
        let mut waiting: BTreeMap<(QueueId, u64), Vec<usize>> = BTreeMap::new();
        let mut asking: BTreeMap<u16, usize> = BTreeMap::new();
        let mut last: BTreeMap<u16, usize> = BTreeMap::new();
        for (index, event) in self.events.iter().enumerate() {
            let place = (self.queue[index], event.sector.0);
            match event.kind {
                Kind::Line(_) => continue,
                Kind::Ask { .. } => {
                    asking.insert(event.cpu, index);
                }
                Kind::Answer { rq, .. } => {
                    let entry = asking.remove(&event.cpu);
                    if let Some(entry) = entry {
                        self.other_end[entry] = Some(index);
                        self.other_end[index] = Some(entry);
                    }
                    self.decisions[index] = Some(Decision {
                        not_before: entry.map(|entry| entry + 1),
                        not_after: index,
                        chosen: None,
                    });
                    if rq.is_some_and(|rq| rq != UNKNOWN) {
                        waiting.entry(place).or_default().push(index);
                    }
                }
                Kind::Issue => {
                    if let Some(answers) = waiting.get_mut(&place)
                        && !answers.is_empty()
                        && let Some(decision) = &mut self.decisions[answers.remove(0)]
                    {
                        decision.chosen = Some(index);
                        self.last_issued = self.last_issued.max(decision.not_after);
                    }
                }
                Kind::Finish { .. } => {
                    if let Some(&before) = last.get(&event.cpu)
                        && matches!(self.events[before].kind, Kind::Complete { .. })
                    {
                        self.finish_follows[before] = true;
                    }
                }
                _ => {}
            }
            last.insert(event.cpu, index);
        }
    }

    /// A bio's priority is that of its request, which the insertion's probe has; of one that
    /// merged, the task's last or next one.
    fn join_priorities(&mut self) {
        let mut queued: BTreeMap<(usize, u64), Vec<usize>> = BTreeMap::new();
        let mut of_task: Vec<Option<IoPrio>> = vec![None; self.tasks];
        let mut prios: Vec<Option<IoPrio>> = vec![None; self.events.len()];
        for (index, event) in self.events.iter().enumerate() {
            let (task, start) = (self.task[index], event.sector.0);
            match event.kind {
                Kind::Queue => {
                    queued.entry((task, start)).or_default().push(index);
                    prios[index] = event.ioprio;
                }
                Kind::Get | Kind::BioMerge { .. } | Kind::Insert | Kind::RequestMerge
                    if event.ioprio.is_some() =>
                {
                    of_task[task] = event.ioprio;
                    set_ioprio(&queued, &mut prios, (task, start), event);
                }
                Kind::Arrive { .. } => set_ioprio(&queued, &mut prios, (task, start), event),
                _ => {}
            }
        }
        for (index, event) in self.events.iter().enumerate() {
            if event.kind == Kind::Queue {
                let task = &mut of_task[self.task[index]];
                *task = prios[index].or(*task);
                self.ioprio[index] = *task;
            }
        }
    }
}

/// The bios of a task in this range have this priority.
fn set_ioprio(
    queued: &BTreeMap<(usize, u64), Vec<usize>>,
    prios: &mut [Option<IoPrio>],
    (task, start): (usize, u64),
    event: &Event,
) {
    let end = start.saturating_add(u64::from(event.sectors.0.max(1)));
    for bios in queued.range((task, start)..(task, end)) {
        for &bio in bios.1 {
            if prios[bio].is_none() {
                prios[bio] = event.ioprio;
            }
        }
    }
}
