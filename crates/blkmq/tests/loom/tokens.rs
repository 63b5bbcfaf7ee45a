//! An hctx that finds no token of its scheduler, against the end of the request that holds it: the
//! free looks for waiters, the hctx in the wait queue looks for a token again.

use super::driver::{Context, Forgets, Machine, Setup};
use super::throttle::{info, tokens};
use super::{Arc, COMPLETER, DISPATCHER, SETUP, spawn};
use blkmq::elevator::{ElevatorTokens, SchedulerInfo, SchedulerKind};
use blkmq::request::Op;
use blkmq::rules::Rules;

const ONE_EACH: &[ElevatorTokens] = &tokens(1, 1);
const THROTTLE: SchedulerInfo = info(ONE_EACH);

/// Tokens with one lock, and no other decision of the scheduler.
pub(crate) fn throttle() -> Setup {
    Setup::of(Rules::v6_12(), SchedulerKind::Custom(&THROTTLE))
}

/// The scheduler that has tokens in the kernel, with a lock of each ctx queue and hctx. It measures
/// no writes of zeroes, and allows one of them at a time.
pub(crate) fn kyber(rules: Rules) -> Setup {
    Setup {
        tokens: Some(1),
        op: Op::WriteZeroes,
        ..Setup::of(rules, SchedulerKind::Kyber)
    }
}

/// Tags and device have room for both requests, the scheduler has one token for them.
pub(crate) fn wait(setup: &Setup, forgets: Option<Forgets>) {
    let machine = Arc::new(Machine::new(setup));
    let alone = |frame| machine.run(Context::new(0, SETUP, frame));
    alone(machine.submission(1));
    assert!(machine.take_kick(), "the first request asked for a run");
    alone(Machine::work());
    alone(machine.submission(2));
    assert!(machine.take_kick(), "the second request asked for a run");
    assert_eq!(machine.in_device(), 1);

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
