//! A profile that takes missing keys from another.
//!
//! Tables are joined key by key, values replaced. Not here: the meaning of a profile
//! (`profile.rs`).

use std::path::Path;

use serde::Deserialize as _;
use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

use super::{BUILT_IN, MachineProfile, names};

/// The key that names the base.
const EXTENDS: &str = "extends";

/// The profile of a text and of those that it extends, and the digest of all their texts.
pub(super) fn layered(
    own: &str,
    text: &str,
    mut read: impl FnMut(&str) -> Result<(String, String), String>,
) -> Result<(MachineProfile, String), String> {
    let mut whole: Table = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut digest = Sha256::new_with_prefix(text.as_bytes());
    let Some(mut base) = base_of(&mut whole)? else {
        let profile = toml::from_str(text).map_err(|e| e.to_string())?;
        return Ok((profile, hex(digest)));
    };
    // Name and description are its own: a base's would be wrong.
    if !whole.contains_key("name") {
        return Err("a profile that extends another needs a name of its own".to_owned());
    }
    let mut chain = vec![own.to_owned()];
    loop {
        let (who, base_text) = found(&base, &mut read)?;
        if chain.contains(&who) {
            let names: Vec<&str> = chain.iter().map(String::as_str).collect();
            return Err(format!(
                "extends goes round in a circle: {} extends {who}",
                names.join(" extends ")
            ));
        }
        let in_base = |what: String| format!("{who}, which it extends: {what}");
        let mut table: Table = toml::from_str(&base_text).map_err(|e| in_base(last_line(&e)))?;
        digest.update(base_text.as_bytes());
        let next = base_of(&mut table).map_err(in_base)?;
        add(&mut whole, table);
        chain.push(who);
        match next {
            Some(next) => base = next,
            None => break,
        }
    }
    let profile = MachineProfile::deserialize(whole).map_err(|e| at_its_line(text, e.message()))?;
    Ok((profile, hex(digest)))
}

/// Takes the name of the base out of a profile.
fn base_of(table: &mut Table) -> Result<Option<String>, String> {
    match table.remove(EXTENDS) {
        None => Ok(None),
        Some(Value::String(name)) if !name.is_empty() => Ok(Some(name)),
        Some(_) => Err("extends: expected the name of a machine profile, or FILE.toml".to_owned()),
    }
}

/// The identity of a base by its name, and its text: a built-in profile, or a file.
fn found(
    name: &str,
    read: &mut impl FnMut(&str) -> Result<(String, String), String>,
) -> Result<(String, String), String> {
    if let Some((built_in, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        return Ok(((*built_in).to_owned(), (*text).to_owned()));
    }
    if Path::new(name).extension().is_some_and(|end| end == "toml") {
        return read(name);
    }
    let names = names();
    Err(match trace::fio::nearest(name, names.iter().copied()) {
        Some(near) => format!("extends: no machine profile `{name}`; did you mean `{near}`?"),
        None => format!(
            "extends: no machine profile `{name}`; there are {}, or FILE.toml",
            names.join(", ")
        ),
    })
}

/// Adds missing keys.
fn add(whole: &mut Table, base: Table) {
    for (key, value) in base {
        match (whole.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(base)) => add(inner, base),
            (Some(_), _) => {}
            (None, value) => {
                whole.insert(key, value);
            }
        }
    }
}

/// An error about a joined table, with the line where the profile's own text has that key.
fn at_its_line(text: &str, what: &str) -> String {
    let what = what.trim_end();
    with_line(text, what.split('`').nth(1).unwrap_or(""), what)
}

/// An error about a key, with the line where the text has it, if it does.
pub(super) fn with_line(text: &str, key: &str, what: &str) -> String {
    let is_there = |line: &str| {
        let (name, _) = line.split_once('=').unwrap_or((line, ""));
        !key.is_empty() && name.trim() == key
    };
    match text.lines().position(is_there) {
        Some(line) => format!("TOML parse error at line {}, column 1\n{what}", line + 1),
        None => what.to_owned(),
    }
}

fn last_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    text.trim_end().lines().last().unwrap_or("").to_owned()
}

fn hex(digest: Sha256) -> String {
    let bytes = digest.finalize();
    let first = bytes.iter().take(8);
    first.map(|byte| format!("{byte:02x}")).collect()
}
