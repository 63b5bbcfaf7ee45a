//! The threads that make a command's runs, with their progress and Ctrl-C.

use std::sync::{Arc, Mutex};

use study::fleet::Fleet;

use crate::args::JobsArgs;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::progress::{Counts, Runs, locked};

/// Work for as many threads as was asked for. Ctrl-C ends it; when this returns, the bar is gone.
pub(crate) fn with_fleet<R>(
    args: &JobsArgs,
    interrupt: &Interrupt,
    work: impl FnOnce(&Fleet) -> Result<R, study::error::Error>,
) -> Result<R, Error> {
    let counts = Arc::new(Mutex::new(Counts::default()));
    let runs = Runs::new(&counts);
    let jobs = args.jobs.map(usize::from);
    let fleet = Fleet::new(jobs, interrupt.stop(), move |event| runs.update(event))?;
    let done = work(&fleet);
    drop(fleet);
    done.map_err(|error| match error {
        study::error::Error::Stopped => {
            let Counts { done, all } = *locked(&counts);
            Error::InterruptedRuns { done, all }
        }
        other => other.into(),
    })
}
