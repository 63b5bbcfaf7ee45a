//! The device's properties in a capture: kernel rules, limits, tunables, tags.
//!
//! Not the events. Files: `meta.txt`, `queue.txt` (crate `trace`).

mod limits;
mod module;

use blkmq::elevator::{LogMarks, SchedulerKind, SchedulerSettings, Submitters};
use blkmq::queue::nr_requests_for;
use blkmq::rules::{NoMerges, QueueLimits, Rules};
use blkmq::time::Jiffies;
use trace::capture::CaptureDir;
use trace::ftrace::{self, Probe};
use trace::meta::Meta;
use trace::queue_txt::DeviceQueue;

use super::decision_time::Decided;
use super::{Error, Options};
use limits::OddLimit;
pub(super) use module::Driver;
use module::{Module, NULL_BLK};

/// Ticks a second if the capture has no value: Debian's and most distributions'.
const HZ: u32 = 250;
/// Usual values of CONFIG_HZ.
const HZ_KNOWN: [u32; 4] = [100, 250, 300, 1000];
/// Ticks between two probes that are enough to derive HZ.
const TICKS_ENOUGH: u64 = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hctx {
    pub(super) tags: u32,
    /// CPUs that submit to it.
    pub(super) cpus: Vec<u16>,
}

#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) device: String,
    /// Ticks a second.
    pub(super) hz: u32,
    pub(super) rules: Rules,
    pub(super) scheduler: SchedulerSettings,
    /// queue/rotational when the scheduler was chosen.
    pub(super) rotational_when_chosen: bool,
    /// Times of records and lines are those of labels (meta.txt: record_times).
    pub(super) times_of_labels: bool,
    /// The time of its dispatch calls' decisions, where no log has it.
    pub(super) decided: Decided,
    /// Assumed, not given.
    pub(super) rotational_taken: bool,
    /// queue/rotational when the capture began.
    pub(super) rotational: bool,
    pub(super) submitters: Submitters,
    /// The scheduler's lines in blktrace are compared.
    pub(super) listens: bool,
    pub(super) limits: QueueLimits,
    /// The source of an odd max_sectors, which queue.txt does not show.
    pub(super) odd_max_sectors: Option<OddLimit>,
    pub(super) nomerges: NoMerges,
    pub(super) nr_requests: u32,
    /// queue/io_timeout.
    pub(super) io_timeout: Jiffies,
    pub(super) hctxs: Vec<Hctx>,
    /// All hardware queues draw from one map of driver tags.
    pub(super) hctx_shared: bool,
    /// Several devices draw from one tag set.
    pub(super) queue_shared: bool,
    /// The driver may sleep when it is handed a request (BLK_MQ_F_BLOCKING).
    pub(super) blocking: bool,
    pub(super) cpus: u16,
    /// Properties of the driver that a plug checks.
    pub(super) driver: Driver,
    /// The device's limit of requests before the scheduler is asked (SCSI); none: no budget.
    pub(super) budget: Option<u32>,
}

impl Setup {
    /// Its scheduler has trace events of its own.
    pub(super) fn reports_events(&self) -> bool {
        let info = self.scheduler.kind().info();
        info.is_some_and(|info| info.probes.events.is_some())
    }

    /// Marks of calls in the log of its scheduler, if it writes one.
    pub(super) fn log_marks(&self) -> Option<&'static LogMarks> {
        let info = self.scheduler.kind().info();
        info.and_then(|info| info.probes.log.as_ref())
    }

    /// Prefix of the lines of its log that are written without the scheduler's lock.
    pub(super) fn unlocked_lines(&self) -> Option<&'static str> {
        self.log_marks().and_then(|marks| marks.unlocked)
    }

    /// Its scheduler asks whether the device rotates.
    pub(super) fn reads_rotational(&self) -> bool {
        let info = self.scheduler.kind().info();
        info.is_some_and(|info| info.reads_rotational)
    }

    /// Assumptions that are not in queue.txt or meta.txt, if they matter.
    pub(super) fn taken(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.rotational_taken && self.reads_rotational() {
            notes.push(format!(
                "{}: queue/rotational when the scheduler was chosen is not in meta.txt: taken as \
                 {}; --rotational-when-chosen says otherwise",
                self.device,
                u8::from(self.rotational_when_chosen)
            ));
        }
        if let Some(odd) = self.odd_max_sectors {
            notes.push(format!(
                "{}: requests of up to {} sectors, {}",
                self.device,
                self.limits.max_sectors,
                odd.reason()
            ));
        }
        notes
    }

    /// Settings that had changed at the end of the run: the time of the change is unknown.
    pub(super) fn changed_meanwhile(&self, dir: &CaptureDir) -> Result<Vec<String>, Error> {
        let after = dir.after.as_ref();
        let Some(after) = after.and_then(|after| after.device(&self.device)) else {
            return Ok(Vec::new());
        };
        let before = dir.queue(Some(&self.device))?;
        let decides = |(name, _): &(&String, &String)| SETTINGS.contains(&name.as_str());
        let settings = before.attributes.iter().filter(decides);
        let settings = settings.map(|(name, old)| (name, old, after.attributes.get(name)));
        let tunables = before.iosched.iter();
        let tunables = tunables.map(|(name, old)| (name, old, after.iosched.get(name)));
        let other = settings.chain(tunables).filter_map(|(name, old, new)| {
            let new = new.filter(|&new| new != old)?;
            Some(format!(
                "{}: {name} was {old} before the run and {new} after it: the model has {old}",
                self.device
            ))
        });
        Ok(other.collect())
    }

    /// queue/nr_requests as the choice of the scheduler made it.
    pub(super) fn nr_requests_first(&self) -> u32 {
        nr_requests_first(self.scheduler.kind(), &self.hctxs)
    }

    /// Its scheduler measures how long requests take, or reads the clock elsewhere.
    pub(super) fn measures(&self) -> bool {
        let info = self.scheduler.kind().info();
        info.is_some_and(|info| info.hooks.completed) || self.reads_clock()
    }

    /// Its scheduler reads the clock when it decides.
    pub(super) fn reads_clock(&self) -> bool {
        let info = self.scheduler.kind().info();
        info.is_some_and(|info| info.reads_clock)
    }

    /// Its scheduler keeps something for processes.
    pub(super) fn sees_exits(&self) -> bool {
        let info = self.scheduler.kind().info();
        info.is_some_and(|info| info.hooks.exits)
    }

    pub(super) fn read(
        dir: &CaptureDir,
        device: &str,
        options: &Options,
        hz: u32,
    ) -> Result<Setup, Error> {
        let queue = dir.queue(Some(device))?;
        let rules = match options.rules {
            Some(rules) => rules,
            None => rules_of(&dir.meta)?,
        };
        blk_mq_alone(dir, &rules, queue)?;
        let nr_requests = positive(queue, "nr_requests")?;
        let rotational = match queue.attributes.contains_key("rotational") {
            true => queue.number("rotational")? != 0,
            false => false,
        };
        let given = options.rotational_when_chosen;
        let given = given.or(dir.meta.rotational_when_chosen.get(device).copied());
        let module = Module::of(dir, device);
        let null_blk = module.is(NULL_BLK);
        let (limits, odd_max_sectors) = limits::of(dir, queue, null_blk)?;
        Ok(Setup {
            device: device.to_owned(),
            hz,
            scheduler: scheduler(queue, hz)?,
            // null_blk_main.c: a new device does not rotate; later writes do not count.
            rotational_when_chosen: given.unwrap_or(rotational && !null_blk),
            rotational_taken: given.is_none(),
            times_of_labels: dir.meta.times_of_labels,
            decided: Decided::of(dir, options),
            rotational,
            submitters: Submitters::default(),
            listens: false,
            limits,
            odd_max_sectors,
            nomerges: match queue.number("nomerges")? {
                0 => NoMerges::All,
                1 => NoMerges::Simple,
                _ => NoMerges::Never,
            },
            nr_requests,
            // A dm device of requests has none of its own.
            io_timeout: Jiffies::from_millis(
                match queue.attributes.contains_key("io_timeout") {
                    true => u64::from(positive(queue, "io_timeout")?),
                    false => DEFAULT_IO_TIMEOUT,
                },
                hz,
            ),
            hctxs: hctxs(queue),
            hctx_shared: module.hctx_shared(),
            queue_shared: module.queue_shared() && dir.devices.len() > 1,
            blocking: module.blocking(),
            cpus: dir.meta.cpus,
            driver: module.driver(&rules),
            budget: module.budget(),
            rules,
        })
    }

    pub(super) fn scheduler_name(&self) -> &'static str {
        self.scheduler
            .kind()
            .info()
            .map_or("none", |info| info.name)
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.device.starts_with("dm-")
    }

    /// True if a scheduler decides the order.
    pub(super) fn has_scheduler(&self) -> bool {
        self.scheduler != SchedulerSettings::None
    }

    /// The hardware queue of a CPU. A CPU that is not listed has the first.
    pub(super) fn hctx_of(&self, cpu: u16) -> usize {
        let takes = |hctx: &Hctx| hctx.cpus.contains(&cpu);
        self.hctxs.iter().position(takes).unwrap_or(0)
    }
}

/// Files of queue/ that decide about dispatches and can be written while a capture runs.
const SETTINGS: [&str; 3] = ["scheduler", "nr_requests", "nomerges"];

/// Default of queue/io_timeout, ms.
const DEFAULT_IO_TIMEOUT: u64 = 30_000;

fn rules_of(meta: &Meta) -> Result<Rules, Error> {
    let kernel = meta.kernel.to_string();
    match Rules::by_name(&kernel) {
        Some(rules) if rules.single_queue.is_none() => Ok(rules),
        Some(_) => Err(Error::SingleQueue { kernel }),
        None => Err(Error::Kernel { kernel }),
    }
}

/// Ticks a second of the captured kernel: from meta.txt, else by the probes of ftrace.txt, else the
/// usual value.
pub(super) fn hz_of(dir: &CaptureDir) -> Result<u32, Error> {
    if let Some(hz) = dir.meta.hz {
        return Ok(hz);
    }
    if !dir.files.contains_key("ftrace.txt") {
        return Ok(HZ);
    }
    let mut ends: Option<[(u64, u64); 2]> = None;
    for record in dir.ftrace()? {
        let record = record?;
        if let ftrace::Event::Probe(Probe::DispatchEntry { jiffies, .. }) = record.event {
            let here = (record.at.0, jiffies);
            ends = Some([ends.map_or(here, |[first, _]| first), here]);
        }
    }
    let Some([first, last]) = ends else {
        return Ok(HZ);
    };
    let ticks = last.1.saturating_sub(first.1);
    let nanoseconds = last.0.saturating_sub(first.0);
    if ticks < TICKS_ENOUGH || nanoseconds == 0 {
        return Ok(HZ);
    }
    let expected = |hz: u32| u128::from(nanoseconds) * u128::from(hz) / 1_000_000_000;
    let nearest = |hz: &u32| expected(*hz).abs_diff(u128::from(ticks));
    Ok(HZ_KNOWN.into_iter().min_by_key(nearest).unwrap_or(HZ))
}

fn positive(queue: &DeviceQueue, name: &str) -> Result<u32, Error> {
    let value = queue.number(name)?;
    u32::try_from(value)
        .ok()
        .filter(|&value| value > 0)
        .ok_or_else(|| {
            let what = format!("{value}, expected a positive number");
            queue.error(&format!("queue/{name}"), what).into()
        })
}

/// Devices of one host, as the module below has them: they share its tags.
pub(super) fn units_of_host(dir: &CaptureDir) -> usize {
    Module::of(dir, "").units()
}

/// A single-queue multipath device (use_blk_mq=N) shows by its scheduler, which no blk-mq of its
/// kernel has.
fn blk_mq_alone(dir: &CaptureDir, rules: &Rules, queue: &DeviceQueue) -> Result<(), Error> {
    let scheduler = queue.scheduler()?;
    let both = rules.of_old_top().is_some() && !dir.meta.dm_tables.is_empty();
    match both && SchedulerKind::of_path(true).any(|kind| kind.name() == scheduler) {
        false => Ok(()),
        true => Err(Error::SingleQueueDevice {
            device: queue.name.clone(),
            scheduler: scheduler.to_owned(),
        }),
    }
}

/// The scheduler, with attributes from sysfs; an attribute that this kernel does not have keeps its
/// default.
fn scheduler(queue: &DeviceQueue, hz: u32) -> Result<SchedulerSettings, Error> {
    let name = queue.scheduler()?;
    // Captures are of blk-mq.
    let mut kinds = SchedulerKind::of_path(false);
    let Some(kind) = kinds.find(|kind| kind.name() == name) else {
        return Err(Error::NotModelled {
            device: queue.name.clone(),
            scheduler: name.to_owned(),
        });
    };
    let mut settings = kind.defaults(hz, nr_requests_first(kind, &hctxs(queue)));
    // A write may change another attribute, and sysfs showed the last write.
    for _ in 0..2 {
        for (name, _) in kind.attributes() {
            if let Some(value) = queue.tunable(name)? {
                store(&mut settings, queue, (name, &value.to_string()))?;
            }
        }
    }
    Ok(settings)
}

/// Sets an attribute to its value in sysfs. The default was not written, and a write may do more
/// than set a value.
fn store(
    settings: &mut SchedulerSettings,
    queue: &DeviceQueue,
    (name, value): (&str, &str),
) -> Result<(), Error> {
    if settings
        .show(name)
        .is_some_and(|now| now.to_string() == value)
    {
        return Ok(());
    }
    let field = format!("queue/iosched/{name}");
    let stored = settings.store(name, value);
    stored.map_err(|bad| queue.error(&field, bad.to_string()).into())
}

/// queue/nr_requests before the first write to it, which some schedulers remember: set by the
/// choice of the scheduler.
fn nr_requests_first(kind: SchedulerKind, hctxs: &[Hctx]) -> u32 {
    let depth = hctxs.iter().map(|hctx| hctx.tags).max().unwrap_or(1);
    nr_requests_for(kind, depth.max(1))
}

/// The hardware queues that serve interrupt-driven I/O: a poll queue, which lists CPUs again, is
/// left out.
fn hctxs(queue: &DeviceQueue) -> Vec<Hctx> {
    let mut hctxs: Vec<Hctx> = Vec::new();
    for state in &queue.hctxs {
        let again = |cpu: &u16| hctxs.iter().any(|hctx| hctx.cpus.contains(cpu));
        if state.cpus.iter().any(again) {
            continue;
        }
        hctxs.push(Hctx {
            tags: state.tags,
            cpus: state.cpus.clone(),
        });
    }
    if hctxs.is_empty() {
        hctxs.push(Hctx {
            tags: 1,
            cpus: Vec::new(),
        });
    }
    hctxs
}

#[cfg(test)]
mod tests;
