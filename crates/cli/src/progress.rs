//! Progress on standard error: a bar on a terminal, elsewhere a line every ten seconds; and a hint
//! where a run will take long. Wall time is used here only: no report depends on it.

use std::io::IsTerminal as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blkmq::time::SimTime;
use indicatif::{ProgressBar, ProgressStyle};
use sim::machine::Simulator;
use sim::plan::Plan;
use sim::recorder::{DIRECTIONS, Recorder};
use study::fleet::FleetEvent;

use crate::output;

/// Between two lines, where there is no terminal.
const LINE: Duration = Duration::from_secs(10);
/// After this time a run that will take long says so.
const HINT: Duration = Duration::from_secs(1);
/// A rest that is worth a hint.
const LONG: Duration = Duration::from_secs(10);
/// Pieces of a run between two looks at the clock.
const LOOK: u32 = 16;

#[expect(
    clippy::disallowed_methods,
    reason = "progress and the time that a run took are wall time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Progress of one run.
#[derive(Debug)]
pub(crate) struct Progress {
    /// None without a terminal.
    bar: Option<ProgressBar>,
    /// Virtual time at the end, ns, if it is bounded by time.
    end: Option<u64>,
    started: Instant,
    pieces: u32,
    hinted: bool,
    lines: u32,
}

impl Progress {
    /// Progress up to the longest time of the plan's threads; without an end if they are bounded by
    /// a number of I/Os.
    pub(crate) fn new(plan: &Plan) -> Progress {
        let end = end(plan);
        let bar = std::io::stderr().is_terminal() && !output::is_quiet();
        Progress {
            bar: bar.then(|| bar_of(end)),
            end,
            started: now(),
            pieces: 0,
            hinted: output::is_quiet(),
            lines: 0,
        }
    }

    /// A piece of the run is done.
    pub(crate) fn at(&mut self, simulator: &Simulator) {
        let reached = simulator.now().0;
        if let Some(bar) = &self.bar {
            bar.set_position(reached / 1_000_000);
        }
        self.pieces += 1;
        if self.pieces < LOOK {
            return;
        }
        self.pieces = 0;
        let taken = now() - self.started;
        if !self.hinted && taken >= HINT {
            self.hinted = true;
            if let Some(hint) = hint(simulator, self.end, taken) {
                self.print(&hint);
            }
        }
        if self.bar.is_none() && !output::is_quiet() && taken >= LINE * (self.lines + 1) {
            self.lines = (taken.as_secs() / LINE.as_secs()) as u32;
            self.print(&line(simulator, self.end, taken));
        }
    }

    fn print(&self, line: &str) {
        let print = || output::print_stderr(&format!("{line}\n"));
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar. The wall time that the run took.
    pub(crate) fn finish(self) -> Duration {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        now() - self.started
    }
}

fn bar_of(end: Option<u64>) -> ProgressBar {
    let (bar, form) = match end {
        Some(end) => (
            ProgressBar::new((end / 1_000_000).max(1)),
            "{wide_bar} {pos}/{len} ms simulated, {eta} to go",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {pos} ms simulated"),
    };
    let style = ProgressStyle::with_template(form).expect("the template is a correct one");
    bar.set_style(style);
    bar
}

/// The line of a run that goes on.
fn line(simulator: &Simulator, end: Option<u64>, taken: Duration) -> String {
    let reached = simulator.now().0;
    match end.and_then(|end| Some((end, rest(reached, end, taken)?))) {
        Some((end, rest)) => format!(
            "{} of {} simulated, about {} to go",
            seconds(reached),
            seconds(end),
            span(rest)
        ),
        None => format!(
            "{} simulated, {} I/Os; the run ends with its I/Os, or with --runtime TIME",
            seconds(reached),
            simulator.recorder().total_ios
        ),
    }
}

/// What a run has so far that will take long, and what makes it shorter.
fn hint(simulator: &Simulator, end: Option<u64>, taken: Duration) -> Option<String> {
    let (reached, end) = (simulator.now().0, end?);
    let rest = rest(reached, end, taken).filter(|rest| *rest >= LONG)?;
    let so_far = rates(simulator.recorder(), simulator.now());
    Some(format!(
        "note: {} of {} simulated, so far {so_far}; the rest takes about {}. Ctrl-C prints the \
         report so far; if the load is steady, a shorter run shows the same: --runtime 1s",
        seconds(reached),
        seconds(end),
        span(rest)
    ))
}

/// I/Os a second of each direction, sums over the jobs.
fn rates(recorder: &Recorder, now: SimTime) -> String {
    let rate = |direction: usize| -> f64 {
        let jobs = recorder.jobs.iter().map(|job| {
            let seconds = now.since(job.from).0.max(1) as f64 / 1e9;
            job.directions[direction].ios as f64 / seconds
        });
        jobs.sum()
    };
    let all = DIRECTIONS.iter().enumerate();
    let shown = all.map(|(direction, name)| (name, rate(direction)));
    let shown: Vec<String> = shown
        .filter(|(_, rate)| *rate > 0.0)
        .map(|(name, rate)| format!("{name} {rate:.0} IOPS"))
        .collect();
    match shown.as_slice() {
        [] => "nothing measured".to_owned(),
        shown => shown.join(", "),
    }
}

/// Wall time up to the end, if it goes on as before.
fn rest(reached: u64, end: u64, taken: Duration) -> Option<Duration> {
    let whole = end.checked_sub(reached).filter(|_| reached > 0)?;
    Some(taken.mul_f64(whole as f64 / reached as f64))
}

/// Virtual time, three digits.
fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match seconds {
        100.0.. => format!("{seconds:.0} s"),
        10.0.. => format!("{seconds:.1} s"),
        _ => format!("{seconds:.3} s"),
    }
}

/// Wall time as people say it.
pub(crate) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Progress of runs that several threads make; it ends with the last of them.
#[derive(Debug)]
pub(crate) struct Runs {
    bar: ProgressBar,
    counts: Arc<Mutex<Counts>>,
    /// The thread that prints lines, and what ends it.
    lines: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Runs that are done, and all that have been asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) done: usize,
    pub(crate) all: usize,
}

impl Runs {
    pub(crate) fn new(counts: &Arc<Mutex<Counts>>) -> Runs {
        let mut runs = Runs {
            bar: ProgressBar::hidden(),
            counts: Arc::clone(counts),
            lines: None,
        };
        if output::is_quiet() {
            return runs;
        }
        if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} to go");
            runs.bar = ProgressBar::new(0);
            runs.bar
                .set_style(style.expect("the template is a correct one"));
            return runs;
        }
        let (end, ended) = channel::<()>();
        let counts = Arc::clone(counts);
        let started = now();
        let print = move || {
            while ended.recv_timeout(LINE) == Err(RecvTimeoutError::Timeout) {
                let counts = *locked(&counts);
                let taken = now() - started;
                let line = counts.line(taken);
                output::print_stderr(&format!("{line}\n"));
            }
        };
        runs.lines = Some((end, std::thread::spawn(print)));
        runs
    }

    /// Updates the bar and the counts with the progress of a run.
    pub(crate) fn update(&self, event: FleetEvent) {
        let mut counts = locked(&self.counts);
        match event {
            FleetEvent::Begun(count) => {
                counts.all += count;
                self.bar.inc_length(count as u64);
            }
            FleetEvent::Ended => {
                counts.done += 1;
                self.bar.inc(1);
            }
        }
    }
}

impl Counts {
    fn line(self, taken: Duration) -> String {
        let Counts { done, all } = self;
        match rest(done as u64, all as u64, taken) {
            Some(rest) => format!("{done} of {all} runs done, about {} to go", span(rest)),
            None => format!("{done} of {all} runs done"),
        }
    }
}

/// Progress of a search over states.
#[derive(Debug)]
pub(crate) struct States {
    /// None without a terminal.
    bar: Option<ProgressBar>,
    started: Instant,
    lines: Mutex<u32>,
}

impl States {
    pub(crate) fn new() -> States {
        let bar = std::io::stderr().is_terminal() && !output::is_quiet();
        States {
            bar: bar.then(|| {
                let style = ProgressStyle::with_template("{spinner} {msg}");
                let style = style.expect("the template is a correct one");
                ProgressBar::new_spinner().with_style(style)
            }),
            started: now(),
            lines: Mutex::new(0),
        }
    }

    pub(crate) fn update(&self, at: explore::Progress) {
        let taken = now() - self.started;
        if let Some(bar) = &self.bar {
            bar.set_message(line_of_states(at, taken));
            return bar.tick();
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if !output::is_quiet() && taken >= LINE * (*lines + 1) {
            *lines = (taken.as_secs() / LINE.as_secs()) as u32;
            output::print_stderr(&format!("{}\n", line_of_states(at, taken)));
        }
    }
}

fn line_of_states(at: explore::Progress, taken: Duration) -> String {
    let explore::Progress {
        states,
        depth,
        open,
    } = at;
    let rate = states as f64 / taken.as_secs_f64().max(1e-9);
    format!("{states} states, {rate:.0} a second; depth {depth} with {open} states to go")
}

impl Drop for States {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A thread that panicked ends the program; what is shared is whole.
pub(crate) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some((end, thread)) = self.lines.take() {
            drop(end);
            // It cannot fail, and nothing would be lost.
            let _ = thread.join();
        }
    }
}

/// Virtual time at which the last phase is over at the latest, ns, if every thread has a limit.
fn end(plan: &Plan) -> Option<u64> {
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
    Some(phases.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Counts, rest, seconds, span};

    #[test]
    fn times_to_go_are_of_the_pace_so_far() {
        let second = Duration::from_secs(1);
        assert_eq!(rest(2, 10, second), Some(Duration::from_secs(4)));
        assert_eq!(rest(10, 10, second), Some(Duration::ZERO));
        assert_eq!((rest(0, 10, second), rest(11, 10, second)), (None, None));
        assert_eq!(seconds(1_234_567_890), "1.235 s");
        assert_eq!(seconds(900_000_000_000), "900 s");
        assert_eq!(span(Duration::from_secs(119)), "119 s");
        assert_eq!(span(Duration::from_secs(121)), "3 min");
        assert_eq!(span(Duration::from_mins(123)), "2 h 3 min");
        let counts = Counts { done: 5, all: 15 };
        assert_eq!(counts.line(second), "5 of 15 runs done, about 2 s to go");
        let none = Counts { done: 0, all: 15 };
        assert_eq!(none.line(second), "0 of 15 runs done");
    }
}
