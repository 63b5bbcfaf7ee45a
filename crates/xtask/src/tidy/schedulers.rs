//! All of a scheduler is in its folder: its name stands nowhere else in product code.
//!
//! Which schedulers there are the list in `elevator.rs` says, so that a new one is judged as well.
//! Comments, tests, profiles, scenarios, documents and this crate may name them; strings may not.

use super::Finding;
use super::source::{File, Tree};

/// The list, `schedulers! { .. }`, and the names that kernels have.
const LIST: &str = "crates/blkmq/src/elevator.rs";
const FOLDERS: &str = "crates/blkmq/src/elevator/";

/// Where a scheduler may be named, and why.
const ALLOWED: &[(&str, &str)] = &[
    (LIST, "the list itself"),
    (
        "crates/explore/src/dispatch/",
        "specs/Dispatch is about mq-deadline: its bits and buckets are looked at",
    ),
    ("crates/explore/src/runs/dispatch/", "the same of runs"),
];

/// No scheduler is named outside its folder.
pub(super) fn names_are_in_folders(tree: &Tree, found: &mut Vec<Finding>) {
    let listed = tree.file(LIST).map(listed).unwrap_or_default();
    let sources = tree.products().filter(|file| {
        file.path.starts_with("crates/") && file.crate_name() != "xtask" && !is_allowed(file)
    });
    for file in sources {
        for (kind, module) in &listed {
            let own = format!("{FOLDERS}{module}");
            if file.path == format!("{own}.rs") || file.path.starts_with(&format!("{own}/")) {
                continue;
            }
            let name = module.replace('_', "-");
            for (index, line) in file.spoken.lines().enumerate() {
                let mut words = [kind, module, &name].into_iter();
                if let Some(word) = words.find(|word| names(line, word)) {
                    found.push(Finding {
                        path: file.path.clone(),
                        line: index + 1,
                        text: format!(
                            "`{word}`: all of a scheduler is in its folder; ask its facts instead"
                        ),
                    });
                }
            }
        }
    }
}

fn is_allowed(file: &File) -> bool {
    ALLOWED
        .iter()
        .any(|(path, _)| file.path == *path || path.ends_with('/') && file.path.starts_with(path))
}

/// Type and module of each scheduler: lines `MqDeadline => mq_deadline` of the list.
fn listed(file: &File) -> Vec<(String, String)> {
    let list = file.code.split("\nschedulers! {").nth(1).unwrap_or("");
    let list = list.split("\n}").next().unwrap_or("");
    let rows = list.lines().filter_map(|line| line.split_once("=>"));
    rows.map(|(kind, module)| {
        let module: String = module
            .trim()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        (kind.trim().to_owned(), module)
    })
    .collect()
}

/// True if `word` stands in `line` by itself: `mq-deadline-scaling` is another name.
fn names(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part);
        let after = line[at + word.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}
