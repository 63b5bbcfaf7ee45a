//! `blksim sensitivity`: how throughput follows each cost of a profile, in every published row that
//! runs on it. Not here: the runs (`study::sensitivity`).

use std::fmt::Write as _;

use scenario::profile;
use sim::profile::MachineProfile;
use study::sensitivity::{Column, Cost, Effort, columns};

use crate::args::SensitivityArgs;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::scenario::loaded;
use crate::{OK, output};

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

pub(crate) fn sensitivity(args: &SensitivityArgs) -> Result<u8, Error> {
    let profile = profile::built_in(&args.profile);
    let profile = profile.map_err(|what| Error::usage("PROFILE", what))?;
    let costs = Cost::all(&profile);
    let effort = Effort {
        runtime: args.runtime.clone(),
        seeds: args.seeds,
    };
    let interrupt = Interrupt::install()?;
    let columns = with_fleet(&args.jobs, &interrupt, |fleet| {
        columns(&profile, &costs, &effort, &loaded, fleet)
    })?;
    if columns.is_empty() {
        let what = format!("no published row runs on {}", profile.name);
        return Err(Error::usage("PROFILE", what));
    }
    output::print(&text(&profile, &costs, &columns))?;
    Ok(OK)
}

fn text(profile: &MachineProfile, costs: &[Cost], columns: &[Column]) -> String {
    let mut text = format!(
        "{}: percent of throughput for one percent of a cost; IOPS for one unit of it\n",
        profile.name
    );
    for (letter, column) in LETTERS.chars().zip(columns) {
        let Column {
            name, iops, chance, ..
        } = column;
        let _ = writeln!(
            text,
            "  ({letter}) {name}: {iops:.0} IOPS; below {chance:.3} %: chance, shown as ."
        );
    }
    let _ = write!(text, "{:<26} {:>7}", "cost", "value");
    for letter in LETTERS.chars().take(columns.len()) {
        let _ = write!(text, " {:>7} {:>8}", format!("({letter}) %"), "by unit");
    }
    text.push('\n');
    let weight = |index: usize| {
        let shown = columns.iter().filter_map(|column| column.shown(index));
        shown
            .map(|slope| slope.elasticity.abs())
            .fold(0.0, f64::max)
    };
    let mut order: Vec<usize> = (0..costs.len()).filter(|&i| weight(i) > 0.0).collect();
    order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)).then(a.cmp(&b)));
    for &index in &order {
        let cost = &costs[index];
        let _ = write!(text, "{:<26} {:>7}", cost.name(), cost.of(profile));
        for column in columns {
            let _ = match column.shown(index) {
                Some(slope) => write!(text, " {:>7.3} {:>8.1}", slope.elasticity, slope.by_unit),
                None => write!(text, " {:>7} {:>8}", ".", ""),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{} others: nothing that chance could not do",
        costs.len() - order.len()
    );
    text
}
