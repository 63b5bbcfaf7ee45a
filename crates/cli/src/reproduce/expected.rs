//! Figures that are known to be within their tolerance: none of them may leave it.
//!
//! The list is a text file, `table | row | figure` a line; `#` begins a comment.

use std::fmt::Write as _;
use std::path::Path;

use study::reproduce::Figure;

use crate::error::Error;
use crate::output;
use crate::text::read_text;
use crate::{DIFFERENT, OK};

/// Lists the figures that have left their tolerance, and those that have come into it.
pub(super) fn compare(
    file: &Path,
    expected: &[String],
    figures: &[(String, Figure)],
) -> Result<u8, Error> {
    let (mut text, mut gone) = (String::new(), 0);
    for line in expected {
        match figures.iter().find(|(table, f)| key(table, f) == *line) {
            Some((_, figure)) if figure.within => {}
            Some(_) => {
                gone += 1;
                let _ = writeln!(text, "was within its tolerance: {line}");
            }
            None => return Err(Error::input(file, format!("no such figure: {line}"))),
        }
    }
    for (table, figure) in figures.iter().filter(|(_, figure)| figure.within) {
        let line = key(table, figure);
        if !expected.contains(&line) {
            let _ = writeln!(text, "is within its tolerance now: {line}");
        }
    }
    let _ = writeln!(text, "{gone} of {} have gone out", expected.len());
    output::print(&text)?;
    Ok(if gone == 0 { OK } else { DIFFERENT })
}

fn key(table: &str, figure: &Figure) -> String {
    format!("{table} | {} | {}", figure.row, figure.figure)
}

/// Reads a list, before anything runs. An entry without a figure could not fail, so it is refused.
pub(super) fn read(file: &Path) -> Result<Vec<String>, Error> {
    parse(file, &read_text(file)?)
}

fn parse(file: &Path, text: &str) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if line.split(" | ").count() != 3 {
            let what = format!("line {}: expected `table | row | figure`", number + 1);
            return Err(Error::input(file, what));
        }
        if lines.iter().any(|known| known == line) {
            let what = format!("line {}: listed twice: {line}", number + 1);
            return Err(Error::input(file, what));
        }
        lines.push(line.to_owned());
    }
    if lines.is_empty() {
        return Err(Error::input(
            file,
            "no figure; expected `table | row | figure` lines",
        ));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::{compare, parse};
    use std::path::Path;

    #[test]
    fn a_line_has_three_parts() {
        let read = |text| parse(Path::new("f"), text);
        let lines = read("# all\nAxboe, 19 Jan 2024 | nvme, stock | IOPS  # yes\n\n").unwrap();
        assert_eq!(lines, ["Axboe, 19 Jan 2024 | nvme, stock | IOPS"]);
        let error = read("\nAxboe, 19 Jan 2024 | nvme").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let error = read("# nothing\n").unwrap_err().to_string();
        assert!(error.contains("no figure"), "{error}");
        let error = read("a | b | c\na | b | c\n").unwrap_err().to_string();
        assert!(error.contains("line 2: listed twice"), "{error}");
    }
    #[test]
    fn a_figure_that_is_not_there_is_an_error() {
        let expected = ["Axboe, 19 Jan 2024 | no row | IOPS".to_owned()];
        let error = compare(Path::new("f"), &expected, &[]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("no such figure: Axboe, 19 Jan 2024 | no row | IOPS"),
            "{error}"
        );
    }
}
