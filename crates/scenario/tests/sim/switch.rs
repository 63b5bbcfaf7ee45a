//! Changes of the scheduler under load: nothing is lost, each I/O ends, and the new scheduler
//! decides afterwards.

use std::path::Path;

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::CpuId;
use blkmq::time::SimTime;
use scenario::profile;
use scenario::report::{ChangeReport, Origin, Report};
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;

const PROFILE: &str = "ryzen-7950x";
const IOS: u64 = 4000;

fn plan(rules: &str, threads: u32, changes: &str) -> Result<Plan, String> {
    let text = format!(
        "[machine]\nprofile = \"{PROFILE}\"\n[queue]\nrules = \"{rules}\"\n\
         scheduler = \"mq-deadline\"\n[device]\ntype = \"null_blk\"\nirqmode = 2\n\
         completion_nsec = 100000\nhw_queue_depth = 8\n{changes}\n[[job]]\nrw = \"randread\"\n\
         bs = 4096\ndirect = 1\nioengine = \"io_uring\"\niodepth = 64\niodepth_batch = 8\n\
         numjobs = {threads}\nthread = 1\ncpus_allowed = \"0-{}\"\nnorandommap = 1\n\
         number_ios = {}\n",
        threads - 1,
        IOS / u64::from(threads)
    );
    let profile = profile::built_in(PROFILE).expect("a built-in profile");
    let info = [ProfileFacts {
        name: PROFILE,
        cpus: profile.cpus(),
    }];
    let scenario = Scenario::from_toml(Path::new("switch.toml"), &text);
    let plan = scenario.and_then(|scenario| scenario.plan(&info));
    plan.map_err(|error| error.to_string())
}

type Points = Vec<(SimTime, CpuId, u32, TracePoint)>;

fn run(plan: &Plan) -> (Report, Points) {
    let profile = profile::built_in(PROFILE).expect("a built-in profile");
    let mut simulator = Simulator::new(plan, &profile).expect("a machine of this plan");
    simulator.trace();
    let outcome = simulator.run(|_| true);
    assert!(matches!(outcome, Outcome::Finished), "{outcome:?}");
    simulator.settle();
    let trace = simulator.take_trace();
    let recorder = simulator.recorder();
    let report = Report::new(Origin::default(), plan, &profile, recorder, None);
    (report, trace)
}

const TO_NONE_AND_BACK: &str = "[[change]]\nat_us = 12000\nscheduler = \"none\"\n\
                                [[change]]\nat_us = 30000\nscheduler = \"mq-deadline\"\n";

/// Start and end of a change of the queue's scheduler, ns.
fn span(change: &ChangeReport) -> (u64, u64) {
    let begun = change.begun_ns.expect("the run came to it");
    (begun, begun + change.took_ns.expect("and to its end"))
}

/// Dispatches within a span of time, and how many of them overtake requests that were inserted
/// earlier.
fn inversions(trace: &Points, from: u64, to: u64) -> (usize, usize) {
    let (mut waiting, mut dispatched, mut inverted) = (Vec::new(), 0, 0);
    for (at, _, _, point) in trace {
        if at.0 < from || at.0 > to {
            continue;
        }
        match point.action {
            TraceAction::Insert => waiting.push(point.sector),
            TraceAction::Issue => {
                dispatched += 1;
                let place = waiting.iter().position(|&sector| sector == point.sector);
                if let Some(place) = place {
                    waiting.remove(place);
                    inverted += usize::from(place > 0);
                }
            }
            _ => {}
        }
    }
    (dispatched, inverted)
}

#[test]
fn the_new_scheduler_decides_and_no_io_is_lost() {
    for rules in ["v6.1", "v6.12"] {
        let plan = plan(rules, 1, TO_NONE_AND_BACK).unwrap_or_else(|error| panic!("{error}"));
        let (report, trace) = run(&plan);
        assert_eq!(report.jobs[0].read.total_ios, IOS, "{rules}");
        assert_eq!(report.jobs[0].total_err, 0, "{rules}");
        let [first, second] = [span(&report.changes[0]), span(&report.changes[1])];
        // A synchronize_rcu() to the next tick, and the drain of at most one more.
        for (begun, ended) in [first, second] {
            let took = ended - begun;
            assert!((1..9_000_000).contains(&took), "{rules}: {took} ns");
        }
        let end = u64::MAX;
        for (from, to, sorts) in [
            (0, first.0, true),
            (first.1, second.0, false),
            (second.1, end, true),
        ] {
            let (dispatched, inverted) = inversions(&trace, from, to);
            assert!(dispatched > 300, "{rules}: {dispatched} from {from}");
            assert_eq!(inverted > 50, sorts, "{rules}: {inverted} from {from}");
            assert!(sorts || inverted == 0, "{rules}: {inverted} from {from}");
        }
        // While it is exchanged, nothing is with the device.
        let quiet = |&(_, ended): &(u64, u64)| {
            let count = |action: TraceAction| {
                let before = trace.iter().filter(|(at, ..)| at.0 <= ended - 50_000);
                let of_requests = before.filter(|(.., point)| point.of_request);
                of_requests.filter(|(.., p)| p.action == action).count()
            };
            count(TraceAction::Issue) == count(TraceAction::Complete)
        };
        assert!([first, second].iter().all(quiet), "{rules}");
    }
}
