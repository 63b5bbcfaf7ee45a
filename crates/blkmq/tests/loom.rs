//! Whether the paths need, and have, the barriers that the kernel writes: two threads step the
//! real paths over words of loom, which shows every value that a weak memory could show.
//!
//! Protocols of Documentation: S1 (SCHED_RESTART against the dispatch list), S3 (a waiter against a
//! freed tag) and, in files of their own, S3 of tokens, S7 (freed bits), S9 and S10 (a queue that
//! may run again) and S21 (insertion buckets that no kernel has). Run with
//! `RUSTFLAGS="--cfg loom"` (`cargo xtask loom`).
//!
//! Kernel: block/blk-mq-sched.c __blk_mq_sched_restart(), block/blk-mq.c
//! blk_mq_dispatch_rq_list(), block/blk-mq-tag.c blk_mq_get_tag() (6.12.117).

#![cfg(loom)]

#[path = "loom/bits.rs"]
mod bits;
#[path = "loom/driver.rs"]
mod driver;
#[path = "loom/held.rs"]
mod held;
#[path = "loom/mapped.rs"]
mod mapped;
#[path = "loom/series.rs"]
mod series;
#[path = "loom/share.rs"]
mod share;
#[path = "common/throttle.rs"]
mod throttle;
#[path = "loom/tokens.rs"]
mod tokens;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use blkmq::elevator::SchedulerKind;
use blkmq::env::omit_barriers;
use blkmq::path::Frame;
use blkmq::rules::{Fix, Rules};
use driver::{Context, Forgets, Machine, Setup, spawn};
use loom::sync::Arc;

/// Contexts, as lock owners and waiters.
const SETUP: u32 = 0;
const DISPATCHER: u32 = 1;
const COMPLETER: u32 = 2;
const SUBMITTER: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    /// Only barriers that are omitted.
    None,
    /// The re-check of SCHED_RESTART after the put-back.
    Recheck,
}

/// Schedulers; only the first is run where time is short.
fn schedulers() -> impl Iterator<Item = SchedulerKind> {
    let all = SchedulerKind::of_path(false);
    all.filter(|&kind| kind != SchedulerKind::None)
}

/// A request waits in the scheduler while another holds the only tag, or fills the device.
fn restart_setup(rules: Rules, refused: bool) -> Setup {
    let scheduler = schedulers().next();
    Setup {
        tags: if refused { 2 } else { 1 },
        device_limit: 1,
        ..Setup::of(rules, scheduler.expect("there is one"))
    }
}

/// S1: a run that cannot issue the second request, against the end of the first.
fn restart(setup: &Setup, flaw: Flaw) {
    let machine = Arc::new(Machine::new(setup));
    let alone = |frame| machine.run(Context::new(0, SETUP, frame));
    alone(machine.submission(1));
    alone(Machine::work());
    alone(machine.submission(2));
    if setup.tags > setup.device_limit {
        // The second request was refused once: it is on the dispatch list, unmarked.
        alone(Machine::work());
    }
    assert!(machine.take_kick(), "the second request asked for a run");
    assert_eq!(machine.in_device(), 1);

    let other = Arc::clone(&machine);
    let completer = spawn(move || {
        let end = other.completion();
        other.run(Context::new(1, COMPLETER, end));
    });
    let mut dispatcher = Context::new(0, DISPATCHER, Machine::work());
    if flaw == Flaw::Recheck {
        dispatcher = dispatcher.forgetting(Forgets::Recheck);
    }
    machine.run(dispatcher);
    completer.join().expect("the completer ends");

    machine.drain_of(2);
}

/// S3: a task that finds no tag, against the end of the request that holds it.
fn wait_for_tag(rules: Rules, end: fn(&Machine) -> Frame) {
    let machine = Arc::new(Machine::new(&Setup {
        tags: 1,
        device_limit: 1,
        ..Setup::of(rules, SchedulerKind::None)
    }));
    machine.run(Context::new(0, SETUP, machine.submission(1)));
    assert_eq!(machine.in_device(), 1);

    let other = Arc::clone(&machine);
    let completer = spawn(move || {
        let end = end(&other);
        other.run(Context::new(1, COMPLETER, end));
    });
    let mut submitter = Context::new(0, DISPATCHER, machine.submission(2));
    submitter = machine.run(submitter);
    completer.join().expect("the completer ends");

    while submitter.is_parked() {
        assert!(
            machine.take_wake(DISPATCHER),
            "stall: a task sleeps though the tag is free"
        );
        submitter = machine.run(submitter);
    }
    machine.drain_of(2);
}

/// Three threads: two tasks that find no tag, against the end of the request that holds it.
fn three(rules: Rules) {
    let machine = Arc::new(Machine::new(&Setup {
        tags: 1,
        device_limit: 1,
        ..Setup::of(rules, SchedulerKind::None)
    }));
    machine.run(Context::new(0, SETUP, machine.submission(1)));
    let bios = [machine.submission(2), machine.submission(3)];
    let other = Arc::clone(&machine);
    let completer = spawn(move || {
        let end = other.completion();
        other.run(Context::new(1, COMPLETER, end));
    });
    let other = Arc::clone(&machine);
    let second = spawn(move || other.run(Context::new(1, SUBMITTER, bios[1])));
    let first = machine.run(Context::new(0, DISPATCHER, bios[0]));
    completer.join().expect("the completer ends");
    let second = second.join().expect("the second waiter ends or sleeps");

    let mut tasks = [(DISPATCHER, first), (SUBMITTER, second)];
    while tasks.iter().any(|(_, task)| task.is_parked()) {
        let mut moved = machine.take_kick();
        if machine.in_device() > 0 {
            machine.run(Context::new(0, SETUP, machine.completion()));
            moved = true;
        }
        for (number, task) in &mut tasks {
            if task.is_parked() && machine.take_wake(*number) {
                let new = Context::new(0, SETUP, Machine::work());
                *task = machine.run(std::mem::replace(task, new));
                moved = true;
            }
        }
        assert!(moved, "stall: a task sleeps though the tag is free");
    }
    machine.drain_of(3);
}

/// Preemptions in the clean runs; every defect below shows with fewer.
const BOUND: usize = 5;

/// Explores all executions with at most `bound` preemptions. Returns their number, or the panic.
fn explore(bound: usize, run: impl Fn() + Send + Sync + 'static) -> Result<usize, String> {
    let executions = std::sync::Arc::new(Mutex::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.max_branches = 20_000;
    let counter = std::sync::Arc::clone(&executions);
    let run = std::sync::Arc::new(run);
    omit_barriers(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            *counter.lock().expect("nobody panics with it") += 1;
            let run = std::sync::Arc::clone(&run);
            spawn(move || run())
                .join()
                .expect("its panic is the model's");
        });
    }));
    let count = *executions.lock().expect("nobody panics with it");
    outcome.map(|()| count).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}

/// A run in which full barriers of the tasks with these bits do nothing.
fn without(
    tasks: u32,
    run: impl Fn() + Send + Sync + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        omit_barriers(tasks);
        run();
    }
}

fn clean(name: &str, rules: Rules, bound: usize, run: impl Fn() + Send + Sync + 'static) {
    match explore(bound, run) {
        Ok(count) => {
            println!(
                "{} {name}: clean, {count} executions at bound {bound}",
                rules.name
            );
        }
        Err(panic) => panic!("{} {name} at bound {bound}: {panic}", rules.name),
    }
}

fn stalls(name: &str, bound: usize, run: impl Fn() + Send + Sync + 'static) {
    match explore(bound, run) {
        Ok(count) => panic!("{name}: clean after {count} executions at bound {bound}"),
        Err(panic) => {
            assert!(panic.contains("stall"), "{name}: {panic}");
            println!("{name}: found at bound {bound}");
        }
    }
}

#[test]
fn a_run_without_tag_against_the_end_that_frees_it() {
    for rules in Rules::PRESETS {
        clean("no tag", rules, BOUND, move || {
            restart(&restart_setup(rules, false), Flaw::None);
        });
    }
}

#[test]
fn a_run_that_the_device_refuses_against_the_end_of_what_fills_it() {
    for rules in Rules::PRESETS {
        clean("refused", rules, BOUND, move || {
            restart(&restart_setup(rules, true), Flaw::None);
        });
    }
}

/// The two above with each scheduler, in fewer executions; defects must be found.
#[test]
fn each_scheduler_between_a_run_and_an_end() {
    for scheduler in schedulers() {
        for refused in [false, true] {
            let setup = Setup {
                scheduler,
                ..restart_setup(Rules::v6_12(), refused)
            };
            clean(scheduler.name(), setup.rules, 3, move || {
                restart(&setup, Flaw::None);
            });
            stalls(
                scheduler.name(),
                1,
                without(1 << COMPLETER, move || restart(&setup, Flaw::None)),
            );
            stalls(scheduler.name(), 2, move || {
                restart(&setup, Flaw::Recheck);
            });
        }
    }
}

#[test]
fn a_task_that_waits_for_a_tag_against_the_end_that_frees_it() {
    for rules in Rules::PRESETS {
        clean("wait", rules, BOUND, move || {
            wait_for_tag(rules, Machine::completion);
        });
        clean("wait, batch", rules, BOUND, move || {
            wait_for_tag(rules, Machine::batch);
        });
    }
}

/// As S3, where the other user of the tags leaves (sbitmap_queue_wake_all()).
#[test]
fn a_task_that_waits_for_its_share_against_a_user_that_leaves() {
    for rules in Rules::PRESETS {
        clean("share", rules, 3, move || share::of_one_who_leaves(rules));
    }
    for (name, task) in [("waiter", DISPATCHER), ("leaver", COMPLETER)] {
        stalls(
            &format!("share, no barrier in the {name}"),
            2,
            without(1 << task, || share::of_one_who_leaves(Rules::v6_12())),
        );
    }
}

#[test]
fn without_barriers_requests_and_wake_ups_are_lost() {
    let (tag, refused) = (
        restart_setup(Rules::v6_12(), false),
        restart_setup(Rules::v6_12(), true),
    );
    stalls(
        "refused, no barrier in the dispatcher",
        1,
        without(1 << DISPATCHER, move || restart(&refused, Flaw::None)),
    );
    stalls(
        "refused, no barrier in the completer",
        1,
        without(1 << COMPLETER, move || restart(&refused, Flaw::None)),
    );
    stalls(
        "no tag, no barrier in the dispatcher",
        1,
        without(1 << DISPATCHER, move || restart(&tag, Flaw::None)),
    );
    stalls(
        "no tag, no barrier in the completer",
        1,
        without(1 << COMPLETER, move || restart(&tag, Flaw::None)),
    );
    stalls(
        "wait, no barrier in the waiter",
        1,
        without(1 << DISPATCHER, || {
            wait_for_tag(Rules::v6_12(), Machine::completion);
        }),
    );
    stalls(
        "wait, no barrier in the completer",
        1,
        without(1 << COMPLETER, || {
            wait_for_tag(Rules::v6_12(), Machine::completion);
        }),
    );
    stalls(
        "wait, no barrier in the completer of a batch",
        1,
        without(1 << COMPLETER, || {
            wait_for_tag(Rules::v6_12(), Machine::batch);
        }),
    );
}

#[test]
fn requests_in_buckets_are_lost_as_posted() {
    for name in ["poc", "v1", "v2"] {
        stalls(name, 2, move || series::insert(name));
    }
}

#[test]
fn requests_in_buckets_that_are_marked_after_the_filling_arrive() {
    for bound in [2, 3] {
        clean("v2-repaired", Rules::v6_12(), bound, || {
            series::insert("v2-repaired");
        });
    }
}

#[test]
fn side_lists_and_the_gate_lose_nothing() {
    for name in ["v3", "serialise-only"] {
        clean(name, Rules::v6_12(), 2, move || {
            series::insert(name);
        });
    }
}

#[test]
fn without_barriers_the_repaired_buckets_lose_requests() {
    stalls(
        "v2-repaired, no barriers",
        2,
        without(1 << DISPATCHER | 1 << COMPLETER, || {
            series::insert("v2-repaired");
        }),
    );
}

#[test]
fn without_the_recheck_a_request_is_left() {
    for refused in [false, true] {
        stalls("no re-check", 1, move || {
            restart(&restart_setup(Rules::v6_12(), refused), Flaw::Recheck);
        });
    }
}

/// S10: the barriers on both sides of BLK_MQ_S_STOPPED.
#[test]
fn an_insertion_against_the_start_of_a_stopped_queue() {
    for rules in Rules::PRESETS {
        // 6.6.63 is a kernel without them.
        if rules.fixes.has(Fix::StoppedBarrier) {
            clean("stopped", rules, 3, move || {
                held::up(rules, held::By::Stop);
            });
        }
        let before = rules.without(Fix::StoppedBarrier);
        stalls("stopped, no barriers", 2, move || {
            held::up(before, held::By::Stop);
        });
    }
}

/// S9: v6.1 reads QUEUE_FLAG_QUIESCED once, v6.12 again under queue_lock.
#[test]
fn an_insertion_against_the_end_of_quiescing() {
    stalls("quiesced, v6.1", 2, || {
        held::up(Rules::v6_1(), held::By::Quiesce);
    });
    clean("quiesced", Rules::v6_12(), 3, || {
        held::up(Rules::v6_12(), held::By::Quiesce);
    });
}

/// S1 between two levels: the tag is freed below, and the end that reads SCHED_RESTART is that
/// above. The mark of SCHED_RESTART and the search for the tag below are not ordered: a request
/// that finds none may be marked too late, and has the run after 3 ms for it.
#[test]
fn a_request_without_tag_below_against_the_end_above_that_frees_it() {
    for rules in Rules::PRESETS {
        clean("no tag below", rules, 3, move || {
            mapped::restart(rules, true, None);
        });
        stalls("no tag below, no run after 3 ms", 3, move || {
            mapped::restart(rules, false, None);
        });
    }
    stalls("no tag below, no re-check", 2, || {
        mapped::restart(Rules::v6_12(), true, Some(Forgets::Recheck));
    });
}

/// md->wait: needs no barrier besides those of its lock and prepare_to_wait().
#[test]
fn a_suspension_against_the_end_of_what_is_in_flight() {
    clean("suspension", mapped::counts(), BOUND, || {
        mapped::suspend(None);
    });
    stalls("suspension, nobody is woken", 2, || {
        mapped::suspend(Some(Forgets::DrainedWake));
    });
}

/// S7.
#[test]
fn two_searches_merge_the_same_freed_bits() {
    for rules in Rules::PRESETS {
        clean("freed bits", rules, 3, move || {
            bits::merge(rules);
        });
        let before = rules.without(Fix::SwapLock);
        stalls("freed bits, no lock", 2, move || {
            bits::merge(before);
        });
    }
}

/// As S3, of an hctx that waits for a token of its scheduler.
#[test]
fn a_run_without_token_against_the_end_that_frees_it() {
    let throttle = ("token", tokens::throttle(), BOUND);
    let kyber = |rules| ("kyber's token", tokens::kyber(rules), BOUND);
    for (name, setup, bound) in [throttle, kyber(Rules::v6_1()), kyber(Rules::v6_12())] {
        clean(name, setup.rules, bound, move || {
            tokens::wait(&setup, None);
        });
        stalls(
            &format!("{name}, no barrier in the dispatcher"),
            2,
            without(1 << DISPATCHER, move || tokens::wait(&setup, None)),
        );
        stalls(
            &format!("{name}, no barrier in the completer"),
            2,
            without(1 << COMPLETER, move || tokens::wait(&setup, None)),
        );
        stalls(&format!("{name}, no second look"), 2, move || {
            tokens::wait(&setup, Some(Forgets::TokenRetry));
        });
    }
}

/// In place of shuttle, whose licence does not fit: docs/decisions.
#[test]
fn three_threads_at_one_tag() {
    for rules in Rules::PRESETS {
        clean("three", rules, 2, move || three(rules));
    }
    stalls(
        "three, no barrier in the completer",
        1,
        without(1 << COMPLETER, || three(Rules::v6_12())),
    );
}
