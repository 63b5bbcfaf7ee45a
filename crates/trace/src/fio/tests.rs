use std::collections::BTreeSet;
use std::path::Path;

use blkmq::time::Duration;

use super::{
    CpusPolicy, Extent, FioEngine, FioJob, JobFile, ReadWrite, SizeRange, nearest,
    parse_command_line, parse_file,
};
use crate::ftrace::IoPriority;

fn file(text: &str) -> crate::Result<JobFile> {
    parse_file(Path::new("j.fio"), text)
}

fn args(line: &str) -> crate::Result<JobFile> {
    parse_command_line(&line.split_whitespace().collect::<Vec<_>>())
}

/// The only job of `--name=j` and these options.
fn job(options: &str) -> FioJob {
    let mut all = args(&format!("--name=j {options}")).unwrap();
    assert_eq!(all.jobs.len(), 1);
    all.jobs.pop().unwrap()
}

fn fixed(bytes: u64) -> SizeRange {
    SizeRange {
        min: bytes,
        max: bytes,
    }
}

#[test]
fn defaults_are_those_of_fio() {
    let j = job("");
    assert_eq!(
        j.rw,
        ReadWrite {
            read: true,
            write: false,
            trim: false,
            random: false
        }
    );
    assert_eq!(
        (j.ioengine, j.bs.read, j.iodepth),
        (FioEngine::Psync, fixed(4096), 1)
    );
    assert_eq!(
        (j.numjobs, j.direct, j.thread, j.randrepeat),
        (1, false, false, true)
    );
    assert_eq!((j.runtime, j.number_ios, j.priority), (None, None, None));
    assert_eq!((j.size, j.offset), (Extent::Percent(100), Extent::Bytes(0)));
    let j = job("--ioengine=libaio --iodepth=32");
    assert_eq!((j.iodepth_batch, j.iodepth_low), (1, 32));
    assert_eq!(
        (j.iodepth_batch_complete_min, j.iodepth_batch_complete_max),
        (1, 1)
    );
}

#[test]
fn batches_follow_the_depth() {
    let cases = [
        ("--iodepth_batch=0", (32, 1, 1)),
        ("--iodepth_batch_submit=64", (32, 1, 1)),
        ("--iodepth_batch=8 --iodepth_batch_complete=4", (8, 4, 4)),
        ("--iodepth_batch_complete_min=0", (1, 0, 0)),
        (
            "--iodepth_batch_complete_min=0 --iodepth_batch_complete_max=16",
            (1, 0, 16),
        ),
        (
            "--iodepth_batch_complete_min=40 --iodepth_batch_complete_max=2",
            (1, 32, 32),
        ),
    ];
    for (options, want) in cases {
        let j = job(&format!("--ioengine=io_uring --iodepth=32 {options}"));
        let got = (
            j.iodepth_batch,
            j.iodepth_batch_complete_min,
            j.iodepth_batch_complete_max,
        );
        assert_eq!(got, want, "{options}");
    }
}

#[test]
fn sizes_times_and_lists() {
    let bs = |text: &str| {
        let j = job(text);
        [j.bs.read, j.bs.write, j.bs.trim]
    };
    assert_eq!(bs("--bs=8k"), [fixed(8192); 3]);
    assert_eq!(bs("--bs=4k,8k"), [fixed(4096), fixed(8192), fixed(8192)]);
    assert_eq!(
        bs("--bs=4k,8k,16K"),
        [fixed(4096), fixed(8192), fixed(16384)]
    );
    assert_eq!(bs("--bs=,8k"), [fixed(4096), fixed(8192), fixed(8192)]);
    assert_eq!(bs("--bs=,8k,"), [fixed(4096), fixed(8192), fixed(4096)]);
    assert_eq!(bs("--blocksize=0x1000"), [fixed(4096); 3]);
    // Numbers of fio 3.33: only the long forms are reversed.
    for text in ["4k", "4K", "4ki", "4Ki", "4kb", "4096b"] {
        assert_eq!(bs(&format!("--bs={text}")), [fixed(4096); 3], "{text}");
    }
    assert_eq!(bs("--bs=4kib"), [fixed(4000); 3]);
    assert_eq!(bs("--bs=4ki --kb_base=1000"), [fixed(4000); 3]);
    assert_eq!(bs("--bs=4k --kb_base=1000"), [fixed(4000); 3]);
    assert_eq!(bs("--kb_base=1000 --bs=4KiB"), [fixed(4096); 3]);
    assert_eq!(
        bs("--bsrange=4k-16k")[0],
        SizeRange {
            min: 4096,
            max: 16384
        }
    );

    let time = |text: &str| job(&format!("--runtime={text}")).runtime.map(|d| d.0);
    assert_eq!(time("60"), Some(60_000_000_000));
    assert_eq!(time("200ms"), Some(200_000_000));
    assert_eq!(time("5us"), Some(5_000));
    assert_eq!(time("2m"), Some(120_000_000_000));
    assert_eq!(time("1d"), Some(86_400_000_000_000));
    assert_eq!(time("0"), None);
    assert_eq!(job("--thinktime=3000").thinktime, Duration::from_millis(3));
    assert_eq!(job("--timeout=1h").runtime, Some(Duration::from_secs(3600)));

    assert_eq!(job("--size=1g --size=64m").size, Extent::Bytes(64 << 20));
    assert_eq!(job("--size=50%").size, Extent::Percent(50));
    assert_eq!(
        job("--cpus_allowed=0-3,8").cpus_allowed,
        Some(vec![0, 1, 2, 3, 8])
    );
    let j = job("--rate_iops=500,200");
    assert_eq!(
        (j.rate_iops.read, j.rate_iops.write, j.rate_iops.trim),
        (500, 200, 200)
    );
    assert_eq!(
        job("--filename=/dev/a:/dev/b\\:c").filenames,
        ["/dev/a", "/dev/b:c"]
    );
    assert_eq!(job("--rw=randrw --rwmixwrite=30").rwmixread, 70);
    assert_eq!(job("--rw=randrw --rwmixread=70%").rwmixread, 70);
}

#[test]
fn priorities() {
    let prio = |class, level| {
        Some(IoPriority {
            class,
            hint: 0,
            level,
        })
    };
    assert_eq!(job("--prioclass=1 --prio=3").priority, prio(1, 3));
    assert_eq!(job("--prio=3 --prioclass=3").priority, prio(3, 3));
    assert_eq!(job("--prio=3").priority, prio(2, 3));
    assert_eq!(job("--prioclass=0").priority, prio(2, 0));
}

#[test]
fn flags_stand_alone_or_with_a_value() {
    let j = job(
        "--thread --norandommap=1 --group_reporting=0 --rw=randread -iodepth 4 --gtod_reduce=1",
    );
    assert!(j.thread && j.norandommap && j.gtod_reduce && !j.group_reporting);
    // psync has one I/O in flight for every iodepth.
    assert_eq!(j.iodepth, 1);
}

#[test]
fn sections_and_globals() {
    let all = file(
        "; a comment\n# another\n[global]\nioengine = libaio   # trailing\n direct=1\nbs=8k ;x\n\n\
         [ a ]\nrw=randread\nthread\n[global]\nbs=16k\n[b]\nioengine=sync\nbuffered=1\n[a]\nbs=512\n",
    )
    .unwrap();
    let [a, b, c] = all.jobs.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(
        (a.name.as_str(), a.bs.read, a.direct, a.thread),
        ("a", fixed(8192), true, true)
    );
    assert_eq!(
        (b.name.as_str(), b.bs.read, b.direct),
        ("b", fixed(16384), false)
    );
    // An equal name is another job.
    assert_eq!(
        (c.name.as_str(), c.bs.read, c.iodepth),
        ("a", fixed(512), 1)
    );
    assert_eq!(
        (a.line, a.line_of("bs"), b.line_of("bs"), b.line_of("fsync")),
        (8, 6, 12, 13)
    );
    assert_eq!(a.setting("bs").unwrap().value.as_deref(), Some("8k"));
    assert!(a.setting("bs").unwrap().global && !a.setting("rw").unwrap().global);
}

#[test]
fn the_command_line_of_the_calibration_run() {
    let all = args(
        "--bs=512 --group_reporting=1 --gtod_reduce=1 --invalidate=1 --ioengine=io_uring \
         --norandommap --runtime=60 --rw=randread --thread --time_based=1 --buffered=0 \
         --fixedbufs=1 --numjobs=32 --iodepth=4 --iodepth_batch_submit=4 \
         --iodepth_batch_complete=4 --name=j --filename=/dev/nullb0",
    )
    .unwrap();
    assert_eq!(all.ignored, []);
    let j = &all.jobs[0];
    assert_eq!((j.numjobs, j.iodepth, j.iodepth_batch), (32, 4, 4));
    assert_eq!(
        (j.iodepth_batch_complete_min, j.iodepth_batch_complete_max),
        (4, 4)
    );
    assert!(j.direct && j.thread && j.time_based && j.fixedbufs && j.norandommap);
    assert_eq!(j.filenames, ["/dev/nullb0"]);
}

#[test]
fn every_name_begins_a_job() {
    let all = args("--bs=8k --name=a --rw=write --name=b --name=global --bs=1m --name=c").unwrap();
    let seen: Vec<_> = all
        .jobs
        .iter()
        .map(|j| (j.name.as_str(), j.rw.write, j.bs.read.min))
        .collect();
    assert_eq!(
        seen,
        [("a", true, 8192), ("b", false, 8192), ("c", false, 1 << 20)]
    );
}

#[test]
fn what_changes_nothing_is_listed() {
    let all = args(
        "--output-format=json --name=j --comm=x --rw=read --rwmixread=70 --iodepth=8 \
         --norandommap --cpus_allowed_policy=split",
    )
    .unwrap();
    let seen: Vec<_> = all
        .ignored
        .iter()
        .map(|i| (i.line, i.option.as_str()))
        .collect();
    let want = [
        (3, "comm"),
        (5, "rwmixread"),
        (6, "iodepth"),
        (7, "norandommap"),
        (8, "cpus_allowed_policy"),
    ];
    assert_eq!(seen, want);
    assert_eq!(all.program[0].option, "output-format");
    assert_eq!(all.jobs[0].cpus_allowed_policy, CpusPolicy::Split);
    assert_eq!(
        all.ignored[2].why,
        "a synchronous ioengine has one I/O in flight"
    );
}

#[test]
fn options_that_others_leave_without_effect_are_reported() {
    let names = |text: &str| -> Vec<String> {
        let ignored = args(text).unwrap().ignored;
        ignored.into_iter().map(|i| i.option).collect()
    };
    let ignored = names("--name=j --rw=read --fsync=2 --iodepth_batch=2 --iodepth_low=1");
    assert_eq!(ignored, ["fsync", "iodepth_batch", "iodepth_low"]);
    let of_use = "--name=j --rw=rw --ioengine=libaio --iodepth=4 --fsync=2 --iodepth_batch=2";
    assert_eq!(names(of_use), [""; 0]);
}

#[test]
fn bad_files() {
    let cases = [
        ("", "j.fio: no job in it"),
        ("[global]\nbs=4k\n", "j.fio: no job in it"),
        (
            "bs=4k\n[a]\n",
            "j.fio:1: bs: comes before the first [section]",
        ),
        ("[a\nbs=4k\n", "j.fio:1: section: expected [name]"),
        ("[]\n", "j.fio:1: section: a job needs a name"),
        ("[a]\nbs 4k\n", "j.fio:2: option: `bs 4k` is neither"),
        ("[a]\n=4k\n", "j.fio:2: option: `=4k` is neither"),
        (
            "[a]\ninclude other.fio\n",
            "j.fio:2: include: other.fio: no file is read here",
        ),
        ("[global]\nbs=0\n[a]\n", "j.fio:2: bs: an I/O of 0 bytes"),
        ("[a]\niodepth\n", "j.fio:2: iodepth: needs a value"),
        (
            "[a]\nbs=${SIZE}\n",
            "j.fio:2: bs: needs a value; the environment has no variable SIZE",
        ),
    ];
    for (text, want) in cases {
        let got = file(text).unwrap_err().to_string();
        assert!(got.starts_with(want), "{text:?}\n  {got}");
    }
}

const BAD_OPTIONS: &[(&str, &str)] = &[
    (
        "--iodpeth=4",
        "2: iodpeth: not an option that blksim knows; did you mean `iodepth`?",
    ),
    (
        "--nonsense_at_all=4",
        "2: nonsense_at_all: not an option that blksim knows: `blksim reference fio` lists them",
    ),
    (
        "--serialize_overlap=1",
        "2: serialize_overlap: not modelled: waiting for an overlapping I/O; use iodepth=1",
    ),
    (
        "--verify_only=1",
        "2: verify_only: not modelled: reads to verify what no write of the job wrote",
    ),
    ("--bs=", "2: bs: needs a value"),
    ("--bs=4x", "2: bs: `4x` has an unknown unit"),
    ("--bs=big", "2: bs: `big` is not a number"),
    (
        "--bs=4k,4k,4k,4k",
        "2: bs: `4k,4k,4k,4k` has more than three",
    ),
    (
        "--bs=99999999999999999999",
        "2: bs: `99999999999999999999` is too large",
    ),
    ("--bs=2g", "2: bs: an I/O of 2147483648 bytes is too large"),
    (
        "--direct=1 --bs=1000",
        "3: bs: 1000 bytes are not whole sectors",
    ),
    ("--bsrange=16k-4k", "2: bsrange: `16k-4k` runs backwards"),
    (
        "--bs=4k --size=2k",
        "3: size: 2048 bytes do not hold one I/O",
    ),
    (
        "--size=8192p",
        "2: size: 9223372036854775808 bytes are more than any",
    ),
    ("--size=101%", "2: size: `101%` is more than 100%"),
    (
        "--direct=1 --offset=1",
        "3: offset: 1 bytes are not whole sectors",
    ),
    (
        "--direct=1 --buffered=1",
        "3: buffered: says the opposite of direct",
    ),
    ("--direct=yes", "2: direct: `yes` is neither 0 nor 1"),
    ("--direct", "2: direct: needs a value"),
    ("--thread=2", "2: thread: `2` is neither"),
    (
        "--hipri --ioengine=libaio --direct=1",
        "2: hipri: is an option of ioengine=io_uring",
    ),
    (
        "--fixedbufs",
        "2: fixedbufs: is an option of ioengine=io_uring",
    ),
    (
        "--continue_on_error=some",
        "2: continue_on_error: `some`, expected none, read",
    ),
    (
        "--ioengine=io_uring --direct=0 --hipri",
        "4: hipri: polled I/O goes around",
    ),
    ("--runtime=10x", "2: runtime: `10x` has an unknown unit"),
    ("--prio=8", "2: prio: `8` is not 0 to 7"),
    ("--prioclass=4", "2: prioclass: `4` is not 0 to 3"),
    ("--rwmixread=120", "2: rwmixread: 120 is more than 100"),
    (
        "--rw=randrw --rwmixread=60 --rwmixwrite=60",
        "4: rwmixwrite: rwmixread and",
    ),
    (
        "--rw=rnadread",
        "2: rw: `rnadread` is none of read, write, trim, randread, randwrite, randtrim, rw, \
         randrw, trimwrite, randtrimwrite; did you mean `randread`?",
    ),
    (
        "--rate_cycle=99999999999",
        "2: rate_cycle: `99999999999` is too large; expected at most 4294967295",
    ),
    (
        "--rw=rw --direct=0",
        "3: direct: not modelled: writes through the page cache, which writeback does later; write \
         direct=1",
    ),
    ("--rw=sideways", "2: rw: `sideways` is none of read, write"),
    (
        "--rw=randread:0",
        "2: rw: `0` is no number of I/Os, at least 1",
    ),
    ("--rw=randread:x", "2: rw: `x` is not a number"),
    ("--rw=read:4x", "2: rw: `4x` has an unknown unit"),
    ("--rw=trimwrite:8", "2: rw: trimwrite takes no modifier"),
    (
        "--direct=1 --rw=read:100",
        "3: rw: 100 bytes are not whole sectors of 512",
    ),
    (
        "--rw_sequencer=any",
        "2: rw_sequencer: `any` is neither sequential nor identical",
    ),
    (
        "--percentage_random=101",
        "2: percentage_random: 101 is more",
    ),
    (
        "--rate_process=even",
        "2: rate_process: `even` is neither linear nor poisson",
    ),
    (
        "--rate=1m --rate_iops=10",
        "3: rate_iops: rate is given as well",
    ),
    (
        "--rate=1000 --rate_process=poisson",
        "2: rate: with rate_process=poisson it is one I/O a second at least",
    ),
    (
        "--thinktime_blocks_type=any",
        "2: thinktime_blocks_type: `any` is neither complete nor issue",
    ),
    ("--size=-1", "2: size: `-1` is negative"),
    (
        "--bs=4k-16k",
        "2: bs: `4k-16k` is a range: write bsrange=4k-16k",
    ),
    (
        "--filesize=1m-2m",
        "2: filesize: not modelled: a range of file sizes",
    ),
    ("--filesize=0", "2: filesize: is at least 1"),
    (
        "--direct=1 --offset_increment=100",
        "3: offset_increment: 100 bytes are not whole sectors",
    ),
    ("--nrfiles=0", "2: nrfiles: without files fio does no I/O"),
    (
        "--nrfiles=2",
        "2: nrfiles: not modelled: several files in a file system",
    ),
    (
        "--bssplit=4k/50:8k/50 --bs=4k",
        "3: bs: an earlier line has bssplit, which fio uses",
    ),
    (
        "--direct=1 --bssplit=100/50:200/50",
        "3: bssplit: 100 to 200 bytes are not whole sectors",
    ),
    (
        "--ioengine=liaio",
        "2: ioengine: `liaio` is no ioengine of fio; did you mean `libaio`?",
    ),
    (
        "--ioengine=mmap",
        "2: ioengine: not modelled: mmap (page faults)",
    ),
    (
        "--ioengine=io_uring --direct=1 --iodepth=0",
        "4: iodepth: is at least 1",
    ),
    (
        "--ioengine=io_uring --direct=1 --iodepth=1m",
        "4: iodepth: 1048576 is too many",
    ),
    ("--numjobs=5000", "2: numjobs: 5000 is too many"),
    ("--cpus_allowed=,", "2: cpus_allowed: names no CPU"),
    (
        "--cpus_allowed=3-1",
        "2: cpus_allowed: `3-1` runs backwards",
    ),
    (
        "--cpus_allowed=a",
        "2: cpus_allowed: `a` is not a CPU number",
    ),
    (
        "--cpus_allowed_policy=some",
        "2: cpus_allowed_policy: `some`",
    ),
    ("--startdelay=1-5", "2: startdelay: not modelled: a range"),
    ("--kb_base=1023", "2: kb_base: expected 1024 or 1000"),
    ("--filename=/dev/a::", "2: filename: has an empty"),
    ("--section=a", "2: section: makes fio do something else"),
    ("job.fio", "2: job.fio: is no option"),
];

#[test]
fn bad_options() {
    for (options, want) in BAD_OPTIONS {
        let got = args(&format!("--name=j {options}"))
            .unwrap_err()
            .to_string();
        assert!(
            got.starts_with(&format!("command line, argument {want}")),
            "{options}\n  {got}"
        );
    }
    assert!(
        args("--bs=4k")
            .unwrap_err()
            .to_string()
            .contains("no --name=NAME")
    );
    assert!(
        args("--name")
            .unwrap_err()
            .to_string()
            .contains("expected --name=NAME")
    );
}

/// A contradiction between sections is an override, not an error.
#[test]
fn jobs_may_override_globals() {
    let all = args("--direct=1 --rwmixread=60 --name=a --buffered=1 --rwmixwrite=10").unwrap();
    assert!(!all.jobs[0].direct);
    assert_eq!(all.jobs[0].rwmixread, 90);
}

/// The commands of all captures are understood in full.
#[test]
fn commands_of_the_captures() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut commands = 0;
    for dir in std::fs::read_dir(traces).unwrap() {
        let meta = dir.unwrap().path().join("meta.txt");
        if !meta.exists() {
            continue;
        }
        let meta = crate::meta::Meta::open(&meta).unwrap();
        if let crate::meta::Command::Fio { arguments } = meta.command {
            commands += 1;
            let all = parse_command_line(&arguments).unwrap();
            for job in &all.jobs {
                assert!(
                    job.direct && job.number_ios.is_some() && (1..3).contains(&job.filenames.len())
                );
            }
        }
    }
    assert!(commands >= 10, "only {commands}");
}

#[test]
fn the_list_of_options_is_sound() {
    let mut names = BTreeSet::new();
    for known in super::known_options() {
        for name in known.names() {
            assert!(names.insert(name), "{name} is listed twice");
            assert_eq!(super::lookup(name).unwrap().name, known.name);
        }
    }
    assert_eq!(
        nearest("iodeph_batch", ["bs", "iodepth_batch"]),
        Some("iodepth_batch")
    );
    assert_eq!(nearest("xyz", ["bs", "iodepth_batch"]), None);
    // Every modelled option reaches a field: a bad value is refused by value, never by a panic.
    for known in super::known_options() {
        if let super::Treatment::Value(_) | super::Treatment::Flag(_) = known.treatment {
            let text = ["name", "filename", "cgroup", "ioscheduler", "description"];
            let free = text.contains(&known.name) || known.name.starts_with("write_");
            let outcome = file(&format!("[a]\n{}=?\n", known.name));
            assert_eq!(outcome.is_ok(), free, "{}", known.name);
        }
    }
}
