//! Tables as CSV: quoting follows RFC 4180, line ends are LF.

use csv::{Terminator, WriterBuilder};

/// Rows of a file. Panics if they are not of one length.
pub fn csv_of<R>(rows: &[R]) -> String
where
    for<'a> &'a R: IntoIterator<Item = &'a String>,
{
    let mut builder = WriterBuilder::new();
    builder.terminator(Terminator::Any(b'\n'));
    let mut writer = builder.from_writer(Vec::new());
    for row in rows {
        let written = writer.write_record(row);
        written.expect("memory takes all, and rows are as long as their header");
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("cells are texts")
}
