//! From `Scenario` to `Plan`: the one place where defaults are filled in and the whole is checked.

use blkmq::elevator::mq_deadline::MqDeadlineSettings;
use blkmq::rules::{NoMerges, QueueLimits, Rules, SchedulerKind, Series};
use blkmq::time::Duration;

use super::{Result, Scenario, jobs};
use crate::plan::{Capacity, DevicePlan, MachinePlan, Plan, QueuePlan, ThreadPlan};
use trace::fio::FioJob;

mod drivers;
mod threads;

/// What a plan must know of a machine profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileFacts<'a> {
    /// Its name, e.g. `ryzen-7950x`.
    pub name: &'a str,
    /// Its CPUs, siblings counted.
    pub cpus: u16,
}

/// Profile of a scenario that names none.
const DEFAULT_PROFILE: &str = "ryzen-7950x";
/// Ticks a second of a scenario that tells none: Debian's kernels.
const DEFAULT_HZ: u32 = 250;
/// Fewest scheduler tags that sysfs takes (BLKDEV_MIN_RQ).
const NR_REQUESTS_MIN: u32 = 4;
/// Most of them (MAX_SCHED_RQ).
const NR_REQUESTS_MAX: u32 = 2048;

/// The device as its driver sets it up, before the queue's own settings.
struct Driver {
    plan: DevicePlan,
    /// Limits that the driver tells; max_sectors as after the core's default cap.
    limits: QueueLimits,
    /// Largest max_sectors_kb that sysfs takes, in sectors.
    max_hw_sectors: u32,
    /// Default of queue/io_timeout.
    io_timeout: Duration,
    /// BLK_MQ_F_NO_SCHED: no scheduler can be set.
    no_sched: bool,
}

impl Driver {
    fn hctxs(&self) -> u16 {
        self.plan.default_queues + self.plan.read_queues + self.plan.poll_queues
    }
}

pub(super) fn plan(scenario: &Scenario, profiles: &[ProfileFacts<'_>]) -> Result<Plan> {
    let machine = machine(scenario, profiles)?;
    let rules = rules(scenario)?;
    let (jobs, mut ignored) = jobs::jobs(scenario)?;
    ignored.extend(jobs.iter().filter(|job| !job.direct && !names_buffering(job)).map(|job| {
        let name = &job.name;
        format!("job {name}: direct is not given; run as direct=1, as buffered I/O is not modelled")
    }));
    let driver = drivers::driver(scenario, &jobs, &machine, &rules, &mut ignored)?;
    let queue = queue(scenario, &driver, rules, machine.hz)?;
    let (threads, phases) = threads::threads(scenario, &jobs, &machine, &driver, &queue.limits)?;
    let capacity = capacity(&driver, &queue, &threads, phases);
    Ok(Plan {
        name: scenario.source.name.clone(),
        description: scenario.description.clone(),
        seed: scenario.seed.unwrap_or(1),
        machine,
        queue,
        device: driver.plan,
        threads,
        capacity,
        ignored,
    })
}

/// The job says itself whether its I/O is buffered.
fn names_buffering(job: &FioJob) -> bool {
    job.setting("direct").is_some() || job.setting("buffered").is_some()
}

fn machine(scenario: &Scenario, profiles: &[ProfileFacts<'_>]) -> Result<MachinePlan> {
    let written = &scenario.machine;
    let name = written.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
    let Some(profile) = profiles.iter().find(|profile| profile.name == name) else {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name).collect();
        let what = match trace::fio::nearest(name, names.iter().copied()) {
            Some(near) => format!("no profile `{name}`; did you mean `{near}`?"),
            None => format!("no profile `{name}`; there are {}", names.join(", ")),
        };
        return Err(scenario.error("machine.profile", what));
    };
    let cpus = written.cpus.unwrap_or(profile.cpus);
    if cpus == 0 || cpus > profile.cpus {
        let what = format!("{cpus} is not 1 to {}, the CPUs of {name}", profile.cpus);
        return Err(scenario.error("machine.cpus", what));
    }
    let hz = written.hz.unwrap_or(DEFAULT_HZ);
    if ![100, 250, 300, 1000].contains(&hz) {
        let what = format!("{hz} is none of 100, 250, 300, 1000, which kernels are built with");
        return Err(scenario.error("machine.hz", what));
    }
    Ok(MachinePlan {
        profile: name.to_string(),
        cpus,
        hz,
    })
}

fn rules(scenario: &Scenario) -> Result<Rules> {
    let Some(name) = scenario.queue.rules.as_deref() else {
        return Ok(Rules::v6_12());
    };
    Rules::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Rules::PRESETS.iter().map(|rules| rules.name).collect();
        let what = format!(
            "no rules of a kernel `{name}`; there are {}",
            names.join(", ")
        );
        scenario.error("queue.rules", what)
    })
}

/// The January 2024 series, which changes mq-deadline only.
fn series(scenario: &Scenario, scheduler: SchedulerKind) -> Result<Series> {
    let written = &scenario.queue;
    let name = written.series.as_deref().unwrap_or(Series::STOCK.name);
    let mut series = Series::by_name(name).ok_or_else(|| {
        let names = Series::PRESETS.map(|series| series.name).join(", ");
        scenario.error(
            "queue.series",
            format!("no series `{name}`; there are {names}"),
        )
    })?;
    if series != Series::STOCK && scheduler != SchedulerKind::MqDeadline {
        let what = format!(
            "{name} changes mq-deadline, but the scheduler is {}",
            scheduler.name()
        );
        return Err(scenario.error("queue.series", what));
    }
    let Some(buckets) = written.dd_cpu_buckets else {
        return Ok(series);
    };
    let what = if series.bucket_count() == 0 {
        format!("the series {name} has no insertion buckets")
    } else if buckets == 0 || buckets > Series::BUCKETS_MAX {
        format!("{buckets} is not 1 to {}", Series::BUCKETS_MAX)
    } else {
        series.buckets = buckets;
        return Ok(series);
    };
    Err(scenario.error("queue.dd_cpu_buckets", what))
}

fn queue(scenario: &Scenario, driver: &Driver, rules: Rules, hz: u32) -> Result<QueuePlan> {
    let written = &scenario.queue;
    let scheduler = scheduler(scenario, driver)?;
    let rules = rules.with_series(series(scenario, scheduler)?);
    let (nr_requests, before) = nr_requests(scenario, driver, scheduler)?;
    let mut mq_deadline = MqDeadlineSettings::defaults(hz, before);
    for (name, value) in written.iosched() {
        let field = format!("queue.{name}");
        if scheduler != SchedulerKind::MqDeadline {
            let what = format!(
                "an attribute of mq-deadline, but the scheduler is {}",
                scheduler.name()
            );
            return Err(scenario.error(&field, what));
        }
        mq_deadline
            .store(name, &value.to_string())
            .map_err(|e| scenario.error(&field, e.to_string()))?;
    }
    let nomerges = match written.nomerges.unwrap_or(0) {
        0 => NoMerges::All,
        1 => NoMerges::Simple,
        2 => NoMerges::Never,
        other => return Err(scenario.error("queue.nomerges", format!("{other} is not 0 to 2"))),
    };
    let rq_affinity = written.rq_affinity.unwrap_or(1);
    if rq_affinity > 2 {
        return Err(scenario.error("queue.rq_affinity", format!("{rq_affinity} is not 0 to 2")));
    }
    let io_timeout = match written.io_timeout {
        None => driver.io_timeout,
        Some(0) => return Err(scenario.error("queue.io_timeout", "is at least 1 ms")),
        Some(ms) => Duration::from_millis(u64::from(ms)),
    };
    Ok(QueuePlan {
        rules,
        scheduler,
        nr_requests,
        nr_requests_first: before,
        nomerges,
        inline_runs: written.inline_runs.unwrap_or(false),
        rq_affinity,
        limits: limits(scenario, driver)?,
        io_timeout,
        mq_deadline,
    })
}

/// elevator_get_default(): one hardware queue, poll queues counted, or one tag map for all.
fn scheduler(scenario: &Scenario, driver: &Driver) -> Result<SchedulerKind> {
    let Some(name) = scenario.queue.scheduler.as_deref() else {
        let deadline = !driver.no_sched && (driver.hctxs() == 1 || driver.plan.hctx_shared);
        return Ok(if deadline {
            SchedulerKind::MqDeadline
        } else {
            SchedulerKind::None
        });
    };
    let error = |what: String| Err(scenario.error("queue.scheduler", what));
    let known = [SchedulerKind::None, SchedulerKind::MqDeadline];
    match known.into_iter().find(|kind| kind.name() == name) {
        Some(kind) if driver.no_sched && kind != SchedulerKind::None => {
            error(format!("{name} cannot be set: the device has no_sched"))
        }
        Some(kind) => Ok(kind),
        None if ["bfq", "kyber", "cfq", "deadline", "noop"].contains(&name) => {
            error(format!("{name} is not modelled; none and mq-deadline are"))
        }
        None => match trace::fio::nearest(name, known.map(SchedulerKind::name)) {
            Some(near) => error(format!("no scheduler `{name}`; did you mean `{near}`?")),
            None => error(format!(
                "no scheduler `{name}`; there are none and mq-deadline"
            )),
        },
    }
}

/// queue/nr_requests, and what it was before it was written.
fn nr_requests(
    scenario: &Scenario,
    driver: &Driver,
    scheduler: SchedulerKind,
) -> Result<(u32, u32)> {
    let depth = driver.plan.queue_depth;
    let (default, most) = match scheduler {
        SchedulerKind::None => (depth, depth),
        SchedulerKind::MqDeadline => (2 * depth.min(128), NR_REQUESTS_MAX),
    };
    let Some(wanted) = scenario.queue.nr_requests else {
        return Ok((default, default));
    };
    if wanted < NR_REQUESTS_MIN && wanted != default {
        let what = format!("{wanted} is less than {NR_REQUESTS_MIN}, the least the kernel takes");
        return Err(scenario.error("queue.nr_requests", what));
    }
    if wanted > most {
        let why = match scheduler {
            SchedulerKind::None => "the device's tags, with no scheduler",
            SchedulerKind::MqDeadline => "the most scheduler tags",
        };
        let what = format!("{wanted} is more than {most}, {why}");
        return Err(scenario.error("queue.nr_requests", what));
    }
    Ok((wanted, default))
}

fn limits(scenario: &Scenario, driver: &Driver) -> Result<QueueLimits> {
    let mut limits = driver.limits;
    if let Some(kb) = scenario.queue.max_sectors_kb {
        let most = driver.max_hw_sectors / 2;
        if kb < 4 || kb > most {
            let what = format!("{kb} is not 4 (a page) to {most}, what the device takes");
            return Err(scenario.error("queue.max_sectors_kb", what));
        }
        limits.max_sectors = kb * 2;
    }
    Ok(limits)
}

fn capacity(driver: &Driver, queue: &QueuePlan, threads: &[ThreadPlan], phases: u16) -> Capacity {
    let hctxs = driver.hctxs();
    // With one tag map for all there is one scheduler map as well.
    let maps = if driver.plan.hctx_shared {
        1
    } else {
        u32::from(hctxs)
    };
    let driver_tags = maps * driver.plan.queue_depth;
    let sched_tags = if queue.scheduler == SchedulerKind::None {
        0
    } else {
        maps * queue.nr_requests
    };
    let identities = if sched_tags == 0 {
        driver_tags
    } else {
        sched_tags
    };
    let bios: u64 = threads
        .iter()
        .map(|thread| threads::bios_in_flight(thread, &queue.limits))
        .sum();
    Capacity {
        hctxs,
        driver_tags,
        sched_tags,
        requests: identities + u32::from(hctxs),
        bios: u32::try_from(bios).expect("threads() limits what all threads have in flight"),
        waiters: threads.len() as u32,
        phases,
    }
}
