//! A scheduler in C as blkmq sees one: requests and bios of the pool are mirrored in C, decisions
//! come back.
//!
//! The C code decides everything, merges included; the pool then follows (`attach`,
//! `try_request_merge`), and where it cannot, that is an error. An error of C unwinds with
//! [`Fault`], which the program catches. Kernel: struct elevator_mq_ops in block/elevator.h (6.1,
//! 6.12).

use crate::library::{Call, Config, Io, Library, Limits, NONE, Op as Entry, Queue};
use blkmq::elevator::{
    After, BioMerge, Charge, CustomScheduler, DispatchTime, ElevatorLock, InsertAt, Insertion,
    LEVELS, Now, QueueShape, Scheduler, SchedulerInfo, SchedulerKind, StoreError, TimerAsk, Value,
    Wanted,
};
use blkmq::list::QueueList;
use blkmq::merge::{Merging, Side, attach, merges_ranges, try_request_merge};
use blkmq::queue::QueueSettings;
use blkmq::request::{
    BioId, IoClass, IoContextId, IoPrio, Op, OpFlags, Place, RequestId, RequestPool, Sector,
    Sectors, Touch,
};
use blkmq::rules::NoMerges;
use blkmq::time::Duration;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fmt;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What went wrong in C, or between C and the pool. The payload of the unwinding that ends a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Scheduler, call and reason, as one line.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Deviation D5 (docs/model.md): a queued discard of several ranges that joins another one is
/// freed, and stays where it was queued.
pub(crate) const DISCARD_LEFT_QUEUED: &str =
    "a discard that was absorbed is freed and still queued (deviation D5)";

/// Properties of a scheduler that blkmq does not have.
const PLAIN: SchedulerInfo =
    SchedulerInfo::plain("of a file", &[ElevatorLock::irq_save("its lock")]);

/// A scheduler of a [`Library`].
#[derive(Debug)]
pub struct Policy {
    library: Arc<Library>,
    info: &'static SchedulerInfo,
    config: Config,
    /// Writes to attributes, to make the same queue again.
    stored: Vec<(String, String)>,
    queue: Mutex<Queue>,
    limits: Limits,
    /// Finished requests of each level that C has counted.
    finished: [u32; LEVELS],
    timer: Option<TimerAsk>,
    /// Costs of the calls since they were asked for.
    charge: Charge,
}

/// Slots that a queue has room for; memory is taken when they are used.
const REQUESTS: u32 = 1 << 16;
const BIOS: u32 = 1 << 18;

impl Policy {
    /// Idle, with the defaults of its kernel.
    pub fn new(library: &Arc<Library>) -> Result<Policy, Fault> {
        let known = SchedulerKind::by_name(&library.name).and_then(SchedulerKind::info);
        let config = Config {
            requests: REQUESTS,
            bios: BIOS,
            nr_requests: 256,
            hctxs: 1,
            cpus: 1,
            tasks: 1,
            rotational: 0,
            bytes: 8 << 20,
        };
        Policy::with(library, known.unwrap_or(&PLAIN), config)
    }

    fn with(
        library: &Arc<Library>,
        info: &'static SchedulerInfo,
        config: Config,
    ) -> Result<Policy, Fault> {
        let queue = Queue::new(library, &config);
        let queue = queue.map_err(|text| fault(library, "init_sched", &text))?;
        Ok(Policy {
            library: Arc::clone(library),
            info,
            config,
            stored: Vec::new(),
            queue: Mutex::new(queue),
            limits: Limits::default(),
            finished: [0; LEVELS],
            timer: None,
            charge: Charge::default(),
        })
    }

    /// Its properties under another name, by which a report shows it.
    pub fn named(mut self, name: &str) -> Policy {
        let name = Box::leak(name.to_owned().into_boxed_str());
        self.info = Box::leak(Box::new(SchedulerInfo { name, ..*self.info }));
        self
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic of another thread in the middle of a call ends the run in any case.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, name: &str, text: &str) -> ! {
        std::panic::resume_unwind(Box::new(fault(&self.library, name, text)))
    }

    /// A call, at a time.
    fn call(&self, call: &mut Call, name: &str, now: Now) {
        call.ticks = now.tick.0;
        call.locked_ticks = call.locked_ticks.max(now.tick.0);
        call.ktime_ns = now.time.0;
        let done = self.queue().call(call);
        if let Err(text) = done {
            self.fail(name, &text);
        }
    }

    /// The same, and what it asked for.
    fn change(&mut self, call: &mut Call, name: &str, now: Now) -> After {
        self.call(call, name, now);
        let timer = call.timer as u8;
        match call.timer_asked {
            0 => {}
            1 => {
                let after = Duration(call.timer_after_ns);
                self.timer = Some(TimerAsk::Arm { timer, after });
            }
            _ => self.timer = Some(TimerAsk::Cancel { timer }),
        }
        match call.run {
            0 => After::Nothing,
            _ => After::RunQueues,
        }
    }

    /// A hook for one request.
    fn hook(&mut self, entry: Entry, name: &str, rq: RequestId, now: Now) -> After {
        let mut call = Call::new(entry);
        call.rq = rq.0;
        self.change(&mut call, name, now)
    }

    /// The cache lines that a call touched, at the price of the model's own.
    fn charge(&mut self, pool: &RequestPool, call: &Call) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        for &touch in queue.touches(call) {
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
        let limits = Limits {
            max_sectors: merging.limits.max_sectors,
            max_segments: u32::from(merging.limits.max_segments),
            max_discard_segments: u32::from(merging.limits.max_discard_segments),
            max_discard_sectors: merging.limits.max_discard_sectors,
            chunk_sectors: merging.limits.chunk_sectors,
            nomerges: match merging.nomerges {
                NoMerges::All => 0,
                NoMerges::Simple => 1,
                NoMerges::Never => 2,
            },
        };
        if limits != self.limits {
            self.queue().set_limits(&limits);
            self.limits = limits;
        }
    }

    /// The pool follows the merges of requests in C, in their order.
    fn follow(&self, pool: &mut RequestPool, call: &Call, merging: Merging<'_>) {
        for &rq in call.nomerge() {
            pool[RequestId(rq)].flags.nomerge = true;
        }
        for gone in call.gone() {
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

    /// The text of a file in sysfs or debugfs; none if there is no such file.
    pub(crate) fn file(&self, entry: Entry, name: &CStr) -> Option<String> {
        let mut call = Call::new(entry);
        let done = self.queue().call_named(&mut call, name, c"");
        match done {
            Ok(text) => (call.found != 0).then_some(text),
            Err(text) => self.fail("show", &text),
        }
    }
}

fn fault(library: &Library, name: &str, text: &str) -> Fault {
    let file = library.file.display();
    Fault {
        text: format!("{file}: in {name}: {text}"),
    }
}

/// The operation and flags of cmd_flags, as `shim/block.h` numbers them.
fn opf(op: Op, flags: OpFlags) -> u32 {
    let op = match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
        Op::WriteZeroes => 9,
    };
    let flags = [
        (flags.sync, 3),
        (flags.meta, 4),
        (flags.nomerge, 6),
        (flags.fua, 9),
        (flags.preflush, 10),
        (flags.rahead, 11),
        (flags.nowait, 13),
        (flags.polled, 14),
        (!flags.noidle, 7),
    ];
    let set = flags.iter().filter(|(set, _)| *set);
    op | set.fold(0, |bits, (_, bit)| bits | 1 << (8 + bit))
}

fn ioprio(prio: IoPrio) -> u16 {
    let class = match prio.class {
        IoClass::None => 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << 13 | u16::from(prio.level)
}

impl Scheduler for Policy {
    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        self.follow_limits(merging);
        let mut call = Call::new(Entry::MergeBio);
        let of = pool.bio(bio);
        call.bio = bio.0;
        call.io = Io {
            sector: of.sector.0,
            bytes: of.sectors.0 << 9,
            opf: opf(of.op, of.flags),
            ioprio: ioprio(of.ioprio),
            segments: of.segments,
            task: of.io_context.0,
            ..Io::default()
        };
        self.change(&mut call, "bio_merge", now);
        self.charge(pool, &call);
        if call.found == 0 {
            self.follow(pool, &call, merging);
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
        self.follow(pool, &call, merging);
        let gone = call.gone().first();
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
        let mut call = Call::new(Entry::Insert);
        let request = &pool[rq];
        call.rq = rq.0;
        call.bio = request.bio_first.map_or(NONE, |bio| bio.0);
        call.at_head = u32::from(at == InsertAt::Head);
        // A request that comes back keeps what C has in it.
        call.number = u32::from(request.elv_priv == [0, 0]);
        call.io = Io {
            sector: request.sector.0,
            bytes: request.sectors.0 << 9,
            opf: opf(request.op, request.flags),
            ioprio: ioprio(request.ioprio),
            segments: request.segments,
            hctx: u32::from(request.hctx.0),
            task: request.io_context.0,
            flush_seq: u32::from(request.flush_seq),
        };
        self.change(&mut call, "insert_requests", now);
        self.charge(pool, &call);
        pool[rq].elv_priv[0] = call.level;
        self.follow(pool, &call, merging);
        let mut absorbed = QueueList::new();
        for gone in call.gone() {
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
        let entered = Now {
            tick: now.entered,
            ..now.now()
        };
        self.change(&mut call, "dispatch_request", entered);
        self.charge(pool, &call);
        if call.found == 0 {
            return None;
        }
        let rq = RequestId(call.result);
        if pool[rq].place != Place::Elevator {
            let text = format!("{} is not in the scheduler", pool[rq]);
            self.fail("dispatch_request", &text);
        }
        pool[rq].started = true;
        pool[rq].place = Place::Path;
        Some(rq)
    }

    fn has_work(&self) -> bool {
        let mut call = Call::new(Entry::HasWork);
        self.call(&mut call, "has_work", Now::default());
        call.found != 0
    }

    fn completed(&mut self, _pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.hook(Entry::Completed, "completed_request", rq, now)
    }

    fn requeued(&mut self, _pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.hook(Entry::Requeue, "requeue_request", rq, now)
    }

    fn finished(&mut self, _pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.hook(Entry::Finish, "finish_request", rq, now)
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

    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        let mut call = Call::new(Entry::LimitDepth);
        call.io.opf = opf(wanted.op, wanted.flags);
        call.io.task = wanted.io_context.0;
        (call.number, call.shift) = (wanted.map.nr_requests, wanted.map.shift);
        self.call(&mut call, "limit_depth", Now::default());
        (call.found != 0).then_some(call.result)
    }

    fn depth_updated(&mut self, old: u32) {
        let mut call = Call::new(Entry::DepthUpdated);
        call.number = old;
        self.change(&mut call, "depth_updated", Now::default());
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
        (call.ticks, call.locked_ticks, call.ktime_ns) = (now.tick.0, now.tick.0, now.time.0);
        let done = self.queue().call_named(&mut call, &file, &value);
        if let Err(text) = done {
            self.fail("store", &text);
        }
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
        self.change(&mut call, "queue/rotational", Now::default());
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
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
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
        let config = Config {
            nr_requests: queue.nr_requests,
            hctxs: shape.ctxs.len() as u32,
            cpus: shape.cpus as u32,
            tasks: queue.submitters.tasks.len().max(1) as u32,
            rotational: u32::from(queue.rotational_when_chosen),
            ..self.config
        };
        let mut again = match Policy::with(&self.library, self.info, config) {
            Ok(again) => again,
            Err(fault) => std::panic::resume_unwind(Box::new(fault)),
        };
        for (name, text) in &self.stored {
            // It took them before.
            let _ = again.store(name, text, Now::default());
        }
        *self = again;
    }

    /// As it was before the first request: the program that has requests in it does not copy it.
    fn copy(&self) -> Box<dyn CustomScheduler> {
        let again = Policy::with(&self.library, self.info, self.config);
        let mut again = again.unwrap_or_else(|fault| std::panic::resume_unwind(Box::new(fault)));
        for (name, text) in &self.stored {
            let _ = again.store(name, text, Now::default());
        }
        Box::new(again)
    }

    fn digest(&self, state: &mut dyn Hasher) {
        state.write(self.library.name.as_bytes());
    }
}
