//! `--trace-perfetto FILE`: a part of the run as a trace that ui.perfetto.dev opens.
//!
//! Chrome's JSON format. Read next: `perfetto/tracks.rs` for what is in the trace, then
//! `perfetto/slices.rs` for slices that nest, `perfetto/locks.rs` for holders, `perfetto/lives.rs`
//! for I/Os, `perfetto/depths.rs` and `perfetto/counters.rs` for counters.

mod counters;
mod depths;
mod json;
mod lives;
mod locks;
mod slices;
mod tracks;

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};
use sim::machine::Simulator;
use sim::recorder::Window;

use crate::args::RunArgs;
use crate::error::Error;
use crate::output::{OutputFile, Written};
use counters::Counters;
use depths::Depths;
use lives::Lives;

/// The window, where none is given: so long from the end of the ramp.
const WINDOW: Duration = Duration::from_millis(2);
/// The longest window. A simulated second is some hundred megabytes of trace.
const WINDOW_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Perfetto {
    file: Option<OutputFile>,
    written: Option<Written>,
    lives: Lives,
    points: Vec<Noted>,
    depths: Depths,
    counters: Counters,
}

/// A trace point of the window that blktrace would have recorded.
#[derive(Clone, Copy, Debug)]
struct Noted {
    time: SimTime,
    cpu: CpuId,
    /// The first bio that it is about, if that was submitted in the window.
    io: Option<usize>,
    point: TracePoint,
}

impl Perfetto {
    /// Makes sure that the file can be written, and starts the recording; nothing if no trace was
    /// asked for.
    pub(crate) fn open(
        args: &RunArgs,
        simulator: &mut Simulator,
    ) -> Result<Option<Perfetto>, Error> {
        let Some(path) = &args.trace_perfetto else {
            return Ok(None);
        };
        let window = match &args.trace_window {
            Some(text) => window(text).map_err(|what| Error::usage("--trace-window", what))?,
            None => Window::AfterRamp(WINDOW),
        };
        let file = OutputFile::open(path)?;
        if file.is_stdout() {
            let what = "standard output has the report; expected a file";
            return Err(Error::usage("--trace-perfetto -", what));
        }
        simulator.collect_timeline(window);
        simulator.collect_readings();
        Ok(Some(Perfetto {
            file: Some(file),
            written: None,
            lives: Lives::default(),
            points: Vec::new(),
            depths: Depths::default(),
            counters: Counters::default(),
        }))
    }

    pub(crate) fn note(
        &mut self,
        simulator: &Simulator,
        points: &[(SimTime, CpuId, u32, TracePoint)],
    ) {
        let timeline = simulator
            .timeline()
            .or(simulator.recorder().timeline.as_ref());
        let window = timeline.and_then(sim::recorder::Timeline::window);
        for &(time, cpu, task, point) in points {
            if let Some(window) = window {
                let io = self.lives.note(window, (time, cpu, task), &point);
                let kept = !matches!(
                    point.action,
                    TraceAction::Message(_) | TraceAction::Probe(_)
                );
                if kept && window.0 <= time && time < window.1 {
                    self.points.push(Noted {
                        time,
                        cpu,
                        io,
                        point,
                    });
                }
            }
            self.depths.note(window, time, &point);
            self.counters.note(window, simulator.groups(), time, &point);
        }
    }

    /// Writes the trace of a run that is settled.
    pub(crate) fn complete(&mut self, simulator: &Simulator) -> Result<(), Error> {
        let timeline = simulator.recorder().timeline.as_ref();
        let timeline = timeline.expect("a timeline was asked for, and the run is settled");
        let (from, to) = timeline.window().unwrap_or_default();
        if timeline.spans().is_empty() && self.lives.all.is_empty() {
            let ran = simulator.now().0 as f64 / 1e6;
            let (from, to) = (from.0 as f64 / 1e6, to.0 as f64 / 1e6);
            let what = format!(
                "nothing happened from {from} ms to {to} ms; expected a part of the run, which \
                 took {ran:.3} ms"
            );
            return Err(Error::usage("--trace-window", what));
        }
        let readings = simulator.recorder().readings.as_deref();
        let text = tracks::trace(tracks::Recorded {
            simulator,
            timeline,
            lives: &self.lives,
            points: &self.points,
            depths: &self.depths,
            counters: &self.counters.complete(from, simulator.groups(), readings),
        });
        let file = self.file.take().expect("completed once");
        self.written = Some(file.put(&text)?);
        Ok(())
    }

    /// Gives the file its name.
    pub(crate) fn keep(self) -> Result<(), Error> {
        self.written.map_or(Ok(()), Written::keep)
    }
}

/// `FROM,TO` with units.
fn window(text: &str) -> Result<Window, String> {
    let (from, to) = text
        .split_once(',')
        .ok_or_else(|| format!("{text}: expected FROM,TO with units: 20ms,22ms"))?;
    let (from, to) = (time(from)?, time(to)?);
    if from >= to {
        return Err(format!("{text}: expected the earlier time first"));
    }
    if to - from > WINDOW_MAX.0 {
        return Err(format!("{text}: expected at most a second"));
    }
    Ok(Window::Between(SimTime(from), SimTime(to)))
}

/// Nanoseconds of `1.5ms`.
fn time(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let refuse = || format!("{text}: expected a time with its unit, ns, us, ms or s: 1500us");
    let units = [
        ("ns", 1),
        ("us", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let found = units
        .into_iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)));
    let (number, unit) = found.ok_or_else(refuse)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(refuse());
    }
    let whole: u64 = whole.parse().map_err(|_| refuse())?;
    let parts: u64 = part.parse().map_err(|_| refuse())?;
    let scaled = u128::from(parts) * u128::from(unit) / 10_u128.pow(part.len() as u32);
    let ns = whole
        .checked_mul(unit)
        .and_then(|ns| ns.checked_add(scaled as u64));
    ns.ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows() {
        let between = |from, to| Ok(Window::Between(SimTime(from), SimTime(to)));
        assert_eq!(window("20ms,22ms"), between(20_000_000, 22_000_000));
        assert_eq!(window(" 1.5us , 0.25s "), between(1500, 250_000_000));
        for bad in [
            "",
            ",",
            "1ms",
            "1ms,",
            "1,2",
            "2ms,1ms",
            "1ms,1ms",
            "0s,2s",
            "-1ms,2ms",
            "1e3us,2ms",
            "1.ms,2ms",
            ".5ms,2ms",
            "99999999999999999999s,1s",
            "18446744073s,18446744074s",
            "1m,2m",
        ] {
            assert!(window(bad).is_err(), "{bad}");
        }
    }
}
