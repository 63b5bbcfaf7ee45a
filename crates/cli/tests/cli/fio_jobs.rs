//! fio jobs as people write them, through the program.

use crate::place::Place;
use serde_json::Value;

/// A storage server's mix of sizes and places, as fio's examples have it.
const SERVER: &str = "\
[global]
description=Emulation of Storage Server Access Pattern
bssplit=512/20:1k/16:2k/9:4k/12:8k/19:16k/10:32k/8:64k/4
fadvise_hint=0
rw=randrw:2
direct=1
random_distribution=zipf:1.2
time_based
runtime=10
ramp_time=1
ioengine=libaio
iodepth=128
iodepth_batch_submit=128
iodepth_batch_complete_min=1
iodepth_batch_complete_max=128
numjobs=1
group_reporting
[server]
";

fn run(more: &[&str]) -> Value {
    let place = Place::new();
    place.write("server.fio", SERVER);
    let short = [
        "run",
        "server.fio",
        "--runtime",
        "20ms",
        "--ramp-time",
        "2ms",
        "--json",
    ];
    let ran = place.blksim(&[&short[..], more].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_storage_servers_mix_runs() {
    let report = run(&["--device", "nvme"]);
    let job = &report["jobs"][0];
    let of = |direction: &str, figure: &str| job[direction][figure].as_u64().unwrap();
    let ios = of("read", "total_ios") + of("write", "total_ios");
    let bytes = of("read", "io_bytes") + of("write", "io_bytes");
    assert!(ios > 1000, "{ios}");
    // 0.22 * 512 + 0.16 * 1k + ... + 0.04 * 64k = 9.2 KiB.
    let mean = bytes / ios;
    assert!((8_700..10_200).contains(&mean), "{mean}");
    assert!(report["device"]["depth_max"].as_u64().unwrap() > 60);
    let options = &job["job options"];
    assert_eq!(options["random_distribution"], "zipf:1.2");
    assert_eq!(options["rw"], "randrw:2");
    let ignored = report["ignored_options"].to_string();
    let message = "the shares add up to 98 percent; 512 bytes get the other 2, as in fio";
    for words in [
        message,
        "description: has no effect",
        "fadvise_hint: has no effect on I/O around the page cache",
    ] {
        assert!(ignored.contains(words), "{ignored}");
    }
}

/// The same places in each run, other ones for another seed where fio would draw again, too.
#[test]
fn a_drawn_mix_repeats() {
    let jobs = |more: &[&str]| run(&[&["--device", "nvme"], more].concat())["jobs"].clone();
    assert_eq!(jobs(&[]), jobs(&[]));
    let other = ["--set", "job.randrepeat=0", "--seed"];
    let with = |seed: &'static str| jobs(&[&other[..], &[seed]].concat())[0]["read"].clone();
    assert_ne!(with("1"), with("2"));
}

#[test]
fn options_that_go_wrong_are_one_line() {
    let place = Place::new();
    for (line, want) in [
        (
            "bssplit=4k/80:8k/30",
            "bad.fio:3: bssplit: the shares of `4k/80:8k/30` add up to 110",
        ),
        (
            "random_distribution=zipf:1",
            "bad.fio:3: random_distribution: fio's zipf has no theta",
        ),
        ("rw=randread:none", "bad.fio:3: rw: `none` is not a number"),
        (
            "rate_process=burst",
            "bad.fio:3: rate_process: `burst` is neither linear nor poisson",
        ),
        (
            "nrfiles=8",
            "bad.fio:3: nrfiles: files in a file system are not modelled",
        ),
    ] {
        place.write("bad.fio", format!("[j]\ndirect=1\n{line}\n"));
        let ran = place.blksim(&["run", "bad.fio", "--device", "null_blk"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with(&format!("error: {want}")),
            "{}",
            ran.stderr
        );
    }
}

/// t/io_uring's own command line gives the results of its scenario, letter by letter.
#[test]
fn the_small_benchmark_runs_by_its_own_options() {
    let place = Place::new();
    let device = "nvme,poll_queues=4,latency_ns=10000,channels=51";
    let queue = ["--scheduler", "mq-deadline", "--set", "queue.nomerges=2"];
    let short = ["--runtime", "2ms", "--ramp-time", "500us", "--json"];
    let on = ["--set", "job.cpus_allowed=0", "--set", "job.name=polled"];
    let command = "t/io_uring -d128 -b512 -s 32 -c32 -p1 -B1 -F1 -X1 -R1 -n1 -r1 /dev/nvme0n1";
    let line: Vec<&str> = ["--"].into_iter().chain(command.split(' ')).collect();
    let json = |arguments: &[&str]| -> Value {
        let ran = place.blksim(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let start = ["run", "--device", device];
    let typed = json(&[&start[..], &queue, &short, &on, &line].concat());
    let built_in = json(&[&["run", "nvme-polled"][..], &short].concat());
    assert!(typed["blksim"]["all_ios"].as_u64().unwrap() > 2000);
    for part in ["read", "usr_cpu", "sys_cpu"] {
        assert_eq!(typed["jobs"][0][part], built_in["jobs"][0][part], "{part}");
    }
    assert_eq!(typed["work"], built_in["work"]);
    assert_eq!(typed["jobs"][0]["job options"]["iodepth_batch"], "32");

    // By itself it goes on for ever; one line reports the four threads.
    let command = "t/io_uring -p0 -n4 -s1 -c1 -d1 /dev/nvme0n1";
    let line: Vec<&str> = ["--"].into_iter().chain(command.split(' ')).collect();
    let all = json(&[&["run", "--set", "machine.cpus=4", "--json"][..], &line].concat());
    assert_eq!(all["jobs"][0]["threads"], 4);
    assert_eq!(all["jobs"][0]["job_runtime"], 1000);
    let ignored = all["ignored_options"].to_string();
    assert!(ignored.contains("runs for a second"), "{ignored}");
}
