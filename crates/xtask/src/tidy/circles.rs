//! No circle between the top-level modules of a crate: each uses only modules below it.
//!
//! Found by the paths that begin with `crate::`, tests left out. The order itself is the map in
//! each crate's lib.rs.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::source::{File, Tree};

/// Uses that close a circle and are known: a debt, not a licence. Crate, user, used.
const KNOWN: &[(&str, &str, &str)] = &[
    // A request has its cache lines; a map's queues the number of their tags. A scheduler's part of
    // a path steps with the queue that the scheduler is a part of.
    ("blkmq", "elevator", "queue"),
    ("blkmq", "elevator", "step"),
    ("blkmq", "env", "tags"),
    ("blkmq", "request", "env"),
    ("blkmq", "request", "list"),
    ("blkmq", "request", "sort"),
    ("blkmq", "sbitmap", "tags"),
];

/// The uses of each module, and the file in which each was seen first.
type Uses<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>;

/// Top-level modules of each crate form no circle.
pub(super) fn modules_form_no_circle(tree: &Tree, found: &mut Vec<Finding>) {
    let crates: BTreeSet<&str> = tree.products().map(File::crate_name).collect();
    for name in crates {
        let uses = uses(tree, name);
        if let Some(circle) = circle(&uses) {
            let (from, to) = (circle[circle.len() - 1], circle[0]);
            found.push(Finding {
                path: uses[from][to].to_owned(),
                line: 0,
                text: format!(
                    "modules use each other in a circle: {} -> {to}; what both need lies below",
                    circle.join(" -> ")
                ),
            });
        }
    }
}

fn uses<'a>(tree: &'a Tree, name: &str) -> Uses<'a> {
    let files = || tree.products().filter(|file| file.crate_name() == name);
    let modules: BTreeSet<&str> = files().filter_map(module).collect();
    let mut uses: Uses<'a> = BTreeMap::new();
    for file in files() {
        let Some(from) = module(file) else { continue };
        for to in named(&file.product) {
            let known = KNOWN.contains(&(name, from, to));
            if to != from && modules.contains(to) && !known {
                let seen = uses.entry(from).or_default();
                seen.entry(to).or_insert(&file.path);
            }
        }
    }
    uses
}

/// The top-level module that a file belongs to; the root of a crate belongs to none.
fn module(file: &File) -> Option<&str> {
    let (_, inner) = file.path.split_once("/src/")?;
    let first = inner.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!["lib", "main"].contains(&name)).then_some(name)
}

/// The names after `crate::`, those of a group separately.
fn named(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let rest = &code[at + path.len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(heads(group)),
            None => names.push(word(rest)),
        }
    }
    names
}

/// First names of the parts of a group, up to the brace that closes it.
fn heads(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut heads) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                heads.push(word(group[start..at].trim_start()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                heads.push(word(group[start..at].trim_start()));
                start = at + 1;
            }
            _ => {}
        }
    }
    heads
}

/// The name that `text` begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// A circle, if there is one: each uses the next, the last one the first.
fn circle<'a>(uses: &Uses<'a>) -> Option<Vec<&'a str>> {
    let mut done = BTreeSet::new();
    uses.keys()
        .find_map(|from| walk(from, uses, &mut Vec::new(), &mut done))
}

fn walk<'a>(
    from: &'a str,
    uses: &Uses<'a>,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(start) = path.iter().position(|known| *known == from) {
        return Some(path[start..].to_vec());
    }
    if !done.insert(from) {
        return None;
    }
    path.push(from);
    let next = uses.get(from).into_iter().flat_map(BTreeMap::keys);
    let found = next.into_iter().find_map(|to| walk(to, uses, path, done));
    path.pop();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut found = Vec::new();
        modules_form_no_circle(&Tree::of(files), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_found_through_groups_and_folders() {
        let files = [
            ("crates/sim/src/lib.rs", "mod a; mod b; mod c;"),
            ("crates/sim/src/a.rs", "use crate::{x::Y, b::{self, c}};"),
            ("crates/sim/src/b/deep.rs", "fn f() -> crate::c::C {}"),
            ("crates/sim/src/c.rs", "use crate::a;"),
        ];
        let found = found(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/sim/src/c.rs:0: "), "{found:?}");
        assert!(found[0].contains("a -> b -> c -> a;"), "{found:?}");
    }

    #[test]
    fn layers_tests_and_comments_are_none() {
        let files = [
            ("crates/sim/src/a.rs", "use crate::{b, c};"),
            (
                "crates/sim/src/b.rs",
                "use crate::c; // crate::a\n#[cfg(test)] mod t { use crate::a; }",
            ),
            (
                "crates/sim/src/c.rs",
                "const A: &str = \"crate::a\"; use other::a;",
            ),
            ("crates/sim/src/c/tests.rs", "use crate::a;"),
            ("crates/cli/src/c.rs", "use crate::a;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
