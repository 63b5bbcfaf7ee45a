//! From `Scenario` to `Plan`: the only place where defaults are filled in and the whole is checked.

use blkmq::elevator::{OF_KERNELS, SchedulerKind};
use blkmq::rules::{
    AfterRefusal, BioPlug, FairQueueing, NoMerges, QueueLimits, Restart, RestartRule, Rules,
    Series, StableMerge,
};
use blkmq::time::Duration;

use super::{Device, Queue, Result, Scenario, ScenarioError, jobs};
use sim::plan::{Capacity, DevicePlan, DiskId, DiskPlan, MachinePlan, Plan, QueuePlan, ThreadPlan};
use trace::fio::FioJob;

mod cached;
mod changes;
mod disks;
pub(super) mod drivers;
mod groups;
mod iosched;
mod mapped;
mod precision;
mod readers;
mod single;
mod threads;
mod unread;

pub use drivers::device_types;

use disks::{Disk, Disks, Kind};
use mapped::Over;

/// Facts of a machine profile that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileFacts<'a> {
    /// Its name, e.g. `ryzen-7950x`.
    pub name: &'a str,
    /// Its CPUs, siblings counted.
    pub cpus: u16,
}

/// Profile of a scenario that names none.
const DEFAULT_PROFILE: &str = "ryzen-7950x";
/// Ticks a second of a scenario without `hz`: Debian's kernels.
const DEFAULT_HZ: u32 = 250;
/// Fewest scheduler tags that sysfs takes (BLKDEV_MIN_RQ).
pub(super) const NR_REQUESTS_MIN: u32 = 4;
/// Most of them (MAX_SCHED_RQ).
pub(super) const NR_REQUESTS_MAX: u32 = 2048;

/// Most memory that a run may take.
const MEMORY_MAX: u64 = 3_200_000_000;

/// The device as its driver sets it up, before the queue's own settings.
struct Driver {
    plan: DevicePlan,
    /// Limits that the driver sets; max_sectors after the core's default cap.
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
    let mut wrong = Wrong::default();
    let machine = wrong.of(machine(scenario, profiles));
    let rules = wrong.of(rules(scenario));
    let jobs = wrong.of(jobs::jobs(scenario));
    let readers = wrong.of(readers::readers(scenario));
    let (Some(machine), Some((rules, note)), Some((mut jobs, mut ignored)), Some((readers, said))) =
        (machine, rules, jobs, readers)
    else {
        return Err(wrong.all());
    };
    jobs.extend(readers.iter().map(|of| of.job.clone()));
    ignored.extend(said.into_iter().chain(taken_as_direct(&jobs)));
    let nothing = Device::default();
    let named = Disks::new(scenario, &nothing, &jobs, &mut ignored)?;
    let (mut disks, mut drivers, mut adjusted) = (Vec::new(), Vec::new(), Vec::from_iter(note));
    let mut mapped = named.mapped.iter();
    for disk in &named.list {
        let made = match disk.kind {
            Kind::Mapped => {
                let over = mapped.next().expect("one for each such disk");
                mapped_disk(over, disk, &machine, rules, &mut adjusted)
            }
            Kind::NullBlk | Kind::Nvme | Kind::ScsiDebug | Kind::Ahci | Kind::Fc => {
                let asked = Asked::new(scenario, disk);
                asked.and_then(|asked| disk_plan(&asked, disk, &machine, rules, &mut adjusted))
            }
        };
        if let Some((driver, plan)) = wrong.of(made) {
            disks.push(plan);
            drivers.push(driver);
        }
    }
    wrong.none()?;
    named.whole_hosts()?;
    single::check_jobs(scenario, &jobs, &disks)?;
    let changes = changes::changes(scenario, &drivers, &mut disks, machine.hz)?;
    unread::rotational(scenario, &named.list, &disks, &mut ignored);
    unread::fair_queueing(scenario, &named.list, &disks, &mut ignored)?;
    let groups = groups::groups(scenario, &jobs, &disks, &mut ignored)?;
    let (mut threads, phases) = threads::threads(scenario, &jobs, &machine, &disks, &named)?;
    groups::put_in(&groups, &jobs, &mut threads);
    for (number, disk) in disks.iter_mut().enumerate() {
        disk.capacity = capacity(number as u16, disk, &threads, machine.cpus);
        disk.give_below_room();
    }
    let servers = readers::settle(scenario, &readers, &mut threads)?;
    let cache_pages = cached::cache_pages(scenario, &disks, &threads)?;
    let mut plan = Plan {
        name: scenario.source.name.clone(),
        description: scenario.description.clone(),
        seed: scenario.seed.unwrap_or(1),
        machine,
        disks,
        job_options: jobs::written(&jobs, &threads::entries(&jobs)),
        outputs: jobs::outputs(&jobs),
        threads,
        servers,
        phases,
        precision: precision::precision(scenario)?,
        groups,
        cache_pages,
        changes,
        ignored,
        left_out: scenario.source.left_out.clone(),
        adjusted,
    };
    join_units(&named, &mut plan);
    fits_memory(scenario, &plan).map(|()| plan)
}

/// Problems that do not hide each other, each once: a key of all devices is wrong for each of them.
#[derive(Default)]
struct Wrong(Vec<ScenarioError>);

impl Wrong {
    fn of<T>(&mut self, made: Result<T>) -> Option<T> {
        made.map_err(|error| {
            let text = error.to_string();
            if self.0.iter().all(|other| other.to_string() != text) {
                self.0.push(error);
            }
        })
        .ok()
    }

    fn none(self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self.all()),
        }
    }

    /// Panics if there is none.
    fn all(mut self) -> ScenarioError {
        match self.0.len() {
            1 => self.0.remove(0),
            0 => unreachable!("something is wrong"),
            _ => ScenarioError::Several(self.0),
        }
    }
}

/// A run takes all its memory at the beginning; one that would take too much does not begin.
fn fits_memory(scenario: &Scenario, plan: &Plan) -> Result<()> {
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let (most, all) = (gb(MEMORY_MAX), plan.memory());
    if all <= MEMORY_MAX {
        return Ok(());
    }
    let of_cpus = plan.memory_of_cpus();
    let of_queues: u64 = plan.queues().map(DiskPlan::memory).sum();
    if of_cpus > of_queues / 2 && of_cpus + of_queues > all / 2 {
        let what = format!(
            "{} CPUs with a software queue in each of {} devices, and a place in each of their tag \
             maps, take {:.1} GB of memory with their hardware queues; expected at most {most} GB: \
             fewer CPUs, devices or hardware queues",
            plan.machine.cpus,
            plan.queues().count(),
            gb(of_cpus + of_queues)
        );
        return Err(scenario.error("device", what));
    }
    let used = || plan.queues().filter(|disk| disk.capacity.requests > 0);
    let disks: u64 = used().map(DiskPlan::memory).sum();
    if disks < all / 2 {
        let what = format!(
            "{} threads with their I/Os in flight take {:.1} GB of memory; expected at most {most} \
             GB: fewer jobs, or a smaller iodepth",
            plan.threads.len(),
            gb(all),
        );
        return Err(scenario.error("job", what));
    }
    let requests: u64 = used().map(|disk| u64::from(disk.capacity.requests)).sum();
    let count = used().count() as u64;
    let fitting = count * MEMORY_MAX / all;
    let what = format!(
        "{requests} requests of {count} devices that jobs use take {:.1} GB of memory; expected at \
         most {most} GB: jobs on {fitting} of these devices, or fewer hardware queues, tags or \
         scheduler tags",
        gb(all)
    );
    Err(scenario.error("device", what))
}

/// Units of one host share its device, for disks and for paths.
fn join_units(named: &Disks<'_>, plan: &mut Plan) {
    for (first, more) in named.hosts() {
        plan.join(first, more);
    }
    plan.number_below();
    for units in named.hosts_below() {
        plan.join_paths(&units);
    }
}

/// Longest time in a scenario, us: some thirty years. The clock counts ns in 64 bits.
const MOST_US: u64 = 1_000_000_000_000_000;

fn microseconds(scenario: &Scenario, field: &str, us: u64) -> Result<Duration> {
    match us <= MOST_US {
        true => Ok(Duration(us * 1000)),
        false => {
            let what = format!("{us} is too much; expected at most {MOST_US}");
            Err(scenario.error(field, what))
        }
    }
}

/// A time in s, from `least` on; in us.
fn seconds(scenario: &Scenario, field: &str, least: u64, seconds: u64) -> Result<u64> {
    const MOST: u64 = MOST_US / 1_000_000;
    match (least..=MOST).contains(&seconds) {
        true => Ok(seconds * 1_000_000),
        false => {
            let what = format!("{seconds} is not {least} to {MOST}");
            Err(scenario.error(field, what))
        }
    }
}

fn disk_plan(
    asked: &Asked<'_>,
    disk: &Disk<'_>,
    machine: &MachinePlan,
    rules: Rules,
    adjusted: &mut Vec<String>,
) -> Result<(Driver, DiskPlan)> {
    let driver = drivers::driver(asked.scenario, disk, machine, &rules)?;
    single::check(asked, disk, &driver, &rules)?;
    let queues = disk.device.number("submit_queues").unwrap_or(0);
    if disk.kind == Kind::NullBlk && queues > u64::from(machine.cpus) {
        let field = format!("{}.submit_queues", disk.field);
        let place = asked.scenario.source.place(&field);
        let cpus = machine.cpus;
        let note = format!("{place}: {field}: {queues} is taken as {cpus}, the number of CPUs");
        if !adjusted.contains(&note) {
            adjusted.push(note);
        }
    }
    let plan = DiskPlan {
        set: disk.set,
        queue: queue(asked, &driver, rules, machine.hz, adjusted)?,
        device: driver.plan.clone(),
        owner: None,
        capacity: Capacity::default(),
    };
    Ok((driver, plan))
}

/// A multipath device over its paths, whose queues have no scheduler unless the table has one.
fn mapped_disk(
    over: &Over<'_>,
    disk: &Disk<'_>,
    machine: &MachinePlan,
    rules: Rules,
    adjusted: &mut Vec<String>,
) -> Result<(Driver, DiskPlan)> {
    let Over { written, paths } = over;
    let scenario = written.scenario;
    mapped::check_paths(scenario, &rules)?;
    let (rules, top) = mapped::rules(written, &rules, machine)?;
    let (mut drivers, mut below) = (Vec::new(), Vec::new());
    for path in paths {
        let asked = Asked::of_path(scenario, path)?;
        let (driver, plan) = disk_plan(&asked, path, machine, rules, adjusted)?;
        drivers.push(driver);
        below.push(plan);
    }
    let table = mapped::table(written, &rules.device_mapper, machine)?;
    let known = |device: &str| paths.iter().any(|path| path.name == device);
    let mut devices: Vec<&str> = table.paths().map(|path| path.device.as_str()).collect();
    if let Some(unknown) = devices.iter().find(|device| !known(device)) {
        return Err(written.error("table", format!("there is no device {unknown}")));
    }
    devices.sort_unstable();
    devices.dedup();
    if devices.len() != below.len() || devices.len() != table.paths().count() {
        let what = "names a device twice, or one beside the paths";
        return Err(written.error("table", what));
    }
    let driver = mapped::driver(written, disk.name.clone(), &top, machine, (&drivers, below))?;
    let mut asked = Asked {
        scenario,
        queue: written.mapped.queue.over(&scenario.queue),
        own: written.field("queue"),
    };
    if mapped::maps_bios(&driver) {
        // Settings of all queues do not apply to one without requests.
        (asked.queue.scheduler, asked.queue.nr_requests) = (Some("none".to_owned()), None);
    }
    single::check(&asked, disk, &driver, &top)?;
    let plan = DiskPlan {
        set: disk.set,
        queue: queue(&asked, &driver, top, machine.hz, adjusted)?,
        device: driver.plan.clone(),
        owner: None,
        capacity: Capacity::default(),
    };
    Ok((driver, plan))
}

/// Settings of the queue of one disk: those of the device's own table, then `[queue]`.
struct Asked<'a> {
    scenario: &'a Scenario,
    queue: Queue,
    /// The device's own table: `device.queue`.
    own: String,
}

impl<'a> Asked<'a> {
    fn new(scenario: &'a Scenario, disk: &Disk<'_>) -> Result<Asked<'a>> {
        let (own, field) = (&disk.device.queue, format!("{}.queue", disk.field));
        for (written, key) in [(&own.rules, "rules"), (&own.path, "path")] {
            if written.is_some() {
                let what = "all devices have one kernel; write it in [queue]";
                return Err(scenario.error(&format!("{field}.{key}"), what));
            }
        }
        let mut base = scenario.queue.clone();
        if let Some(name) = own.scheduler.as_deref() {
            base = base.of_scheduler(name);
        }
        Ok(Asked {
            scenario,
            queue: own.over(&base),
            own: field,
        })
    }

    /// The same for a path, which has a scheduler only if its table has one.
    fn of_path(scenario: &'a Scenario, disk: &Disk<'_>) -> Result<Asked<'a>> {
        let mut asked = Asked::new(scenario, disk)?;
        if disk.device.queue.scheduler.is_none() {
            let none = SchedulerKind::None.name();
            asked.queue = asked.queue.of_scheduler(none);
            asked.queue.scheduler = Some(none.to_owned());
            asked.queue.nr_requests = disk.device.queue.nr_requests;
        }
        Ok(asked)
    }

    /// Dotted name of a setting: in the device's own table, or in that of all queues.
    fn field(&self, name: &str) -> String {
        let own = self.scenario.source.keys(&self.own).any(|key| key == name);
        let table = if own { &self.own } else { "queue" };
        format!("{table}.{name}")
    }

    /// An error about a setting, where it was written.
    fn error(&self, name: &str, what: impl Into<String>) -> ScenarioError {
        self.scenario.error(&self.field(name), what)
    }
}

/// Jobs that do not say whether their I/O is buffered.
fn taken_as_direct(jobs: &[FioJob]) -> impl Iterator<Item = String> {
    let silent = jobs
        .iter()
        .filter(|job| !job.direct && !names_buffering(job));
    silent.map(|job| {
        let name = &job.name;
        format!("job {name}: direct is not given; run as direct=1, as most measurements are")
    })
}

/// The job sets whether its I/O is buffered.
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

/// The rules, and a note if those of another kernel are taken.
fn rules(scenario: &Scenario) -> Result<(Rules, Option<String>)> {
    let Some(name) = scenario.queue.rules.as_deref() else {
        let single = single::path_of(scenario, None)?;
        let rules = match single {
            true => Rules::v2_6_32(),
            false => Rules::v6_12(),
        };
        return Ok((rules, None));
    };
    let refused = |what: String| scenario.error("queue.rules", what);
    let (rules, near) = Rules::asked(name).map_err(refused)?;
    let note = near.map(|note| format!("queue.rules: {note}"));
    single::path_of(scenario, Some(&rules))?;
    Ok((rules, note))
}

/// The January 2024 series, which changes some schedulers only.
fn series(asked: &Asked<'_>, scheduler: SchedulerKind) -> Result<Series> {
    let written = &asked.queue;
    let name = written.series.as_deref().unwrap_or(Series::STOCK.name);
    let presets = Series::ALL.map(|series| series.name);
    let mut series = named(asked, ("series", "series"), name, Series::by_name, &presets)?;
    let has = |kind: SchedulerKind| kind.info().is_some_and(|info| info.has_series);
    if series != Series::STOCK && !has(scheduler) {
        let what = format!(
            "{name} changes {}, but the scheduler is {}",
            names_of(has),
            scheduler.name()
        );
        return Err(asked.error("series", what));
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
    Err(asked.error("dd_cpu_buckets", what))
}

/// The restart rules of a kernel, with a separate rule for hctxs.
fn restart(asked: &Asked<'_>, rules: &Rules) -> Result<Restart> {
    let written = &asked.queue;
    let presets = Restart::PRESETS.map(|preset| preset.name);
    let preset = match written.restart.as_deref() {
        // It distinguishes kernels before v4.16 from later ones.
        None if rules.restart.after_refusal != AfterRefusal::Delay => rules.restart,
        None => Restart::V5_12,
        Some(name) => {
            let key = ("restart", "restarting");
            named(asked, key, name, Restart::by_name, &presets)?
        }
    };
    let Some(rule) = written.restart_rule.as_deref() else {
        return Ok(preset);
    };
    let (key, names) = (("restart_rule", "rule"), RestartRule::NAMES);
    let rule = named(asked, key, rule, RestartRule::by_name, names)?;
    Ok(Restart { rule, ..preset })
}

/// The value of this name. An error has the key, calls the value by the second word, and lists all
/// names.
fn named<T>(
    asked: &Asked<'_>,
    (key, kind): (&str, &str),
    name: &str,
    by_name: impl Fn(&str) -> Option<T>,
    names: &[&str],
) -> Result<T> {
    by_name(name).ok_or_else(|| {
        let names = names.join(", ");
        asked.error(key, format!("no {kind} `{name}`; there are {names}"))
    })
}

/// `adjusted`: gets the attributes that the scheduler shows with another value than was written.
fn queue(
    asked: &Asked<'_>,
    driver: &Driver,
    rules: Rules,
    hz: u32,
    adjusted: &mut Vec<String>,
) -> Result<QueuePlan> {
    let written = &asked.queue;
    let scheduler = scheduler(asked, driver, &rules)?;
    let rules = rules
        .with_series(series(asked, scheduler)?)
        .with_restart(restart(asked, &rules)?);
    let rules = match &written.lone_plug {
        None => rules,
        Some(name) => {
            let (key, names) = (("lone_plug", "lone_plug"), BioPlug::NAMES);
            rules.with_bio_plug(named(asked, key, name, BioPlug::by_name, names)?)
        }
    };
    let rules = match &written.stable_merge {
        None => rules,
        Some(name) => {
            let (key, names) = (("stable_merge", "stable_merge"), StableMerge::NAMES);
            rules.with_stable_merge(named(asked, key, name, StableMerge::by_name, names)?)
        }
    };
    let names = asked.queue.repairs.as_deref().unwrap_or("none");
    let (key, with) = (("repairs", "repair"), |names: &str| {
        rules.with_repairs(names)
    });
    let rules = named(asked, key, names, with, &FairQueueing::REPAIRS)?;
    let single = rules.single_queue.is_some();
    let (nr_requests, before) = nr_requests(asked, driver, scheduler, single)?;
    let rotational = driver.plan.rotational_when_chosen;
    let seen = rules.depth_hook.seen(before, nr_requests);
    let mut defaults = scheduler.defaults(hz, seen).of_kernel(&rules, rotational);
    if nr_requests != before {
        defaults.depth_was_updated();
    }
    let iosched = iosched::written(asked, defaults, adjusted)?;
    let nomerges = match written.nomerges.unwrap_or(0) {
        0 => NoMerges::All,
        1 => NoMerges::Simple,
        2 => NoMerges::Never,
        other => return Err(asked.error("nomerges", format!("{other} is not 0 to 2"))),
    };
    let rq_affinity = written.rq_affinity.unwrap_or(1);
    if rq_affinity > 2 {
        return Err(asked.error("rq_affinity", format!("{rq_affinity} is not 0 to 2")));
    }
    let io_timeout = match written.io_timeout {
        None => driver.io_timeout,
        Some(0) => return Err(asked.error("io_timeout", "is at least 1 ms")),
        Some(ms) => Duration::from_millis(u64::from(ms)),
    };
    Ok(QueuePlan {
        rules,
        scheduler: iosched,
        further: Vec::new(),
        nr_requests,
        nr_requests_first: before,
        nomerges,
        inline_runs: written.inline_runs.unwrap_or(false),
        rq_affinity,
        limits: limits(asked, driver)?,
        read_ahead_pages: cached::read_ahead_pages(asked)?,
        io_timeout,
    })
}

/// Names of the schedulers for which this holds, for errors.
fn names_of(holds: impl Fn(SchedulerKind) -> bool) -> String {
    let all = SchedulerKind::ALL.iter().copied();
    let names: Vec<&str> = all
        .filter(|&kind| holds(kind))
        .map(SchedulerKind::name)
        .collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".to_owned(),
    }
}

/// elevator_get_default(): one hardware queue, poll queues counted, or one tag map for all.
fn scheduler(asked: &Asked<'_>, driver: &Driver, rules: &Rules) -> Result<SchedulerKind> {
    let single = rules.single_queue.is_some();
    let above = asked.own.starts_with("mapped") && single;
    let why = match above {
        true => format!("; {}", mapped::hint(rules)),
        false => String::new(),
    };
    let serves = |kind: SchedulerKind| kind.serves(single) && !(above && mapped::refuses(kind));
    let none = !single && !rules.mq_schedulers;
    let Some(name) = asked.queue.scheduler.as_deref() else {
        if none {
            return Ok(SchedulerKind::None);
        }
        if single {
            let what = format!(
                "is required on the single-queue path: {}{why}",
                names_of(serves)
            );
            return Err(asked.error("scheduler", what));
        }
        let one = driver.hctxs() == 1 || driver.plan.hctx_shared;
        return Ok(SchedulerKind::default_for(one && !driver.no_sched));
    };
    let kind = scheduler_named(name, driver).map_err(|what| asked.error("scheduler", what))?;
    if !kind.serves(single) {
        let what = single::wrong_path(kind, single);
        return Err(asked.error("scheduler", format!("{what}{why}")));
    }
    if !serves(kind) {
        let own = names_of(serves);
        let what = format!("{name} above a multipath device is not modelled; there are {own}");
        return Err(asked.error("scheduler", what));
    }
    if none && kind != SchedulerKind::None {
        let what = format!(
            "{name}: queues of blk-mq have no schedulers in {}, which v4.11 was the first to have; \
             expected none",
            rules.name
        );
        return Err(asked.error("scheduler", what));
    }
    Ok(kind)
}

/// The scheduler of this name, if the device allows it.
fn scheduler_named(name: &str, driver: &Driver) -> std::result::Result<SchedulerKind, String> {
    let all = names_of(|_| true);
    match SchedulerKind::by_name(name) {
        Some(kind) if driver.no_sched && kind != SchedulerKind::None => {
            Err(format!("{name} cannot be set: the device has no_sched"))
        }
        Some(kind) => Ok(kind),
        None if OF_KERNELS.contains(&name) => Err(format!("{name} is not modelled; {all} are")),
        None => {
            let known = SchedulerKind::ALL.iter().copied().map(SchedulerKind::name);
            match trace::fio::nearest(name, known) {
                Some(near) => Err(format!("no scheduler `{name}`; did you mean `{near}`?")),
                None => Err(format!("no scheduler `{name}`; there are {all}")),
            }
        }
    }
}

/// queue/nr_requests, and its default before it is written.
fn nr_requests(
    asked: &Asked<'_>,
    driver: &Driver,
    scheduler: SchedulerKind,
    single: bool,
) -> Result<(u32, u32)> {
    let depth = driver.plan.queue_depth;
    let (default, most) = match scheduler {
        // BLKDEV_MAX_RQ.
        _ if single => (128, NR_REQUESTS_MAX),
        SchedulerKind::None => (depth, depth),
        _ => (2 * depth.min(128), NR_REQUESTS_MAX),
    };
    let Some(wanted) = asked.queue.nr_requests else {
        return Ok((default, default));
    };
    if wanted < NR_REQUESTS_MIN && wanted != default {
        let what = format!("{wanted} is less than {NR_REQUESTS_MIN}, the least the kernel takes");
        return Err(asked.error("nr_requests", what));
    }
    if wanted > most {
        let why = match scheduler {
            _ if single => "the most that are modelled",
            SchedulerKind::None => "the device's tags, with no scheduler",
            _ => "the most scheduler tags",
        };
        let what = format!("{wanted} is more than {most}, {why}");
        return Err(asked.error("nr_requests", what));
    }
    Ok((wanted, default))
}

fn limits(asked: &Asked<'_>, driver: &Driver) -> Result<QueueLimits> {
    let mut limits = driver.limits;
    if let Some(kb) = asked.queue.max_sectors_kb {
        let most = driver.max_hw_sectors / 2;
        if kb < 4 || kb > most {
            let what = format!("{kb} is not 4 (a page) to {most}, what the device takes");
            return Err(asked.error("max_sectors_kb", what));
        }
        limits.max_sectors = kb * 2;
    }
    Ok(limits)
}

fn capacity(number: u16, disk: &DiskPlan, threads: &[ThreadPlan], cpus: u16) -> Capacity {
    let works_here =
        |thread: &&ThreadPlan| thread.files.iter().any(|file| file.disk == DiskId(number));
    // Bios of a bio-based device are split in the queues of its paths.
    let below = disk.below().iter().filter(|_| disk.maps_bios());
    let queues: Vec<&QueuePlan> = below
        .map(|lower| &lower.queue)
        .chain([&disk.queue])
        .collect();
    let most = |thread: &ThreadPlan| {
        let each = queues
            .iter()
            .map(|queue| threads::bios_in_flight(thread, queue));
        each.max().unwrap_or(0)
    };
    let bios: u64 = threads.iter().filter(works_here).map(most).sum();
    let room = Capacity {
        bios: u32::try_from(bios).expect("threads() limits what all threads have in flight"),
        waiters: threads
            .iter()
            .filter(works_here)
            .map(|thread| thread.workers(cpus).max(1))
            .sum(),
        ..disk.capacity_of_tags()
    };
    match (bios, disk.queue.further.as_slice()) {
        // No job uses it: 1,024 drives of which one works take the memory of one.
        (0, []) => Capacity {
            requests: 0,
            ..room
        },
        _ => room,
    }
}
