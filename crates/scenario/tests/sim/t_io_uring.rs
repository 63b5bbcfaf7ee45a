//! t/io_uring: the places that it reads.

use blkmq::env::TraceAction;
use sim::machine::Simulator;

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
