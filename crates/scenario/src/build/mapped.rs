//! A multipath device of a plan: its queue, and the disks below it.

mod events;

use blkmq::dm::table::{QueueMode, Table};
use blkmq::elevator::SchedulerKind;
use blkmq::rules::{DeviceMapper, QueueLimits, Rules, SINGLE_CHANGES, SingleChange};
use blkmq::time::Duration;

use super::disks::Disk;
use super::{Driver, Result, microseconds, seconds};
use crate::Scenario;
use crate::mapped::Written;
use sim::plan::{DeviceKind, DevicePlan, DiskPlan, FaultPlan, MachinePlan, MappedPlan};

/// DM_MQ_NR_HW_QUEUES at most (dm_get_blk_mq_nr_hw_queues()).
const HW_QUEUES_MAX: u16 = 32;
/// BLK_MQ_MAX_DEPTH.
const DEPTH_MAX: u32 = 10_240;
/// Modules scsi_dh_*.
const HANDLERS: [&str; 4] = ["alua", "emc", "hp_sw", "rdac"];
/// multipath.conf's polling_interval, s.
const POLLING_INTERVAL: u64 = 5;
/// How long an activation takes.
const ACTIVATION_US: u64 = 1000;

/// A multipath device of a scenario, and the devices below.
#[derive(Debug)]
pub(super) struct Over<'a> {
    pub(super) written: Written<'a>,
    /// In the order of its paths.
    pub(super) paths: Vec<Disk<'a>>,
}

/// The table of a multipath device.
pub(super) fn table(
    written: &Written<'_>,
    rules: &DeviceMapper,
    machine: &MachinePlan,
) -> Result<Table> {
    let parse = |line: &str| Table::parse(line, rules, usize::from(machine.cpus));
    let table = parse(&written.mapped.table).map_err(|what| {
        let key = written.mapped.wrong_key(|line| parse(line).is_ok());
        written.error(key.unwrap_or("table"), what)
    })?;
    let any = table.paths().next().is_some();
    match any {
        true => Ok(table),
        false => Err(written.error("table", "no path: a device has at least one here")),
    }
}

/// Checks that a multipath device may be above queues of these rules: those of blk-mq.
pub(super) fn check_paths(scenario: &Scenario, rules: &Rules) -> Result<()> {
    let partial = Rules::PARTIAL.iter().any(|of| of.name == rules.name);
    if !partial && rules.single_queue.is_none() {
        return Ok(());
    }
    let known = Rules::MAPPED.iter().chain(&Rules::PRESETS);
    let known: Vec<&str> = known.map(|rules| rules.name).collect();
    let what = format!(
        "{}: multipath is modelled over queues of blk-mq of {} only",
        rules.name,
        known.join(", ")
    );
    Err(scenario.error("queue.rules", what))
}

/// The scheduler of the kernels with such a queue differs from the modelled one.
pub(super) fn refuses(kind: SchedulerKind) -> bool {
    kind.info().is_some_and(|info| !info.above_mapped)
}

/// Kernels in which a mapped queue may be a single-queue one.
fn with_old_top() -> String {
    let known = Rules::MAPPED.iter().filter(|of| of.of_old_top().is_some());
    let known: Vec<&str> = known.map(|rules| rules.name).collect();
    known.join(", ")
}

/// Rules of a kernel with single changes: those of the paths' queues, and of the mapped one.
pub(super) fn rules(
    written: &Written<'_>,
    rules: &Rules,
    machine: &MachinePlan,
) -> Result<(Rules, Rules)> {
    let changed = |mut rules: Rules| -> Result<Rules> {
        for (name, value) in &written.mapped.kernel {
            let made = SingleChange::by_name(name)
                .and_then(|change| change.make(rules.device_mapper, value));
            let made = made.map_err(|what| written.error(&format!("kernel.{name}"), what));
            rules.device_mapper = made?;
        }
        Ok(rules)
    };
    let mode = table(written, &rules.device_mapper, machine)?.queue_mode;
    let top = match mode {
        QueueMode::Request => of_top(written, rules)?,
        QueueMode::Bio => of_bios(written, rules)?,
    };
    let both = (changed(*rules)?, changed(top)?);
    decide_something(written, mode, top.single_queue.is_some())?;
    Ok(both)
}

/// Each of the single changes has an effect on a device of this kind.
fn decide_something(written: &Written<'_>, mode: QueueMode, single_queue: bool) -> Result<()> {
    let (kind, decides): (_, fn(&SingleChange) -> bool) = match (mode, single_queue) {
        (QueueMode::Bio, _) => ("bio-based", |change| change.of_bios),
        (QueueMode::Request, true) => ("of the single-queue kind", |of| of.of_single_queue),
        (QueueMode::Request, false) => return Ok(()),
    };
    for name in written.mapped.kernel.keys() {
        let known = SingleChange::by_name(name).map(decides);
        if known == Ok(false) {
            let some = SINGLE_CHANGES.iter().filter(|change| decides(change));
            let some: Vec<&str> = some.map(SingleChange::name).collect();
            let what = format!(
                "decides nothing of a device that is {kind}; expected {}",
                some.join(", ")
            );
            return Err(written.error(&format!("kernel.{name}"), what));
        }
    }
    Ok(())
}

/// Rules of a bio-based device, which has neither requests nor tags nor a scheduler.
fn of_bios(written: &Written<'_>, rules: &Rules) -> Result<Rules> {
    let mapped = written.mapped;
    let keys = [
        (mapped.use_blk_mq.is_some(), "use_blk_mq"),
        (mapped.dm_mq_nr_hw_queues.is_some(), "dm_mq_nr_hw_queues"),
        (mapped.dm_mq_queue_depth.is_some(), "dm_mq_queue_depth"),
        (mapped.queue.scheduler.is_some(), "queue.scheduler"),
        (mapped.queue.nr_requests.is_some(), "queue.nr_requests"),
    ];
    match keys.into_iter().find(|(given, _)| *given) {
        Some((_, key)) => Err(written.error(
            key,
            "means nothing with queue_mode bio: such a device has no requests; those of its paths \
             have ([device] and its queue)",
        )),
        None => Ok(*rules),
    }
}

/// Rules of the mapped queue: of either kind where the kernel has both.
fn of_top(written: &Written<'_>, rules: &Rules) -> Result<Rules> {
    let mapped = written.mapped;
    let old = rules.of_old_top();
    let multi_queue = mapped.use_blk_mq.map_or(old.is_none(), |on| on.0);
    let refused = |key: &str, what: String| Err(written.error(key, what));
    let Some(old) = old.filter(|_| !multi_queue) else {
        if multi_queue {
            return Ok(*rules);
        }
        let what = format!(
            "0: {} maps queues of blk-mq alone, to which 1 belongs; of these rules a mapped queue \
             may be a single-queue one: {}",
            rules.name,
            with_old_top()
        );
        return refused("use_blk_mq", what);
    };
    let keys = [
        (mapped.dm_mq_nr_hw_queues.is_some(), "dm_mq_nr_hw_queues"),
        (mapped.dm_mq_queue_depth.is_some(), "dm_mq_queue_depth"),
    ];
    match keys.into_iter().find(|(given, _)| *given) {
        Some((_, key)) => {
            let why = hint(rules);
            refused(key, format!("means nothing here: {why}"))
        }
        None => Ok(old),
    }
}

/// It is a bio-based device.
pub(super) fn maps_bios(driver: &Driver) -> bool {
    match &driver.plan.kind {
        DeviceKind::Mapped(plan) => plan.table.queue_mode == QueueMode::Bio,
        _ => false,
    }
}

/// Why a mapped queue is of the single-queue kind.
pub(super) fn hint(rules: &Rules) -> String {
    format!(
        "the mapped queue is of the single-queue path with use_blk_mq = 0, the default of {}; \
         `use_blk_mq = 1` in [mapped] makes it one of blk-mq",
        rules.name
    )
}

/// The multipath device as device-mapper sets it up: with the combined limits of all paths.
pub(super) fn driver(
    written: &Written<'_>,
    name: String,
    rules: &Rules,
    machine: &MachinePlan,
    below: (&[Driver], Vec<DiskPlan>),
) -> Result<Driver> {
    let mapped = written.mapped;
    let error = |key: &str, what: String| Err(written.error(key, what));
    let table = table(written, &rules.device_mapper, machine)?;
    check_timer(written, rules)?;
    check_handler(written, &table, below.0)?;
    let bios = table.queue_mode == QueueMode::Bio;
    let hctxs = mapped.dm_mq_nr_hw_queues.unwrap_or(1);
    if !(1..=HW_QUEUES_MAX).contains(&hctxs) {
        let what = format!("{hctxs} is not 1 to {HW_QUEUES_MAX}");
        return error("dm_mq_nr_hw_queues", what);
    }
    let depth = rules.device_mapper.requests.queue_depth;
    let depth = match bios {
        // It has no tags: one that is never allocated.
        true => 1,
        false => mapped.dm_mq_queue_depth.unwrap_or(u32::from(depth)),
    };
    if !(1..=DEPTH_MAX).contains(&depth) {
        return error(
            "dm_mq_queue_depth",
            format!("{depth} is not 1 to {DEPTH_MAX}"),
        );
    }
    let (drivers, below) = below;
    let current: Vec<QueueLimits> = below.iter().map(|disk| disk.queue.limits).collect();
    let sectors = below.iter().map(|disk| disk.device.sectors).min();
    let sectors = sectors.expect("a table has a path");
    let length: u64 = mapped
        .table
        .split_whitespace()
        .nth(1)
        .map_or(0, |word| word.parse().expect("the table was read"));
    if length > sectors {
        let what = format!("{length} sectors, but the smallest path has {sectors}");
        return error("table", what);
    }
    let max_hw_sectors = drivers.iter().map(|driver| driver.max_hw_sectors).min();
    let blocks = below.iter().map(|disk| disk.device.block_sectors).max();
    let rotational = below.iter().any(|disk| disk.device.rotational);
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::Mapped(Box::new(plan(written, table, below)?)),
            name,
            sectors: length,
            block_sectors: blocks.expect("a table has a path"),
            default_queues: hctxs,
            read_queues: 0,
            poll_queues: 0,
            queue_depth: depth,
            hctx_shared: false,
            budget: 0,
            rotational,
            rotational_when_chosen: rotational,
            access_ranges: Vec::new(),
            fault: FaultPlan::NONE,
            service_times: Vec::new(),
        },
        limits: stacked(drivers, &current),
        max_hw_sectors: max_hw_sectors.expect("a table has a path"),
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

/// The parameter is in v6.1 of the kernels here, and later.
fn check_timer(written: &Written<'_>, rules: &Rules) -> Result<()> {
    let given = written.mapped.queue_if_no_path_timeout_secs.is_some();
    if given && !rules.device_mapper.no_path_timer {
        let what = format!("{} has no such parameter", rules.name);
        return Err(written.error("queue_if_no_path_timeout_secs", what));
    }
    Ok(())
}

/// scsi_dh_attach() needs the handler, and a SCSI device at each path.
fn check_handler(written: &Written<'_>, table: &Table, paths: &[Driver]) -> Result<()> {
    let Some(handler) = &table.hw_handler else {
        return Ok(());
    };
    let key = match written.mapped.hw_handler {
        Some(_) => "hw_handler",
        None => "table",
    };
    if !HANDLERS.contains(&handler.as_str()) {
        let known = HANDLERS.join(", ");
        let what = format!("no hardware handler `{handler}`; there are {known}");
        return Err(written.error(key, what));
    }
    match paths.iter().find(|path| !path.plan.kind.is_scsi()) {
        Some(path) => {
            let what = format!(
                "{handler}: {} is no SCSI device, to which hardware handlers are attached",
                path.plan.name
            );
            Err(written.error(key, what))
        }
        None => Ok(()),
    }
}

/// blk_stack_limits() of all paths, at least one; `current`: limits that their queues have now.
fn stacked(drivers: &[Driver], current: &[QueueLimits]) -> QueueLimits {
    let mut limits = drivers[0].limits;
    for (driver, own) in drivers.iter().zip(current) {
        limits.max_sectors = limits.max_sectors.min(own.max_sectors);
        limits.max_segments = limits.max_segments.min(own.max_segments);
        limits.write_cache |= driver.limits.write_cache;
        limits.fua &= driver.limits.fua;
    }
    limits
}

fn plan(written: &Written<'_>, table: Table, below: Vec<DiskPlan>) -> Result<MappedPlan> {
    let Written {
        scenario, mapped, ..
    } = written;
    let us = |key: &str, us: u64| microseconds(scenario, &written.field(key), us);
    let mut plan = MappedPlan::new(table, below);
    plan.timeout_secs = mapped.queue_if_no_path_timeout_secs.unwrap_or(0);
    let field = written.field("queue_if_no_path_timeout_secs");
    seconds(scenario, &field, 0, plan.timeout_secs)?;
    plan.no_path_retry = mapped.no_path_retry.map(|looks| looks.to_string());
    let activation = mapped.activation_us.unwrap_or(ACTIVATION_US);
    plan.activation = us("activation_us", activation)?;
    let interval = mapped.polling_interval.unwrap_or(POLLING_INTERVAL);
    let interval = seconds(scenario, &written.field("polling_interval"), 1, interval)?;
    plan.interval = Duration::from_secs(interval / 1_000_000);
    events::add(written, &mut plan, interval)?;
    Ok(plan)
}

/// Takes the disks of a table out of a list, in the order of its paths; `before`: disks with others
/// below already.
pub(super) fn take_paths<'a>(
    written: &Written<'_>,
    before: &[Over<'_>],
    list: &mut Vec<Disk<'a>>,
) -> Result<Vec<Disk<'a>>> {
    let error = |what: String| Err(written.error("table", what));
    // Words of the line; the table's reader checks them.
    let words: Vec<&str> = written.mapped.table.split_whitespace().collect();
    let place = |disk: &Disk<'_>| words.iter().position(|&word| word == disk.name);
    for other in before {
        if let Some(path) = other.paths.iter().find(|path| place(path).is_some()) {
            let (path, other) = (&path.name, other.written.table());
            return error(format!("{path} is a path of {other} already"));
        }
    }
    let all: Vec<Disk<'a>> = core::mem::take(list);
    let names: Vec<String> = all.iter().map(|disk| disk.name.clone()).collect();
    let (mut paths, rest): (Vec<Disk<'a>>, Vec<Disk<'a>>) =
        all.into_iter().partition(|disk| place(disk).is_some());
    *list = rest;
    if paths.is_empty() {
        return error(format!("names none of the devices: {}", names.join(", ")));
    }
    paths.sort_by_key(place);
    Ok(paths)
}
