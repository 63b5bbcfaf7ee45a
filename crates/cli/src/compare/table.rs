//! The comparison as text, JSON and CSV: a row for each variant below each measure.

#[cfg(test)]
mod tests;

use scenario::report::Report;
use scenario::table::csv_of;
use serde_json::{Map, Value, json};
use study::compare::{Estimate, Measure, Row, compared};

use crate::outputs::Reported;

#[derive(Clone, Debug)]
pub(super) struct Table {
    seeds: Vec<u64>,
    scenarios: Vec<String>,
    version: String,
    measures: Vec<(Measure, Vec<Row>)>,
}

impl Table {
    /// For variants' names and their reports, one for each seed from `seed` on.
    pub(super) fn new(seed: u64, variants: &[(String, &[Report])]) -> Table {
        let first = variants[0].1;
        let mut scenarios: Vec<String> = Vec::new();
        for (_, reports) in variants {
            let name = &reports[0].blksim.scenario;
            if !scenarios.contains(name) {
                scenarios.push(name.clone());
            }
        }
        Table {
            seeds: (0..first.len() as u64).map(|index| seed + index).collect(),
            scenarios,
            version: first[0].blksim.version.clone(),
            measures: compared(variants),
        }
    }

    fn head(&self) -> String {
        let scenarios = self.scenarios.join(", ");
        match self.seeds.as_slice() {
            [seed] => format!(
                "{scenarios}: seed {seed}; one seed shows nothing about chance, see --seeds\n"
            ),
            seeds => format!(
                "{scenarios}: means of seeds {} to {} with 95 % intervals\n",
                seeds[0],
                seeds[seeds.len() - 1]
            ),
        }
    }
}

impl Reported for Table {
    fn text(&self) -> String {
        let rows = self.measures.iter().flat_map(|(_, rows)| rows);
        let width = rows.map(|row| row.name.chars().count()).max().unwrap_or(0);
        let mut text = self.head();
        for (measure, rows) in &self.measures {
            text.push_str(&format!("\n{}\n", measure.title));
            for row in rows {
                let name = &row.name;
                let value = with_half(&row.estimate, false);
                let line = match &row.difference {
                    None => format!("  {name:width$}  {value}"),
                    Some(difference) => {
                        let unit = if measure.relative { " %" } else { " points" };
                        let nothing = if difference.may_be_nothing() {
                            "  (may be chance)"
                        } else {
                            ""
                        };
                        let difference = with_half(difference, true);
                        format!("  {name:width$}  {value}   {difference}{unit}{nothing}")
                    }
                };
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    fn json(&self) -> String {
        let rows = |rows: &[Row]| -> Vec<Value> {
            let row = |row: &Row| {
                json!({
                    "variant": row.name,
                    "mean": row.estimate.mean,
                    "half": row.estimate.half,
                    "difference": row.difference.map(|d| d.mean),
                    "difference_half": row.difference.and_then(|d| d.half),
                    "values": row.values,
                })
            };
            rows.iter().map(row).collect()
        };
        let mut measures = Map::new();
        for (measure, all) in &self.measures {
            let unit = if measure.relative {
                "percent"
            } else {
                "points"
            };
            measures.insert(
                measure.name.to_owned(),
                json!({ "difference_unit": unit, "variants": rows(all) }),
            );
        }
        let whole = json!({
            "version": self.version,
            "scenarios": self.scenarios,
            "seeds": self.seeds,
            "measures": measures,
        });
        let text = serde_json::to_string_pretty(&whole);
        text.expect("keys are texts, and every figure is finite") + "\n"
    }

    fn csv(&self) -> String {
        let header = [
            "measure",
            "variant",
            "seeds",
            "mean",
            "half",
            "difference",
            "difference_half",
            "difference_unit",
        ];
        let mut lines = vec![header.map(str::to_owned)];
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for (measure, rows) in &self.measures {
            let unit = if measure.relative {
                "percent"
            } else {
                "points"
            };
            for row in rows {
                let cells = [
                    measure.name.to_owned(),
                    row.name.clone(),
                    self.seeds.len().to_string(),
                    row.estimate.mean.to_string(),
                    number(row.estimate.half),
                    number(row.difference.map(|d| d.mean)),
                    number(row.difference.and_then(|d| d.half)),
                    unit.to_owned(),
                ];
                lines.push(cells);
            }
        }
        csv_of(&lines)
    }
}

/// Mean and half interval, written out: abbreviations would hide which digits differ.
fn with_half(estimate: &Estimate, signed: bool) -> String {
    let scale = estimate.mean.abs().max(estimate.half.unwrap_or(0.0));
    let digits = if scale >= 1000.0 { 0 } else { 2 };
    let mean = if signed {
        format!("{:>+12.digits$}", estimate.mean)
    } else {
        format!("{:>14.digits$}", estimate.mean)
    };
    match estimate.half {
        None => mean,
        Some(half) => format!("{mean} \u{b1} {half:<9.digits$}"),
    }
}
