use std::path::Path;

use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::profile::MachineProfile;

use super::{Bench, Calibration, Component, Costs, Error, Measured, Measurements, Run, Simulated};
use crate::fleet::Fleet;

/// One process on one core, long enough that counts are steady.
const ONE: &str = r#"
[machine]
profile = "xeon-10c"
[queue]
rules = "v6.1"
inline_runs = true
[device]
type = "nvme"
latency_ns = 60000
channels = 47
[[job]]
name = "one"
rw = "randread"
bs = "4k"
ioengine = "io_uring"
iodepth = 64
time_based = true
runtime = "4ms"
cpus_allowed = "0"
"#;

fn calibrate(base: &MachineProfile, runs: &[Run]) -> Result<Calibration, Error> {
    super::calibrate(base, runs, "file.toml", &Fleet::alone()?)
}

fn simulate(profile: &MachineProfile, run: &Run) -> Result<Simulated, Error> {
    let fleet = &Fleet::alone()?;
    let input = "file.toml";
    Bench { input, fleet }.simulate(profile, run)
}

fn run(scheduler: &str, profile: &MachineProfile) -> Run {
    let scenario = Scenario::from_toml(Path::new("one.toml"), ONE).unwrap();
    let scenario = scenario.set(&format!("queue.scheduler={scheduler}"));
    let info = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    Run {
        name: scheduler.to_owned(),
        plan: scenario.unwrap().plan(&[info]).unwrap(),
        measured: Measured::default(),
    }
}

/// The measurements that a machine of this profile would give.
fn measure(truth: &MachineProfile, run: &mut Run) {
    let simulated = simulate(truth, run).unwrap();
    run.measured = Measured::new(Some(simulated.iops), None);
    for (component, cycles) in Component::ALL.into_iter().zip(simulated.cycles()) {
        if cycles > 0.0 {
            run.measured.set_cycles(component, cycles);
        }
    }
}

#[test]
fn measurements_of_a_known_profile_give_its_constants_again() {
    let base = profile::built_in("xeon-10c").unwrap();
    let mut truth = base.clone();
    let mut costs = Costs::of(&base).unwrap();
    let factors = [1.6, 0.7, 1.3, 2.1, 0.8, 1.9, 1.4, 1.7, 1.25, 0.6, 1.8, 0.9];
    costs.scale(&factors);
    costs.write(&mut truth);
    let mut runs = [run("none", &base), run("mq-deadline", &base)];
    for run in &mut runs {
        measure(&truth, run);
    }
    let found = calibrate(&base, &runs).unwrap();
    let (truth, found_costs) = (
        Costs::of(&truth).unwrap(),
        Costs::of(&found.profile).unwrap(),
    );
    let of_runs = simulate(&found.profile, &runs[1]).unwrap();
    for (step, sum) in of_runs.spent.steps() {
        let (want, got) = (truth.steps[step as usize], found_costs.steps[step as usize]);
        let off = (got / want - 1.0).abs();
        // Those of a few cycles are rounded to whole ones.
        assert!(
            sum.count < 100 || off < 0.05 || (got - want).abs() <= 1.0,
            "{step:?}: {want} became {got}"
        );
    }
    for residual in &found.residuals {
        let ratio = residual.simulated / residual.measured;
        assert!((0.97..1.03).contains(&ratio), "{residual:?}");
    }
}

/// A run that does not fit is compared, and its figures change nothing.
#[test]
fn what_is_only_compared_is_predicted() {
    let base = profile::built_in("xeon-10c").unwrap();
    let mut runs = ["none", "kyber", "bfq"].map(|scheduler| run(scheduler, &base));
    for run in &mut runs {
        measure(&base, run);
    }
    let costs = |found: &Calibration| Costs::of(&found.profile).unwrap().labels;
    let alone = calibrate(&base, &runs[..1]).unwrap();
    for run in &mut runs[1..] {
        run.measured.compared = true;
        run.measured.set_cycles(Component::Scheduler, 3e3);
    }
    let found = calibrate(&base, &runs).unwrap();
    assert_eq!(costs(&found), costs(&alone));
    let compared = |residual: &&super::Residual| residual.run == "bfq";
    assert!(found.residuals.iter().filter(compared).count() > 5);
    runs[1].measured.compared = false;
    let fitted = calibrate(&base, &runs).unwrap();
    assert_ne!(costs(&fitted), costs(&alone));
}

#[test]
fn a_pinned_constant_is_found_from_throughput() {
    let base = profile::built_in("xeon-10c").unwrap();
    let mut truth = base.clone();
    truth.cycles.kernel_rest = 3 * base.cycles.kernel_rest;
    let mut runs = [run("none", &base)];
    let iops = simulate(&truth, &runs[0]).unwrap().iops;
    runs[0].measured = Measured::new(Some(iops), Some("kernel_rest".to_owned()));
    let found = calibrate(&base, &runs).unwrap().profile.cycles.kernel_rest as f64;
    let off = found / truth.cycles.kernel_rest as f64 - 1.0;
    assert!(off.abs() < 0.05, "{found}");
}

#[test]
fn one_factor_on_all_costs_is_found_from_throughput() {
    let base = profile::built_in("xeon-10c").unwrap();
    let mut truth = base.clone();
    let mut costs = Costs::of(&base).unwrap();
    costs.scale(&[1.7; Component::ALL.len()]);
    costs.write(&mut truth);
    let mut runs = [run("mq-deadline", &base)];
    let iops = simulate(&truth, &runs[0]).unwrap().iops;
    runs[0].measured = Measured::new(Some(iops), Some("all".to_owned()));
    let found = calibrate(&base, &runs).unwrap().profile.cycles.uring_issue as f64;
    let off = found / truth.cycles.uring_issue as f64 - 1.0;
    assert!(off.abs() < 0.05, "{found}");
}

#[test]
fn a_throughput_out_of_reach_is_an_error_not_a_fit() {
    let base = profile::built_in("xeon-10c").unwrap();
    for (iops, pins) in [(1e12, "all"), (1.0, "kernel_rest")] {
        let mut runs = [run("none", &base)];
        runs[0].measured = Measured::new(Some(iops), Some(pins.to_owned()));
        let error = calibrate(&base, &runs).unwrap_err().to_string();
        assert!(error.contains("cannot be reached"), "{error}");
    }
}

#[test]
fn bad_measurements_are_named() {
    let cases = [
        ("base = \"xeon-10c\"\nrun = []", "there is no [[run]]"),
        (
            "base = \"x\"\n[[run]]\nname = \"a\"\nscenario = \"s\"",
            "run a: neither iops nor cycles_per_io",
        ),
        (
            "base = \"x\"\n[[run]]\nname = \"a\"\nscenario = \"s\"\niops = 0.0",
            "run a: iops must be positive",
        ),
        (
            "base = \"x\"\n[[run]]\nname = \"a\"\nscenario = \"s\"\ncycles_per_io = { usr = 5.0 }",
            "cycles_per_io.usr: no such component",
        ),
        (
            "base = \"x\"\n[[run]]\nname = \"a\"\nscenario = \"s\"\ncycles_per_io = { user = -1.0 }",
            "must not be negative",
        ),
        (
            "base = \"x\"\n[[run]]\nname = \"a\"\nscenario = \"s\"\niops = 5.0\nfits = false",
            "no [[run]] fits",
        ),
        (
            "base = \"x\"\n[[run]]\nname = \"a\"\nscenario = \"s\"\niops = 5.0\nfits = false\n\
             pins = \"all\"",
            "run a: pins: a run that does not fit fixes nothing",
        ),
    ];
    for (text, what) in cases {
        let error = Measurements::parse(text).unwrap_err();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn a_pin_that_no_profile_has_is_an_error() {
    let base = profile::built_in("xeon-10c").unwrap();
    let mut runs = [run("none", &base)];
    runs[0].measured = Measured::new(Some(1e5), Some("lock_hand".to_owned()));
    let error = calibrate(&base, &runs).unwrap_err().to_string();
    assert!(error.contains("nor a step of [cycles]"), "{error}");
}
