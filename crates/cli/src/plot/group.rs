//! Groups of runs: a series is a set of runs that differ only by their threads.

use super::input::Run;
use super::published::Published;
use super::scene::{Colour, PALETTE};

/// Runs that one curve shows.
#[derive(Clone, Debug)]
pub(crate) struct Series<'a> {
    /// The difference from the other series.
    pub(crate) name: String,
    pub(crate) colour: Colour,
    /// By number of threads; at least one.
    pub(crate) runs: Vec<&'a Run>,
}

impl Series<'_> {
    /// The run with most threads.
    pub(crate) fn last(&self) -> &Run {
        self.runs.last().expect("a series has a run")
    }
}

/// All series, and their common properties.
#[derive(Clone, Debug)]
pub(crate) struct Groups<'a> {
    /// In the order of their first runs.
    pub(crate) series: Vec<Series<'a>>,
    pub(crate) common: String,
    /// For every picture: these are no measurements.
    pub(crate) origin: String,
    /// Published figures to be drawn beside those of the runs.
    pub(crate) published: Vec<Published>,
}

/// Properties that may distinguish runs. Those that are equal in all runs are printed once.
fn parts(run: &Run) -> [String; 6] {
    [
        run.scenario.clone(),
        run.scheduler.clone(),
        run.device.clone(),
        format!("{}, {} CPUs", run.machine, run.cpus),
        format!("kernel {}", run.rules),
        run.options.clone(),
    ]
}

/// The versions of blksim that simulated the runs.
fn origin(runs: &[Run]) -> String {
    let mut versions: Vec<&str> = runs.iter().map(|run| run.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    format!("simulated by blksim {}", versions.join(" and "))
}

impl<'a> Groups<'a> {
    /// Groups runs; an error if there are more series than colours, or two equal runs.
    pub(crate) fn new(runs: &'a [Run]) -> Result<Groups<'a>, String> {
        let all: Vec<[String; 6]> = runs.iter().map(parts).collect();
        let Some(first) = all.first() else {
            return Err("no run; expected at least one".to_owned());
        };
        let differs: Vec<bool> = (0..first.len())
            .map(|part| all.iter().any(|parts| parts[part] != first[part]))
            .collect();
        let pick = |parts: &[String; 6], different: bool| -> String {
            let wanted = parts.iter().zip(&differs);
            let wanted = wanted.filter(|(part, d)| **d == different && !part.is_empty());
            let wanted: Vec<&str> = wanted.map(|(part, _)| part.as_str()).collect();
            wanted.join(", ")
        };
        let mut series: Vec<Series<'a>> = Vec::new();
        for (run, parts) in runs.iter().zip(&all) {
            let mut name = pick(parts, true);
            if name.is_empty() {
                name = if differs.contains(&true) {
                    "stock".to_owned()
                } else {
                    run.scheduler.clone()
                };
            }
            match series.iter_mut().find(|s| s.name == name) {
                Some(series) => series.runs.push(run),
                None => series.push(Series {
                    name,
                    colour: PALETTE[series.len() % PALETTE.len()],
                    runs: vec![run],
                }),
            }
        }
        if series.len() > PALETTE.len() {
            return Err(format!(
                "{} different curves; expected at most {}, more cannot be distinguished",
                series.len(),
                PALETTE.len()
            ));
        }
        for one in &mut series {
            one.runs.sort_by(|a, b| a.threads.total_cmp(&b.threads));
            if let Some(pair) = one.runs.windows(2).find(|p| same_threads(p[0], p[1])) {
                return Err(format!(
                    "two runs of `{}` with {} threads ({}{}); expected runs that differ",
                    one.name,
                    pair[0].threads,
                    pair[0].file,
                    if pair[1].file.is_empty() {
                        String::new()
                    } else {
                        format!(" and {}", pair[1].file)
                    },
                ));
            }
        }
        let mut common = pick(first, false);
        if runs.iter().all(|run| run.seed == runs[0].seed) {
            common.push_str(&format!(", seed {}", runs[0].seed));
        }
        Ok(Groups {
            origin: origin(runs),
            published: Vec::new(),
            series,
            common,
        })
    }

    /// The numbers of threads of all series, ascending.
    pub(crate) fn threads(&self) -> Vec<f64> {
        let runs = self.series.iter().flat_map(|s| &s.runs);
        let mut all: Vec<f64> = runs.map(|run| run.threads).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// The common line, with the threads of the shown run of each series: its last run.
    pub(crate) fn common_of_last(&self) -> String {
        let mut threads: Vec<String> = Vec::new();
        for series in &self.series {
            let text = series.last().threads.to_string();
            if !threads.contains(&text) {
                threads.push(text);
            }
        }
        let plural = if threads == ["1"] {
            "thread"
        } else {
            "threads"
        };
        format!("{}, {} {plural}", self.common, threads.join(" or "))
    }
}

fn same_threads(a: &Run, b: &Run) -> bool {
    a.threads.total_cmp(&b.threads).is_eq()
}
