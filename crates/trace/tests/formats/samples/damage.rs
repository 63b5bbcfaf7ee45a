//! One change of a sample, and the error that it must be: the rows of damage.txt.

use super::{events, sample};
use trace::blktrace::Options;

#[test]
fn each_damage_is_one_clear_error() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let table = std::fs::read_to_string(sample("damage.txt")).expect("it is in the repository");
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut count = 0;
    for row in table.lines().filter(is_row) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [name, change, says] = cells[..] else {
            panic!("{row}: not three cells");
        };
        let (from, to) = change.split_once(" =>").expect(row);
        let text = std::fs::read_to_string(sample(name)).expect(row);
        assert!(text.contains(from), "{row}: the sample has no such text");
        let file = dir.path().join(name);
        std::fs::write(&file, text.replacen(from, to.trim(), 1)).expect("it can be written");
        // A damaged first line would be of no format.
        let format = super::SAMPLES.iter().find(|(other, _)| *other == name);
        let options = Options {
            format: format.and_then(|(_, format)| format.parse().ok()),
            ..Options::default()
        };
        let error = match events(&file, options) {
            Err(error) => error.to_string(),
            Ok((text, _)) => panic!("{row}: no error, but {text}"),
        };
        let after = error.strip_prefix(file.to_str().expect("an ASCII path"));
        let after = after.unwrap_or_else(|| panic!("{error} begins with no file"));
        let any_line = after.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        let alike = after.starts_with(says) || any_line.trim_start().starts_with(says);
        assert!(alike, "{row}\n  but {error}");
        assert!(!error.contains('\n'), "{error}");
        assert!(error.len() < 400, "{error}");
        count += 1;
    }
    assert!(count >= 80, "{count}");
}
