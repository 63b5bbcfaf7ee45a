//! Several devices in one run: records distinguish them.

use blkmq::env::TraceAction;
use blkmq::request::QueueId;
use sim::machine::Simulator;

use crate::runs;

/// Trace points name their queue: each disk's requests are its own.
#[test]
fn trace_points_name_the_disk() {
    let plan = runs::plan_of(
        "[device]\ntype = \"null_blk\"\nnr_devices = 2\nirqmode = 2\n[[job]]\nname = \"p\"\n\
         filename = \"/dev/nullb0:/dev/nullb1\"\nrw = \"randread\"\ndirect = 1\n\
         ioengine = \"io_uring\"\nnorandommap = true\ntime_based = true\nruntime = \"4ms\"\n\
         iodepth = 4\n",
    );
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    assert!(runs::to_its_end(&mut simulator).is_none());
    let points = simulator.take_trace();
    for disk in 0..2 {
        let count = |action: TraceAction| {
            let of_disk = points
                .iter()
                .filter(|(_, _, _, p)| p.queue == QueueId(disk));
            of_disk.filter(|(_, _, _, p)| p.action == action).count()
        };
        let queued = count(TraceAction::Queue);
        assert!(queued > 50);
        assert_eq!(queued, count(TraceAction::Issue));
        assert_eq!(queued, count(TraceAction::Complete));
    }
}
