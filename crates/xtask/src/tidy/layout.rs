//! Rules about folders, crates and their dependencies.

use toml::Table;

use super::Finding;
use super::source::{Tree, has_word};

/// Crates of the house with the crates of the house that each may use.
const CRATES: &[(&str, &[&str])] = &[
    ("steps", &[]),
    ("blkmq", &["steps"]),
    ("trace", &["blkmq"]),
    ("sim", &["blkmq", "trace"]),
    ("explore", &["blkmq"]),
    ("conform", &["blkmq", "trace"]),
    ("scenario", &["blkmq", "trace", "sim"]),
    ("study", &["blkmq", "trace", "sim", "scenario"]),
    (
        "cli",
        &[
            "blkmq", "trace", "sim", "scenario", "conform", "explore", "study", "kernel",
        ],
    ),
    ("kernel", &["blkmq"]),
    ("python", &["cli"]),
    ("xtask", &[]),
];

/// The only file with unsafe code: it calls C.
const CALLS_C: &str = "crates/kernel/src/library.rs";

const TOP_LEVEL: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "crates",
    "specs",
    "traces",
    "benches",
    "docs",
    ".ci",
    ".cargo",
    ".git",
    ".gitignore",
    ".gitattributes",
    "clippy.toml",
    "deny.toml",
    "rustfmt.toml",
    "rust-toolchain.toml",
    "target",
];

/// `python` → `cli` → `study` → `scenario` → `sim` → `trace` → `blkmq`, `conform` → `trace`,
/// `explore` → `blkmq` → `steps`, the attribute of its paths: `blkmq` uses no other crate.
pub(super) fn dependencies_point_one_way(tree: &Tree, found: &mut Vec<Finding>) {
    for (name, allowed) in CRATES {
        let path = format!("crates/{name}/Cargo.toml");
        let Some(file) = tree.file(&path) else {
            continue;
        };
        let mut complain = |text: String| {
            found.push(Finding {
                path: path.clone(),
                line: 0,
                text,
            });
        };
        let manifest = match file.text.parse::<Table>() {
            Ok(manifest) => manifest,
            Err(error) => {
                complain(format!("is not TOML: {}", error.message()));
                continue;
            }
        };
        for (section, dependency) in dependencies(&manifest) {
            let ours = CRATES.iter().any(|(name, _)| *name == dependency);
            if ours && !allowed.contains(&dependency.as_str()) {
                complain(format!("{section}: {name} must not know {dependency}"));
            }
            // Tests may use crates; the model checkers need their cfg.
            let checker = section.contains("cfg(loom)") || section.contains("cfg(shuttle)");
            if *name == "blkmq" && !ours && section != "dev-dependencies" && !checker {
                complain(format!(
                    "{section}: blkmq uses no external crate, so not {dependency}"
                ));
            }
        }
    }
}

/// A crate more or less is a decision with a page of its own.
pub(super) fn crates_are_those_of_the_house(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.files().filter(|file| file.path.starts_with("crates/")) {
        let known = CRATES.iter().any(|(name, _)| *name == file.crate_name());
        if file.path.ends_with("/Cargo.toml") && !known {
            let text = "a new crate needs a page in docs/decisions and a row in xtask".to_owned();
            found.push(Finding {
                path: file.path.clone(),
                line: 0,
                text,
            });
        }
    }
}

/// The top level holds the entries of the house rules and nothing else.
pub(super) fn top_level_is_short(tree: &Tree, found: &mut Vec<Finding>) {
    for name in &tree.top_level {
        if !TOP_LEVEL.contains(&name.as_str()) && !name.starts_with("target-") {
            let text = "does not belong to the top level".to_owned();
            found.push(Finding {
                path: name.clone(),
                line: 0,
                text,
            });
        }
    }
}

/// The attribute is in each crate, where a reader sees it.
pub(super) fn crate_roots_forbid_unsafe(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.sources() {
        let root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
        if file.path != CALLS_C {
            let lines = file.code.lines().enumerate();
            found.extend(
                lines
                    .filter(|(_, line)| has_word(line, "unsafe"))
                    .map(|(index, _)| Finding {
                        path: file.path.clone(),
                        line: index + 1,
                        text: format!("unsafe code is in {CALLS_C} only"),
                    }),
            );
        }
        let calls_c = CALLS_C.starts_with(file.path.trim_end_matches("lib.rs"));
        if root && !calls_c && !file.code.contains("#![forbid(unsafe_code)]") {
            let text = "a crate root says #![forbid(unsafe_code)]".to_owned();
            found.push(Finding {
                path: file.path.clone(),
                line: 1,
                text,
            });
        }
    }
}

/// All dependencies with their section, by the name that code uses.
fn dependencies(manifest: &Table) -> Vec<(String, String)> {
    const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];
    let mut found = Vec::new();
    let mut add = |section: &str, table: &Table| {
        for kind in KINDS {
            let Some(entries) = table.get(*kind).and_then(|value| value.as_table()) else {
                continue;
            };
            for (name, entry) in entries {
                let package = entry.get("package").and_then(|value| value.as_str());
                let name = package.unwrap_or(name);
                let name = name.strip_prefix("blksim-").unwrap_or(name);
                found.push((format!("{section}{kind}"), name.to_owned()));
            }
        }
    };
    add("", manifest);
    for (target, table) in manifest
        .get("target")
        .and_then(|t| t.as_table())
        .into_iter()
        .flatten()
    {
        if let Some(table) = table.as_table() {
            add(&format!("target.'{target}'."), table);
        }
    }
    found
}
