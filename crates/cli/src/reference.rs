//! `blksim reference`: the pages of docs/reference that are printed from the program's own tables.
//!
//! `cargo xtask reference` writes them, so that no page disagrees with the program. Formats that
//! cannot be derived are in docs/reference/formats.md, by hand.

mod commands;
mod devices;
mod fio;
mod kernels;
mod schedulers;

use std::fmt::Write as _;

use crate::error::Error;
use crate::{OK, output};

/// A page: its name, what it lists, and its text.
struct Page {
    name: &'static str,
    about: &'static str,
    text: fn() -> String,
}

const PAGES: &[Page] = &[
    Page {
        name: "commands",
        about: "commands and options of blksim, exit codes",
        text: commands::page,
    },
    Page {
        name: "devices",
        about: "device types with their parameters, built-in drives",
        text: devices::page,
    },
    Page {
        name: "fio",
        about: "options of fio: modelled, ignored or refused",
        text: fio::page,
    },
    Page {
        name: "kernels",
        about: "differences between kernels, and what each release changed",
        text: kernels::page,
    },
    Page {
        name: "schedulers",
        about: "schedulers with their attributes",
        text: schedulers::page,
    },
];

/// Prints a page, or the list of them.
pub(crate) fn reference(name: Option<&str>) -> Result<u8, Error> {
    let Some(name) = name else {
        let lines = PAGES
            .iter()
            .map(|page| format!("{:10} {}\n", page.name, page.about));
        output::print(&lines.collect::<String>())?;
        return Ok(OK);
    };
    let page = PAGES.iter().find(|page| page.name == name).ok_or_else(|| {
        let names: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
        Error::usage(
            name,
            format!("no such page; there are {}", names.join(", ")),
        )
    })?;
    output::print(&(page.text)())?;
    Ok(OK)
}

/// A table of Markdown. The last column has sentences, the others names.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.map(str::to_owned));
    text.push_str(&line(head.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(row));
    }
    text.push('\n');
    text
}

/// Text in a cell of a table: nothing of it is markup but code in backticks.
fn cell(text: &str) -> String {
    let mut code = false;
    let mut cell = String::new();
    for c in text.chars() {
        match c {
            '`' => code = !code,
            '|' => cell.push('\\'),
            '<' | '*' | '[' if !code => cell.push('\\'),
            '\n' => {
                cell.push(' ');
                continue;
            }
            _ => {}
        }
        cell.push(c);
    }
    cell
}

/// Code in a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// A heading and the paragraphs below it.
fn section(text: &mut String, heading: &str, paragraphs: &str) {
    // Writing into a string cannot fail.
    let _ = match paragraphs {
        "" => write!(text, "## {heading}\n\n"),
        _ => write!(text, "## {heading}\n\n{paragraphs}\n\n"),
    };
}

#[cfg(test)]
mod tests {
    use super::PAGES;

    /// A stray `|` in a text would move the cells after it.
    #[test]
    fn tables_have_as_many_cells_as_their_heads() {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        for page in PAGES {
            let text = (page.text)();
            assert!(text.starts_with("# "), "{}", page.name);
            let rows = text.lines().filter(|line| line.starts_with('|'));
            assert!(rows.clone().count() > 10, "{}", page.name);
            let mut head = 0;
            for line in text.lines() {
                match line.starts_with('|') {
                    false => head = 0,
                    true if head == 0 => head = cells(line),
                    true => assert_eq!(cells(line), head, "{}: {line}", page.name),
                }
            }
        }
    }
}
