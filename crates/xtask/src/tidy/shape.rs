//! Rules about how long things are and how files open.

use super::Finding;
use super::source::{File, Tree, closing_brace, line_of};

const COLUMNS: usize = 100;
const FILE_LINES: usize = 800;
const FILE_LINES_MEDIAN: usize = 200;
const FUNCTION_LINES: usize = 70;

/// Each source begins with a description of itself; `x/tests.rs` tests `x.rs` without one.
pub(super) fn files_open_with_a_header(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree
        .sources()
        .filter(|file| !file.path.ends_with("/tests.rs"))
    {
        if !file.text.starts_with("//! ") {
            let text = "opens with `//! ` and what the file is".to_owned();
            found.push(Finding {
                path: file.path.clone(),
                line: 1,
                text,
            });
        }
    }
}

/// rustfmt does not change comments and strings. Lines of tests with a string may be longer: the
/// output of another program is quoted unchanged.
pub(super) fn lines_fit_100_columns(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.sources() {
        for (index, (line, code)) in file.text.lines().zip(file.code.lines()).enumerate() {
            let quotes = line != code && !line.trim_start().starts_with("//");
            if file.is_test() && quotes {
                continue;
            }
            let columns = line.chars().count();
            if columns > COLUMNS {
                let text = format!("{columns} columns, {COLUMNS} is the limit");
                found.push(Finding {
                    path: file.path.clone(),
                    line: index + 1,
                    text,
                });
            }
        }
    }
}

pub(super) fn files_stay_short(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.sources() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            let text = format!("{lines} lines, {FILE_LINES} is the limit: one file, one noun");
            found.push(Finding {
                path: file.path.clone(),
                line: 0,
                text,
            });
        }
    }
}

/// Most files are short, not only the longest of them. Tests count as well.
pub(super) fn half_of_the_files_are_short(tree: &Tree, found: &mut Vec<Finding>) {
    let mut lines: Vec<usize> = tree
        .sources()
        .map(|file| file.text.lines().count())
        .collect();
    lines.sort_unstable();
    let median = lines.get(lines.len() / 2).copied().unwrap_or(0);
    if median > FILE_LINES_MEDIAN {
        found.push(Finding {
            path: "crates".to_owned(),
            line: 0,
            text: format!("half of the files have {median} lines or more, not {FILE_LINES_MEDIAN}"),
        });
    }
}

/// A function with `#[steps]` is as long as the kernel's that its comment names.
pub(super) fn functions_fit_a_screen(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.sources() {
        for (start, _) in file.code.match_indices("fn ") {
            let before = file.code[..start].chars().next_back();
            let after = file.code[start + "fn ".len()..].chars().next();
            let name = |c: char| c.is_alphanumeric() || c == '_';
            // The keyword before a name, not a type and not the end of a longer name.
            if before.is_some_and(name) || !after.is_some_and(name) {
                continue;
            }
            let Some(end) = body_end(&file.code, start) else {
                continue;
            };
            let lines = file.code[start..end].lines().count();
            let line = line_of(&file.code, start);
            if lines > FUNCTION_LINES && !is_the_kernels(file, line) {
                let text = format!("a function of {lines} lines, {FUNCTION_LINES} is the limit");
                found.push(Finding {
                    path: file.path.clone(),
                    line,
                    text,
                });
            }
        }
    }
}

/// `#[steps]` is above the function of that line, and the name of a function of the kernel.
fn is_the_kernels(file: &File, line: usize) -> bool {
    let above: Vec<&str> = file.text.lines().take(line - 1).map(str::trim).collect();
    let head = || {
        let lines = above.iter().rev();
        lines.take_while(|line| line.starts_with("///") || line.starts_with("#["))
    };
    let has_steps = head().any(|line| line.starts_with("#[steps"));
    has_steps && head().any(|line| line.starts_with("///") && line.contains("()"))
}

/// End of the body of the function at `start`; nothing for a declaration.
fn body_end(code: &str, start: usize) -> Option<usize> {
    let mut brackets = 0;
    for (at, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' if brackets == 0 => return closing_brace(code, start + at),
            ';' if brackets == 0 => return None,
            _ => {}
        }
    }
    None
}
