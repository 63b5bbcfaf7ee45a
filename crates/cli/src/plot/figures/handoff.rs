//! Distances of lock hand-offs: grants to a waiting CPU, by the distance from the CPU that
//! released.

use super::{Drawn, NO_DETAILS};
use crate::plot::font;
use crate::plot::group::Groups;
use crate::plot::input::Lock;
use crate::plot::panel::{HEAD, MARGIN, NAME, TICK, WIDTH, page};
use crate::plot::scale::{Unit, written};
use crate::plot::scene::{Anchor, Colour, FAINT, INK, Scene, Style, WHITE, fitted};

const ROW: i32 = 84;
const ABOVE: i32 = 130;
const SHADE: Colour = Colour(0, 114, 178);
const DISTANCES: [&str; 5] = [
    "same CPU",
    "other thread of core",
    "same cache",
    "same socket",
    "other socket",
];

pub(super) fn draw(groups: &Groups) -> Drawn {
    let mut parts = Vec::new();
    let mut details = false;
    for series in groups.panels() {
        if let Some(found) = &series.last().details {
            details = true;
            let locks = found.locks.iter().filter(|lock| sum(lock) > 0.0);
            let locks: Vec<&Lock> = locks.collect();
            if !locks.is_empty() {
                parts.push((series.name.as_str(), locks));
            }
        }
    }
    if !details {
        return Err(NO_DETAILS);
    }
    if parts.is_empty() {
        return Err("no lock was handed to a waiting CPU");
    }
    let rows: i32 = parts
        .iter()
        .map(|(_, l)| l.len() as i32 * ROW + ABOVE + 40)
        .sum();
    let title = "how far locks travel: hand-offs by distance of the CPUs";
    let mut scene = page(title, &groups.common_of_panels(), HEAD + rows);
    let mut top = HEAD;
    for (name, locks) in parts {
        matrix(&mut scene, name, &locks, top);
        top += locks.len() as i32 * ROW + ABOVE + 40;
    }
    Ok(scene)
}

fn sum(lock: &Lock) -> f64 {
    lock.handoffs.iter().sum()
}

fn matrix(scene: &mut Scene, name: &str, locks: &[&Lock], top: i32) {
    let style = Style::new(NAME, INK, Anchor::Left);
    let room = WIDTH as i32 - 2 * MARGIN;
    let text = format!("{name}: share of a lock's hand-offs to a waiter, and their number");
    scene.text((MARGIN, top + 20), &fitted(&text, NAME, room), style);
    let widest = locks.iter().map(|lock| font::width(&lock.name, NAME)).max();
    let left = MARGIN + widest.unwrap_or(0).min(420) + 24;
    let column = (room + MARGIN - left) / DISTANCES.len() as i32;
    for (index, distance) in DISTANCES.iter().enumerate() {
        let x = left + column * index as i32 + column / 2;
        let style = Style::new(TICK, FAINT, Anchor::Middle);
        scene.text((x, top + 88), &fitted(distance, TICK, column - 8), style);
    }
    for (row, lock) in locks.iter().enumerate() {
        let y = top + ABOVE + ROW * row as i32;
        let style = Style::new(NAME, INK, Anchor::Right);
        scene.text(
            (left - 18, y + ROW / 2),
            &fitted(&lock.name, NAME, 420),
            style,
        );
        for (index, &count) in lock.handoffs.iter().enumerate() {
            let part = count / sum(lock);
            let x = left + column * index as i32;
            let (from, to) = ((x + 2, y + 2), (x + column - 2, y + ROW - 2));
            scene.rect(from, to, SHADE.tint(0.04 + 0.96 * part));
            let ink = if part > 0.65 { WHITE } else { INK };
            let style = Style::new(NAME, ink, Anchor::Middle);
            let middle = x + column / 2;
            if count > 0.0 {
                scene.text((middle, y + 30), &share(part), style);
                let style = Style::new(TICK, ink, Anchor::Middle);
                scene.text((middle, y + 60), &written(count, Unit::Number), style);
            } else {
                scene.text((middle, y + ROW / 2), "none", style);
            }
        }
    }
}

fn share(part: f64) -> String {
    let percent = 100.0 * part;
    if percent < 0.1 {
        "< 0.1 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}
