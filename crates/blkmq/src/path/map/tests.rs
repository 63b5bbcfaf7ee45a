//! A mapped queue of the single-queue kind over one path of blk-mq, letter by letter: the driver's
//! function, the thread and both ends.

mod bench;
mod bios;
mod machine;
mod requests;
mod suspended;

use super::*;
use crate::dm::multipath::{Message, Uevent};
use crate::drive::Stack;
use crate::path::Frame;
use crate::request::{Sector, Status};
use crate::rules::Rules;
use crate::waiter::WaiterId;
use bench::{Bench, PATH, TOP};

/// The driver's function takes all requests and leaves them to the thread; the clone waits for
/// kblockd in its queue; the end has kblockd run the queue above.
#[test]
fn a_request_goes_through_the_thread_and_both_ends() {
    let mut bench = Bench::new(Rules::v4_5(), 4);
    assert_eq!(bench.submit(0), "Q G I D");
    assert_eq!(bench.submit(80), "Q G I D");
    assert_eq!((bench.on.to_map.len(), bench.in_flight()), (2, (2, 2)));
    assert_eq!(bench.kicks(), []);
    assert_eq!(bench.map(), "a i");
    assert_eq!(bench.kicks(), [(PATH, Duration::ZERO)]);
    assert_eq!(bench.works(PATH), "d");
    assert_eq!(bench.end(Status::Ok), "c C | C");
    assert_eq!(bench.on.ended, [Status::Ok]);
    assert_eq!(bench.kicks(), [(TOP, Duration::ZERO)]);
    assert_eq!(bench.in_flight(), (1, 1));
}

/// A request without a path that may not wait ends with an error, without a run of the queue.
#[test]
fn what_is_killed_unmapped_runs_nothing() {
    for rules in [Rules::v4_5(), Rules::v4_12()] {
        let mut bench = Bench::new(rules, 4);
        bench.submit(0);
        bench.message(Message::QueueIfNoPath(false));
        bench.message(Message::Fail(PathId(0)));
        bench.kicks();
        bench.map();
        let rq = bench.on.completed.remove(0);
        let frame = bench.mq.ends(TOP, rq, Status::Ok);
        bench.run(frame);
        assert_eq!(bench.on.ended, [Status::IoError], "{}", rules.name);
        assert_eq!(bench.kicks(), [], "{}", rules.name);
        assert_eq!(bench.in_flight(), (0, 0), "{}", rules.name);
    }
}

/// Without a tag below, a request goes to the head of the queue above, and kblockd runs it again.
#[test]
fn what_is_not_mapped_goes_back_to_the_head() {
    let mut bench = Bench::new(Rules::v4_5(), 1);
    bench.submit(0);
    bench.submit(80);
    bench.map();
    bench.kicks();
    assert_eq!(bench.map(), "R");
    assert_eq!(bench.kicks(), [(TOP, Duration::ZERO)]);
    assert_eq!((bench.on.to_map.len(), bench.in_flight()), (0, (1, 1)));
    bench.submit(160);
    let first = bench.on.to_map.clone();
    let sector = |rq: RequestId| bench.mq.queue(TOP).with_pool(|pool| pool[rq].sector);
    let order: Vec<Sector> = first.into_iter().map(sector).collect();
    assert_eq!(order, [Sector(80), Sector(160)]);
}

/// A path fails: its request is tried again, and while no path is left the target is busy. It is
/// asked again HZ/100 ms later, though that was meant as 10 ms; a path that comes back runs the
/// queue.
#[test]
fn a_busy_target_is_asked_again_later() {
    for (rules, ms) in [(Rules::v4_5(), 2), (Rules::v4_12(), 10)] {
        let mut bench = Bench::new(rules, 4);
        bench.submit(0);
        bench.map();
        if bench.on.in_device.is_empty() {
            bench.works(PATH);
        }
        bench.kicks();
        assert_eq!(bench.end(Status::Transport), "c | R", "{}", rules.name);
        assert_eq!(bench.kicks(), [(TOP, Duration::ZERO)]);
        assert_eq!(bench.works(TOP), "D");
        assert_eq!(bench.kicks(), [(TOP, Duration::from_millis(ms))]);
        assert_eq!((bench.on.to_map.len(), bench.in_flight()), (0, (0, 0)));
        bench.message(Message::Reinstate(PathId(0)));
        bench.message(Message::Reinstate(PathId(0)));
        let path = PathId(0);
        let heard = [Uevent::PathFailed(path), Uevent::PathReinstated(path)];
        assert_eq!(bench.on.uevents, heard, "each once");
        assert!(bench.kicks().contains(&(TOP, Duration::ZERO)));
        assert_eq!(bench.works(TOP), "", "it was looked at already");
        assert_eq!(bench.on.to_map.len(), 1);
        assert!(bench.on.ended.is_empty(), "nothing has ended");
    }
}

/// Without queue_if_no_path it ends, and the error is the target's.
#[test]
fn a_request_that_is_killed_ends_once() {
    let mut bench = Bench::new(Rules::v4_5(), 4);
    bench.submit(0);
    bench.message(Message::Fail(PathId(0)));
    bench.message(Message::QueueIfNoPath(false));
    assert_eq!(bench.map(), "");
    let rq = bench.on.completed.remove(0);
    let frame = bench.mq.ends(TOP, rq, Status::Ok);
    assert_eq!(bench.run(frame), "C");
    assert_eq!(bench.on.ended, [Status::IoError]);
    assert_eq!(bench.in_flight(), (0, 0));
}
