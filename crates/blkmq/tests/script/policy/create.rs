//! The first line of a script, `queue NAME=VALUE ...`, and the changes of `set`.

use super::around::Around;
use super::parse::parse_number;
use super::{PolicyQueue, Printed};
use crate::script::World;
use blkmq::elevator::{Elevator, QueueShape, SchedulerKind, SchedulerSettings};
use blkmq::env::Cpu;
use blkmq::queue::QueueSettings;
use blkmq::request::{CpuId, Place, RequestPool};
use blkmq::rules::{NoMerges, QueueLimits, Rules};
use blkmq::time::SimTime;

/// Slots of a script's pool; more than any script needs.
const REQUESTS: usize = 256;
const BIOS: usize = 1024;

/// Words of the first line that are no attributes.
const OF_QUEUE: [&str; 8] = [
    "scheduler",
    "rules",
    "repairs",
    "hz",
    "nr_requests",
    "rotational",
    "ranges",
    "runs",
];

impl PolicyQueue {
    /// `queue NAME=VALUE ...`.
    pub(crate) fn create(line: &str) -> Result<Box<dyn World>, String> {
        Ok(Box::new(PolicyQueue::with(line, None)?))
    }

    /// The same with another scheduler than the line says.
    pub(crate) fn with(
        line: &str,
        instead: Option<&SchedulerSettings>,
    ) -> Result<PolicyQueue, String> {
        let pairs: Vec<&str> = line.split_whitespace().skip(1).collect();
        let given = |name: &str| {
            pairs
                .iter()
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name: &str, default: u32| given(name).map_or(Ok(default), parse_number);
        let name = given("scheduler").unwrap_or("mq-deadline");
        let by_name = || SchedulerKind::by_name(name).filter(|&kind| kind != SchedulerKind::None);
        let kind = instead.map(SchedulerSettings::kind).or_else(by_name);
        let kind = kind.ok_or(format!("no scripts for scheduler {name:?}"))?;
        let rules = given("rules").unwrap_or("v6.12");
        let rules = Rules::by_name(rules).ok_or(format!("unknown rules {rules:?}"))?;
        let repaired = rules.with_repairs(given("repairs").unwrap_or("none"));
        let rules = repaired.ok_or("unknown repairs")?;
        let hz = number("hz", 1000)?;
        let nr_requests = number("nr_requests", 128)?;
        let ranges = given("ranges").map_or(Ok(Vec::new()), parse_ranges)?;
        let settings = QueueSettings {
            hz,
            rotational: given("rotational") == Some("1"),
            rotational_when_chosen: given("rotational") == Some("1"),
            access_ranges: ranges,
            log: kind.info().is_some_and(|info| info.logs),
            ..QueueSettings::plain(rules, kind, nr_requests)
        };
        let of_kind = || {
            let rotational = settings.rotational_when_chosen;
            kind.defaults(hz, nr_requests).of_kernel(&rules, rotational)
        };
        let scheduler = instead.cloned().unwrap_or_else(of_kind);
        let mut queue = PolicyQueue {
            pool: RequestPool::new(REQUESTS, BIOS),
            elevator: Elevator::new(&scheduler, &settings, &QueueShape::one()),
            cpu: Cpu::new(CpuId(0)),
            limits: QueueLimits {
                max_sectors: 2560,
                max_segments: 128,
                max_discard_sectors: 1 << 20,
                ..QueueLimits::PLAIN
            }
            .of_kernel(&rules),
            nomerges: NoMerges::All,
            around: Around::new(hz, kind),
            settings,
            scheduler,
            attributes: Vec::new(),
            nr_requests,
            map_requests: nr_requests,
            runs: number("runs", 1)?,
            in_device: Vec::new(),
            held: Vec::new(),
            allocated: Vec::new(),
            completed: [0; 3],
        };
        let of_other =
            |pair: &&&str| !OF_QUEUE.contains(&pair.split('=').next().unwrap_or_default());
        queue.attributes = pairs
            .iter()
            .filter(of_other)
            .map(|&pair| pair.to_owned())
            .collect();
        queue.begin_anew()?;
        Ok(queue)
    }

    /// A scheduler with these tasks and groups.
    pub(super) fn begin_anew(&mut self) -> Printed {
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

    /// `NAME=VALUE`: a limit, nomerges, or an attribute of the scheduler.
    pub(super) fn set(&mut self, pair: &str) -> Result<(), String> {
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
}

/// `FIRST-END,...`: sectors of each range, END excluded.
fn parse_ranges(text: &str) -> Result<Vec<core::ops::Range<u64>>, String> {
    let range = |text: &str| {
        let (first, end) = text
            .split_once('-')
            .ok_or(format!("{text:?} is not FIRST-END"))?;
        Ok(parse_number(first)?..parse_number(end)?)
    };
    text.split(',').map(range).collect()
}
