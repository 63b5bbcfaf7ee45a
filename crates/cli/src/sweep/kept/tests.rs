use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Barrier;

use super::{Folder, Log, Manifest, Record, SYNC, Shard};
use crate::progress::now;

const POINTS: usize = 10;

fn manifest() -> Manifest {
    Manifest {
        version: "1".to_owned(),
        program: "p".to_owned(),
        sweep: "s".to_owned(),
        inputs: BTreeMap::from([("one".to_owned(), "1".to_owned())]),
    }
}

fn record(point: usize) -> Record {
    Record {
        point,
        rows: vec![vec![(point as u64).into(), 0.1.into(), "a \"b\"\n".into()]],
        stall: None,
    }
}

fn kept(dir: &Path) -> Folder {
    Folder::open(dir, &manifest(), true).expect("a folder")
}

fn shard(text: &str) -> Shard {
    Shard::of(Some(text), |_| None).expect("a shard")
}

/// Appends points of a shard; those that were there before.
fn append(dir: &Path, of: &str, points: &[usize]) -> Vec<usize> {
    let (mut log, done) = Log::open(&kept(dir), shard(of), POINTS).expect("it is free");
    for point in points {
        log.append(&record(*point)).expect("there is room");
    }
    log.sync().expect("there is room");
    (0..POINTS).filter(|point| done[*point]).collect()
}

#[test]
fn a_log_that_ends_anywhere_loses_its_last_line_only() {
    let dir = tempfile::tempdir().expect("a folder");
    append(dir.path(), "1/1", &[0, 1, 2]);
    let log = dir.path().join("shard-1-of-1.log");
    let whole = fs::read(&log).expect("it is there");
    let ends: Vec<usize> = (1..=whole.len())
        .filter(|end| whole[end - 1] == b'\n')
        .collect();
    for length in 0..=whole.len() {
        fs::write(&log, &whole[..length]).expect("there is room");
        let lines = ends.iter().filter(|end| **end <= length).count();
        let missing: Vec<usize> = (lines..POINTS).collect();
        assert_eq!(
            append(dir.path(), "1/1", &missing).len(),
            lines,
            "{length} bytes"
        );
        let all = kept(dir.path()).all(POINTS).expect("it can be read");
        assert_eq!(all.missing(), 0, "{length} bytes");
        for point in 0..POINTS {
            assert_eq!(all.record(point).expect("it is there"), record(point));
        }
    }
}

#[test]
fn a_changed_byte_makes_its_point_missing() {
    let dir = tempfile::tempdir().expect("a folder");
    append(dir.path(), "1/1", &[0, 1, 2]);
    let log = dir.path().join("shard-1-of-1.log");
    let whole = fs::read(&log).expect("it is there");
    let (first, second) = (
        whole.iter().position(|byte| *byte == b'\n'),
        whole.len() / 3 + 20,
    );
    assert!(first.expect("a line") < second);
    for byte in [3, second] {
        let mut changed = whole.clone();
        changed[byte] ^= 1;
        fs::write(&log, &changed).expect("there is room");
        let left = if byte == 3 { [1, 2] } else { [0, 2] };
        assert_eq!(append(dir.path(), "1/1", &[]), left);
        let again: Vec<usize> = (0..3).filter(|point| !left.contains(point)).collect();
        assert_eq!(append(dir.path(), "1/1", &again), left);
        assert_eq!(append(dir.path(), "1/1", &[]), [0, 1, 2]);
    }
}

#[test]
fn shards_of_other_counts_are_not_made_again() {
    let dir = tempfile::tempdir().expect("a folder");
    append(dir.path(), "2/3", &[1, 4]);
    assert_eq!(append(dir.path(), "2/2", &[3]), [1]);
    assert_eq!(append(dir.path(), "1/1", &[0]), [1, 3, 4]);
    let all = kept(dir.path()).all(POINTS).expect("they can be read");
    assert_eq!(
        (all.missing(), all.unfinished(10)),
        (6, vec![3, 6, 7, 8, 9, 10])
    );
    let status = all.status();
    assert!(
        status.starts_with("4 of 10 points done, 6 missing\n"),
        "{status}"
    );
    assert!(
        status.contains("shard 2/3      2 of its 3 points\n"),
        "{status}"
    );
}

#[test]
fn two_processes_cannot_make_one_shard() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = Log::open(&kept(dir.path()), shard("1/2"), POINTS).expect("it is free");
    let second = Log::open(&kept(dir.path()), shard("1/2"), POINTS).expect_err("it is taken");
    assert!(
        second
            .to_string()
            .contains("shard-1-of-2.log: another process makes this shard")
    );
    let other = Log::open(&kept(dir.path()), shard("2/2"), POINTS);
    assert!(other.is_ok());
    drop(first);
    assert!(Log::open(&kept(dir.path()), shard("1/2"), POINTS).is_ok());
}

#[test]
fn of_two_first_processes_one_makes_the_manifest() {
    for round in 0..20 {
        let dir = tempfile::tempdir().expect("a folder");
        let both = Barrier::new(2);
        let open = |program: &str| {
            let program = program.to_owned();
            let manifest = Manifest {
                program,
                ..manifest()
            };
            both.wait();
            Folder::open(dir.path(), &manifest, true).is_ok()
        };
        let opened = std::thread::scope(|threads| {
            let other = threads.spawn(|| open("q"));
            (open("p"), other.join().expect("no panic"))
        });
        assert!(opened.0 != opened.1, "round {round}: {opened:?}");
        let files = fs::read_dir(dir.path()).expect("it is there");
        assert_eq!(files.count(), 1, "round {round}");
    }
}

#[test]
fn one_process_writes_the_results_and_removes_what_a_killed_one_left() {
    let dir = tempfile::tempdir().expect("a folder");
    append(dir.path(), "1/1", &[0]);
    let left = dir.path().join(".blksim-killed");
    fs::write(&left, "half").expect("there is room");
    let kept = kept(dir.path());
    let first = kept.alone().expect("it is free");
    assert!(!left.exists());
    fs::write(&left, "of the first one").expect("there is room");
    let second = kept.alone().expect_err("it is taken").to_string();
    assert!(
        second.contains("manifest.json: another process writes the results"),
        "{second}"
    );
    assert!(left.exists());
    drop(first);
    assert!(kept.alone().is_ok());
    assert!(dir.path().join("shard-1-of-1.log").exists());
}

/// A device cannot be synced.
#[test]
fn a_log_is_synced_at_its_end_and_once_a_second() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut log, _) = Log::open(&kept(dir.path()), shard("1/1"), POINTS).expect("it is free");
    log.file = fs::File::options()
        .append(true)
        .open("/dev/null")
        .expect("it is there");
    log.synced = now() + SYNC;
    log.append(&record(0)).expect("it is too early");
    assert!(log.sync().is_err());
    log.synced = now()
        .checked_sub(SYNC)
        .expect("the machine is up for longer");
    assert!(log.append(&record(1)).is_err());
}

#[test]
fn logs_that_differ_about_a_point_are_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    append(dir.path(), "1/1", &[4]);
    let log = fs::read(dir.path().join("shard-1-of-1.log")).expect("it is there");
    fs::write(dir.path().join("shard-1-of-2.log"), &log).expect("there is room");
    assert_eq!(
        kept(dir.path())
            .all(POINTS)
            .expect("the same twice")
            .missing(),
        9
    );
    fs::remove_file(dir.path().join("shard-1-of-2.log")).expect("it is there");
    let (mut log, _) = Log::open(&kept(dir.path()), shard("1/2"), POINTS).expect("it is free");
    let other = Record {
        rows: Vec::new(),
        ..record(4)
    };
    log.append(&other).expect("there is room");
    let error = kept(dir.path()).all(POINTS).expect_err("they differ");
    assert!(
        error
            .to_string()
            .starts_with("point 4: has other rows in another log")
    );
}

#[test]
fn a_log_of_another_sweep_has_nothing_here() {
    let (own, other) = (tempfile::tempdir(), tempfile::tempdir());
    let (own, other) = (own.expect("a folder"), other.expect("a folder"));
    append(own.path(), "1/2", &[0]);
    let mut manifest = manifest();
    manifest.sweep.push('2');
    let kept_other = Folder::open(other.path(), &manifest, true).expect("a folder");
    let (mut log, _) = Log::open(&kept_other, shard("2/2"), POINTS).expect("it is free");
    log.append(&record(1)).expect("there is room");
    let name = "shard-2-of-2.log";
    fs::copy(other.path().join(name), own.path().join(name)).expect("there is room");
    assert_eq!(append(own.path(), "1/1", &[]), [0]);
    assert_eq!(
        kept(own.path())
            .all(POINTS)
            .expect("it can be read")
            .missing(),
        9
    );
}

#[test]
fn results_of_something_else_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    kept(dir.path());
    let change = |change: fn(&mut Manifest)| {
        let mut other = manifest();
        change(&mut other);
        let refused = Folder::open(dir.path(), &other, true).expect_err("it differs");
        refused.to_string()
    };
    let version = "these results are of blksim 1, sources p; this is";
    assert!(change(|of| of.version.push('2')).contains(version));
    assert!(change(|of| of.program.push('q')).contains(version));
    assert!(change(|of| of.sweep.push('t')).contains("the file of the sweep is another one now"));
    let changed = change(|of| *of.inputs.get_mut("one").expect("it is there") = "2".to_owned());
    assert!(changed.contains("is another one now: one;"), "{changed}");
    let none = Folder::open(&dir.path().join("none"), &manifest(), false);
    assert!(
        none.expect_err("nothing is there")
            .to_string()
            .contains("cannot read")
    );
    assert!(!dir.path().join("none").exists());
}

#[test]
fn shards_by_option_and_by_slurm() {
    let of = |option: Option<&str>, slurm: &[(&str, &str)]| {
        let variable = |name: &str| {
            let found = slurm.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Shard::of(option, variable).map_or_else(|e| e.to_string(), |shard| shard.to_string())
    };
    assert_eq!(of(None, &[]), "1/1");
    assert_eq!(of(Some("3/8"), &[("SLURM_ARRAY_TASK_ID", "1")]), "3/8");
    for wrong in ["0/8", "9/8", "8", "a/b", "1/0"] {
        assert!(of(Some(wrong), &[]).contains("expected I/N"), "{wrong}");
    }
    let array = |id, least, count| {
        let name = |of| format!("SLURM_ARRAY_TASK_{of}");
        let names = [name("ID"), name("MIN"), name("COUNT")];
        let values = [id, least, count];
        let all: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(values).collect();
        of(None, &all)
    };
    assert_eq!(array("0", "0", "4"), "1/4");
    assert_eq!(array("7", "4", "4"), "4/4");
    assert!(array("9", "4", "4").contains("expected --shard I/N"));
}
