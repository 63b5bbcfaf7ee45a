//! `blksim replay`: the arrivals of a capture under chosen schedulers, latencies side by side.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use scenario::Scenario;
use scenario::replay::{
    CAPTURED, Captured, Comparison, PrioritySource, SetupError, Wanted, fit, prioritise, read,
};
use serde_json::{Map, Value, json};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::replay::{Arrivals, Pace, Point};
use trace::capture::CaptureDir;

use crate::args::{CaptureArgs, ReplayArgs};
use crate::changes::{Changes, Machines};
use crate::drive::drive;
use crate::error::Error;
use crate::html;
use crate::interrupt::Interrupt;
use crate::outputs::{Outputs, Reported};
use crate::progress::Progress;
use crate::text::read_text;
use crate::{OK, STALLED, output};

/// A capture that was read: its arrivals, and what its folder says about device and queue.
pub(crate) struct Loaded {
    folder: Option<(CaptureDir, Option<String>)>,
    pub(crate) arrivals: Arc<Arrivals>,
    pub(crate) comparison: Comparison,
    /// The only device that is asked about, of several that are replayed together.
    pub(crate) of_disk: Option<u16>,
}

/// Replays once for each scheduler and reports the comparison.
pub(crate) fn replay(args: &ReplayArgs) -> Result<u8, Error> {
    let from = &args.captured;
    let machines = Machines::of(&from.tune)?;
    let changes = Changes::of(&from.tune, &machines, &[])?;
    let point = match args.from.as_str() {
        "Q" | "q" => Point::Queue,
        "D" | "d" => Point::Issue,
        other => return Err(Error::usage(format!("--from {other}"), "expected Q or D")),
    };
    let mut loaded = Loaded::new(from, point, pace(args))?;
    let schedulers: Vec<Option<&str>> = match args.scheduler.as_slice() {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let outputs = Outputs::open(&args.reports)?;
    let interrupt = Interrupt::install()?;
    let mut machine = None;
    for scheduler in schedulers {
        let (scenario, mut notes) = loaded.scenario(from, scheduler, &machines)?;
        let (_, mut plan) = changes.apply(scenario, &machines)?;
        let (arrivals, own_device) = (&loaded.arrivals, from.device == CAPTURED);
        fit(&mut plan, arrivals, own_device);
        let profile = machines.get(&plan.machine.profile);
        let refuse = |what| Error::input(&from.capture[0], what);
        let mut simulator = Simulator::replaying(&plan, profile, arrivals, pace(args), own_device)
            .map_err(refuse)?;
        if let Outcome::Stalled(stall) = to_end(&mut simulator, &plan, &interrupt)? {
            output::print_stderr(&format!(
                "{}: {stall}",
                plan.disks[0].queue.scheduler.kind().name()
            ));
            return Ok(STALLED);
        }
        notes.extend(estimates(&simulator));
        let name = plan.disks[0].queue.scheduler.kind().name().to_owned();
        let comparison = &mut loaded.comparison;
        comparison.add(name, arrivals, simulator.replayed(), notes);
        machine = Some((profile, plan.disks[0].queue.rules.name, plan.seed));
    }
    let (profile, rules, seed) = machine.expect("there is at least one scheduler");
    let report = ReplayReport {
        args,
        comparison: loaded.comparison,
        profile,
        rules,
        seed,
    };
    outputs.write(&report, || Ok(()))?;
    Ok(OK)
}

/// Runs it with its progress. Ctrl-C is an error.
fn to_end(simulator: &mut Simulator, plan: &Plan, interrupt: &Interrupt) -> Result<Outcome, Error> {
    let mut progress = Progress::new(plan);
    let outcome = drive(simulator, interrupt, |simulator| {
        progress.at(simulator);
        Ok(())
    });
    progress.finish();
    outcome?.ok_or(Error::Interrupted)
}

/// A note about service times that the capture does not have.
fn estimates(simulator: &Simulator) -> Option<String> {
    let counts = simulator.captured_counts()?;
    let estimated = counts.near + counts.mean;
    (estimated > 0).then(|| {
        format!(
            "{estimated} of {} requests were not issued in the capture ({} of them are inside or \
             directly after one that was); their D2C is estimated",
            counts.exact + estimated,
            counts.near
        )
    })
}

/// The capture's folder, if it is one with more in it than blktrace files; and the device, if the
/// capture is the base name of its files there.
fn folder(capture: &[PathBuf]) -> Result<Option<(CaptureDir, Option<String>)>, Error> {
    let [path] = capture else { return Ok(None) };
    if path == Path::new("-") {
        return Ok(None);
    }
    let is_capture = |dir: &Path| dir.join("meta.txt").exists() || dir.join("queue.txt").exists();
    if is_capture(path) {
        return Ok(Some((CaptureDir::open(path)?, None)));
    }
    let (Some(dir), Some(device), false) = (path.parent(), path.file_name(), path.exists()) else {
        return Ok(None);
    };
    let dir = match dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => dir,
    };
    if !is_capture(dir) {
        return Ok(None);
    }
    let device = device.to_string_lossy().into_owned();
    Ok(Some((CaptureDir::open(dir)?, Some(device))))
}

fn pace(args: &ReplayArgs) -> Pace {
    if args.closed_loop {
        Pace::Closed
    } else {
        Pace::Open
    }
}

impl Loaded {
    /// Reads all arrivals.
    pub(crate) fn new(from: &CaptureArgs, point: Point, pace: Pace) -> Result<Loaded, Error> {
        let folder = folder(&from.capture)?;
        let dir = folder.as_ref().map(|(dir, _)| dir);
        let together = match (dir, from.device.as_str()) {
            (Some(dir), CAPTURED) => Captured::together(dir),
            _ => Vec::new(),
        };
        let named = from.reading.trace_device.as_deref();
        // The only device of several that is asked about, in any form of its name.
        let of_disk = match (dir, named) {
            (Some(dir), Some(named)) if !together.is_empty() => {
                let name = dir.queue(Some(named))?.name.as_str();
                let place = together.iter().position(|of| *of == name);
                place.map(|place| place as u16)
            }
            _ => None,
        };
        let mut arrivals = read(&from.capture, from.reading.options(), point, &together)?;
        let source = match dir {
            Some(dir) => prioritise(&mut arrivals, dir)?,
            None => PrioritySource::Default,
        };
        let mut comparison = Comparison::new(&arrivals, pace, of_disk);
        if source == PrioritySource::Default {
            comparison
                .notes
                .push("the capture has no priorities: all are best effort 4".to_owned());
        }
        Ok(Loaded {
            folder,
            arrivals: Arc::new(arrivals),
            comparison,
            of_disk,
        })
    }

    /// Names of the devices, if several are replayed together.
    pub(crate) fn devices(&self) -> Vec<&str> {
        match &self.folder {
            Some((dir, _)) if self.arrivals.disks.len() > 1 => Captured::together(dir),
            _ => vec![""],
        }
    }

    /// Whether the capture is a folder that names its kernel, device and queue.
    pub(crate) fn has_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// What the capture's folder says.
    fn captured(&self, from: &CaptureArgs) -> Result<Option<Captured<'_>>, Error> {
        let Some((dir, device)) = &self.folder else {
            return Ok(None);
        };
        let device = device.as_deref().or(from.reading.trace_device.as_deref());
        // Devices with one tag set are alike.
        let device = device.or_else(|| Captured::together(dir).first().copied());
        Ok(Some(Captured::new(dir, device)?))
    }

    /// The scenario of the capture with a scheduler, the capture's own by default, and notes.
    pub(crate) fn scenario(
        &self,
        from: &CaptureArgs,
        scheduler: Option<&str>,
        machines: &Machines,
    ) -> Result<(Scenario, Vec<String>), Error> {
        let captured = self.captured(from)?;
        // An unknown kernel is an error of that option.
        let known = |rules: &&str| Rules::by_name(rules).is_some();
        let own = captured.map(|captured| captured.scheduler()).transpose()?;
        let drive = Path::new(&from.device);
        let is_file = drive.extension().is_some_and(|ending| ending == "toml");
        let drive = is_file.then(|| read_text(drive)).transpose()?;
        let wanted = Wanted {
            scheduler: scheduler.or(own),
            rules: from.tune.rules.as_deref().filter(known),
            device: &from.device,
            drive: drive.as_deref(),
        };
        let (path, machines) = (&from.capture[0], machines.info());
        scenario::replay::scenario(&self.arrivals, path, captured.as_ref(), wanted, &machines)
            .map_err(|error| in_own_words(from, (wanted.scheduler, scheduler.is_some()), &error))
    }
}

/// Writes the capture's settings into the scenario as assignments. An error about one of them names
/// the capture, or the user's `--scheduler`: the scheduler, and whether the user named it.
fn in_own_words(
    from: &CaptureArgs,
    (scheduler, named): (Option<&str>, bool),
    error: &SetupError,
) -> Error {
    let text = error.to_string();
    let capture = &from.capture[0];
    let Some(rest) = text.strip_prefix("--set ") else {
        return Error::Scenario(text);
    };
    let of_scheduler = scheduler.and_then(|name| {
        let place = format!("queue.scheduler={name}: ");
        Some((name, rest.strip_prefix(&place)?))
    });
    match of_scheduler {
        Some((name, rest)) if named => Error::Scenario(format!("--scheduler {name}: {rest}")),
        Some((name, _)) => Error::input(
            capture,
            format!(
                "captured with {name}, not modelled; expected --scheduler {}",
                SchedulerKind::of_path(false)
                    .map(SchedulerKind::name)
                    .collect::<Vec<_>>()
                    .join(",")
            ),
        ),
        None => Error::input(capture, format!("as captured, {rest}")),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A comparison, and the command that repeats it.
#[derive(Debug)]
struct ReplayReport<'a> {
    args: &'a ReplayArgs,
    comparison: Comparison,
    profile: &'a MachineProfile,
    rules: &'static str,
    seed: u64,
}

impl ReplayReport<'_> {
    fn capture(&self) -> Vec<String> {
        let paths = self.args.captured.capture.iter();
        paths.map(|path| path.display().to_string()).collect()
    }
}

impl Reported for ReplayReport<'_> {
    fn text(&self) -> String {
        let (comparison, profile) = (&self.comparison, self.profile);
        format!(
            "{}: {} of {} from {}, {} loop\n  device {}, machine {} ({}), kernel {}\n\n{}",
            self.capture().join(" "),
            counted(comparison.ios, "I/O", "I/Os"),
            counted(comparison.processes, "process", "processes"),
            comparison.from,
            comparison.pace,
            self.args.captured.device,
            profile.name,
            profile.hash,
            self.rules,
            comparison.text()
        )
    }

    fn json(&self) -> String {
        let mut members = Map::new();
        let blksim = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "seed": self.seed,
            "rules": self.rules,
            "machine": self.profile.name,
            "machine_hash": self.profile.hash,
            "device": self.args.captured.device,
            "set": self.args.captured.tune.set,
            "capture": self.capture(),
        });
        members.insert("blksim".to_owned(), blksim);
        let figures = serde_json::to_value(&self.comparison);
        if let Value::Object(figures) = figures.expect("a comparison has string keys") {
            members.extend(figures);
        }
        format!("{:#}\n", Value::Object(members))
    }

    /// The settings of a run are in each row, so that rows of several runs can be joined.
    fn csv(&self) -> String {
        let cells = [
            self.capture().join(" "),
            self.seed.to_string(),
            self.rules.to_owned(),
            self.profile.name.clone(),
            self.args.captured.device.clone(),
        ];
        self.comparison
            .to_csv(&["capture", "seed", "rules", "machine", "device"], &cells)
    }
    fn html(&self) -> String {
        let about = [
            format!("machine {}", self.profile.name),
            format!("kernel {}", self.rules),
            format!("device {}", self.args.captured.device),
            format!("seed {}", self.seed),
        ];
        let name = format!("Replay of {}", self.capture().join(" "));
        html::replay(&name, &about, &self.comparison, self.profile, &self.text())
    }
}
