//! A text with blocks that are made, and prose around them that is not touched.

use crate::step::{Failure, Result};

const BEGIN: &str = "<!-- results: ";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- end -->";
/// How a block begins that another command makes; it is prose here.
const OTHER: &str = "<!-- generated: ";

/// Lines of a difference at most.
const DIFFERENCE_MAX: usize = 60;

/// A text whose blocks are replaced in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Document {
    pub(super) file: String,
    pub(super) text: String,
    was: String,
    names: Vec<String>,
}

impl Document {
    /// Finds the blocks of a text. `file` is for errors. A block within a block, one without an
    /// end or an end without a block is an error with its line.
    pub(super) fn parse(file: &str, text: &str) -> Result<Document> {
        let mut names = Vec::new();
        // The line and the name of an open block; no name if another command makes it.
        let mut open: Option<(usize, Option<&str>)> = None;
        for (index, line) in text.lines().enumerate() {
            let wrong = |line, what: &str| Err(Failure(format!("{file}:{line}: {what}")));
            let name = line.strip_prefix(BEGIN);
            let name = name.and_then(|rest| rest.strip_suffix(BEGIN_END));
            match (name, open) {
                (Some(_), Some((_, Some(name)))) => {
                    return wrong(
                        index + 1,
                        &format!("block `{name}` has no end before this one"),
                    );
                }
                (Some(name), _) => {
                    names.push(name.to_owned());
                    open = Some((index + 1, Some(name)));
                }
                (None, None) if line == END => {
                    return wrong(index + 1, "the end of a block that did not begin");
                }
                (None, Some(_)) if line == END => open = None,
                (None, None) if line.starts_with(OTHER) => open = Some((index + 1, None)),
                (None, _) => {}
            }
        }
        if let Some((line, Some(name))) = open {
            return Err(Failure(format!("{file}:{line}: block `{name}` has no end")));
        }
        let (file, text) = (file.to_owned(), text.to_owned());
        let was = text.clone();
        Ok(Document {
            file,
            text,
            was,
            names,
        })
    }

    /// True if it has a block of this name.
    pub(super) fn has(&self, wanted: &str) -> bool {
        self.names.iter().any(|name| name == wanted)
    }

    /// True if a block has another body than when it was parsed.
    pub(super) fn is_changed(&self) -> bool {
        self.text != self.was
    }

    /// Names of its blocks, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Puts a new body into a block. The old one. Panics if there is no such block.
    pub(super) fn replace(&mut self, wanted: &str, made: &str) -> String {
        let begin = format!("{BEGIN}{wanted}{BEGIN_END}\n");
        let at = self.text.find(&begin).map(|at| at + begin.len());
        let at = at.expect("have_exactly() has seen the block");
        let end = self.text[at..].find(END).expect("parse() has seen its end");
        let was = self.text[at..at + end].to_owned();
        self.text.replace_range(at..at + end, made);
        was
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
        assert_eq!(document.text, TEXT);
        document.replace("a", "1\n2\n");
        assert!(!document.is_changed());
        assert_eq!(document.replace("a", "1\n3\n"), "1\n2\n");
        assert!(document.is_changed());
        assert_eq!(document.text, TEXT.replace("2\n<!--", "3\n<!--"));
        assert_eq!(document.replace("b", "x\n"), "");
        assert!(
            document
                .text
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
