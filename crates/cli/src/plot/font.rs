//! Widths of texts: those of DejaVu Sans, the first font that the pictures ask for.
//!
//! Advances of its `hmtx` table, so that a picture does not depend on the system's fonts.

/// Units of the font's design to its size.
const UNITS: u32 = 2048;

/// From the space to the tilde.
const ADVANCES: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048,
    1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235,
    1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, 1024,
    1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300,
    1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];

/// Of the box that is drawn for a letter that a font lacks.
const UNKNOWN: u16 = 1229;

/// Width of a line of text.
pub(crate) fn width(text: &str, size: u32) -> i32 {
    let units: u32 = text.chars().map(advance).sum();
    (units * size).div_ceil(UNITS) as i32
}

fn advance(c: char) -> u32 {
    u32::from(match c {
        ' '..='~' => ADVANCES[c as usize - ' ' as usize],
        'µ' => 1303,
        '×' => 1716,
        '–' => 1024,
        '→' => 1716,
        _ => UNKNOWN,
    })
}
