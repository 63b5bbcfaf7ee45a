//! The constants of each configuration, read and written again.

use std::fs;
use std::path::Path;

use crate::spec::Specification;
use crate::{bfq_merge, cfq_merge, dispatch, restart};

/// Constants that no explored setting has.
const OF_RUNS: [&str; 2] = ["Record", "Rechecks"];

/// Compares what `written` makes of each configuration that the code follows with its text; returns
/// the number of values.
fn compared<S: Specification>(written: impl Fn(&S) -> Vec<(String, String)>) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    let folder = folder.join(S::NAME).join("variants");
    let mut values = 0;
    for file in fs::read_dir(folder).expect("a folder") {
        let path = file.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a configuration");
        let setting = S::of_configuration(&text).expect("a right configuration");
        if setting.beyond("").is_some() {
            continue;
        }
        let given = crate::tlc::settings(&text);
        let written = written(&setting);
        for constant in given
            .iter()
            .filter(|(name, _)| !OF_RUNS.contains(&name.as_str()))
        {
            let known = |(name, _): &&(String, String)| *name == constant.0;
            if let Some(again) = written.iter().find(known) {
                assert_eq!(again, constant, "{}", path.display());
                values += 1;
            }
        }
    }
    values
}

#[test]
fn constants_of_restart_are_written_as_they_were_read() {
    assert!(compared(restart::Setting::constants) >= 15 * 90);
}

#[test]
fn constants_of_dispatch_are_written_as_they_were_read() {
    assert!(compared(dispatch::Setting::constants) >= 7 * 30);
}

#[test]
fn constants_of_cfq_merge_are_written_as_they_were_read() {
    assert!(compared(cfq_merge::Setting::rule_constants) >= 9 * 30);
}

#[test]
fn constants_of_bfq_merge_are_written_as_they_were_read() {
    assert!(compared(bfq_merge::Setting::rule_constants) >= 15 * 10);
}
