//! `cargo xtask results`: the figures of README.md and of the pages under docs/, each from the runs
//! that give it.
//!
//! A page is prose with blocks, `<!-- results: NAME -->` to `<!-- end -->`. The text between the
//! two lines is that of the table NAME of docs/results/*.toml; `--check` compares instead of
//! writing. Read next: docs/results/common.toml, the keys of a table; `results/table.rs`.

mod blocks;
pub(crate) mod by_size;
mod captures;
mod definitions;
mod document;
mod markdown;
mod readme;
mod runs;
mod specifications;
mod table;
mod template;

use std::fs;

use blocks::{Made, calculated};
use definitions::{Definitions, Table};
use document::Document;
use runs::Blksim;
use table::Grid;

use crate::paths;
use crate::step::{Failure, Outcome, Result};

/// The blocks to make, and the way to check them.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ResultsArgs {
    /// Write nothing: fail if a block is stale, and show the difference
    #[arg(long)]
    pub(crate) check: bool,
    /// Only blocks whose runs take seconds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only these blocks
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
}

/// A block whose text in its page, or whose file, is not that of its runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Stale {
    name: String,
    difference: String,
    files: Vec<(String, String)>,
}

/// Makes all blocks that are asked for, and compares or writes.
pub(crate) fn run(args: &ResultsArgs) -> Result {
    let definitions = Definitions::read()?;
    let mut documents = documents(&definitions)?;
    let wanted = wanted(&definitions, args)?;
    let mut lines = Vec::new();
    for table in &wanted {
        lines.extend(Grid::new(&definitions, table)?.lines()?);
    }
    let blksim = Blksim::built()?;
    blksim.run_all(&lines)?;
    let (mut stale, mut skipped) = (Vec::new(), Vec::new());
    for table in wanted {
        match renewed(&definitions, table, &blksim, &mut documents)? {
            Some(block) => stale.push(block),
            None => skipped.push(table.name.as_str()),
        }
    }
    stale.retain(|block| !block.difference.is_empty() || !block.files.is_empty());
    for Stale {
        name,
        difference,
        files,
    } in &stale
    {
        print!(
            "{name}: {}\n{difference}",
            if args.check { "stale" } else { "new" }
        );
        for (file, text) in files {
            println!("  {file}: another picture");
            if !args.check {
                write(file, text)?;
            }
        }
    }
    if args.check && !stale.is_empty() {
        let names: Vec<&str> = stale.iter().map(|block| block.name.as_str()).collect();
        return Err(Failure(format!(
            "stale: {}; `cargo xtask results --only {}` writes them again",
            names.join(", "),
            names.join(",")
        )));
    }
    for page in documents.iter().filter(|page| page.is_changed()) {
        write(&page.file, &page.text)?;
    }
    match skipped.is_empty() {
        true => Ok(Outcome::Passed),
        false => {
            crate::step::missing_tool(&format!("a tool is missing for {}", skipped.join(", ")))
        }
    }
}

/// Makes a block and puts it into its page. Nothing if a tool is missing.
fn renewed(
    definitions: &Definitions,
    table: &Table,
    blksim: &Blksim,
    documents: &mut [Document],
) -> Result<Option<Stale>> {
    let name = &table.name;
    let mut seconds = 0.0;
    let made = if table.calculated {
        match calculated(name, blksim)? {
            Some(made) => made,
            None => return Ok(None),
        }
    } else {
        let grid = Grid::new(definitions, table)?;
        for line in grid.lines()? {
            seconds += blksim.done(&line)?.seconds;
        }
        grid.made(blksim)?
    };
    let page = documents.iter_mut().find(|page| page.has(name));
    let page = page.expect("documents() has found every block");
    let was = page.replace(name, &made.body);
    let difference = document::difference(&was, &made.body);
    let files: Vec<_> = stale_files(&made)
        .map(|(file, text)| (file.to_owned(), text.to_owned()))
        .collect();
    let same = difference.is_empty() && files.is_empty();
    let state = if same { "unchanged" } else { "differs" };
    println!("{name}: {state} (runs of {seconds:.1} s)");
    Ok(Some(Stale {
        name: name.to_owned(),
        difference,
        files,
    }))
}

/// Writes a variant of a scenario that is in the files of tables, and returns its file.
pub(crate) fn scenario(name: &str) -> Result<String> {
    let file = Definitions::read()?.scenario(name)?;
    Ok(file.display().to_string())
}

/// All pages with blocks. Fails unless each block is in one of them, once.
fn documents(definitions: &Definitions) -> Result<Vec<Document>> {
    let root = paths::root();
    let mut found = paths::files_under(&root.join("docs"));
    found.retain(|path| path.extension().is_some_and(|kind| kind == "md"));
    // Blocks of those pages are `reference`'s.
    found.retain(|path| !path.starts_with(root.join("docs/reference")));
    found.insert(0, root.join("README.md"));
    let mut documents = Vec::new();
    for path in found {
        let file = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy();
        let text = fs::read_to_string(&path);
        let text = text.map_err(|e| Failure(format!("{file}: cannot read: {e}")))?;
        let document = Document::parse(&file, &text)?;
        if document.names().next().is_some() {
            documents.push(document);
        }
    }
    let names: Vec<&str> = names(definitions);
    document::have_exactly(&documents, &names)?;
    Ok(documents)
}

/// Files that are not as they were made.
fn stale_files(made: &Made) -> impl Iterator<Item = (&str, &str)> {
    let files = made.files.iter();
    files.filter_map(|(file, text)| {
        let now = fs::read_to_string(paths::root().join(file)).ok();
        (now.as_ref() != Some(text)).then_some((file.as_str(), text.as_str()))
    })
}

/// Writes a file, by its path from the top of the workspace.
fn write(file: &str, text: &str) -> Result<()> {
    let written = fs::write(paths::root().join(file), text);
    written.map_err(|e| Failure(format!("{file}: cannot write: {e}")))
}

fn names(definitions: &Definitions) -> Vec<&str> {
    let tables = definitions.tables.iter();
    tables.map(|table| table.name.as_str()).collect()
}

/// The blocks that are asked for. A name that no block has is an error.
fn wanted<'a>(definitions: &'a Definitions, args: &ResultsArgs) -> Result<Vec<&'a Table>> {
    let names = names(definitions);
    if let Some(name) = args
        .only
        .iter()
        .find(|name| !names.contains(&name.as_str()))
    {
        return Err(Failure(format!(
            "--only: there is no block `{name}`; there are: {}",
            names.join(", ")
        )));
    }
    let chosen = |table: &&Table| {
        let named = args.only.is_empty() || args.only.contains(&table.name);
        named && !(args.quick && table.slow)
    };
    Ok(definitions.tables.iter().filter(chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_chosen_by_name_and_by_duration() {
        let definitions = Definitions::read().unwrap();
        let names = |quick, only: &[&str]| {
            let only = only.iter().map(|name| (*name).to_owned()).collect();
            let args = ResultsArgs {
                check: true,
                quick,
                only,
            };
            let wanted = wanted(&definitions, &args)?;
            Ok::<_, Failure>(
                wanted
                    .iter()
                    .map(|block| block.name.clone())
                    .collect::<Vec<_>>(),
            )
        };
        let all = names(false, &[]).unwrap();
        assert_eq!(all.len(), definitions.tables.len());
        let quick = names(true, &[]).unwrap();
        assert!(quick.iter().any(|name| name == "precision"));
        assert!(!quick.iter().any(|name| name == "ablations"));
        assert_eq!(names(false, &["walk"]).unwrap(), ["walk"]);
        let failure = names(false, &["walks"]).unwrap_err();
        assert!(failure.0.contains("no block `walks`"), "{failure}");
    }

    #[test]
    fn a_figure_that_changes_is_a_difference() {
        let mut definitions = Definitions::default();
        let table = "[[table]]\nname = \"t\"\nrun = \"run a\"\n\
                     columns = [[\"mean\", \"{/mean:.2}\"], [\"runs\", \"{/runs}\"]]\n";
        definitions.add("f.toml", table).unwrap();
        let page = "<!-- results: t -->\n| mean | runs |\n|---|---|\n| 0.75 | 9 |\n<!-- end -->\n";
        let difference = |report: &str| {
            let blksim = Blksim::recorded(&[("run a --json", report, "")]);
            let mut pages = [Document::parse("f.md", page).unwrap()];
            let block = &definitions.tables[0];
            let stale = renewed(&definitions, block, &blksim, &mut pages)
                .unwrap()
                .unwrap();
            assert_eq!(pages[0].is_changed(), !stale.difference.is_empty());
            stale.difference
        };
        assert_eq!(difference("{\"mean\": 0.7512, \"runs\": 9}"), "");
        let changed = difference("{\"mean\": 0.7612, \"runs\": 9}");
        assert_eq!(changed, "  - | 0.75 | 9 |\n  + | 0.76 | 9 |\n");
        assert!(difference("{\"mean\": 0.75, \"runs\": 10}").contains("+ | 0.75 | 10 |"));
    }

    #[test]
    fn the_committed_tables_fit_their_pages() {
        let definitions = Definitions::read().unwrap();
        let pages = documents(&definitions).unwrap();
        for table in &definitions.tables {
            let grid = Grid::new(&definitions, table).unwrap_or_else(|failure| panic!("{failure}"));
            grid.lines().unwrap_or_else(|failure| panic!("{failure}"));
            if table.columns.is_empty() {
                continue;
            }
            let page = pages.iter().find(|page| page.has(&table.name)).unwrap();
            let made = grid.body().unwrap();
            let body = page.clone().replace(&table.name, &made);
            assert_eq!(made.lines().next(), body.lines().next(), "{}", table.name);
            if table.omit.is_empty() {
                assert_eq!(made.lines().count(), body.lines().count(), "{}", table.name);
            }
        }
    }

    #[test]
    fn a_file_that_differs_or_is_not_there_is_stale() {
        let text = fs::read_to_string(paths::root().join("LICENSE")).unwrap();
        let made = Made {
            body: String::new(),
            files: vec![
                ("LICENSE".to_owned(), text.clone()),
                ("LICENSE".to_owned(), text + " "),
                ("NOT-THERE".to_owned(), String::new()),
            ],
        };
        let stale: Vec<&str> = stale_files(&made).map(|(file, _)| file).collect();
        assert_eq!(stale, ["LICENSE", "NOT-THERE"]);
    }
}
