//! Which requests of a plug are inserted, and which go to the driver at once, from kernel to
//! kernel.

use blkmq::env::TraceAction;
use blkmq::rules::Rules;
use sim::machine::Simulator;

use crate::runs;

/// Insertions and issues of eight plugs of four reads each.
fn inserted(rules: Rules, submit_queues: u16) -> (usize, usize) {
    let text = format!(
        "[device]\ntype = \"null_blk\"\nsubmit_queues = {submit_queues}\npoll_queues = 0\n\
         [queue]\nscheduler = \"none\"\n\
         [[job]]\nname = \"one\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n\
         iodepth = 4\niodepth_batch_submit = 4\niodepth_batch_complete_min = 4\n\
         number_ios = 32\nnorandommap = true\ncpus_allowed = \"0\"\n"
    );
    let mut plan = runs::plan_of(&text);
    plan.disks[0].queue.rules = rules;
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    let points = simulator.take_trace();
    let count = |action| {
        points
            .iter()
            .filter(|point| point.3.action == action)
            .count()
    };
    (count(TraceAction::Insert), count(TraceAction::Issue))
}

#[test]
fn a_plug_is_inserted_or_issued_as_the_kernel_does() {
    for old in [Rules::v4_5(), Rules::v4_6(), Rules::v4_12()] {
        // blk_sq_make_request(): all of them.
        assert_eq!(inserted(old, 1), (32, 32), "{}", old.name);
        // The plug holds one: each that follows sends it on, and the last is inserted.
        assert_eq!(inserted(old, 2), (8, 32), "{}", old.name);
    }
    for new in [Rules::v6_1(), Rules::v6_12()] {
        assert_eq!(inserted(new, 1), (0, 32), "{}", new.name);
        assert_eq!(inserted(new, 2), (0, 32), "{}", new.name);
    }
}
