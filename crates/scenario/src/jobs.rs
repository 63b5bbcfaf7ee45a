//! The `[[job]]` tables: fio's options, read by the same code as fio's job files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};
use trace::fio::{self, FioEngine, FioJob, Head, JobFile, Output, Section, Setting};

use super::source::{Place, Source};
use super::{Result, Scenario, ScenarioError};

/// First name of an option that fio knows.
pub(super) fn canonical(option: &str) -> Option<&'static str> {
    fio::lookup(option).map(|known| known.name)
}

/// True if setting `new` leaves nothing of an earlier `old`: one option, or its opposite.
pub(super) fn overrides(new: &str, old: &str) -> bool {
    let pairs = [
        ("direct", "buffered"),
        ("cpus_allowed", "cpumask"),
        ("rwmixread", "rwmixwrite"),
        ("bs", "bsrange"),
        ("rate", "rate_iops"),
    ];
    let (new, old) = (canonical(new).unwrap_or(new), canonical(old).unwrap_or(old));
    // A split leaves directions that it does not name to bs.
    let sizes = ["bs", "bsrange"].contains(&new) && old == "bssplit";
    new == old
        || sizes
        || pairs
            .iter()
            .any(|(a, b)| (new, old) == (*a, *b) || (new, old) == (*b, *a))
}

/// A scenario of nothing but fio jobs.
pub(super) fn source(file: &Path, jobs: &JobFile) -> Result<Source> {
    let (mut places, mut tables) = (BTreeMap::new(), Vec::new());
    let mut global = BTreeSet::new();
    let mut replaced = BTreeMap::new();
    let mut scheduler: Option<&Setting> = None;
    let at = |line| {
        let (file, line) = jobs.sources.place(line);
        Place::Line(file.to_path_buf(), line)
    };
    for (i, job) in jobs.jobs.iter().enumerate() {
        let mut table = Table::new();
        let chosen = job.setting("ioscheduler");
        if let (Some(first), Some(other)) = (scheduler, chosen)
            && first.value != other.value
        {
            let (place, what) = (at(other.line), "ioscheduler: another job has another one");
            return Err(ScenarioError::Syntax {
                place: place.to_string(),
                what: format!("{what}; all devices have one, or write a scenario"),
            });
        }
        scheduler = scheduler.or(chosen);
        for setting in &job.written {
            let name = canonical(&setting.option).unwrap_or(&setting.option);
            if name == "ioscheduler" {
                continue;
            }
            // fio takes the last one; globals come first. Names add up.
            let before = match (name, table.get(name)) {
                ("filename", Some(Value::String(names))) => format!("{names}:"),
                _ => String::new(),
            };
            table.retain(|old, _| !overrides(name, old));
            let value = setting
                .value
                .as_ref()
                .map_or(Value::Boolean(true), |value| Value::String(before + value));
            table.insert(name.to_string(), value);
            let field = format!("job.{i}.{name}");
            match setting.global {
                true => global.insert(field.clone()),
                false => global.remove(&field),
            };
            replaced.extend(jobs.as_written(setting).map(|value| (field.clone(), value)));
            places.insert(field, at(setting.line));
        }
        table.insert("name".to_string(), Value::String(job.name.clone()));
        places.insert(format!("job.{i}"), at(job.line));
        tables.push(Value::Table(table));
    }
    let mut table = Table::new();
    table.insert("job".to_string(), Value::Array(tables));
    if let Some((setting, value)) = scheduler.and_then(|of| Some((of, of.value.clone()?))) {
        let queue = Table::from_iter([("scheduler".to_string(), Value::String(value))]);
        table.insert("queue".to_string(), Value::Table(queue));
        places.insert("queue.scheduler".to_string(), at(setting.line));
    }
    table.insert("count_tail".to_string(), Value::Boolean(true));
    let mut source = Source::new(file, table);
    let noted = |of: &fio::Ignored| format!("{}: {}: {}", at(of.line), of.option, of.why);
    source.left_out = jobs.left_out.iter().map(noted).collect();
    source.program.clone_from(&jobs.program);
    source.places = places;
    source.global = global;
    source.replaced = replaced;
    source.sections = jobs.jobs.iter().map(|job| job.name.clone()).collect();
    Ok(source)
}

/// Options of `[global]` become those of each job that does not set them. Names of files add up, as
/// in a job file.
pub(super) fn spread_global(source: &mut Source) -> Result<()> {
    let Some(Value::Table(global)) = source.table.remove("global") else {
        return Ok(());
    };
    if global.contains_key("name") {
        return Err(source.error("global.name", "each job has a name of its own"));
    }
    let Some(Value::Array(jobs)) = source.table.get_mut("job") else {
        let what = "there is no [[job]] that could have these options";
        return Err(source.error("global", what));
    };
    let mut wrong = None;
    for (i, job) in jobs.iter_mut().enumerate() {
        let Some(job) = job.as_table_mut() else {
            continue;
        };
        // Not keys from [global] itself: a contradiction of two options of it is found later.
        let own_keys: Vec<String> = job.keys().cloned().collect();
        for (option, value) in &global {
            let of_job = own_keys.iter().find(|own| overrides(own, option)).cloned();
            if let Some(own) = &of_job
                && canonical(option) == Some("bssplit")
                && canonical(own) != Some("bssplit")
            {
                let what = "[global] has bssplit, and fio goes by that; keep one of them";
                wrong = Some((format!("job.{i}.{own}"), what));
            }
            let both = match (&of_job, value) {
                (None, value) => Some((option.clone(), value.clone())),
                (Some(own), names) if canonical(option) == Some("filename") => {
                    let Some((names, more)) = names.as_str().zip(job[own].as_str()) else {
                        wrong = Some((format!("global.{option}"), "expected names in quotes"));
                        continue;
                    };
                    let all = format!("{names}:{more}");
                    Some((own.clone(), Value::String(all)))
                }
                _ => None,
            };
            let Some((key, value)) = both else {
                continue;
            };
            job.insert(key.clone(), value);
            if of_job.is_none() {
                source.global.insert(format!("job.{i}.{key}"));
            }
            if let Some(place) = source.places.get(&format!("global.{option}")).cloned() {
                source
                    .places
                    .entry(format!("job.{i}.{key}"))
                    .or_insert(place);
            }
        }
    }
    match wrong {
        Some((field, what)) => Err(source.error(&field, what)),
        None => Ok(()),
    }
}

/// t/io_uring's options have other names than the job's: notes show the argument instead.
pub(super) fn name_arguments<S: AsRef<str>>(source: &mut Source, jobs: &JobFile, arguments: &[S]) {
    if jobs
        .jobs
        .iter()
        .any(|job| job.ioengine != FioEngine::TIoUring)
    {
        return;
    }
    for place in source.places.values_mut() {
        if let Place::Line(_, line) = place
            && let Some(argument) = arguments.get((*line as usize).saturating_sub(1))
        {
            *place = Place::Option(format!("-- {}", argument.as_ref()));
        }
    }
}

/// The jobs, typed, and notes on options without effect.
pub(super) fn jobs(scenario: &Scenario) -> Result<(Vec<FioJob>, Vec<String>)> {
    if scenario.job.is_empty() {
        if scenario.has_readers() {
            return Ok((Vec::new(), Vec::new()));
        }
        let what = "there is no job; write [[job]] with fio's options, e.g. rw = \"randread\"";
        return Err(scenario.error("job", what));
    }
    let tables = scenario.job.iter().enumerate();
    let tables = tables.map(|(i, table)| (format!("job.{i}"), table));
    parsed(scenario, &tables.collect::<Vec<_>>(), |field| field)
}

/// The job of the table of this name, with one key under another name than fio's.
pub(super) fn of_table(
    scenario: &Scenario,
    head: &str,
    table: &BTreeMap<String, Value>,
    (option, key): (&str, &str),
) -> Result<(FioJob, Vec<String>)> {
    let (of_fio, own) = (format!("{head}.{option}"), format!("{head}.{key}"));
    let named = |field| match field == of_fio {
        true => own.clone(),
        false => field,
    };
    let (mut jobs, notes) = parsed(scenario, &[(head.to_owned(), table)], named)?;
    Ok((jobs.remove(0), notes))
}

/// The jobs of these tables, by name. `named`: the written key of an option that came from another
/// field.
fn parsed(
    scenario: &Scenario,
    tables: &[(String, &BTreeMap<String, Value>)],
    named: impl Fn(String) -> String,
) -> Result<(Vec<FioJob>, Vec<String>)> {
    // The parser knows lines; here a "line" is the number of a setting in this list.
    let mut names: Vec<String> = vec!["job".to_string()];
    let mut sections = Vec::new();
    for (head, table) in tables {
        sections.push(section(scenario, head, table, &mut names)?);
    }
    let file = &scenario.source.file;
    let mut parsed = fio::from_sections(file, &sections).map_err(|e| match e {
        trace::Error::Jobs(problems) => {
            let error = |problem: fio::Problem| {
                let field = named(names[problem.line as usize].clone());
                scenario.error(&field, problem.what)
            };
            let mut errors: Vec<_> = problems.list.into_iter().map(error).collect();
            match errors.len() {
                1 => errors.remove(0),
                _ => ScenarioError::Several(errors),
            }
        }
        other => ScenarioError::Fio(other),
    })?;
    for setting in parsed.jobs.iter_mut().flat_map(|job| &mut job.written) {
        let field = &names[setting.line as usize];
        let changed = matches!(scenario.source.places.get(field), Some(Place::Option(_)));
        if let Some(written) = scenario.source.replaced.get(field).filter(|_| !changed) {
            setting.value.clone_from(written);
        }
    }
    // In the order of their lines, each once.
    let notes: BTreeSet<_> = parsed
        .ignored
        .iter()
        .map(|note| {
            let field = &names[note.line as usize];
            let text = format!(
                "{}: {}: {}",
                scenario.source.place(field),
                note.option,
                note.why
            );
            (scenario.source.written_at(field), text)
        })
        .collect();
    Ok((
        parsed.jobs,
        notes.into_iter().map(|(_, text)| text).collect(),
    ))
}

/// Options of each of the report's entries as written: of several jobs those that all have.
pub(super) fn written(jobs: &[FioJob], entries: &[u16]) -> Vec<Vec<(String, String)>> {
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    for (job, &entry) in jobs.iter().zip(entries) {
        let text = |setting: &Setting| setting.value.clone().unwrap_or_else(|| "1".to_owned());
        let options = job.written.iter();
        let options: Vec<_> = options.map(|s| (s.option.clone(), text(s))).collect();
        match all.get_mut(usize::from(entry)) {
            Some(common) => common.retain(|option| options.contains(option)),
            None => all.push(options),
        }
    }
    all
}

fn head(job: &FioJob) -> Head {
    let written = |option: &str, default: &str| {
        let value = job.setting(option).and_then(|of| of.value.as_deref());
        value.unwrap_or(default).to_owned()
    };
    let sizes = [job.bs.read, job.bs.write, job.bs.trim];
    Head {
        rw: written("rw", "read"),
        ioengine: written("ioengine", "psync"),
        iodepth: job.iodepth,
        bs: sizes.map(|size| (size.min, size.max)),
        thread: job.thread,
    }
}

/// What each job asks of fio's own output, with its group (add_job()).
pub(super) fn outputs(jobs: &[FioJob]) -> Vec<Output> {
    let mut group = 0;
    let of = |(index, job): (usize, &FioJob)| {
        group += u16::from(index > 0 && (job.stonewall || job.new_group));
        let (global, own) = job.written.iter().partition::<Vec<_>, _>(|of| of.global);
        let text = |list: Vec<&Setting>| {
            let pair = |of: &Setting| (of.option.clone(), of.value.clone().unwrap_or_default());
            list.into_iter().map(pair).collect()
        };
        Output {
            group,
            // One line of t/io_uring reports all its threads.
            is_grouped: job.group_reporting || job.ioengine == FioEngine::TIoUring,
            head: head(job),
            own: text(own),
            global: text(global),
            latency_target: job.control.latency_target,
            latency_percentile: job.control.latency_percentile,
            latency_window: job.control.latency_window,
            ..job.output.clone()
        }
    };
    jobs.iter().enumerate().map(of).collect()
}

fn section(
    scenario: &Scenario,
    head: &str,
    table: &BTreeMap<String, Value>,
    names: &mut Vec<String>,
) -> Result<Section> {
    let line = names.len() as u64;
    names.push(head.to_owned());
    let mut name = head.replace('.', "");
    let mut settings: Vec<Setting> = Vec::new();
    for (option, value) in table {
        let field = format!("{head}.{option}");
        let is_switch = || {
            let known = fio::lookup(option).map(|known| known.treatment);
            matches!(known, Some(fio::Treatment::Flag(_)))
        };
        let value = match value {
            Value::String(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Boolean(true) if is_switch() => None,
            Value::Boolean(on) => Some(i32::from(*on).to_string()),
            _ => {
                let what = "expected a string, a whole number, true or false";
                return Err(scenario.error(&field, what));
            }
        };
        if let ("name", Some(value)) = (option.as_str(), &value) {
            name.clone_from(value);
            continue;
        }
        if canonical(option) == Some("ioscheduler") {
            let what = "give the scheduler in the scenario: queue.scheduler";
            return Err(scenario.error(&field, what));
        }
        if let Some(twin) = settings
            .iter()
            .find(|s| canonical(&s.option) == canonical(option))
            && canonical(option).is_some()
        {
            return Err(scenario.error(&field, format!("{} is the same option", twin.option)));
        }
        let line = names.len() as u64;
        let source = &scenario.source;
        let changed = matches!(source.places.get(&field), Some(Place::Option(_)));
        let global = source.global.contains(&field) && !changed;
        names.push(field);
        settings.push(Setting {
            option: option.clone(),
            value,
            line,
            global,
        });
    }
    Ok(Section {
        name,
        line,
        settings,
    })
}
