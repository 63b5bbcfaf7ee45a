//! The difference as text, JSON and CSV.

use scenario::table::csv_of;
use serde_json::{Value, json};

use super::side::Kind;
use super::{Difference, Pair, joined};
use crate::amount::{Unit, written};
use crate::html;
use crate::outputs::Reported;

impl Pair {
    fn unit(&self) -> &'static str {
        match self.kind.unit() {
            Unit::Percent => "points",
            Unit::Number | Unit::Bytes | Unit::Time => "%",
        }
    }

    fn change(&self) -> String {
        match self.difference {
            // What rounds to zero has no sign of its own.
            Some(of) if of.abs() < 0.05 => format!("+0.0 {}", self.unit()),
            Some(of) => format!("{of:+.1} {}", self.unit()),
            None => "new".to_owned(),
        }
    }

    fn deviations_text(&self) -> String {
        match &self.deviations {
            Some(of) if of.count >= 999.5 => format!("> 999 of {}", of.of.name()),
            Some(of) => format!("{:.1} of {}", of.count, of.of.name()),
            None => "-".to_owned(),
        }
    }
}

impl Difference {
    fn end(&self) -> String {
        let judged = self.pairs.iter().filter(|pair| pair.kind != Kind::Longest);
        let judged = judged.count();
        let differ = self.pairs.iter().filter(|pair| pair.differs).count();
        let percent = self.limits.percent;
        let known = |pair: &Pair| pair.deviations.is_some_and(|of| of.decide());
        let spread = match self.pairs.iter().any(known) {
            true => format!(
                " and {} standard deviations where runs show them",
                self.limits.deviations
            ),
            false => String::new(),
        };
        let mut text = match (differ, judged) {
            (_, 0) => return "no figure is in both\n".to_owned(),
            (0, _) => {
                format!("none of {judged} figures differs by more than {percent} %{spread}\n")
            }
            (1, _) => {
                format!("1 of {judged} figures differs (*) by more than {percent} %{spread}\n")
            }
            _ => format!(
                "{differ} of {judged} figures differ (*) by more than {percent} %{spread}\n"
            ),
        };
        if judged < self.pairs.len() {
            text.push_str("clat max is that of a single I/O: it is shown, and not counted\n");
        }
        if spread.is_empty() {
            text.push_str(
                "the files do not show how far runs vary: `run --seeds N --json=FILE`, or fio's \
                 samples of a longer run\n",
            );
        }
        text
    }
}

impl Reported for Difference {
    fn text(&self) -> String {
        let [a, b] = &self.sides;
        let mut text = format!("A  {a}\nB  {b}\n");
        if !self.settings.is_empty() {
            text.push_str("\nSettings that differ\n");
            let width = self.settings.iter().map(|(name, _)| name.len()).max();
            let width = width.unwrap_or(0);
            for (name, [a, b]) in &self.settings {
                text.push_str(&format!("  {name:width$}  {a} | {b}\n"));
            }
        }
        let width = |pair: &Pair| {
            let place = joined(&pair.run, &pair.place.text()).chars().count();
            place.max(pair.title.chars().count() + 2)
        };
        let width = self.pairs.iter().map(width).max().unwrap_or(0);
        let mut last = None;
        for pair in &self.pairs {
            let place = joined(&pair.run, &pair.place.text());
            if last.as_ref() != Some(&place) {
                text.push_str(&format!(
                    "\n{place:<width$} {:>12} {:>12} {:>14}   deviations\n",
                    "A", "B", "difference"
                ));
                last = Some(place);
            }
            let [a, b] = pair.values.map(|value| written(value, pair.kind.unit()));
            text.push_str(&format!(
                "{} {:<name$} {a:>12} {b:>12} {:>14}   {}\n",
                if pair.differs { '*' } else { ' ' },
                pair.title,
                pair.change(),
                pair.deviations_text(),
                name = width - 2,
            ));
        }
        for (side, alone) in ["A", "B"].into_iter().zip(&self.alone) {
            for place in alone {
                text.push_str(&format!("\n* only in {side}: {place}"));
            }
        }
        if self.alone.iter().any(|alone| !alone.is_empty()) {
            text.push('\n');
        }
        text + "\n" + &self.end()
    }

    fn json(&self) -> String {
        let pair = |pair: &Pair| {
            json!({
                "run": pair.run,
                "job": pair.place.job,
                "of": pair.place.what,
                "figure": pair.name,
                "a": pair.values[0],
                "b": pair.values[1],
                "difference": pair.difference,
                "difference_unit": if pair.unit() == "%" { "percent" } else { "points" },
                "deviations": pair.deviations.map(|of| of.count),
                "deviations_of": pair.deviations.map(|of| of.of.name()),
                "differs": pair.differs,
            })
        };
        let settings = self
            .settings
            .iter()
            .map(|(name, [a, b])| json!({ "name": name, "a": a, "b": b }));
        let whole = json!({
            "a": self.sides[0],
            "b": self.sides[1],
            "threshold_percent": self.limits.percent,
            "threshold_deviations": self.limits.deviations,
            "different": self.is_different(),
            "settings": settings.collect::<Vec<Value>>(),
            "figures": self.pairs.iter().map(pair).collect::<Vec<Value>>(),
            "only_in_a": self.alone[0],
            "only_in_b": self.alone[1],
        });
        let text = serde_json::to_string_pretty(&whole);
        text.expect("keys are texts, and every figure is finite") + "\n"
    }

    fn csv(&self) -> String {
        const HEAD: [&str; 11] = [
            "run",
            "job",
            "of",
            "figure",
            "a",
            "b",
            "difference",
            "difference_unit",
            "deviations",
            "deviations_of",
            "differs",
        ];
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut rows = vec![HEAD.map(str::to_owned)];
        rows.extend(self.pairs.iter().map(|pair| {
            [
                pair.run.clone(),
                pair.place.job.clone(),
                pair.place.what.clone(),
                pair.name.to_owned(),
                pair.values[0].to_string(),
                pair.values[1].to_string(),
                number(pair.difference),
                if pair.unit() == "%" {
                    "percent"
                } else {
                    "points"
                }
                .to_owned(),
                number(pair.deviations.map(|of| of.count)),
                pair.deviations.map_or("", |of| of.of.name()).to_owned(),
                pair.differs.to_string(),
            ]
        }));
        csv_of(&rows)
    }
    fn html(&self) -> String {
        let row = |pair: &Pair| {
            let place = joined(&pair.run, &pair.place.text());
            let [a, b] = pair.values.map(|value| written(value, pair.kind.unit()));
            [
                format!("{place}: {}", pair.title),
                if pair.differs { "differs" } else { "" }.to_owned(),
                a,
                b,
                pair.change(),
                pair.deviations_text(),
            ]
        };
        let rows: Vec<[String; 6]> = self.pairs.iter().map(row).collect();
        html::diff(&self.sides, &self.settings, &rows, &self.text())
    }
}
