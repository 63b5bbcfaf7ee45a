//! Ctrl-C as something that the work can ask for, so that temporary files are removed.

use std::sync::mpsc::{Receiver, channel};

use crate::error::Error;

/// Tells whether Ctrl-C (or SIGTERM) came.
#[derive(Debug)]
pub(crate) struct Interrupt(Receiver<()>);

impl Interrupt {
    /// From now on a signal no longer ends the process by itself. Once in a process.
    pub(crate) fn install() -> Result<Interrupt, Error> {
        let (sender, receiver) = channel();
        // The receiver lives as long as the work; after that a signal means nothing any more.
        let installed = ctrlc::set_handler(move || {
            let _ = sender.send(());
        });
        installed.map_err(|e| Error::usage("Ctrl-C", format!("cannot be caught: {e}")))?;
        Ok(Interrupt(receiver))
    }

    /// Whether one came since the last call.
    pub(crate) fn came(&self) -> bool {
        self.0.try_recv().is_ok()
    }

    /// An error if one came.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.came() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}
