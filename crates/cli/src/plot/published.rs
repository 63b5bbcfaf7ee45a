//! `--published`: figures of the published tables, for the runs that simulate the same job.

use study::reproduce::{built_in, plan_of, published};

use super::input::{Run, options, scheduler};
use crate::error::Error;
use crate::scenario::loaded;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Published {
    /// Of its table and of its row.
    pub(crate) name: String,
    run: [String; 5],
    pub(crate) threads: f64,
    pub(crate) iops: Option<f64>,
    /// Percent of the time that was not idle.
    pub(crate) lock_share: Option<f64>,
}

impl Published {
    /// Rows of the scenarios that were run.
    pub(crate) fn of(runs: &[Run]) -> Result<Vec<Published>, Error> {
        let profiles = built_in()?;
        let mut found = Vec::new();
        let tables = published().tables;
        let rows = tables
            .iter()
            .flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        for (table, row) in rows {
            let is_run = |run: &Run| Some(&run.scenario) == row.scenario.as_ref();
            if !runs.iter().any(is_run) {
                continue;
            }
            if let Some((plan, ..)) = plan_of(row, &profiles, false, &loaded)? {
                let queue = &plan.disks[0].queue;
                let series = queue.rules.series.name;
                found.push(Published {
                    name: format!("{}: {}", table.name, row.name),
                    run: [
                        plan.name,
                        scheduler(queue.scheduler.kind().name(), Some(series)),
                        plan.machine.profile,
                        queue.rules.name.to_owned(),
                        options(row.set.iter().map(String::as_str)),
                    ],
                    threads: plan.threads.len() as f64,
                    iops: row.iops,
                    lock_share: row.lock_share,
                });
            }
        }
        Ok(found)
    }

    /// The run simulates this row, with any number of threads.
    pub(crate) fn is_of(&self, run: &Run) -> bool {
        let Run {
            scenario,
            scheduler,
            machine,
            rules,
            options,
            ..
        } = run;
        self.run
            .iter()
            .eq([scenario, scheduler, machine, rules, options])
    }
}
