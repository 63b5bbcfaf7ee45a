//! Prices are in `crates/sim/profiles/*.toml` and nowhere else.
//!
//! A price in code is a name of a time or of cycles that is given a number. Zero is a starting
//! value and a power of ten is a unit, so both are fine.

use super::Finding;
use super::source::Tree;

const UNITS: &[&str] = &["_ns", "_NS", "_cycles", "_CYCLES"];

/// No constant, field or variable named after a time gets a number in `blkmq`, `sim` or
/// `scenario`.
pub(super) fn prices_are_in_profiles(tree: &Tree, found: &mut Vec<Finding>) {
    let places = [
        "crates/sim/src/",
        "crates/scenario/src/",
        "crates/blkmq/src/",
    ];
    for file in tree.products() {
        if !places.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        for (index, line) in file.product.lines().enumerate() {
            if let Some(price) = price(line) {
                let text = format!("`{price}`: prices belong into crates/sim/profiles/*.toml");
                found.push(Finding {
                    path: file.path.clone(),
                    line: index + 1,
                    text,
                });
            }
        }
    }
}

/// The part of the line that gives a number to a name of a time.
fn price(line: &str) -> Option<String> {
    let words = words(line);
    for (at, name) in words.iter().enumerate() {
        if !UNITS.iter().any(|unit| name.ends_with(unit)) {
            continue;
        }
        // `NAME: u64 = 40`, `name_ns: 40`, `name_ns = 40`.
        let value = match (words.get(at + 1).copied(), words.get(at + 3).copied()) {
            (Some(":"), Some("=")) => words.get(at + 4),
            (Some(":" | "="), _) => words.get(at + 2),
            _ => None,
        };
        if let Some(value) = value.filter(|value| is_price(value)) {
            return Some(format!("{name} {value}"));
        }
    }
    None
}

fn is_price(word: &str) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let digits: String = word.chars().filter(|c| *c != '_').collect();
    let digits = digits.trim_end_matches(|c: char| !c.is_ascii_digit());
    !matches!(digits.trim_end_matches('0'), "" | "1")
}

/// Names and numbers, and every other character that is no space as a word of its own.
fn words(line: &str) -> Vec<&str> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if part(first) {
            rest.find(|c: char| !part(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        words.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    words
}
