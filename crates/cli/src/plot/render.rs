//! From a scene to bytes: SVG or PNG, both by plotters' backends.
//!
//! Equal scenes give equal bytes.

use std::convert::Infallible;

use plotters_backend::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{
    BackendColor, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontFamily,
    FontTransform,
};
use plotters_bitmap::BitMapBackend;
use plotters_svg::SVGBackend;

use super::font;
use super::scene::{Anchor, Colour, Item, Point, Scene};

/// What the backends make of a font's size.
const SIZE: f64 = 1.24;

/// The scene as an SVG file. Shapes are exact to half a pixel.
pub(crate) fn svg(scene: &Scene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut text = String::new();
    draw(scene, SVGBackend::with_string(&mut text, (width, height)));
    // Two units are a pixel.
    let full = format!("<svg width=\"{width}\" height=\"{height}\"");
    let half = format!("<svg width=\"{}\" height=\"{}\"", width / 2, height / 2);
    let text = text.replacen(&full, &half, 1);
    let (head, body) = text.split_once(">\n").expect("a picture has a head");
    format!("{head}>\n<desc>{}</desc>\n{body}", escaped(&scene.origin))
}

/// Text as it stands between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The scene as a PNG file, with twice the SVG's pixels each way.
pub(crate) fn png(scene: &Scene) -> Vec<u8> {
    let mut pixels = vec![0; scene.width as usize * scene.height as usize * 3];
    let size = (scene.width, scene.height);
    draw(scene, BitMapBackend::with_buffer(&mut pixels, size));
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, scene.width, scene.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // The version of a report that was read may hold any text; a chunk takes Latin-1 alone.
    let origin: String = scene.origin.chars().filter(char::is_ascii).collect();
    let noted = encoder.add_text_chunk("Source".to_owned(), origin);
    noted.expect("ASCII is Latin-1");
    let mut writer = encoder.write_header().expect("a buffer takes all");
    let written = writer.write_image_data(&pixels);
    written.expect("the buffer has the size of the picture");
    writer.finish().expect("a buffer takes all");
    file
}

/// Neither a string nor a buffer in memory refuses anything.
fn draw<B: DrawingBackend>(scene: &Scene, mut backend: B) {
    for item in &scene.items {
        draw_item(item, &mut backend).expect("memory takes all");
    }
    backend.present().expect("memory takes all");
}

fn draw_item<B: DrawingBackend>(
    item: &Item,
    backend: &mut B,
) -> Result<(), DrawingErrorKind<B::ErrorType>> {
    let pair = |p: &Point| (p.x, p.y);
    match item {
        Item::Line {
            points,
            colour,
            width,
        } => {
            let pen = Pen(*colour, *width);
            backend.draw_path(points.iter().map(pair), &pen)
        }
        Item::Area { points, colour } => {
            backend.fill_polygon(points.iter().map(pair), &Pen(*colour, 1))
        }
        Item::Rect { from, to, colour } => {
            backend.draw_rect(pair(from), pair(to), &Pen(*colour, 1), true)
        }
        Item::Dot { at, radius, colour } => {
            backend.draw_circle(pair(at), *radius, &Pen(*colour, 1), true)
        }
        Item::Text {
            at,
            text,
            size,
            colour,
            anchor,
        } => {
            let lettering = Lettering {
                size: *size,
                colour: *colour,
                anchor: *anchor,
            };
            backend.draw_text(text, &lettering, pair(at))
        }
    }
}

/// Colour and width of a line.
struct Pen(Colour, u32);

impl BackendStyle for Pen {
    fn color(&self) -> BackendColor {
        colour(self.0)
    }

    fn stroke_width(&self) -> u32 {
        self.1
    }
}

fn colour(Colour(r, g, b): Colour) -> BackendColor {
    BackendColor {
        alpha: 1.0,
        rgb: (r, g, b),
    }
}

/// Letters of the font in the binary.
struct Lettering {
    size: u32,
    colour: Colour,
    anchor: Anchor,
}

impl BackendTextStyle for Lettering {
    type FontError = Infallible;

    fn color(&self) -> BackendColor {
        colour(self.colour)
    }

    fn size(&self) -> f64 {
        f64::from(self.size) * SIZE
    }

    fn transform(&self) -> FontTransform {
        FontTransform::None
    }

    fn anchor(&self) -> Pos {
        let horizontal = match self.anchor {
            Anchor::Left => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        Pos::new(horizontal, VPos::Center)
    }

    fn family(&self) -> FontFamily<'_> {
        FontFamily::Name("DejaVu Sans, Verdana, sans-serif")
    }

    /// From the base line to the top of small letters: its middle is the text's.
    fn layout_box(&self, text: &str) -> Result<((i32, i32), (i32, i32)), Infallible> {
        let height = self.size as i32 * font::SMALL_LETTER / 1000;
        Ok(((0, -height), (font::width(text, self.size), 0)))
    }

    fn draw<E, F: FnMut(i32, i32, BackendColor) -> Result<(), E>>(
        &self,
        text: &str,
        (x, y): (i32, i32),
        mut draw: F,
    ) -> Result<Result<(), E>, Infallible> {
        Ok(font::pixels(text, self.size, |dx, dy, covered| {
            let mut colour = colour(self.colour);
            colour.alpha = f64::from(covered) / 255.0;
            draw(x + dx, y + dy, colour)
        }))
    }
}
