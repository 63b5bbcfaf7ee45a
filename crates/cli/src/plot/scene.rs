//! A picture as a list of shapes and texts, independent of its file format.
//!
//! Coordinates are half pixels: x to the right, y down. Later shapes cover earlier ones.

use super::font;

/// Colours of lines and fills: Okabe and Ito's, distinct in all kinds of colour vision. Yellow is
/// left out: it cannot be read as text on white.
pub(crate) const PALETTE: [Colour; 7] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(230, 159, 0),
    Colour(86, 180, 233),
    Colour(0, 0, 0),
];
pub(crate) const INK: Colour = Colour(34, 34, 34);
/// Text that only helps.
pub(crate) const FAINT: Colour = Colour(95, 95, 95);
pub(crate) const GRID: Colour = Colour(225, 225, 225);
/// Lines of the grid without a number.
pub(crate) const FINE: Colour = Colour(240, 240, 240);
/// Idle time, and other things that are not there.
pub(crate) const NOTHING: Colour = Colour(222, 222, 222);
pub(crate) const WHITE: Colour = Colour(255, 255, 255);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl Colour {
    /// A part of the way from white to this colour.
    pub(crate) fn tint(self, part: f64) -> Colour {
        let mix = |c: u8| (255.0 - (255.0 - f64::from(c)) * part.clamp(0.0, 1.0)).round() as u8;
        Colour(mix(self.0), mix(self.1), mix(self.2))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Point {
    pub(crate) x: i32,
    pub(crate) y: i32,
}

impl Point {
    pub(crate) fn new(x: i32, y: i32) -> Point {
        Point { x, y }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dash {
    Solid,
    Dashed,
    Dotted,
}

impl Dash {
    pub(crate) const ALL: [Dash; 3] = [Dash::Solid, Dash::Dashed, Dash::Dotted];
}

/// The part of a text that is at its place; vertically it is the middle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Left,
    Middle,
    Right,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Item {
    Line {
        points: Vec<Point>,
        colour: Colour,
        width: u32,
        dash: Dash,
    },
    /// A filled polygon; of this part, percent, the rest shines through.
    Area {
        points: Vec<Point>,
        colour: Colour,
        opacity: u8,
    },
    Rect {
        from: Point,
        to: Point,
        colour: Colour,
    },
    Dot {
        at: Point,
        radius: u32,
        colour: Colour,
    },
    Text {
        at: Point,
        text: String,
        size: u32,
        colour: Colour,
        anchor: Anchor,
    },
}

/// The sheet itself: the first item of every scene.
fn paper(width: u32, height: u32) -> Item {
    Item::Rect {
        from: Point::new(0, 0),
        to: Point::new(width as i32, height as i32),
        colour: WHITE,
    }
}

/// Height of the line at the foot of a page.
const FOOT: u32 = 36;
const FOOT_SIZE: u32 = 20;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Scene {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) items: Vec<Item>,
    /// The program that made the data: in the file's metadata, and at the foot of the page.
    pub(crate) origin: String,
}

impl Scene {
    /// An empty sheet.
    pub(crate) fn new(width: u32, height: u32) -> Scene {
        Scene {
            width,
            height,
            items: vec![paper(width, height)],
            origin: String::new(),
        }
    }

    /// The same with its origin in a line at the foot and in the metadata.
    pub(crate) fn signed(mut self, origin: &str) -> Scene {
        self.height += FOOT;
        self.items[0] = paper(self.width, self.height);
        let at = (
            self.width as i32 - FOOT as i32,
            (self.height - FOOT / 2) as i32,
        );
        self.text(at, origin, Style::new(FOOT_SIZE, FAINT, Anchor::Right));
        origin.clone_into(&mut self.origin);
        self
    }

    pub(crate) fn line(&mut self, points: &[(i32, i32)], colour: Colour, width: u32) {
        self.dashed(points, (colour, width), Dash::Solid);
    }

    pub(crate) fn dashed(
        &mut self,
        points: &[(i32, i32)],
        (colour, width): (Colour, u32),
        dash: Dash,
    ) {
        let mut points: Vec<Point> = points.iter().map(|&(x, y)| Point::new(x, y)).collect();
        points.dedup();
        if points.len() > 1 {
            self.items.push(Item::Line {
                points,
                colour,
                width,
                dash,
            });
        }
    }

    pub(crate) fn area(&mut self, points: &[(i32, i32)], colour: Colour) {
        self.veil(points, colour, 100);
    }

    /// An area through which others are seen.
    pub(crate) fn veil(&mut self, points: &[(i32, i32)], colour: Colour, opacity: u8) {
        let points = points.iter().map(|&(x, y)| Point::new(x, y)).collect();
        self.items.push(Item::Area {
            points,
            colour,
            opacity,
        });
    }

    pub(crate) fn rect(&mut self, from: (i32, i32), to: (i32, i32), colour: Colour) {
        self.items.push(Item::Rect {
            from: Point::new(from.0, from.1),
            to: Point::new(to.0, to.1),
            colour,
        });
    }

    pub(crate) fn dot(&mut self, at: (i32, i32), colour: Colour) {
        self.items.push(Item::Dot {
            at: Point::new(at.0, at.1),
            radius: 7,
            colour,
        });
    }

    /// A dot that is one of very many.
    pub(crate) fn speck(&mut self, at: (i32, i32), colour: Colour) {
        self.items.push(Item::Dot {
            at: Point::new(at.0, at.1),
            radius: 4,
            colour,
        });
    }

    pub(crate) fn text(&mut self, at: (i32, i32), text: &str, style: Style) {
        self.items.push(Item::Text {
            at: Point::new(at.0, at.1),
            text: text.to_owned(),
            size: style.size,
            colour: style.colour,
            anchor: style.anchor,
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Style {
    pub(crate) size: u32,
    pub(crate) colour: Colour,
    pub(crate) anchor: Anchor,
}

impl Style {
    pub(crate) fn new(size: u32, colour: Colour, anchor: Anchor) -> Style {
        Style {
            size,
            colour,
            anchor,
        }
    }
}

impl Item {
    /// Left, top, right and bottom of a text.
    #[cfg(test)]
    pub(crate) fn text_box(&self) -> Option<[i32; 4]> {
        let Item::Text {
            at,
            text,
            size,
            anchor,
            ..
        } = self
        else {
            return None;
        };
        let width = font::width(text, *size);
        let left = match anchor {
            Anchor::Left => at.x,
            Anchor::Middle => at.x - width / 2,
            Anchor::Right => at.x - width,
        };
        let half = *size as i32 * 4 / 10;
        Some([left, at.y - half, left + width, at.y + half])
    }
}

/// A text cut to a width, with dots where it was cut.
pub(crate) fn fitted(text: &str, size: u32, width: i32) -> String {
    if font::width(text, size) <= width {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while !cut.is_empty() && font::width(&format!("{cut}..."), size) > width {
        cut.pop();
    }
    format!("{cut}...")
}
