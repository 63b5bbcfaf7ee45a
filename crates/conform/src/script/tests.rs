//! Which task is which process.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use trace::io_txt::IoScript;
use trace::text::Lines;

use super::Script;

fn script(text: &str) -> Script {
    let bytes = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let IoScript { processes } = IoScript::read(Lines::new(Path::new("io.txt"), bytes)).unwrap();
    Script { processes }
}

fn tasks(script: &Script, names: &[(u32, &str)]) -> Vec<(u32, usize)> {
    let names: BTreeMap<u32, String> = names
        .iter()
        .map(|&(pid, name)| (pid, name.to_owned()))
        .collect();
    script.tasks(&names).into_iter().collect()
}

/// Forked one after the other: pids go up in the order of the script.
#[test]
fn processes_of_one_name_are_told_apart_by_their_pids() {
    let script = script("proc w\nr 0 8\nproc r\nr 8 8\nproc w\nr 16 8\n");
    let traced = [
        (40, "w"),
        (30, "w"),
        (31, "r"),
        (7, "kworker/0:1"),
        (0, "<idle>"),
    ];
    assert_eq!(tasks(&script, &traced), [(30, 0), (31, 1), (40, 2)]);
}

/// TASK_COMM_LEN.
#[test]
fn a_name_is_as_long_as_the_kernel_keeps_it() {
    let script = script("proc sequential-writer-1\nw 0 8\n");
    assert_eq!(tasks(&script, &[(9, "sequential-writ")]), [(9, 0)]);
}
