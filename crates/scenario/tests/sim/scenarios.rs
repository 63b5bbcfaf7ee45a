//! The scenarios that come with the program: each makes a plan, none has an option without effect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blkmq::elevator::SchedulerKind;
use scenario::{ProfileFacts, Scenario};
use sim::plan::{DeviceKind, Jitter, Plan};

const PROFILES: &[ProfileFacts<'_>] = &[
    ProfileFacts {
        name: "dell-r7525",
        cpus: 64,
    },
    ProfileFacts {
        name: "ryzen-7950x",
        cpus: 32,
    },
    ProfileFacts {
        name: "xeon-10c",
        cpus: 10,
    },
    ProfileFacts {
        name: "pserver16",
        cpus: 64,
    },
    ProfileFacts {
        name: "quadcore",
        cpus: 4,
    },
    ProfileFacts {
        name: "null12",
        cpus: 24,
    },
];

fn all() -> BTreeMap<String, (PathBuf, Plan)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/scenarios");
    let mut plans = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let file = entry.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let scenario = match file.extension().and_then(|e| e.to_str()) {
            Some("toml") => Scenario::from_toml(&file, &text),
            Some("fio") => Scenario::from_fio(&file, &text),
            other => panic!("{}: {other:?}", file.display()),
        };
        let plan = scenario
            .and_then(|s| s.plan(PROFILES))
            .unwrap_or_else(|e| panic!("{e}"));
        let old = plans.insert(plan.name.clone(), (file, plan));
        assert!(old.is_none(), "two scenarios of one name: {old:?}");
    }
    plans
}

#[test]
fn built_in_scenarios_make_plans() {
    let all = all();
    assert!(all.len() >= 15);
    for (name, (file, plan)) in &all {
        assert_eq!(plan.ignored, Vec::<String>::new(), "{name}");
        if file.extension().is_some_and(|e| e == "toml") {
            assert!(
                (20..=90).contains(&plan.description.len()),
                "{name}: {}",
                plan.description
            );
        }
        for thread in &plan.threads {
            let ends = [thread.runtime.0, thread.number_ios, thread.io_bytes];
            assert!(ends.iter().any(|end| *end != u64::MAX), "{name} never ends");
        }
    }
    for name in [
        "mq-deadline-scaling",
        "null-blk-randread",
        "nvme-randread",
        "nvme-polled",
        "scsi-limits",
        "fsync-flush",
        "mixed-prio",
        "fault-busy",
        "lost-completion",
    ] {
        assert!(all.contains_key(name), "{name} is missing");
    }
}

/// Published and documented figures are of times that do not depend on pages.
#[test]
fn no_built_in_scenario_has_the_jitter_of_flash() {
    for (name, (_, plan)) in &all() {
        for disk in &plan.disks {
            if let DeviceKind::Nvme(drive) = &disk.device.kind {
                assert_ne!(drive.jitter, Jitter::Flash, "{name}");
            }
        }
    }
}

/// The run that the calibration is checked against, number by number (Axboe, 19 January 2024).
#[test]
fn the_scaling_run_is_the_published_one() {
    let all = all();
    let plan = &all["mq-deadline-scaling"].1;
    assert_eq!(
        plan.disks[0].queue.scheduler.kind(),
        SchedulerKind::MqDeadline
    );
    assert_eq!(
        (
            plan.disks[0].device.queue_depth,
            plan.disks[0].capacity.hctxs
        ),
        (64, 2)
    );
    assert_eq!(plan.disks[0].queue.nr_requests, 128);
    assert_eq!(plan.threads.len(), 32);
    let thread = &plan.threads[0];
    assert_eq!(
        (
            thread.iodepth,
            thread.batch_submit,
            thread.batch_complete_min
        ),
        (4, 4, 4)
    );
    assert_eq!(thread.block.read.max_sectors, 1);
    assert!(thread.fixed_buffers && thread.thread && thread.gtod_reduce && !thread.polled);
    assert!(plan.disks[0].device.fault.lost_completion.numerator == 0);
    assert_eq!(
        all["lost-completion"].1.disks[0]
            .device
            .fault
            .lost_completion
            .denominator,
        500
    );
}
