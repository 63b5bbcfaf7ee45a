//! Ctrl-C as something that the work can ask for, so that temporary files are removed.

use std::sync::{Arc, OnceLock};

use crate::error::Error;
use crate::inside::Inside;

/// Shows every thread whether Ctrl-C (or SIGTERM) was received.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<OnceLock<()>>);

impl Interrupt {
    /// From now on a signal no longer ends the process by itself. Once in a process, unless the
    /// process is another program's, whose flag it is.
    pub(crate) fn install() -> Result<Interrupt, Error> {
        if let Some(stop) = Inside::with(|inside| Arc::clone(&inside.stop)) {
            return Ok(Interrupt(stop));
        }
        let came = Arc::new(OnceLock::new());
        let interrupt = Interrupt(Arc::clone(&came));
        // A second signal has no further effect.
        let installed = ctrlc::set_handler(move || {
            let _ = came.set(());
        });
        installed.map_err(|e| Error::usage("Ctrl-C", format!("cannot be caught: {e}")))?;
        Ok(interrupt)
    }

    pub(crate) fn came(&self) -> bool {
        self.0.get().is_some()
    }

    /// The same for other threads.
    pub(crate) fn stop(&self) -> study::fleet::Stop {
        Arc::clone(&self.0)
    }
}
