//! Where the arms of rotational disks are sent: a dot for the first sector of each command, over
//! time, in the colour of the thread that asked for it. A panel for each disk of each curve's run.

use super::{Drawn, NO_DETAILS};
use crate::plot::group::Groups;
use crate::plot::input::Seeks;
use crate::plot::panel::{Axis, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Colour, FAINT, PALETTE, Scene};

const HEIGHT: i32 = 720;

/// Commands of one disk of one run.
struct Part<'a> {
    run: &'a str,
    device: &'a str,
    threads: Vec<&'a Seeks>,
    /// Of the run, on all of its disks: those that are shown, and all.
    counts: (usize, f64),
}

pub(super) fn draw(groups: &Groups) -> Drawn {
    let (mut parts, mut details) = (Vec::new(), false);
    for series in groups.panels() {
        if let Some(found) = &series.last().details {
            details = true;
            parts.extend(parts_of(&series.name, &found.seeks, found.seek_count));
        }
    }
    if !details {
        return Err(NO_DETAILS);
    }
    if parts.is_empty() {
        return Err("no rotational disk took a command");
    }
    let title = "where the arm of the disk is sent: first sector of each command";
    let height = HEAD + HEIGHT * parts.len() as i32;
    let mut scene = page(title, &groups.common_of_panels(), height);
    let names: Vec<String> = parts.iter().flat_map(Part::names).collect();
    let room = room_for(names.iter().map(String::as_str));
    for (index, part) in parts.iter().enumerate() {
        panel(&mut scene, HEAD + HEIGHT * index as i32, room, part);
    }
    Ok(scene)
}

fn parts_of<'a>(run: &'a str, all: &'a [Seeks], count: f64) -> Vec<Part<'a>> {
    let shown = all.iter().map(|of| of.points.len()).sum();
    let mut parts: Vec<Part> = Vec::new();
    for of in all.iter().filter(|of| !of.points.is_empty()) {
        match parts.iter_mut().find(|part| part.device == of.device) {
            Some(part) => part.threads.push(of),
            None => parts.push(Part {
                run,
                device: &of.device,
                threads: vec![of],
                counts: (shown, count),
            }),
        }
    }
    parts
}

impl Part<'_> {
    /// Of its threads, and one for all that there is no colour for.
    fn names(&self) -> Vec<String> {
        let threads = self.threads.iter().take(PALETTE.len());
        let mut names: Vec<String> = threads.map(|of| name(of)).collect();
        match self.threads.len().saturating_sub(PALETTE.len()) {
            0 => {}
            more => names.push(format!("{more} threads more")),
        }
        names
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.threads.iter().flat_map(|of| of.points.iter().copied())
    }
}

fn name(of: &Seeks) -> String {
    match of.thread.as_str() {
        "" => "no thread\u{2019}s".to_owned(),
        thread => thread.to_owned(),
    }
}

fn panel(scene: &mut Scene, top: i32, room: i32, part: &Part) {
    // Streams that lie far inside would be one line if the axis began at the outside.
    let lowest = part.points().map(|(_, s)| s).fold(f64::INFINITY, f64::min);
    let highest = part.points().map(|(_, s)| s).fold(0.0, f64::max);
    let end = part.points().map(|(at, _)| at).fold(0.0, f64::max);
    let from = match lowest > 0.0 {
        true => format!("sectors after sector {lowest}"),
        false => "sector".to_owned(),
    };
    let run = [part.run, part.device]
        .into_iter()
        .filter(|s| !s.is_empty());
    let run = run.collect::<Vec<_>>().join(", ");
    let y = Axis::new(
        format!("{run}: {from}"),
        Scale::linear(highest - lowest, Unit::Number),
    );
    let (shown, all) = part.counts;
    let x = Axis::new(
        match all > shown as f64 {
            true => format!(
                "time from the end of the ramp (the first {shown} commands of {})",
                written(all, Unit::Number)
            ),
            false => "time from the end of the ramp".to_owned(),
        },
        Scale::up_to(end, Unit::Time),
    );
    let panel = Panel::new(scene, (top, top + HEIGHT), room, &x, &y);
    let mut ends: Vec<((i32, i32), Colour)> = Vec::new();
    for (index, of) in part.threads.iter().enumerate() {
        let colour = PALETTE.get(index).copied().unwrap_or(FAINT);
        let mut places: Vec<(i32, i32)> = of
            .points
            .iter()
            .map(|&(at, sector)| (panel.x(at), panel.y(sector - lowest)))
            .collect();
        // Dots in one place are one dot.
        places.dedup();
        for &at in &places {
            scene.speck(at, colour);
        }
        if let (Some(&last), true) = (places.last(), index <= PALETTE.len()) {
            ends.push((last, colour));
        }
    }
    let names = part.names();
    let named = ends.iter().zip(&names);
    let named: Vec<_> = named
        .map(|(&(at, colour), name)| (at, name.as_str(), colour))
        .collect();
    panel.names(scene, &named);
}
