//! The job file's grammar: sections, comments, `option=value`.
//!
//! As fio's init.c reads it: a section whose name begins with `global` changes the defaults of the
//! sections after it; `;` and `#` begin a comment anywhere in a line.

use std::path::Path;

use super::{Section, Setting};
use crate::{Error, Result};

/// Splits a file into jobs, the global settings of its place in front of each.
pub(super) fn sections(file: &Path, text: &str) -> Result<Vec<Section>> {
    enum Place {
        Nowhere,
        Global,
        Job,
    }
    let mut place = Place::Nowhere;
    let mut global: Vec<Setting> = Vec::new();
    let mut jobs: Vec<Section> = Vec::new();
    for (number, line) in (1_u64..).zip(text.lines()) {
        let line = line
            .find([';', '#'])
            .map_or(line, |comment| &line[..comment])
            .trim();
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = section_name(file, number, rest)?;
            if name.starts_with("global") {
                place = Place::Global;
            } else {
                place = Place::Job;
                let settings = global.clone();
                jobs.push(Section {
                    name: name.to_string(),
                    line: number,
                    settings,
                });
            }
            continue;
        }
        if let Some(included) = line.strip_prefix("include ") {
            let what = format!(
                "put the text of `{}` here: files are not included",
                included.trim()
            );
            return Err(Error::text(file, number, "include", what));
        }
        let setting = setting(file, number, line, matches!(place, Place::Global))?;
        match (&place, jobs.last_mut()) {
            (Place::Global, _) => global.push(setting),
            (Place::Job, Some(job)) => job.settings.push(setting),
            _ => {
                let what = "comes before the first [section]";
                return Err(Error::text(file, number, &setting.option, what));
            }
        }
    }
    Ok(jobs)
}

fn section_name<'a>(file: &Path, line: u64, rest: &'a str) -> Result<&'a str> {
    let name = rest
        .strip_suffix(']')
        .ok_or_else(|| Error::text(file, line, "section", "expected [name]"))?
        .trim();
    if name.is_empty() {
        return Err(Error::text(
            file,
            line,
            "section",
            "a job needs a name: [name]",
        ));
    }
    Ok(name)
}

fn setting(file: &Path, line: u64, text: &str, global: bool) -> Result<Setting> {
    let (option, value) = match text.split_once('=') {
        Some((option, value)) => (option.trim_end(), Some(value.trim_start().to_string())),
        None => (text, None),
    };
    if option.is_empty() || option.contains(char::is_whitespace) {
        let what = format!("`{text}` is neither option=value nor a flag");
        return Err(Error::text(file, line, "option", what));
    }
    Ok(Setting {
        option: option.to_string(),
        value,
        line,
        global,
    })
}
