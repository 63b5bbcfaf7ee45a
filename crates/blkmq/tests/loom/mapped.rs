//! A mapped queue over that of one path: a waiter for a tag below against the end above that frees
//! it, and a suspension against the end of I/O in flight.
//!
//! The target and its data of requests order nothing here; only the words of both queues do, the
//! device's count and the lock of its wait queue. Kernel: blk_mq_dispatch_rq_list() in
//! block/blk-mq.c, dm_end_request() in drivers/md/dm-rq.c (6.12.117), rq_completed() there and
//! dm_wait_for_completion() in dm.c (4.20).

use super::driver::{Context, Forgets, Machine, Setup, spawn};
use super::{COMPLETER, DISPATCHER, SETUP};
use loom::sync::Arc;

use blkmq::elevator::SchedulerKind;
use blkmq::path::{Frame, SuspendPath, Suspends};
use blkmq::request::QueueId;
use blkmq::rules::{DeviceMapper, Rules};

/// Two tags above, one below.
fn setup(rules: Rules) -> Setup {
    Setup {
        below: 1,
        ..Setup::of(rules, SchedulerKind::None)
    }
}

/// A device that counts I/O in flight.
pub(super) fn counts() -> Rules {
    Rules {
        name: "v4.20 over v6.12",
        device_mapper: DeviceMapper::V4_20,
        ..Rules::v6_12()
    }
}

/// The second request finds no tag for a clone, while the first one's is freed by its end.
/// `rescued`: a run after 3 ms counts.
pub(super) fn restart(rules: Rules, rescued: bool, forgets: Option<Forgets>) {
    let setup = Setup {
        rescued,
        ..setup(rules)
    };
    let machine = Arc::new(Machine::new(&setup));
    machine.run(Context::new(0, SETUP, machine.submission(1)));
    machine.run(Context::new(0, SETUP, machine.submission(2)));
    assert_eq!(machine.in_device(), 1, "there is one tag below");
    machine.take_kick();

    let other = Arc::clone(&machine);
    let completer = spawn(move || {
        let end = other.completion();
        other.run(Context::new(1, COMPLETER, end));
    });
    let mut dispatcher = Context::new(0, DISPATCHER, Machine::work());
    if let Some(what) = forgets {
        dispatcher = dispatcher.forgetting(what);
    }
    machine.run(dispatcher);
    completer.join().expect("the completer ends");
    machine.drain_of(2);
}

/// The device is suspended while its only request ends.
pub(super) fn suspend(forgets: Option<Forgets>) {
    let machine = Arc::new(Machine::new(&setup(counts())));
    machine.run(Context::new(0, SETUP, machine.submission(1)));
    assert_eq!(machine.in_device(), 1);

    let other = Arc::clone(&machine);
    let completer = spawn(move || {
        let mut end = Context::new(1, COMPLETER, other.completion());
        if let Some(what) = forgets {
            end = end.forgetting(what);
        }
        other.run(end);
    });
    let what = Suspends::Begin { noflush: false };
    let path = Frame::Suspend(SuspendPath::new(QueueId(0), what));
    let mut suspender = machine.run(Context::new(0, DISPATCHER, path));
    completer.join().expect("the completer ends");
    while suspender.is_parked() {
        let left = "stall: a suspension sleeps though nothing is in flight";
        assert!(machine.take_wake(DISPATCHER), "{left}");
        suspender = machine.run(suspender);
    }
    let mapped = machine.mq.queue(QueueId(0)).own_mapped();
    mapped.with_state(|state| {
        assert!(state.target.is_suspended(), "it is not suspended");
        let clones = state.tios.iter().filter(|tio| tio.clone.is_some());
        assert_eq!(clones.count(), 0, "a suspended device has a clone");
    });
    machine.drain_of(1);
}
