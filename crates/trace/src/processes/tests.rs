//! Which task is which process, and groups.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use super::{groups, place_of, tasks};
use crate::io_txt::{IoScript, Process};
use crate::meta::Cgroup;
use crate::text::Lines;

fn script(text: &str) -> Vec<Process> {
    let bytes = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let script = IoScript::read(Lines::new(Path::new("io.txt"), bytes));
    script.unwrap().processes
}

fn entered(script: &[Process]) -> impl Iterator<Item = &str> {
    script.iter().map(|process| process.group.as_str())
}

fn tasks_of(script: &[Process], names: &[(u32, &str)]) -> Vec<(u32, usize)> {
    let names: BTreeMap<u32, String> = names
        .iter()
        .map(|&(pid, name)| (pid, name.to_owned()))
        .collect();
    tasks(script, &names).into_iter().collect()
}

/// Forked one after the other: pids go up in the order of the script.
#[test]
fn processes_of_one_name_are_distinguished_by_their_pids() {
    let script = script("proc w\nr 0 8\nproc r\nr 8 8\nproc w\nr 16 8\n");
    let traced = [
        (40, "w"),
        (30, "w"),
        (31, "r"),
        (7, "kworker/0:1"),
        (0, "<idle>"),
    ];
    assert_eq!(tasks_of(&script, &traced), [(30, 0), (31, 1), (40, 2)]);
}

/// TASK_COMM_LEN.
#[test]
fn a_name_is_as_long_as_the_kernel_keeps_it() {
    let script = script("proc sequential-writer-1\nw 0 8\n");
    assert_eq!(tasks_of(&script, &[(9, "sequential-writ")]), [(9, 0)]);
}

/// A group comes after its parent; without a given weight it has the default.
#[test]
fn groups_have_the_weights_of_the_device() {
    let script = script("proc a 2 4 x/y\nr 0 8\nproc b 2 4 z\nr 8 8\n");
    let x = Cgroup {
        path: "/x".to_owned(),
        weight: 300,
        weight_on: [((252, 0), 500)].into(),
    };
    let named = |device| {
        let groups = groups(std::slice::from_ref(&x), entered(&script), device);
        groups
            .iter()
            .map(|group| (group.path.clone(), group.parent, group.weight))
            .collect::<Vec<_>>()
    };
    let expected = [("", 0, 100), ("x", 0, 300), ("x/y", 1, 100), ("z", 0, 100)];
    let expected = expected.map(|(path, parent, weight)| (path.to_owned(), parent, weight));
    assert_eq!(named(None), expected);
    assert_eq!(named(Some((252, 0)))[1].2, 500);
    let groups = groups(&[x], entered(&script), None);
    assert_eq!(place_of("x/y", &groups), 2);
    assert_eq!(place_of("elsewhere", &groups), 0);
}

/// A level that no line names exists nevertheless, with the kernel's weight.
#[test]
fn a_group_is_in_groups_that_nobody_names() {
    let script = script("proc a 2 4 a/b/c\nr 0 8\n");
    let d = Cgroup {
        path: "/d/e".to_owned(),
        weight: 300,
        weight_on: [].into(),
    };
    let groups = groups(&[d], entered(&script), None);
    let groups: Vec<_> = groups
        .iter()
        .map(|group| (group.path.as_str(), group.parent, group.weight))
        .collect();
    let a = [("a", 0, 100), ("a/b", 1, 100), ("a/b/c", 2, 100)];
    let d = [("d", 0, 100), ("d/e", 4, 300)];
    assert_eq!(groups, [&[("", 0, 100)][..], &a, &d].concat());
}
