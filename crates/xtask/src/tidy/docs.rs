//! Rules about documents: deviations are listed, links lead somewhere, pages stay short.

use std::collections::BTreeMap;

use super::Finding;
use super::source::{File, Tree, line_of};

const MODEL: &str = "docs/explanation/model.md";
const CONTENTS: &str = "docs/SUMMARY.md";
const TAG: &str = "Deviation";
/// Lines of README.md at most.
const README_LINES: usize = 100;
/// Words of all pages under docs/ at most, generated blocks aside.
const DOCS_WORDS: usize = 35_000;
/// How a generated block begins.
const GENERATED: &[&str] = &["<!-- results: ", "<!-- generated: "];

/// Each `Deviation(D3):` in code has a row `| D3 |` in the page of the model, and each row has a
/// tag.
pub(super) fn deviations_are_listed(tree: &Tree, found: &mut Vec<Finding>) {
    let mut tagged = BTreeMap::new();
    for file in tree.sources().filter(|file| file.crate_name() != "xtask") {
        collect_tags(file, &mut tagged, found);
    }
    let Some(model) = tree.file(MODEL) else {
        println!("note: {MODEL} is not written yet, so deviations are not compared");
        return;
    };
    let rows = rows(model);
    for (id, (path, line)) in &tagged {
        if !rows.contains_key(id) {
            let text = format!("{TAG}({id}) has no row `| {id} |` in {MODEL}");
            found.push(Finding {
                path: path.clone(),
                line: *line,
                text,
            });
        }
    }
    for (id, lines) in rows {
        let mut complain = |text| {
            found.push(Finding {
                path: MODEL.to_owned(),
                line: lines[0],
                text,
            });
        };
        if !tagged.contains_key(&id) {
            complain(format!(
                "{id} is tagged nowhere in the code as {TAG}({id}):"
            ));
        }
        if lines.len() > 1 {
            complain(format!("{id} has {} rows", lines.len()));
        }
    }
}

/// Links and paths in documents name files that exist.
pub(super) fn links_lead_somewhere(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.files().filter(|file| file.is_a("md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, link) in links(&file.text) {
            let (target, part) = link.split_once('#').unwrap_or((&link, ""));
            let path = match target {
                "" => file.path.clone(),
                target => resolve(folder, target),
            };
            let page = tree.file(&path).filter(|page| page.is_a("md"));
            let text = match page {
                _ if !tree.has(&path) => format!("link to `{target}`, which does not exist"),
                Some(page) if !part.is_empty() && !anchors(&page.text).any(|a| a == part) => {
                    format!("link to `{link}`, a heading that does not exist")
                }
                _ => continue,
            };
            found.push(Finding {
                path: file.path.clone(),
                line,
                text,
            });
        }
        for (line, path) in code_paths(&file.text) {
            if !tree.has(&path) {
                let text = format!("names `{path}`, which does not exist");
                found.push(Finding {
                    path: file.path.clone(),
                    line,
                    text,
                });
            }
        }
    }
}

/// Place of the first tag of each id; a tag without one is a finding.
fn collect_tags(
    file: &File,
    tagged: &mut BTreeMap<String, (String, usize)>,
    found: &mut Vec<Finding>,
) {
    for (at, _) in file.text.match_indices(TAG) {
        let rest = &file.text[at + TAG.len()..];
        let line = line_of(&file.text, at);
        let id = rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once("):"))
            .map(|(id, _)| id);
        match id {
            Some(id) if is_id(id) => {
                tagged
                    .entry(id.to_owned())
                    .or_insert_with(|| (file.path.clone(), line));
            }
            None if !rest.starts_with([':', '(']) => {} // The word, not the tag.
            _ => {
                let text = format!("write {TAG}(D7): with the id of its row in {MODEL}");
                found.push(Finding {
                    path: file.path.clone(),
                    line,
                    text,
                });
            }
        }
    }
}

/// Lines of the table rows of each id.
fn rows(model: &File) -> BTreeMap<String, Vec<usize>> {
    let mut rows: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, line) in model.text.lines().enumerate() {
        let cell = line
            .trim()
            .strip_prefix('|')
            .and_then(|row| row.split('|').next());
        if let Some(id) = cell.map(str::trim).filter(|id| is_id(id)) {
            rows.entry(id.to_owned()).or_default().push(index + 1);
        }
    }
    rows
}

fn is_id(id: &str) -> bool {
    let number = id.strip_prefix('D').unwrap_or("");
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Each page under docs/ is in the table of contents.
pub(super) fn pages_are_in_the_contents(tree: &Tree, found: &mut Vec<Finding>) {
    let Some(contents) = tree.file(CONTENTS) else {
        return;
    };
    let listed: Vec<String> = links(&contents.text)
        .into_iter()
        .map(|(_, link)| resolve("docs", link.split('#').next().unwrap_or_default()))
        .collect();
    let pages = tree
        .files()
        .filter(|f| f.path.starts_with("docs/") && f.is_a("md") && f.path != CONTENTS);
    for page in pages.filter(|page| !listed.contains(&page.path)) {
        found.push(Finding {
            path: page.path.clone(),
            line: 0,
            text: format!("is not in {CONTENTS}"),
        });
    }
}

/// README.md has at most 100 lines.
pub(super) fn the_readme_stays_short(tree: &Tree, found: &mut Vec<Finding>) {
    let lines = tree
        .file("README.md")
        .map_or(0, |file| file.text.lines().count());
    if lines > README_LINES {
        found.push(Finding {
            path: "README.md".to_owned(),
            line: 0,
            text: format!("{lines} lines, {README_LINES} is the limit"),
        });
    }
}

/// The pages under docs/ have at most 35,000 words, generated blocks aside.
pub(super) fn the_book_stays_short(tree: &Tree, found: &mut Vec<Finding>) {
    let pages = tree
        .files()
        .filter(|f| f.path.starts_with("docs/") && f.is_a("md"));
    let words: usize = pages.map(|page| words(&page.text)).sum();
    if words > DOCS_WORDS {
        found.push(Finding {
            path: "docs".to_owned(),
            line: 0,
            text: format!("{words} words outside of generated blocks, {DOCS_WORDS} is the limit"),
        });
    }
}

/// Number of hand-written words of a page: those with a letter or a digit, outside of generated
/// blocks.
fn words(text: &str) -> usize {
    let mut generated = false;
    let mut count = 0;
    for line in text.lines() {
        match line.trim() {
            "<!-- end -->" => generated = false,
            line if GENERATED.iter().any(|marker| line.starts_with(marker)) => generated = true,
            line if !generated => {
                let words = line.split_whitespace();
                count += words
                    .filter(|word| word.contains(char::is_alphanumeric))
                    .count();
            }
            _ => {}
        }
    }
    count
}

/// Names of the places of a page that links may name: its headings, and `<a id="NAME">`.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let headings = headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        });
        kept.collect()
    });
    let ids = text.split("<a id=\"").skip(1);
    headings.chain(ids.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())))
}

/// Targets of `[text](target)` within the tree.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("](") {
        let Some((target, _)) = text[at + mark.len()..].split_once(')') else {
            continue;
        };
        let target = target.trim();
        let outside = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
        if !outside {
            found.push((line_of(text, at), target.to_owned()));
        }
    }
    found
}

/// Paths in backquotes that begin at the top level, if they name one place.
fn code_paths(text: &str) -> Vec<(usize, String)> {
    const FOLDERS: &[&str] = &["crates/", "docs/", "specs/", "traces/", "benches/", ".ci/"];
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for code in line.split('`').skip(1).step_by(2) {
            let plain = code
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
            if plain && FOLDERS.iter().any(|folder| code.starts_with(folder)) {
                found.push((index + 1, code.trim_end_matches('/').to_owned()));
            }
        }
    }
    found
}

fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
