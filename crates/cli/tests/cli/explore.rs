//! `blksim explore` and `blksim replay-schedule`.

use crate::place::Place;

const STALLS: &str = "r2-rc4-4x2-one-kept-4.14";

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_found_stall_is_a_file_that_replays_and_another_rule_ends_elsewhere() {
    let place = Place::new();
    let ran = place.blksim(&["explore", STALLS, "--schedule", "s.schedule"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("NoStall violated"), "{ran:?}");
    // Twenty steps, as TLC and the reference have it.
    assert!(ran.stdout.contains("\n 20 "), "{ran:?}");
    assert!(!ran.stdout.contains("\n 21 "), "{ran:?}");
    let ran = place.blksim(&["replay-schedule", "s.schedule", "--labels"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "20 of 20 steps taken",
        "complete.visit",
        "run.count-mark",
        "qcount = <<1, 0>>",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    let ran = place.blksim(&["replay-schedule", "s.schedule", "--set", "RestartRule=R1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.stdout.contains("steps taken: NoStall"), "{ran:?}");
}

#[test]
fn a_clean_variant_has_the_counts_of_tlc() {
    let place = Place::new();
    let ran = place.blksim(&["explore", "r4-later-3x1-all-second-4.15"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in ["holds", " generated, ", " distinct"] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    let expected = include_str!("../../../../specs/Restart/expect.toml");
    let at = expected
        .find("name = \"r4-later-3x1-all-second-4.15\"")
        .unwrap();
    let numbers = expected[at..].lines().filter_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        (name == "generated" || name == "distinct").then(|| format!("{value} {name}"))
    });
    let numbers: Vec<String> = numbers.take(2).collect();
    assert!(
        ran.stdout.contains(&numbers.join(", ")),
        "{numbers:?} {ran:?}"
    );
    // The explorer does not call a property clean that it does not judge.
    for (apart, why) in [
        ("r2p-rc4-3x1-all-second-4.15-2hctxs", "several hctxs"),
        ("r4-later-3x1-none-4.14-labels", "each label is a step"),
        ("v2-inside-2x1-labels", "each label is a step"),
    ] {
        let ran = place.blksim(&["explore", apart]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
}

#[test]
fn a_request_lost_in_a_bucket_is_a_file_that_replays_and_the_repaired_order_goes_elsewhere() {
    let place = Place::new();
    let ran = place.blksim(&["explore", "v2-inside-2x1", "--schedule", "s.schedule"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("NoneLeft violated"), "{ran:?}");
    // Twenty-nine steps, as in TLC.
    assert!(ran.stdout.contains("\n 29 "), "{ran:?}");
    assert!(!ran.stdout.contains("\n 30 "), "{ran:?}");
    let ran = place.blksim(&["replay-schedule", "s.schedule", "--labels"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "29 of 29 steps taken: NoneLeft violated",
        "series-insert.fill",
        "series-dispatch.leave",
        "bucket = <<",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    let ran = place.blksim(&[
        "replay-schedule",
        "s.schedule",
        "--set",
        "Insertion=repaired",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for words in ["`Marked process=", "is rejected", "steps taken: holds"] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
}

#[test]
fn liveness_is_judged_where_a_variant_asks_for_it() {
    let place = Place::new();
    let ran = place.blksim(&["explore", "lock-inside-2x1-live"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("every request ends"), "{ran:?}");
    let waits = "v2-inside-2x1-sees-delayed-live";
    let ran = place.blksim(&["explore", waits, "--schedule", "s.schedule"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for words in ["liveness violated: request", "\nrepeats from "] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    let ran = place.blksim(&["replay-schedule", "s.schedule"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("taken: liveness violated"), "{ran:?}");
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn wrong_schedules_and_names_have_one_clear_error() {
    let place = Place::new();
    let wrong = |command: &[&str], words: &[&str]| {
        let ran = place.blksim(command);
        assert_eq!(ran.code, Some(2), "{command:?}: {ran:?}");
        for words in words {
            assert!(ran.stderr.contains(words), "{words}: {ran:?}");
        }
    };
    wrong(&["explore", "r9"], &["no such variant"]);
    let lives = "v2-inside-2x1-sees-delayed-live";
    wrong(&["explore", lives, "--whole"], &["--whole", "do nothing"]);

    place.blksim(&["explore", STALLS, "--schedule", "s.schedule"]);
    let good = std::fs::read_to_string(place.path("s.schedule")).unwrap();
    let head = "# blksim schedule 1\nspec Restart\nvariant v\nshows NoStall violated\n";
    let cut = good.trim_end().trim_end_matches("end");
    let files: [(&str, Vec<u8>, &[&str]); 8] = [
        ("text", b"hello\n".to_vec(), &["line 1"]),
        ("bytes", b"# blksim\xff".to_vec(), &["byte 8"]),
        (
            "other",
            b"# blksim schedule 1\nspec Other\nvariant v\nshows x\nend\n".to_vec(),
            &["held to Restart, Dispatch, BfqMerge, CfqMerge only"],
        ),
        ("bare", format!("{head}end\n").into(), &["is missing"]),
        ("cut", cut.into(), &["cut off", "`end`"]),
        (
            "constant",
            good.replacen("set ", "set Extra = 3\nset ", 1).into(),
            &["no constant Extra", "Policy"],
        ),
        (
            "hctxs",
            good.replacen("Hctxs = 1", "Hctxs = 2", 1).into(),
            &["several hctxs"],
        ),
        (
            "shows",
            good.replacen("shows NoStall", "shows Bogus", 1).into(),
            &["Bogus", "NoStall, TagsExact"],
        ),
    ];
    for (name, text, words) in files {
        let name = format!("{name}.schedule");
        place.write(&name, text);
        wrong(&["replay-schedule", &name], words);
    }
    wrong(
        &["replay-schedule", "s.schedule", "--set", "Policy=foo"],
        &["--set Policy=foo", "\"strict\" or \"rc4\" or \"later\""],
    );
    wrong(
        &["replay-schedule", "s.schedule", "--set", "Tags"],
        &["NAME=VALUE"],
    );
}

/// A run of the simulator ends, has steps, and shows properties of its specification.
#[test]
fn schedules_of_runs_must_be_runs() {
    let place = Place::new();
    let run = include_str!("../../../../specs/Dispatch/traces/lost-in-a-run.schedule");
    let steps = run.find("\n  1 ").expect("its first step") + 1;
    let shows = "shows NoStall violated";
    let constant = "set Cpus = ";
    assert!(run.contains(shows) && run.contains(constant));
    for (name, text, words) in [
        (
            "repeats",
            format!("{}repeats from 3\n{}", &run[..steps], &run[steps..]),
            "comes to an end",
        ),
        (
            "lives",
            run.replace(shows, "shows liveness violated"),
            "comes to an end",
        ),
        (
            "bogus",
            run.replace(shows, "shows Bogus violated"),
            "NoneLeft",
        ),
        (
            "no-steps",
            format!("{}end\n", &run[..steps]),
            "at least one step",
        ),
        (
            "cpus",
            run.replace(constant, "set Cpus = 9999 + "),
            "constant Cpus",
        ),
        (
            "record",
            run.replace(constant, "set Record = banana\nset Cpus = ")
                .replacen("set Record = TRUE\n", "", 1),
            "TRUE or FALSE",
        ),
    ] {
        let name = format!("{name}.schedule");
        place.write(&name, text);
        let specs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs");
        let ran = place.blksim(&["check", "Dispatch", "--specs", specs, "--run", &name]);
        assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
        assert!(ran.stderr.contains(words), "{name}: {ran:?}");
    }
    place.write("right.schedule", run);
    let ran = place.blksim(&["replay-schedule", "right.schedule"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let what = "`blksim check Dispatch --run right.schedule`";
    assert!(ran.stderr.contains(what), "{ran:?}");
}

/// Memory has a bound, and written files can be read.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_run_of_too_many_steps_is_no_schedule() {
    let place = Place::new();
    let run = [
        "run",
        "mq-deadline-scaling",
        "--runtime=20ms",
        "--ramp-time=0",
        "--device=null_blk,hw_queue_depth=128",
        "--schedule=s.schedule",
    ];
    let ran = place.blksim(&run);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("more than 100000 steps"), "{ran:?}");
    assert!(place.files().is_empty(), "{:?}", place.files());
}

/// Without a violation an older file stays, and is said to be older.
#[test]
fn no_violation_writes_no_schedule() {
    let place = Place::new();
    place.write("s.schedule", "old");
    let holds = "r2p-rc4-2x1-all-second-4.15-split";
    let ran = place.blksim(&[
        "explore",
        holds,
        "--depth-first",
        "--schedule",
        "s.schedule",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("s.schedule is not written"), "{ran:?}");
    assert!(!ran.stdout.contains("depth"), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(place.path("s.schedule")).unwrap(),
        "old"
    );
}
