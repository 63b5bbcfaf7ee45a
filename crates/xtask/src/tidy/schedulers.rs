//! All of a scheduler is in its folder: its name is nowhere else in product code.
//!
//! The list in `elevator.rs` gives the schedulers, so that a new one is judged as well. Comments,
//! tests, profiles, scenarios, documents and this crate may name them; strings may not.

use super::Finding;
use super::source::{File, Tree};

/// The list, `macro_rules! schedulers`.
const LIST: &str = "crates/blkmq/src/elevator.rs";
const FOLDERS: &str = "crates/blkmq/src/elevator/";

/// Where a scheduler may be named, and why.
const ALLOWED: &[(&str, &str)] = &[
    (LIST, "the list itself"),
    (
        "crates/cli/src/reference/kernels.rs",
        "headings of rules that one scheduler has",
    ),
    (
        "crates/explore/src/dispatch/",
        "specs/Dispatch is about mq-deadline: its bits and buckets are looked at",
    ),
    (
        "crates/explore/src/bfq_merge/",
        "specs/BfqMerge is about bfq: its merge protocol is what is walked",
    ),
    (
        "crates/explore/src/cfq_merge/",
        "specs/CfqMerge is about cfq: its merge code is what is walked",
    ),
    (
        "crates/explore/src/run_recorder/",
        "the same of runs, with the merge events that the schedulers record",
    ),
    (
        "crates/cli/examples/own-scheduler.rs",
        "its first scheduler is a wrapper around mq-deadline",
    ),
    (
        "crates/trace/src/ftrace/",
        "a kernel's trace events have its scheduler's name",
    ),
    (
        "crates/trace/src/meta/cgroup.rs",
        "a cgroup's attribute has its scheduler's name",
    ),
];

/// No scheduler is named outside its folder.
pub(super) fn names_are_in_folders(tree: &Tree, found: &mut Vec<Finding>) {
    let listed = tree.file(LIST).map(listed).unwrap_or_default();
    if listed.is_empty() {
        found.push(Finding {
            path: LIST.to_owned(),
            line: 1,
            text: "the list of schedulers is not found, so nothing is judged by it".to_owned(),
        });
    }
    let sources = tree.products().filter(|file| {
        file.path.starts_with("crates/") && file.crate_name() != "xtask" && !is_allowed(file)
    });
    for file in sources {
        for Listed { module, words } in &listed {
            let own = format!("{FOLDERS}{module}");
            if file.path == format!("{own}.rs") || file.path.starts_with(&format!("{own}/")) {
                continue;
            }
            for (index, line) in file.spoken.lines().enumerate() {
                if let Some(word) = words.iter().find(|word| names(line, word)) {
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

/// A scheduler of the list.
struct Listed {
    module: String,
    /// Its type, module and kernel name, and the same of its groups of labels.
    words: Vec<String>,
}

/// Each scheduler: lines `Kyber => kyber [` of the list, and `KyberInsert = insert::At,` of groups.
fn listed(file: &File) -> Vec<Listed> {
    let list = file.code.split("\nmacro_rules! schedulers {").nth(1);
    let list = list.unwrap_or("").split("\n}").next().unwrap_or("");
    let mut all: Vec<Listed> = Vec::new();
    // `($then:ident) => {` is the macro's own.
    for line in list.lines().filter(|line| !line.contains('$')) {
        if let Some((kind, module)) = line.split_once("=>") {
            let word = |c: &char| c.is_alphanumeric() || *c == '_';
            let module: String = module.trim().chars().take_while(word).collect();
            let words = vec![
                kind.trim().to_owned(),
                module.clone(),
                module.replace('_', "-"),
            ];
            all.push(Listed { module, words });
        } else if let (Some((group, _)), Some(last)) = (line.split_once('='), all.last_mut()) {
            let group = group.trim();
            last.words.extend([group.to_owned(), kebab(group)]);
        }
    }
    all
}

/// `KyberInsert` as labels have it: `kyber-insert`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}

/// True if `word` is in `line` by itself: `mq-deadline-scaling` is another name.
fn names(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part);
        let after = line[at + word.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}
