//! The input of a rule: the files of the tree, and of Rust sources the code without comments,
//! strings and tests.
//!
//! Blanked text keeps its lines and columns, so that a finding can name its place.

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::paths;

/// The files of the workspace, without build output.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Names at the top level.
    pub(super) top_level: Vec<String>,
    files: Vec<File>,
}

#[derive(Debug)]
pub(super) struct File {
    /// From the top level, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Rust only: comments, strings and characters blanked out.
    pub(super) code: String,
    /// Rust only: its code without tests; nothing in a file of tests.
    pub(super) product: String,
    /// Rust only: the same with its strings.
    pub(super) spoken: String,
}

const FOLDERS: &[&str] = &["crates", "benches", "docs", "specs", "traces"];
const KINDS: &[&str] = &["rs", "toml", "md"];

impl Tree {
    /// Read the workspace at `root`.
    pub(super) fn read(root: &Path) -> Tree {
        let mut tree = Tree::default();
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            tree.top_level
                .push(entry.file_name().to_string_lossy().into_owned());
        }
        tree.top_level.sort();
        let mut found = vec![root.join("README.md"), root.join("Cargo.toml")];
        for folder in FOLDERS {
            found.extend(paths::files_under(&root.join(folder)));
        }
        for path in found {
            let wanted = path
                .extension()
                .is_some_and(|kind| KINDS.iter().any(|k| kind == *k));
            let name = path
                .strip_prefix(root)
                .expect("found under the root")
                .to_string_lossy();
            if let (true, Ok(text)) = (wanted, fs::read_to_string(&path)) {
                tree.files.push(File::new(&name, text));
            }
        }
        tree
    }

    /// A tree of these files, for tests of rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            let top = path
                .split('/')
                .next()
                .expect("split gives one part")
                .to_owned();
            if !tree.top_level.contains(&top) {
                tree.top_level.push(top);
            }
            tree.files.push(File::new(path, (*text).to_owned()));
        }
        tree
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_a("rs"))
    }

    /// Rust sources of the product and of xtask, integration tests and benches left out.
    pub(super) fn products(&self) -> impl Iterator<Item = &File> {
        self.sources().filter(|file| !file.product.is_empty())
    }

    /// The file of that path.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// True if there is a file or a folder of that path.
    pub(super) fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.files
            .iter()
            .any(|file| file.path == path || file.path.starts_with(&folder))
            || paths::root().join(path).exists()
    }
}

impl File {
    fn new(path: &str, text: String) -> File {
        let path = path.replace('\\', "/");
        let mut file = File {
            path,
            text,
            code: String::new(),
            product: String::new(),
            spoken: String::new(),
        };
        if file.is_a("rs") {
            file.code = without(&file.text, |_| true);
            if !file.is_test() {
                let tests = tests_of(&file.code);
                file.product = blanked(&file.code, &tests);
                let comments = |what: &str| what.starts_with("//") || what.starts_with("/*");
                file.spoken = blanked(&without(&file.text, comments), &tests);
            }
        }
        file
    }

    /// True if the file's name ends in a dot and `kind`.
    pub(super) fn is_a(&self, kind: &str) -> bool {
        self.path
            .rsplit_once('.')
            .is_some_and(|(_, ending)| ending == kind)
    }

    /// True for unit tests in their own file, integration tests and benches, and for what is built
    /// for them alone.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.contains("/benches/")
            || self.path == "crates/blkmq/src/step/mutant.rs"
    }

    /// The crate's folder: `blkmq` of `crates/blkmq/src/time.rs`.
    pub(super) fn crate_name(&self) -> &str {
        let mut parts = self.path.split('/');
        match (parts.next(), parts.next()) {
            (Some("crates"), Some(name)) => name,
            (Some(name), _) => name,
            (None, _) => "",
        }
    }
}

/// Paths that the `use` items of `code` name, groups written out, each with its line from 1.
pub(super) fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("use ") {
        let before = code[..start].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[start + 4..];
        let Some(end) = rest.find(';') else { continue };
        let line = line_of(code, start);
        let tree: String = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let mut paths = Vec::new();
        expand("", &tree, &mut paths);
        found.extend(paths.into_iter().map(|path| (line, path)));
    }
    found
}

fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        paths.push(
            format!("{prefix}{path}")
                .trim_end_matches("::self")
                .to_owned(),
        );
        return;
    };
    let prefix = format!("{prefix}{}", tree[..open].trim());
    let inner = tree[open + 1..].trim_end().strip_suffix('}').unwrap_or("");
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, &inner[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        expand(&prefix, &inner[start..], paths);
    }
}

/// Line, from 1, of a byte offset.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// True if `word` is in `line` with no letter, digit or underscore next to it.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part);
        let after = line[at + word.len()..].chars().next().is_some_and(part);
        !before && (!after || word.ends_with(|c| !part(c)))
    })
}

/// Offset after the brace that closes the one at `open`.
pub(super) fn closing_brace(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(open + at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Where items marked `#[cfg(test)]` are.
fn tests_of(code: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let item = |(start, _): (usize, &str)| {
        let item = start + MARK.len();
        let semicolon = code[item..].find(';').map(|at| item + at + 1);
        let end = match code[item..].find('{').map(|at| item + at) {
            Some(open) if semicolon.is_none_or(|end| open < end) => closing_brace(code, open),
            _ => semicolon,
        };
        start..end.unwrap_or(code.len())
    };
    code.match_indices(MARK).map(item).collect()
}

fn blanked(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = text.to_owned();
    for range in ranges {
        blank(&mut out, range.clone());
    }
    out
}

/// Blank out those comments, strings and character literals. Bytes that are not ASCII only occur
/// there.
fn without(text: &str, which: impl Fn(&str) -> bool) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let skip = literal_or_comment(text, at);
        if skip > 0 {
            if which(rest) {
                blank(&mut out, at..at + skip);
            }
            at += skip;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    out
}

/// Length of the comment or literal that begins at `at`; 0 if none does.
fn literal_or_comment(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    let in_name = text[..at]
        .chars()
        .next_back()
        .is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with('r') && !in_name {
        return raw_string(rest);
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    0
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> usize {
    let hashes = rest[1..].len() - rest[1..].trim_start_matches('#').len();
    if !rest[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = 2 + hashes;
    rest[body..]
        .find(&end)
        .map_or(rest.len(), |at| body + at + end.len())
}

/// A character literal; a lifetime has no closing quote right after its first character.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    let Some((_, first)) = chars.next() else {
        return 0;
    };
    if first == '\\' {
        return quoted(rest, '\'');
    }
    match chars.next() {
        Some((at, '\'')) => at + 1,
        _ => 0,
    }
}

fn blank(text: &mut String, range: Range<usize>) {
    let spaces: String = text[range.clone()]
        .bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect();
    text.replace_range(range, &spaces);
}
