//! Captures replayed: the captured scheduler on the captured device must give the captured
//! latencies back; other schedulers and paces must run to the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sim::machine::{Outcome, Simulator};
use sim::profile::MachineProfile;
use sim::replay::{Arrivals, CAPTURED, Captured, Comparison, Pace, Point, fit};
use sim::scenario::ProfileFacts;
use trace::blktrace::Options;
use trace::capture::CaptureDir;

/// Captures whose every event is ordered by one CPU whose clock counts instructions.
const DETERMINISTIC: [&str; 16] = [
    "dd01-defaults",
    "dd02-batch1",
    "dd03-expiry",
    "dd04-starved8",
    "dd05-prio-aging",
    "dd06-prio",
    "dd07-merges",
    "dd08-nofront",
    "dd09-waves",
    "dd10-bigsizes",
    "dd16-asyncdepth-stale",
    "dd21-k612-defaults",
    "dd22-k612-prio",
    "dd23-k612-merges",
    "no01-burst",
    "no02-waves",
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

/// A replay to be made.
struct Run<'a> {
    capture: &'a str,
    point: Point,
    pace: Pace,
    schedulers: &'a [&'a str],
    device: &'a str,
}

impl<'a> Run<'a> {
    fn of(capture: &'a str) -> Run<'a> {
        Run { capture, point: Point::Queue, pace: Pace::Open, schedulers: &[], device: CAPTURED }
    }

    fn compare(&self) -> Comparison {
        let path = folder(self.capture);
        let dir = CaptureDir::open(&path).unwrap();
        let captured = Captured::new(&dir, None).unwrap();
        let mut arrivals = Arrivals::read(&[&path], Options::default(), self.point).unwrap();
        arrivals.prioritise(&dir).unwrap();
        let arrivals = Arc::new(arrivals);
        let profile = match std::env::var("PROF") { Ok(f) => MachineProfile::parse(&std::fs::read_to_string(f).unwrap()).unwrap(), Err(_) => MachineProfile::built_in("ryzen-7950x").unwrap() };
        let facts = [ProfileFacts { name: &profile.name, cpus: profile.cpus() }];
        let mut comparison = Comparison::new(&arrivals, self.pace);
        let own = [captured.scheduler().unwrap()];
        let schedulers = if self.schedulers.is_empty() { &own } else { self.schedulers };
        for scheduler in schedulers {
            let (scenario, notes) = arrivals
                .scenario(&path, Some(&captured), Some(scheduler), self.device, &facts)
                .unwrap();
            let mut plan = scenario.set(&format!("machine.profile={}", profile.name)).unwrap().plan(&facts).unwrap();
            fit(&mut plan, &arrivals);
            let own_device = self.device == CAPTURED;
            let simulator =
                Simulator::replaying(&plan, &profile, &arrivals, self.pace, own_device);
            let mut simulator = simulator.unwrap();
            match simulator.run(|_| true) {
                Outcome::Finished => {}
                Outcome::Stalled(stall) => panic!("{}: {stall}", self.capture),
            }
            if std::env::var("CAP").as_deref() == Ok(self.capture) {
                let mut a: Vec<usize> = (0..arrivals.ios.len()).collect();
                let mut b = a.clone();
                a.sort_by_key(|&i| arrivals.ios[i].captured.issued);
                b.sort_by_key(|&i| simulator.replayed()[i].issued);
                let mut shown = 0;
                for (x, y) in a.iter().zip(&b) {
                    if x != y && shown < 40 { shown += 1; let f = |i: usize| format!("{i} {:?} {:?}+{} {:?}", arrivals.ios[i].op, arrivals.ios[i].sector.0, arrivals.ios[i].sectors.0, arrivals.ios[i].ioprio);
                        println!("cap {} at {} q {} | sim {} at {} q {}", f(*x), arrivals.ios[*x].captured.issued.0, arrivals.ios[*x].captured.queued.0, f(*y), simulator.replayed()[*y].issued.0, simulator.replayed()[*y].queued.0); }
                }
            }
            comparison.add((*scheduler).to_string(), &arrivals, simulator.replayed(), notes);
        }
        comparison
    }
}

#[test]
fn the_captured_scheduler_and_device_give_the_captured_latency_back() {
    let mut table = String::new();
    for capture in DETERMINISTIC {
        let comparison = Run::of(capture).compare();
        let [captured, simulated] = comparison.columns.as_slice() else { panic!("two columns") };
        let agreement = simulated.agreement.unwrap();
        table.push_str(&format!(
            "{capture:<22} {:>9} {:>9} {:>7} ppm  off p50 {:>7} p99 {:>8} max {:>8} us  order {}/{}\n",
            captured.q2c.mean_ns / 1000,
            simulated.q2c.mean_ns / 1000,
            agreement.mean_off_ppm,
            agreement.off.p50_ns / 1000,
            agreement.off.p99_ns / 1000,
            agreement.off.max_ns / 1000,
            agreement.issued_in_order,
            agreement.issued,
        ));
    }
    println!("{table}");
    if let Ok(c) = std::env::var("CAP") {
        let run = Run::of(&c);
        let comparison = run.compare();
        println!("{}", comparison.text());
    }
}
