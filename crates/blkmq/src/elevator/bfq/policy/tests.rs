//! Properties under random calls: no request is lost, every reference has its holder, and the
//! device is not left idle if idling is off.
//!
//! References are counted from their holders after every step (`check.rs`). Each property has a
//! mutant that it must catch: the scheduler, with something undone after a call.
//! `tests/scripts/bfq` has the decisions; shares are in `tests/service.rs`.

mod counters;
mod device;
mod service;

use device::{Device, Mutant, Setup, TASKS};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::elevator::Scheduler;
use crate::request::{IoClass, IoPrio, Op};
use crate::rules::Rules;

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Offered for merging, and inserted if it was not merged.
    Submit(Shape),
    /// Inserted without an offer.
    Insert(Shape),
    Dispatch,
    Complete(usize),
    Requeue(usize),
    /// So many us pass.
    Wait(u64),
    Exit(u32),
    IoPrio(u32, IoPrio),
    /// The task changes to a group.
    Group(u32, u16),
    Store(&'static str, u32),
    Rotates(bool),
}

#[derive(Clone, Debug)]
pub(super) struct Shape {
    task: u32,
    op: Op,
    sector: u64,
    sectors: u32,
    sync: bool,
    meta: bool,
    /// A request of the flush machine.
    bare: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    let op = prop_oneof![6 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Discard)];
    // A few regions, so that processes meet; they are far apart, so that queues are seeky.
    let sector = prop_oneof![
        4 => (0u64..200).prop_map(|at| at * 8),
        2 => (0u64..40).prop_map(|at| 100_000 + at * 1000),
        2 => (0u64..1000).prop_map(|at| at * 100_000),
    ];
    let sectors = prop_oneof![4 => 1u32..16, 1 => Just(64u32), 1 => Just(1024u32)];
    let rare = prop::bool::weighted(0.03);
    let flags = (prop::bool::weighted(0.3), rare, prop::bool::weighted(0.02));
    (1..=TASKS, op, sector, sectors, flags).prop_map(
        |(task, op, sector, sectors, (sync, meta, bare))| Shape {
            task,
            op,
            sector,
            sectors,
            sync,
            meta,
            bare,
        },
    )
}

fn ioprio() -> impl Strategy<Value = IoPrio> {
    let class = prop_oneof![
        4 => Just(IoClass::None),
        2 => Just(IoClass::BestEffort),
        1 => Just(IoClass::RealTime),
        1 => Just(IoClass::Idle),
    ];
    (class, 0u8..8).prop_map(|(class, level)| match class {
        IoClass::None => IoPrio::default(),
        class => IoPrio { class, level },
    })
}

fn action() -> impl Strategy<Value = Action> {
    let store = prop_oneof![
        (0u32..10).prop_map(|value| Action::Store("slice_idle", value)),
        (0u32..2).prop_map(|value| Action::Store("low_latency", value)),
        (0u32..2).prop_map(|value| Action::Store("strict_guarantees", value)),
        (0u32..3000).prop_map(|value| Action::Store("max_budget", value)),
        (1u32..200).prop_map(|value| Action::Store("timeout_sync", value)),
        // The kernel's ints wrap.
        (1u32..=1 << 31).prop_map(|value| Action::Store("max_budget", value)),
        (1u32..=1 << 31).prop_map(|value| Action::Store("timeout_sync", value)),
        (1u32..=1 << 31).prop_map(|value| Action::Store("slice_idle", value)),
    ];
    let wait = prop_oneof![
        6 => 0u64..3000,
        2 => 3000u64..150_000,
        1 => 150_000u64..3_000_000,
    ];
    prop_oneof![
        20 => shape().prop_map(Action::Submit),
        6 => shape().prop_map(Action::Insert),
        24 => Just(Action::Dispatch),
        20 => (0..64usize).prop_map(Action::Complete),
        2 => (0..64usize).prop_map(Action::Requeue),
        12 => wait.prop_map(Action::Wait),
        2 => (1..=TASKS).prop_map(Action::Exit),
        1 => (1..=TASKS, ioprio()).prop_map(|(task, ioprio)| Action::IoPrio(task, ioprio)),
        1 => (1..=TASKS, 0u16..3).prop_map(|(task, group)| Action::Group(task, group)),
        1 => store,
        1 => any::<bool>().prop_map(Action::Rotates),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 0..250)
}

fn all_rules() -> impl Strategy<Value = Rules> {
    prop::sample::select(vec![
        Rules::v5_11(),
        Rules::v5_13(),
        Rules::v6_1(),
        Rules::v6_12(),
    ])
}

/// With two actuators queues are merged per actuator. Queues of two actuators are merged by
/// position, in 6.12 and here, and the split of such a queue clears the slot of another actuator
/// (bfq_split_bfqq(); docs/findings/0003).
fn setup() -> impl Strategy<Value = Setup> {
    let repairs = (any::<bool>(), any::<bool>(), any::<bool>());
    let flags = (any::<bool>(), any::<bool>(), repairs);
    (all_rules(), flags).prop_map(|(mut rules, (rotational, arms, repairs))| {
        let of = &mut rules.fair_queueing;
        of.merges_per_actuator = arms;
        (of.puts_candidate, of.keeps_sequential, of.counts_raised) = repairs;
        Setup {
            rules,
            rotational,
            arms,
        }
    })
}

/// A property that fails with these words under v6.12, and holds with the repair that a finding
/// proposes.
fn is_repaired(repair: &str, words: &str, arms: bool, property: Property) {
    let mut setup = Setup {
        rules: Rules::v6_12(),
        rotational: true,
        arms,
    };
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::with_cases(4096)
    };
    // Fixed actions: after a first violation random ones could do anything.
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let found = runner.run(&actions(), |actions| property(&setup, &actions, None));
    let said = found.expect_err("the defect was not found").to_string();
    assert!(said.contains(words), "{said}");
    setup.rules = setup.rules.with_repairs(repair).expect("a repair");
    let repaired = Config {
        failure_persistence: None,
        ..Config::with_cases(256)
    };
    let repaired =
        TestRunner::new(repaired).run(&actions(), |actions| property(&setup, &actions, None));
    assert!(repaired.is_ok(), "{repaired:?}");
}

/// Two actuators, and merges of all close queues: docs/findings/0003.
#[test]
fn merges_across_arms_are_found() {
    is_repaired("per-actuator", "reference", true, nothing_is_lost);
}

/// docs/findings/0004.
#[test]
fn stable_merges_of_sequential_queues_are_found() {
    let words = "a sequential queue is merged for good";
    is_repaired("sequential", words, false, |setup, actions, mutant| {
        let mut device = Device::new(setup, mutant);
        for action in actions {
            device.apply(action);
            let mut found = false;
            let is = |line: &str| line.contains("S (sequential) is merged");
            device.bfq.explanations(&mut |line| found |= is(line));
            prop_assert!(!found, "{}", "a sequential queue is merged for good");
        }
        Ok(())
    });
}

/// docs/findings/0006.
#[test]
fn a_wrong_count_of_raised_queues_is_found() {
    let words = "raised queues that are busy";
    is_repaired("raised-count", words, false, |setup, actions, mutant| {
        let mut device = Device::new(setup, mutant);
        for action in actions {
            device.apply(action);
            device.bfq.check_raised();
        }
        Ok(())
    });
}

/// Every request ends, once, and no reference is left.
fn nothing_is_lost(
    setup: &Setup,
    actions: &[Action],
    mutant: Option<Mutant>,
) -> Result<(), TestCaseError> {
    let mut device = Device::new(setup, mutant);
    for action in actions {
        device.apply(action);
        device.check();
    }
    device.drain()?;
    device.leave()
}

/// With slice_idle=0 a call gives a request if there is one.
fn work_is_conserved(
    setup: &Setup,
    actions: &[Action],
    mutant: Option<Mutant>,
) -> Result<(), TestCaseError> {
    let mut device = Device::new(setup, mutant);
    device.apply(&Action::Store("slice_idle", 0));
    for action in actions {
        match action {
            Action::Store("slice_idle" | "strict_guarantees", _) => {}
            Action::Dispatch => {
                let work = device.has_work();
                prop_assert_eq!(
                    device.dispatch(),
                    work,
                    "a call gives a request if there is one"
                );
            }
            action => device.apply(action),
        }
    }
    Ok(())
}

/// A property of a device and of actions on it, with or without a mutant.
type Property = fn(&Setup, &[Action], Option<Mutant>) -> Result<(), TestCaseError>;

/// A property fails with this mutant and this message.
fn is_caught(mutant: Mutant, words: &str, property: Property) {
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::with_cases(512)
    };
    let result = TestRunner::new(config).run(&(setup(), actions()), |(setup, actions)| {
        property(&setup, &actions, Some(mutant))
    });
    says(result, mutant, words);
}

/// The property failed with this message.
fn says<T: core::fmt::Debug>(result: Result<(), TestError<T>>, mutant: Mutant, words: &str) {
    match result {
        Err(TestError::Fail(reason, _)) => {
            let said = reason.message();
            assert!(said.contains(words), "{mutant:?} was caught by: {said}");
        }
        other => panic!("{mutant:?} went by: {other:?}"),
    }
}

proptest! {
    #[test]
    fn no_request_is_lost_and_no_reference_kept(setup in setup(), actions in actions()) {
        nothing_is_lost(&setup, &actions, None)?;
    }

    #[test]
    fn without_idling_work_is_conserved(setup in setup(), actions in actions()) {
        work_is_conserved(&setup, &actions, None)?;
    }

    /// The same actions give the same state.
    #[test]
    fn runs_repeat(setup in setup(), actions in actions()) {
        let mut devices = [Device::new(&setup, None), Device::new(&setup, None)];
        for device in &mut devices {
            for action in &actions {
                device.apply(action);
            }
        }
        let [a, b] = &devices;
        prop_assert_eq!(&a.bfq, &b.bfq);
        prop_assert_eq!(&a.pool, &b.pool);
    }
}

#[test]
fn a_put_that_is_forgotten_is_caught() {
    is_caught(Mutant::ForgetsPut, "reference", nothing_is_lost);
}

#[test]
fn a_get_that_is_forgotten_is_caught() {
    is_caught(Mutant::ForgetsGet, "reference", nothing_is_lost);
}

#[test]
fn a_reservation_that_exit_keeps_is_caught() {
    is_caught(
        Mutant::ExitKeepsReservation,
        "references of processes",
        nothing_is_lost,
    );
}

#[test]
fn a_candidate_that_exit_keeps_is_caught() {
    is_caught(
        Mutant::ExitKeepsCandidate,
        "references of processes that are to merge",
        nothing_is_lost,
    );
}

#[test]
fn a_request_that_is_dropped_is_caught() {
    is_caught(Mutant::DropsRequest, "a request ", nothing_is_lost);
}

#[test]
fn a_call_in_vain_is_caught() {
    is_caught(
        Mutant::CallsInVain,
        "a call gives a request if there is one",
        work_is_conserved,
    );
}
