//! A panel: two axes with units, a grid, and curves with their names at their ends.
//!
//! No legend: a name is at the end of its curve, in the curve's colour, moved only as far as names
//! would cover each other.

use super::font;
use super::scale::Scale;
use super::scene::{Anchor, Colour, Dash, FAINT, FINE, GRID, INK, Scene, Style, WHITE, fitted};

pub(crate) const WIDTH: u32 = 1920;
pub(crate) const TITLE: u32 = 34;
/// Size of the names of curves and axes.
pub(crate) const NAME: u32 = 27;
pub(crate) const TICK: u32 = 24;
pub(crate) const HEAD: i32 = 130;
/// Left edge of everything.
pub(crate) const MARGIN: i32 = 50;
/// Left edge of panels: room for numbers at the axis.
pub(crate) const LEFT: i32 = 190;
/// Room above a panel for its axis' name.
const ABOVE: i32 = 60;
/// Room below a panel for numbers and its axis' name.
const BELOW: i32 = 100;
/// Names at the right are at most so wide.
const NAME_MAX: i32 = 560;
/// Lines of text are so far apart.
pub(crate) const LINE: i32 = 34;

/// A page with title and a line below it. The title says that nothing in it was measured.
pub(crate) fn page(title: &str, below: &str, height: i32) -> Scene {
    let mut scene = Scene::new(WIDTH, height as u32);
    let room = WIDTH as i32 - 2 * MARGIN;
    let style = Style::new(TITLE, INK, Anchor::Left);
    let title = format!("Simulated: {title}");
    scene.text((MARGIN, 48), &fitted(&title, TITLE, room), style);
    let style = Style::new(TICK, FAINT, Anchor::Left);
    scene.text((MARGIN, 94), &fitted(below, TICK, room), style);
    scene
}

/// An axis: its name with its unit, and its scale.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) scale: Scale,
}

impl Axis {
    /// The name says if the scale is logarithmic.
    pub(crate) fn new(name: impl Into<String>, scale: Scale) -> Axis {
        let mut name: String = name.into();
        if scale.is_log() {
            name.push_str(" (log scale)");
        }
        Axis { name, scale }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    pub(crate) dash: Dash,
    pub(crate) points: Vec<(f64, f64)>,
    /// Half the length of the interval around each point; empty if there are none.
    pub(crate) halves: Vec<f64>,
    /// Each point was measured on its own: it gets a dot.
    pub(crate) dots: bool,
}

impl Curve {
    /// Its values, intervals included.
    pub(crate) fn heights(&self) -> Vec<f64> {
        let points = self.points.iter().enumerate();
        let half = |index: usize| self.halves.get(index).copied().unwrap_or(0.0);
        points.map(|(index, (_, y))| y + half(index)).collect()
    }
}

/// Room for names at the right of a panel.
pub(crate) fn room_for<'a>(names: impl Iterator<Item = &'a str>) -> i32 {
    let widest = names.map(|name| font::width(name, NAME)).max();
    widest.unwrap_or(0).min(NAME_MAX) + 60
}

/// Two axes on a page.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) left: i32,
    pub(crate) right: i32,
    pub(crate) top: i32,
    pub(crate) bottom: i32,
    x: Scale,
    y: Scale,
}

impl Panel {
    /// Draws axes and grid between `top` and `bottom` of the page; `room` is left at the right.
    pub(crate) fn new(
        scene: &mut Scene,
        (top, bottom): (i32, i32),
        room: i32,
        x: &Axis,
        y: &Axis,
    ) -> Panel {
        let panel = Panel::of(scene, (top, bottom - BELOW), room, x, y);
        let style = Style::new(NAME, INK, Anchor::Middle);
        let middle = i32::midpoint(panel.left, panel.right);
        scene.text((middle, panel.bottom + 76), &x.name, style);
        panel.draw_x(scene);
        panel
    }

    /// The same without numbers and name of the horizontal axis: a panel below has them.
    pub(crate) fn of(
        scene: &mut Scene,
        (top, bottom): (i32, i32),
        room: i32,
        x: &Axis,
        y: &Axis,
    ) -> Panel {
        let panel = Panel {
            left: LEFT,
            right: scene.width as i32 - room.max(60),
            top: top + ABOVE,
            bottom,
            x: x.scale.clone(),
            y: y.scale.clone(),
        };
        let style = Style::new(NAME, INK, Anchor::Left);
        let name = fitted(&y.name, NAME, scene.width as i32 - 2 * MARGIN);
        scene.text((MARGIN, top + 20), &name, style);
        panel.draw_y(scene);
        panel
    }

    /// Place of a value of the horizontal axis.
    pub(crate) fn x(&self, value: f64) -> i32 {
        let place = self.x.place(value) * f64::from(self.right - self.left);
        self.left + place.round() as i32
    }

    /// Place of a value of the vertical axis.
    pub(crate) fn y(&self, value: f64) -> i32 {
        let place = self.y.place(value) * f64::from(self.bottom - self.top);
        self.bottom - place.round() as i32
    }

    fn draw_y(&self, scene: &mut Scene) {
        let style = Style::new(TICK, FAINT, Anchor::Right);
        let mut free_above = i32::MAX;
        for value in self.y.minor() {
            let y = self.y(value);
            scene.line(&[(self.left, y), (self.right, y)], FINE, 1);
            scene.line(&[(self.left - 6, y), (self.left, y)], FAINT, 1);
        }
        for (value, text) in self.y.ticks() {
            let y = self.y(value);
            scene.line(&[(self.left, y), (self.right, y)], GRID, 2);
            if y <= free_above {
                scene.text((self.left - 14, y), &text, style);
                free_above = y - LINE;
            }
        }
        scene.line(
            &[(self.left, self.bottom), (self.right, self.bottom)],
            FAINT,
            2,
        );
    }

    fn draw_x(&self, scene: &mut Scene) {
        let style = Style::new(TICK, FAINT, Anchor::Middle);
        let mut free_from = i32::MIN;
        for (value, text) in self.x.ticks() {
            let (x, width) = (self.x(value), font::width(&text, TICK));
            scene.line(&[(x, self.bottom), (x, self.bottom + 8)], FAINT, 2);
            if x - width / 2 >= free_from {
                scene.text((x, self.bottom + 32), &text, style);
                free_from = x + width / 2 + 14;
            }
        }
    }

    /// Draws curves, and their names at the right.
    pub(crate) fn curves(&self, scene: &mut Scene, curves: &[Curve]) {
        let mut names = Vec::new();
        for curve in curves {
            self.band(scene, curve);
        }
        for curve in curves {
            let at = |&(x, y): &(f64, f64)| (self.x(x), self.y(y));
            let places: Vec<(i32, i32)> = curve.points.iter().map(at).collect();
            scene.dashed(&places, (curve.colour, 4), curve.dash);
            if curve.dots || places.len() == 1 {
                for &place in &places {
                    scene.dot(place, curve.colour);
                }
            }
            if let Some(&end) = places.last() {
                names.push((end, curve.name.as_str(), curve.colour));
            }
        }
        self.names(scene, &names);
    }

    /// The intervals of a curve's points; of a single point a bar.
    fn band(&self, scene: &mut Scene, curve: &Curve) {
        let points = curve.points.iter().zip(&curve.halves);
        let above = points
            .clone()
            .map(|(&(x, y), half)| (self.x(x), self.y(y + half)));
        let below = points.map(|(&(x, y), half)| (self.x(x), self.y(y - half)));
        let (above, below): (Vec<_>, Vec<_>) = (above.collect(), below.collect());
        if let ([high], [low]) = (&above[..], &below[..]) {
            scene.line(&[*high, *low], curve.colour, 3);
        }
        let around = above.iter().chain(below.iter().rev());
        let around: Vec<(i32, i32)> = around.copied().collect();
        if above.len() > 1 {
            scene.veil(&around, curve.colour, 20);
        }
    }

    /// An empty diamond with a text above it, or below it at the panel's top.
    pub(crate) fn mark(&self, scene: &mut Scene, (x, y): (f64, f64), text: &str, colour: Colour) {
        let (x, y) = (self.x(x), self.y(y));
        for (size, colour) in [(14, colour), (9, WHITE)] {
            let corners = [(x - size, y), (x, y - size), (x + size, y), (x, y + size)];
            scene.area(&corners, colour);
        }
        let above = y - 2 * LINE > self.top;
        let place = (x - 20, if above { y - LINE } else { y + LINE });
        scene.text(place, text, Style::new(TICK, colour, Anchor::Right));
    }

    /// Names at the right, each as near to its place as the others let it.
    pub(crate) fn names(&self, scene: &mut Scene, names: &[((i32, i32), &str, Colour)]) {
        let wanted: Vec<i32> = names.iter().map(|((_, y), _, _)| *y).collect();
        let places = apart(&wanted, self.top, self.bottom);
        let room = scene.width as i32 - self.right - 50;
        for (&(from, name, colour), y) in names.iter().zip(places) {
            let x = self.right + 40;
            let near = (from.0 + 10).max(self.right + 2);
            if (y - from.1).abs() > 6 || from.0 + 40 < self.right {
                let line = [(from.0, from.1), (near, from.1), (x - 6, y)];
                scene.line(&line, colour.tint(0.5), 2);
            }
            let style = Style::new(NAME, colour, Anchor::Left);
            scene.text((x, y), &fitted(name, NAME, room), style);
        }
    }
}

/// Heights near the wanted ones, a line apart, in the same order.
fn apart(wanted: &[i32], top: i32, bottom: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&index| (wanted[index], index));
    let mut placed = vec![0; wanted.len()];
    let mut free = top;
    for &index in &order {
        placed[index] = wanted[index].max(free);
        free = placed[index] + LINE;
    }
    let mut free = bottom.max(top + LINE * (wanted.len() as i32 - 1));
    for &index in order.iter().rev() {
        placed[index] = placed[index].min(free);
        free = placed[index] - LINE;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_do_not_cover_each_other() {
        assert_eq!(apart(&[300, 100], 0, 1000), [300, 100]);
        assert_eq!(apart(&[100, 100, 90], 0, 1000), [124, 158, 90]);
        assert_eq!(apart(&[500, 500, 500], 0, 500), [432, 466, 500]);
        assert_eq!(apart(&[], 0, 500), [] as [i32; 0]);
        // More names than room: they go on below rather than over each other.
        assert_eq!(apart(&[5, 5, 5], 0, 10), [0, 34, 68]);
    }
}
