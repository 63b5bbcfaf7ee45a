//! Captures replayed: the captured scheduler on the captured device must give the captured
//! latencies; other schedulers, devices, paces and points must run to the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use scenario::ProfileFacts;
use scenario::profile;
use scenario::replay::{
    CAPTURED, Captured, Comparison, PrioritySource, Wanted, fit, prioritise, read,
};
use sim::machine::{Outcome, Simulator};
use sim::profile::MachineProfile;
use sim::replay::{Arrivals, Pace, Point, Times};
use trace::blktrace::Options;
use trace::capture::CaptureDir;

/// Deterministic captures (one CPU whose clock counts instructions), how far the mean Q2C may be
/// off (parts per million), and how many I/Os may be issued at another place of the order.
///
/// What remains is CPU time: prices are those of another CPU, scaled by one factor. Three captures
/// show more of it: in dd05 and dd09 a request comes of age within one tick of a decision, and a
/// batch goes the other way round; in no02 two processes compete for tags, and which of two woken
/// tasks runs first is the CPU scheduler's choice, which is not modelled.
const DETERMINISTIC: [(&str, u64, u64); 16] = [
    ("dd01-defaults", 10_000, 0),
    ("dd02-batch1", 10_000, 0),
    ("dd03-expiry", 10_000, 0),
    ("dd04-starved8", 10_000, 0),
    ("dd05-prio-aging", 10_000, 40),
    ("dd06-prio", 10_000, 0),
    ("dd07-merges", 10_000, 0),
    ("dd08-nofront", 10_000, 0),
    ("dd09-waves", 10_000, 100),
    ("dd10-bigsizes", 10_000, 0),
    ("dd16-asyncdepth-stale", 10_000, 0),
    ("dd21-k612-defaults", 10_000, 0),
    ("dd22-k612-prio", 10_000, 0),
    ("dd23-k612-merges", 10_000, 0),
    ("no01-burst", 10_000, 0),
    ("no02-waves", 30_000, 100),
];

/// The same with the prices of the default machine, which is not the captured one: from C to the
/// next D it takes 1.5 us instead of 20.
const DEFAULT_MACHINE_PPM: u64 = 80_000;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces")
        .join(name)
}

fn profiles() -> Vec<MachineProfile> {
    let names = profile::names().into_iter();
    names.map(|name| profile::built_in(name).unwrap()).collect()
}

struct Run<'a> {
    capture: &'a Path,
    point: Point,
    pace: Pace,
    schedulers: &'a [&'a str],
    device: &'a str,
    machine: Option<&'a str>,
    /// Changes the arrivals before they are replayed.
    change: fn(&mut Arrivals),
}

impl<'a> Run<'a> {
    fn of(capture: &'a Path) -> Run<'a> {
        Run {
            capture,
            point: Point::Queue,
            pace: Pace::Open,
            schedulers: &[],
            device: CAPTURED,
            machine: None,
            change: |_| {},
        }
    }

    fn compare(&self) -> Comparison {
        let path = self.capture;
        let dir = CaptureDir::open(path).ok();
        let captured = dir.as_ref().map(|dir| Captured::new(dir, None).unwrap());
        let mut arrivals = read(&[path], Options::default(), self.point).unwrap();
        if let Some(dir) = &dir {
            prioritise(&mut arrivals, dir).unwrap();
        }
        (self.change)(&mut arrivals);
        let arrivals = Arc::new(arrivals);
        let mut comparison = Comparison::new(&arrivals, self.pace);
        let own = [captured.map_or("none", |captured| captured.scheduler().unwrap())];
        let schedulers = if self.schedulers.is_empty() {
            &own
        } else {
            self.schedulers
        };
        for scheduler in schedulers {
            let (times, notes) = self.simulate(&arrivals, captured.as_ref(), scheduler);
            comparison.add((*scheduler).to_string(), &arrivals, &times, notes);
        }
        comparison
    }

    fn simulate(
        &self,
        arrivals: &Arc<Arrivals>,
        captured: Option<&Captured<'_>>,
        scheduler: &str,
    ) -> (Vec<Times>, Vec<String>) {
        let profiles = profiles();
        let info: Vec<ProfileFacts<'_>> = profiles
            .iter()
            .map(|p| ProfileFacts {
                name: &p.name,
                cpus: p.cpus(),
            })
            .collect();
        let wanted = Wanted {
            scheduler: Some(scheduler),
            rules: None,
            device: self.device,
        };
        let (mut scenario, notes) =
            scenario::replay::scenario(arrivals, self.capture, captured, wanted, &info).unwrap();
        if let Some(machine) = self.machine {
            scenario = scenario.set(&format!("machine.profile={machine}")).unwrap();
        }
        let mut plan = scenario.plan(&info).unwrap();
        fit(&mut plan, arrivals);
        let profile = profiles
            .iter()
            .find(|p| p.name == plan.machine.profile)
            .unwrap();
        let own_device = self.device == CAPTURED;
        let mut simulator =
            Simulator::replaying(&plan, profile, arrivals, self.pace, own_device).unwrap();
        match simulator.run(|_| true) {
            Outcome::Finished => {}
            Outcome::Stalled(stall) => panic!("{}: {stall}", self.capture.display()),
        }
        if let Some(counts) = simulator.captured_counts() {
            assert!(counts.exact > 0);
        }
        (simulator.replayed().to_vec(), notes)
    }
}

#[test]
fn the_captured_scheduler_and_device_give_the_captured_latency_back() {
    println!("capture                  captured simulated  (us)  ppm off   issued elsewhere");
    for (name, ppm, elsewhere) in DETERMINISTIC {
        let path = folder(name);
        let comparison = Run::of(&path).compare();
        let [captured, simulated] = comparison.columns.as_slice() else {
            panic!("two columns")
        };
        let agreement = simulated.agreement.unwrap();
        println!(
            "{name:<22} {:>10} {:>9} {:>14} {:>12} of {}",
            captured.q2c.mean_ns / 1000,
            simulated.q2c.mean_ns / 1000,
            agreement.mean_off_ppm,
            agreement.issued - agreement.issued_in_order,
            agreement.issued,
        );
        assert_eq!(captured.q2c.count, simulated.q2c.count, "{name}");
        assert!(
            agreement.mean_off_ppm.unsigned_abs() <= ppm,
            "{name}: {agreement:?}"
        );
        assert!(
            agreement.issued - agreement.issued_in_order <= elsewhere,
            "{name}: {agreement:?}"
        );
        // D2C is the captured one, but for completions that wait for one another.
        let d2c = simulated.d2c.p50_ns.abs_diff(captured.d2c.p50_ns);
        assert!(d2c < 10_000, "{name}: D2C off by {d2c} ns");
    }
}

#[test]
fn the_machine_of_the_captures_is_nearer_than_the_default_one() {
    for name in [
        "dd01-defaults",
        "dd16-asyncdepth-stale",
        "dd23-k612-merges",
        "no01-burst",
    ] {
        let path = folder(name);
        let own = Run::of(&path).compare().columns[1].agreement.unwrap();
        let other = Run {
            machine: Some("ryzen-7950x"),
            ..Run::of(&path)
        }
        .compare();
        let other = other.columns[1].agreement.unwrap();
        assert!(
            other.mean_off_ppm.unsigned_abs() <= DEFAULT_MACHINE_PPM,
            "{name}: {other:?}"
        );
        assert!(own.mean_off_ppm.abs() < other.mean_off_ppm.abs(), "{name}");
    }
}

#[test]
fn a_wrong_scheduler_or_wrong_priorities_are_noticed() {
    // The check above could not fail if any scheduler gave the captured latencies.
    let path = folder("dd02-batch1");
    let none = Run {
        schedulers: &["none"],
        ..Run::of(&path)
    }
    .compare();
    let agreement = none.columns[1].agreement.unwrap();
    assert!(
        agreement.issued_in_order < agreement.issued / 2,
        "{agreement:?}"
    );
    let path = folder("dd06-prio");
    let level = |arrivals: &mut Arrivals| {
        let first = arrivals.ios[0].ioprio;
        arrivals.ios.iter_mut().for_each(|io| io.ioprio = first);
    };
    let flat = Run {
        change: level,
        ..Run::of(&path)
    }
    .compare();
    let agreement = flat.columns[1].agreement.unwrap();
    assert!(
        agreement.issued_in_order < agreement.issued / 2,
        "{agreement:?}"
    );
}

#[test]
fn several_schedulers_stand_side_by_side_and_the_text_is_the_same_each_time() {
    let path = folder("dd04-starved8");
    let run = || {
        Run {
            schedulers: &["none", "mq-deadline"],
            ..Run::of(&path)
        }
        .compare()
    };
    let comparison = run();
    let names: Vec<&str> = comparison.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["captured", "none", "mq-deadline"]);
    let text = comparison.text();
    assert_eq!(text, run().text());
    for wanted in [
        "Q2D",
        "D2C",
        "Q2C",
        "p99",
        "captured",
        "none",
        "mq-deadline",
        "Open loop:",
    ] {
        assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
    }
    let json = serde_json::to_string(&comparison).unwrap();
    assert_eq!(json, serde_json::to_string(&run()).unwrap());
}

#[test]
fn closed_loop_keeps_each_process_at_its_captured_depth() {
    for name in [
        "no02-waves",
        "dd09-waves",
        "m2-randread-none",
        "m4-sq4-mq-deadline",
    ] {
        let path = folder(name);
        let comparison = Run {
            pace: Pace::Closed,
            ..Run::of(&path)
        }
        .compare();
        let [captured, simulated] = comparison.columns.as_slice() else {
            panic!("two columns")
        };
        assert_eq!(captured.q2c.count, simulated.q2c.count, "{name}");
        assert!(comparison.text().contains("Closed loop:"));
    }
    // A device ten times as fast: the run gets shorter in closed loop, not in open loop.
    let path = folder("m2-randread-none");
    let fast = "null_blk,irqmode=2,completion_nsec=100000,submit_queues=2,hw_queue_depth=4";
    let span = |pace| {
        Run {
            pace,
            device: fast,
            ..Run::of(&path)
        }
        .compare()
        .columns[1]
            .elapsed_ns
    };
    assert!(span(Pace::Closed) < span(Pace::Open) * 3 / 4);
}

#[test]
fn replay_from_d_gives_requests_to_the_device_as_the_capture_did() {
    let path = folder("dd10-bigsizes");
    let run = Run {
        point: Point::Issue,
        schedulers: &["none"],
        ..Run::of(&path)
    };
    let comparison = run.compare();
    let [captured, simulated] = comparison.columns.as_slice() else {
        panic!("two columns")
    };
    // 289 D and C, with split bios; the time before D is not known.
    assert_eq!((captured.q2c.count, captured.d2c.count), (0, 289));
    assert_eq!(simulated.d2c.count, 289);
    let agreement = simulated.agreement.unwrap();
    assert!(
        agreement.mean_off_ppm.unsigned_abs() < 5_000,
        "{agreement:?}"
    );
    assert_eq!(agreement.issued_in_order, agreement.issued);
}

#[test]
fn multi_cpu_captures_with_eagain_and_flushes_are_replayed() {
    for (name, ios) in [
        ("m2-mix7030-none", 1000),
        ("m2-seqmerge-mq-deadline", 2000),
        ("sd-fsync-mq-deadline", 499),
        ("sd-fua-none", 176),
        ("sd-trim-none", 300),
    ] {
        let path = folder(name);
        for pace in [Pace::Open, Pace::Closed] {
            let comparison = Run {
                pace,
                ..Run::of(&path)
            }
            .compare();
            assert_eq!(comparison.ios, ios, "{name}");
            assert_eq!(comparison.columns[1].q2c.count, ios, "{name}");
        }
    }
    let turned_away = Run::of(&folder("m2-mix7030-none")).compare();
    assert!(
        turned_away
            .notes
            .iter()
            .any(|note| note.starts_with("528 I/Os: turned away"))
    );
}

#[test]
fn priorities_come_from_the_script_or_from_probes() {
    for (name, source, classes) in [
        ("dd06-prio", PrioritySource::Script, 3),
        ("m2-prio-mq-deadline", PrioritySource::Probes, 3),
        ("m2-seqmerge-none", PrioritySource::Default, 1),
    ] {
        let path = folder(name);
        let dir = CaptureDir::open(&path).unwrap();
        let mut arrivals = read(&[&path], Options::default(), Point::Queue).unwrap();
        assert_eq!(prioritise(&mut arrivals, &dir).unwrap(), source, "{name}");
        let found: std::collections::BTreeSet<_> =
            arrivals.ios.iter().map(|io| io.ioprio.class).collect();
        assert_eq!(found.len(), classes, "{name}: {found:?}");
    }
}

#[test]
fn bare_blktrace_files_are_replayed_with_what_they_show() {
    let temporary = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder("no01-burst")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.contains(".blktrace.") {
            std::fs::copy(&path, temporary.path().join(name)).unwrap();
        }
    }
    let comparison = Run::of(temporary.path()).compare();
    assert_eq!(comparison.columns[1].q2c.count, 101);
    assert!(
        comparison.columns[1]
            .notes
            .iter()
            .any(|note| note.contains("no queue.txt"))
    );
}

#[test]
fn lost_completions_are_counted_and_the_rest_is_replayed() {
    let temporary = tempfile::tempdir().unwrap();
    cut_completions(&folder("no01-burst"), temporary.path(), 3);
    let comparison = Run::of(temporary.path()).compare();
    let [captured, simulated] = comparison.columns.as_slice() else {
        panic!("two columns")
    };
    assert_eq!((captured.q2c.count, simulated.q2c.count), (98, 101));
    let said = |what: &str| comparison.notes.iter().any(|note| note.contains(what));
    assert!(
        said("3 I/Os: replayed, but without completion"),
        "{:?}",
        comparison.notes
    );
}

/// Writes a capture's trace again without its last `count` completions.
fn cut_completions(from: &Path, to: &Path, count: usize) {
    use trace::blktrace::{Action, Reader, Writer, WriterOptions};
    let mut reader = Reader::open(&[from], Options::default()).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        events.push(event);
    }
    let mut completions: Vec<usize> = (0..events.len())
        .filter(|&i| events[i].action == Action::Complete)
        .collect();
    let cut = completions.split_off(completions.len() - count);
    let device = events[0].device;
    let mut writer = Writer::create(to, "nullb0", device, 1, WriterOptions::default()).unwrap();
    for (index, event) in events.iter().enumerate() {
        if !cut.contains(&index) {
            writer.write(event).unwrap();
        }
    }
    writer.finish().unwrap();
}
