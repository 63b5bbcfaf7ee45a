//! The threads that make a command's runs, with their progress bar and Ctrl-C.

use study::fleet::Fleet;

use crate::args::JobsArgs;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::progress::Runs;

/// Work for as many threads as was asked for. Ctrl-C ends it; when this returns, the bar is gone.
pub(crate) fn with_fleet<R>(
    args: &JobsArgs,
    interrupt: &Interrupt,
    work: impl FnOnce(&Fleet) -> Result<R, study::error::Error>,
) -> Result<R, Error> {
    let runs = Runs::new();
    let jobs = args.jobs.map(usize::from);
    let fleet = Fleet::new(jobs, interrupt.stop(), move |event| runs.update(event))?;
    Ok(work(&fleet)?)
}
