//! From a capture folder to the scenario that a replay runs: kernel, device, queue as captured.
//!
//! A folder has all of it. Bare blktrace files have the requests and how many were in flight; the
//! rest is then the scenario's defaults or the user's options.

use std::path::Path;

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use trace::capture::CaptureDir;
use trace::queue_txt::DeviceQueue;

use crate::build::drivers::SERVICE_MAX;
use crate::build::{NR_REQUESTS_MAX, NR_REQUESTS_MIN};
use crate::{Device, ProfileFacts, Scenario, ScenarioError};
use sim::plan::{DevicePlan, Plan, ServiceTime};
use sim::replay::{Arrival, Arrivals, CapturedDisk};

/// Value of `--device` for the capture's own.
pub const CAPTURED: &str = "captured";

/// Module parameters that do not affect a single device's queue, or that the module itself did not
/// know.
const IGNORED: &[&str] = &[
    "dpofua",
    "vpd_use_hostno",
    "nr_devices",
    "add_host",
    "count",
    "shared_tags",
];

/// Keys of a device that its drive's file does not have.
const NOT_OF_DRIVE: &[&str] = &["name", "queue", "fault"];

/// Of them, those that matter where several devices are replayed together.
const OF_SEVERAL: &[&str] = &["nr_devices", "shared_tags"];

/// A scenario needs a job; the arrivals take its place.
const JOB: &str = "[[job]]\nrw = \"randread\"\ndirect = 1\n";

/// A capture folder's data on the traced device.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    pub dir: &'a CaptureDir,
    pub queue: &'a DeviceQueue,
}

impl<'a> Captured<'a> {
    /// `device`: the traced device; `None` if it is the only one.
    pub fn new(dir: &'a CaptureDir, device: Option<&str>) -> Result<Captured<'a>, trace::Error> {
        Ok(Captured {
            dir,
            queue: dir.queue(device)?,
        })
    }

    /// Scheduler that the capture was made with.
    pub fn scheduler(&self) -> Result<&'a str, trace::Error> {
        self.queue.scheduler()
    }

    /// Kernel whose rules apply. A simulated run has their name, a kernel its version.
    fn kernel(&self) -> String {
        let meta = &self.dir.meta;
        let release = meta.uname.split_whitespace().nth(2);
        let named = release.and_then(Rules::by_name);
        named.map_or(meta.kernel.to_string(), |rules| rules.name.to_owned())
    }

    /// queue/rotational when the scheduler was chosen, from meta.txt; without that 0 for null_blk,
    /// which starts so.
    fn rotational_when_chosen(&self) -> Option<bool> {
        let meta = &self.dir.meta;
        let recorded = meta.rotational_when_chosen.get(&self.queue.name).copied();
        let null_blk = self.queue.name.starts_with("nullb");
        recorded.or(null_blk.then_some(false))
    }

    /// Machine profile of the captured machine, if the folder names it and there is one.
    fn profile(&self) -> Option<&'static str> {
        let text = self.dir.text("capture.json")?;
        let json: serde_json::Value = serde_json::from_str(&text).ok()?;
        (json.get("mode")?.as_str()? == "icount1").then_some("qemu-icount")
    }

    /// Device-mapper devices have no module of their own.
    fn is_stacked(&self) -> bool {
        self.queue.name.starts_with("dm-")
    }

    /// Names of the devices of the capture if they have one tag set.
    pub fn together(dir: &CaptureDir) -> Vec<&str> {
        let parameters = &dir.meta.device.parameters;
        let shared = parameters
            .get("shared_tags")
            .is_some_and(|value| value == "1");
        match dir.devices.len() {
            several @ 2.. if shared => {
                let names = dir.devices.iter().map(|device| device.name.as_str());
                names.take(several).collect()
            }
            _ => Vec::new(),
        }
    }

    /// `TYPE,PARAMETER=VALUE,...` of the driver; parameters that do not apply here go to `notes`.
    fn device(&self, notes: &mut Vec<String>, several: bool) -> String {
        let module = &self.dir.meta.device;
        let known = ["null_blk", "nvme", "scsi_debug", "ahci"].contains(&module.module.as_str());
        if !known || self.is_stacked() {
            let depth = self.queue.hctxs.first().map_or(64, |hctx| hctx.tags);
            let queues = self.queue.hctxs.len().max(1);
            notes.push(format!(
                "the driver of {} is not modelled; {queues} hardware queues of depth {depth} \
                 replace it",
                self.queue.name
            ));
            return bare_driver(depth, queues);
        }
        let mut text = module.module.clone();
        for (parameter, value) in &module.parameters {
            let name = parameter.as_str();
            if !IGNORED.contains(&name) || several && OF_SEVERAL.contains(&name) {
                text = format!("{text},{parameter}={value}");
            }
        }
        text
    }
}

/// A minimal driver: null_blk with a timer.
fn bare_driver(depth: u32, queues: usize) -> String {
    let depth = depth.clamp(1, 10_240);
    format!("null_blk,irqmode=2,submit_queues={queues},poll_queues=0,hw_queue_depth={depth}")
}

/// The user's settings for a replay, in place of the capture's.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Scheduler; none: the capture's.
    pub scheduler: Option<&'a str>,
    /// Kernel whose rules apply, one of [`Rules::by_name`]; none: the capture's.
    pub rules: Option<&'a str>,
    /// Device; [`CAPTURED`]: the capture's.
    pub device: &'a str,
    /// The text of the drive's file, if the device is one.
    pub drive: Option<&'a str>,
}

/// The scenario of a replay. The caller adds further options of the user afterwards.
pub fn scenario(
    arrivals: &Arrivals,
    name: &Path,
    captured: Option<&Captured<'_>>,
    wanted: Wanted<'_>,
    profiles: &[ProfileFacts<'_>],
) -> Result<(Scenario, Vec<String>), SetupError> {
    let mut notes = Vec::new();
    let own_device = wanted.device == CAPTURED;
    let several = arrivals.disks.len() > 1;
    let device = match (own_device, captured) {
        (false, _) => wanted.device.to_string(),
        (true, Some(captured)) => captured.device(&mut notes, several),
        (true, None) => {
            let disk = &arrivals.disks[0];
            notes.push(bare(disk));
            bare_driver(disk.depth, 1)
        }
    };
    let scenario = Scenario::from_toml(name, JOB)?;
    let mut scenario = match wanted.drive {
        Some(text) => scenario.set_drive(&device, Some((Path::new(&device), text)))?,
        None => scenario.set_device(&device)?,
    };
    if several {
        // A disk of no job has room for no request.
        let names = captured.map(|captured| Captured::together(captured.dir));
        let names = names.unwrap_or_default().join(":/dev/");
        scenario = scenario.set(&format!("job.filename=/dev/{names}"))?;
    }
    has_devices(&scenario, arrivals)?;
    let cpus = captured.map_or(arrivals.cpus, |c| c.dir.meta.cpus.max(arrivals.cpus));
    scenario = scenario.set(&format!("machine.cpus={cpus}"))?;
    if let Some(profile) = captured.and_then(Captured::profile)
        && profiles.iter().any(|known| known.name == profile)
    {
        notes.push(format!(
            "prices of machine {profile}: capture.json says that the CPU was emulated, its \
             clock counting instructions; --machine takes another"
        ));
        scenario = scenario.set(&format!("machine.profile={profile}"))?;
    }
    if let Some(captured) = captured {
        scenario = queue(scenario, captured, wanted, profiles)?;
    } else {
        if let Some(scheduler) = wanted.scheduler {
            scenario = scenario.set(&format!("queue.scheduler={scheduler}"))?;
        }
        // With none requests are the driver's tags.
        let CapturedDisk {
            requests, depth, ..
        } = arrivals.disks[0];
        if own_device && wanted.scheduler != Some("none") && requests > depth {
            let requests = requests.clamp(NR_REQUESTS_MIN, NR_REQUESTS_MAX);
            notes.push(format!(
                "nr_requests={requests}, the most requests that were allocated at once"
            ));
            scenario = scenario.set(&format!("queue.nr_requests={requests}"))?;
        }
    }
    Ok((scenario, notes))
}

/// The note about what a trace without queue.txt and meta.txt says of its device.
fn bare(disk: &CapturedDisk) -> String {
    let depth = disk.depth;
    let cache = match (disk.write_cache, disk.fua) {
        (false, _) => "",
        (true, false) => " and a volatile cache (it was sent flushes, but no FUA write)",
        (true, true) => " and a volatile cache (it was sent flushes and FUA writes)",
    };
    format!(
        "without queue.txt and meta.txt, which are read from a capture's folder: one hardware \
         queue with {depth} tags, the most requests the device had at \
         once{cache}; kernel and scheduler are the defaults unless --rules and --scheduler set them"
    )
}

/// Whether the scenario has as many devices as the capture.
fn has_devices(scenario: &Scenario, arrivals: &Arrivals) -> Result<(), SetupError> {
    let counts = |d: &Device| ["nr_devices", "count", "add_host"].map(|name| d.count(name));
    if scenario
        .device
        .iter()
        .flat_map(counts)
        .flatten()
        .any(|count| usize::from(count) != arrivals.disks.len())
    {
        let what = match arrivals.disks.len() > 1 {
            true => format!(
                "the capture has {} devices with one tag set; expected as many, or --trace-device",
                arrivals.disks.len()
            ),
            false => "a replay has one device".to_owned(),
        };
        return Err(scenario.error("device", &what).into());
    }
    Ok(())
}

/// The queue's attributes as captured, as far as they apply.
fn queue(
    mut scenario: Scenario,
    captured: &Captured<'_>,
    by_user: Wanted<'_>,
    profiles: &[ProfileFacts<'_>],
) -> Result<Scenario, SetupError> {
    let queue = captured.queue;
    // A drive's file changes the drive below the captured queue.
    let own_device = by_user.device == CAPTURED || by_user.drive.is_some();
    let own = queue.scheduler()?;
    let wanted = by_user.scheduler.unwrap_or(own);
    let mut set = |key: &str, value: &str| -> Result<(), SetupError> {
        let changed = scenario.clone().set(&format!("queue.{key}={value}"))?;
        scenario = changed;
        Ok(())
    };
    let rules = by_user
        .rules
        .map_or_else(|| captured.kernel(), str::to_owned);
    set("rules", &rules)?;
    set("scheduler", wanted)?;
    for attribute in ["nomerges", "rq_affinity"] {
        set(attribute, &queue.number(attribute)?.to_string())?;
    }
    // Attributes of a scheduler that is not modelled are left out: the plan refuses the scheduler.
    // Another kernel may not have all.
    if let Some(kind) = SchedulerKind::by_name(own).filter(|_| wanted == own) {
        let lacks = |name: &str| {
            let hz = captured.dir.meta.hz.unwrap_or(250);
            let there = Rules::by_name(&rules).map(|rules| {
                let of_kernel = kind.defaults(hz, 128).of_kernel(&rules, true);
                of_kernel.show(name).is_some()
            });
            let known = kind.attributes().iter().any(|&(known, _)| known == name);
            known && there == Some(false)
        };
        for (tunable, value) in &queue.iosched {
            if !lacks(tunable) {
                set(tunable, value)?;
            }
        }
    }
    // Values that follow from the device are not written again: they may be shown rounded.
    let plan = scenario.plan(profiles)?;
    let shown = |name: &str| queue.number(name);
    // With none they are the driver's tags; a user who set them for one scheduler keeps them.
    let both_have = ![own, wanted].contains(&"none");
    if (wanted == own || both_have)
        && own_device
        && shown("nr_requests")? != i64::from(plan.disks[0].queue.nr_requests)
    {
        let value = shown("nr_requests")?;
        scenario = scenario.set(&format!("queue.nr_requests={value}"))?;
    }
    if own_device && shown("rotational")? != 0 {
        scenario = scenario.set("device.rotational=1")?;
    }
    if let Some(chosen) = captured.rotational_when_chosen().filter(|_| own_device) {
        let chosen = u8::from(chosen);
        scenario = scenario.set(&format!("device.rotational_when_chosen={chosen}"))?;
    }
    if own_device
        && shown("max_sectors_kb")? < i64::from(plan.disks[0].queue.limits.max_sectors / 2)
    {
        let value = shown("max_sectors_kb")?;
        scenario = scenario.set(&format!("queue.max_sectors_kb={value}"))?;
    }
    Ok(scenario)
}

/// A drive's file: the captured device below its driver, with times to draw from.
pub fn drive_file(scenario: &Scenario, plan: &DevicePlan, times: &[ServiceTime]) -> String {
    let mut table = scenario.source.table.get("device").cloned();
    let table = table.as_mut().and_then(toml::Value::as_table_mut);
    let mut table = table.cloned().unwrap_or_default();
    // One drive of several, which ends requests by interrupts.
    table.retain(|key, _| !NOT_OF_DRIVE.contains(&key) && !OF_SEVERAL.contains(&key));
    if plan.poll_queues > 0 {
        table.insert("poll_queues".to_owned(), toml::Value::Integer(0));
    }
    let mut text = table.to_string() + "service_times = [\n";
    for time in times {
        let (kind, sectors) = (time.kind.name(), time.sectors);
        // A clock of microseconds may have D and C at once.
        let ns = time.ns.clamp(1, SERVICE_MAX.0);
        text += &format!("    [\"{kind}\", {sectors}, {}, {}],\n", time.depth, ns);
    }
    text + "]\n"
}

/// Why a capture's set-up cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The settings of the capture or of an option do not make a scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Trace(#[from] trace::Error),
}

/// Most bios alive at once: those of a long trace would not fit into memory.
const BIOS_MAX: usize = 1 << 20;

/// Turns a plan into one of a replay: no threads, room for the arrivals. The captured device has
/// the volatile cache that its flushes show, also if its driver is not modelled.
pub fn fit(plan: &mut Plan, arrivals: &Arrivals, own_device: bool) {
    plan.threads.clear();
    plan.phases = 1;
    for (number, (disk, captured)) in plan.disks.iter_mut().zip(&arrivals.disks).enumerate() {
        let limits = &mut disk.queue.limits;
        if own_device && !limits.write_cache {
            (limits.write_cache, limits.fua) = (captured.write_cache, captured.fua);
        }
        let of_disk = || {
            arrivals
                .ios
                .iter()
                .filter(|io| usize::from(io.disk) == number)
        };
        let parts = |io: &Arrival| limits.parts_max(io.op, io.sectors.0) as usize;
        let pieces = of_disk().map(parts).max().unwrap_or(1);
        let bios = of_disk().count().saturating_mul(pieces).min(BIOS_MAX);
        disk.capacity.bios = bios.max(2 * pieces) as u32;
        disk.capacity.waiters = arrivals.streams.len() as u32;
    }
}
