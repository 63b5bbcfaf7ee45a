//! Scripts about the decisions of a scheduler behind one lock: `queue scheduler=mq-deadline ...`.
//!
//! One scheduler, no tags, no CPUs: insert, merge, dispatch, complete, and a clock. It stands still
//! but where a command moves it; a timer that is armed expires when it is passed. Every command
//! checks all structures afterwards.
//!
//! ```text
//! queue [scheduler=mq-deadline] [rules=v6.1] [hz=1000] [nr_requests=128] [ATTRIBUTE=VALUE]
//!       [LIMIT=VALUE] [nomerges=0] [rotational=0] [ranges=0-1000,1000-2000] [runs=1]
//! group PATH [weight=100]             a cgroup; before all but others of its kind
//! task NAME [prio=CLASS[/LEVEL]] [group=PATH] [pid=N]    likewise; others are as they come
//! task NAME shares=OTHER              it has the I/O context of another one (CLONE_IO)
//! move NAME GROUP                     what it submits from here on is of that group
//! set NAME=VALUE ...                  attributes, limits, nomerges; refusals are printed
//! insert [head] REQUEST, REQUEST ...  prints M for a request that another one absorbed, "handed"
//!                                     of one that goes to the driver by itself, as `bio` does
//! bio REQUEST                         prints M or F and what it joined, or "no merge"
//! submit REQUEST, REQUEST ...         offers it for merging, then inserts it if nothing took it
//! dispatch [N] [waited=2ms]           prints D, or "-" for a call that returns nothing
//! serve N [each=1ms]                  so many dispatches, each completed so much later; a call
//!                                     without result waits for the timer. Prints who was served
//! drain                               dispatches until a call returns nothing
//! pull N                              so many dispatches at once, printed as those of `serve`
//! complete REQUEST, REQUEST ... | all the device is done; prints "run" if queues are to be run
//! exit NAME                           the last task of this I/O context exits
//! rotational 0 | 1                    a write to queue/rotational
//! requeue REQUEST                     the driver gives it back, to be inserted at head
//! tick 20ms | at 500ms                moves the clock, in whole ticks
//! wait 1500us                         moves the clock, to the ns
//! log on | off | WORD ...             what the scheduler writes to blktrace is printed: all, or
//!                                     lines that contain one of these words
//! depth REQUEST                       prints the shallow depth of such an allocation
//! nr_requests N                       a write to queue/nr_requests
//! has_work                            prints yes or no
//! show state | queues | NAME          also of mq-deadline: show batch | queued | counts
//! ```
//!
//! A scheduler of the single-queue path is called as that path does: a request is set up before it
//! is inserted, and the driver looks at it when it is dispatched. Where the queue is to be run at
//! once, that is told, and followed by as many dispatch calls as `runs` says; H is a request that
//! was handed over within an insertion.
//!
//! ```text
//! may REQUEST                         prints whether limits apply to such an allocation
//! alloc REQUEST, REQUEST ...          sets it up, no more
//! add REQUEST, REQUEST ...            inserts what has been set up
//! free REQUEST, REQUEST ...           frees it instead
//! dispatch N held                     the driver does not look at it yet
//! activate REQUEST, REQUEST ...       now it does
//! requeue REQUEST                     it goes back to the driver's list, and waits there for that
//! force                               all that is queued goes, as for a barrier
//! ```
//!
//! A REQUEST is `OP SECTOR+SECTORS [by=TASK] [prio=CLASS[/LEVEL]] [group=PATH] [segments=N]
//! [times=N] [gap=N] [nomerge] [sync] [noidle] [fua] [meta] [bare]`, with OP
//! one of r, w, d (discard), z (write-zeroes). With `times` there are so many, each `gap` sectors
//! behind the one before. A bare one was allocated for the flush machine, without what a scheduler
//! keeps with a request.

mod around;
mod parse;
mod single;

use super::World;
use around::{Around, span};
use blkmq::elevator::mq_deadline::MqDeadline;
use blkmq::elevator::{
    After, BioMerge, DispatchTime, Elevator, Hooks, InsertAt, Insertion, Now, QueueShape,
    Scheduler, SchedulerKind, SchedulerSettings, TagMapSize, Wanted, completed_level,
};
use blkmq::env::{Cpu, Solo};
use blkmq::merge::{Merging, Side};
use blkmq::queue::QueueSettings;
use blkmq::request::{BioId, CpuId, Place, RequestId, RequestPool, Sector};
use blkmq::rules::{NoMerges, QueueLimits, Rules};
use blkmq::time::{Jiffies, SimTime};
use core::any::Any;
use parse::{letter, parse_number, word_shift, yes_no};

/// Slots of a script's pool; more than any script needs.
const REQUESTS: usize = 256;
const BIOS: usize = 1024;

/// One scheduler and the requests around it.
pub(crate) struct PolicyQueue {
    pool: RequestPool,
    elevator: Elevator<Solo>,
    cpu: Cpu,
    limits: QueueLimits,
    nomerges: NoMerges,
    around: Around,
    settings: QueueSettings,
    scheduler: SchedulerSettings,
    /// Attributes as the first line gives them.
    attributes: Vec<String>,
    nr_requests: u32,
    /// Dispatch calls of a run at once.
    runs: u32,
    in_device: Vec<RequestId>,
    /// Of them: those that the driver has not looked at, and what is set up and not inserted.
    held: Vec<RequestId>,
    allocated: Vec<RequestId>,
    completed: [u32; 3],
}

type Printed = Result<Vec<String>, String>;

impl World for PolicyQueue {
    fn command(&mut self, line: &str) -> Printed {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let printed = match word {
            "group" => self.around.add_group(rest).and_then(|()| self.begin_anew()),
            "task" => self.around.add_task(rest).and_then(|()| self.begin_anew()),
            "move" => self.around.move_task(rest).map(|()| Vec::new()),
            "submit" => self.submit(rest),
            "serve" => self.serve(rest),
            "pull" => self.pull(rest),
            "exit" => Ok(self.exit(rest)),
            "rotational" => {
                self.call(|policy, _, _| policy.rotates(rest == "1"));
                Ok(Vec::new())
            }
            "wait" => span(rest).map(|span| self.move_clock(self.around.time + span)),
            "log" => Ok(self.listen(rest)),
            "set" => Ok(rest
                .split_whitespace()
                .filter_map(|pair| self.set(pair).err())
                .collect()),
            "insert" => self.insert(rest),
            "bio" => self.bio(rest),
            "may" => self.may(rest),
            "alloc" => self.alloc(rest),
            "add" => self.add(rest),
            "free" => self.free(rest),
            "activate" => self.activate(rest),
            "force" => Ok(self.force()),
            "dispatch" => self.dispatch(rest),
            "drain" => Ok(self.drain()),
            "complete" => self.complete(rest),
            "requeue" => self.requeue(rest),
            "tick" => self
                .millis(rest)
                .map(|span| self.move_clock_to_tick(self.clocks().tick + span)),
            "at" => self
                .millis(rest)
                .map(|instant| self.move_clock_to_tick(instant)),
            "depth" => self.depth(rest),
            "nr_requests" => self.write_nr_requests(rest),
            "has_work" => Ok(vec![yes_no(self.look(Scheduler::has_work))]),
            "show" => self.show(rest),
            _ => Err(format!("unknown command {word:?}")),
        };
        self.elevator.check(&self.pool);
        let mut lines = self.around.take_printed();
        lines.extend(printed?);
        Ok(lines)
    }
}

impl PolicyQueue {
    /// `queue NAME=VALUE ...`.
    pub(crate) fn create(line: &str) -> Result<Box<dyn World>, String> {
        let pairs: Vec<&str> = line.split_whitespace().skip(1).collect();
        let given = |name: &str| {
            pairs
                .iter()
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name: &str, default: u32| given(name).map_or(Ok(default), parse_number);
        let name = given("scheduler").unwrap_or("mq-deadline");
        let kind = SchedulerKind::by_name(name);
        let kind = kind.filter(|&kind| kind != SchedulerKind::None);
        let kind = kind.ok_or(format!("no scripts for scheduler {name:?}"))?;
        let rules = given("rules").unwrap_or("v6.12");
        let rules = Rules::by_name(rules).ok_or(format!("unknown rules {rules:?}"))?;
        let hz = number("hz", 1000)?;
        let nr_requests = number("nr_requests", 128)?;
        let ranges = given("ranges").map_or(Ok(Vec::new()), parse_ranges)?;
        let settings = QueueSettings {
            hz,
            rotational: given("rotational") == Some("1"),
            rotational_when_chosen: given("rotational") == Some("1"),
            access_ranges: ranges,
            log: kind.facts().is_some_and(|facts| facts.logs),
            ..QueueSettings::plain(rules, kind, nr_requests)
        };
        let scheduler = kind.defaults(hz, nr_requests);
        let mut queue = PolicyQueue {
            pool: RequestPool::new(REQUESTS, BIOS),
            elevator: Elevator::new(&scheduler, &settings, &QueueShape::one()),
            cpu: Cpu::new(CpuId(0)),
            limits: QueueLimits {
                max_sectors: 2560,
                max_segments: 128,
                max_discard_sectors: 1 << 20,
                ..QueueLimits::PLAIN
            },
            nomerges: NoMerges::All,
            around: Around::new(hz, kind),
            settings,
            scheduler,
            attributes: Vec::new(),
            nr_requests,
            runs: number("runs", 1)?,
            in_device: Vec::new(),
            held: Vec::new(),
            allocated: Vec::new(),
            completed: [0; 3],
        };
        let of_queue = [
            "scheduler",
            "rules",
            "hz",
            "nr_requests",
            "rotational",
            "ranges",
            "runs",
        ];
        let of_other =
            |pair: &&&str| !of_queue.contains(&pair.split('=').next().unwrap_or_default());
        queue.attributes = pairs
            .iter()
            .filter(of_other)
            .map(|&pair| pair.to_owned())
            .collect();
        queue.begin_anew()?;
        Ok(Box::new(queue))
    }

    /// A scheduler that knows these tasks and groups.
    fn begin_anew(&mut self) -> Printed {
        if self.pool.iter().any(|(_, rq)| rq.place != Place::Free)
            || self.around.time != SimTime::ZERO
        {
            return Err("tasks and groups come first".to_owned());
        }
        self.settings.submitters = self.around.submitters.clone();
        self.elevator = Elevator::new(&self.scheduler, &self.settings, &QueueShape::one());
        for pair in self.attributes.clone() {
            self.set(&pair)?;
        }
        Ok(Vec::new())
    }

    /// A call of the scheduler, with what it leaves behind.
    fn call<R>(
        &mut self,
        change: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        let (now, pool, around) = (self.clocks(), &mut self.pool, &mut self.around);
        self.elevator.revise(&mut self.cpu, |policy| {
            let result = change(policy, pool, now);
            around.after_call(policy);
            result
        })
    }

    fn hooks(&self) -> Hooks {
        let facts = self.scheduler.kind().facts();
        facts.expect("scripts are about a scheduler").hooks
    }

    fn after(&mut self, after: After) {
        if after == After::RunQueues {
            self.around.print("run".to_owned());
        }
    }

    /// `NAME=VALUE`: a limit, nomerges, or an attribute of the scheduler.
    fn set(&mut self, pair: &str) -> Result<(), String> {
        let (name, value) = pair
            .split_once('=')
            .ok_or(format!("{pair:?} is not NAME=VALUE"))?;
        match name {
            "max_sectors" => self.limits.max_sectors = parse_number(value)?,
            "max_segments" => self.limits.max_segments = parse_number(value)?,
            "chunk_sectors" => self.limits.chunk_sectors = parse_number(value)?,
            "max_discard_sectors" => self.limits.max_discard_sectors = parse_number(value)?,
            "max_discard_segments" => self.limits.max_discard_segments = parse_number(value)?,
            "nomerges" => {
                self.nomerges = match value {
                    "0" => NoMerges::All,
                    "1" => NoMerges::Simple,
                    "2" => NoMerges::Never,
                    _ => return Err(format!("nomerges={value}: 0, 1 or 2")),
                }
            }
            _ => {
                self.call(|policy, _, now| policy.store(name, value, now))
                    .map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, rest: &str) -> Printed {
        let (at, requests) = match rest.strip_prefix("head ") {
            Some(requests) => (InsertAt::Head, requests),
            None => (InsertAt::Sorted, rest),
        };
        self.each_request(requests, |queue, bio, bare| {
            let printed = queue.insert_bio(bio, bare, at)?;
            for line in printed {
                queue.around.print(line);
            }
            Ok(())
        })
    }

    /// Does it for each bio that is written, in turn.
    fn each_request(
        &mut self,
        requests: &str,
        mut each: impl FnMut(&mut PolicyQueue, BioId, bool) -> Result<(), String>,
    ) -> Printed {
        for text in requests.split(',') {
            let written = self.parse_request(text)?;
            for at in 0..written.times {
                let mut bio = written.bio.clone();
                bio.sector = Sector(bio.sector.0 + at * written.gap);
                let bio = self.pool.add_bio(bio).ok_or("out of bios")?;
                each(self, bio, written.bare)?;
            }
        }
        Ok(Vec::new())
    }

    fn insert_bio(&mut self, bio: BioId, bare: bool, at: InsertAt) -> Printed {
        let mut all = self.pool.iter();
        let free = all.find(|(_, rq)| rq.place == Place::Free);
        let rq = free.map(|(rq, _)| rq).ok_or("full")?;
        drop(all);
        self.pool.reset(rq);
        self.pool.bio_to_request(rq, bio);
        self.pool[rq].place = Place::Path;
        self.pool[rq].use_sched = !bare;
        self.pool[rq].start_time = self.around.time;
        Ok(self.insert_request(rq, at))
    }

    /// As the block layer does it: merged, or inserted.
    fn submit(&mut self, requests: &str) -> Printed {
        self.each_request(requests, |queue, bio, bare| {
            let printed = match queue.offer(bio) {
                Some(printed) => printed,
                None => queue.insert_bio(bio, bare, InsertAt::Sorted)?,
            };
            for line in printed {
                queue.around.print(line);
            }
            Ok(())
        })
    }

    fn clocks(&self) -> Now {
        self.around.now()
    }

    /// Inserts one request; answers the merges in the order they happened.
    fn insert_request(&mut self, rq: RequestId, at: InsertAt) -> Vec<String> {
        if self.is_single() && self.pool[rq].elv_priv == [0, 0] {
            self.set_up(rq);
        }
        let lines = self.insert_only(rq, at);
        self.behind_insertion();
        lines
    }

    fn insert_only(&mut self, rq: RequestId, at: InsertAt) -> Vec<String> {
        let (limits, nomerges) = (self.limits, self.nomerges);
        let kept = self.settings.rules.plug_keeps_time;
        let insertion = self.call(|policy, pool, now| {
            let (limits, now) = (&limits, Now { kept, ..now });
            policy.insert(pool, rq, at, now, Merging { limits, nomerges })
        });
        let absorbed = match insertion {
            Insertion::Inserted => return Vec::new(),
            Insertion::Absorbed(absorbed) => absorbed,
        };
        let stack: Vec<RequestId> = absorbed.iter(&self.pool).collect();
        let lines = stack
            .iter()
            .rev()
            .map(|&rq| format!("M {}", self.name(rq)))
            .collect();
        let mut left = absorbed;
        while let Some(rq) = left.pop_front(&mut self.pool) {
            self.finish(rq);
        }
        lines
    }

    fn bio(&mut self, rest: &str) -> Printed {
        let bio = self.parse_bio(rest)?;
        Ok(self.offer(bio).unwrap_or_else(|| {
            self.pool.free_bio(bio);
            vec!["no merge".to_owned()]
        }))
    }

    /// Offers a bio for merging; nothing if nobody takes it.
    fn offer(&mut self, bio: BioId) -> Option<Vec<String>> {
        let of = self.pool.bio(bio);
        let name = format!("{} {}+{}", letter(of.op), of.sector.0, of.sectors.0);
        let (limits, nomerges) = (self.limits, self.nomerges);
        let kept = self.settings.rules.plug_keeps_time;
        let merge = self.call(|policy, pool, now| {
            let (limits, now) = (&limits, Now { kept, ..now });
            policy.merge_bio(pool, bio, now, Merging { limits, nomerges })
        });
        let BioMerge::Into { rq, side, absorbed } = merge else {
            return None;
        };
        let action = match side {
            Side::Back => "M",
            Side::Front => "F",
            Side::Discard => "+",
        };
        let mut printed = vec![format!("{action} {name}")];
        if let Some(absorbed) = absorbed {
            printed.push(format!("M {}", self.name(absorbed)));
            self.finish(absorbed);
        }
        let last = printed.len() - 1;
        printed[last] += &format!(" -> {}", self.name(rq));
        if self.is_single() {
            self.behind_insertion();
        }
        Some(printed)
    }

    fn wanted(&self, bio: BioId) -> Wanted {
        let of = self.pool.bio(bio);
        Wanted {
            op: of.op,
            flags: of.flags,
            io_context: of.io_context,
            map: TagMapSize {
                shift: word_shift(self.nr_requests),
                nr_requests: self.nr_requests,
            },
        }
    }

    fn handed_to_device(&mut self, rq: RequestId) {
        self.pool[rq].place = Place::Device;
        self.in_device.push(rq);
    }

    fn dispatch(&mut self, rest: &str) -> Printed {
        let (mut calls, mut entered, mut held) = (1, self.clocks().tick, false);
        for word in rest.split_whitespace() {
            match word.strip_prefix("waited=") {
                Some(span) => entered = entered - self.millis(span)?,
                None if word == "held" => held = true,
                None => calls = parse_number(word)?,
            }
        }
        for _ in 0..calls {
            let line = match held {
                true => self.pull_once(entered),
                false => self.dispatch_once(entered),
            };
            self.around.print(line.unwrap_or("-".to_owned()));
            if held && let Some(&rq) = self.in_device.last() {
                self.held.push(rq);
            }
        }
        Ok(Vec::new())
    }

    fn drain(&mut self) -> Vec<String> {
        while let Some(line) = self.dispatch_once(self.clocks().tick) {
            self.around.print(line);
        }
        Vec::new()
    }

    /// One call, and the driver's first look at what it gave.
    fn dispatch_once(&mut self, entered: Jiffies) -> Option<String> {
        let line = self.pull_once(entered)?;
        let last = self.in_device.last();
        self.activated(*last.expect("it is there"));
        Some(line)
    }

    /// One call; tells when it reset `starved`.
    fn pull_once(&mut self, entered: Jiffies) -> Option<String> {
        let starved = self.starved();
        let completed = self.completed;
        let rq = self.call(|policy, pool, now| {
            let now = DispatchTime {
                entered,
                ..DispatchTime::at(now)
            };
            policy.dispatch(pool, now, completed)
        })?;
        self.handed_to_device(rq);
        let reset = starved > 0 && self.starved() == 0;
        Some(format!(
            "D {}{}",
            self.name(rq),
            if reset { "    starved=0" } else { "" }
        ))
    }

    /// `serve N [each=1ms]`: how many of whom were served in a row.
    fn serve(&mut self, rest: &str) -> Printed {
        let (mut calls, mut each) = (1, span("1ms")?);
        for word in rest.split_whitespace() {
            match word.strip_prefix("each=") {
                Some(length) => each = span(length)?,
                None => calls = parse_number(word)?,
            }
        }
        let mut who = Vec::new();
        while calls > 0 {
            calls -= 1;
            if self.dispatch_once(self.clocks().tick).is_some() {
                let rq = self.in_device[self.in_device.len() - 1];
                who.push(self.submitter(rq));
                self.move_clock(self.around.time + each);
                self.in_device.pop();
                let lines = self.around.take_printed();
                self.end(rq);
                // That queues are to be run is no news here.
                let more = self.around.take_printed();
                let more = more.into_iter().filter(|line| line != "run");
                lines
                    .into_iter()
                    .chain(more)
                    .for_each(|line| self.around.print(line));
            } else {
                who.push("-".to_owned());
                match self.around.expiry() {
                    Some(expiry) => drop(self.move_clock(expiry)),
                    None => calls = 0,
                }
            }
        }
        self.around.print(runs_of(&who));
        Ok(Vec::new())
    }

    /// `pull N`: as many dispatches at once, told in the same way.
    fn pull(&mut self, rest: &str) -> Printed {
        let calls = parse_number(rest)?;
        let dispatched = |queue: &mut PolicyQueue| {
            queue.dispatch_once(queue.clocks().tick)?;
            queue.in_device.last().map(|&rq| queue.submitter(rq))
        };
        let who: Vec<String> = (0..calls)
            .map(|_: u32| dispatched(self).unwrap_or("-".to_owned()))
            .collect();
        self.around.print(runs_of(&who));
        Ok(Vec::new())
    }

    fn submitter(&self, rq: RequestId) -> String {
        let by = self.around.name_of(self.pool[rq].io_context);
        by.trim_start_matches(" by=").to_owned()
    }

    fn complete(&mut self, rest: &str) -> Printed {
        if rest == "all" {
            for rq in core::mem::take(&mut self.in_device) {
                self.end(rq);
            }
            return Ok(Vec::new());
        }
        for name in rest.split(',') {
            let rq = self.take_from_device(name.trim())?;
            self.end(rq);
        }
        Ok(Vec::new())
    }

    fn requeue(&mut self, rest: &str) -> Printed {
        let rq = self.take_from_device(rest)?;
        if self.hooks().requeued {
            let after = self.call(|policy, pool, now| policy.requeued(pool, rq, now));
            self.after(after);
        }
        if self.is_single() {
            self.in_device.push(rq);
            self.held.push(rq);
            return Ok(Vec::new());
        }
        self.pool[rq].place = Place::Path;
        Ok(self.insert_request(rq, InsertAt::Head))
    }

    fn exit(&mut self, name: &str) -> Vec<String> {
        let task = self.around.task(name);
        if self.hooks().exits {
            let after = self.call(|policy, pool, now| policy.exits(pool, task, now));
            self.after(after);
        }
        Vec::new()
    }

    fn listen(&mut self, rest: &str) -> Vec<String> {
        self.around.listen_for = match rest {
            "on" => vec![String::new()],
            "off" => Vec::new(),
            words => words.split_whitespace().map(str::to_owned).collect(),
        };
        Vec::new()
    }

    fn take_from_device(&mut self, name: &str) -> Result<RequestId, String> {
        let is_it = |&rq: &RequestId| {
            let full = self.name(rq);
            full == name || full.split(" by=").next() == Some(name)
        };
        let at = self.in_device.iter().position(is_it);
        Ok(self
            .in_device
            .remove(at.ok_or(format!("{name:?} is not in the device"))?))
    }

    /// The device has done a request.
    fn end(&mut self, rq: RequestId) {
        if self.hooks().completed {
            let after = self.call(|policy, pool, now| policy.completed(pool, rq, now));
            self.after(after);
        }
        self.finish(rq);
    }

    /// Ends a request: its bios, its count, its slot.
    fn finish(&mut self, rq: RequestId) {
        if self.hooks().finished {
            let after = self.call(|policy, pool, now| policy.finished(pool, rq, now));
            self.after(after);
        }
        for bio in self.pool.bios_of(rq).collect::<Vec<BioId>>() {
            self.pool.free_bio(bio);
        }
        if let Some(level) = completed_level(self.pool[rq].elv_priv) {
            self.completed[level] += 1;
        }
        self.pool[rq].place = Place::Free;
        self.pool.reset(rq);
    }

    fn look<R>(&self, look: impl FnOnce(&dyn Scheduler) -> R) -> R {
        let seen = self.elevator.inspect(look);
        seen.expect("scripts are about a scheduler")
    }

    /// What only mq-deadline has.
    fn of_deadline<R>(&self, look: impl FnOnce(&MqDeadline) -> R) -> Option<R> {
        self.look(|policy| (policy as &dyn Any).downcast_ref().map(look))
    }

    fn starved(&self) -> u32 {
        self.of_deadline(MqDeadline::starved).unwrap_or(0)
    }

    fn state_lines(&self) -> Vec<String> {
        let text = self.look(|policy| policy.show(&self.pool));
        text.lines().map(str::to_owned).collect()
    }

    fn move_clock_to_tick(&mut self, tick: Jiffies) -> Vec<String> {
        self.move_clock(Now::at_tick(tick, self.around.hz).time)
    }

    /// Timers that are passed expire on the way.
    fn move_clock(&mut self, to: SimTime) -> Vec<String> {
        assert!(to >= self.around.time, "the clock does not go back");
        while let Some(timer) = self.around.take_expired(to) {
            let after = self.call(|policy, pool, now| policy.timer(pool, timer, now));
            self.after(after);
        }
        self.around.time = to;
        Vec::new()
    }

    fn depth(&mut self, rest: &str) -> Printed {
        let bio = self.parse_bio(rest)?;
        let wanted = self.wanted(bio);
        let depth = match self.look(|policy| policy.limits_under_lock(wanted)) {
            true => self.call(|policy, _, now| policy.limit_depth_locked(wanted, now)),
            false => self.look(|policy| policy.limit_depth(wanted)),
        };
        self.pool.free_bio(bio);
        Ok(vec![
            depth.map_or("no limit".to_owned(), |depth| depth.to_string()),
        ])
    }

    fn write_nr_requests(&mut self, rest: &str) -> Printed {
        let old = self.nr_requests;
        self.call(|policy, _, _| policy.depth_updated(old));
        self.nr_requests = parse_number(rest)?;
        Ok(Vec::new())
    }

    fn show(&self, what: &str) -> Printed {
        let counts = || {
            let counts = self.of_deadline(MqDeadline::counts);
            counts.ok_or_else(|| format!("show {what}: the scheduler counts nothing"))
        };
        let names = ["rt", "be", "idle"];
        match what {
            "state" => Ok(self.state_lines()),
            "queues" => Ok(self.state_lines().split_off(1)),
            "batch" => {
                let line = self.state_lines().swap_remove(0);
                Ok(vec![
                    line.split(" last_merge")
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                ])
            }
            "queued" => {
                let counts = counts()?;
                let queued = |level: usize| counts[level][0] - self.completed[level];
                Ok(vec![format!(
                    "rt={} be={} idle={}",
                    queued(0),
                    queued(1),
                    queued(2)
                )])
            }
            "counts" => Ok(names
                .iter()
                .zip(counts()?)
                .zip(self.completed)
                .filter(|((_, counts), _)| counts[0] > 0)
                .map(|((name, [inserted, merged, dispatched]), completed)| {
                    format!(
                        "{name}: inserted={inserted} merged={merged} dispatched={dispatched} \
                         completed={completed}"
                    )
                })
                .collect()),
            name => {
                let shown = self.look(Scheduler::shown);
                let found = shown.into_iter().find(|&(known, _)| known == name);
                let (_, value) = found.ok_or(format!("unknown {name:?}"))?;
                Ok(vec![format!("{name}={value}")])
            }
        }
    }
}

/// `FIRST-BEHIND,...`: sectors of each range.
fn parse_ranges(text: &str) -> Result<Vec<core::ops::Range<u64>>, String> {
    let range = |text: &str| {
        let (first, behind) = text
            .split_once('-')
            .ok_or(format!("{text:?} is not FIRST-BEHIND"))?;
        Ok(parse_number(first)?..parse_number(behind)?)
    };
    text.split(',').map(range).collect()
}

/// `D 3a b`: who was served how often in a row.
fn runs_of(who: &[String]) -> String {
    let runs = who.chunk_by(|one, other| one == other);
    let runs = runs.map(|run| match run.len() {
        1 => format!(" {}", run[0]),
        number => format!(" {number}{}", run[0]),
    });
    format!("D{}", runs.collect::<String>())
}
