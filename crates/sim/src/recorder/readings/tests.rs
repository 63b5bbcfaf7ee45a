//! Records of values of schedulers.

use blkmq::elevator::SchedulerKind;
use blkmq::elevator::SubmitterGroup;
use blkmq::env::Counter;

use super::*;

const QUEUE: QueueId = QueueId(0);

/// Those of the scheduler with tokens.
fn with_tokens() -> Option<&'static SchedulerInfo> {
    let all = SchedulerKind::ALL.iter().filter_map(|kind| kind.info());
    all.into_iter().find(|info| !info.tokens.is_empty())
}

fn begun() -> Readings {
    let mut readings = Readings::default();
    readings.scheduler_is(QUEUE, with_tokens(), SimTime::ZERO);
    readings
}

fn percentile(numerator: u8) -> Probe {
    Probe::Percentile(Percentile {
        group: "READ",
        kind: "I/O",
        percentile: 90,
        numerator,
        denominator: 4,
        samples: 500,
    })
}

#[test]
fn sums_are_of_the_measured_time_and_curves_of_the_run() {
    let mut readings = begun();
    let depth = |depth| Probe::Depth {
        group: "READ",
        depth,
    };
    readings.note(SimTime(1000), QUEUE, depth(64));
    readings.note(SimTime(1500), QUEUE, percentile(8));
    readings.begin();
    readings.note(SimTime(3000), QUEUE, depth(32));
    readings.note(SimTime(3000), QUEUE, depth(48));
    readings.note(SimTime(4000), QUEUE, percentile(4));
    readings.note(SimTime(5000), QUEUE, percentile(5));
    readings.note(SimTime(5000), QUEUE, Probe::Throttled { group: "READ" });
    readings.finish(SimTime(6000));
    let read = &readings.groups[0];
    assert_eq!(
        (read.first, read.depth, read.least, read.most),
        (64, 48, 32, 64)
    );
    assert_eq!((read.changes, read.throttled), (2, 1));
    let expected = LatencyStats {
        kind: "I/O",
        percentile: 90,
        calculated: 2,
        within: 1,
        worst: 1250,
    };
    assert_eq!(read.latencies, [expected]);
    assert!(read.has_events() && !readings.groups[1].has_events());
    let levels: Vec<_> = readings.tracks[0].curve.values().flatten().collect();
    assert_eq!(levels, [256.0, 64.0, 64.0, 48.0, 48.0, 48.0, 48.0]);
}

#[test]
fn a_scheduler_that_goes_takes_its_levels_with_it() {
    let mut readings = begun();
    readings.scheduler_is(QUEUE, None, SimTime(2000));
    readings.scheduler_is(QUEUE, with_tokens(), SimTime(4000));
    readings.finish(SimTime(5000));
    let tokens = &readings.tracks[0];
    assert_eq!(
        (tokens.sample.group, tokens.sample.name().as_str()),
        ("READ", "tokens")
    );
    let all = Some(256.0);
    let levels: Vec<_> = tokens.curve.values().collect();
    assert_eq!(levels, [all, all, None, None, all, all]);
    readings.scheduler_is(QUEUE, None, SimTime(6000));
    readings.begin();
    assert!(readings.groups.is_empty());
}

#[test]
fn gauges_are_distinguished_by_group_and_number_and_bounded() {
    static SERVICE: Counter = Counter::new("service", CounterForm::Count, CounterUnit::Sectors);
    let mut readings = Readings::default();
    for number in (0..CURVES as u32 + 10).chain(0..2) {
        let reading = Reading {
            counter: &SERVICE,
            group: "bfq",
            which: queue(number),
            value: 8,
        };
        readings.note(SimTime(u64::from(number)), QUEUE, Probe::Reading(reading));
    }
    assert_eq!(readings.tracks.len(), CURVES);
    let sums = readings
        .tracks
        .iter()
        .map(|t| t.curve.values().flatten().sum());
    let sums: Vec<f64> = sums.collect();
    assert_eq!(sums[..3], [16.0, 16.0, 8.0]);
}

fn queue(number: u32) -> Which {
    Which::Queue {
        number,
        pid: 7,
        sync: true,
        cgroup: 0,
    }
}

#[test]
fn queues_are_named_as_kernels_name_them_in_blktrace() {
    let group = |path: &str| SubmitterGroup {
        path: path.to_owned(),
        parent: 0,
        weight: 100,
    };
    let groups = [group(""), group("x/y")];
    let name = |pid, sync, cgroup| {
        let which = Which::Queue {
            number: 3,
            pid,
            sync,
            cgroup,
        };
        let sample = CounterValue {
            of: Of::Counter("service"),
            group: "bfq",
            which,
            form: CounterForm::Count,
            unit: CounterUnit::Sectors,
            beside: None,
            value: 1,
        };
        sample.group_name(&groups)
    };
    assert_eq!(name(12, true, 0), "bfq12S");
    assert_eq!(name(12, false, 1), "x/y bfq12A #3");
    assert_eq!(name(-1, true, 0), "bfqSHARED-S #3");
}
