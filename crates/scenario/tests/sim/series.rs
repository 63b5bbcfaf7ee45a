//! The January 2024 series under contention, on mq-deadline and bfq: the locks that each preset
//! takes, tries and avoids, and that runs repeat.

use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};
use sim::recorder::LockStats;
use std::path::Path;

const PROFILE: &str = "ryzen-7950x";

/// Schedulers that the series changes, and what their locks' names begin with.
const CHANGED: [(&str, &str); 2] = [("mq-deadline", "dd"), ("bfq", "bfqd")];

/// Locks and I/Os of 16 threads on one null_blk for 3 ms.
fn run(scheduler: &str, queue: &str, seed: u64) -> (Vec<LockStats>, u64) {
    let text = format!(
        "seed = {seed}\n[machine]\nprofile = \"{PROFILE}\"\n[queue]\n\
         scheduler = \"{scheduler}\"\n{queue}\n[device]\ntype = \"null_blk\"\n[[job]]\nrw = \"randread\"\nbs = 512\ndirect = 1\n\
         ioengine = \"io_uring\"\niodepth = 4\niodepth_batch = 4\niodepth_batch_complete = 4\n\
         numjobs = 16\nthread = 1\nnorandommap = 1\ntime_based = 1\nruntime = \"3ms\"\n"
    );
    let profile = profile::built_in(PROFILE).expect("a built-in profile");
    let info = [ProfileFacts {
        name: PROFILE,
        cpus: profile.cpus(),
    }];
    let scenario = Scenario::from_toml(Path::new("series.toml"), &text);
    let plan = scenario
        .and_then(|scenario| scenario.plan(&info))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut simulator = Simulator::new(&plan, &profile).expect("a machine of this plan");
    let outcome = simulator.run(|_| true);
    assert!(matches!(outcome, Outcome::Finished), "{scheduler}: {queue}");
    simulator.settle();
    let recorder = simulator.recorder();
    (recorder.locks.clone(), recorder.total_ios)
}

/// Acquisitions and failed tries of the locks of a name.
fn of(locks: &[LockStats], name: &str) -> (u64, u64) {
    let found = locks.iter().find(|lock| lock.name == name);
    found.map_or((0, 0), |lock| (lock.acquisitions, lock.tries_failed))
}

#[test]
fn presets_take_the_locks_that_they_have() {
    // Name; whether tries at the scheduler's lock fail, buckets are filled, side lists are.
    for (name, tries, buckets, side) in [
        ("stock", false, false, false),
        ("poc", true, true, false),
        ("v1", true, true, false),
        ("v2", true, true, false),
        ("v2-repaired", true, true, false),
        ("v3", true, false, true),
        ("serialise-only", false, false, false),
        ("skip-merge", true, false, false),
    ] {
        for (scheduler, data) in CHANGED {
            let (locks, ios) = run(scheduler, &format!("series = \"{name}\""), 1);
            assert!(ios > 500, "{scheduler}, {name}: {ios}");
            let (taken, failed) = of(&locks, &format!("{data}->lock"));
            assert!(taken > 0, "{scheduler}, {name}");
            assert_eq!(
                failed > 0,
                tries,
                "{scheduler}, {name}: {failed} failed tries"
            );
            let (filled, _) = of(&locks, &format!("{data}->bucket_lists[].lock"));
            assert_eq!(
                filled > 0,
                buckets,
                "{scheduler}, {name}: {filled} bucket locks"
            );
            let (appended, _) = of(&locks, &format!("{data}->insert_lock"));
            assert_eq!(
                appended > 0,
                side,
                "{scheduler}, {name}: {appended} insert locks"
            );
        }
    }
}

/// If merging only tries the lock, each bio tries once; stock takes the lock for it each time.
#[test]
fn a_merge_that_is_skipped_takes_no_lock() {
    for (scheduler, data) in CHANGED {
        let lock = format!("{data}->lock");
        let (stock, ios) = run(scheduler, "", 1);
        let (skipping, more) = run(scheduler, "series = \"skip-merge\"", 1);
        let (taken, _) = of(&stock, &lock);
        let (fewer, failed) = of(&skipping, &lock);
        assert!(
            fewer * ios < taken * more,
            "{scheduler}: {fewer}/{more} of {taken}/{ios}"
        );
        assert!(
            failed > more / 2,
            "{scheduler}: {failed} failed tries at {more} I/Os"
        );
    }
}

#[test]
fn runs_of_the_series_repeat() {
    for queue in ["series = \"v2\"\ndd_cpu_buckets = 4", "series = \"v3\""] {
        for (scheduler, _) in CHANGED {
            let run = |seed| run(scheduler, queue, seed);
            assert_eq!(run(7), run(7), "{scheduler}: {queue}");
            assert_ne!(run(7), run(8), "{scheduler}: {queue}");
        }
    }
}
