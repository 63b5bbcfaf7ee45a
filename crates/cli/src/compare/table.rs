//! The comparison as text, JSON and CSV: a row for each variant below each measure; in CSV also for
//! each seed.

#[cfg(test)]
mod tests;

use scenario::report::{Report, value_of};
use scenario::table::csv_of;
use serde_json::{Map, Value, json};
use study::compare::{ALL, Compared, Row, Unit, compared};

use crate::amount::{changed, estimated};
use crate::html;
use crate::outputs::Reported;

#[derive(Clone, Debug)]
pub(super) struct Table {
    seeds: Vec<u64>,
    scenarios: Vec<String>,
    version: String,
    variants: Vec<Variant>,
    measures: Vec<Compared>,
    /// How many variants it has of how many, if a signal ended the others.
    cut: Option<String>,
    /// Of each variant that of the first seed.
    reports: Vec<Report>,
}

/// Settings of the runs of a variant.
#[derive(Clone, Debug)]
struct Variant {
    /// What the other variants have different.
    varied: Vec<(String, String)>,
    /// In the order of [`SETTINGS`].
    settings: [String; SETTINGS.len()],
}

/// Columns that name a variant, before those of `--set`.
const SETTINGS: [&str; 5] = ["scenario", "scheduler", "rules", "machine", "threads"];

impl Variant {
    fn new(report: &Report) -> Variant {
        let run = &report.blksim;
        let threads: u32 = report.jobs.iter().map(|job| job.threads).sum();
        let mut settings = [
            run.scenario.clone(),
            run.scheduler.to_owned(),
            run.rules.to_owned(),
            run.machine.clone(),
            threads.to_string(),
        ];
        let varied = run.varied.iter().filter(|(name, _)| name != "seed");
        let varied: Vec<(String, String)> = varied.cloned().collect();
        for (setting, column) in settings.iter_mut().zip(SETTINGS) {
            if let Some((_, value)) = varied.iter().find(|(name, _)| name == column) {
                setting.clone_from(value);
            }
        }
        Variant { varied, settings }
    }

    /// The values that distinguish it from the others.
    fn name(&self) -> String {
        let part = |(name, value): &(String, String)| match name.as_str() {
            "threads" if value == "1" => "1 thread".to_owned(),
            "threads" => format!("{value} threads"),
            name if SETTINGS.contains(&name) => value.clone(),
            name => format!("{name}={value}"),
        };
        let parts: Vec<String> = self.varied.iter().map(part).collect();
        parts.join(", ")
    }
}

impl Table {
    /// For the reports of each variant, one for each seed.
    pub(super) fn new(variants: &[&[Report]], cut: Option<String>) -> Table {
        let first = variants[0];
        let mut scenarios: Vec<String> = Vec::new();
        for reports in variants {
            let name = &reports[0].blksim.scenario;
            if !scenarios.contains(name) {
                scenarios.push(name.clone());
            }
        }
        Table {
            seeds: first.iter().map(|report| report.blksim.seed).collect(),
            scenarios,
            version: first[0].blksim.version.clone(),
            variants: variants.iter().map(|of| Variant::new(&of[0])).collect(),
            measures: compared(variants),
            cut,
            reports: variants.iter().map(|of| of[0].clone()).collect(),
        }
    }

    fn head(&self) -> String {
        let scenarios = self.scenarios.join(", ");
        let head = match self.seeds.as_slice() {
            [seed] => format!(
                "{scenarios}: seed {seed}, 95 % intervals from batches of each run, see --seeds\n"
            ),
            seeds => format!(
                "{scenarios}: means of seeds {} to {} with 95 % intervals\n",
                seeds[0],
                seeds[seeds.len() - 1]
            ),
        };
        match &self.cut {
            None => head,
            Some(cut) => format!("{head}CUT by a signal: {cut}\n"),
        }
    }

    /// Measures of the text. With one direction, its figures are those of all together; with
    /// several, latencies are of each, as percentiles do not add up.
    fn shown(&self) -> impl Iterator<Item = &Compared> {
        let of = |direction: &str| self.measures.iter().any(|of| of.direction == direction);
        let several = ["read", "write", "trim"]
            .into_iter()
            .filter(|d| of(d))
            .count()
            > 1;
        self.measures.iter().filter(move |of| match of.direction {
            ALL => !several || of.measure.unit != Unit::Time,
            _ => several && of.measure.unit != Unit::Bytes,
        })
    }

    /// Keys of `--set` with several values.
    fn keys(&self) -> Vec<&str> {
        let names = self.variants[0]
            .varied
            .iter()
            .map(|(name, _)| name.as_str());
        names.filter(|name| !SETTINGS.contains(name)).collect()
    }
}

impl Reported for Table {
    fn text(&self) -> String {
        let names: Vec<String> = self.variants.iter().map(Variant::name).collect();
        let width = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max();
        let name_width = width(&names).unwrap_or(0);
        let mut text = self.head();
        for compared in self.shown() {
            let measure = compared.measure;
            let title = match compared.direction {
                ALL => measure.title.to_owned(),
                direction => format!("{direction}: {}", measure.title),
            };
            text.push_str(&format!("\n{title}\n"));
            let value = |row: &Row| estimated(&row.estimate, measure.unit);
            let values: Vec<String> = compared.rows.iter().map(value).collect();
            let value_width = width(&values).unwrap_or(0);
            for ((name, value), row) in names.iter().zip(&values).zip(&compared.rows) {
                let mut line = format!("  {name:name_width$}  {value:>value_width$}");
                if let Some(difference) = &row.difference {
                    let unit = if measure.is_relative() { "%" } else { "points" };
                    line.push_str(&format!("   {:>18}", changed(difference, unit)));
                    if difference.may_be_nothing() {
                        line.push_str("  (may be chance)");
                    }
                }
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    fn json(&self) -> String {
        let object = |compared: &Compared| {
            let rows = self.variants.iter().zip(&compared.rows);
            let row = |(variant, row): (&Variant, &Row)| {
                let varied = variant.varied.iter();
                let varied = varied.map(|(name, value)| (name.clone(), value_of(value)));
                json!({
                    "variant": variant.name(),
                    "varied": Value::Object(varied.collect()),
                    "mean": row.estimate.mean,
                    "half": row.estimate.half,
                    "difference": row.difference.map(|d| d.mean),
                    "difference_half": row.difference.and_then(|d| d.half),
                    "values": row.values,
                })
            };
            json!({
                "difference_unit": compared.measure.difference_unit(),
                "variants": rows.map(row).collect::<Vec<_>>(),
            })
        };
        let mut whole = Map::new();
        whole.insert("version".to_owned(), json!(self.version));
        whole.insert("scenarios".to_owned(), json!(self.scenarios));
        whole.insert("seeds".to_owned(), json!(self.seeds));
        if let Some(cut) = &self.cut {
            whole.insert("cut".to_owned(), json!(cut));
        }
        for compared in &self.measures {
            let member = match compared.direction {
                ALL => "measures",
                direction => direction,
            };
            let measures = whole.entry(member).or_insert_with(|| json!({}));
            measures[compared.measure.name] = object(compared);
        }
        let text = serde_json::to_string_pretty(&whole);
        text.expect("keys are texts, and every figure is finite") + "\n"
    }

    /// For each measure of each variant a row of the mean, then one of each seed.
    fn csv(&self) -> String {
        const RESULT: [&str; 11] = [
            "variant",
            "measure",
            "direction",
            "seed",
            "seeds",
            "value",
            "half",
            "difference",
            "difference_half",
            "difference_unit",
            "unit",
        ];
        let keys = self.keys();
        let head = SETTINGS.iter().chain(&keys).chain(&RESULT);
        let mut lines: Vec<Vec<String>> = vec![head.map(|&name| name.to_owned()).collect()];
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for compared in &self.measures {
            let measure = compared.measure;
            for (variant, row) in self.variants.iter().zip(&compared.rows) {
                let of_keys = variant.varied.iter();
                let of_keys = of_keys.filter(|(name, _)| keys.contains(&name.as_str()));
                let naming = variant
                    .settings
                    .iter()
                    .chain(of_keys.map(|(_, value)| value));
                let mut naming: Vec<String> = naming.cloned().collect();
                naming.extend([
                    variant.name(),
                    measure.name.to_owned(),
                    compared.direction.to_owned(),
                ]);
                let unit = measure.unit_name().to_owned();
                let mean = [
                    String::new(),
                    self.seeds.len().to_string(),
                    row.estimate.mean.to_string(),
                    number(row.estimate.half),
                    number(row.difference.map(|d| d.mean)),
                    number(row.difference.and_then(|d| d.half)),
                    measure.difference_unit().to_owned(),
                    unit.clone(),
                ];
                lines.push([&naming[..], &mean].concat());
                for (seed, value) in self.seeds.iter().zip(&row.values) {
                    let mut single = [const { String::new() }; 8];
                    single[0] = seed.to_string();
                    "1".clone_into(&mut single[1]);
                    single[2] = value.to_string();
                    single[7].clone_from(&unit);
                    lines.push([&naming[..], &single].concat());
                }
            }
        }
        csv_of(&lines)
    }
    fn html(&self) -> String {
        let variants = html::Variants {
            head: self.head(),
            seeds: self.seeds.len(),
            names: self.variants.iter().map(Variant::name).collect(),
            reports: &self.reports,
        };
        html::compare(&variants, &self.shown().collect::<Vec<_>>())
    }
}
