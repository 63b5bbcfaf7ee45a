//! Runs a simulator to its end, piece by piece, with a look at Ctrl-C between two pieces.

use sim::machine::{Outcome, Simulator};

use crate::error::Error;
use crate::interrupt::Interrupt;

/// Events of a piece. One event may cover some thousand labels of a CPU that no other disturbs, so
/// that a piece takes some ten milliseconds at most.
const PIECE: u32 = 64;

/// Runs to the end, or to Ctrl-C: then there is no outcome. `between` sees the simulator after each
/// piece, the last one included; its error ends the run.
pub(crate) fn drive(
    simulator: &mut Simulator,
    interrupt: &Interrupt,
    mut between: impl FnMut(&mut Simulator) -> Result<(), Error>,
) -> Result<Option<Outcome>, Error> {
    loop {
        let outcome = simulator.run_some(PIECE);
        between(simulator)?;
        if outcome.is_some() || interrupt.came() {
            return Ok(outcome);
        }
    }
}
