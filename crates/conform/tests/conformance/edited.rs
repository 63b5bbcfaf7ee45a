//! Captures as other people would have made them: changed in one file, and judged all the same.

use std::fs;
use std::path::Path;

use crate::change::changed;
use crate::common::{run_in, traces};
use conform::{Mode, Options, Verdict};
use trace::capture::CaptureDir;

/// In the mode that is chosen by itself.
fn by_default(dir: &Path) -> Verdict {
    conform::run(&CaptureDir::open(dir).unwrap(), &Options::default()).unwrap()
}

/// A line of this kind is in the text of the verdict.
#[track_caller]
fn assert_notes(verdict: &Verdict, what: &str) {
    assert!(
        verdict.to_string().contains(what),
        "no `{what}` in:\n{verdict}"
    );
}

/// The lines after it are never reached.
#[test]
fn a_script_may_end_a_process() {
    let copy = changed("dd01-defaults", "io.txt", |text| {
        format!("{text}exit\nw 0 8 0x2000\nsubmit\n")
    });
    for mode in [Mode::Calls, Mode::Records] {
        let verdict = run_in(copy.path(), mode, None).unwrap();
        assert!(verdict.conforms() && verdict.notes.is_empty(), "{verdict}");
    }
}

/// Groups and priorities of this one are those of its script.
#[test]
fn the_script_of_a_wrapped_command_is_found() {
    for command in [
        "taskset 1 /bin/aioscript /dev/nullb0 /in/io.txt",
        "sh -c 'nice aioscript /dev/nullb0 io.txt; sync'",
        "/in/run.sh",
    ] {
        let copy = changed("bf35-groups", "meta.txt", |text| {
            text.replace("/bin/aioscript /dev/nullb0 io.txt", command)
        });
        let verdict = by_default(copy.path());
        assert!(verdict.conforms(), "{command}: {verdict}");
    }
}

/// In mode calls the probes have priorities, in mode records nothing else does.
#[test]
fn a_script_that_cannot_be_read_is_reported() {
    let copy = changed("dd06-prio", "io.txt", |text| format!("{text}dance\n"));
    let verdict = run_in(copy.path(), Mode::Calls, None).unwrap();
    assert!(verdict.conforms(), "{verdict}");
    assert_notes(&verdict, "`dance` is none of");
    let error = run_in(copy.path(), Mode::Records, None).unwrap_err();
    assert!(error.to_string().contains("io.txt:"), "{error}");
}

/// The paths below have no scheduler, and get only clones.
#[test]
fn a_stacked_device_is_judged_by_its_own_scheduler() {
    for name in ["mp-service-time-kyber", "mp-service-time-mq-deadline"] {
        let verdict = by_default(&traces(name));
        assert_eq!(
            (verdict.mode, verdict.diverged()),
            (Mode::Calls, 0),
            "{verdict}"
        );
        assert_eq!(
            (verdict.predicted, verdict.unjudged()),
            (600, 0),
            "{verdict}"
        );
    }
}

/// sysfs shows 127 KiB.
#[test]
fn an_odd_limit_is_found_and_reported() {
    let verdict = by_default(&traces("dd10-bigsizes"));
    assert_notes(&verdict, "requests of up to 255 sectors, what null_blk has");
    let message = |parameter: &str| {
        let copy = changed("dd10-bigsizes", "meta.txt", |text| {
            text.replace(" gb=64", &format!(" gb=64 {parameter}"))
        });
        by_default(copy.path()).to_string()
    };
    assert!(message("max_sectors=255").contains("255 sectors, as its parameter"));
    // Its records contradict it.
    assert!(message("max_sectors=254").contains("255 sectors, where a bio was cut"));
    let blocks = changed("dd01-defaults", "queue.txt", |text| {
        text.replace("logical_block_size=512", "logical_block_size=4096")
    });
    assert!(
        !by_default(blocks.path())
            .to_string()
            .contains("255 sectors")
    );
}

/// The ring buffer of ftrace was too small: its remainder begins in the middle.
#[test]
fn lost_events_are_reported_and_decide_the_mode() {
    for (from, to) in [
        ("written: 1162/1162", "written: 1162/1200"),
        ("# tracer: nop", "# tracer: nop\n#\nCPU:0 [LOST 38 EVENTS]"),
    ] {
        let copy = changed("dd01-defaults", "ftrace.txt", |text| {
            assert!(text.contains(from));
            text.replace(from, to)
        });
        let verdict = by_default(copy.path());
        assert!(
            verdict.mode == Mode::Records && verdict.conforms(),
            "{verdict}"
        );
        assert_notes(&verdict, "note: ftrace.txt: 38 events were lost");
        assert_notes(
            &verdict,
            "mode records: ftrace.txt has lost events, and the blktrace",
        );
    }
}

#[test]
fn records_that_blktrace_dropped_are_reported() {
    let copy = changed("dd01-defaults", "blktrace.log", str::to_owned);
    let log = "=== nullb0 ===\n  CPU  0:  100 events,  5 KiB data\n  Total:  100 events (dropped 7),  5 KiB data\n";
    fs::write(copy.path().join("blktrace.log"), log).unwrap();
    assert_notes(
        &by_default(copy.path()),
        "note: nullb0: 7 x events dropped by the kernel",
    );
}

#[test]
fn an_unknown_key_is_reported() {
    let copy = changed("dd01-defaults", "meta.txt", |text| {
        format!("{text}host=lab7\n")
    });
    let verdict = by_default(copy.path());
    assert!(verdict.conforms(), "{verdict}");
    assert_notes(&verdict, "note: meta.txt: host is no key that is read");
}

/// Weights of another device are not this one's.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_weight_may_be_of_a_device() {
    let with = |weights: &str| {
        let copy = changed("bf35-groups", "meta.txt", |text| {
            assert!(text.contains("=default 300"));
            text.replace("=default 300", weights)
        });
        by_default(copy.path())
    };
    let own = with("=default 100 252:0 300 252:1 500");
    assert!(own.conforms(), "{own}");
    let others = with("=default 100 252:1 300");
    assert!(!others.conforms(), "{others}");
}

/// blktrace leaves no file, or an empty one, for an unused device.
#[test]
fn an_idle_device_is_left_out() {
    let copy = changed("dd01-defaults", "queue.txt", |text| {
        format!("{text}{}", text.replace("nullb0", "nullb1"))
    });
    for _ in 0..2 {
        let verdict = by_default(copy.path());
        assert!(
            verdict.conforms() && verdict.mode == Mode::Calls,
            "{verdict}"
        );
        fs::write(copy.path().join("nullb1.blktrace.0"), "").unwrap();
    }
}

/// sysfs takes and shows unsigned numbers of 64 bits.
#[test]
fn a_tunable_may_be_as_large_as_the_kernel_has_it() {
    let copy = changed("ky01-burst", "queue.txt", |text| {
        assert!(text.contains("write_lat_nsec=10000000 "));
        text.replace(
            "write_lat_nsec=10000000 ",
            "write_lat_nsec=18446744073709551615 ",
        )
    });
    let verdict = by_default(copy.path());
    assert_eq!(verdict.diverged(), 0, "{verdict}");
}

/// A tunable that was written in the middle of a run.
#[test]
fn a_setting_that_changed_meanwhile_is_reported() {
    let copy = changed("dd01-defaults", "queue_after.txt", |text| {
        assert!(text.contains("fifo_batch=16") && text.contains("nr_requests=256"));
        text.replace("fifo_batch=16", "fifo_batch=1")
            .replace("nr_requests=256", "nr_requests=64")
    });
    let verdict = by_default(copy.path());
    assert!(verdict.conforms(), "{verdict}");
    assert_notes(
        &verdict,
        "note: nullb0: fifo_batch was 16 before the run and 1 after it",
    );
    assert_notes(
        &verdict,
        "note: nullb0: nr_requests was 256 before the run and 64 after it",
    );
}

/// With nothing but `+io` in cgroup.subtree_control writeback is the root group's, for which the
/// writers of this one might as well have been in another.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn writeback_is_of_the_root_group() {
    let copy = changed("bf34-async", "io.txt", |text| {
        assert!(text.contains("proc bw0 2 4\n") && text.contains("proc bw1 2 0\n"));
        text.replace("proc bw0 2 4\n", "proc bw0 2 4 a\n")
            .replace("proc bw1 2 0\n", "proc bw1 2 0 a\n")
    });
    let meta = copy.path().join("meta.txt");
    let message = fs::read_to_string(&meta).unwrap();
    fs::write(
        &meta,
        format!("{message}cgroup /a io.bfq.weight=default 300\n"),
    )
    .unwrap();
    let verdict = by_default(copy.path());
    assert!(verdict.conforms(), "{verdict}");

    let reader = changed("bf34-async", "io.txt", |text| {
        text.replace("rd0 2 4", "rd0 2 4 a")
    });
    assert!(!by_default(reader.path()).conforms());
}
