//! The set-up of drivers and queues against what sysfs of real kernels showed.
//!
//! For each capture: its module parameters make a plan, whose numbers must be those of queue.txt.

use std::path::Path;

use blkmq::elevator::SchedulerKind;
use blkmq::time::Duration;
use scenario::{ProfileFacts, Scenario};
use sim::plan::Plan;
use trace::capture::CaptureDir;
use trace::queue_txt::DeviceQueue;

/// Parameters that the module does not know; it logged that and loaded.
const UNKNOWN: &[&str] = &["dpofua"];

fn plan(capture: &CaptureDir, queue: &DeviceQueue) -> Plan {
    let profile = ProfileFacts {
        name: "ryzen-7950x",
        cpus: capture.meta.cpus,
    };
    let mut device = capture.meta.device.module.clone();
    for (parameter, value) in &capture.meta.device.parameters {
        if !UNKNOWN.contains(&parameter.as_str()) {
            device = format!("{device},{parameter}={value}");
        }
    }
    let job = "[[job]]\nrw = \"randread\"\ndirect = 1\n";
    let mut scenario = Scenario::from_toml(Path::new("capture.toml"), job)
        .unwrap()
        .set_device(&device)
        .unwrap()
        .set(&format!("queue.rules={}", capture.meta.kernel))
        .unwrap()
        .set(&format!("queue.scheduler={}", queue.scheduler().unwrap()))
        .unwrap();
    // Values that the capture's script wrote to sysfs.
    let rotational = queue.number("rotational").unwrap();
    scenario = scenario
        .set(&format!("device.rotational={rotational}"))
        .unwrap();
    let depth = i64::from(queue.hctxs[0].tags);
    let written = queue.number("nr_requests").unwrap();
    let default = if queue.iosched.is_empty() {
        depth
    } else {
        2 * depth.min(128)
    };
    if written != default {
        scenario = scenario
            .set(&format!("queue.nr_requests={written}"))
            .unwrap();
    }
    scenario
        .plan(&[profile])
        .unwrap_or_else(|e| panic!("{}: {e}", capture.path.display()))
}

#[test]
fn plans_agree_with_sysfs() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut compared = 0;
    for entry in std::fs::read_dir(traces).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let capture = CaptureDir::open(&path).unwrap();
        let queue = &capture.before.devices[0];
        let kind = SchedulerKind::by_name(queue.scheduler().unwrap());
        let modelled = kind.is_some_and(|kind| kind.serves(false));
        if capture.before.devices.len() > 1 || !modelled {
            continue;
        }
        compared += 1;
        let p = plan(&capture, queue);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        agrees(&p, queue, &name);
    }
    assert!(compared >= 20, "only {compared} captures");
}

fn agrees(p: &Plan, queue: &DeviceQueue, name: &str) {
    let shown = |file: &str| queue.number(file).unwrap();
    assert_eq!(p.disks[0].device.sectors, queue.sectors, "{name}");
    assert_eq!(
        usize::from(p.disks[0].capacity.hctxs),
        queue.hctxs.len(),
        "{name}"
    );
    assert!(
        queue
            .hctxs
            .iter()
            .all(|hctx| hctx.tags == p.disks[0].device.queue_depth),
        "{name}"
    );
    assert_eq!(
        i64::from(p.disks[0].queue.nr_requests),
        shown("nr_requests"),
        "{name}"
    );
    let limits = p.disks[0].queue.limits;
    assert_eq!(
        i64::from(limits.max_sectors / 2),
        shown("max_sectors_kb"),
        "{name}"
    );
    assert_eq!(
        i64::from(limits.max_segments),
        shown("max_segments"),
        "{name}"
    );
    let discard = i64::from(limits.max_discard_sectors) * 512;
    assert_eq!(discard, shown("discard_max_hw_bytes"), "{name}");
    let segments = i64::from(limits.max_discard_segments);
    assert_eq!(segments, shown("max_discard_segments"), "{name}");
    let cache = queue.attribute("write_cache").unwrap() == "write back";
    assert_eq!(
        (limits.write_cache, limits.fua),
        (cache, shown("fua") == 1),
        "{name}"
    );
    let timeout = Duration::from_millis(shown("io_timeout") as u64);
    assert_eq!(p.disks[0].queue.io_timeout, timeout, "{name}");
    assert_eq!(
        i64::from(p.disks[0].queue.rq_affinity),
        shown("rq_affinity"),
        "{name}"
    );
    assert_eq!(
        p.disks[0].queue.nomerges as i64,
        shown("nomerges"),
        "{name}"
    );
    assert_eq!(
        i64::from(p.disks[0].device.block_sectors) * 512,
        shown("logical_block_size"),
        "{name}"
    );
    assert_eq!(
        i64::from(p.disks[0].device.rotational),
        shown("rotational"),
        "{name}"
    );
    if p.disks[0].queue.scheduler.kind() == SchedulerKind::MqDeadline {
        stale_async_depth(p, queue, name);
    }
}

/// async_depth follows the rule of `queue.async_depth`, or was written: most captures write it,
/// equal to nr_requests; dd16 leaves it stale.
fn stale_async_depth(p: &Plan, queue: &DeviceQueue, name: &str) {
    let shown = queue.tunable("async_depth").unwrap().unwrap();
    let rule = p.disks[0]
        .queue
        .scheduler
        .show("async_depth")
        .expect("an attribute");
    let on_purpose = shown == i128::from(p.disks[0].queue.nr_requests);
    assert!(
        shown == rule || on_purpose,
        "{name}: async_depth {shown}, the rule says {rule}"
    );
    if name == "dd16-asyncdepth-stale" {
        assert!(!on_purpose && shown == rule);
    }
}
