//! The font in the binary: widths of texts for both formats, pixels for PNG.
//!
//! A subset of DejaVu Sans (`fonts/LICENSE`), so that pictures do not depend on the system's fonts.

use std::sync::LazyLock;

use fontdue::{Font, FontSettings};

static FONT: LazyLock<Font> = LazyLock::new(|| {
    let bytes: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");
    Font::from_bytes(bytes, FontSettings::default()).expect("the font is part of the program")
});

/// Height of a small letter, in thousandths of the size.
pub(crate) const SMALL_LETTER: i32 = 547;

/// Width of a line of text.
pub(crate) fn width(text: &str, size: u32) -> i32 {
    let advance = |c: char| FONT.metrics(c, size as f32).advance_width;
    text.chars().map(advance).sum::<f32>().ceil() as i32
}

/// Calls `pixel` with place and coverage (1 to 255) of each pixel of a text whose base line begins
/// at 0, 0.
pub(crate) fn pixels<E>(
    text: &str,
    size: u32,
    mut pixel: impl FnMut(i32, i32, u8) -> Result<(), E>,
) -> Result<(), E> {
    let mut pen = 0.0_f32;
    for c in text.chars() {
        let (metrics, coverage) = FONT.rasterize(c, size as f32);
        let left = pen.round() as i32 + metrics.xmin;
        let top = -(metrics.ymin + metrics.height as i32);
        for (index, &covered) in coverage.iter().enumerate() {
            if covered > 0 {
                let (x, y) = (index % metrics.width, index / metrics.width);
                pixel(left + x as i32, top + y as i32, covered)?;
            }
        }
        pen += metrics.advance_width;
    }
    Ok(())
}
