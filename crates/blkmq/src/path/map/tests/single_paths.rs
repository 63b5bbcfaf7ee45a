//! The same over a path of the single-queue kind: its clones go around its scheduler, straight to
//! its driver's list.

use super::*;
use crate::rules::SingleClones;

/// Over a queue that its driver has run at each end, with so many requests of each kind.
fn bench(rules: Rules, nr_requests: u32) -> Bench {
    let own = rules.of_old_paths().expect("it has such queues");
    let path = QueueSettings {
        single: Some(SingleSettings {
            depth: 8,
            end_runs: EndRuns::Always,
        }),
        ..QueueSettings::plain(own, SchedulerKind::Noop, nr_requests)
    };
    Bench::over(rules, path, 8)
}

fn clones(rules: Rules) -> SingleClones {
    let old = rules.device_mapper.requests.old_top;
    old.expect("it has such a queue").clones
}

/// Requests that the path's queue counts, and those with its driver.
fn of_path(bench: &Bench) -> (u32, u32) {
    let single = bench.mq.queue(PATH).single.as_ref().expect("of that kind");
    let state = single.state.held(CpuId(0));
    (state.limits.allocated(), state.with_driver())
}

#[test]
fn a_clone_goes_to_the_drivers_list_of_its_path_and_comes_back() {
    for rules in Rules::MAPPED {
        let mut bench = bench(rules, 4);
        assert_eq!(bench.submit(0), "Q G I D", "{}", rules.name);
        assert_eq!(bench.map(), "a i d", "{}", rules.name);
        let counted = u32::from(clones(rules) == SingleClones::OfPath);
        assert_eq!(of_path(&bench), (counted, 1), "{}", rules.name);
        assert_eq!(bench.kicks(), [], "the thread has run the queue itself");
        assert_eq!(bench.end(Status::Ok), "c C | C", "{}", rules.name);
        assert_eq!(bench.on.ended, [Status::Ok]);
        assert_eq!(bench.kicks(), [(TOP, Duration::ZERO)]);
        assert_eq!((bench.in_flight(), of_path(&bench)), ((0, 0), (0, 0)));
    }
}

/// The path's queue has as many requests as its limits say, where clones are such ones.
#[test]
fn a_path_without_a_request_has_the_request_go_back() {
    for rules in Rules::MAPPED {
        let mut bench = bench(rules, 2);
        for sector in [0, 80, 160, 240] {
            bench.submit(sector);
        }
        let letters: Vec<String> = (0..4).map(|_| bench.map()).collect();
        let last = match clones(rules) {
            SingleClones::OfDevice => "a i d",
            SingleClones::OfPath => "R",
        };
        assert_eq!(letters, ["a i d", "a i d", "a i d", last], "{}", rules.name);
        let kicks = match last {
            "R" => vec![(TOP, Duration::ZERO)],
            _ => vec![],
        };
        assert_eq!(bench.kicks(), kicks, "{}", rules.name);
    }
}

/// An error that the driver tells at once ends the clone within its function.
#[test]
fn a_clone_that_is_refused_for_good_ends_there() {
    for rules in Rules::MAPPED {
        let mut bench = bench(rules, 4);
        bench.tell(Message::QueueIfNoPath(false));
        bench.submit(0);
        bench.on.answers.push(Answer::Error(Status::IoError));
        bench.kicks();
        assert_eq!(bench.map(), "a i d c", "{}", rules.name);
        assert_eq!(of_path(&bench).1, 0, "{}", rules.name);
        let rq = bench.on.completed.remove(0);
        let frame = bench.mq.ends(TOP, rq, Status::Ok);
        assert_eq!(bench.run(frame), "C", "{}", rules.name);
        assert_eq!(bench.on.ended, [Status::IoError], "{}", rules.name);
        assert_eq!((bench.in_flight(), of_path(&bench)), ((0, 0), (0, 0)));
    }
}

/// Up to 4.10 a request has its clone before it has a path, and so its end runs the queue also if
/// it never had one.
#[test]
fn the_end_of_what_is_killed_unmapped_runs_the_queue_where_it_had_a_clone() {
    for rules in Rules::MAPPED {
        let mut bench = bench(rules, 4);
        bench.submit(0);
        bench.tell(Message::QueueIfNoPath(false));
        bench.tell(Message::Fail(PathId(0)));
        bench.kicks();
        bench.map();
        let rq = bench.on.completed.remove(0);
        let frame = bench.mq.ends(TOP, rq, Status::Ok);
        bench.run(frame);
        assert_eq!(bench.on.ended, [Status::IoError], "{}", rules.name);
        let runs = match clones(rules) {
            SingleClones::OfDevice => vec![(TOP, Duration::ZERO)],
            SingleClones::OfPath => vec![],
        };
        assert_eq!(bench.kicks(), runs, "{}", rules.name);
    }
}
