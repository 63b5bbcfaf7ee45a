use std::io::Cursor;
use std::path::Path;

use blkmq::time::Duration;

use super::{Command, DmTable, KernelVersion, Meta, Moments};
use crate::text::Lines;

fn read(text: &str) -> crate::Result<Meta> {
    Meta::read(Lines::new(
        Path::new("m"),
        Box::new(Cursor::new(text.to_string().into_bytes())),
    ))
}

const UNAME: &str = "uname=Linux (none) 6.12.115+deb12-amd64 #1 SMP x86_64 GNU/Linux\n";

#[test]
fn both_kinds_of_command() {
    let rest =
        "cpus=2\ndevice=null_blk irqmode=2 gb=64\ncmd=/bin/aioscript /dev/nullb0 io.txt\nrc=0\n";
    let meta = read(&format!("{UNAME}{rest}")).unwrap();
    assert_eq!(
        meta.kernel,
        KernelVersion {
            major: 6,
            minor: 12,
            third: None,
        }
    );
    assert_eq!(meta.kernel.to_string(), "v6.12");
    assert_eq!((meta.cpus, meta.exit_code), (2, Some(0)));
    assert_eq!(meta.device.module, "null_blk");
    assert_eq!(meta.device.parameters["irqmode"], "2");
    let want = Command::IoScript {
        device: "nullb0".into(),
        script: "io.txt".into(),
    };
    assert_eq!(meta.command, want);

    let rest = "cpus=2\ndevice=scsi_debug\ndm: 0 8 multipath 2\ncmd=fio --name=j --bs=4k\n";
    let meta = read(&format!("{UNAME}{rest}")).unwrap();
    let table = |line, text: &str| DmTable {
        line,
        text: text.to_owned(),
    };
    assert_eq!(meta.dm_tables, [table(4, "0 8 multipath 2")]);
    let named = rest.replace("dm: ", "dm: 0 8 linear 8:0 0\ndm: mpathb: ");
    let named = read(&format!("{UNAME}{named}")).unwrap();
    let want = [table(4, "0 8 linear 8:0 0"), table(5, "0 8 multipath 2")];
    assert_eq!(named.dm_tables, want);
    let linear = rest.replace("dm: ", "dm: 0 8 linear 8:0 0\ndm: 0 8 linear 8:0 0\ndm: ");
    let linear = read(&format!("{UNAME}{linear}")).unwrap();
    assert_eq!(linear.dm_tables.len(), 3);
    let twice = rest.replace("dm: ", "dm: 0 8 multipath 2\ndm: mpathb: ");
    let error = read(&format!("{UNAME}{twice}")).unwrap_err().to_string();
    assert!(
        error.contains(":5: dm: the same table as in line 4"),
        "{error}"
    );
    assert_eq!(meta.exit_code, None);
    let want = Command::Fio {
        arguments: vec!["--name=j".into(), "--bs=4k".into()],
    };
    assert_eq!(meta.command, want);
}

/// Of 2.6 the third number is the release.
#[test]
fn kernels_of_2_6_have_three_numbers() {
    let of = |release: &str| {
        let text = format!("uname=Linux m {release} x\ncpus=2\ndevice=null_blk\ncmd=fio\n");
        read(&text).map(|meta| meta.kernel.to_string())
    };
    assert_eq!(of("2.6.32-rc5-coop").unwrap(), "v2.6.32");
    assert_eq!(of("2.6.35.6").unwrap(), "v2.6.35");
    assert_eq!(of("4.20.0").unwrap(), "v4.20");
    assert!(of("2.6-rc").is_err());
}

/// The replayer is started through another program; its script is in the folder by its own name.
#[test]
fn a_command_may_be_wrapped() {
    let of = |command: &str| {
        let text = format!("{UNAME}cpus=2\ndevice=null_blk\ncmd={command}\n");
        read(&text).unwrap().command
    };
    let want = Command::IoScript {
        device: "nullb0".into(),
        script: "io.txt".into(),
    };
    for command in [
        "taskset 1 /bin/aioscript /dev/nullb0 io.txt",
        "aioscript /dev/nullb0 /in/io.txt",
        "sh -c \"nice ./aioscript /dev/nullb0 io.txt; sync\"",
    ] {
        assert_eq!(of(command), want, "{command}");
    }
    for other in ["aioscript /dev/nullb0", "cat aioscript.c", "/in/run.sh"] {
        assert_eq!(of(other), Command::Other(other.to_owned()));
    }
}

#[test]
fn ticks_a_second() {
    let rest = "cpus=1\ndevice=null_blk\ncmd=blksim run x\n";
    let of = |uname: &str| read(&format!("uname=Linux s 6.1 {uname}\n{rest}"));
    assert_eq!(of("blksim 0.1.0, HZ=1000").unwrap().hz, Some(1000));
    assert_eq!(of("#1 SMP").unwrap().hz, None);
    for bad in ["HZ=0", "HZ=1201", "HZ=", "HZ=often"] {
        let error = of(bad).unwrap_err().to_string();
        assert!(error.contains(bad) && error.contains("uname"), "{error}");
    }
}

#[test]
fn bad_files() {
    let cases = [
        (String::new(), "m:0: uname: missing"),
        ("hello".to_string(), "m:1: line: expected KEY=VALUE"),
        ("uname=Linux".to_string(), "m:1: uname: no kernel release"),
        (
            "uname=Linux x six.one #1".to_string(),
            "m:1: uname: no kernel release",
        ),
        (format!("{UNAME}cpus=many\n"), "m:2: cpus: `many`"),
        (
            format!("{UNAME}cpus=1\ndevice=gb=1\ncmd=x\n"),
            "m:3: device: expected MODULE",
        ),
        (
            format!("{UNAME}cpus=1\ndevice=null_blk gb\ncmd=x\n"),
            "m:3: device: `gb` is not",
        ),
        (
            format!("{UNAME}cpus=1\ndevice=null_blk gb=1 gb=2\n"),
            "m:3: device: parameter gb given",
        ),
        (format!("{UNAME}cpus=1\ncpus=1\n"), "m:3: cpus: given twice"),
        (
            format!("{UNAME}cpus=1\ndevice=null_blk\n"),
            "m:3: cmd: missing",
        ),
        (
            format!("{UNAME}cpus=1\ndevice=null_blk\ncmd=x\nrc=?\n"),
            "m:5: rc: `?`",
        ),
    ];
    for (text, want) in cases {
        let got = read(&text).unwrap_err().to_string();
        assert!(got.starts_with(want), "{text:?}\n  {got}");
    }
}

#[test]
fn what_was_so_before_the_run() {
    let rest = "cpus=1\ndevice=null_blk\ncmd=fio\nrotational_when_scheduler_chosen_nullb0=1\n\
                rotational_when_scheduler_chosen_sda=0\ncgroup /a/x io.bfq.weight=default 100 \n";
    let meta = read(&format!("{UNAME}{rest}")).unwrap();
    assert!(meta.rotational_when_chosen["nullb0"]);
    assert!(!meta.rotational_when_chosen["sda"]);
    let [group] = &meta.cgroups[..] else {
        panic!("{:?}", meta.cgroups)
    };
    assert_eq!((group.path.as_str(), group.weight), ("/a/x", 100));
    for wrong in [
        "rotational_when_scheduler_chosen_sda=perhaps",
        "cgroup /a io.bfq.weight=heavy",
    ] {
        let error = read(&format!("{UNAME}{wrong}\n")).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
}

#[test]
fn times_of_a_simulated_run_are_those_of_labels() {
    let of = |line: &str| read(&format!("{UNAME}cpus=1\ndevice=d\ncmd=x\n{line}"));
    assert!(!of("").unwrap().times_of_labels);
    assert!(of("record_times=labels\n").unwrap().times_of_labels);
    let error = of("record_times=1\n").unwrap_err().to_string();
    let want = "m:5: record_times: `1`, expected labels";
    assert!(error.starts_with(want), "{error}");
}

/// BFQ_MIN_WEIGHT to BFQ_MAX_WEIGHT; a file of a cgroup is there once, however its path is written.
#[test]
fn weights_are_those_that_a_kernel_takes() {
    let of = |lines: &str| read(&format!("{UNAME}cpus=1\ndevice=d\ncmd=x\n{lines}"));
    for (lines, want) in [
        (
            "cgroup /a io.bfq.weight=default 0\n",
            "m:5: cgroup: /a: io.bfq.weight=0, expected 1 to 1000",
        ),
        (
            "cgroup /a io.bfq.weight=default 100 252:0 5000\n",
            "m:5: cgroup: /a: io.bfq.weight=5000, expected 1 to 1000",
        ),
        (
            "cgroup /a blkio.weight=default 9\n",
            "m:5: cgroup: /a: blkio.weight=9, expected 10 to 1000",
        ),
        (
            "cgroup /a io.bfq.weight=default 1\ncgroup a/ io.bfq.weight=default 2\n",
            "m:6: cgroup: a/ is /a with another weight, expected one line a group",
        ),
    ] {
        let error = of(lines).unwrap_err().to_string();
        assert_eq!(error, want);
    }
    let twice = "cgroup /a io.bfq.weight=default 1000\ncgroup a/ io.bfq.weight=default 1000\n";
    assert_eq!(of(twice).unwrap().cgroups.len(), 1);
}

#[test]
fn moments_are_reported_in_seconds_and_parts_of_them() {
    let of = |lines: &str| read(&format!("{UNAME}cpus=1\ndevice=d\ncmd=x\n{lines}"));
    assert_eq!(of("").unwrap().moments, Moments::default());
    let text = "exit_453=0.469751766\nexit_7=12.5\nexits_after_ms=20\n\
                decided_before_us=25\ndecided_after_us=0\n";
    let moments = of(text).unwrap().moments;
    let exits = [(453, Duration(469_751_766)), (7, Duration(12_500_000_000))];
    assert_eq!(moments.exits, exits.into());
    assert_eq!(moments.exits_after, Some(Duration(20_000_000)));
    assert_eq!(moments.decided_before, Some(Duration(25_000)));
    assert_eq!(moments.decided_after, Some(Duration(0)));
    for (wrong, want) in [
        (
            "exit_453=soon\n",
            "m:5: exit_453: expected exit_PID=SECONDS",
        ),
        ("exit_a=1\n", "m:5: exit_a: expected exit_PID=SECONDS"),
        ("exit_4=1.0000000001\n", "m:5: exit_4: expected exit_PID"),
        ("exit_4=1\nexit_4=2\n", "m:6: exit_4: given twice"),
        (
            "decided_before_us=-1\n",
            "m:5: decided_before_us: expected a",
        ),
        (
            "exits_after_ms=1\nexits_after_ms=1\n",
            "m:6: exits_after_ms: given",
        ),
    ] {
        let error = of(wrong).unwrap_err().to_string();
        assert!(error.starts_with(want), "{error}");
    }
}

/// Another script may write more; a weight may be another one on some device.
#[test]
fn unknown_keys_are_kept_and_weights_may_be_of_a_device() {
    let rest = "cpus=1\nhost=a b\ndevice=null_blk\ncmd=x\n\
                cgroup /a io.bfq.weight=default 300 252:0 500 8:16 7\ncolour=1\n";
    let meta = read(&format!("{UNAME}{rest}")).unwrap();
    assert_eq!(meta.unknown, ["host", "colour"]);
    let [group] = &meta.cgroups[..] else {
        panic!("{:?}", meta.cgroups)
    };
    assert_eq!(group.weight, 300);
    assert_eq!(group.weight_on, [((252, 0), 500), ((8, 16), 7)].into());
    for bad in ["300", "default", "default 300 252:0", "default 300 sda 5"] {
        let text = format!("{UNAME}cpus=1\ndevice=d\ncmd=x\ncgroup /a io.bfq.weight={bad}\n");
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with("m:5: cgroup: expected"), "{error}");
    }
}
