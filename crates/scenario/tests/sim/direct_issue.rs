//! Which requests of a plug are inserted, and which go to the driver at once, by kernel.

use blkmq::env::TraceAction;
use blkmq::request::QueueId;
use blkmq::rules::{Rules, StoppedIssue};
use blkmq::time::SimTime;
use sim::machine::Simulator;

use crate::runs;

/// Insertions and issues of 32 reads that are submitted so many in one call.
fn inserted(rules: Rules, submit_queues: u16, batch: u16) -> (usize, usize) {
    let text = format!(
        "[device]\ntype = \"null_blk\"\nsubmit_queues = {submit_queues}\npoll_queues = 0\n\
         [queue]\nscheduler = \"none\"\n\
         [[job]]\nname = \"one\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n\
         iodepth = {batch}\niodepth_batch_submit = {batch}\n\
         iodepth_batch_complete_min = {batch}\n\
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
        assert_eq!(inserted(old, 1, 4), (32, 32), "{}", old.name);
        // The plug holds one: each later one sends it on, and the last is inserted.
        assert_eq!(inserted(old, 2, 4), (8, 32), "{}", old.name);
        // A single request has a plug, too.
        assert_eq!(inserted(old, 2, 1), (32, 32), "{}", old.name);
    }
    for new in [Rules::v6_1(), Rules::v6_12()] {
        assert_eq!(inserted(new, 1, 4), (0, 32), "{}", new.name);
        assert_eq!(inserted(new, 2, 4), (0, 32), "{}", new.name);
        assert_eq!(inserted(new, 2, 1), (0, 32), "{}", new.name);
    }
}

/// Requests that a device of two hctxs gets while it is suspended, from threads without a plug.
fn issued_while_suspended(stopped_issue: StoppedIssue) -> usize {
    let mut plan = runs::plan_of(
        "[queue]\nrules = \"v4.6\"\nscheduler = \"none\"\n\
         [device]\ntype = \"null_blk\"\npoll_queues = 0\n\
         [mapped]\nuse_blk_mq = 1\ndm_mq_nr_hw_queues = 2\n\
         table = \"0 8000 multipath 0 0 1 1 round-robin 0 1 1 nullb0 1\"\n\
         suspend = [{ at_us = 100, resume_us = 900 }]\n\
         [[job]]\nname = \"two\"\nrw = \"randread\"\ndirect = 1\nioengine = \"psync\"\nnumjobs = 2\n\
         runtime = \"2ms\"\ntime_based = true\nnorandommap = true\ncpus_allowed = \"0-1\"\n\
         cpus_allowed_policy = \"split\"\n",
    );
    plan.disks[0].queue.rules.stopped_issue = stopped_issue;
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    let suspended = simulator.recorder().suspensions[0].suspended;
    let from = suspended.expect("the run continues after it");
    let points = simulator.take_trace();
    let within = |time: SimTime| from < time && time < SimTime(900_000);
    let issued = points.iter().filter(|(time, .., point)| {
        let own = point.action == TraceAction::Issue && point.queue == QueueId(0);
        own && within(*time)
    });
    issued.count()
}

/// Up to 4.9 direct issue does not see that an hctx is stopped: a suspended device continues.
#[test]
fn direct_issue_does_not_see_a_stopped_hctx_in_4_6() {
    assert!(issued_while_suspended(StoppedIssue::Unseen) > 10);
    assert_eq!(issued_while_suspended(StoppedIssue::Insert), 0);
    assert_eq!(Rules::v4_6().stopped_issue, StoppedIssue::Unseen);
}
