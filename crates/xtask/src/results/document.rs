//! A text with blocks that are made, and prose around them that is not touched.

use std::fmt::Write as _;

use crate::step::{Failure, Result};

const BEGIN: &str = "<!-- results: ";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- end -->";
/// How a block begins that another command makes; it is prose here.
const OTHER: &str = "<!-- generated: ";

/// Lines of a difference at most.
const DIFFERENCE_MAX: usize = 60;

/// The text in pieces, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Document {
    file: String,
    pieces: Vec<Piece>,
    changed: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    /// Whole lines that are left as they are.
    Prose(String),
    /// Whole lines between two markers.
    Block { name: String, body: String },
}

impl Document {
    /// Takes a text apart. `file` is for errors. A block within a block, one without an end or an
    /// end without a block is an error with its line.
    pub(super) fn parse(file: &str, text: &str) -> Result<Document> {
        let mut pieces = Vec::new();
        let mut prose = String::new();
        let mut open: Option<(String, String, usize)> = None;
        let mut other = false;
        let wrong = |line: usize, what: &str| Err(Failure(format!("{file}:{line}: {what}")));
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let bare = line.trim_end();
            let begins = bare.strip_prefix(BEGIN);
            let begins = begins.and_then(|rest| rest.strip_suffix(BEGIN_END));
            match (begins, &mut open) {
                (Some(_), Some((name, ..))) => {
                    return wrong(
                        index + 1,
                        &format!("block `{name}` has no end before this one"),
                    );
                }
                (Some(name), None) => {
                    pieces.push(Piece::Prose(std::mem::take(&mut prose)));
                    open = Some((name.to_owned(), String::new(), index + 1));
                }
                (None, Some(_)) if bare == END => {
                    if let Some((name, body, _)) = open.take() {
                        pieces.push(Piece::Block { name, body });
                    }
                }
                (None, None) if bare == END && !other => {
                    return wrong(index + 1, "the end of a block that did not begin");
                }
                (None, Some((_, body, _))) => body.push_str(line),
                (None, None) => {
                    other = bare.starts_with(OTHER) || (other && bare != END);
                    prose.push_str(line);
                }
            }
        }
        if let Some((name, _, line)) = open {
            return wrong(line, &format!("block `{name}` has no end"));
        }
        pieces.push(Piece::Prose(prose));
        Ok(Document {
            file: file.to_owned(),
            pieces,
            changed: false,
        })
    }

    /// Its path, from the top of the workspace.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// True if it has a block of this name.
    pub(super) fn has(&self, wanted: &str) -> bool {
        self.names().any(|name| name == wanted)
    }

    /// True if a block has another body than when it was parsed.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Names of its blocks, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Block { name, .. } => Some(name.as_str()),
            Piece::Prose(_) => None,
        })
    }

    /// Puts a new body into a block. The old one. Panics if there is no such block.
    pub(super) fn replace(&mut self, wanted: &str, made: &str) -> String {
        let bodies = self.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Block { name, body } if name == wanted => Some(body),
            Piece::Block { .. } | Piece::Prose(_) => None,
        });
        let body = bodies.last().expect("have_exactly() has seen the block");
        let was = std::mem::replace(body, made.to_owned());
        self.changed |= was != made;
        was
    }

    /// The body of a block. Panics if there is no such block.
    #[cfg(test)]
    pub(super) fn body(&self, wanted: &str) -> &str {
        let mut bodies = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Block { name, body } if name == wanted => Some(body),
            Piece::Block { .. } | Piece::Prose(_) => None,
        });
        bodies.next().expect("have_exactly() has seen the block")
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Prose(prose) => text.push_str(prose),
                Piece::Block { name, body } => {
                    let _ = write!(text, "{BEGIN}{name}{BEGIN_END}\n{body}{END}\n");
                }
            }
        }
        text
    }
}

/// Fails unless each of these blocks is in the documents once, and no other.
pub(super) fn have_exactly(documents: &[Document], names: &[&str]) -> Result<()> {
    for document in documents {
        if let Some(name) = document.names().find(|name| !names.contains(name)) {
            return Err(Failure(format!(
                "{}: nothing makes block `{name}`; there are: {}",
                document.file,
                names.join(", ")
            )));
        }
    }
    let all = || documents.iter().flat_map(Document::names);
    for wanted in names {
        let count = all().filter(|name| name == wanted).count();
        if count != 1 {
            return Err(Failure(format!(
                "block `{wanted}` is in the pages {count} times; expected once"
            )));
        }
    }
    Ok(())
}

/// Lines that differ, those of `was` with a minus and those of `made` with a plus, side by side as
/// far as both have as many.
pub(super) fn difference(was: &str, made: &str) -> String {
    let (was, made): (Vec<&str>, Vec<&str>) = (was.lines().collect(), made.lines().collect());
    let mut lines = Vec::new();
    for index in 0..was.len().max(made.len()) {
        let (old, new) = (was.get(index), made.get(index));
        if old != new {
            lines.extend(old.map(|line| format!("  - {line}\n")));
            lines.extend(new.map(|line| format!("  + {line}\n")));
        }
    }
    if lines.len() > DIFFERENCE_MAX {
        let more = lines.len() - DIFFERENCE_MAX;
        lines.truncate(DIFFERENCE_MAX);
        lines.push(format!("  and {more} lines more\n"));
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Prose 1.\n\n<!-- results: a -->\n1\n2\n<!-- end -->\nProse 2.\n\
                        <!-- results: b -->\n<!-- end -->\n";

    #[test]
    fn only_blocks_change() {
        let mut document = Document::parse("f.md", TEXT).unwrap();
        have_exactly(std::slice::from_ref(&document), &["a", "b"]).unwrap();
        assert_eq!(document.text(), TEXT);
        document.replace("a", "1\n2\n");
        assert!(!document.is_changed());
        assert_eq!(document.replace("a", "1\n3\n"), "1\n2\n");
        assert!(document.is_changed());
        assert_eq!(document.text(), TEXT.replace("2\n<!--", "3\n<!--"));
        assert_eq!(document.replace("b", "x\n"), "");
        assert!(
            document
                .text()
                .ends_with("<!-- results: b -->\nx\n<!-- end -->\n")
        );
    }

    #[test]
    fn markers_that_do_not_fit_are_reported_with_their_line() {
        for (text, says) in [
            ("a\n<!-- end -->\n", "f.md:2: the end of a block"),
            ("<!-- results: a -->\n1\n", "f.md:1: block `a` has no end"),
            (
                "<!-- results: a -->\n<!-- results: b -->\n<!-- end -->\n",
                "f.md:2: block `a` has no end before",
            ),
        ] {
            let failure = Document::parse("f.md", text).unwrap_err();
            assert!(failure.0.starts_with(says), "{failure}");
        }
    }

    #[test]
    fn each_block_is_in_one_page_once() {
        let page = |file: &str, text: &str| Document::parse(file, text).unwrap();
        let other = page("g.md", "<!-- results: c -->\n<!-- end -->\n");
        let pages = [page("f.md", TEXT), other];
        have_exactly(&pages, &["a", "b", "c"]).unwrap();
        let failure = have_exactly(&pages, &["a", "b"]).unwrap_err();
        assert!(
            failure.0.starts_with("g.md: nothing makes block `c`"),
            "{failure}"
        );
        let failure = have_exactly(&pages, &["a", "b", "c", "d"]).unwrap_err();
        assert!(
            failure.0.contains("`d` is in the pages 0 times"),
            "{failure}"
        );
        let twice = [page("f.md", TEXT), page("g.md", TEXT)];
        let failure = have_exactly(&twice, &["a", "b"]).unwrap_err();
        assert!(
            failure.0.contains("`a` is in the pages 2 times"),
            "{failure}"
        );
    }

    #[test]
    fn blocks_of_other_commands_are_prose() {
        let text = "<!-- generated: x -->\n1\n<!-- end -->\n".to_owned();
        let document = Document::parse("f.md", &(text.clone() + TEXT)).unwrap();
        assert!(document.names().eq(["a", "b"]));
        let failure = Document::parse("f.md", &(text + "<!-- end -->\n")).unwrap_err();
        assert!(
            failure.0.starts_with("f.md:4: the end of a block"),
            "{failure}"
        );
    }

    #[test]
    fn a_difference_shows_both_sides() {
        assert_eq!(difference("1\n2\n", "1\n2\n"), "");
        assert_eq!(difference("1\n2\n3\n", "1\n4\n"), "  - 2\n  + 4\n  - 3\n");
        let long: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert!(difference(&long, "").ends_with("  and 40 lines more\n"));
    }
}
