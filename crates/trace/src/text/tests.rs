use std::io::{Cursor, Write as _};
use std::path::Path;

use super::Lines;

fn read_to_string(file: &Path) -> crate::Result<String> {
    let mut lines = Lines::open(file)?;
    let mut text = String::new();
    while lines.advance()? {
        text = text + lines.line() + "\n";
    }
    Ok(text)
}

#[test]
fn line_ends_and_bytes_that_are_no_text() {
    let bytes = b"one\r\ntw\xffo\n\nlast".to_vec();
    let mut lines = Lines::new(Path::new("t"), Box::new(Cursor::new(bytes)));
    let mut seen = Vec::new();
    while lines.advance().unwrap() {
        seen.push((lines.number(), lines.line().to_string()));
    }
    let want = [(1, "one"), (2, "tw\u{fffd}o"), (3, ""), (4, "last")];
    assert_eq!(seen, want.map(|(n, l)| (n, l.to_string())));
}

#[test]
fn endless_lines_are_refused() {
    let mut lines = Lines::new(Path::new("t"), Box::new(Cursor::new(vec![b'x'; 2 << 20])));
    assert_eq!(
        lines.advance().unwrap_err().to_string(),
        "t:1: line: longer than 1 MiB; is this a text file?"
    );
}

#[test]
fn compressed_files_read_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let gz = dir.path().join("a.txt.gz");
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(b"a\nb\n").unwrap();
    std::fs::write(&gz, out.finish().unwrap()).unwrap();
    assert_eq!(read_to_string(&gz).unwrap(), "a\nb\n");
    let xz = dir.path().join("a.txt.xz");
    let mut out = liblzma::write::XzEncoder::new(Vec::new(), 1);
    out.write_all(b"a\nb\n").unwrap();
    let packed = out.finish().unwrap();
    std::fs::write(&xz, &packed).unwrap();
    assert_eq!(read_to_string(&xz).unwrap(), "a\nb\n");
    // Damage is an error that names the file, not a short text.
    std::fs::write(&xz, &packed[..packed.len() - 10]).unwrap();
    assert!(
        read_to_string(&xz)
            .unwrap_err()
            .to_string()
            .contains("a.txt.xz: byte ")
    );
}
