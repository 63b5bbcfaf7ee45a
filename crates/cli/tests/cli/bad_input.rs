//! Bad input: one clear error each, exit code 2, nothing printed, nothing written, no panic.

use crate::place::Place;

/// A scenario that runs, to be spoilt.
const GOOD: &str = "\
[machine]
cpus = 2
[device]
type = \"null_blk\"
[[job]]
rw = \"randread\"
direct = 1
number_ios = 10
";

/// A fio job that runs.
const GOOD_FIO: &str = "\
[global]
direct=1
filename=/dev/nullb0
[one]
number_ios=10
";

/// Arguments, separated by blanks, and words of the error. `bad.toml` is good here.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("frobnicate", &["frobnicate"]),
    (
        "run mq-deadline-scalin",
        &["mq-deadline-scalin", "did you mean mq-deadline-scaling"],
    ),
    ("run zzz", &["zzz", "blksim list"]),
    (
        "run bad.toml --without line",
        &[
            "--without",
            "no mechanism `line`",
            "lines, distance, overlap",
        ],
    ),
    ("run bad.toml --without lines,,smt", &["--without", "``"]),
    (
        "run bad.toml --without smt,smt",
        &["--without", "smt is there twice"],
    ),
    ("plot bad.toml", &["--output"]),
    (
        "plot bad.toml --png -o out",
        &["--png", "SVG only", "rsvg-convert"],
    ),
    ("plot -o out", &["REPORT.json|SCENARIO"]),
    ("plot absent.json -o out", &["absent.json", "cannot read"]),
    ("plot bad.toml bad.toml -o out", &["SCENARIO", "twice"]),
    (
        "plot bad.toml --threads 0 -o out",
        &["--threads", "`0`", "from 1"],
    ),
    (
        "plot bad.toml --threads 4..2 -o out",
        &["--threads", "4..2"],
    ),
    (
        "plot bad.toml --threads 1,,2 -o out",
        &["--threads", "1..8"],
    ),
    ("plot bad.toml --threads 99999 -o out", &["99999", "4096"]),
    (
        "plot bad.toml --schedulers none, -o out",
        &["--scheduler", "empty"],
    ),
    (
        "plot bad.toml --schedulers none,none -o out",
        &["--scheduler", "none is there twice"],
    ),
    (
        "plot bad.toml --schedulers cfq -o out",
        &["--scheduler cfq", "of the path single-queue"],
    ),
    (
        "plot bad.toml --threads 2 --set job.numjobs=3 -o out",
        &["job.numjobs"],
    ),
    ("plot bad.toml -o bad.toml", &["bad.toml", "cannot write"]),
    ("compare bad.toml", &["one variant", "--scheduler"]),
    ("compare bad.toml --seeds 0", &["--seeds"]),
    (
        "compare bad.toml --rules v6.1,v5.4",
        &["--rules v5.4", "v6.12"],
    ),
    (
        "compare bad.toml --scheduler none,mq-deadline --seed 9223372036854775807",
        &["--seed", "5 seeds"],
    ),
    (
        "compare bad.toml --scheduler none,mq-deadline --json=c --csv=c",
        &["--csv", "same place"],
    ),
    ("run bad.toml --trace-window 1ms,2ms", &["--trace-perfetto"]),
    (
        "run bad.toml --trace-perfetto t.json --trace-window 2ms,1ms",
        &["--trace-window", "earlier time first"],
    ),
    (
        "run bad.toml --trace-perfetto t.json --trace-window 1,2",
        &["--trace-window", "ns, us, ms or s"],
    ),
    (
        "run bad.toml --trace-perfetto t.json --trace-window 50s,51s",
        &["--trace-window", "nothing happened"],
    ),
    (
        "run bad.toml --trace-perfetto absent/t.json",
        &["absent/t.json", "cannot write"],
    ),
    ("run bad.toml --trace-perfetto -", &["expected a file"]),
    ("show zzz", &["zzz", "blksim list"]),
    (
        "run ./randread",
        &["./randread", "expected a file named *.toml or *.fio"],
    ),
    ("run absent.toml", &["absent.toml", "cannot read"]),
    ("run bad.toml --frob", &["--frob"]),
    ("run bad.toml -- --name=x", &["cannot be used with"]),
    (
        "run bad.toml --scheduler cfq",
        &[
            "error: --scheduler cfq: queue.scheduler",
            "of the path single-queue",
        ],
    ),
    (
        "run bad.toml --scheduler mq-dedline",
        &["--scheduler mq-dedline", "did you mean `mq-deadline`"],
    ),
    ("run bad.toml --rules v5.4", &["--rules v5.4", "v6.12"]),
    (
        "run bad.toml --machine cray",
        &["--machine cray", "ryzen-7950x"],
    ),
    (
        "run bad.toml --machine absent.toml",
        &["absent.toml", "cannot read"],
    ),
    (
        "run bad.toml --machine bad.toml",
        &["bad.toml:3: unknown field `device`", "topology"],
    ),
    (
        "run bad.toml --device floppy",
        &["--device floppy", "null_blk"],
    ),
    (
        "run bad.toml --device null_blk,irqmod=2",
        &["--device null_blk,irqmod=2", "irqmode"],
    ),
    (
        "run bad.toml --device null_blk,irqmode",
        &["--device", "PARAMETER=VALUE"],
    ),
    (
        "run bad.toml --device null_blk,irqmode=9",
        &["--device", "irqmode", "9"],
    ),
    (
        "run bad.toml --set queue.fifo_batch",
        &["--set queue.fifo_batch", "KEY=VALUE"],
    ),
    (
        "run bad.toml --set queue.fifo_bach=1",
        &["--set queue.fifo_bach=1", "fifo_batch"],
    ),
    (
        "run bad.toml --set queue.fifo_batch=many",
        &["--set queue.fifo_batch=many"],
    ),
    (
        "run bad.toml --seed 1 --set seed=2",
        &["--set seed=2", "--seed 1"],
    ),
    ("run bad.toml --seed -1", &["--seed"]),
    ("run bad.toml --seed 18446744073709551616", &["--seed"]),
    (
        "run bad.toml --runtime soon",
        &["--runtime soon", "runtime"],
    ),
    ("run bad.toml --json --csv=-", &["--csv", "--json"]),
    ("run bad.toml --json=x --csv=x", &["--csv", "--json"]),
    (
        "run bad.toml --json=absent/x",
        &["absent/x", "cannot write"],
    ),
    ("run bad.toml --json=.", &["cannot write"]),
    (
        "run bad.toml --csv=/dev/full",
        &["/dev/full", "cannot write", "No space"],
    ),
    (
        "run bad.toml --json=/dev/full",
        &["/dev/full", "cannot write", "No space"],
    ),
    (
        "run bad.toml --blktrace absent/dir",
        &["absent/dir", "cannot write"],
    ),
    (
        "run bad.toml --blktrace bad.toml",
        &["bad.toml", "cannot write"],
    ),
    ("run -- --name=x --direct=1", &["device", "--device"]),
    (
        "run -- --name=x --frobnicate=1",
        &["command line:2", "frobnicate"],
    ),
    ("run -- --bs=4k", &["--name"]),
    (
        "run --device nvme -- t/io_uring -d /dev/nvme0n1",
        &["command line:2", "-d", "not a number"],
    ),
    (
        "run --device nvme,poll_queues=1 -- t/io_uring -p1 -a1",
        &["command line:3", "-a", "ioengine=libaio"],
    ),
    (
        "run --device nvme -- t/io_uring -r1 -p1 /dev/nvme0n1",
        &["-- -p1", "hipri", "no poll queues"],
    ),
    (
        "run -- t/io_uring -r1 /dev/fd0",
        &["-- /dev/fd0", "filename"],
    ),
    (
        "run nvme-polled --set job.rate=1m",
        &["job.rate", "t/io_uring has nothing of the kind"],
    ),
    (
        "run nvme-polled --set job.rw=randwrite",
        &["job.rw", "only reads"],
    ),
    (
        "run nvme-polled --set job.buffered=1",
        &["job.buffered", "always the other way"],
    ),
    ("run nvme-polled --set job.bs=1000g", &["job.bs", "absurd"]),
    (
        "run -- --name=x --iodepth=lots",
        &["command line:2", "iodepth"],
    ),
];

/// A part of `GOOD`, its replacement, and words of the error of `run bad.toml`.
const SCENARIOS: &[(&str, &str, &[&str])] = &[
    ("[machine]", "[machine", &["bad.toml:1"]),
    (
        "cpus = 2",
        "cpu = 2",
        &["bad.toml:2", "unknown field `cpu`", "`cpus`"],
    ),
    ("cpus = 2", "cpus = \"two\"", &["bad.toml:2"]),
    (
        "cpus = 2",
        "cpus = 0",
        &["bad.toml:2", "machine.cpus", "1 to 32"],
    ),
    (
        "cpus = 2",
        "cpus = 99",
        &["bad.toml:2", "machine.cpus", "1 to 32"],
    ),
    ("cpus = 2", "hz = 7", &["bad.toml:2", "machine.hz", "250"]),
    (
        "null_blk",
        "null_bulk",
        &["bad.toml:4", "device.type", "null_blk"],
    ),
    ("type =", "bs = 7\ntype =", &["bad.toml:4", "device.bs"]),
    (
        "type =",
        "latency_ns = 7\ntype =",
        &["bad.toml:4", "device.latency_ns"],
    ),
    (
        "type =",
        "hw_queue_depth = 0\ntype =",
        &["bad.toml:4", "device.hw_queue_depth"],
    ),
    ("type =", "gb = 99999999999\ntype =", &["bad.toml:4"]),
    (
        "[[job]]",
        "[device.fault]\nbusy = \"3/2\"\n[[job]]",
        &["bad.toml:6", "1/1000"],
    ),
    (
        "[device]",
        "[queue]\nnr_requests = 0\n[device]",
        &["bad.toml:4", "queue.nr_requests"],
    ),
    (
        "[device]",
        "[queue]\nnr_requests = 1000000\n[device]",
        &["bad.toml:4", "queue.nr_requests"],
    ),
    (
        "[device]",
        "[queue]\nscheduler = \"none\"\nfifo_batch = 1\n[device]",
        &["bad.toml:5", "queue.fifo_batch"],
    ),
    ("[[job]]\n", "", &["bad.toml"]),
    (
        "rw = \"randread\"",
        "rw = \"randomread\"",
        &["bad.toml:6", "rw"],
    ),
    (
        "direct = 1",
        "direct = 0\nioengine = \"libaio\"",
        &["bad.toml:7", "direct", "libaio blocks"],
    ),
    (
        "direct = 1",
        "direct = 1\nbuffered = 1",
        &["bad.toml:8", "buffered"],
    ),
    ("direct = 1", "direct = 1\nbs = 0", &["bad.toml:8", "bs"]),
    ("direct = 1", "direct = 1\nbs = 513", &["bad.toml:8", "bs"]),
    (
        "direct = 1",
        "direct = 1\nbs = \"1t\"",
        &["bad.toml:8", "bs"],
    ),
    (
        "direct = 1",
        "direct = 1\niodepth = 0",
        &["bad.toml:8", "iodepth"],
    ),
    (
        "direct = 1",
        "direct = 1\nioengine = \"libaio\"\niodepth = 1000000000",
        &["bad.toml", "iodepth"],
    ),
    (
        "direct = 1",
        "direct = 1\nnumjobs = 100000000",
        &["bad.toml:8", "numjobs"],
    ),
    (
        "direct = 1",
        "direct = 1\nioengine = \"sync\"\nhipri = 1",
        &["bad.toml:9", "hipri"],
    ),
    (
        "direct = 1",
        "direct = 1\ncpus_allowed = \"5\"",
        &["bad.toml:8", "cpus_allowed"],
    ),
    (
        "direct = 1",
        "direct = 1\noffset = \"100t\"",
        &["bad.toml:8", "offset"],
    ),
    (
        "direct = 1",
        "direct = 1\nverify = \"md5\"",
        &["bad.toml:8", "verify"],
    ),
    (
        "direct = 1",
        "direct = 1\nrwmixread = 20\nrwmixwrite = 20",
        &["bad.toml", "rwmix"],
    ),
];

/// The same of `GOOD_FIO` for `run bad.fio`.
const FIO_JOBS: &[(&str, &str, &[&str])] = &[
    (
        "number_ios=10",
        "number_oi=10",
        &["bad.fio:5", "number_oi", "number_ios"],
    ),
    (
        "number_ios=10",
        "rw=sideways",
        &["bad.fio:5", "rw", "sideways"],
    ),
    ("number_ios=10", "bs=4q", &["bad.fio:5", "bs"]),
    (
        "number_ios=10",
        "include other.fio",
        &["bad.fio:5", "include"],
    ),
    ("direct=1", "direct=1\nbuffered=1", &["bad.fio", "buffered"]),
    ("[one]", "[one", &["bad.fio:4"]),
    ("[one]", "", &["bad.fio"]),
    (
        "filename=/dev/nullb0\n",
        "",
        &["bad.fio", "device", "--device"],
    ),
    (
        "/dev/nullb0",
        "/tmp/file",
        &["bad.fio:3", "filename", "/tmp/file"],
    ),
    (
        "/dev/nullb0",
        "/dev/nullb0/../../tmp/x",
        &["bad.fio:3", "filename", "no device that is modelled"],
    ),
    (
        "number_ios=10",
        "thinktime=99999999999999999999",
        &["bad.fio:5", "thinktime", "64 bits"],
    ),
    (
        "number_ios=10",
        "number_ios=0",
        &["bad.fio:5", "number_ios"],
    ),
    ("number_ios=10", "runtime=-1", &["bad.fio:5", "runtime"]),
    ("number_ios=10", "size=99999999t", &["bad.fio:5", "size"]),
    ("number_ios=10", "numjobs=0", &["bad.fio:5", "numjobs"]),
    (GOOD_FIO, "", &["bad.fio", "no job"]),
];

/// Runs `blksim` where `bad.toml` and `bad.fio` have this content. Returns the problems of the
/// refusal.
fn complaints(args: &[&str], content: &str, says: &[&str]) -> Vec<String> {
    let place = Place::new();
    place.write("bad.toml", content);
    place.write("bad.fio", content);
    let ran = place.blksim(args);
    let mut wrong = Vec::new();
    if ran.code != Some(2) {
        wrong.push("exit code is not 2".to_owned());
    }
    if !ran.stdout.is_empty() {
        wrong.push("standard output is not empty".to_owned());
    }
    if !ran.stderr.starts_with("error: ") {
        wrong.push("no error".to_owned());
    }
    let silent = says.iter().filter(|word| !ran.stderr.contains(**word));
    wrong.extend(silent.map(|word| format!("does not say {word:?}")));
    if place.files() != ["bad.fio", "bad.toml"] {
        wrong.push("something was written".to_owned());
    }
    for complaint in &mut wrong {
        *complaint = format!("{args:?}, {content:?}: {complaint}: {ran:?}");
    }
    wrong
}

#[test]
fn every_wrong_argument_is_reported() {
    let wrong: Vec<String> = ARGUMENTS
        .iter()
        .flat_map(|(args, says)| {
            let args: Vec<&str> = args.split(' ').collect();
            complaints(&args, GOOD, says)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_wrong_scenario_is_reported() {
    let mut wrong = Vec::new();
    for (old, new, says) in SCENARIOS {
        assert!(GOOD.contains(old), "{old}");
        let content = GOOD.replacen(old, new, 1);
        wrong.extend(complaints(&["run", "bad.toml"], &content, says));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_wrong_fio_job_is_reported() {
    let mut wrong = Vec::new();
    for (old, new, says) in FIO_JOBS {
        assert!(GOOD_FIO.contains(old), "{old}");
        let content = GOOD_FIO.replacen(old, new, 1);
        wrong.extend(complaints(&["run", "bad.fio"], &content, says));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_unspoilt_inputs_run() {
    let place = Place::new();
    place.write("good.toml", GOOD);
    place.write("good.fio", GOOD_FIO);
    for file in ["good.toml", "good.fio"] {
        let ran = place.blksim(&["run", file]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn no_text_is_no_scenario() {
    let place = Place::new();
    place.write("latin.toml", b"description = \"gr\xfc\xdfe\"\n");
    place.write("long.toml", vec![b'#'; (1 << 20) + 1]);
    std::fs::create_dir(place.path("dir.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.toml")).unwrap();
    for (file, says) in [
        ("latin.toml", "byte 17"),
        ("long.toml", "longer than 1048576 bytes"),
        ("zero.toml", "longer than 1048576 bytes"),
        ("dir.toml", "cannot read"),
    ] {
        let ran = place.blksim(&["run", file]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(file), "{ran:?}");
        assert!(ran.stderr.contains(says), "{ran:?}");
    }
}

#[test]
fn without_arguments_there_is_help() {
    let place = Place::new();
    for args in [&[][..], &["run"]] {
        let ran = place.blksim(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("Usage: blksim"), "{ran:?}");
        assert!(ran.stderr.contains("Exit codes:"), "{ran:?}");
    }
}

/// A profile that extends another: beside it, in a circle, or not there.
#[test]
fn profiles_that_extend_others() {
    let place = Place::new();
    std::fs::create_dir(place.path("dir")).unwrap();
    place.write(
        "dir/base.toml",
        "extends = \"xeon-10c\"\nname = \"base\"\nclock_mhz = 1000\n",
    );
    place.write(
        "dir/mine.toml",
        "extends = \"base.toml\"\nname = \"mine\"\n",
    );
    let run = |machine: &str| {
        let run = [
            "run",
            "null-blk-one-thread",
            "--runtime",
            "1ms",
            "--ramp-time",
            "0",
            "--json",
        ];
        place.blksim(&[&run[..], &["--machine", machine]].concat())
    };
    let ran = run("dir/mine.toml");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["blksim"]["machine"], "mine");
    assert_eq!(report["blksim"]["cpus"], 10);
    place.write(
        "dir/base.toml",
        "extends = \"./mine.toml\"\nname = \"base\"\n",
    );
    place.write(
        "dir/lost.toml",
        "extends = \"none.toml\"\nname = \"lost\"\n",
    );
    let wrong = "extends = \"xeon-10c\"\nname = \"w\"\n\n[cycles]\nsyscal = 1\n";
    place.write("dir/wrong.toml", wrong);
    for (machine, want) in [
        ("dir/mine.toml", "extends goes round in a circle"),
        ("dir/lost.toml", "dir/none.toml: cannot read"),
        ("dir/wrong.toml", "dir/wrong.toml:5: unknown field `syscal`"),
    ] {
        let ran = run(machine);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{machine}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(want), "{}", ran.stderr);
    }
}
