//! Each rule against a snippet that it must catch and one that it must let pass.

use super::source::{Tree, imports};
use super::{Finding, RULES};

/// Places, as `path:line`, that the rule finds.
fn found(rule: &str, files: &[(&str, &str)]) -> Vec<String> {
    let rule = RULES
        .iter()
        .find(|known| known.name == rule)
        .expect("a rule of the table");
    let mut findings: Vec<Finding> = Vec::new();
    (rule.check)(&Tree::of(files), &mut findings);
    findings.sort();
    findings
        .iter()
        .map(|finding| format!("{}:{}", finding.path, finding.line))
        .collect()
}

/// The rule finds exactly the marked lines of a file: those that end in `// BAD`.
fn check(rule: &str, path: &str, text: &str) {
    let bad = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.ends_with("// BAD"));
    let expected: Vec<String> = bad
        .map(|(index, _)| format!("{path}:{}", index + 1))
        .collect();
    let mut got = found(rule, &[(path, text)]);
    got.dedup();
    assert_eq!(got, expected, "{rule} on\n{text}");
}

/// Rule, path and snippet.
const MUTANTS: &str = r#"
pure-blkmq crates/blkmq/src/a.rs use std::time::Instant;
memory-order crates/cli/src/a.rs x.load(SeqCst);
only-cli-speaks crates/sim/src/a.rs println!("");
only-cli-touches-paths crates/sim/src/a.rs use std::fs::File;
trace-uses-time-only crates/trace/src/a.rs use blkmq::request::Bio;
plots-see-reports crates/cli/src/plot.rs fn plot(s: &Simulator) {}
no-stubs crates/sim/tests/a.rs fn f() { todo!() }
no-unwrap crates/sim/src/a.rs fn f() { x.unwrap() }
lints-have-reasons crates/sim/src/a.rs #[allow(dead_code)] fn f() {}
prices-in-profiles crates/sim/src/a.rs const LOCK_NS: u64 = 40;
dependencies crates/blkmq/Cargo.toml dependencies.serde = "1"
crates crates/utils/Cargo.toml [package]
top-level notes.md Notes.
forbid-unsafe crates/sim/src/lib.rs //! Library.
header crates/sim/src/a.rs use x;
deviations docs/explanation/model.md | D1 | in no code |
links docs/a.md [x](gone.md)
names crates/blkmq/src/a.rs struct LonePlug;
prose benches/src/a.rs /// Whoever waits.
"#;

#[test]
fn every_rule_catches_its_mutant() {
    let wide = "x".repeat(101);
    let long = "\n".repeat(801);
    let longish = "\n".repeat(201);
    let tall = format!("fn f() {{{}}}", "\n".repeat(70));
    let wordy = "word ".repeat(35_001);
    let lines = "\n".repeat(101);
    let path = "crates/sim/src/a.rs";
    let circle = vec![
        (path, "use crate::b;"),
        ("crates/sim/src/b.rs", "use crate::a;"),
    ];
    let mut mutants: Vec<(&str, Vec<(&str, &str)>)> = vec![
        ("columns", vec![(path, &wide)]),
        ("file-length", vec![(path, &long)]),
        ("file-length-median", vec![(path, &longish)]),
        ("function-length", vec![(path, &tall)]),
        ("circles", circle),
        (
            "contents",
            vec![("docs/SUMMARY.md", ""), ("docs/a.md", "A.")],
        ),
        ("docs-words", vec![("docs/a.md", &wordy)]),
        ("readme-lines", vec![("README.md", &lines)]),
        (
            "schedulers-in-folders",
            vec![
                (
                    "crates/blkmq/src/elevator.rs",
                    "\nmacro_rules! schedulers {\n    Noop => noop,\n}\n",
                ),
                (path, "fn f() -> &'static str { \"noop\" }"),
            ],
        ),
    ];
    for line in MUTANTS.trim().lines() {
        let (rule, rest) = line.split_once(' ').expect("a rule, then a path");
        let (path, text) = rest.split_once(' ').expect("a path, then a snippet");
        mutants.push((rule, vec![(path, text)]));
    }
    for (rule, files) in &mutants {
        assert!(!found(rule, files).is_empty(), "{rule} misses its mutant");
    }
    for rule in RULES {
        assert!(
            mutants.iter().any(|(name, ..)| *name == rule.name),
            "{} has none",
            rule.name
        );
    }
}

#[test]
fn a_test_may_be_left_to_a_longer_run() {
    let text = r#"
#[ignore = "minutes: cargo xtask explore --full"]
fn f() {}
#[ignore] // BAD
fn g() {}
#[ignore = "not today"] // BAD
fn h() { unimplemented!() } // BAD
"#;
    check("no-stubs", "crates/explore/tests/a.rs", text);
}

#[test]
fn blkmq_words_are_seen_in_code_alone() {
    let text = r##"//! f64 in a header.
use std::{fmt, time::Duration}; // BAD
use std::{cell::Cell, io::{self, Read}}; // BAD
use core::fmt;
struct HashMapper;
fn f() { let x = 1.0_f32; std::thread::yield_now(); } // BAD
fn g(map: &HashMap<u8, u8>) {} // BAD
const TEXT: &str = "std::time and f64";
const RAW: &str = r#"HashMap " "#;
const QUOTE: char = '"'; // a f64
fn h<'a>(x: &'a u8) -> f64 { 0 } // BAD
#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    fn f() { { } }
}
fn after() -> f64 { 0 } // BAD
"##;
    check("pure-blkmq", "crates/blkmq/src/a.rs", text);
    assert!(found("pure-blkmq", &[("crates/blkmq/tests/a.rs", text)]).is_empty());
    assert!(found("pure-blkmq", &[("crates/blkmq/src/a/tests.rs", text)]).is_empty());
    assert!(found("pure-blkmq", &[("crates/sim/src/a.rs", text)]).is_empty());
    let threads = "use std::thread;";
    assert!(
        found(
            "pure-blkmq",
            &[("crates/blkmq/src/env/threads.rs", threads)]
        )
        .is_empty()
    );
}

#[test]
fn comparing_is_no_memory_ordering() {
    let text = "use std::cmp::Ordering;
fn f() -> Ordering { Ordering::Less }
enum Lock { Acquire, Release }
fn g() { bit.load(Ordering::Acquire); } // BAD
fn h() { bit.load(Relaxed); } // BAD
use std::sync::atomic::Ordering as Order; // BAD
use std::sync::{Arc, atomic}; // BAD
";
    check("memory-order", "crates/cli/src/a.rs", text);
    check("memory-order", "crates/blkmq/src/env/solo.rs", text);
    assert!(found("memory-order", &[("crates/blkmq/src/env/threads.rs", text)]).is_empty());
    assert!(found("memory-order", &[("crates/blkmq/tests/loom.rs", text)]).is_empty());
}

#[test]
fn libraries_do_not_speak_or_touch_paths() {
    let speaks = "fn f() { eprintln!(\"\"); } // BAD
fn g() { writeln!(out, \"println!\"); }
fn h() { let x = std::env::args(); } // BAD
use std::io::{Write, stdout}; // BAD
use std::process; // BAD
";
    check("only-cli-speaks", "crates/trace/src/a.rs", speaks);
    assert!(found("only-cli-speaks", &[("crates/cli/src/a.rs", speaks)]).is_empty());
    let paths = "use std::path::Path; // BAD
fn f() { std::fs::read(p); } // BAD
fn g() { p.exists() } // BAD
use std::io::Write;
";
    check("only-cli-touches-paths", "crates/explore/src/a.rs", paths);
    assert!(
        found(
            "only-cli-touches-paths",
            &[("crates/trace/src/a.rs", paths)]
        )
        .is_empty()
    );
    let names = "use std::path::Path;
fn f(file: &Path) { file.display() }
fn g(file: &Path) { file.is_file() } // BAD
fn h() { std::fs::File::open(p) } // BAD
";
    check("only-cli-touches-paths", "crates/scenario/src/a.rs", names);
}

#[test]
fn trace_is_a_leaf() {
    let text = "use blkmq::time::SimTime;
use blkmq::{time::Duration, queue::HwQueue}; // BAD
fn f(rq: blkmq::request::Request) {} // BAD
fn g(at: blkmq::time::SimTime) {}
";
    check("trace-uses-time-only", "crates/trace/src/a.rs", text);
    assert!(found("trace-uses-time-only", &[("crates/sim/src/a.rs", text)]).is_empty());
}

#[test]
fn unwrap_is_for_tests() {
    let text = "fn f() { x.unwrap_or(1); }
fn g() { x.unwrap(); } // BAD
#[cfg(test)]
use a::b;
fn h() { x.unwrap(); } // BAD
#[cfg(test)]
mod tests;
fn i() { x.expect(\"it is a.unwrap()\"); }
";
    check("no-unwrap", "crates/sim/src/a.rs", text);
}

#[test]
fn reasons_may_stand_on_the_next_line() {
    let text = "#[expect(
    clippy::a,
    reason = \"b\"
)]
fn f() {}
#[expect(clippy::a)] // BAD
fn g() {}
";
    check("lints-have-reasons", "crates/sim/tests/a.rs", text);
}

#[test]
fn prices_are_numbers_given_to_times() {
    let text = "const HANDOFF_NS: u64 = 80; // BAD
let lock_ns = 55; // BAD
Costs { hold_ns: 1_234u64, wait_ns: 0 } // BAD
let spent_cycles: u64 = 7; // BAD
let hold_ns = profile.hold_ns;
const SECOND_NS: u64 = 1_000_000_000;
fn f(wait_ns: u64) {}
let iodepth = 32;
if wait_ns == 12 {}
";
    check("prices-in-profiles", "crates/sim/src/a.rs", text);
    assert!(found("prices-in-profiles", &[("crates/cli/src/a.rs", text)]).is_empty());
}

#[test]
fn dependencies_point_one_way() {
    let one = |path: &str, text: &str| found("dependencies", &[(path, text)]).len();
    let blkmq = "[target.'cfg(loom)'.dependencies]\nloom = \"1\"\n[dev-dependencies]\nx = \"1\"";
    assert_eq!(one("crates/blkmq/Cargo.toml", blkmq), 0);
    let target = "[target.'cfg(unix)'.dependencies]\nlibc = \"1\"";
    assert_eq!(one("crates/blkmq/Cargo.toml", target), 1);
    assert_eq!(
        one(
            "crates/blkmq/Cargo.toml",
            "[build-dependencies]\ncc = \"1\""
        ),
        1
    );
    let sim = "[dependencies]\nblkmq.workspace = true\ntrace.workspace = true\nserde = \"1\"";
    assert_eq!(one("crates/sim/Cargo.toml", sim), 0);
    assert_eq!(one("crates/explore/Cargo.toml", sim), 1);
    let renamed = "[dependencies]\nmachine = { package = \"blksim-sim\", path = \"../sim\" }";
    assert_eq!(one("crates/trace/Cargo.toml", renamed), 1);
    assert_eq!(
        one(
            "crates/sim/Cargo.toml",
            "[dev-dependencies]\nexplore = \"1\""
        ),
        1
    );
    assert_eq!(one("crates/sim/Cargo.toml", "not toml"), 1);
}

#[test]
fn clean_files_pass_the_shape_rules() {
    let long = format!("//! Header.\nfn f() {{{}}}\nfn g() {{}}\n", "\n".repeat(69));
    let kinds =
        "//! Header.\ntype F = fn (u8);\ntrait T { fn f(&self); }\nstruct S { f: fn (u8) }\n";
    let declared = format!("{kinds}{}mod m {{}}\n", "\n".repeat(80));
    for rule in ["header", "columns", "file-length", "function-length"] {
        for text in [&long, &declared] {
            assert_eq!(
                found(rule, &[("crates/sim/src/a.rs", text)]),
                [""; 0],
                "{rule}"
            );
        }
    }
    for head in [
        "fn g(\n) -> u8",
        "pub fn g<A, B>(x: [A; 2]) -> impl Iterator<Item = B>",
    ] {
        let second = format!("//! Header.\nfn f() {{}}\n{head} {{{}}}\n", "\n".repeat(70));
        let got = found("function-length", &[("crates/sim/src/a.rs", &second)]);
        assert_eq!(got, ["crates/sim/src/a.rs:3"]);
    }
    for (head, is_allowed) in [
        ("/// f_of_the_kernel(): so.\n#[steps]", true),
        ("/// f_of_the_kernel(): so.\n#[steps(inline)]", true),
        ("/// So.\n#[steps]\n/// f_of_the_kernel().", true),
        ("/// So.\n#[steps(path)]", false),
        ("/// f_of_the_kernel().", false),
        ("/// f_of_the_kernel().\n#[steps]\nfn g() {}", false),
    ] {
        let text = format!("//! Header.\n{head}\nfn f() {{{}}}\n", "\n".repeat(70));
        let got = found("function-length", &[("crates/sim/src/a.rs", &text)]);
        assert_eq!(got.is_empty(), is_allowed, "{head}");
    }
    let quoted = format!("//! Header.\nconst A: &str = \"{}\";\n", "x".repeat(100));
    assert_eq!(
        found("columns", &[("crates/sim/src/a/tests.rs", &quoted)]),
        [""; 0]
    );
    assert_eq!(
        found("columns", &[("crates/sim/src/a.rs", &quoted)]),
        ["crates/sim/src/a.rs:2"]
    );
    assert!(found("header", &[("crates/sim/src/a.rs", "// Not a header.")]).len() == 1);
}

#[test]
fn deviations_and_rows_are_compared_both_ways() {
    let code = (
        "crates/sim/src/a.rs",
        "// Deviation(D1): x.\n// A deviation. Deviations.\n",
    );
    let model = (
        "docs/explanation/model.md",
        "| id | what |\n|---|---|\n| D1 | x |\n",
    );
    let more = (
        "docs/explanation/model.md",
        "| D1 | x |\n| D2 | y |\n| D1 | z |\n",
    );
    let rows = found("deviations", &[code, more]);
    assert_eq!(found("deviations", &[code, model]), [""; 0]);
    assert_eq!(
        rows,
        ["docs/explanation/model.md:1", "docs/explanation/model.md:2"]
    );
    let bare = (
        "crates/sim/src/a.rs",
        "// Deviation(D1): x.\n// Deviation: y.\n",
    );
    assert_eq!(
        found("deviations", &[bare, model]),
        ["crates/sim/src/a.rs:2"]
    );
    let empty = ("docs/explanation/model.md", "");
    assert_eq!(
        found("deviations", &[code, empty]),
        ["crates/sim/src/a.rs:1"]
    );
}

#[test]
fn links_are_followed_from_their_file() {
    let there = ("docs/b.md", "## What `a` is, in part\n<a id=\"c\"></a>\n");
    let text = "# X
[b](b.md) [b](../docs/b.md#what-a-is-in-part) [web](https://example.org) [here](#x)
[c](b.md#c) `docs/b.md` `docs/*.md` `crates/<name>`
";
    assert_eq!(found("links", &[("docs/a.md", text), there]), [""; 0]);
    let gone = "[b](docs/b.md)\n`docs/c.md`\n[b](b.md#another-part)\n[here](#x)\n";
    assert_eq!(
        found("links", &[("docs/a.md", gone), there]),
        ["docs/a.md:1", "docs/a.md:2", "docs/a.md:3", "docs/a.md:4"]
    );
    let deep = "[b](../b.md)\n[b](b.md)\n";
    assert_eq!(
        found("links", &[("docs/guides/a.md", deep), there]),
        ["docs/guides/a.md:2"]
    );
    assert_eq!(
        found("links", &[("README.md", "[b](docs/c.md)"), there]),
        ["README.md:1"]
    );
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = ("docs/SUMMARY.md", "- [A](a.md)\n- [C](b/c.md#part)\n");
    let pages = [contents, ("docs/a.md", ""), ("docs/b/c.md", "# Part")];
    assert_eq!(found("contents", &pages), [""; 0]);
    let more = [
        pages[0],
        pages[1],
        ("docs/b/d.md", ""),
        ("specs/README.md", ""),
    ];
    assert_eq!(found("contents", &more), ["docs/b/d.md:0"]);
}

#[test]
fn a_readme_of_a_hundred_lines_is_short() {
    let lines = "\n".repeat(100);
    assert_eq!(found("readme-lines", &[("README.md", &lines)]), [""; 0]);
}

#[test]
fn words_of_the_book_are_counted_outside_of_generated_blocks() {
    let half = "word | ".repeat(17_500);
    let blocks = "<!-- results: a -->\nmany words\n<!-- end -->\n\
                  <!-- generated: b -->\nmany words\n<!-- end -->\n";
    let pages = [("docs/a.md", half.as_str()), ("docs/b/c.md", &half)];
    let more = |text| [pages[0], pages[1], ("docs/d.md", text)];
    assert_eq!(found("docs-words", &more(blocks)), [""; 0]);
    assert_eq!(found("docs-words", &more("one")), ["docs:0"]);
    let after = format!("{blocks}one");
    assert_eq!(found("docs-words", &more(&after)), ["docs:0"]);
}

#[test]
fn imports_are_written_out() {
    let code = "use a::{self, b::{c, d as e}, f};\npub(crate) use g;\nreuse h;";
    let expected = [
        (1, "a"),
        (1, "a::b::c"),
        (1, "a::b::d"),
        (1, "a::f"),
        (2, "g"),
    ];
    let expected: Vec<(usize, String)> = expected
        .iter()
        .map(|(line, path)| (*line, (*path).to_owned()))
        .collect();
    assert_eq!(imports(code), expected);
}

#[test]
fn a_scheduler_is_named_in_its_folder_alone() {
    let list = "//! List.\n\nmacro_rules! schedulers {\n    ($then:ident) => {\n        /// One.\n    \
                FairOne => fair_one [\n        FairInsert = insert::At,\n    ],\n    Noop => noop,\n\
                    };\n}\n";
    let text = "use blkmq::elevator::fair_one::FairOne; // BAD
// A comment may say FairOne.
const NAME: &str = \"fair-one\"; // BAD
const SCENARIO: &str = \"fair-one-scaling\";
const LABEL: &str = \"fair-insert.drain\"; // BAD
const OTHER: &str = \"fair-inserted\";
use blkmq::path::label::FairInsert; // BAD
fn f(kind: SchedulerKind) -> bool { kind == SchedulerKind::Noop } // BAD
fn noops() {}
#[cfg(test)]
mod tests {
    const NAME: &str = \"fair-one\";
}
";
    let bad: Vec<String> = (text.lines().zip(1..))
        .filter(|(line, _)| line.ends_with("// BAD"))
        .map(|(_, number)| format!("crates/sim/src/a.rs:{number}"))
        .collect();
    let files = |path| [("crates/blkmq/src/elevator.rs", list), (path, text)];
    let rule = "schedulers-in-folders";
    assert_eq!(found(rule, &files("crates/sim/src/a.rs")), bad);
    assert_eq!(found(rule, &files("crates/sim/tests/a.rs")), [""; 0]);
    assert_eq!(found(rule, &files("crates/xtask/src/a.rs")), [""; 0]);
    // A list that is not found judges nothing.
    let gone = list.replace("schedulers", "others");
    let lost = found(rule, &[("crates/blkmq/src/elevator.rs", gone.as_str())]);
    assert_eq!(lost, ["crates/blkmq/src/elevator.rs:1"]);
    // Its folder may name it, and no other one.
    let own = found(rule, &files("crates/blkmq/src/elevator/fair_one/a.rs"));
    assert_eq!(own, ["crates/blkmq/src/elevator/fair_one/a.rs:8"]);
}

#[test]
fn old_names_are_found_in_code_and_not_in_text() {
    let text = r#"
//! in_hand
fn owned(path: &Path) -> bool { path.in_hand() } // BAD
const NAME: &str = "in_hand";
fn picked_in_hand() {}
"#;
    check("names", "crates/blkmq/src/a.rs", text);
}

#[test]
fn prose_is_found_in_comments_and_strings_of_plain_paths() {
    let text = r#"
/// The driver is told. BAD
fn told() {}
const TEXT: &str = "the lock behind it"; // BAD
const KEY: &str = "told";
"#;
    let bad = text.replace("told. BAD", "told. // BAD");
    check("prose", "benches/src/a.rs", &bad);
    let none: &[String] = &[];
    assert_eq!(found("prose", &[("docs/results/a.md", &bad)]), none);
    let page = ("docs/start/a.md", "The report tells\nwho waits.");
    assert_eq!(found("prose", &[page]), ["docs/start/a.md:1"]);
}
