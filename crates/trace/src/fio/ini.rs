//! The job file's grammar: `[sections]`, `option=value`, comments, `include`.
//!
//! After fio 3.33 init.c __parse_jobs_ini(), options.c fio_option_dup_subs().

use std::path::{Component, Path, PathBuf};

use super::options::{Treatment, lookup};
use super::problem::Problem;
use super::{Gathered, Reading, Section, Setting};

/// Files that may include each other, each the next, at most.
const DEPTH_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Global,
    Job,
}

/// Splits a file into jobs, the global settings of its place in front of each.
pub(super) fn read(all: &mut Gathered, file: &Path, text: &str, reading: &Reading<'_>) {
    Reader {
        all,
        reading,
        place: Place::Nowhere,
        open: Vec::new(),
    }
    .lines(file, text);
}

struct Reader<'a, 'b> {
    all: &'a mut Gathered,
    reading: &'a Reading<'b>,
    place: Place,
    /// The file that is read, and before it those that include it.
    open: Vec<PathBuf>,
}

impl Reader<'_, '_> {
    fn wrong(&mut self, line: u64, option: &str, what: impl Into<String>) {
        self.all.problems.push(Problem::new(line, option, what));
    }

    fn lines(&mut self, file: &Path, text: &str) {
        let first = self.all.sources.add(file);
        self.open.push(plain(file));
        for (number, line) in (first + 1..).zip(text.lines()) {
            let line = line
                .find([';', '#'])
                .map_or(line, |comment| &line[..comment])
                .trim();
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                if self.open.len() > 1 {
                    // What follows would be settings of other sections than they are meant for.
                    self.wrong(number, "section", "an included file has no sections");
                    break;
                }
                self.section(number, rest);
                continue;
            }
            if let Some(name) = line.strip_prefix("include ") {
                self.include(file, number, name.trim());
                continue;
            }
            self.setting(number, line);
        }
        self.open.pop();
    }

    fn section(&mut self, number: u64, rest: &str) {
        let Some(name) = rest.strip_suffix(']').map(str::trim) else {
            return self.wrong(number, "section", "expected [name]");
        };
        if name.is_empty() {
            return self.wrong(number, "section", "a job needs a name: [name]");
        }
        if name.starts_with("global") {
            self.place = Place::Global;
            return;
        }
        self.place = Place::Job;
        self.all.sections.push(Section {
            name: name.to_string(),
            line: number,
            settings: self.all.global.clone(),
        });
    }

    /// A name that does not exist is looked for beside the file that includes it.
    fn include(&mut self, file: &Path, number: u64, name: &str) {
        if self.open.len() > DEPTH_MAX {
            let what = format!("{name}: more than {DEPTH_MAX} files, each included by the last");
            return self.wrong(number, "include", what);
        }
        let beside = file.parent().unwrap_or(Path::new("")).join(name);
        let read = (self.reading.read)(Path::new(name)).map(|text| (name.into(), text));
        let read = read.or_else(|_| (self.reading.read)(&beside).map(|text| (beside, text)));
        match read {
            Ok((path, _)) if self.open.contains(&plain(&path)) => {
                let what = format!("{name}: this file is being read: files include each other");
                self.wrong(number, "include", what);
            }
            Ok((path, text)) => self.lines(&path, &text),
            Err(what) => self.wrong(number, "include", format!("{name}: {what}")),
        }
    }

    fn setting(&mut self, number: u64, text: &str) {
        let (line, unset) = self.with_variables(text);
        let (option, value) = match line.split_once('=') {
            Some((option, value)) => (option.trim_end(), Some(value.trim().to_string())),
            None => (line.trim(), None),
        };
        if option.is_empty() || option.contains(char::is_whitespace) {
            let what = format!("`{text}` is neither option=value nor a flag");
            return self.wrong(number, "option", what);
        }
        let modelled = |name| lookup(name).map(|known| known.treatment);
        if let (Some(""), Some(unset)) = (value.as_deref(), unset)
            && let Some(Treatment::Value(_)) = modelled(option)
        {
            let what = format!("needs a value; the environment has no variable {unset}");
            return self.wrong(number, option, what);
        }
        let setting = Setting {
            option: option.to_string(),
            value,
            line: number,
            global: self.place == Place::Global,
        };
        match (self.place, self.all.sections.last_mut()) {
            (Place::Global, _) => self.all.global.push(setting),
            (Place::Job, Some(job)) => job.settings.push(setting),
            _ => self.wrong(number, option, "comes before the first [section]"),
        }
    }

    /// `${NAME}` is the value of a variable, nothing if it is not set; the last such name.
    fn with_variables(&self, text: &str) -> (String, Option<String>) {
        let (mut line, mut rest, mut unset) = (String::new(), text, None);
        while let Some((before, (name, after))) = rest
            .split_once("${")
            .and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            line += before;
            match (self.reading.variable)(name) {
                Some(value) => line += &value,
                None => unset = Some(name.to_owned()),
            }
            rest = after;
        }
        (line + rest, unset)
    }
}

/// The path without `.`, so that a file has one.
fn plain(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests;
