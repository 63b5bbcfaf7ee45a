//! Such a queue is suspended and resumed, step by step.

use super::*;
use crate::path::{SuspendPath, Suspends};

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
