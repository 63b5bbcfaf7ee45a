//! Signals, and a reader that leaves.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use study::fleet::Stop;

use crate::place::Place;

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_blksim"))
        .arg("list")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "");
}

#[test]
fn ctrl_c_leaves_the_report_so_far() {
    let place = Place::new();
    place.write("report.json", "old");
    let mut child = Command::new(env!("CARGO_BIN_EXE_blksim"))
        .current_dir(place.0.path())
        .args([
            "run",
            "nvme-randread",
            "--runtime",
            "1h",
            "--json=report.json",
            "--csv=report.csv",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A run of an hour says after a second what it has.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut note = String::new();
    stderr.read_line(&mut note).unwrap();
    for words in [
        "note: ",
        " of 3600 s simulated, so far read ",
        "; the rest takes about ",
        "Ctrl-C prints the report so far",
        "--runtime 1s",
    ] {
        assert!(note.contains(words), "{words}: {note}");
    }
    assert_eq!(
        place.files().len(),
        3,
        "two temporary files: {:?}",
        place.files()
    );
    let killed = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(130), "{rest}");
    assert!(rest.contains("error: interrupted after "), "{rest}");
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(
        shown.contains("\n  CUT by a signal: figures up to "),
        "{shown}"
    );
    assert_eq!(place.files(), ["report.csv", "report.json"]);
    let text = std::fs::read_to_string(place.path("report.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let (run, read) = (&report["blksim"], &report["jobs"][0]["read"]);
    assert_eq!(run["outcome"], "cut");
    let (ns, ios) = (&run["measured_ns"], &read["total_ios"]);
    let (ns, ios) = (ns.as_f64().unwrap(), ios.as_f64().unwrap());
    let iops = read["iops"].as_f64().unwrap();
    assert!(
        ios > 0.0 && (iops / (ios / ns * 1e9) - 1.0).abs() < 0.01,
        "{text}"
    );
    let rows = std::fs::read_to_string(place.path("report.csv")).unwrap();
    assert!(rows.lines().nth(1).unwrap().contains(",cut,"), "{rows}");
}

/// Ctrl-C while several threads are at it: nothing is printed, and no file is left.
#[test]
fn ctrl_c_ends_all_threads_and_leaves_nothing() {
    for arguments in [
        "compare nvme-randread --scheduler none,mq-deadline --runtime 1h --json=a.json --jobs 2",
        "plot nvme-randread --threads 1,2 --runtime 1h -o pictures --jobs 2",
        "sensitivity xeon-10c --runtime 1h --jobs 2",
    ] {
        let place = Place::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_blksim"))
            .current_dir(place.0.path())
            .args(arguments.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // One thread that waits for the signal, one that prints progress, and two that run.
        let tasks = format!("/proc/{}/task", child.id());
        let running = || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 4);
        while !running() {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
            std::thread::yield_now();
        }
        let killed = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        let ran = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(130), "{arguments}: {stderr}");
        assert!(
            stderr.contains("interrupted after 0 of "),
            "{arguments}: {stderr}"
        );
        assert!(
            stderr.contains("no output was written"),
            "{arguments}: {stderr}"
        );
        assert_eq!(ran.stdout, b"", "{arguments}");
        assert_eq!(place.files(), Vec::<String>::new(), "{arguments}");
    }
}

/// Two variants of milliseconds and one of an hour: what has ended is written. A busy machine may
/// not have ended anything yet.
#[test]
fn ctrl_c_leaves_the_runs_that_have_ended() {
    for (command, marks) in [
        (
            "compare",
            [
                "CUT by a signal: 2 of 3 variants",
                "the output has 2 of 3 variants",
            ],
        ),
        (
            "run",
            [
                "CUT by a signal: 4 of the runs",
                "interrupted after 4 of 6 runs, which",
            ],
        ),
    ] {
        let arguments = "small.toml --set job.runtime=1ms,2ms,1h --seeds 2 --jobs 3 --json=a.json";
        let cut = ["0.5", "2", "8", "30"].into_iter().find_map(|seconds| {
            let place = Place::small();
            let ran = Command::new("timeout")
                .current_dir(place.0.path())
                .args(["--preserve-status", "-s", "INT", seconds])
                .args([env!("CARGO_BIN_EXE_blksim"), command])
                .args(arguments.split(' '))
                .output()
                .unwrap();
            assert_eq!(ran.status.code(), Some(130), "{ran:?}");
            let [out, err] = [ran.stdout, ran.stderr].map(|of| String::from_utf8(of).unwrap());
            let is_there = out.contains(marks[0]);
            assert!(is_there || !err.contains(marks[1]), "{out}{err}");
            is_there.then_some((place, err))
        });
        let (place, err) = cut.expect("the short runs end");
        assert!(err.contains(marks[1]), "{err}");
        let text = std::fs::read_to_string(place.path("a.json")).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        match command {
            "compare" => {
                assert_eq!(json["cut"], "2 of 3 variants");
                let rows = json["measures"]["iops"]["variants"].as_array().unwrap();
                assert_eq!(rows.len(), 2, "{text}");
            }
            _ => assert_eq!(json.as_array().map(Vec::len), Some(4), "{text}"),
        }
    }
}

/// The table of a sweep whose points are all there.
#[test]
fn ctrl_c_in_a_merge_leaves_no_table() {
    let place = Place::small();
    let file = place.path("s.toml");
    place.write("s.toml", "scenario = \"small.toml\"\n");
    let stop = Stop::default();
    let part = |part: &str| {
        let words = ["sweep".into(), part.into(), file.clone().into()];
        blksim::inside(words.to_vec(), None, Arc::clone(&stop))
    };
    assert_eq!(part("run").code, 0);
    stop.set(()).unwrap();
    let merged = part("merge");
    assert_eq!(merged.code, 130);
    assert_eq!(merged.err, "error: interrupted; no output was written\n");
    let files = std::fs::read_dir(place.path("s.sweep")).unwrap();
    assert_eq!(files.count(), 2, "manifest and log");
}

/// One thread on a device that answers at once: no event comes from other CPUs.
#[test]
fn ctrl_c_stops_a_single_thread() {
    let place = Place::new();
    // It passes the signal on, and kills a process that does not end: 137.
    let mut child = Command::new("timeout")
        .current_dir(place.0.path())
        .args(["-s", "KILL", "20", env!("CARGO_BIN_EXE_blksim"), "run"])
        .args(["--device", "null_blk,irqmode=0", "--json=report.json"])
        .args(["--blktrace", "trace", "--set", "machine.cpus=1"])
        .args(["--", "--name=x", "--rw=randread", "--direct=1"])
        .args(["--time_based", "--runtime=1h"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let partial = place.path("trace").join(".nullb0.blktrace.0.partial");
    let grows = || partial.metadata().is_ok_and(|file| file.len() > 1 << 20);
    while !grows() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::yield_now();
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(130));
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert!(
        stderr.contains("nothing was written for --blktrace"),
        "{stderr}"
    );
    assert_eq!(place.files(), ["report.json"]);
}
