//! A softirq that a worker of kblockd raises: ksoftirqd comes behind the worker.

use sim::machine::Simulator;
use sim::report::{Origin, Report, SwitchesReport};

use crate::runs;

/// 4.5 with one path: clones run in kblockd's workers, and second ends in the block softirq.
fn switches(submit_queues: u16) -> (SwitchesReport, u64) {
    let text = format!(
        "[queue]\nrules = \"v4.5\"\nscheduler = \"none\"\n\
                [device]\ntype = \"null_blk\"\npoll_queues = 0\nsubmit_queues = {submit_queues}\n\
                [mapped]\nuse_blk_mq = 1\n\
                table = \"0 8388608 multipath 0 0 1 1 service-time 0 1 2 nullb0 1 1\"\n\
                [[job]]\nname = \"one\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n\
                iodepth = 32\nnumjobs = 8\nnumber_ios = 400\nnorandommap = true\n\
                cpus_allowed = \"0-7\"\ncpus_allowed_policy = \"split\"\n"
    );
    let (plan, machine) = (runs::plan_of(&text), runs::machine());
    let mut simulator = Simulator::new(&plan, &machine).unwrap();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    simulator.settle();
    let recorder = simulator.recorder();
    let ios = recorder.jobs.iter().flat_map(|job| &job.directions);
    let ios = ios.map(|direction| direction.ios).sum();
    let report = Report::new(Origin::default(), &plan, &machine, recorder, None);
    (report.context_switches.expect("a mapped device"), ios)
}

/// It has the CPU when the worker sleeps: not once where the worker has always something to do, and
/// seldom else. If it came before the worker, it would do so behind most items.
#[test]
fn it_waits_until_a_worker_sleeps() {
    for (submit_queues, most) in [(1, 0), (4, 1000)] {
        let (switches, ios) = switches(submit_queues);
        assert_eq!(ios, 3200);
        assert!(switches.kworker > 100, "{switches:?}");
        assert!(switches.ksoftirqd <= most, "{switches:?}");
        assert_eq!(switches.ksoftirqd > 0, most > 0, "{switches:?}");
    }
}
