//! `cargo xtask reference`: the pages of docs/reference that the program prints itself.
//!
//! Their content is declared once, in the code that uses it (`blksim reference`). `--check` fails
//! if a page differs from the program's output.

mod structs;

use std::collections::BTreeMap;
use std::fs;

use crate::build::Build;
use crate::paths;
use crate::step::{Failure, Outcome, Result, Run};

use structs::{Member, Page, Structs};

const FOLDER: &str = "docs/reference";
const BEGIN: &str = "<!-- generated: cargo xtask reference -->\n";
const END: &str = "<!-- end -->\n";

/// Crates with structs that are formats.
const CRATES: &[&str] = &["scenario"];
/// Pages of such structs.
const PAGES: &[Page] = &[
    Page {
        name: "scenario",
        roots: &[("Scenario", "Top level")],
        within: toml_table,
        elsewhere: &[],
    },
    Page {
        name: "json",
        roots: &[
            ("FioReport", "Report of a run as fio has it"),
            ("Report", "Report of a run"),
            ("Comparison", "Report of a replay"),
        ],
        within: json_member,
        elsewhere: &[],
    },
];

/// `[device.fault]`, `[[mapped.outage]]`.
fn toml_table(outer: &str, member: &Member) -> String {
    let outer = outer.trim_matches(['`', '[', ']']);
    let dot = if outer == "Top level" { "" } else { "." };
    let outer = outer.replace("Top level", "");
    let name = format!("[{outer}{dot}{}]", member.name);
    match member.many {
        true => format!("`[{name}]`"),
        false => format!("`{name}`"),
    }
}

/// `jobs[].read`.
fn json_member(outer: &str, member: &Member) -> String {
    let many = if member.many { "[]" } else { "" };
    let outer = outer.trim_matches('`');
    match outer.starts_with("Report of") {
        // Beside the jobs of fio's report.
        true if outer == "Report of a run" && member.name == "jobs" => "`blksim.jobs[]`".to_owned(),
        true => format!("`{}{many}`", member.name),
        false => format!("`{outer}.{}{many}`", member.name),
    }
}

/// Pages by the names of their files.
type Pages = BTreeMap<String, String>;

/// Writes the pages, or with `check` compares them.
pub(crate) fn run(check: bool) -> Result {
    let blksim = Build::Release.blksim()?;
    let printed = |args: &[&str]| {
        let text = Run::new(&blksim, args).stdout()?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let mut blocks = Pages::new();
    for line in printed(&["reference"])?.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        blocks.insert(format!("{name}.md"), printed(&["reference", name])?);
    }
    let structs = Structs::read(CRATES)?;
    for page in PAGES {
        blocks.insert(format!("{}.md", page.name), structs.page(page)?);
    }
    let there = there()?;
    let stale = stale(&there, &blocks);
    for (file, what) in &stale {
        println!("{FOLDER}/{file}: {what}");
    }
    if stale.is_empty() {
        return Ok(Outcome::Passed);
    }
    if check {
        let what = format!(
            "{} stale pages; `cargo xtask reference` writes them",
            stale.len()
        );
        return Err(Failure(what));
    }
    let folder = paths::root().join(FOLDER);
    for (file, block) in &blocks {
        let path = folder.join(file);
        let text = written(there.get(file), block);
        let done = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text));
        done.map_err(|e| Failure(format!("{}: {e}", path.display())))?;
    }
    Ok(Outcome::Passed)
}

/// The pages of the folder.
fn there() -> Result<Pages> {
    let mut pages = Pages::new();
    for path in paths::files_under(&paths::root().join(FOLDER)) {
        let text = fs::read_to_string(&path);
        let text = text.map_err(|e| Failure(format!("{}: {e}", path.display())))?;
        if let Some(name) = path.file_name() {
            pages.insert(name.to_string_lossy().into_owned(), text);
        }
    }
    Ok(pages)
}

/// The parts of a page before, in and after its block.
fn parts(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (block, after) = rest.split_once(END)?;
    Some((before, block, after))
}

/// A page with this block, and the text around it.
fn written(page: Option<&String>, block: &str) -> String {
    let (before, _, after) = page.and_then(|page| parts(page)).unwrap_or_default();
    format!("{before}{BEGIN}{block}{END}{after}")
}

/// Pages that have not the block that was printed for them, and why.
fn stale(there: &Pages, blocks: &Pages) -> Vec<(String, String)> {
    let differ = blocks.iter().filter_map(|(file, block)| {
        let Some((_, was, _)) = there.get(file).and_then(|page| parts(page)) else {
            return Some((file.clone(), "has no generated block".to_owned()));
        };
        let mut lines = was.lines();
        let differs = |line: &&str| lines.next() != Some(line);
        match block.lines().find(differs) {
            Some(line) => Some((file.clone(), format!("has not: {line}"))),
            None if was != block => Some((file.clone(), "has lines too many".to_owned())),
            None => None,
        }
    });
    let gone = there
        .iter()
        .filter(|(file, page)| !blocks.contains_key(*file) && parts(page).is_some());
    let gone = gone.map(|(file, _)| (file.clone(), "has a block that nothing prints".to_owned()));
    differ.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pages: &[(&str, &str)]) -> Pages {
        let page = |(file, text): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
        pages.iter().map(page).collect()
    }

    /// A page of one line by hand and this block.
    fn page(block: &str) -> String {
        format!("by hand\n{BEGIN}{block}{END}")
    }

    #[test]
    fn a_stale_page_is_found_and_text_by_hand_stays() {
        let blocks = pages(&[("a.md", "1\n2\n")]);
        for (was, what) in [
            ("1\n", "has not: 2"),
            ("1\nx\n", "has not: 2"),
            ("1\n2\n3\n", "has lines too many"),
        ] {
            let there = pages(&[("a.md", &page(was)), ("formats.md", "by hand\n")]);
            let found = stale(&there, &blocks);
            assert_eq!(found, [("a.md".to_owned(), what.to_owned())]);
            let now = written(there.get("a.md"), &blocks["a.md"]);
            assert_eq!(now, page("1\n2\n"));
            assert_eq!(stale(&pages(&[("a.md", &now)]), &blocks), []);
        }
        let found = |there: &Pages| stale(there, &blocks).remove(0);
        let missing = ("a.md".to_owned(), "has no generated block".to_owned());
        assert_eq!(found(&Pages::new()), missing);
        assert_eq!(found(&pages(&[("a.md", "by hand\n")])), missing);
        let more = pages(&[("a.md", &page("1\n2\n")), ("b.md", &page("3\n"))]);
        let gone = (
            "b.md".to_owned(),
            "has a block that nothing prints".to_owned(),
        );
        assert_eq!(found(&more), gone);
    }
}
