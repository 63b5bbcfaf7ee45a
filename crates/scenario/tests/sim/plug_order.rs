//! The order in which an NVMe drive gets a plug: in the block layer's trace, and in the drive.

use blkmq::env::TraceAction;
use sim::machine::Simulator;

use crate::runs;

/// Sectors of all G, of all D and of all C, in the order of their times.
fn run(rules: &str) -> [Vec<u64>; 3] {
    let plan = runs::plan_of(&format!(
        "[machine]\ncpus = 2\n[queue]\nrules = \"{rules}\"\nscheduler = \"none\"\n\
         [device]\ntype = \"nvme\"\nlatency_ns = 100000\nchannels = 1\n\
         [[job]]\nname = \"j\"\nrw = \"randread\"\nbs = \"4k\"\nioengine = \"io_uring\"\ndirect = 1\n\
         iodepth = 4\niodepth_batch = 4\niodepth_batch_complete = 4\nnumber_ios = 12\n\
         size = \"1m\"\n"
    ));
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    assert!(runs::to_its_end(&mut simulator).is_none());
    let trace = simulator.take_trace();
    let actions = [
        TraceAction::GetRq,
        TraceAction::Issue,
        TraceAction::Complete,
    ];
    actions.map(|action| {
        let mut points: Vec<_> = trace
            .iter()
            .filter(|point| point.3.action == action)
            .collect();
        points.sort_by_key(|point| point.0);
        points.iter().map(|point| point.3.sector.0).collect()
    })
}

/// v6.1 prepares the newest request first, and turns the list round before it rings the doorbell.
#[test]
fn a_stack_is_issued_newest_first_and_served_oldest_first() {
    let [came, issued, ended] = run("v6.12");
    assert_eq!(came.len(), 12);
    assert_eq!([&issued, &ended], [&came; 2]);
    let [came, issued, ended] = run("v6.1");
    let by_four = came.chunks(4).flat_map(|four| four.iter().rev().copied());
    assert_eq!(issued, by_four.collect::<Vec<_>>());
    assert_eq!(ended, came);
}
