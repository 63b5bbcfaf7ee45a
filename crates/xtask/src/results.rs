//! `cargo xtask results`: the figures of README.md and of the pages under docs/, each from the runs
//! that give it.
//!
//! A page is prose with blocks, `<!-- results: NAME -->` to `<!-- end -->`. The text between the
//! two lines is written here and nowhere else, by the function of that name; `--check` compares
//! instead of writing. Read next: `results/blocks.rs`, the list of them.

mod bfq;
mod blocks;
mod captures;
mod cfq;
mod disk;
mod dm;
mod document;
mod kyber;
mod markdown;
mod pages;
mod predictions;
mod readme;
mod runs;
mod specifications;
mod sweeps;

use std::fs;
use std::time::Instant;

use blocks::{BLOCKS, Block, Cost, Made};
use document::Document;
use runs::Blksim;

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

/// Makes all blocks that are asked for, and compares or writes.
#[expect(
    clippy::disallowed_methods,
    reason = "seconds of our own steps, not of a simulation"
)]
pub(crate) fn run(args: &ResultsArgs) -> Result {
    let mut documents = documents()?;
    let wanted = wanted(args)?;
    let blksim = Blksim::built()?;
    let (mut stale, mut skipped) = (Vec::new(), Vec::new());
    for block in wanted {
        let start = Instant::now();
        let made = match (block.make)(&blksim) {
            Ok(Some(made)) => made,
            Ok(None) => {
                skipped.push(block.name);
                continue;
            }
            Err(failure) => return Err(Failure(format!("{}: {failure}", block.name))),
        };
        let page = documents.iter_mut().find(|page| page.has(block.name));
        let page = page.expect("documents() has found every block");
        let was = page.replace(block.name, &made.body);
        let files: Vec<(&str, &str)> = stale_files(&made).collect();
        if was == made.body && files.is_empty() {
            println!(
                "{}: unchanged ({:.1} s)",
                block.name,
                start.elapsed().as_secs_f64()
            );
            continue;
        }
        println!(
            "{}: {}",
            block.name,
            if args.check { "stale" } else { "new" }
        );
        print!("{}", document::difference(&was, &made.body));
        for (file, text) in files {
            println!("  {file}: another picture");
            if !args.check {
                write(file, text)?;
            }
        }
        stale.push(block.name);
    }
    if args.check && !stale.is_empty() {
        let what = stale.join(", ");
        let names = stale.join(",");
        return Err(Failure(format!(
            "stale: {what}; `cargo xtask results --only {names}` writes them again"
        )));
    }
    for page in documents.iter().filter(|page| page.is_changed()) {
        write(page.file(), &page.text())?;
    }
    match skipped.is_empty() {
        true => Ok(Outcome::Passed),
        false => {
            crate::step::missing_tool(&format!("a tool is missing for {}", skipped.join(", ")))
        }
    }
}

/// All pages with blocks. Fails unless each block is in one of them, once.
fn documents() -> Result<Vec<Document>> {
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
    let names: Vec<&str> = BLOCKS.iter().map(|block| block.name).collect();
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

/// The blocks that are asked for. A name that no block has is an error.
fn wanted(args: &ResultsArgs) -> Result<Vec<&'static Block>> {
    for name in &args.only {
        if !BLOCKS.iter().any(|block| block.name == name) {
            let names: Vec<&str> = BLOCKS.iter().map(|block| block.name).collect();
            let names = names.join(", ");
            return Err(Failure(format!(
                "--only: there is no block `{name}`; there are: {names}"
            )));
        }
    }
    let chosen = |block: &&Block| {
        let named = args.only.is_empty() || args.only.iter().any(|name| name == block.name);
        named && (!args.quick || block.cost == Cost::Seconds)
    };
    Ok(BLOCKS.iter().filter(chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &ResultsArgs) -> Vec<&'static str> {
        wanted(args)
            .unwrap()
            .iter()
            .map(|block| block.name)
            .collect()
    }

    #[test]
    fn blocks_are_chosen_by_name_and_by_cost() {
        let all = ResultsArgs::default();
        assert_eq!(names(&all).len(), BLOCKS.len());
        let quick = ResultsArgs {
            quick: true,
            ..ResultsArgs::default()
        };
        let quick = names(&quick);
        assert!(quick.contains(&"reproduce") && !quick.contains(&"ablations"));
        let only = |name: &str| ResultsArgs {
            only: vec![name.to_owned()],
            ..ResultsArgs::default()
        };
        assert_eq!(names(&only("walk")), ["walk"]);
        let failure = wanted(&only("walks")).unwrap_err();
        assert!(failure.0.contains("no block `walks`"), "{failure}");
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

    #[test]
    fn the_committed_pages_have_every_block_once() {
        for page in documents().unwrap() {
            let text = fs::read_to_string(paths::root().join(page.file())).unwrap();
            assert_eq!(page.text(), text);
        }
    }
}
