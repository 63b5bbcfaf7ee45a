//! Log files of fio (`write_lat_log` and the like), in the current folder as fio writes them.

use std::path::Path;

use sim::plan::Plan;
use sim::recorder::Recorder;

use crate::error::Error;
use crate::output::{OutputFile, Written};

/// Logs of a run that are complete but for their names.
#[derive(Debug, Default)]
pub(crate) struct FioLogs(Vec<Written>);

/// True if a job writes logs.
pub(crate) fn are_asked(plan: &Plan) -> bool {
    plan.outputs.iter().any(|of| of.logs.are_written())
}

/// Makes sure that the first log of each job can be written.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    let mut seen = None;
    for (number, thread) in (1..).zip(&plan.threads) {
        if seen.replace(thread.job) == Some(thread.job) {
            continue;
        }
        let logs = &plan.output_of(thread.job).logs;
        let kinds = [
            ("lat", &logs.lat),
            ("bw", &logs.bw),
            ("iops", &logs.iops),
            ("clat_hist", &logs.hist),
        ];
        for (kind, _) in kinds.into_iter().filter(|(_, wanted)| wanted.is_some()) {
            OutputFile::open(Path::new(&logs.file(kind, &thread.name, number)))?;
        }
    }
    Ok(())
}

impl FioLogs {
    /// Writes the logs of all threads. Threads with one name of a file follow each other.
    pub(crate) fn write(plan: &Plan, recorder: &Recorder) -> Result<FioLogs, Error> {
        let threads = recorder.fio.iter().flat_map(|fio| &fio.threads);
        let mut files: Vec<(String, String)> = Vec::new();
        let mut written = Vec::new();
        for (number, (thread, of)) in (1..).zip(plan.threads.iter().zip(threads)) {
            let options = &plan.output_of(thread.job).logs;
            for (kind, text) in of.logs.iter().flat_map(|logs| logs.texts()) {
                let name = options.file(kind, &thread.name, number);
                if options.per_job {
                    written.push(OutputFile::open(Path::new(&name))?.put(text)?);
                    continue;
                }
                match files.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, before)) => before.push_str(text),
                    None => files.push((name, text.to_owned())),
                }
            }
        }
        for (name, text) in &files {
            written.push(OutputFile::open(Path::new(name))?.put(text)?);
        }
        Ok(FioLogs(written))
    }

    /// Gives the files their names.
    pub(crate) fn keep(self) -> Result<(), Error> {
        self.0.into_iter().try_for_each(Written::keep)
    }
}
