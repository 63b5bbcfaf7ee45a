//! How long locks were waited for and held: two panels for each series, a curve for each kind of
//! lock.

use super::{Drawn, NO_DETAILS, percentiles, total};
use crate::plot::group::{Groups, Series};
use crate::plot::input::{Counts, Lock};
use crate::plot::panel::{Axis, Curve, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit};
use crate::plot::scene::{Dash, PALETTE, Scene};

const HEIGHT: i32 = 420;
/// Kinds in one figure: those that were waited for longest.
const KINDS: usize = 5;
/// Below this, ns, all times count as equal.
const SHORTEST: f64 = 10.0;

pub(super) fn draw(groups: &Groups) -> Drawn {
    let mut parts = Vec::new();
    for series in groups.panels() {
        if let Some(details) = &series.last().details {
            parts.push((series, contended(&details.locks)));
        }
    }
    if parts.is_empty() {
        return Err(NO_DETAILS);
    }
    parts.retain(|(_, locks)| !locks.is_empty());
    if parts.is_empty() {
        return Err("no lock was taken");
    }
    let height = HEAD + 2 * HEIGHT * parts.len() as i32;
    let title = "how long locks were waited for and held";
    let mut scene = page(title, &groups.common_of_panels(), height);
    // All panels have one time axis, so that they can be compared. Shorter times are drawn at its
    // edge.
    let counts = parts.iter().flat_map(|(_, locks)| locks);
    let counts = counts.flat_map(|lock| lock.wait_ns.iter().chain(&lock.hold_ns));
    let values = counts.map(|(value, _)| value.max(SHORTEST));
    let times = match groups.linear {
        true => Scale::linear(values.fold(0.0, f64::max), Unit::Time),
        false => Scale::log(values, Unit::Time),
    };
    for (index, (series, locks)) in parts.iter().enumerate() {
        let top = HEAD + 2 * HEIGHT * index as i32;
        let wait = |lock: &Lock| lock.wait_ns.clone();
        panel(&mut scene, top, &times, (series, "waits", locks), wait);
        let hold = |lock: &Lock| lock.hold_ns.clone();
        panel(
            &mut scene,
            top + HEIGHT,
            &times,
            (series, "holds", locks),
            hold,
        );
    }
    Ok(scene)
}

/// The kinds that were waited for longest, longest first.
fn contended(locks: &[Lock]) -> Vec<Lock> {
    let waited = |lock: &Lock| -> f64 { lock.wait_ns.iter().map(|(v, n)| v * n).sum() };
    let mut locks = locks.to_vec();
    locks.sort_by(|a, b| waited(b).total_cmp(&waited(a)));
    locks.truncate(KINDS);
    locks
}

fn panel(
    scene: &mut Scene,
    top: i32,
    times: &Scale,
    (series, what, locks): (&Series, &str, &[Lock]),
    counts: impl Fn(&Lock) -> Counts,
) {
    let mut curves = Vec::new();
    let mut most = 0.0_f64;
    for (lock, colour) in locks.iter().zip(PALETTE) {
        let counts = counts(lock);
        let count = total(&counts);
        if count > 0.0 {
            most = most.max(count);
            curves.push(Curve {
                name: lock.name.clone(),
                colour,
                dash: Dash::Solid,
                points: percentiles(&counts),
                halves: Vec::new(),
                dots: false,
            });
        }
    }
    let x = Axis::new(format!("percentile of {what}"), Scale::tail(most));
    let y = Axis::new(
        format!("{}: length of {what}{}", series.name, none(&curves)),
        times.clone(),
    );
    let room = room_for(locks.iter().map(|lock| lock.name.as_str()));
    let panel = Panel::new(scene, (top, top + HEIGHT), room, &x, &y);
    panel.curves(scene, &curves);
}

fn none(curves: &[Curve]) -> &'static str {
    if curves.is_empty() {
        " (there were none)"
    } else {
        ""
    }
}
