//! Groups of runs: a series is a set of runs that differ only by what the horizontal axis shows,
//! and by their seeds.

use sim::estimate::Estimate;

use super::input::Run;
use super::published::Published;
use super::scale::Scale;
use super::scene::{Colour, Dash, PALETTE};

/// Curves of one figure at most: more cannot be distinguished.
const CURVES: usize = PALETTE.len() * Dash::ALL.len();
/// Panels of one figure at most, where each series has its own.
const PANELS: usize = 7;

/// Runs that one curve shows.
#[derive(Clone, Debug)]
pub(crate) struct Series<'a> {
    /// The difference from the other series.
    pub(crate) name: String,
    pub(crate) colour: Colour,
    pub(crate) dash: Dash,
    /// By place on the axis; at least one. Runs of one place differ in their seeds.
    pub(crate) points: Vec<Vec<&'a Run>>,
}

impl Series<'_> {
    /// The last run on the axis, with the first seed.
    pub(crate) fn last(&self) -> &Run {
        self.last_point()[0]
    }

    pub(crate) fn last_point(&self) -> &[&Run] {
        self.points.last().expect("a series has a point")
    }
}

/// Mean over the seeds, with its 95 % interval; of one seed the figure with that of its run.
pub(crate) fn estimate(point: &[&Run], of: impl Fn(&Run) -> Estimate) -> Estimate {
    if let [one] = point {
        return of(one);
    }
    let values: Vec<f64> = point.iter().map(|run| of(run).mean).collect();
    Estimate::new(&values)
}

/// All series, and their common properties.
#[derive(Clone, Debug)]
pub(crate) struct Groups<'a> {
    /// In the order of their first runs.
    pub(crate) series: Vec<Series<'a>>,
    common: String,
    /// For every picture: these are no measurements.
    pub(crate) origin: String,
    /// Published figures to be drawn beside those of the runs.
    pub(crate) published: Vec<Published>,
    /// Key of `--set` on the horizontal axis; none: number of threads.
    key: Option<String>,
    /// Names of the series that are not drawn.
    pub(crate) left_out: Vec<String>,
    seeds: Vec<u64>,
    /// No axis has a logarithmic scale.
    pub(crate) linear: bool,
    /// Of reads, writes and trims those of which the runs have most, whose latencies are drawn.
    pub(crate) direction: usize,
}

fn busiest(runs: &[Run]) -> usize {
    let ios = |direction: &usize| -> f64 {
        let of_runs = runs.iter().map(|run| run.latencies[*direction].ios);
        of_runs.sum()
    };
    let directions = (0..3).rev();
    let busiest = directions.max_by(|a, b| ios(a).total_cmp(&ios(b)));
    busiest.unwrap_or_default()
}

/// Properties that may distinguish runs. Those that are equal in all runs are printed once.
fn parts(run: &Run, keys: &[&str], axis: Option<&str>) -> Vec<String> {
    let mut parts = vec![
        run.scenario.clone(),
        run.scheduler.clone(),
        run.device.clone(),
        format!("{}, {} CPUs", run.machine, run.cpus),
        format!("kernel {}", run.rules),
    ];
    for key in keys.iter().filter(|key| axis != Some(**key)) {
        let value = run.value_of(key);
        parts.push(value.map_or(String::new(), |value| format!("{key}={value}")));
    }
    if axis.is_some() {
        parts.push(threads_text(run.threads));
    }
    parts.push(run.others.clone());
    parts
}

fn threads_text(threads: f64) -> String {
    match threads {
        1.0 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    }
}

/// The versions of blksim that simulated the runs.
fn origin(runs: &[Run]) -> String {
    let mut versions: Vec<&str> = runs.iter().map(|run| run.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let versions = versions.join(" and ");
    format!("simulated by blksim {versions}: a model, no measurement")
}

/// Keys of `--set` of any run, in the order of their first.
fn keys(runs: &[Run]) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flat_map(|run| &run.sets) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys
}

/// The key of `--set` that the axis shows: the one with most different numbers, at least three, if
/// these are more than there are numbers of threads.
fn axis<'a>(runs: &[Run], keys: &[&'a str]) -> Option<&'a str> {
    let count = |values: Vec<f64>| {
        let mut values = values;
        values.sort_by(f64::total_cmp);
        values.dedup();
        values.len()
    };
    let mut best = count(runs.iter().map(|run| run.threads).collect()).max(2);
    let mut axis = None;
    for key in keys {
        let values = runs.iter().map(|run| numeric(run.value_of(key)?));
        if let Some(count) = values.collect::<Option<Vec<f64>>>().map(count)
            && count > best
        {
            (best, axis) = (count, Some(*key));
        }
    }
    axis
}

/// A number with a unit of fio's or none; times in ns.
pub(crate) fn numeric(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "%" | "ns" => 1.0,
        "k" | "kb" | "ki" | "kib" => 1024.0,
        "m" | "mb" | "mi" | "mib" => 1_048_576.0,
        "g" | "gb" | "gi" | "gib" => 1_073_741_824.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    number.parse().ok().map(|number: f64| number * factor)
}

impl<'a> Groups<'a> {
    /// Groups runs; an error if two of them are equal. `linear`: no axis has a logarithmic scale.
    pub(crate) fn new(runs: &'a [Run], linear: bool) -> Result<Groups<'a>, String> {
        let keys = keys(runs);
        let axis = axis(runs, &keys);
        let all: Vec<Vec<String>> = runs.iter().map(|run| parts(run, &keys, axis)).collect();
        let Some(first) = all.first() else {
            return Err("no run; expected at least one".to_owned());
        };
        let differs: Vec<bool> = (0..first.len())
            .map(|part| all.iter().any(|parts| parts[part] != first[part]))
            .collect();
        let pick = |parts: &[String], different: bool| -> String {
            let wanted = parts.iter().zip(&differs);
            let wanted = wanted.filter(|(part, d)| **d == different && !part.is_empty());
            let wanted: Vec<&str> = wanted.map(|(part, _)| part.as_str()).collect();
            wanted.join(", ")
        };
        let mut named: Vec<(String, Vec<&'a Run>)> = Vec::new();
        for (run, parts) in runs.iter().zip(&all) {
            let mut name = pick(parts, true);
            if name.is_empty() {
                name = if differs.contains(&true) {
                    "stock".to_owned()
                } else {
                    run.scheduler.clone()
                };
            }
            match named.iter_mut().find(|(of, _)| *of == name) {
                Some((_, runs)) => runs.push(run),
                None => named.push((name, vec![run])),
            }
        }
        let mut groups = Groups {
            origin: origin(runs),
            published: Vec::new(),
            series: Vec::new(),
            common: pick(first, false),
            key: axis.map(str::to_owned),
            left_out: Vec::new(),
            seeds: Vec::new(),
            linear,
            direction: busiest(runs),
        };
        groups.seeds = runs.iter().map(|run| run.seed).collect();
        groups.seeds.sort_unstable();
        groups.seeds.dedup();
        for (index, (name, runs)) in named.into_iter().enumerate() {
            let points = groups.points(&name, runs)?;
            if index >= CURVES {
                groups.left_out.push(name);
                continue;
            }
            groups.series.push(Series {
                name,
                colour: PALETTE[index % PALETTE.len()],
                dash: Dash::ALL[index / PALETTE.len()],
                points,
            });
        }
        Ok(groups)
    }

    /// Runs of one series by their place on the axis and their seed.
    fn points(&self, name: &str, mut runs: Vec<&'a Run>) -> Result<Vec<Vec<&'a Run>>, String> {
        let order = |a: &&Run, b: &&Run| {
            let places = self.x_of(a).total_cmp(&self.x_of(b));
            places.then(a.seed.cmp(&b.seed))
        };
        runs.sort_by(order);
        if let Some(pair) = runs.windows(2).find(|p| order(&p[0], &p[1]).is_eq()) {
            let files = [&pair[0].file, &pair[1].file].map(String::as_str);
            return Err(format!(
                "two runs of `{name}` with {} and seed {} ({}); expected runs that differ",
                self.x_text(pair[0]),
                pair[0].seed,
                files.join(" and "),
            ));
        }
        let alike = runs.chunk_by(|a, b| self.x_of(a).total_cmp(&self.x_of(b)).is_eq());
        Ok(alike.map(<[&Run]>::to_vec).collect())
    }

    /// Place of a run on the horizontal axis.
    pub(crate) fn x_of(&self, run: &Run) -> f64 {
        match &self.key {
            None => run.threads,
            Some(key) => run.value_of(key).and_then(numeric).unwrap_or(0.0),
        }
    }

    /// Its number, as it was written.
    pub(crate) fn x_number(&self, run: &Run) -> String {
        match &self.key {
            None => run.threads.to_string(),
            Some(key) => run.value_of(key).unwrap_or_default().to_owned(),
        }
    }

    pub(crate) fn x_text(&self, run: &Run) -> String {
        match &self.key {
            None => threads_text(run.threads),
            Some(key) => format!("{key}={}", self.x_number(run)),
        }
    }

    /// Name of the axis.
    pub(crate) fn x_name(&self) -> &str {
        self.key.as_deref().unwrap_or("threads")
    }

    /// The axis shows the number of threads.
    pub(crate) fn of_threads(&self) -> bool {
        self.key.is_none()
    }

    /// Places of the runs of all series with their numbers, ascending.
    pub(crate) fn places(&self) -> Vec<(f64, String)> {
        let runs = self.series.iter().flat_map(|s| &s.points).flatten();
        let mut all: Vec<(f64, String)> = runs
            .map(|run| (self.x_of(run), self.x_number(run)))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
        all
    }

    /// The horizontal axis.
    pub(crate) fn x_scale(&self) -> Scale {
        Scale::marks(self.places(), self.linear)
    }

    /// Series of figures in which each has a panel.
    pub(crate) fn panels(&self) -> &[Series<'a>] {
        &self.series[..self.series.len().min(PANELS)]
    }

    /// The line below the title of a figure with means over all seeds and so many of the series.
    pub(crate) fn common(&self, drawn: usize) -> String {
        let means = self.of_means();
        format!("{}, {means}{}", self.common, self.of_all(drawn))
    }

    fn of_means(&self) -> String {
        match self.seeds.as_slice() {
            [seed] => format!("seed {seed}, 95 % intervals from batches of each run"),
            seeds => format!("means of {} seeds with 95 % intervals", seeds.len()),
        }
    }

    /// The line of a figure with means over the seeds of the last place of each series.
    pub(crate) fn common_of_means(&self) -> String {
        self.of_runs(self.series.len(), &self.of_means())
    }

    fn of_all(&self, drawn: usize) -> String {
        let all = self.series.len() + self.left_out.len();
        match drawn == all {
            true => String::new(),
            false => format!(", {drawn} of {all} curves"),
        }
    }

    /// The line of a figure that shows the last run of each series.
    pub(crate) fn common_of_last(&self) -> String {
        self.of_runs(self.series.len(), &self.first_seed())
    }

    /// The line of a figure with a panel for each series.
    pub(crate) fn common_of_panels(&self) -> String {
        self.of_runs(self.panels().len(), &self.first_seed())
    }

    fn first_seed(&self) -> String {
        format!("seed {}", self.seeds.first().copied().unwrap_or_default())
    }

    fn of_runs(&self, drawn: usize, seeds: &str) -> String {
        let mut places: Vec<String> = Vec::new();
        for series in &self.series[..drawn] {
            let text = self.x_text(series.last());
            if !places.contains(&text) {
                places.push(text);
            }
        }
        let (places, of_all) = (places.join(" or "), self.of_all(drawn));
        format!("{}, {seeds}, {places}{of_all}", self.common)
    }
}

#[cfg(test)]
mod tests {
    use super::numeric;

    #[test]
    fn numbers_have_units() {
        for (text, want) in [
            ("16", Some(16.0)),
            ("0.5", Some(0.5)),
            ("4k", Some(4096.0)),
            ("1MiB", Some(1_048_576.0)),
            ("20us", Some(20_000.0)),
            ("2s", Some(2e9)),
            ("58%", Some(58.0)),
            ("randread", None),
            ("4k,8k", None),
            ("", None),
        ] {
            assert_eq!(numeric(text), want, "{text}");
        }
    }
}
