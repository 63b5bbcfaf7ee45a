//! Traces of a run while it goes on: blktrace files, a timeline for Perfetto, a schedule.

use std::any::Any;

use explore::run_recorder::Recording;
use sim::machine::Simulator;

use crate::args::RunArgs;
use crate::error::Error;
use crate::output::{OutputFile, Written};
use crate::perfetto::Perfetto;
use crate::scenario::Prepared;
use crate::trace_out::TraceOut;

/// Trace points that the simulator gathers before they are handed on.
const GATHERED: usize = 1 << 14;

/// The requested outputs. Dropped without [`Traces::keep`] it leaves no file.
#[derive(Debug)]
pub(crate) struct Traces {
    blktrace: Option<TraceOut>,
    perfetto: Option<Perfetto>,
    schedule: Option<OutputFile>,
    followed: Option<Written>,
}

impl Traces {
    /// Makes sure that the files can be written, and starts the recording.
    pub(crate) fn open(
        args: &RunArgs,
        prepared: &Prepared,
        simulator: &mut Simulator,
    ) -> Result<Traces, Error> {
        let perfetto = Perfetto::open(args, simulator)?;
        let blktrace = match &args.blktrace {
            Some(dir) => {
                let (plan, written) = (&prepared.plan, &prepared.written);
                Some(TraceOut::create(dir, plan, written, simulator)?)
            }
            None => None,
        };
        let schedule = args.schedule.as_deref().map(OutputFile::open).transpose()?;
        if schedule.is_some() {
            let recording = Recording::new(simulator.block_layer(), &prepared.plan.name);
            let recording = recording.map_err(|what| Error::usage("--schedule", what))?;
            simulator.follow(Box::new(recording));
        }
        Ok(Traces {
            blktrace,
            perfetto,
            schedule,
            followed: None,
        })
    }

    /// Passes on the simulator's events, once there are enough.
    pub(crate) fn drain(&mut self, simulator: &mut Simulator) -> Result<(), Error> {
        if simulator.recorder().trace.len() < GATHERED {
            return Ok(());
        }
        self.hand_on(simulator)
    }

    fn hand_on(&mut self, simulator: &mut Simulator) -> Result<(), Error> {
        let points = simulator.take_trace();
        let messages = simulator.take_messages();
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.note(simulator, &points);
        }
        match &mut self.blktrace {
            Some(blktrace) => blktrace.write(&points, &messages, simulator.now()),
            None => Ok(()),
        }
    }

    /// Writes the rest, so that only the names are missing. To be called when the run is settled.
    /// `stalled`: how it ended.
    pub(crate) fn complete(
        &mut self,
        simulator: &mut Simulator,
        stalled: bool,
    ) -> Result<(), Error> {
        self.hand_on(simulator)?;
        if let Some(blktrace) = &mut self.blktrace {
            blktrace.complete()?;
        }
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.complete(simulator)?;
        }
        if let Some(file) = self.schedule.take() {
            let recording: Box<dyn Any> = simulator.take_follower();
            let mut recording: Box<Recording> = recording.downcast().expect("it was given so");
            let schedule = recording.schedule(simulator.block_layer(), stalled);
            let schedule = schedule.map_err(|what| Error::usage("--schedule", what))?;
            self.followed = Some(file.put(&schedule.to_string())?);
        }
        Ok(())
    }

    /// Gives the files their names.
    pub(crate) fn keep(self) -> Result<(), Error> {
        if let Some(perfetto) = self.perfetto {
            perfetto.keep()?;
        }
        if let Some(followed) = self.followed {
            followed.keep()?;
        }
        self.blktrace.map_or(Ok(()), TraceOut::keep)
    }
}
