//! An hctx that finds no token of its scheduler, against the end of the request that holds it: who
//! gives one back looks for waiters, who stands in line looks for one again.

use super::driver::{Context, Forgets, Machine, Setup};
use super::throttle::{facts, tokens};
use super::{Arc, COMPLETER, DISPATCHER, SETUP, thread};
use blkmq::elevator::{ElevatorTokens, Facts, SchedulerKind};
use blkmq::env::Env;
use blkmq::rules::Rules;

const ONE_EACH: &[ElevatorTokens] = &tokens(1, 1);
const THROTTLE: Facts = facts(ONE_EACH);

/// Tags and device have room for both requests, the scheduler has one token for them.
pub(crate) fn wait<E: Env>(forgets: Option<Forgets>)
where
    Machine<E>: Send + Sync,
{
    let machine = Arc::new(Machine::<E>::new(Setup {
        rules: Rules::v6_12(),
        scheduler: SchedulerKind::Custom(&THROTTLE),
        tags: 2,
        device_limit: 2,
    }));
    let alone = |frame| machine.run(Context::new(0, SETUP, frame));
    alone(machine.submission(1));
    assert!(machine.take_kick(), "the first request asked for a run");
    alone(Machine::<E>::work());
    alone(machine.submission(2));
    assert!(machine.take_kick(), "the second request asked for a run");
    assert_eq!(machine.in_device(), 1);

    let other = Arc::clone(&machine);
    let completer = thread::spawn(move || {
        let end = other.completion();
        other.run(Context::new(1, COMPLETER, end));
    });
    let mut dispatcher = Context::new(0, DISPATCHER, Machine::<E>::work());
    if let Some(what) = forgets {
        dispatcher = dispatcher.forgetting(what);
    }
    machine.run(dispatcher);
    completer.join().expect("the completer ends");

    machine.drain_of(2);
}
