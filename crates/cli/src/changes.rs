//! Options that change a scenario, and the machines it can run on.

use std::path::Path;

use scenario::profile;
use scenario::{ProfileFacts, Scenario, ScenarioError};
use sim::plan::Plan;
use sim::profile::MachineProfile;

use crate::args::Tune;
use crate::error::Error;
use crate::text::read_text;

#[derive(Debug)]
pub(crate) struct Machines(Vec<MachineProfile>);

impl Machines {
    /// The built-in machines, and the one of `--machine FILE.toml` or `--machine NAME:sockets=N`.
    pub(crate) fn of(tune: &Tune) -> Result<Machines, Error> {
        let mut profiles = Vec::new();
        for name in profile::names() {
            profiles.push(profile::built_in(name).map_err(|what| Error::usage(name, what))?);
        }
        let Some(written) = tune.machine.as_deref() else {
            return Ok(Machines(profiles));
        };
        let (name, sockets) = match written.split_once(profile::SOCKETS) {
            Some((name, sockets)) => (name, Some(sockets)),
            None => (written, None),
        };
        if let Some(file) = file(name) {
            profiles.push(machine_of(file)?);
        }
        if let Some(sockets) = sockets {
            let wrong = |what| Error::usage(format!("--machine {written}"), what);
            let of = match file(name) {
                Some(_) => profiles.last().cloned().ok_or_else(String::new),
                None => profile::built_in(name),
            };
            let of = of.and_then(|of| profile::of_sockets(of, sockets));
            profiles.push(of.map_err(wrong)?);
        }
        Ok(Machines(profiles))
    }

    /// The facts about machines that a plan needs. A file's machine hides the built-in one of its
    /// name.
    pub(crate) fn info(&self) -> Vec<ProfileFacts<'_>> {
        let newest_first = self.0.iter().rev();
        newest_first
            .map(|profile| ProfileFacts {
                name: &profile.name,
                cpus: profile.cpus(),
            })
            .collect()
    }

    /// The machine that a plan chose.
    pub(crate) fn get(&self, name: &str) -> &MachineProfile {
        let chosen = self.0.iter().rfind(|profile| profile.name == name);
        chosen.expect("the plan chose among these")
    }
}

/// The machine of a file, which may extend another one: a name without a directory is looked for
/// beside the file that extends it.
pub(crate) fn machine_of(file: &Path) -> Result<MachineProfile, Error> {
    let text = read_text(file)?;
    let mut dir = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let read = |name: &str| {
        let base = dir.join(name);
        let text = read_text(&base).map_err(|error| format!("extends: {error}"))?;
        dir = base.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok((who(&base), text))
    };
    profile::parse_at(&who(file), &text, read).map_err(|what| in_one_line(file, &what))
}

/// The same name for a file, for every spelling of its path.
fn who(file: &Path) -> String {
    let whole = file.canonicalize();
    whole
        .unwrap_or_else(|_| file.to_path_buf())
        .display()
        .to_string()
}

/// The TOML reader draws its errors over several lines, the first with the place, the last with
/// the reason.
pub(crate) fn in_one_line(file: &Path, what: &str) -> Error {
    let what = what.trim_end();
    let reason = what.lines().last().unwrap_or(what);
    let line = what
        .strip_prefix("TOML parse error at line ")
        .and_then(|rest| rest.split_once(','));
    match line {
        Some((line, _)) => Error::usage(format!("{}:{line}", file.display()), reason),
        None => Error::input(file, what),
    }
}

fn file(machine: &str) -> Option<&Path> {
    let file = Path::new(machine);
    file.extension()
        .is_some_and(|ending| ending == "toml")
        .then_some(file)
}

/// A change of the scenario by an option.
#[derive(Debug)]
struct Change {
    /// As the user wrote it.
    option: String,
    /// As `Scenario::set` takes it.
    assignment: String,
}

impl Change {
    fn key(&self) -> &str {
        self.assignment
            .split_once('=')
            .map_or(self.assignment.as_str(), |(key, _)| key)
            .trim()
    }
}

/// All changes, in the order of application.
#[derive(Debug)]
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    /// Those of `tune`, and `more`: option, key and value. Two that change one value are an error.
    pub(crate) fn of(
        tune: &Tune,
        machines: &Machines,
        more: &[(&str, &str, Option<&str>)],
    ) -> Result<Changes, Error> {
        let mut changes = Vec::new();
        let mut add = |option: &str, written: &str, key: &str, value: &str| {
            let option = format!("{option} {written}");
            changes.push(Change {
                option,
                assignment: format!("{key}={value}"),
            });
        };
        if let Some(written) = &tune.machine {
            let own = file(written).is_some() || written.contains(profile::SOCKETS);
            let own = own.then_some(machines.0.last()).flatten();
            let name = own.map_or(written, |machine| &machine.name);
            add("--machine", written, "machine.profile", name);
        }
        if let Some(rules) = &tune.rules {
            add("--rules", rules, "queue.rules", rules);
        }
        if let Some(seed) = tune.seed.map(|seed| seed.to_string()) {
            add("--seed", &seed, "seed", &seed);
        }
        for (option, key, value) in more {
            if let Some(value) = value {
                add(option, value, key, value);
            }
        }
        for set in &tune.set {
            changes.push(Change {
                option: format!("--set {set}"),
                assignment: set.clone(),
            });
        }
        for (index, change) in changes.iter().enumerate() {
            let key = change.key();
            if let Some(other) = changes[..index].iter().find(|other| other.key() == key) {
                let what = format!("{} sets {key} as well; expected one of them", other.option);
                return Err(Error::usage(&change.option, what));
            }
        }
        Ok(Changes(changes))
    }

    /// Applies all of them to a scenario, and checks the whole.
    pub(crate) fn apply(
        &self,
        mut scenario: Scenario,
        machines: &Machines,
    ) -> Result<(Scenario, Plan), Error> {
        for change in &self.0 {
            let set = scenario.set(&change.assignment);
            scenario = set.map_err(|error| self.in_own_words(&error))?;
        }
        let plan = scenario
            .plan(&machines.info())
            .map_err(|error| self.in_own_words(&error))?;
        Ok((scenario, plan))
    }

    /// The options as they were written.
    pub(crate) fn options(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|change| change.option)
    }

    /// `--scheduler` is written as an assignment for the scenario, which knows only those. The
    /// user reads the option back as it was given.
    fn in_own_words(&self, error: &ScenarioError) -> Error {
        let text = error.to_string();
        let own = |line: &str| {
            let mut changes = self.0.iter();
            let own = changes.find_map(|change| {
                let rest = line.strip_prefix(&format!("--set {}: ", change.assignment))?;
                Some(format!("{}: {rest}", change.option))
            });
            own.unwrap_or_else(|| line.to_owned())
        };
        let lines: Vec<String> = text.lines().map(own).collect();
        Error::Scenario(lines.join("\n"))
    }
}
