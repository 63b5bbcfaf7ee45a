//! Turns of a scheduler's queues: a row for each queue, a bar for each of its turns, in the colour
//! of the tree that it was in. Pale where the device waited for the next request of the queue.

use super::{Drawn, NO_DETAILS};
use crate::plot::group::Groups;
use crate::plot::input::{Details, Turns};
use crate::plot::panel::{Axis, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Colour, FAINT, INK, PALETTE, Scene};

/// Height of a row, and of the frame around all rows of a panel.
const ROW: i32 = 44;
const AROUND: i32 = 160;
/// Rows of a panel.
const ROWS_MAX: usize = 24;

struct Part<'a> {
    run: &'a str,
    /// Queues, in the order of their first turns.
    rows: Vec<&'a str>,
    trees: Vec<&'a str>,
    turns: &'a [Turns],
    count: f64,
}

pub(super) fn draw(groups: &Groups) -> Drawn {
    let (mut parts, mut details) = (Vec::new(), false);
    for series in groups.panels() {
        if let Some(found) = &series.last().details {
            details = true;
            parts.extend(Part::of(&series.name, found));
        }
    }
    if !details {
        return Err(NO_DETAILS);
    }
    if parts.is_empty() {
        return Err("no scheduler gave turns");
    }
    let title = "whose turn it is with the scheduler, and pale while the device waits for it";
    let height = HEAD + parts.iter().map(Part::height).sum::<i32>();
    let mut scene = page(title, &groups.common_of_panels(), height);
    let names: Vec<String> = parts.iter().flat_map(Part::names).collect();
    let room = room_for(names.iter().map(String::as_str));
    let mut top = HEAD;
    for part in &parts {
        panel(&mut scene, top, room, part);
        top += part.height();
    }
    Ok(scene)
}

impl<'a> Part<'a> {
    /// None of a run without turns.
    fn of(run: &'a str, details: &'a Details) -> Option<Part<'a>> {
        let turns = &details.turns[..];
        let first = |of: &Turns| of.spans.first().map_or(f64::INFINITY, |span| span.0);
        let mut by_time: Vec<&Turns> = turns.iter().collect();
        by_time.sort_by(|one, other| first(one).total_cmp(&first(other)));
        let (mut rows, mut trees): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for of in by_time {
            if !rows.contains(&of.group.as_str()) {
                rows.push(&of.group);
            }
            if !trees.contains(&of.tree.as_str()) {
                trees.push(&of.tree);
            }
        }
        trees.sort_unstable();
        (!turns.is_empty()).then_some(Part {
            run,
            rows,
            trees,
            turns,
            count: details.turn_count,
        })
    }

    fn shown(&self) -> usize {
        self.rows.len().min(ROWS_MAX)
    }

    fn height(&self) -> i32 {
        AROUND + ROW * self.shown() as i32
    }

    /// Names of its queues, each with the trees that it was in.
    fn names(&self) -> Vec<String> {
        let rows = self.rows.iter().take(ROWS_MAX);
        rows.map(|row| {
            let of_row = self.turns.iter().filter(|of| of.group == *row);
            let trees: Vec<&str> = of_row.map(|of| of.tree.as_str()).collect();
            format!("{row} ({})", trees.join(", "))
        })
        .collect()
    }

    fn colour(&self, tree: &str) -> Colour {
        let place = self.trees.iter().position(|known| *known == tree);
        place
            .and_then(|place| PALETTE.get(place))
            .copied()
            .unwrap_or(FAINT)
    }

    fn called(&self) -> String {
        let run = match self.run {
            "" => String::new(),
            run => format!("{run}: "),
        };
        match self.rows.len().saturating_sub(ROWS_MAX) {
            0 => format!("{run}queues"),
            more => format!("{run}queues ({more} more are not shown)"),
        }
    }
}

fn panel(scene: &mut Scene, top: i32, room: i32, part: &Part) {
    let spans = || part.turns.iter().flat_map(|of| &of.spans);
    let end = spans().map(|span| span.1).fold(0.0, f64::max);
    let (shown, all) = (spans().count(), part.count);
    let x = Axis::new(
        match all > shown as f64 {
            true => format!(
                "time from the beginning of the run (the first {shown} turns of {})",
                written(all, Unit::Number)
            ),
            false => "time from the beginning of the run".to_owned(),
        },
        Scale::up_to(end, Unit::Time),
    );
    let rows = part.shown() as f64;
    let y = Axis::new(part.called(), Scale::linear(rows, Unit::Number));
    let panel = Panel::new(scene, (top, top + part.height()), room, &x, &y);
    let row_of = |group: &str| {
        part.rows[..part.shown()]
            .iter()
            .position(|row| *row == group)
    };
    for of in part.turns {
        let Some(row) = row_of(&of.group) else {
            continue;
        };
        let (upper, lower) = (panel.y(row as f64 + 0.85), panel.y(row as f64 + 0.15));
        let colour = part.colour(&of.tree);
        for &(from, to, awaited) in &of.spans {
            let (left, right) = (panel.x(from), panel.x(to));
            let colour = match awaited {
                true => colour.tint(0.7),
                false => colour,
            };
            scene.rect((left, upper), (right.max(left + 1), lower), colour);
        }
    }
    let names = part.names();
    let named: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(row, name)| ((panel.right, panel.y(row as f64 + 0.5)), name.as_str(), INK))
        .collect();
    panel.names(scene, &named);
}
