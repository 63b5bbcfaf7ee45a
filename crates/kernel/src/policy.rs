//! A scheduler in C as blkmq sees one: requests and bios of the pool are mirrored in C, decisions
//! come back.
//!
//! The C code decides everything, merges included; the pool then follows (`attach`,
//! `try_request_merge`), and where it cannot, that is an error. An error of C unwinds with
//! [`Fault`], which the program catches. Kernel: struct elevator_mq_ops in block/elevator.h (6.1,
//! 6.12).

use crate::call::{Call, Config, Found, Io, Limits, NONE, Op as Entry, TEXT};
use crate::library::{Library, Queue, lock};
use crate::mirror::{ioprio, opf};
use blkmq::elevator::{
    After, BioMerge, CalledOn, Charge, CustomScheduler, DispatchTime, ElevatorLock, Fault, Hooks,
    InsertAt, Insertion, LEVELS, MayQueue, Now, QueueShape, RequestPath, Scheduler, SchedulerInfo,
    SchedulerKind, StoreError, Submitters, TimerAsk, Value, Wanted,
};
use blkmq::list::QueueList;
use blkmq::merge::{Merging, Side, attach, merges_ranges, try_request_merge};
use blkmq::queue::{IrqClass, QueueSettings};
use blkmq::request::{
    BioId, CpuId, HctxId, IoContextId, Place, Request, RequestId, RequestPool, Sector, Sectors,
    Touch,
};
use blkmq::time::{Duration, Jiffies};
use std::collections::{BTreeSet, VecDeque};
use std::ffi::{CStr, CString};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

/// Deviation D5 (docs/model.md): a queued discard of several ranges that joins another one is
/// freed, and stays where it was queued.
pub(crate) const DISCARD_LEFT_QUEUED: &str =
    "a discard that was absorbed is freed and still queued (deviation D5)";

/// Properties of a scheduler that blkmq does not have.
const PLAIN: SchedulerInfo =
    SchedulerInfo::plain("of a file", &[ElevatorLock::irq_save("its lock")]);

/// A scheduler of a [`Library`].
#[derive(Clone, Debug)]
pub struct Policy {
    library: Arc<Library>,
    info: &'static SchedulerInfo,
    shape: Arc<QueueShape>,
    /// Writes to attributes, to make the same queue again.
    stored: Vec<(String, String)>,
    queue: Queue,
    limits: Limits,
    /// Finished requests of each level that C has counted.
    finished: [u32; LEVELS],
    timer: Option<TimerAsk>,
    /// Costs of the calls since they were asked for.
    charge: Charge,
    called_on: CalledOn,
    /// The last call wants the queue run before it returns.
    runs_now: bool,
    /// Hctxs that the last hook wants run.
    runs: VecDeque<HctxId>,
    /// Of the last call that changes the scheduler.
    found: Found,
    /// Messages, if they are collected.
    log: String,
    /// Trace events since the state was shown, if they are collected.
    events: Arc<Mutex<String>>,
}

/// Ticks of a kernel's jiffies when the clock is 0, for a scheduler that compares them with fields
/// that were never set: jiffies begin five minutes below 2^32.
const JIFFIES: u64 = 1 << 32;

impl Policy {
    /// Idle, with the defaults of its kernel.
    pub fn new(library: &Arc<Library>) -> Result<Policy, Fault> {
        let known = SchedulerKind::by_name(&library.name).and_then(SchedulerKind::info);
        let info = known.map_or(&PLAIN, of_one_lock);
        Policy::with(library, info, &Config::of_none(), QueueShape::one())
    }

    fn with(
        library: &Arc<Library>,
        info: &'static SchedulerInfo,
        config: &Config,
        shape: QueueShape,
    ) -> Result<Policy, Fault> {
        let queue = Queue::new(library, config);
        let queue = queue.map_err(|text| fault(library, "init_sched", &text))?;
        Ok(Policy {
            library: Arc::clone(library),
            info,
            shape: Arc::new(shape),
            stored: Vec::new(),
            queue,
            limits: Limits::default(),
            finished: [0; LEVELS],
            timer: None,
            charge: Charge::default(),
            called_on: CalledOn::default(),
            runs_now: false,
            runs: VecDeque::new(),
            found: Found::of_hook(),
            log: String::new(),
            events: Arc::default(),
        })
    }

    /// Its properties under another name, by which a report shows it.
    pub fn named(mut self, name: &str) -> Policy {
        let name = Box::leak(name.to_owned().into_boxed_str());
        self.info = Box::leak(Box::new(SchedulerInfo { name, ..*self.info }));
        self
    }

    /// Its trace events are part of the state that is shown.
    pub fn with_events(mut self) -> Policy {
        self.found.out.reserve(TEXT);
        self
    }

    fn fail(&self, name: &str, text: &str) -> ! {
        std::panic::resume_unwind(Box::new(fault(&self.library, name, text)))
    }

    /// A call that finds no more than its result, at a time.
    fn call(&self, call: &mut Call, name: &str, now: Now) {
        self.set_clock(call, now);
        if let Err(text) = self.queue.call(call, &mut Found::default()) {
            self.fail(name, &text);
        }
    }

    /// jiffies when the clock is 0.
    fn jiffies(&self) -> u64 {
        if self.info.reads_clock { JIFFIES } else { 0 }
    }

    fn set_clock(&self, call: &mut Call, now: Now) {
        let base = self.jiffies();
        call.ticks = base + now.tick.0;
        call.locked_ticks = base + call.locked_ticks.max(now.tick.0);
        call.ktime_ns = now.time.0;
        call.cpu = u32::from(self.called_on.cpu.0);
        call.kworker = self.called_on.kworker;
    }

    /// A call that changes the scheduler, and what it asked for.
    fn change(&mut self, call: &mut Call, name: &str, now: Now) -> After {
        self.set_clock(call, now);
        if self.info.reads_clock {
            call.clock = if now.kept { 1 } else { 2 };
        }
        if let Err(text) = self.queue.call(call, &mut self.found) {
            self.fail(name, &text);
        }
        self.take_text();
        let timer = call.timer as u8;
        match call.timer_asked {
            0 => {}
            1 => {
                let after = Duration(call.timer_after_ns);
                self.timer = Some(TimerAsk::Arm { timer, after });
            }
            _ => self.timer = Some(TimerAsk::Cancel { timer }),
        }
        self.runs_now = call.run_now != 0;
        self.runs.clear();
        let runs = self.found.runs.iter().map(|&hctx| HctxId(hctx as u16));
        self.runs.extend(runs);
        match (call.run, self.runs.is_empty()) {
            (0, true) => After::Nothing,
            (0, false) => After::RunHctxs,
            _ => After::RunQueues,
        }
    }

    /// A merge or an insertion.
    fn arrives(&mut self, call: &mut Call, name: &str, now: Now) {
        let after = self.change(call, name, now);
        self.runs_now |= after == After::RunQueues && self.info.path != RequestPath::SingleQueue;
    }

    /// Messages and events of the last call.
    fn take_text(&mut self) {
        if !self.found.log.is_empty() {
            self.log += &String::from_utf8_lossy(&self.found.log);
        }
        if !self.found.out.is_empty() {
            *lock(&self.events) += &String::from_utf8_lossy(&self.found.out);
        }
    }

    /// A hook for one request.
    fn hook(
        &mut self,
        (entry, name): (Entry, &str),
        pool: &mut RequestPool,
        rq: RequestId,
        now: Now,
    ) -> After {
        let mut call = self.call_of(entry, pool, rq);
        let after = self.change(&mut call, name, now);
        pool[rq].elv_priv[1] = KNOWN;
        after
    }

    /// A call about a request with its first bio.
    fn call_of(&self, entry: Entry, pool: &RequestPool, rq: RequestId) -> Call {
        let (mut call, request) = (Call::new(entry), &pool[rq]);
        call.rq = rq.0;
        call.bio = request.bio_first.map_or(NONE, |bio| bio.0);
        // A request that comes back keeps what C has in it.
        call.number = u32::from(is_new(request));
        call.io = self.io(request);
        call
    }

    fn io(&self, request: &Request) -> Io {
        Io {
            index: self.index(request.ctx, request.hctx),
            ..Io::of_request(request)
        }
    }

    /// The number of a CPU's ctx in an hctx (index_hw).
    fn index(&self, cpu: CpuId, hctx: HctxId) -> u32 {
        let cpus = self.shape.cpus_of.get(usize::from(hctx.0));
        let at = cpus.and_then(|cpus| cpus.iter().position(|&other| other == cpu));
        at.unwrap_or(0) as u32
    }

    /// Trace events of the scheduler since the last call of this.
    pub(crate) fn take_events(&self) -> String {
        core::mem::take(&mut *lock(&self.events))
    }

    pub(crate) fn has_single_queues(&self) -> bool {
        self.library.tree.has_single_queues()
    }

    /// How many hctxs its queue has.
    pub(crate) fn hctxs(&self) -> u32 {
        self.shape.ctxs.len() as u32
    }

    /// The cache lines that the last call touched, at the price of the model's own.
    fn charge(&mut self, pool: &RequestPool) {
        for &touch in &self.found.touches {
            let number = touch & 0xff_ffff;
            let rq = RequestId(number);
            pool.touched(match touch >> 24 {
                0 => {
                    self.charge.container_ops += 1;
                    Touch::Visit(rq)
                }
                1 => Touch::Sort(rq),
                2 => Touch::Link(rq),
                3 => Touch::Own(rq),
                4 => Touch::Bucket(number as u8),
                5 => Touch::BucketWritten(number as u8),
                6 => Touch::LastMerge,
                7 => Touch::LastMergeWritten,
                _ => {
                    let lines = u32::from(self.info.lines);
                    self.charge.lines |= number.checked_rem(lines).map_or(0, |line| 1 << line);
                    continue;
                }
            });
        }
    }

    fn follow_limits(&mut self, merging: Merging<'_>) {
        let limits = Limits::of(merging);
        if limits != self.limits {
            let mut call = Call::new(Entry::Limit);
            call.limits = limits;
            self.call(&mut call, "queue/limits", Now::default());
            self.limits = limits;
        }
    }

    /// The pool follows the merges of requests in C, in their order.
    fn follow(&self, pool: &mut RequestPool, merging: Merging<'_>) {
        for &rq in &self.found.nomerge {
            pool[RequestId(rq)].flags.nomerge = true;
        }
        for gone in &self.found.gone {
            let (rq, into) = (RequestId(gone.rq), RequestId(gone.into));
            if pool[rq].place == Place::Elevator && merges_ranges(pool[rq].op, merging.limits) {
                self.fail("merging", DISCARD_LEFT_QUEUED);
            }
            if !try_request_merge(pool, into, rq, merging.limits) {
                let text = format!("{} took {}, which do not fit", pool[into], pool[rq]);
                self.fail("merging", &text);
            }
            pool[rq].place = Place::Path;
        }
    }

    /// C counts the requests that have finished since (finish_request, which takes no lock).
    fn count_finished(&mut self, completed: [u32; LEVELS], now: Now) {
        for (level, count) in completed.into_iter().enumerate() {
            let more = count.wrapping_sub(self.finished[level]);
            if more > 0 {
                let mut call = Call::new(Entry::Finish);
                (call.number, call.level) = (more, level as u32);
                self.call(&mut call, "finish_request", now);
            }
        }
        self.finished = completed;
    }

    /// C gets the groups, the root first, and the tasks.
    fn name_submitters(&mut self, submitters: &Submitters) {
        for group in submitters.groups.iter().skip(1) {
            let mut call = Call::new(Entry::Group);
            (call.group, call.weight) = (u32::from(group.parent), u32::from(group.weight));
            let path = CString::new(group.path.as_str()).unwrap_or_default();
            self.named_call(&mut call, "a new group", (&path, c""));
        }
        for (at, task) in submitters.tasks.iter().enumerate() {
            let mut call = Call::new(Entry::Task);
            call.io.task = at as u32;
            call.pid = task.pid;
            call.ioprio = u32::from(ioprio(task.ioprio));
            call.nice = u32::from(ioprio(task.nice));
            self.call(&mut call, "a new task", Now::default());
        }
    }

    /// The text of a file in sysfs or debugfs; none if there is no such file.
    pub(crate) fn file(&self, entry: Entry, name: &CStr) -> Option<String> {
        self.file_of(0, entry, name)
    }

    /// The same of an hctx.
    pub(crate) fn file_of(&self, hctx: u32, entry: Entry, name: &CStr) -> Option<String> {
        let mut call = Call::new(entry);
        call.io.hctx = hctx;
        let text = self.named_call(&mut call, "show", (name, c""));
        (call.found != 0).then_some(text)
    }

    /// A call with a name and a text; returns the text that it returns.
    fn named_call(&self, call: &mut Call, what: &str, (name, text): (&CStr, &CStr)) -> String {
        let mut found = Found::text();
        let done = self.queue.call_named(call, name, text, &mut found);
        done.unwrap_or_else(|text| self.fail(what, &text))
    }
}

/// Mark of a request that C has set up (`elv_priv[1]`).
const KNOWN: u32 = 1;

fn is_new(request: &Request) -> bool {
    request.elv_priv == [0, 0]
}

/// Properties of a scheduler whose state blkmq has under several locks, and in tokens: in C all of
/// it is under the first of them, and C has the tokens.
fn of_one_lock(info: &'static SchedulerInfo) -> &'static SchedulerInfo {
    if info.locks.len() == 1 {
        return info;
    }
    let first = &info.locks[..1];
    // Its hooks are called in interrupts, too, under this lock.
    let suits = info.hooks == Hooks::NONE || first[0].irq_class == IrqClass::IrqSave;
    Box::leak(Box::new(SchedulerInfo {
        locks: if suits { first } else { PLAIN.locks },
        tokens: &[],
        ..*info
    }))
}

fn depth_call(wanted: Wanted) -> Call {
    let mut call = Call::new(Entry::LimitDepth);
    call.io.opf = opf(wanted.op, wanted.flags);
    call.io.task = wanted.io_context.0;
    (call.number, call.shift) = (wanted.map.nr_requests, wanted.map.shift);
    call
}

pub(crate) fn fault(library: &Library, name: &str, text: &str) -> Fault {
    let file = library.file.display();
    Fault {
        text: format!("{file}: in {name}: {text}"),
    }
}

impl Scheduler for Policy {
    fn called_on(&mut self, on: CalledOn) {
        self.called_on = on;
    }

    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        self.follow_limits(merging);
        let mut call = Call::new(Entry::MergeBio);
        call.bio = bio.0;
        call.io = Io {
            hctx: u32::from(self.called_on.hctx.0),
            index: self.index(self.called_on.cpu, self.called_on.hctx),
            ..Io::of_bio(pool.bio(bio))
        };
        self.arrives(&mut call, "bio_merge", now);
        self.charge(pool);
        if call.found == 0 {
            self.follow(pool, merging);
            return BioMerge::No;
        }
        let side = match call.side {
            1 => Side::Front,
            2 => Side::Back,
            _ => Side::Discard,
        };
        let rq = RequestId(call.result);
        if !attach(pool, rq, bio, side, merging.limits) {
            let text = format!("{} took a bio that does not fit", pool[rq]);
            self.fail("bio_merge", &text);
        }
        self.follow(pool, merging);
        let gone = self.found.gone.first();
        BioMerge::Into {
            // A front merge may have closed the gap to the request before.
            rq: match gone {
                Some(gone) if gone.rq == rq.0 => RequestId(gone.into),
                _ => rq,
            },
            side,
            absorbed: gone.map(|gone| RequestId(gone.rq)),
        }
    }

    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Now,
        merging: Merging<'_>,
    ) -> Insertion {
        self.follow_limits(merging);
        let mut call = self.call_of(Entry::Insert, pool, rq);
        call.at_head = u32::from(at == InsertAt::Head);
        self.arrives(&mut call, "insert_requests", now);
        self.charge(pool);
        // The end of a request is counted by level, or is a call.
        let level = if self.info.hooks.finished {
            0
        } else {
            call.level
        };
        pool[rq].elv_priv = [level, KNOWN];
        pool[rq].fifo_time = Jiffies(call.fifo_time.saturating_sub(self.jiffies()));
        self.follow(pool, merging);
        let mut absorbed = QueueList::new();
        for gone in &self.found.gone {
            absorbed.push_front(pool, RequestId(gone.rq));
        }
        if !absorbed.is_empty() {
            return Insertion::Absorbed(absorbed);
        }
        pool[rq].place = Place::Elevator;
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        self.count_finished(completed, now.now());
        let mut call = Call::new(Entry::Dispatch);
        call.locked_ticks = now.locked.0;
        call.io.hctx = u32::from(self.called_on.hctx.0);
        let entered = Now {
            tick: now.entered,
            ..now.now()
        };
        self.change(&mut call, "dispatch_request", entered);
        self.charge(pool);
        if call.found == 0 {
            return None;
        }
        let rq = RequestId(call.result);
        if pool[rq].place != Place::Elevator {
            let text = format!("{} is not in the scheduler", pool[rq]);
            self.fail("dispatch_request", &text);
        }
        pool[rq].started |= call.started != 0;
        pool[rq].place = Place::Path;
        Some(rq)
    }

    fn has_work(&self) -> bool {
        // Where all requests are of the queue, any hctx answers for all.
        let hctxs = if self.info.single_queue {
            1
        } else {
            self.hctxs()
        };
        (0..hctxs).any(|hctx| self.has_work_of(HctxId(hctx as u16)))
    }

    fn has_work_of(&self, hctx: HctxId) -> bool {
        let mut call = Call::new(Entry::HasWork);
        call.io.hctx = u32::from(hctx.0);
        self.call(&mut call, "has_work", Now::default());
        call.found != 0
    }

    fn prepare(&self, rq: &mut Request) {
        rq.elv_priv = [0; 2];
    }

    fn may_queue(&mut self, wanted: Wanted, now: Now) -> MayQueue {
        let mut call = depth_call(wanted);
        call.op = Entry::MayQueue as u32;
        self.change(&mut call, "may_queue", now);
        match call.found {
            0 => MayQueue::May,
            _ => MayQueue::Must,
        }
    }

    fn set_request(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.hook((Entry::SetRequest, "set_request"), pool, rq, now)
    }

    fn activated(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) {
        self.hook((Entry::Activate, "activate_request"), pool, rq, now);
    }

    fn take_run(&mut self) -> bool {
        core::mem::take(&mut self.runs_now)
    }

    fn drain(&mut self, pool: &mut RequestPool, now: Now) -> QueueList {
        let mut all = QueueList::new();
        let mut call = Call::new(Entry::Drain);
        call.number = 1;
        self.change(&mut call, "dispatch_request with force", now);
        while call.found != 0 {
            let rq = RequestId(call.result);
            (pool[rq].started, pool[rq].place) = (true, Place::Path);
            all.push_back(pool, rq);
            call = Call::new(Entry::Drain);
            self.change(&mut call, "dispatch_request with force", now);
        }
        all
    }

    fn completed(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.hook((Entry::Completed, "completed_request"), pool, rq, now)
    }

    fn requeued(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.hook((Entry::Requeue, "requeue_request"), pool, rq, now)
    }

    fn finished(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.hook((Entry::Finish, "finish_request"), pool, rq, now)
    }

    fn take_run_of(&mut self) -> Option<HctxId> {
        self.runs.pop_front()
    }

    fn exits(&mut self, _pool: &mut RequestPool, io_context: IoContextId, now: Now) -> After {
        let mut call = Call::new(Entry::ExitIcq);
        call.io.task = io_context.0;
        self.change(&mut call, "exit_icq", now)
    }

    fn timer(&mut self, _pool: &mut RequestPool, timer: u8, now: Now) -> After {
        let mut call = Call::new(Entry::Timer);
        call.number = u32::from(timer);
        self.change(&mut call, "its timer", now)
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.timer.take()
    }

    /// Whether it takes one is seen by calling it.
    fn limits_under_lock(&self, wanted: Wanted) -> bool {
        let mut call = depth_call(wanted);
        self.call(&mut call, "limit_depth", Now::default());
        call.locked != 0
    }

    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        let mut call = depth_call(wanted);
        self.call(&mut call, "limit_depth", Now::default());
        (call.found != 0).then_some(call.result)
    }

    fn limit_depth_message(&self, wanted: Wanted) -> Option<String> {
        let mut call = depth_call(wanted);
        let mut found = Found {
            log: Vec::with_capacity(TEXT),
            ..Found::default()
        };
        if let Err(text) = self.queue.call(&mut call, &mut found) {
            self.fail("limit_depth", &text);
        }
        let text = String::from_utf8_lossy(&found.log);
        (!text.is_empty()).then(|| text.trim_end().to_owned())
    }

    fn limit_depth_locked(&mut self, wanted: Wanted, now: Now) -> Option<u32> {
        let mut call = depth_call(wanted);
        self.change(&mut call, "limit_depth", now);
        (call.found != 0).then_some(call.result)
    }

    fn depth_updated(&mut self, _old: u32, new: u32) {
        let mut call = Call::new(Entry::DepthUpdated);
        call.number = new;
        self.call(&mut call, "depth_updated", Now::default());
    }

    fn store(&mut self, name: &str, text: &str, now: Now) -> Result<(), StoreError> {
        let shown = self.shown();
        let unknown = || StoreError::UnknownAttribute {
            scheduler: self.info.name,
            name: name.to_owned(),
            known: shown.iter().map(|&(known, _)| known).collect(),
        };
        let (Ok(file), Ok(value)) = (CString::new(name), CString::new(text)) else {
            return Err(unknown());
        };
        let mut call = Call::new(Entry::Store);
        self.set_clock(&mut call, now);
        call.clock = 2 * u32::from(self.info.reads_clock);
        let done = self
            .queue
            .call_named(&mut call, &file, &value, &mut self.found);
        if let Err(text) = done {
            self.fail("store", &text);
        }
        self.take_text();
        if call.found == 0 {
            return Err(unknown());
        }
        if (call.result as i32) < 0 {
            return Err(StoreError::NotANumber {
                name: intern(name),
                text: text.to_owned(),
            });
        }
        self.stored.push((name.to_owned(), text.to_owned()));
        Ok(())
    }

    fn shown(&self) -> Vec<(&'static str, Value)> {
        let names = self.file(Entry::Attributes, c"").unwrap_or_default();
        let names = names.split_whitespace().filter_map(|name| {
            let text = self.file(Entry::Show, &CString::new(name).ok()?)?;
            let value = text.trim().parse().ok()?;
            Some((intern(name), value))
        });
        names.collect()
    }

    fn rotates(&mut self, rotational: bool) {
        let mut call = Call::new(Entry::Rotates);
        call.number = u32::from(rotational);
        self.call(&mut call, "queue/rotational", Now::default());
    }

    fn take_log(&mut self, each: &mut dyn FnMut(&str)) {
        self.log.lines().for_each(each);
        self.log.clear();
    }

    fn take_charge(&mut self) -> Charge {
        core::mem::take(&mut self.charge)
    }

    fn show(&self, pool: &RequestPool) -> String {
        self.shown_state(pool)
    }

    fn force_remove(&mut self, _pool: &mut RequestPool, _rq: RequestId) {
        self.fail("comparison", "a capture cannot correct a scheduler in C");
    }

    fn force_resize(&mut self, pool: &mut RequestPool, rq: RequestId, _: Sector, _: Sectors) {
        self.force_remove(pool, rq);
    }
}

/// A name that lives as long as the program, as those of built-in schedulers do.
fn intern(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut names = lock(&NAMES);
    if let Some(&known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

impl CustomScheduler for Policy {
    fn info(&self) -> &'static SchedulerInfo {
        self.info
    }

    fn begin(&mut self, queue: &QueueSettings, shape: &QueueShape) {
        let config = Config::of(queue, shape);
        let mut again = match Policy::with(&self.library, self.info, &config, shape.clone()) {
            Ok(again) => again,
            Err(fault) => std::panic::resume_unwind(Box::new(fault)),
        };
        again.name_submitters(&queue.submitters);
        again.found.out.reserve(self.found.out.capacity());
        if queue.log && self.info.logs {
            again.found.log.reserve(TEXT);
        }
        for (name, text) in &self.stored {
            // It took them before.
            let _ = again.store(name, text, Now::default());
        }
        // The one that the queue does not get, idle: as in a switch of schedulers.
        self.call(&mut Call::new(Entry::Exit), "exit_sched", Now::default());
        *self = again;
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        for half in self.queue.print() {
            state.write_u64(half);
        }
        (self.timer, &self.runs).hash(&mut state);
    }
}
