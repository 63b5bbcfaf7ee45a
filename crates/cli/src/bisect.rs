//! `blksim bisect`: the axes of the rules that cause a difference between two kernels.
//!
//! Every axis on which they differ is taken from the newer kernel alone, and left out alone; then
//! axes are given up one after another as long as the condition holds. Axes: `blkmq::rules`.

use blkmq::rules::Rules;
use scenario::report::Report;
use serde_json::json;
use study::compare::{ALL, Measure, compared, measures_of};
use study::fleet::Fleet;
use study::sweep::{Collect, run_ended};

use crate::args::{BisectArgs, SweepArgs};
use crate::combinations::Combinations;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output;
use crate::scenario::Input;
use crate::{DIFFERENT, OK};

/// An axis whose change by itself moves the figure by less is not listed.
const SHOWN: f64 = 0.001;

/// `iops < 0.9`: a figure, as a share of its value under the first kernel.
#[derive(Debug)]
struct Condition {
    measure: &'static Measure,
    below: bool,
    limit: f64,
}

impl Condition {
    fn parse(text: &str) -> Result<Condition, String> {
        let names = || measures_of(false).chain(measures_of(true));
        let wrong = || {
            let names: Vec<&str> = names().map(|measure| measure.name).collect();
            format!(
                "expected FIGURE < SHARE or FIGURE > SHARE, with {}",
                names.join(", ")
            )
        };
        let (at, sign) = text
            .char_indices()
            .find(|(_, c)| "<>".contains(*c))
            .ok_or_else(wrong)?;
        let (name, limit) = (text[..at].trim(), text[at + 1..].trim());
        let measure = names()
            .find(|measure| measure.name == name)
            .ok_or_else(wrong)?;
        let limit: f64 = limit.parse().map_err(|_| wrong())?;
        if !(limit.is_finite() && limit > 0.0) {
            return Err(wrong());
        }
        let below = sign == '<';
        Ok(Condition {
            measure,
            below,
            limit,
        })
    }

    fn holds(&self, share: f64) -> bool {
        match self.below {
            true => share < self.limit,
            false => share > self.limit,
        }
    }
}

/// An axis with its values under both kernels, and what it does to the figure.
#[derive(Debug)]
struct Axis {
    name: String,
    values: [String; 2],
    /// Shares of the first kernel's figure: with this axis of the second one, and with all but it.
    alone: f64,
    without: f64,
}

struct Bench<'a> {
    args: &'a BisectArgs,
    inputs: [Input; 1],
    axes: Vec<String>,
    condition: Condition,
    interrupt: Interrupt,
}

impl Bench<'_> {
    /// Rules of the first kernel with these axes of the second.
    fn rules(&self, taken: &[usize]) -> String {
        let mut rules = self.args.from.clone();
        for &axis in taken {
            rules += &format!("+{}@{}", self.axes[axis], self.args.to);
        }
        rules
    }

    /// The figure under each of these rules.
    fn measure(&self, rules: Vec<String>) -> Result<Vec<f64>, Error> {
        let count = rules.len();
        let sweep = SweepArgs {
            rules,
            ..self.args.sweep.clone()
        };
        let combinations = Combinations::new(&sweep, &self.inputs, 1)?;
        if combinations.len() != count * combinations.seeds {
            let what = "expected one value of each option";
            return Err(Error::usage("bisect", what));
        }
        let jobs = combinations.jobs()?;
        let run = |fleet: &Fleet| run_ended(&jobs, Collect::default(), fleet);
        let runs = with_fleet(&sweep.jobs, &self.interrupt, run)?;
        let (done, all) = (runs.iter().flatten().count(), runs.len());
        let reports: Option<Vec<Report>> = runs
            .into_iter()
            .map(|ran| ran.map(|ran| ran.report))
            .collect();
        let reports = reports.ok_or(Error::InterruptedRuns { done, all })?;
        let variants: Vec<&[Report]> = reports.chunks(combinations.seeds).collect();
        let measures = compared(&variants);
        let wanted = self.condition.measure.name;
        let found = measures
            .iter()
            .find(|of| of.measure.name == wanted && of.direction == ALL);
        let rows = &found.expect("all measures are compared").rows;
        Ok(rows.iter().map(|row| row.estimate.mean).collect())
    }

    /// Gives up axes, those of the least effect first, as long as the condition holds: halves of
    /// them, then quarters, down to single ones.
    fn causes(&self, found: &Found) -> Result<Vec<usize>, Error> {
        let effect = |&axis: &usize| {
            let Axis { alone, without, .. } = &found.axes[axis];
            (alone - 1.0).abs().max((without - found.by_axes).abs())
        };
        let mut left: Vec<usize> = (0..self.axes.len()).collect();
        left.sort_by(|a, b| effect(a).total_cmp(&effect(b)));
        let mut size = left.len().div_ceil(2);
        while size > 0 {
            let (mut at, before) = (0, left.len());
            while at < left.len() && left.len() > size {
                let end = (at + size).min(left.len());
                let tried = [&left[..at], &left[end..]].concat();
                let share = self.measure(vec![self.rules(&tried)])?[0] / found.base;
                match self.condition.holds(share) {
                    true => left = tried,
                    false => at = end,
                }
            }
            // Of single ones until none goes: what was kept may depend on one that went later.
            if size > 1 || left.len() == before {
                size /= 2;
            }
        }
        left.sort_unstable();
        Ok(left)
    }
}

/// What the runs have shown.
#[derive(Debug)]
struct Found {
    /// The figure under the first kernel, and its share under the second.
    base: f64,
    share: f64,
    /// The share with all axes of the second. What they do not explain is read-ahead, which goes by
    /// the kernel's name.
    by_axes: f64,
    axes: Vec<Axis>,
    /// The least axes with which the condition holds; none if it does not hold under the second.
    causes: Vec<usize>,
}

/// A kernel, perhaps the nearest one.
fn kernel(option: &str, name: &str) -> Result<Rules, Error> {
    let asked = match name.contains('+') {
        true => Err("expected one kernel".to_owned()),
        false => Rules::asked(name),
    };
    let asked = asked.map_err(|what| Error::usage(format!("{option} {name}"), what));
    let (rules, near) = asked?;
    if let Some(near) = near {
        output::print_note(&format!("note: {option} {near}\n"));
    }
    Ok(rules)
}

pub(crate) fn bisect(args: &BisectArgs) -> Result<u8, Error> {
    let condition = Condition::parse(&args.when);
    let condition = condition.map_err(|what| Error::usage(format!("--when '{}'", args.when), what));
    let (from, to) = (kernel("--from", &args.from)?, kernel("--to", &args.to)?);
    let args = &BisectArgs {
        from: from.name.to_owned(),
        to: to.name.to_owned(),
        ..args.clone()
    };
    if !args.sweep.rules.is_empty() {
        return Err(Error::usage(
            "--rules",
            "the rules are those of --from and --to",
        ));
    }
    let differences = from.differences(&to);
    if differences.is_empty() {
        return Err(Error::usage("bisect", "both kernels have the same rules"));
    }
    let bench = Bench {
        args,
        inputs: [Input::Named(vec![args.scenario.clone()])],
        axes: differences.iter().map(|(axis, _)| axis.clone()).collect(),
        condition: condition?,
        interrupt: Interrupt::install()?,
    };
    let all: Vec<usize> = (0..bench.axes.len()).collect();
    let mut rules = vec![args.from.clone(), args.to.clone(), bench.rules(&all)];
    for &axis in &all {
        let others: Vec<usize> = all.iter().copied().filter(|&other| other != axis).collect();
        rules.extend([bench.rules(&[axis]), bench.rules(&others)]);
    }
    let figures = bench.measure(rules)?;
    let base = figures[0];
    if !(base.is_finite() && base > 0.0) || bench.condition.holds(1.0) {
        let name = bench.condition.measure.name;
        let what = format!(
            "{name} is {base} under {}; it holds without a difference",
            args.from
        );
        return Err(Error::usage(format!("--when '{}'", args.when), what));
    }
    let mut found = Found {
        base,
        share: figures[1] / base,
        by_axes: figures[2] / base,
        axes: Vec::new(),
        causes: Vec::new(),
    };
    for ((name, values), pair) in differences.into_iter().zip(figures[3..].chunks(2)) {
        let (alone, without) = (pair[0] / base, pair[1] / base);
        found.axes.push(Axis {
            name,
            values,
            alone,
            without,
        });
    }
    let holds = bench.condition.holds(found.by_axes);
    if holds {
        found.causes = bench.causes(&found)?;
    }
    output::print(&match args.json {
        true => found.json(&bench),
        false => found.text(&bench),
    })?;
    Ok(if holds { OK } else { DIFFERENT })
}

impl Found {
    fn text(&self, bench: &Bench<'_>) -> String {
        let BisectArgs {
            scenario,
            from,
            to,
            when,
            ..
        } = bench.args;
        let name = bench.condition.measure.name;
        let share = self.share;
        let mut text =
            format!("{scenario}: {name} under {to} is {share:.3} of that under {from}\n");
        if (self.by_axes - share).abs() > SHOWN {
            let by_axes = self.by_axes;
            text += &format!("with all axes of {to} it is {by_axes:.3}; the rest is read-ahead\n");
        }
        if self.causes.is_empty() {
            text += &format!("`{when}` does not hold: no axis is looked for\n");
        }
        for &axis in &self.causes {
            let Axis {
                name,
                values: [a, b],
                ..
            } = &self.axes[axis];
            text += &format!("cause: {name}: {a} in {from}, {b} in {to}\n");
        }
        if self.causes.len() > 1 {
            text += &format!("`{when}` holds with these axes of {to} in {from}, and none can go\n");
        }
        let mut listed: Vec<&Axis> = self.axes.iter().filter(|axis| self.moves(axis)).collect();
        listed.sort_by(|a, b| a.alone.total_cmp(&b.alone));
        if !listed.is_empty() {
            text += &format!("\n{:>9} {:>9}  axis\n", "alone", "without");
        }
        for Axis {
            name,
            values: [a, b],
            alone,
            without,
        } in listed
        {
            text += &format!("{alone:>9.3} {without:>9.3}  {name}: {a}, {b}\n");
        }
        let rest = self.axes.iter().filter(|axis| !self.moves(axis)).count();
        text + &format!(
            "\nalone: {from} with this axis of {to}; without: {from} with all axes of {to} but \
             it.\n{rest} other axes change less than 0.1 %.\n"
        )
    }

    fn moves(&self, axis: &Axis) -> bool {
        (axis.alone - 1.0).abs() > SHOWN || (axis.without - self.by_axes).abs() > SHOWN
    }

    fn json(&self, bench: &Bench<'_>) -> String {
        let axes = self.axes.iter().map(|axis| {
            let [from, to] = &axis.values;
            let Axis {
                name,
                alone,
                without,
                ..
            } = axis;
            json!({"axis": name, "from": from, "to": to, "alone": alone, "without": without})
        });
        let axes: Vec<_> = axes.collect();
        let causes: Vec<&str> = self.causes.iter().map(|&at| &*self.axes[at].name).collect();
        let all = json!({
            "scenario": bench.args.scenario,
            "figure": bench.condition.measure.name,
            "from": bench.args.from,
            "to": bench.args.to,
            "base": self.base,
            "share": self.share,
            "by_axes": self.by_axes,
            "causes": causes,
            "axes": axes,
        });
        format!("{all}\n")
    }
}
