//! Scripts about the decisions of a scheduler behind one lock: `queue scheduler=mq-deadline ...`.
//!
//! One scheduler, no tags, no CPUs: insert, merge, dispatch, complete, and a clock of ticks.
//! Every command checks all structures afterwards.
//!
//! ```text
//! queue [scheduler=mq-deadline] [rules=v6.1] [hz=1000] [nr_requests=128] [ATTRIBUTE=VALUE]
//!       [LIMIT=VALUE] [nomerges=0]
//! set NAME=VALUE ...                  attributes, limits, nomerges; refusals are printed
//! insert [head] REQUEST, REQUEST ...  prints M for a request that another one absorbed
//! bio REQUEST                         prints M or F and what it joined, or "no merge"
//! dispatch [N] [waited=2ms]           prints D, or "-" for a call that returns nothing
//! drain                               dispatches until a call returns nothing
//! complete REQUEST | all              the device is done
//! requeue REQUEST                     the driver gives it back, to be inserted at head
//! tick 20ms | at 500ms                moves the clock
//! depth REQUEST                       prints the shallow depth of such an allocation
//! nr_requests N                       a write to queue/nr_requests
//! has_work                            prints yes or no
//! show state | NAME                   also of mq-deadline: show batch | queued | counts
//! ```
//!
//! A REQUEST is `OP SECTOR+SECTORS [prio=CLASS[/LEVEL]] [segments=N] [nomerge] [sync] [fua]`, with
//! OP one of r, w, d (discard), z (write-zeroes).

use super::World;
use blkmq::elevator::mq_deadline::MqDeadline;
use blkmq::elevator::{
    BioMerge, DispatchTime, Elevator, InsertAt, Insertion, Now, QueueShape, Scheduler,
    SchedulerKind, TagMapSize, Wanted, completed_level,
};
use blkmq::env::{Cpu, Solo};
use blkmq::merge::{Merging, Side};
use blkmq::queue::QueueSettings;
use blkmq::request::{
    Bio, BioId, CpuId, IoClass, IoPrio, Op, Place, RequestId, RequestPool, Sector, Sectors,
};
use blkmq::rules::{NoMerges, QueueLimits, Rules};
use blkmq::time::Jiffies;
use core::any::Any;

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
    now: Jiffies,
    hz: u32,
    nr_requests: u32,
    in_device: Vec<RequestId>,
    completed: [u32; 3],
}

type Printed = Result<Vec<String>, String>;

impl World for PolicyQueue {
    fn command(&mut self, line: &str) -> Printed {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let printed = match word {
            "set" => Ok(rest
                .split_whitespace()
                .filter_map(|pair| self.set(pair).err())
                .collect()),
            "insert" => self.insert(rest),
            "bio" => self.bio(rest),
            "dispatch" => self.dispatch(rest),
            "drain" => Ok(self.drain()),
            "complete" => self.complete(rest),
            "requeue" => self.requeue(rest),
            "tick" => self
                .millis(rest)
                .map(|span| self.move_clock(self.now + span)),
            "at" => self.millis(rest).map(|instant| self.move_clock(instant)),
            "depth" => self.depth(rest),
            "nr_requests" => self.write_nr_requests(rest),
            "has_work" => Ok(vec![yes_no(self.look(Scheduler::has_work))]),
            "show" => self.show(rest),
            _ => Err(format!("unknown command {word:?}")),
        };
        self.elevator.check(&self.pool);
        printed
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
        let settings = QueueSettings {
            hz,
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
                chunk_sectors: 0,
                max_discard_sectors: 1 << 20,
                discard_granularity: 0,
                max_discard_segments: 1,
                write_cache: false,
                fua: false,
            },
            nomerges: NoMerges::All,
            now: Jiffies(0),
            hz,
            nr_requests,
            in_device: Vec::new(),
            completed: [0; 3],
        };
        let of_queue = ["scheduler", "rules", "hz", "nr_requests"];
        for pair in &pairs {
            if !of_queue.contains(&pair.split('=').next().unwrap_or_default()) {
                queue.set(pair)?;
            }
        }
        Ok(Box::new(queue))
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
                let now = self.clocks();
                self.elevator
                    .revise(&mut self.cpu, |policy| policy.store(name, value, now))
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
        let mut printed = Vec::new();
        for text in requests.split(',') {
            let bio = self.parse_bio(text)?;
            let (rq, _) = self
                .pool
                .iter()
                .find(|(_, rq)| rq.place == Place::Free)
                .ok_or("full")?;
            self.pool.reset(rq);
            self.pool.bio_to_request(rq, bio);
            self.pool[rq].place = Place::Path;
            printed.extend(self.insert_request(rq, at));
        }
        Ok(printed)
    }

    /// The clocks at the beginning of the tick.
    fn clocks(&self) -> Now {
        Now::at_tick(self.now, self.hz)
    }

    /// Inserts one request; answers the merges in the order they happened.
    fn insert_request(&mut self, rq: RequestId, at: InsertAt) -> Vec<String> {
        let merging = Merging {
            limits: &self.limits,
            nomerges: self.nomerges,
        };
        let (now, pool) = (self.clocks(), &mut self.pool);
        let insertion = self.elevator.revise(&mut self.cpu, |policy| {
            policy.insert(pool, rq, at, now, merging)
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
        let name = format!(
            "{} {}+{}",
            letter(self.pool.bio(bio).op),
            self.pool.bio(bio).sector.0,
            self.pool.bio(bio).sectors.0
        );
        let merging = Merging {
            limits: &self.limits,
            nomerges: self.nomerges,
        };
        let (now, pool) = (self.clocks(), &mut self.pool);
        let change = |policy: &mut dyn Scheduler| policy.merge_bio(pool, bio, now, merging);
        match self.elevator.revise(&mut self.cpu, change) {
            BioMerge::No => {
                self.pool.free_bio(bio);
                Ok(vec!["no merge".to_owned()])
            }
            BioMerge::Into { rq, side, absorbed } => {
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
                Ok(printed)
            }
        }
    }

    fn dispatch(&mut self, rest: &str) -> Printed {
        let (mut calls, mut entered) = (1, self.now);
        for word in rest.split_whitespace() {
            match word.strip_prefix("waited=") {
                Some(span) => entered = entered - self.millis(span)?,
                None => calls = parse_number(word)?,
            }
        }
        Ok((0..calls)
            .map(|_| self.dispatch_once(entered).unwrap_or("-".to_owned()))
            .collect())
    }

    fn drain(&mut self) -> Vec<String> {
        core::iter::from_fn(|| self.dispatch_once(self.now)).collect()
    }

    /// One call; tells when it reset `starved`.
    fn dispatch_once(&mut self, entered: Jiffies) -> Option<String> {
        let starved = self.starved();
        let now = DispatchTime {
            entered,
            ..DispatchTime::at(self.clocks())
        };
        let (pool, completed) = (&mut self.pool, self.completed);
        let change = |policy: &mut dyn Scheduler| policy.dispatch(pool, now, completed);
        let rq = self.elevator.revise(&mut self.cpu, change)?;
        self.pool[rq].place = Place::Device;
        self.in_device.push(rq);
        let reset = starved > 0 && self.starved() == 0;
        Some(format!(
            "D {}{}",
            self.name(rq),
            if reset { "    starved=0" } else { "" }
        ))
    }

    fn complete(&mut self, rest: &str) -> Printed {
        if rest == "all" {
            for rq in core::mem::take(&mut self.in_device) {
                self.finish(rq);
            }
        } else {
            let rq = self.take_from_device(rest)?;
            self.finish(rq);
        }
        Ok(Vec::new())
    }

    fn requeue(&mut self, rest: &str) -> Printed {
        let rq = self.take_from_device(rest)?;
        self.pool[rq].place = Place::Path;
        Ok(self.insert_request(rq, InsertAt::Head))
    }

    fn take_from_device(&mut self, name: &str) -> Result<RequestId, String> {
        let at = self.in_device.iter().position(|&rq| self.name(rq) == name);
        Ok(self
            .in_device
            .remove(at.ok_or(format!("{name:?} is not in the device"))?))
    }

    /// Ends a request: its bios, its count, its slot.
    fn finish(&mut self, rq: RequestId) {
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

    fn move_clock(&mut self, to: Jiffies) -> Vec<String> {
        assert!(to >= self.now, "the clock does not go back");
        self.now = to;
        Vec::new()
    }

    fn depth(&mut self, rest: &str) -> Printed {
        let bio = self.parse_bio(rest)?;
        let map = TagMapSize {
            shift: word_shift(self.nr_requests),
            nr_requests: self.nr_requests,
        };
        let of = self.pool.bio(bio);
        let wanted = Wanted {
            op: of.op,
            flags: of.flags,
            io_context: of.io_context,
            map,
        };
        let now = self.clocks();
        let depth = match self.look(|policy| policy.limits_under_lock(wanted)) {
            true => self.elevator.revise(&mut self.cpu, |policy| {
                policy.limit_depth_locked(wanted, now)
            }),
            false => self.look(|policy| policy.limit_depth(wanted)),
        };
        self.pool.free_bio(bio);
        Ok(vec![
            depth.map_or("no limit".to_owned(), |depth| depth.to_string()),
        ])
    }

    fn write_nr_requests(&mut self, rest: &str) -> Printed {
        let old = self.nr_requests;
        self.elevator
            .revise(&mut self.cpu, |policy| policy.depth_updated(old));
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

    /// `OP SECTOR+SECTORS [prio=CLASS[/LEVEL]] [FLAG]...`.
    fn parse_bio(&mut self, text: &str) -> Result<BioId, String> {
        let mut words = text.split_whitespace();
        let mut bio = Bio::default();
        bio.segments = 1;
        bio.op = match words.next() {
            Some("r") => Op::Read,
            Some("w") => Op::Write,
            Some("d") => Op::Discard,
            Some("z") => Op::WriteZeroes,
            other => return Err(format!("unknown operation {other:?}: r, w, d or z")),
        };
        let range = words.next().and_then(|range| range.split_once('+'));
        let (sector, sectors) = range.ok_or(format!("{text:?}: no SECTOR+SECTORS"))?;
        bio.sector = Sector(parse_number(sector)?);
        bio.sectors = Sectors(parse_number(sectors)?);
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("prio", prio) => bio.ioprio = parse_prio(prio)?,
                ("segments", count) => bio.segments = parse_number(count)?,
                ("nomerge", "") => bio.flags.nomerge = true,
                ("sync", "") => bio.flags.sync = true,
                ("fua", "") => bio.flags.fua = true,
                _ => return Err(format!("unknown property {word:?} of a request")),
            }
        }
        self.pool.add_bio(bio).ok_or("out of bios".to_owned())
    }

    /// `20ms` in ticks, rounded up.
    fn millis(&self, text: &str) -> Result<Jiffies, String> {
        let number = text
            .strip_suffix("ms")
            .ok_or(format!("{text:?} is not a time in ms"))?;
        Ok(Jiffies::from_millis(parse_number(number)?, self.hz))
    }

    /// Operation, address and what else matters: `w 8+8 prio=rt`.
    fn name(&self, rq: RequestId) -> String {
        let request = &self.pool[rq];
        let class = match request.ioprio.class {
            IoClass::None => "",
            IoClass::RealTime => " prio=rt",
            IoClass::BestEffort => " prio=be",
            IoClass::Idle => " prio=idle",
        };
        let level = match request.ioprio.level {
            0 => String::new(),
            level => format!("/{level}"),
        };
        let range = format!("{}+{}", request.sector.0, request.sectors.0);
        format!("{} {range}{class}{level}", letter(request.op))
    }
}

fn letter(op: Op) -> &'static str {
    match op {
        Op::Read => "r",
        Op::Write => "w",
        Op::Discard => "d",
        Op::WriteZeroes => "z",
        Op::Flush => "f",
    }
}

fn parse_prio(text: &str) -> Result<IoPrio, String> {
    let (class, level) = text.split_once('/').unwrap_or((text, "0"));
    let class = match class {
        "none" => IoClass::None,
        "rt" => IoClass::RealTime,
        "be" => IoClass::BestEffort,
        "idle" => IoClass::Idle,
        _ => {
            return Err(format!(
                "unknown priority class {class:?}: none, rt, be or idle"
            ));
        }
    };
    Ok(IoPrio {
        class,
        level: parse_number(level)?,
    })
}

fn parse_number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number of the right size"))
}

fn yes_no(answer: bool) -> String {
    if answer { "yes" } else { "no" }.to_owned()
}

/// log2 of the bits in a word of a tag map of this depth (sbitmap_calculate_shift()).
fn word_shift(depth: u32) -> u32 {
    let mut shift = 6;
    while depth >= 4 && shift > 0 && (4 << shift) > depth {
        shift -= 1;
    }
    shift
}
