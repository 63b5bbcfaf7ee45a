//! A schedule survives its file; an error names the line of a wrong file.

use super::{Argument, Schedule, Step};

fn example() -> Schedule {
    let step = |action: &str, arguments: &[(&str, Argument)], free: &str| Step {
        action: action.to_owned(),
        arguments: arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        observed: vec![
            ("free".to_owned(), free.to_owned()),
            ("marked".to_owned(), "{<<1, 1>>}".to_owned()),
        ],
    };
    Schedule {
        spec: "Restart".to_owned(),
        variant: "r2-rc4".to_owned(),
        shows: "NoStall is violated".to_owned(),
        settings: vec![("Policy".to_owned(), "\"rc4\"".to_owned())],
        steps: vec![
            step(
                "Issue",
                &[
                    ("hctx", Argument::Hctx(2, 1)),
                    ("context", Argument::Number(1)),
                ],
                "<<1>>",
            ),
            step("Free", &[("request", Argument::Number(3))], "<<2>>"),
        ],
        repeats_from: Some(2),
    }
}

#[test]
fn written_and_read_it_is_the_same() {
    let text = example().to_string();
    assert!(text.contains("  1 Issue hctx=2.1 context=1"), "{text}");
    assert_eq!(Schedule::parse(&text), Ok(example()), "{text}");
    let remarked = text.replacen('\n', "\n# a remark\n\n", 1);
    assert_eq!(Schedule::parse(&remarked), Ok(example()));
    let blind = Schedule {
        steps: vec![Step {
            action: "Fire".to_owned(),
            ..Step::default()
        }],
        repeats_from: None,
        ..example()
    };
    assert_eq!(Schedule::parse(&blind.to_string()), Ok(blind));
}

#[test]
fn a_wrong_file_is_reported_by_its_line() {
    let good = example().to_string();
    for (from, to, line, what) in [
        ("# blksim schedule 1", "# blksim trace", 1, "no schedule"),
        ("spec ", "speck ", 2, "`speck`"),
        ("Policy = ", "Policy ", 5, "NAME = VALUE"),
        ("repeats from 2", "repeats from 3", 6, "expected 1 to 2"),
        ("repeats from 2", "repeats 2", 6, "repeats from STEP"),
        ("  1 Issue", "  2 Issue", 7, "next step's number, 1"),
        ("hctx=2.1", "hctx=2.x", 7, "QUEUE.INDEX"),
        ("context=1", "context", 7, "NAME=VALUE"),
        ("request=3", "request=-3", 8, "expected a number"),
        ("request=3", "request=0", 8, "expected a number"),
        ("hctx=2.1", "hctx=2.0", 7, "QUEUE.INDEX"),
        ("free = <<2>>", "free <<2>>", 8, "NAME = VALUE"),
        ("variant r2-rc4", "spec Dispatch", 3, "one `spec NAME`"),
        ("shows NoStall is violated", "shows", 4, "one `shows NAME`"),
        ("shows NoStall is violated\n", "", 8, "without `shows NAME`"),
        ("\nend\n", "\n", 8, "cut off"),
        ("\nend\n", "\nend\nend\n", 10, "after `end`"),
        ("repeats from 2", "set Policy = \"later\"", 6, "set twice"),
    ] {
        assert!(good.contains(from), "{from}");
        let error = Schedule::parse(&good.replacen(from, to, 1)).expect_err(to);
        assert_eq!(error.line, line, "{to}: {error}");
        assert!(error.what.contains(what), "{to}: {error}");
    }
    assert_eq!(Schedule::parse("").expect_err("empty").line, 1);
    for (at, _) in good.char_indices().take(good.len() - "end\n".len() + 2) {
        Schedule::parse(&good[..=at]).expect_err("cut off");
    }
}
