//! From a scene to the text of an SVG file.
//!
//! Equal scenes give equal bytes.

use std::fmt::Write as _;

use super::scene::{Anchor, Colour, Dash, Item, Point, Scene};

/// The scene as an SVG file. Two units are a pixel: shapes are exact to half of one.
pub(crate) fn svg(scene: &Scene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut text = format!(
        "<svg width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<desc>{}</desc>\n",
        width / 2,
        height / 2,
        // Between tags quotes stay as they are.
        marked(&scene.origin),
    );
    for item in &scene.items {
        text.push_str(&drawn(item));
    }
    text.push_str("</svg>\n");
    text
}

fn drawn(item: &Item) -> String {
    match item {
        Item::Line {
            points,
            colour,
            width,
            dash,
        } => format!(
            "<polyline fill=\"none\" opacity=\"1\" stroke=\"{}\" stroke-width=\"{width}\"{} \
             points=\"{}\"/>\n",
            hex(*colour),
            match dash {
                Dash::Solid => "",
                Dash::Dashed => " stroke-dasharray=\"18 10\"",
                Dash::Dotted => " stroke-dasharray=\"4 8\"",
            },
            pairs(points)
        ),
        Item::Area {
            points,
            colour,
            opacity,
        } => format!(
            "<polygon opacity=\"{}\" fill=\"{}\" points=\"{}\"/>\n",
            f64::from(*opacity) / 100.0,
            hex(*colour),
            pairs(points)
        ),
        Item::Rect { from, to, colour } => format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" opacity=\"1\" fill=\"{}\" \
             stroke=\"none\"/>\n",
            from.x,
            from.y,
            to.x - from.x,
            to.y - from.y,
            hex(*colour)
        ),
        Item::Dot { at, radius, colour } => format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\" opacity=\"1\" fill=\"{}\" \
             stroke=\"none\" stroke-width=\"1\"/>\n",
            at.x,
            at.y,
            hex(*colour)
        ),
        Item::Text {
            at,
            text,
            size,
            colour,
            anchor,
        } => {
            let anchor = match anchor {
                Anchor::Left => "start",
                Anchor::Middle => "middle",
                Anchor::Right => "end",
            };
            let text = marked(text).replace('"', "&quot;").replace('\'', "&apos;");
            format!(
                "<text x=\"{}\" y=\"{}\" dy=\"0.5ex\" text-anchor=\"{anchor}\" \
                 font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"{size}\" \
                 opacity=\"1\" fill=\"{}\">\n{text}\n</text>\n",
                at.x,
                at.y,
                hex(*colour)
            )
        }
    }
}

fn hex(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

fn pairs(points: &[Point]) -> String {
    let mut text = String::new();
    for point in points {
        write!(text, "{},{} ", point.x, point.y).expect("a string takes all");
    }
    text
}

fn marked(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
