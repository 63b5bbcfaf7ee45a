//! The stall corpus: defects of past kernels, each found in a small model, each repaired form
//! clean. The table of all, with the tests that find them: docs/internals/verification.md.
//!
//! Counts as in `exhaustive.rs`: `UPDATE_COUNTS=1` writes them. S2, S19 and S20: `restart.rs`; S21:
//! `series.rs`; memory orders: `crates/blkmq/tests/loom.rs`.

use crate::clean::exhaustive;
use crate::counts::compare;
use blkmq::elevator::SchedulerKind;
use blkmq::request::QueueId;
use blkmq::rules::{BatchRule, Countdown, Fix, PlugRun, Restart, Rules, WakeScan};
use explore::{Config, Mutant, Promises, Report, Stops, Task, Verdict, walk};

const NONE: SchedulerKind = SchedulerKind::None;
const DEADLINE: SchedulerKind = SchedulerKind::MqDeadline;

/// A line of the table on file, with the verdict.
fn line(entry: &str, report: &Report) -> String {
    format!(
        "{entry:<5}{:<50}{:<7}{:>8} generated {:>7} distinct  depth {}\n",
        report.name,
        report.verdict.word(),
        report.generated,
        report.distinct,
        report.depth
    )
}

fn without(fix: Fix) -> Rules {
    Rules::v6_12().without(fix)
}

/// Entry, name, rules.
type Row = (&'static str, &'static str, Rules);

/// v6.12 with another wake rule.
const fn waking(scan: WakeScan) -> Rules {
    Rules {
        wake_scan: scan,
        ..Rules::v6_12()
    }
}

const fn counting(form: Countdown) -> Rules {
    waking(WakeScan::Countdown(form))
}

/// Runs rows that explore only tags.
fn tags(rows: &[Row], depth: u32, tasks: usize, change: fn(&mut Config)) -> String {
    let one = |&(entry, name, rules): &Row| {
        let mut config = Config::tags_alone(name, rules, depth, tasks);
        change(&mut config);
        line(entry, &exhaustive(&config))
    };
    rows.iter().map(one).collect()
}

/// Runs rows of the whole machine.
fn machines(rows: &[Row], kind: SchedulerKind, tasks: usize, change: fn(&mut Config)) -> String {
    let one = |&(entry, name, rules): &Row| {
        let mut config = Config::new(name, rules, kind, tasks);
        change(&mut config);
        line(entry, &exhaustive(&config))
    };
    rows.iter().map(one).collect()
}

/// S5b, S5d: while no path frees a tag, each wait queue counts down from 1 to a batch.
#[test]
fn counts_are_left_right() {
    use Countdown::{Adds, LeavesZero, PassesOver};
    let table = tags(
        &[
            ("S5b", "two frees race for one count", counting(Adds)),
            ("S5b", "the same, v6.1", counting(PassesOver)),
            ("S5d", "the queue empties itself", counting(LeavesZero)),
            ("S5d", "the same, v6.1", counting(PassesOver)),
        ],
        2,
        3,
        |_| {},
    );
    compare("corpus-counts.txt", &table);
}

/// S5c, S5g: two frees for two sleepers.
#[test]
fn two_frees_wake_two() {
    use Countdown::{PassesOver, Resets, Spins};
    let table = tags(
        &[
            ("S5c", "two frees, two sleepers, v4.18", counting(Resets)),
            ("S5c", "the same, v6.1-rc", counting(Spins)),
            ("S5c", "the same, v6.1", counting(PassesOver)),
            ("S5g", "the same, v6.2-rc", waking(WakeScan::OneQueue)),
            ("S5g", "the same, v6.1 stable", waking(WakeScan::FirstQueue)),
            ("S5g", "the same, v6.12", waking(WakeScan::UntilSpent)),
        ],
        2,
        4,
        |c| {
            c.wait_queues = 3;
            c.sleepers = 2;
            c.prefilled = 4;
        },
    );
    compare("corpus-two.txt", &table);
}

/// S5i, S7.
#[test]
fn wake_ups_and_freed_bits_that_others_have_in_hand() {
    let mut table = tags(
        &[
            ("S5i", "a woken task moves on", without(Fix::PassedOnWake)),
            ("S5i", "the same, it passes the wake-up on", Rules::v6_12()),
        ],
        1,
        3,
        |c| {
            (c.cpus, c.hctxs) = (2, 2);
            c.migrates = true;
        },
    );
    table += &tags(
        &[
            ("S7", "no lock around freed bits", without(Fix::SwapLock)),
            ("S7", "the same under the lock", Rules::v6_12()),
        ],
        2,
        2,
        |c| {
            c.prefilled = 0;
            c.freed = true;
            c.wake_batch = Some(2);
        },
    );
    compare("corpus-maps.txt", &table);
}

/// `submit.wait-last` has many windows: the schedule names the one in which another context moves.
#[test]
fn schedules_name_the_steps_within_a_way_to_a_tag() {
    let mut config = Config::tags_alone("freed bits", without(Fix::SwapLock), 2, 2);
    config.prefilled = 0;
    config.freed = true;
    config.wake_batch = Some(2);
    let report = exhaustive(&config);
    assert_eq!(report.verdict.word(), "stall", "{report}");
    let shown = report.to_string();
    for step in [
        "submit.wait-last (tag-get.freed)",
        "(tag-get.seize)",
        "(tag-get.release)",
        "complete.put-driver (tag-put.active)",
    ] {
        assert!(shown.contains(step), "{step}:\n{shown}");
    }
}

/// v6.1 passes over a wait queue with a count of 0 until the waker that made it 0 has stored the
/// batch again. With one tag and further sleepers in that queue the next free wakes none of them,
/// and no free follows. Worse than S5c, where the first waker's own free makes up for it.
#[test]
fn a_countdown_that_is_passed_over_is_for_good() {
    use Countdown::PassesOver;
    let table = tags(
        &[
            ("S5c'", "one tag, three tasks, v6.1", counting(PassesOver)),
            (
                "S5c'",
                "the same, v6.1 stable",
                waking(WakeScan::FirstQueue),
            ),
            ("S5c'", "the same, v6.12", waking(WakeScan::UntilSpent)),
        ],
        1,
        3,
        |_| {},
    );
    compare("corpus-passed.txt", &table);
}

/// Defects around tags are found if only tags are explored, too.
#[test]
fn mutants_of_tags_alone() {
    let of = |mutant| {
        let mut config = Config::tags_alone("a mutant", Rules::v6_12(), 1, 2);
        config.mutant = mutant;
        exhaustive(&config).verdict.word()
    };
    assert_eq!(of(None), "clean");
    assert_eq!(of(Some(Mutant::NoWake)), "stall");
    assert_eq!(of(Some(Mutant::UnseenLine)), "broken");
    assert_eq!(of(Some(Mutant::ForgottenEntry)), "broken");
    assert_eq!(of(Some(Mutant::LeakedTag)), "broken");
    assert_eq!(of(Some(Mutant::CompletedTwice)), "broken");
}

/// S4 and S5h: the last sleeper.
#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn the_last_sleepers() {
    let mut table = tags(
        &[
            // The batch is larger than that of any kernel with so few tags: the row shows the scan.
            (
                "S5h",
                "one waits at each queue, v6.1",
                waking(WakeScan::FirstQueue),
            ),
            ("S5h", "the same, v6.12", waking(WakeScan::UntilSpent)),
        ],
        2,
        4,
        |c| c.wake_batch = Some(2),
    );
    // A state space depends only on the batch that a rule gives: the kernel's 8, 4, 4 and 1 for a
    // share of 4 of 64 tags, halved for two wait queues and a share of 2 of 8.
    let mut known: Vec<(u32, Report)> = Vec::new();
    for (name, batch) in [
        ("share 2 of 8, v4.20", 4),
        ("the same, v5.17-rc", 2),
        ("the same, v5.17", 2),
        ("the same, v6.3", 1),
    ] {
        if !known.iter().any(|(other, _)| *other == batch) {
            let mut config = Config::tags_alone(name, waking(WakeScan::FirstQueue), 2, 4);
            config.wake_batch = Some(batch);
            known.push((batch, exhaustive(&config)));
        }
        let (_, report) = known.iter().find(|(other, _)| *other == batch).unwrap();
        let mut report = report.clone();
        name.clone_into(&mut report.name);
        table += &line("S4", &report);
    }
    compare("corpus-last.txt", &table);
}

/// S22: of two users of 8 tags one has all of its share in flight and 4 tasks asleep, two in each
/// of two wait queues; the other goes idle, and the wake batch rises from 2 to 4. The contexts are
/// too many for all orders, so random ones are taken. No race is needed: many of them show it.
#[test]
fn a_user_goes_idle_while_tasks_of_another_sleep() {
    let mut config = Config::tags_alone("S22", waking(WakeScan::FirstQueue), 8, 9);
    config.queues = 2;
    config.tasks[0].queue = QueueId(1);
    (config.prefilled, config.ended) = (9, 1);
    // The other user's timer, which would wake one task of each queue again, does not expire.
    config.timeouts = 1 << 1;
    config.wake_batch = None;
    let stalls = |config: &Config| {
        let walks = (0..2_000).map(|seed| walk(config, seed, 2_000));
        walks
            .filter(|report| report.verdict != Verdict::Clean)
            .count()
    };
    let of_stable = stalls(&config);
    for seed in 0..3 {
        eprintln!("{}", walk(&config, seed, 2_000));
    }
    assert!(of_stable > 200, "{of_stable}");
    // From 1 to 2, and to 3: the share and one task of each wait queue give a batch per queue.
    for tags in [4, 5, 6] {
        let smaller = Config {
            tags,
            ..config.clone()
        };
        assert_eq!(stalls(&smaller), 0, "{tags} tags");
    }
    config.rules = Rules::v6_12();
    assert_eq!(stalls(&config), 0);
}

/// S4: the share of one user must allow a wake-up for each wait queue, as long as it can.
#[test]
fn a_share_wakes_all_queues() {
    const WAIT_QUEUES: u32 = 8;
    let example = |rule: BatchRule| rule.batch(WAIT_QUEUES, 64, 16);
    let rules = [
        BatchRule::WholeDepth,
        BatchRule::Share,
        BatchRule::ShareFour,
        BatchRule::ShareOne,
    ];
    assert_eq!(rules.map(example), [8, 4, 4, 1]);
    let wrong = |rule: BatchRule| {
        let pairs = (1..=1024).flat_map(|depth| (2..=128).map(move |users| (depth, users)));
        let too_large = |&(depth, users): &(u32, u32)| {
            // hctx_may_queue() allows at least 4 each.
            let share = depth.div_ceil(users).max(4);
            rule.batch(WAIT_QUEUES, depth, users) > (share / WAIT_QUEUES).max(1)
        };
        pairs.filter(too_large).count()
    };
    assert!(rules[..3].iter().all(|&rule| wrong(rule) > 0));
    assert_eq!(wrong(BatchRule::ShareOne), 0);
}

/// S8, S11: the driver stops its queue, and the end of a request starts it.
#[test]
fn drivers_that_stop_queues() {
    let mut table = machines(
        &[
            ("S8", "stopped when filled, v6.1", Rules::v6_1()),
            ("S8", "the same, v6.12", Rules::v6_12()),
        ],
        NONE,
        2,
        |c| {
            c.tags = 2;
            c.device_limit = 1;
            c.stops = Stops::WhenFilled;
        },
    );
    let stopped = |c: &mut Config| {
        c.tags = 2;
        c.device_limit = 1;
        c.stops = Stops::WhenRefusing;
        c.prefilled = 2;
    };
    let row = ("S11", "stopped when it refuses", Rules::v6_12());
    table += &machines(&[row], DEADLINE, 2, stopped);
    let row = ("S11", "the same, no run after it", Rules::v6_12());
    table += &machines(&[row], DEADLINE, 2, |c| {
        c.tags = 2;
        c.device_limit = 1;
        c.stops = Stops::WhenRefusing;
        c.prefilled = 2;
        c.mutant = Some(Mutant::NoRecheck);
    });
    compare("corpus-stopped.txt", &table);
}

/// S6: a plug of two finds one budget less than it needs.
fn plug_without_budget(c: &mut Config) {
    c.tags = 3;
    c.budgets = Some(1);
    c.prefilled = 1;
    c.delayed_runs = true;
    c.tasks[1].bios = 2;
    c.tasks[1].plugged = 2;
}

/// S13: two hctxs compete for one budget, with two requests in the scheduler and one to come.
fn one_budget(c: &mut Config) {
    c.cpus = 2;
    c.hctxs = 2;
    c.in_order = false;
    c.budgets = Some(1);
    c.tags = 3;
    c.nr_requests = 4;
    c.delayed_runs = true;
    c.tasks[2].cpu = 1;
    c.prefilled = 2;
}

#[test]
fn a_plug_that_finds_no_budget() {
    // v6.12 always runs the hctx after what is left of a plug, which would hide the defect.
    let v5_19 = Rules {
        plug_run: PlugRun::IfInserted,
        ..without(Fix::RefusedRun)
    };
    let row = ("S6", "a plug and one budget, v5.19", v5_19);
    let table = machines(&[row], NONE, 2, plug_without_budget);
    compare("corpus-plug.txt", &table);
    // All orders take fifteen million steps; some of these random ones find the defect.
    let mut config = Config::new("S6, v6.12", Rules::v6_12(), NONE, 2);
    plug_without_budget(&mut config);
    for seed in 0..25_000 {
        let report = walk(&config, seed, 1_000);
        assert_eq!(report.verdict, Verdict::Clean, "{report}");
    }
    config.rules = v5_19;
    for seed in [2_609, 3_029, 19_773, 23_402, 24_891] {
        let report = walk(&config, seed, 1_000);
        assert_eq!(report.verdict.word(), "stall", "{report}");
    }
}

#[test]
#[ignore = "ten seconds or more of an optimised build: cargo xtask ci --full"]
fn two_hctxs_before_one_budget() {
    let table = machines(
        &[
            (
                "S13",
                "two hctxs, one budget, v5.7",
                without(Fix::DelayRun).with_restart(Restart::V5_9),
            ),
            // v5.7 runs all hctxs when a budget is put. Since v5.12 it runs one, and in this
            // setting no second run competes for the budget any more: the defect does not show.
            (
                "S13",
                "the same, as v5.12 runs all hctxs",
                without(Fix::DelayRun),
            ),
            ("S13", "the same, v6.12", Rules::v6_12()),
        ],
        DEADLINE,
        3,
        one_budget,
    );
    compare("corpus-budgets.txt", &table);
}

/// S14: the driver promises a run when any request ends, which may be too early.
#[test]
fn promises_that_are_kept_too_early() {
    let two_hctxs = |c: &mut Config| {
        c.cpus = 2;
        c.hctxs = 2;
        c.in_order = false;
        c.tasks = vec![Task::read(0), Task::read(1)];
        c.device_limit = 1;
        c.promises = Promises::AnyHctx;
    };
    let row = ("S14", "DEV_RESOURCE for another hctx's end", Rules::v6_12());
    compare("corpus-promises.txt", &machines(&[row], NONE, 2, two_hctxs));
}

/// S15: the device takes a passthrough request before any other.
#[test]
fn a_device_that_needs_a_passthrough_request() {
    let table = machines(
        &[
            (
                "S15",
                "in the scheduler, v5.5",
                without(Fix::PassthroughAround),
            ),
            ("S15", "on the dispatch list, v6.12", Rules::v6_12()),
        ],
        DEADLINE,
        2,
        |c| {
            c.tags = 2;
            c.nr_requests = 4;
            c.needs_passthrough = true;
            c.must_end = true;
            c.delayed_runs = true;
            c.in_order = false;
            c.tasks[1].passthrough = true;
        },
    );
    compare("corpus-passthrough.txt", &table);
}

/// Three requests wait in the scheduler when a passthrough request comes.
fn three_wait(config: &mut Config) {
    config.nr_requests = 8;
    config.prefilled = 3;
    config.overtakes_max = Some(2);
    config.tasks[3].passthrough = true;
}

/// S16: a run that does not look at the dispatch list while the scheduler has more.
#[test]
fn a_passthrough_request_is_not_overtaken_for_long() {
    let one_by_one = Rules::v6_12().with_restart(Restart::V4_19);
    let row = ("S16", "three in the scheduler, v4.19", one_by_one);
    compare(
        "corpus-overtaken.txt",
        &machines(&[row], DEADLINE, 4, three_wait),
    );
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn a_passthrough_request_is_overtaken_twice_at_most_in_6_12() {
    let row = ("S16", "the same, v6.12", Rules::v6_12());
    compare(
        "corpus-overtaken-not.txt",
        &machines(&[row], DEADLINE, 4, three_wait),
    );
}

/// S5i in the whole machine.
#[test]
fn a_task_that_was_woken_moves_to_another_hctx() {
    let row = ("S5i", "a woken task moves on", without(Fix::PassedOnWake));
    let moving = |c: &mut Config| {
        c.cpus = 2;
        c.hctxs = 2;
        c.prefilled = 1;
        c.migrates = true;
    };
    compare("corpus-moves.txt", &machines(&[row], NONE, 3, moving));
}
