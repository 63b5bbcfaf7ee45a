//! Runs every `tests/scripts/**/*.txt`: commands, `----`, the expected output.
//!
//! `UPDATE_SCRIPTS=1 cargo test -p blkmq --test scripts` rewrites the expectations; commit only
//! differences you can explain. `script/mod.rs` parses the format, the commands of a kind of script
//! are in a file of their own there.

mod script;

use script::Script;
use std::fs;
use std::path::{Path, PathBuf};

/// All scripts below `folder`, in order of name.
fn scripts_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            found.extend(scripts_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn scripts_print_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let update = std::env::var_os("UPDATE_SCRIPTS").is_some();
    let (mut run, mut failures) = (0, Vec::new());
    for path in scripts_below(&folder) {
        let text = fs::read_to_string(&path).expect("a readable script");
        let name = path
            .strip_prefix(&folder)
            .expect("below the folder")
            .display()
            .to_string();
        run += 1;
        match Script::parse(&text).and_then(|script| script.run()) {
            Err(error) => failures.push(format!("{name}:{error}")),
            Ok(result) if update => fs::write(&path, result.text).expect("a writable script"),
            Ok(result) => {
                failures.extend(result.differences.iter().map(|d| format!("{name}:{d}")));
            }
        }
    }
    assert!(run >= 40, "only {run} scripts in {}", folder.display());
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn a_script_that_says_the_wrong_thing_fails() {
    let script = "# A rule.\nqueue scheduler=mq-deadline\ninsert r 8+8\ndispatch\n----\nD r 16+8\n";
    let result = Script::parse(script)
        .and_then(|script| script.run())
        .expect("a valid script");
    assert_eq!(
        result.differences,
        ["4: expected\n    D r 16+8\n  got\n    D r 8+8"]
    );
    assert!(
        result.text.ends_with("dispatch\n----\nD r 8+8\n"),
        "{}",
        result.text
    );
}

#[test]
fn a_script_must_state_its_rule_and_know_its_words() {
    let error = |text: &str| match Script::parse(text).and_then(|script| script.run()) {
        Err(error) => error,
        Ok(_) => panic!("accepted: {text}"),
    };
    assert!(error("queue scheduler=mq-deadline\n----\n").contains("1: a script starts with"));
    assert!(error("# A rule.\nqueue\ninsert x 8+8\n----\n").contains("3: unknown operation"));
    assert!(error("# A rule.\nqueue\nshuffle\n----\n").contains("3: unknown command"));
    assert!(error("# A rule.\nqueue\n").contains("no ---- line"));
    assert!(error("# A rule.\nqueue fifo_batsh=1\n----\n").contains("2: mq-deadline has no"));
}
