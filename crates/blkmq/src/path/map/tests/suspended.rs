//! A mapped queue, of the single-queue kind or of blk-mq, is suspended and resumed step by step.

use super::bench::read;
use super::requests::{HANDLER, LINE};
use super::*;
use crate::call::ToTarget;
use crate::dm::GroupId;
use crate::dm::multipath::InitResult;
use crate::path::{SuspendPath, Suspends};

fn blk_mq(rules: Rules, line: &str) -> Bench {
    Bench::over(rules, line, |_, _| {})
}

/// Kernels that have such a queue.
fn kernels() -> impl Iterator<Item = Rules> {
    Rules::MAPPED.into_iter()
}

impl Bench {
    fn suspends(noflush: bool) -> Stack {
        Stack::of(Frame::Suspend(SuspendPath::new(
            TOP,
            Suspends::Begin { noflush },
        )))
    }

    fn resumes(&mut self) -> String {
        self.run(Frame::Suspend(SuspendPath::new(TOP, Suspends::End)))
    }

    fn suspend(&mut self) {
        let mut stack = Bench::suspends(true);
        self.go_on(&mut stack);
        assert!(!self.on.parked, "nothing is in flight");
    }

    /// The requests of the thread, and those that wait in the queue of the path.
    fn maps(&mut self) {
        self.map();
        self.works(PATH);
    }

    fn is_suspended(&self) -> bool {
        let mapped = self.mq.queue(TOP).own_mapped();
        mapped.with_state(|state| state.target.is_suspended())
    }
}

/// A request that its driver's function has started is mapped and ends; later ones wait above, also
/// after runs of the queue.
#[test]
fn after_a_suspension_nothing_begins() {
    for rules in kernels() {
        let (name, mut bench) = (rules.name, Bench::new(rules, 4));
        assert_eq!(bench.submit(0), "Q G I D", "{name}");
        let mut stack = Bench::suspends(true);
        assert_eq!(bench.go_on(&mut stack), "");
        assert!(bench.on.parked, "{name}: the thread has a request yet");
        assert_eq!(bench.on.flushes, [WaiterId(0)], "{name}");
        assert_eq!(bench.submit(80), "Q G I", "{name}");
        assert_eq!(
            bench.works(TOP),
            "",
            "{name}: a run of kblockd starts nothing"
        );
        assert_eq!(bench.on.to_map.len(), 1, "{name}");
        bench.maps();
        assert_eq!(bench.go_on(&mut stack), "");
        assert!(bench.on.parked, "{name}: its clone is below");
        assert!(!bench.is_suspended(), "{name}");
        bench.kicks();
        assert_eq!(bench.end(Status::Ok), "c C | C", "{name}");
        assert_eq!(bench.on.woken, [WaiterId(0)], "{name}");
        assert_eq!(bench.kicks(), [], "{name}: nobody runs what is stopped");
        assert_eq!(bench.go_on(&mut stack), "");
        assert!(!bench.on.parked, "{name}: it is over");
        assert!(bench.is_suspended(), "{name}");
        assert_eq!(bench.in_flight(), (0, 0), "{name}");
        assert_eq!(bench.resumes(), "D", "{name}: it is run at once");
        assert_eq!((bench.on.to_map.len(), bench.in_flight()), (1, (1, 1)));
        assert!(!bench.is_suspended(), "{name}");
    }
}

/// Without flush a request whose path fails meanwhile returns to the head of the queue, which is
/// not run before the resume.
#[test]
fn a_request_whose_path_fails_meanwhile_waits_above() {
    for rules in kernels() {
        let (name, mut bench) = (rules.name, Bench::new(rules, 4));
        bench.submit(0);
        let mut stack = Bench::suspends(true);
        bench.go_on(&mut stack);
        bench.submit(80);
        bench.maps();
        bench.go_on(&mut stack);
        bench.kicks();
        assert_eq!(bench.end(Status::Transport), "c | R", "{name}");
        assert_eq!(bench.kicks(), [], "{name}: nobody runs what is stopped");
        bench.message(Message::Reinstate(PathId(0)));
        assert_eq!(bench.works(TOP), "", "{name}");
        bench.go_on(&mut stack);
        assert!(bench.is_suspended(), "{name}");
        bench.resumes();
        let sector = |&rq: &RequestId| bench.mq.queue(TOP).with_pool(|pool| pool[rq].sector);
        let order: Vec<Sector> = bench.on.to_map.iter().map(sector).collect();
        assert_eq!(order, [Sector(0), Sector(80)], "{name}");
        assert!(bench.on.ended.is_empty(), "{name}: nothing has failed");
    }
}

/// kthread_flush_worker(): also of a device in which nothing is in flight.
#[test]
fn a_suspension_waits_for_the_thread() {
    for rules in kernels() {
        let (name, mut bench) = (rules.name, Bench::new(rules, 4));
        let mut stack = Bench::suspends(true);
        bench.go_on(&mut stack);
        assert!(bench.on.parked, "{name}: the thread has not answered");
        assert!(!bench.is_suspended(), "{name}");
        bench.go_on(&mut stack);
        assert!(bench.is_suspended(), "{name}");
    }
}

/// dm_start_queue(): up to 4.6 the hctxs are run; later the requeue list is kicked as well.
#[test]
fn a_resume_runs_what_waits() {
    for rules in [Rules::v4_5(), Rules::v4_12(), Rules::v6_1()] {
        let (name, mut bench) = (rules.name, blk_mq(rules, LINE));
        bench.suspend();
        bench.submit(0);
        bench.kicks();
        bench.on.requeues.clear();
        assert!(bench.on.in_device.is_empty(), "{name}");
        bench.resumes();
        assert_eq!(bench.on.kicks, [(TOP, Duration::ZERO)], "{name}");
        let kicks: &[Duration] = if name == "v4.5" {
            &[]
        } else {
            &[Duration::ZERO]
        };
        assert_eq!(bench.on.requeues, kicks, "{name}");
        bench.kblockd();
        assert_eq!(bench.on.in_device.len(), 1, "{name}");
    }
}

/// dm_wait_for_completion(): the tags show requests in flight (6.1), and are read again later.
#[test]
fn a_suspension_reads_the_tags_again() {
    let mut bench = blk_mq(Rules::v6_1(), LINE);
    bench.submit(0);
    let mut stack = Bench::suspends(true);
    for _ in 0..2 {
        bench.go_on(&mut stack);
        assert!(bench.on.parked, "a request is in flight");
        assert_eq!(core::mem::take(&mut bench.on.later), [WaiterId(0)]);
    }
    bench.end(Status::Ok);
    bench.go_on(&mut stack);
    assert!(!bench.on.parked);
    assert!(bench.is_suspended());
}

/// flush_multipath_work(): activations in progress end first, and none begins meanwhile.
#[test]
fn a_suspension_waits_for_activations() {
    for rules in [Rules::v4_12(), Rules::v6_1()] {
        let (name, mut bench) = (rules.name, blk_mq(rules, HANDLER));
        bench.send(read(0));
        assert_eq!(bench.on.activations, [PathId(0)], "{name}");
        let mut stack = Bench::suspends(true);
        bench.go_on(&mut stack);
        assert!(bench.on.parked, "{name}: an activation is in progress");
        bench.target(ToTarget::Activate(PathId(0)));
        bench.target(ToTarget::Activated(PathId(0), InitResult::Ok));
        assert_eq!(bench.on.woken, [WaiterId(0)], "{name}");
        bench.go_on(&mut stack);
        assert!(!bench.on.parked, "{name}");
        bench.resumes();
        // Another group is activated.
        bench.on.activations.clear();
        bench.message(Message::Switch(GroupId(1)));
        bench.send(read(80));
        assert_eq!(bench.on.activations, [PathId(1)], "{name}");
    }
}
