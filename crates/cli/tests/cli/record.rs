//! `blksim record`, with a sysfs made from a capture in the repository and a blktrace that writes
//! that capture's records: the folder it makes is one that the verbs take.

use crate::place::{Place, Ran, blksim_with};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Starts as blktrace(8) does, and has all records when it gets the signal to end.
const BLKTRACE: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in -D) out=$2 ;; -d) mkdir "$SYSFS/kernel/debug/block/${2#/dev/}/trace0" ;; esac
  shift
done
[ ! -d "$SYSFS/kernel/tracing" ] || $TRACE > "$SYSFS/kernel/tracing/instances/blksim/trace"
trap 'cp "$CAPTURE"/*.blktrace.* "$out"; echo "  Total: 9 events (dropped $DROPPED), 1 KiB data"; exit 0' TERM
while :; do sleep 0.02; done
"#;
/// A directory of tracefs has files, but can be removed.
const RMDIR: &str = "#!/bin/sh\nrm -r \"$1\"\n";
/// Prints the table that the capture has.
const DMSETUP: &str = "#!/bin/sh\nsed -n 's/^dm: //p' \"$CAPTURE/meta.txt\"\n";

struct Machine {
    place: Place,
    capture: PathBuf,
}

impl Machine {
    /// A machine with the devices of a capture, as they were when it began.
    fn of(capture: &str) -> Machine {
        let traces = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../traces");
        let (place, capture) = (Place::new(), traces.join(capture));
        let sys = place.path("sys");
        let text = fs::read_to_string(capture.join("queue.txt")).unwrap();
        let mut device = PathBuf::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("== ") {
                let (name, sectors) = head.split_once(" size ").unwrap();
                device = sys.join("block").join(name);
                fs::create_dir_all(sys.join("kernel/debug/block").join(name)).unwrap();
                file(&device.join("size"), sectors);
            } else if let Some((hctx, rest)) = line.split_once(": tags=") {
                let (tags, cpus) = rest.split_once(" cpus=").unwrap();
                file(&device.join(hctx).join("nr_tags"), tags);
                file(&device.join(hctx).join("cpu_list"), cpus);
            } else {
                let (name, value) = line.split_once('=').unwrap();
                file(&device.join(name), value.trim_end());
            }
        }
        let meta = fs::read_to_string(capture.join("meta.txt")).unwrap();
        let device = meta.lines().find_map(|line| line.strip_prefix("device="));
        let mut words = device.unwrap().split_whitespace();
        let module = sys.join("module").join(words.next().unwrap());
        for word in words {
            let (name, value) = word.split_once('=').unwrap();
            file(&module.join("parameters").join(name), value);
        }
        for (name, text) in [
            ("blktrace", BLKTRACE),
            ("dmsetup", DMSETUP),
            ("rmdir", RMDIR),
        ] {
            let script = place.path("bin").join(name);
            file(&script, text);
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Machine { place, capture }
    }

    /// Lets ftrace have the capture's events, as a command that prints them.
    fn trace(&self, command: &str) -> String {
        let tracing = self.place.path("sys/kernel/tracing");
        fs::create_dir_all(tracing.join("instances")).unwrap();
        fs::write(tracing.join("kprobe_events"), "").unwrap();
        format!("{command} {}/ftrace.txt.xz", self.capture.display())
    }

    fn record(&self, arguments: &[&str], dropped: &str) -> Ran {
        self.record_with(arguments, dropped, "true")
    }

    fn record_with(&self, arguments: &[&str], dropped: &str, trace: &str) -> Ran {
        let path = std::env::var("PATH").unwrap();
        let [sys, capture, bin] = [
            self.place.path("sys"),
            self.capture.clone(),
            self.place.path("bin"),
        ]
        .map(|path| path.display().to_string());
        blksim_with(
            &self.place.path("."),
            &[&["record"], arguments].concat(),
            &[
                ("SYSFS", &sys),
                ("CAPTURE", &capture),
                ("DROPPED", dropped),
                ("TRACE", trace),
                ("PATH", &format!("{bin}:{path}")),
            ],
        )
    }

    /// The values of a key in the capture's meta.txt and in the new one.
    fn meta(&self, key: &str) -> [String; 2] {
        [self.capture.clone(), self.place.path("mine")].map(|folder| {
            let meta = fs::read_to_string(folder.join("meta.txt")).unwrap();
            let value = meta.lines().find_map(|line| line.strip_prefix(key));
            let mut words: Vec<&str> = value.expect(key).split_whitespace().collect();
            words[1..].sort_unstable();
            words.join(" ")
        })
    }

    /// Gives the new folder the kernel of the capture, not that of the machine that tests.
    fn same_kernel(&self) {
        let [theirs, ours] = [self.capture.clone(), self.place.path("mine")].map(|folder| {
            let meta = fs::read_to_string(folder.join("meta.txt")).unwrap();
            let (uname, rest) = meta.split_once("\ncpus=").unwrap();
            let (cpus, rest) = rest.split_once('\n').unwrap();
            (format!("{uname}\ncpus={cpus}\n"), rest.to_owned())
        });
        self.place.write("mine/meta.txt", theirs.0 + &ours.1);
    }
}

fn file(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{text}\n")).unwrap();
}

fn sections(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_recorded_folder_is_taken_by_every_verb() {
    let machine = Machine::of("m2-k612-irq1-mq-deadline");
    let ran = machine.record(
        &["mine", "/dev/nullb0", "sh", "-c", "echo done; exit 7"],
        "0",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("ended with 7"), "{ran:?}");
    let place = &machine.place;
    for name in ["queue.txt", "queue_after.txt"] {
        let theirs = sections(&machine.capture.join("queue.txt"));
        assert_eq!(sections(&place.path("mine").join(name)), theirs);
    }
    assert_eq!(
        fs::read_to_string(place.path("mine/stdout.txt")).unwrap(),
        "done\n"
    );
    let [theirs, ours] = machine.meta("device=");
    assert_eq!(ours, theirs);
    assert_eq!(machine.meta("rc=")[1], "7");
    assert!(machine.meta("uname=")[1].contains("Linux"));

    machine.same_kernel();
    let theirs = machine.capture.display().to_string();
    let stats = |folder: &str| place.blksim(&["analyze", "--json", folder]);
    assert_eq!(stats("mine").stdout, stats(&theirs).stdout);
    let ran = place.blksim(&["conform", "mine", "--mode", "records"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("predicted 800/800 dispatches"),
        "{ran:?}"
    );
    let replay = |folder: &str| place.blksim(&["replay", folder, "--json"]);
    let (ours, theirs) = (replay("mine"), replay(&theirs));
    assert_eq!(ours.code, Some(0), "{ours:?}");
    let columns = |ran: &Ran| {
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        json["columns"].clone()
    };
    assert_eq!(columns(&ours), columns(&theirs));
}

#[test]
fn paths_of_a_multipath_device_are_recorded_with_it() {
    let machine = Machine::of("mp-service-time-mq-deadline");
    let sys = machine.place.path("sys");
    fs::create_dir_all(sys.join("block/dm-0/slaves")).unwrap();
    file(&sys.join("class/scsi_host/host0/proc_name"), "scsi_debug");
    for path in ["sda", "sdb"] {
        let unit = sys.join("devices/host0").join(path);
        fs::create_dir_all(&unit).unwrap();
        symlink(&unit, sys.join("block").join(path).join("device")).unwrap();
        symlink(&unit, sys.join("block/dm-0/slaves").join(path)).unwrap();
    }
    let ran = machine.record(&["mine", "dm-0", "true"], "0");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [theirs, ours] = machine.meta("dm: ");
    assert_eq!(ours, theirs);
    assert!(
        machine.meta("device=")[1].starts_with("scsi_debug "),
        "{ran:?}"
    );
    machine.same_kernel();
    let place = &machine.place;
    let ran = place.blksim(&[
        "conform",
        "mine",
        "--mode",
        "records",
        "--trace-device",
        "dm-0",
    ]);
    assert!(
        ran.stdout.contains("predicted 1484/1484 path choices"),
        "{ran:?}"
    );
    assert!(
        ran.stdout.contains("predicted 1484/1484 dispatches"),
        "{ran:?}"
    );
}

#[test]
fn a_scheduler_is_chosen_and_set_before_the_recording() {
    let machine = Machine::of("m2-k612-irq1-mq-deadline");
    let choose = [
        "-s",
        "bfq",
        "-w",
        "iosched/low_latency=0",
        "-w",
        "nr_requests=32",
    ];
    let ran = machine.record(&[&choose[..], &["mine", "nullb0", "true"]].concat(), "0");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let queue = machine.place.path("mine/queue.txt");
    let queue = fs::read_to_string(queue).unwrap();
    for line in [
        "scheduler=bfq \n",
        "iosched/low_latency=0 \n",
        "nr_requests=32 \n",
    ] {
        assert!(queue.contains(&format!("queue/{line}")), "{queue}");
    }
    let meta = fs::read_to_string(machine.place.path("mine/meta.txt")).unwrap();
    assert!(
        meta.contains("\nrotational_when_scheduler_chosen_nullb0=0\n"),
        "{meta}"
    );
}

#[test]
fn lost_events_and_wrong_arguments_are_errors() {
    let machine = Machine::of("m2-k612-irq1-mq-deadline");
    for (arguments, dropped, says) in [
        (&["mine", "nullb0", "true"][..], "3", "lost events"),
        (&["mine", "nullb0", "true"], "0", "mine exists"),
        (&["other", "nullb0p1", "true"], "0", "has no nullb0p1"),
        (&["other", "nullb0"], "0", "usage: record.sh"),
    ] {
        let ran = machine.record(arguments, dropped);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{arguments:?}: {ran:?}");
    }
}

/// On a slow machine blktrace may begin after the command.
#[test]
fn a_trace_that_began_late_is_an_error() {
    for (time, code) in [(1_u64, 0), (u64::MAX >> 1, 2)] {
        let mut machine = Machine::of("m2-k612-irq1-mq-deadline");
        machine.capture = machine.place.path("late");
        let record = [&[0; 8][..], &time.to_ne_bytes(), &[0; 32]].concat();
        fs::create_dir(&machine.capture).unwrap();
        fs::write(machine.capture.join("nullb0.blktrace.0"), record).unwrap();
        let ran = machine.record(&["mine", "nullb0", "true"], "0");
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let says = ran
            .stderr
            .contains("blktrace began after the command on nullb0");
        assert_eq!(says, code == 2, "{ran:?}");
    }
}

#[test]
fn an_instance_of_ftrace_that_is_left_is_reported() {
    let machine = Machine::of("m2-k612-mq-deadline");
    machine.trace("xz -dc");
    let left = machine.place.path("sys/kernel/tracing/instances/blksim");
    fs::create_dir_all(&left).unwrap();
    let ran = machine.record(&["mine", "nullb0", "true"], "0");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let says = "if a killed run left that folder, rmdir it";
    assert!(ran.stderr.contains(says), "{ran:?}");
    assert!(left.exists());
    assert!(!machine.place.path("mine/ftrace.txt").exists());
}

/// The probes are set for the scheduler in use, and are gone at the end.
#[test]
fn calls_of_the_scheduler_are_recorded_where_ftrace_has_probes() {
    let machine = Machine::of("m2-k612-mq-deadline");
    let trace = machine.trace("xz -dc");
    let ran = machine.record_with(&["mine", "nullb0", "true"], "0", &trace);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let tracing = machine.place.path("sys/kernel/tracing");
    assert!(!tracing.join("instances/blksim").exists());
    let probes = fs::read_to_string(tracing.join("kprobe_events")).unwrap();
    let heads: Vec<&str> = probes
        .lines()
        .map(|line| line.split(" rq=").next().unwrap())
        .collect();
    let want = [
        "p:blksim/ins blk_mq_sched_try_insert_merge",
        "p:blksim/dde dd_dispatch_request j=@jiffies:u64 h=hctx->queue_num:u32",
        "r64:blksim/dd dd_dispatch_request",
        "-:blksim/ins",
        "-:blksim/dde",
        "-:blksim/dd",
    ];
    assert_eq!(heads, want);
    machine.same_kernel();
    let ran = machine.place.blksim(&["conform", "mine"]);
    assert!(
        ran.stdout
            .contains("mode calls: ftrace.txt has the dispatch calls"),
        "{ran:?}"
    );
    assert!(
        ran.stdout.contains("predicted 701/701 dispatches"),
        "{ran:?}"
    );
}

/// Also if only the process itself gets the signal, and in the middle of the command.
#[test]
fn an_aborted_recording_ends_what_it_started() {
    for signal in ["INT", "TERM", "HUP"] {
        let machine = Machine::of("m2-k612-mq-deadline");
        let trace = machine.trace("xz -dc");
        let command = format!(
            "trap 'echo > ended; exit' TERM; ls $SYSFS/kernel/tracing/instances
             kill -{signal} $PPID; while :; do sleep 0.02; done"
        );
        let arguments = ["mine", "nullb0", "sh", "-c", &command];
        let ran = machine.record_with(&arguments, "0", &trace);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let says = "record.sh: aborted; mine is not complete\n";
        assert_eq!(ran.stderr, says);
        let place = &machine.place;
        let shown = fs::read_to_string(place.path("mine/stdout.txt")).unwrap();
        assert_eq!(shown, "blksim\n");
        let tracing = place.path("sys/kernel/tracing");
        assert!(!tracing.join("instances/blksim").exists());
        let probes = fs::read_to_string(tracing.join("kprobe_events")).unwrap();
        let removed = "\n-:blksim/ins\n-:blksim/dde\n-:blksim/dd\n";
        assert!(probes.ends_with(removed), "{probes}");
        // What blktrace had when it got its signal.
        assert!(place.path("mine/nullb0.blktrace.0.xz").exists());
        while !place.path("ended").exists() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_trace_that_lost_events_is_left_out() {
    let machine = Machine::of("m2-k612-mq-deadline");
    let trace = machine.trace("head -c 100");
    let ran = machine.record_with(&["mine", "nullb0", "true"], "0", &trace);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("ftrace lost events"), "{ran:?}");
    assert!(!machine.place.path("mine/ftrace.txt").exists());
}

#[test]
fn the_script_is_printed_for_a_machine_without_blksim() {
    let ran = Place::new().blksim(&["record"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/record.sh");
    assert_eq!(ran.stdout, fs::read_to_string(script).unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
