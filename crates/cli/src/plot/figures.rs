//! The figures, each from groups of runs to a scene. If the runs lack data for a figure, a note
//! says so, and the figure is left out.

pub(crate) mod bars;
mod counters;
mod cpu_time;
mod depth;
mod handoff;
mod latency;
mod lock_times;
mod scaling;
mod seek;
mod switches;
#[cfg(test)]
mod tests;
mod turns;

use super::group::Groups;
use super::input::Counts;
use super::scene::Scene;

/// A picture and the stem of its file's name.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) scene: Scene,
}

/// A figure, or the reason why it is left out.
type Drawn = Result<Scene, &'static str>;

type Draw = fn(&Groups) -> Drawn;

/// All figures by the stems of their files.
const FIGURES: [(&str, Draw); 12] = [
    ("scaling", scaling::draw),
    ("cpu-time", |groups| Ok(cpu_time::draw(groups))),
    ("bars", |groups| Ok(bars::draw(groups))),
    ("latency", latency::draw),
    ("lock-times", lock_times::draw),
    ("handoff", handoff::draw),
    ("rates", counters::rates),
    ("queue-depth", depth::draw),
    ("switches", switches::draw),
    ("scheduler", counters::draw),
    ("turns", turns::draw),
    ("seek", seek::draw),
];

/// Names of all figures.
pub(crate) fn names() -> Vec<&'static str> {
    FIGURES.iter().map(|(name, _)| *name).collect()
}

/// The figures of these names that the runs allow, and a note for each that they do not. Without
/// names all.
pub(crate) fn all(groups: &Groups, wanted: &[String]) -> (Vec<Figure>, Vec<String>) {
    let mut figures = Vec::new();
    let mut notes = Vec::new();
    if !groups.left_out.is_empty() {
        let (drawn, names) = (groups.series.len(), groups.left_out.join("; "));
        notes.push(format!(
            "only the first {drawn} curves are drawn, without {names}"
        ));
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|of| of == name);
    for (name, draw) in FIGURES.iter().filter(|(name, _)| is_wanted(name)) {
        match draw(groups) {
            Ok(scene) => figures.push(Figure {
                name: (*name).to_owned(),
                scene: scene.signed(&groups.origin),
            }),
            Err(why) => notes.push(format!("{name}: left out: {why}")),
        }
    }
    (figures, notes)
}

/// Why a figure that needs spreads is left out.
const NO_DETAILS: &str = "the runs have no details; expected reports of `run --details --json`";

/// Percentile and value of counts: a step at each value.
fn percentiles(counts: &Counts) -> Vec<(f64, f64)> {
    let total: f64 = counts.iter().map(|(_, count)| count).sum();
    let mut points = Vec::new();
    let mut below = 0.0;
    for (value, count) in counts {
        points.push((100.0 * below / total, *value));
        below += count;
        points.push((100.0 * below / total, *value));
    }
    points
}

fn total(counts: &Counts) -> f64 {
    counts.iter().map(|(_, count)| count).sum()
}
