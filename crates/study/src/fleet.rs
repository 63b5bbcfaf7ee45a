//! Runs spread over cores.
//!
//! Each run has one thread and repeats bit by bit; its result is stored by its index, so that
//! answers and the first error are the same for any number of cores.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use rayon::{ThreadPool, ThreadPoolBuilder};
use sim::machine::{Outcome, Simulator};

use crate::error::Error;

/// Events between two checks of the stop flag. One event may cover some thousand labels of a CPU
/// that no other CPU disturbs, so that a piece takes some ten milliseconds at most.
const PIECE: u32 = 64;

/// Set once to end the runs.
pub type Stop = Arc<OnceLock<()>>;

/// Progress of the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FleetEvent {
    /// So many more are to be made.
    Begun(usize),
    /// One is made; not after a stop.
    Ended,
}

pub struct Fleet {
    pool: ThreadPool,
    stop: Stop,
    report: Box<dyn Fn(FleetEvent) + Send + Sync>,
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.pool.current_num_threads();
        let mut text = f.debug_struct("Fleet");
        text.field("threads", &threads).finish_non_exhaustive()
    }
}

impl Fleet {
    /// A fleet with this many threads; by default as many as `RAYON_NUM_THREADS` says, or one a
    /// core. Any of them calls `report`.
    pub fn new(
        jobs: Option<usize>,
        stop: Stop,
        report: impl Fn(FleetEvent) + Send + Sync + 'static,
    ) -> Result<Fleet, Error> {
        // Zero is rayon's word for the default.
        let threads = ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0));
        let pool = threads.build();
        let pool = pool.map_err(|e| Error::wrong("threads", format!("cannot be started: {e}")))?;
        Ok(Fleet {
            pool,
            stop,
            report: Box::new(report),
        })
    }

    /// One thread without progress reports.
    pub fn alone() -> Result<Fleet, Error> {
        Fleet::new(Some(1), Stop::default(), |_| {})
    }

    /// The results of `one` for the items, in their order. The error is that of the first item with
    /// one.
    pub fn map<T: Sync, R: Send>(
        &self,
        items: &[T],
        one: impl Fn(&T) -> Result<R, Error> + Send + Sync,
    ) -> Result<Vec<R>, Error> {
        let all = self.map_ended(items, one);
        self.check()?;
        Ok(all?.into_iter().flatten().collect())
    }

    /// The same; a stop leaves nothing of the items that it ends, and all of the others.
    pub fn map_ended<T: Sync, R: Send>(
        &self,
        items: &[T],
        one: impl Fn(&T) -> Result<R, Error> + Send + Sync,
    ) -> Result<Vec<Option<R>>, Error> {
        (self.report)(FleetEvent::Begun(items.len()));
        let made = |item| {
            // After a stop no further run begins.
            let made = self.check().and_then(|()| one(item));
            if !matches!(made, Err(Error::Stopped)) {
                (self.report)(FleetEvent::Ended);
            }
            made
        };
        let all: Vec<Result<R, Error>> = self.pool.install(|| items.par_iter().map(made).collect());
        let ended = all.into_iter().map(|made| match made {
            Err(Error::Stopped) => Ok(None),
            made => made.map(Some),
        });
        ended.collect()
    }

    /// Does something for each item that is no run. The error is that of the first item with one.
    pub fn each<T: Sync>(
        &self,
        items: &[T],
        one: impl Fn(&T) -> Result<(), Error> + Send + Sync,
    ) -> Result<(), Error> {
        let failed = || {
            let done = items
                .par_iter()
                .map(|item| self.check().and_then(|()| one(item)));
            done.find_first(Result::is_err)
        };
        self.pool.install(failed).unwrap_or(Ok(()))
    }

    /// Runs a simulator to its end.
    pub fn run(&self, simulator: &mut Simulator) -> Result<Outcome, Error> {
        loop {
            self.check()?;
            if let Some(outcome) = simulator.run_some(PIECE) {
                simulator.settle();
                return Ok(outcome);
            }
        }
    }

    /// An error once the runs are to end.
    fn check(&self) -> Result<(), Error> {
        match self.stop.get() {
            Some(()) => Err(Error::Stopped),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
