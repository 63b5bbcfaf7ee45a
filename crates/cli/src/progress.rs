//! Progress bars, on a terminal only: of virtual time, and of many runs.

use std::io::IsTerminal as _;

use blkmq::time::SimTime;
use indicatif::{ProgressBar, ProgressStyle};
use sim::plan::Plan;
use study::fleet::FleetEvent;

/// The bar; nothing when standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar for the longest time of the plan's threads; a spinner if they are bounded by a number
    /// of I/Os.
    pub(crate) fn new(plan: &Plan) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let (bar, form) = match end_ms(plan) {
            Some(end) => (
                ProgressBar::new(end),
                "{wide_bar} {pos}/{len} ms simulated, {eta} to go",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {pos} ms simulated"),
        };
        let style = ProgressStyle::with_template(form).expect("the template is a correct one");
        bar.set_style(style);
        Progress(Some(bar))
    }

    /// Virtual time reached.
    pub(crate) fn at(&self, now: SimTime) {
        if let Some(bar) = &self.0 {
            bar.set_position(now.0 / 1_000_000);
        }
    }

    pub(crate) fn finish(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}

/// A bar of runs that several threads make; it goes with the last of them.
#[derive(Debug)]
pub(crate) struct Runs(ProgressBar);

impl Runs {
    /// Nothing is shown when standard error is no terminal.
    pub(crate) fn new() -> Runs {
        if !std::io::stderr().is_terminal() {
            return Runs(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {elapsed}");
        let bar = ProgressBar::new(0);
        bar.set_style(style.expect("the template is a correct one"));
        Runs(bar)
    }

    /// Updates the bar with the progress of a run.
    pub(crate) fn update(&self, event: FleetEvent) {
        match event {
            FleetEvent::Begun(count) => self.0.inc_length(count as u64),
            FleetEvent::Ended => self.0.inc(1),
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Virtual time at which the last phase is over at the latest, if every thread has a limit.
fn end_ms(plan: &Plan) -> Option<u64> {
    let mut phases = vec![0_u64; usize::from(plan.phases)];
    for thread in &plan.threads {
        let span = thread.startdelay.0.checked_add(thread.ramp_time.0)?;
        let span = span.checked_add(thread.runtime.0)?;
        if thread.runtime.0 == u64::MAX {
            return None;
        }
        let phase = &mut phases[usize::from(thread.phase)];
        *phase = span.max(*phase);
    }
    let end: u64 = phases.into_iter().fold(0, u64::saturating_add);
    Some((end / 1_000_000).max(1))
}
