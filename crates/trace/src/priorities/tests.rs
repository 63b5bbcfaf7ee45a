use std::io::Cursor;
use std::path::Path;

use super::read;
use crate::text::Lines;

fn lines(text: &str) -> Lines {
    let bytes = Cursor::new(text.to_owned().into_bytes());
    Lines::new(Path::new("priorities.txt"), Box::new(bytes))
}

#[test]
fn a_line_a_task() {
    let found = read(lines("# run\n\n1000 1 0\n1001 3 7\n")).unwrap();
    let of = |pid: u32| (found[&pid].priority.class, found[&pid].priority.level);
    assert_eq!((of(1000), of(1001), found.len()), ((1, 0), (3, 7), 2));
}

#[test]
fn a_task_is_in_a_group() {
    let found = read(lines("1 2 4\n2 0 0 a\n3 3 7  a/my group\n")).unwrap();
    let of = |pid: u32| found[&pid].group.as_str();
    assert_eq!((of(1), of(2), of(3)), ("", "a", "a/my group"));
    assert_eq!(found[&3].priority.class, 3);
}

#[test]
fn errors_name_line_and_field() {
    for (text, want) in [
        ("1000 1\n", "line"),
        ("1000 1 0 /a\n", "CGROUP"),
        ("1000 1 0 a//b\n", "CGROUP"),
        ("1000 1 0 a/\n", "CGROUP"),
        ("x 1 0\n", "PID"),
        ("1 4 0\n", "CLASS"),
        ("1 2 8\n", "LEVEL"),
        ("1 2 -1\n", "LEVEL"),
        ("1 2 0\n1 2 1\n", "twice"),
    ] {
        let error = read(lines(text)).unwrap_err().to_string();
        assert!(error.contains("priorities.txt:"), "{error}");
        assert!(error.contains(want), "{text}: {error}");
    }
}
