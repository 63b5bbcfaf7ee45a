use std::path::Path;

use blkmq::time::Duration;

use super::super::{FioEngine, FioJob, JobFile, ReadWrite, parse_command_line, parse_file};

fn parse(line: &str) -> crate::Result<JobFile> {
    parse_command_line(&line.split_whitespace().collect::<Vec<_>>())
}

fn job(line: &str) -> FioJob {
    let mut parsed = parse(line).unwrap();
    assert_eq!(parsed.jobs.len(), 1);
    parsed.jobs.pop().unwrap()
}

fn depths(job: &FioJob) -> (u32, u32, u32) {
    let complete = job.iodepth_batch_complete_min;
    (job.iodepth, job.iodepth_batch, complete)
}

#[test]
fn defaults_are_those_of_the_program() {
    let j = job("t/io_uring /dev/nvme0n1");
    assert_eq!(
        (j.ioengine, j.name.as_str()),
        (FioEngine::TIoUring, "t/io_uring")
    );
    assert_eq!(depths(&j), (128, 32, 32));
    assert_eq!((j.bs.read.min, j.bs.read.max), (4096, 4096));
    let random_reads = ReadWrite {
        read: true,
        write: false,
        trim: false,
        random: true,
    };
    assert_eq!(j.rw, random_reads);
    assert!(j.hipri && j.fixedbufs && j.registerfiles && j.register_ring);
    assert!(j.direct && j.norandommap && j.thread && j.time_based);
    assert_eq!(j.numjobs, 1);
    assert_eq!(j.filenames, ["/dev/nvme0n1"]);
}

#[test]
fn options_are_those_of_getopt() {
    let line = "../fio/t/io_uring -d64 -s 16 -c16 /dev/nvme0n1 -b512 -p0 -B0 -F0 -X0 -R0 -n4 -r2 \
                -O1 -N0 -t0 -a0 -D0 -S0 -P0 -u0 -- -x";
    let j = job(line);
    assert_eq!(depths(&j), (64, 16, 16));
    assert_eq!(j.bs.read.min, 512);
    assert!(!j.hipri && !j.fixedbufs && !j.registerfiles && !j.register_ring);
    assert!(!j.rw.random);
    assert_eq!((j.numjobs, j.runtime), (4, Some(Duration::from_secs(2))));
    assert_eq!(j.filenames, ["/dev/nvme0n1", "-x"]);
    // The last occurrence of a letter counts; every value but 0 is 1; units of time are an
    // extension.
    let j = job("t/io_uring -d1 -d8 -p0 -p7 -r50ms");
    assert_eq!((j.iodepth, j.hipri), (8, true));
    assert_eq!(j.runtime, Some(Duration::from_millis(50)));
}

#[test]
fn batches_are_cut_at_the_depth() {
    assert_eq!(depths(&job("t/io_uring -d8")), (8, 8, 8));
    assert_eq!(depths(&job("t/io_uring -s0 -c0")), (128, 1, 1));
}

#[test]
fn without_a_runtime_it_runs_for_a_second_and_says_so() {
    for line in ["t/io_uring", "t/io_uring -r0"] {
        let parsed = parse(line).unwrap();
        assert_eq!(parsed.jobs[0].runtime, Some(Duration::from_secs(1)));
        assert_eq!(parsed.ignored.len(), 1, "{:?}", parsed.ignored);
        assert!(parsed.ignored[0].why.contains("for a second"));
    }
    assert!(parse("t/io_uring -r1").unwrap().ignored.is_empty());
}

#[test]
fn what_is_wrong_or_not_modelled_is_one_error_with_its_letter() {
    for (line, want) in [
        ("t/io_uring -d", "2: -d: needs a value"),
        ("t/io_uring -dx", "2: -d: `x` is not a number"),
        ("t/io_uring -d=64", "2: -d: `=64` is not a number"),
        ("t/io_uring -d-1", "2: -d: `-1` is negative"),
        ("t/io_uring -b4k", "2: -b: `4k` is not a whole number"),
        ("t/io_uring -d0", "2: -d0 (iodepth): is at least 1"),
        (
            "t/io_uring -d40000",
            "2: -d40000 (iodepth): a ring has at most 32768",
        ),
        ("t/io_uring -d64 -n 0", "3: -n (numjobs): is at least 1"),
        (
            "t/io_uring -b1000",
            "2: -b1000 (bs): 1000 bytes are not whole",
        ),
        ("t/io_uring -r1x", "2: -r: `1x` has an unknown unit"),
        (
            "t/io_uring -x1",
            "2: -x: there is no such option; there are -d -s",
        ),
        ("t/io_uring --depth=1", "2: --: there is no such option"),
        ("t/io_uring -O0", "2: -O: not modelled: buffered I/O"),
        ("t/io_uring -N1", "2: -N: not modelled: no-ops"),
        ("t/io_uring -t1", "2: -t: not modelled: clock reads"),
        ("t/io_uring -T1000", "2: -T: a clock rate"),
        ("t/io_uring -a1", "2: -a: not modelled: its libaio loop"),
        ("t/io_uring -S1", "2: -S: not modelled: preadv2"),
        ("t/io_uring -D1", "2: -D: not modelled: no modelled kernel"),
        (
            "t/io_uring -P1",
            "2: -P: not modelled: the machine has one node",
        ),
        ("t/io_uring -u1", "2: -u: not modelled: passthrough"),
    ] {
        let error = parse(line).unwrap_err().to_string();
        let place = format!("command line, argument {want}");
        assert!(error.contains(&place), "{line}: {error}");
    }
}

#[test]
fn fio_has_no_such_engine_and_no_such_option() {
    let error = |text: &str| {
        parse_file(Path::new("j.fio"), text)
            .unwrap_err()
            .to_string()
    };
    let engine = error("[a]\nioengine=t/io_uring\n");
    assert!(
        engine.contains("j.fio:2: ioengine: is no engine"),
        "{engine}"
    );
    let ring = error("[a]\nioengine=io_uring\nregister_ring=1\n");
    assert!(
        ring.contains("j.fio:3: register_ring: is an option of t/io_uring"),
        "{ring}"
    );
    let line = parse("--name=a --ioengine=t/io_uring")
        .unwrap_err()
        .to_string();
    assert!(line.contains("2: ioengine: is no engine"), "{line}");
}
