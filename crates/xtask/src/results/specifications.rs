//! Verdicts of the specifications, from `specs/*/expect.toml`, the expectations of `blksim check`.

use std::fs;

use serde::Deserialize;

use super::markdown::{columns, table};
use crate::paths;
use crate::step::{Failure, Result};

/// A table of each specification, in the order of their names.
pub(super) fn verdicts() -> Result<String> {
    let mut found = paths::files_under(&paths::root().join("specs"));
    found.retain(|path| path.ends_with("expect.toml"));
    let mut text = String::new();
    for path in found {
        let folder = path.parent().and_then(|folder| folder.file_name());
        let name = folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let wrong = |what: String| Failure(format!("specs/{name}/expect.toml: {what}"));
        let read = fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
        let rows = rows(&read).map_err(wrong)?;
        text += &format!("\n## {name}\n\n");
        let header = "Variant|About|Verdict|Generated|Distinct|States|Seconds|Quick";
        text += &table(&columns(&header.split('|').collect::<Vec<_>>()), &rows);
    }
    Ok(text + "\n")
}

#[derive(Deserialize)]
struct Expectations {
    variant: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    name: String,
    what: String,
    verdict: String,
    property: Option<String>,
    generated: u64,
    distinct: u64,
    length: Option<u64>,
    seconds: toml::Value,
    quick: bool,
}

/// A row of each variant.
fn rows(text: &str) -> std::result::Result<Vec<Vec<String>>, String> {
    let read: Expectations = toml::from_str(text).map_err(|e| e.to_string())?;
    let row = |of: Variant| {
        let violated = of.property.map(|property| format!("{property} violated"));
        let length = of.length.map(|length| length.to_string());
        vec![
            of.name,
            of.what,
            violated.unwrap_or(of.verdict),
            of.generated.to_string(),
            of.distinct.to_string(),
            length.unwrap_or_default(),
            of.seconds.to_string(),
            if of.quick { "yes" } else { "" }.to_owned(),
        ]
    };
    Ok(read.variant.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_verdicts() {
        let page = paths::root().join("docs/results/specifications.md");
        let page = fs::read_to_string(page).unwrap();
        assert!(
            page.contains(&verdicts().unwrap()),
            "`cargo xtask results --only specifications` writes it"
        );
    }

    #[test]
    fn a_variant_is_a_row() {
        let text = "[[variant]]\nname = \"a\"\nwhat = \"b\"\nverdict = \"violated\"\n\
                    property = \"NoStall\"\ngenerated = 3\ndistinct = 2\nlength = 5\n\
                    seconds = 1.5\nquick = true\n";
        let row = ["a", "b", "NoStall violated", "3", "2", "5", "1.5", "yes"];
        assert_eq!(rows(text).unwrap(), [row]);
        let holds = "[[variant]]\nname = \"a\"\nwhat = \"b\"\nverdict = \"holds\"\n\
                     generated = 3\ndistinct = 2\nseconds = 2.0\nquick = false\n";
        let row = ["a", "b", "holds", "3", "2", "", "2.0", ""];
        assert_eq!(rows(holds).unwrap(), [row]);
        let error = rows(&text.replace("quick", "quiet")).unwrap_err();
        assert!(error.contains("missing field `quick`"), "{error}");
    }
}
