//! Small configurations of the explorer with mq-deadline's own C: as many states as with the
//! model's, and the same verdict; and wrong C, which must be found.
//!
//! `BLKSIM_LINUX` is a directory with kernel trees `6.1` and `6.12`; `cargo xtask differential`
//! sets it. Without it nothing is tested.

use std::fs;
use std::path::{Path, PathBuf};

use blkmq::elevator::{Custom, SchedulerKind};
use blkmq::rules::Rules;
use explore::{Config, Report, Resources, exhaustive};
use kernel::{Library, Policy, Tree};

/// Ticks a second, as the explorer has them.
const HZ: u32 = 250;

type Change = fn(&mut Config);

/// Name, tasks, and what differs from one CPU with one tag.
const CONFIGS: [(&str, usize, Change); 7] = [
    ("one read", 1, |_| {}),
    ("two reads, one tag", 2, |_| {}),
    ("two reads, two tags, two completers", 2, |c| {
        c.tags = 2;
        c.completers = 2;
    }),
    ("two reads, one may be refused, 3 ms runs", 2, |c| {
        c.refusals = 1;
        c.delayed_runs = true;
    }),
    ("two reads, one may be refused, no 3 ms runs", 2, |c| {
        c.refusals = 1;
    }),
    ("three reads queued, two tags", 3, |c| {
        c.prefilled = 3;
        c.nr_requests = 4;
        c.tags = 2;
        c.completers = 2;
    }),
    ("one read, two requeues", 1, |c| c.requeues = 2),
];

fn tree(kernel: &str) -> Option<PathBuf> {
    let trees = std::env::var_os("BLKSIM_LINUX")?;
    Some(Path::new(&trees).join(kernel))
}

fn explored(config: &Config) -> Report {
    exhaustive(config, &Resources::ALONE).expect("nothing stops it")
}

/// The scheduler of a file, for the explorer.
fn own(tree: &Path, file: &Path) -> Custom {
    let tree = Tree::open(tree).expect("a kernel tree");
    let library = Library::build(&tree, file, HZ, false).expect("it compiles");
    Custom::new(Policy::new(&library).expect("it takes a queue"))
}

fn config(name: &str, rules: Rules, own: &Custom, tasks: usize, change: Change) -> Config {
    let mut config = Config::of_own(name, rules, own.clone(), tasks);
    config.nr_requests = 2;
    change(&mut config);
    config
}

#[test]
fn mq_deadline_in_c_explored_like_the_models() {
    for (kernel, rules) in [("6.1", Rules::v6_1()), ("6.12", Rules::v6_12())] {
        let Some(tree) = tree(kernel) else { return };
        let own = own(&tree, &tree.join("block/mq-deadline.c"));
        for (name, tasks, change) in CONFIGS {
            let in_c = explored(&config(name, rules, &own, tasks, change));
            let mut config = Config::new(name, rules, SchedulerKind::MqDeadline, tasks);
            change(&mut config);
            let model = explored(&config);
            assert_eq!(in_c, model);
        }
    }
}

/// Lines of mq-deadline in 6.12, what comes in their place, a configuration, and its verdict with a
/// word of its text.
const WRONG: [(&str, &str, &str, &str, &str); 3] = [
    // No work is found though a request is on the dispatch list.
    (
        "\tif (!list_empty_careful(&dd->dispatch))\n\t\treturn true;\n",
        "",
        "one read, two requeues",
        "stall",
        "bios have ended, request 0 in Elevator",
    ),
    // No work is found though a read waits.
    (
        "\treturn !list_empty_careful(&per_prio->fifo_list[DD_READ]) ||\n",
        "\treturn\n",
        "two reads, one tag",
        "stall",
        "bios have ended, request 0 in Elevator",
    ),
    // A dispatched request stays in the scheduler.
    (
        "\tdeadline_remove_request(rq->q, per_prio, rq);\n",
        "",
        "two reads, two tags, two completers",
        "panic",
        "is not in the scheduler",
    ),
];

#[test]
fn wrong_c_is_found() {
    let Some(tree) = tree("6.12") else { return };
    let right = tree.join("block/mq-deadline.c");
    let right = fs::read_to_string(right).expect("a file of the tree");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("mq-deadline.c");
    for (lines, instead, name, word, text) in WRONG {
        assert_eq!(right.matches(lines).count(), 1, "{lines}");
        fs::write(&file, right.replace(lines, instead)).expect("a writable directory");
        let own = own(&tree, &file);
        let known = CONFIGS.iter().find(|(known, ..)| *known == name);
        let &(_, tasks, change) = known.expect("a configuration");
        let report = explored(&config(name, Rules::v6_12(), &own, tasks, change));
        assert_eq!(report.verdict.word(), word, "{lines}: {report}");
        assert!(report.to_string().contains(text), "{lines}: {report}");
    }
}

/// A scheduler's copies share memory: several threads find the same states as one.
#[test]
fn threads_find_the_same_states() {
    let Some(tree) = tree("6.12") else { return };
    let own = own(&tree, &tree.join("block/mq-deadline.c"));
    let (name, tasks, change) = CONFIGS[5];
    let config = config(name, Rules::v6_12(), &own, tasks, change);
    let two = Resources {
        jobs: 2,
        ..Resources::ALONE
    };
    let two = exhaustive(&config, &two).expect("nothing stops it");
    assert_eq!(two, explored(&config));
}
