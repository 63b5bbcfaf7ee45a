//! t/io_uring: its submissions, its waits, and the price of its calls.

use blkmq::env::TraceAction;
use scenario::report::{Origin, Report};
use sim::machine::Simulator;
use sim::step::Component;

use crate::runs;

/// `-d128 -b512 -s32 -c32 -p1` on a fast drive, and changes to it. (Long enough that calls at the
/// edges of the measured time are no tenth of a cycle per I/O.)
fn text(more: &str) -> String {
    let mut job = vec![
        ("ioengine", "\"t/io_uring\""),
        ("bs", "512"),
        ("runtime", "\"20ms\""),
        ("ramp_time", "\"1ms\""),
        ("cpus_allowed", "\"0\""),
    ];
    let more: Vec<(&str, &str)> = more
        .split_whitespace()
        .filter_map(|option| option.split_once('='))
        .collect();
    job.retain(|(key, _)| more.iter().all(|(other, _)| key != other));
    job.extend(more);
    let lines: Vec<String> = job
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    format!(
        "[machine]\ncpus = 4\n[device]\ntype = \"nvme\"\npoll_queues = 1\nlatency_ns = 10000\n\
         channels = 51\n[[job]]\n{}",
        lines.concat()
    )
}

fn report(more: &str) -> Report {
    let plan = runs::plan_of(&text(more));
    let mut profile = runs::machine();
    // Not every call waits: it depends on how many completions one finds.
    profile.cycles.uring_wait = 0;
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{more}\n{}", stall.unwrap());
    simulator.settle();
    let origin = Origin::default();
    Report::new(origin, &plan, &profile, simulator.recorder(), None)
}

/// Cycles of a component an I/O.
fn cycles(report: &Report, component: Component) -> f64 {
    let mut work = report.work.iter();
    let found = work.find(|work| work.component == component.name());
    found.map_or(0.0, |work| work.cycles_per_io)
}

fn near(is: f64, wanted: f64) {
    let off = (is - wanted).abs();
    assert!(off <= 0.03 * wanted + 0.1, "{is} is not {wanted}");
}

#[test]
fn a_batch_is_one_system_call_polled_or_not() {
    let prices = runs::machine().cycles;
    for (options, batch) in [
        ("", 32.0),
        ("hipri=0", 32.0),
        ("iodepth_batch=1 iodepth_batch_complete_min=1", 1.0),
        ("iodepth_batch=8 iodepth_batch_complete_min=8", 8.0),
    ] {
        let report = report(options);
        near(
            cycles(&report, Component::Syscall),
            prices.syscall as f64 / batch,
        );
        let own = (prices.t_prepare + prices.t_reap) as f64;
        near(cycles(&report, Component::User), own);
    }
}

#[test]
fn the_depth_is_reached_and_never_passed() {
    for (options, depth) in [
        ("", 128),
        ("iodepth=8 iodepth_batch=4", 8),
        // The second call waits for all seven, with six.
        ("iodepth=7 iodepth_batch=3 iodepth_batch_complete_min=7", 6),
        ("iodepth=1", 1),
        ("hipri=0 iodepth=4 iodepth_batch=4", 4),
    ] {
        assert_eq!(report(options).device.depth_max, depth, "{options}");
    }
}

#[test]
fn what_is_registered_is_not_looked_up() {
    let prices = runs::machine().cycles;
    let engine = |options: &str| cycles(&report(options), Component::Engine);
    let registered = engine("");
    let lookup = prices.file_lookup as f64;
    near(engine("registerfiles=0") - registered, lookup);
    near(engine("register_ring=0") - registered, lookup / 32.0);
    let pinned = |options: &str| cycles(&report(options), Component::BlkMq);
    near(pinned("fixedbufs=0") - pinned(""), prices.pin_pages as f64);
}

#[test]
fn a_call_that_waits_for_more_than_is_in_flight_never_returns() {
    // 96 are in flight when the first call waits, for 128: 96 more would not fit.
    let options = "iodepth_batch=96 iodepth_batch_complete_min=128";
    let plan = runs::plan_of(&text(&format!("{options} hipri=0")));
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    let stall = runs::to_its_end(&mut simulator).unwrap().to_string();
    let message = "thread job0.0, in a call for 128 completions, waits for 96 I/O";
    assert!(stall.contains(message), "{stall}");
    // A ring that polls returns when no I/O is in flight.
    assert!(report(options).blksim.all_ios > 1000);
}

/// Sectors of the first 200 I/Os, and how many the device has.
fn sectors(options: &str, seed: u64) -> (Vec<u64>, u64) {
    let text = format!("seed = {seed}\n{}randrepeat = 0\n", text(options));
    let plan = runs::plan_of(&text);
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    assert!(runs::to_its_end(&mut simulator).is_none());
    simulator.settle();
    let trace = simulator.take_trace();
    let queued = trace
        .iter()
        .filter_map(|(.., point)| (point.action == TraceAction::Queue).then_some(point.sector.0));
    (queued.take(200).collect(), plan.disks[0].device.sectors)
}

#[test]
fn it_reads_in_order_where_it_is_reported() {
    let first: Vec<u64> = (0..200).collect();
    assert_eq!(sectors("rw=\"read\"", 1).0, first);
    assert_eq!(sectors("rw=\"read\"", 2).0, first, "nothing is drawn");
    let blocks: Vec<u64> = (0..200).map(|block| block * 8).collect();
    assert_eq!(sectors("rw=\"read\" bs=4096", 1).0, blocks);
}

#[test]
fn it_reads_anywhere_on_the_device_else() {
    for (options, block) in [("", 1), ("bs=4096", 8)] {
        let (random, device) = sectors(options, 1);
        assert_eq!(random.len(), 200);
        for &sector in &random {
            assert!(sector.is_multiple_of(block), "{sector} of {block}");
            assert!(sector + block <= device, "{sector} of {device}");
        }
        // 25 in each eighth of the device, give or take; few or none are read twice.
        for eighth in 0..8 {
            let within = device * eighth / 8..device * (eighth + 1) / 8;
            let count = random.iter().filter(|at| within.contains(at)).count();
            assert!((8..=50).contains(&count), "{count} in {within:?}");
        }
        let mut once = random.clone();
        once.sort_unstable();
        once.dedup();
        assert!(once.len() >= 195, "{} places", once.len());
        assert_eq!(random, sectors(options, 1).0, "the same seed");
        let other = sectors(options, 2).0;
        let same = random.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!(same <= 2, "{same} of another seed");
    }
}
