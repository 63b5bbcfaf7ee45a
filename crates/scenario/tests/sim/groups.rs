//! Sections that are reported together: one of them may begin later than the others.

use scenario::report::{Origin, Report};
use sim::machine::Simulator;

use crate::runs;

/// fio divides by the longest runtime of a thread (stat.c, sum_thread_stats()).
#[test]
fn rates_of_a_group_are_over_the_longest_thread() {
    let job = |more: &str| {
        format!(
            "[[job]]\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\niodepth = 1\n\
             norandommap = true\ntime_based = true\ngroup_reporting = true\n{more}\n"
        )
    };
    let (early, late) = (
        job("runtime = \"2ms\""),
        job("startdelay = \"1ms\"\nruntime = \"1ms\""),
    );
    let report = |jobs: &str| {
        let plan = runs::plan_of(&format!(
            "[queue]\nscheduler = \"none\"\n[device]\ntype = \"null_blk\"\nirqmode = 2\n\
             completion_nsec = 10000\nsubmit_queues = 2\npoll_queues = 0\n{jobs}"
        ));
        let machine = runs::machine();
        let mut simulator = Simulator::new(&plan, &machine).unwrap();
        assert!(runs::to_its_end(&mut simulator).is_none());
        let recorder = simulator.recorder();
        Report::new(Origin::default(), &plan, &machine, recorder, None)
    };
    let alone = report(&early);
    let both = report(&format!("{early}{late}"));
    assert_eq!(both.jobs.len(), 1);
    assert_eq!(
        (alone.jobs[0].job_runtime, both.jobs[0].job_runtime),
        (2, 2)
    );
    let [alone, both] = [&alone, &both].map(|report| report.jobs[0].read.iops);
    // Half as many I/Os more, in the same time.
    assert!((1.4..1.6).contains(&(both / alone)), "{alone}, {both}");
}
