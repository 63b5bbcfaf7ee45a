//! Rules about words that must not occur in a place.
//!
//! Tests are exempt unless a rule says otherwise: they are blanked out of `File::product`.

use super::Finding;
use super::source::{File, Tree, has_word, imports};

const THREADS: &str = "crates/blkmq/src/env/threads.rs";

/// `blkmq` has no clock, thread, file, random order or floating point.
pub(super) fn blkmq_is_pure(tree: &Tree, found: &mut Vec<Finding>) {
    const WORDS: &[&str] = &["HashMap", "HashSet", "RandomState", "f32", "f64", "Instant"];
    const MODULES: &[&str] = &[
        "std::time",
        "std::io",
        "std::fs",
        "std::net",
        "std::process",
        "std::env",
    ];
    for file in tree
        .products()
        .filter(|file| file.path.starts_with("crates/blkmq/src/"))
    {
        let why = "blkmq has no clock, thread, I/O, hash order or floating point";
        forbid_words(file, WORDS, why, found);
        forbid_modules(file, MODULES, why, found);
        if file.path != THREADS {
            forbid_modules(file, &["std::thread"], why, found);
        }
    }
}

/// Memory orderings are chosen in one file.
pub(super) fn one_file_names_memory_orderings(tree: &Tree, found: &mut Vec<Finding>) {
    const NAMED: &[&str] = &["Relaxed", "AcqRel", "SeqCst"];
    // These two are good names for other things, so they count only after the type.
    const QUALIFIED: &[&str] = &["Ordering::Acquire", "Ordering::Release"];
    for file in tree.products().filter(|file| file.path != THREADS) {
        let why = "memory orderings are named in crates/blkmq/src/env/threads.rs only";
        forbid_words(file, NAMED, why, found);
        forbid_words(file, QUALIFIED, why, found);
        forbid_modules(
            file,
            &["std::sync::atomic", "core::sync::atomic"],
            why,
            found,
        );
    }
}

/// Libraries return their messages.
pub(super) fn only_cli_speaks(tree: &Tree, found: &mut Vec<Finding>) {
    const MACROS: &[&str] = &["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    const MODULES: &[&str] = &["std::env", "std::process"];
    const STREAMS: &[&str] = &["std::io::stdout", "std::io::stderr", "std::io::stdin"];
    for file in libraries(tree) {
        let why = "only cli prints, reads arguments and ends the process";
        forbid_words(file, MACROS, why, found);
        forbid_modules(file, MODULES, why, found);
        forbid_modules(file, STREAMS, why, found);
    }
}

/// Libraries take readers, writers and text; only `trace` may open files, it is about formats. In
/// `scenario` a path may name the origin of a scenario, for messages, or be passed to `trace`.
pub(super) fn only_cli_touches_paths(tree: &Tree, found: &mut Vec<Finding>) {
    const FOLLOWED: &[&str] = &[
        ".exists()",
        ".is_file()",
        ".is_dir()",
        ".metadata()",
        ".canonicalize()",
        ".read_dir()",
        ".read_link()",
    ];
    let why = "only cli and trace open files and follow paths";
    for file in libraries(tree).filter(|file| file.crate_name() != "trace") {
        forbid_modules(file, &["std::fs", "std::net"], why, found);
        for (index, line) in file.product.lines().enumerate() {
            for method in FOLLOWED.iter().filter(|method| line.contains(*method)) {
                found.push(finding(file, index + 1, method, why));
            }
        }
        if file.crate_name() != "scenario" {
            forbid_modules(file, &["std::path"], why, found);
        }
    }
}

/// `trace` is a leaf: of `blkmq` it uses the units of time.
pub(super) fn trace_knows_only_time(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.products().filter(|file| file.crate_name() == "trace") {
        let why = "trace uses blkmq::time and nothing else of blkmq";
        for (line, path) in imports(&file.product) {
            if path.starts_with("blkmq::") && !path.starts_with("blkmq::time") {
                found.push(finding(file, line, &path, why));
            }
        }
        for (index, line) in file.product.lines().enumerate() {
            let other = line.match_indices("blkmq::").any(|(at, mark)| {
                !line[at + mark.len()..].starts_with("time") && !line.trim().starts_with("use ")
            });
            if other {
                found.push(finding(file, index + 1, "blkmq::", why));
            }
        }
    }
}

/// Plots draw the content of a report, so that they cannot depend on its origin.
pub(super) fn plots_see_reports(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree
        .products()
        .filter(|file| file.path.starts_with("crates/cli/src/plot"))
    {
        forbid_words(
            file,
            &["Simulator"],
            "plots see a Report, never a Simulator",
            found,
        );
    }
}

/// Nothing is left for later, in tests neither; but a test may be left to a longer run: the reason
/// is a command with `--full`.
pub(super) fn no_stubs(tree: &Tree, found: &mut Vec<Finding>) {
    const IGNORE: &str = "#[ignore";
    const STUBS: &[&str] = &["todo!", "unimplemented!", IGNORE];
    for file in tree.sources() {
        for (index, (line, written)) in file.code.lines().zip(file.text.lines()).enumerate() {
            let left_to_full = written.contains("--full\"]");
            for stub in STUBS.iter().filter(|stub| line.contains(*stub)) {
                if left_to_full && *stub == IGNORE {
                    continue;
                }
                found.push(finding(file, index + 1, stub, "write it, or leave it out"));
            }
        }
    }
}

/// `expect` gives the reason why it cannot fail; `unwrap` does not.
pub(super) fn no_unwrap(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.products() {
        for (index, line) in file.product.lines().enumerate() {
            if line.contains(".unwrap()") {
                found.push(finding(file, index + 1, ".unwrap()", "say why with expect"));
            }
        }
    }
}

/// An exception from a lint has a reason.
pub(super) fn lint_exceptions_have_reasons(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.sources() {
        for mark in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
            for (start, _) in file.code.match_indices(mark) {
                let end = file.code[start..]
                    .find(']')
                    .map_or(file.code.len(), |at| start + at);
                if !file.code[start..end].contains("reason") {
                    let line = super::source::line_of(&file.code, start);
                    found.push(finding(file, line, mark, "add a reason = \"...\""));
                }
            }
        }
    }
}

fn libraries(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.products().filter(|file| {
        ["blkmq", "trace", "sim", "scenario", "conform", "explore"].contains(&file.crate_name())
    })
}

fn forbid_words(file: &File, words: &[&str], why: &str, found: &mut Vec<Finding>) {
    for (index, line) in file.product.lines().enumerate() {
        for word in words.iter().filter(|word| has_word(line, word)) {
            found.push(finding(file, index + 1, word, why));
        }
    }
}

/// Neither imported, as a whole or in part, nor used by its full path.
fn forbid_modules(file: &File, modules: &[&str], why: &str, found: &mut Vec<Finding>) {
    let imports = imports(&file.product);
    for module in modules {
        let inside = format!("{module}::");
        for (line, path) in &imports {
            if path == module || path.starts_with(&inside) {
                found.push(finding(file, *line, path, why));
            }
        }
        for (index, line) in file.product.lines().enumerate() {
            if !line.trim_start().starts_with("use ") && has_word(line, module) {
                found.push(finding(file, index + 1, module, why));
            }
        }
    }
}

fn finding(file: &File, line: usize, what: &str, why: &str) -> Finding {
    Finding {
        path: file.path.clone(),
        line,
        text: format!("`{what}`: {why}"),
    }
}
