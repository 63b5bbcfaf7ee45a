//! Properties of a device in queue.txt.

use std::collections::BTreeMap;
use std::path::Path;

use blkmq::rules::QueueLimits;
use trace::capture::CaptureDir;
use trace::queue_txt::DeviceQueue;

use super::limits::limits;
use super::{Setup, scheduler};
use crate::Options;

/// Limits of a device, with these attributes besides those that every kernel shows.
fn limits_with(more: &[(&str, &str)]) -> Result<QueueLimits, crate::Error> {
    let always = [
        ("chunk_sectors", "0"),
        ("discard_max_bytes", "1048576"),
        ("fua", "0"),
        ("max_discard_segments", "1"),
        ("max_sectors_kb", "512"),
        ("max_segments", "128"),
        ("write_cache", "write through"),
    ];
    let all = always.iter().chain(more);
    limits(&DeviceQueue {
        file: "queue.txt".into(),
        line: 1,
        name: "sda".to_owned(),
        sectors: 1 << 20,
        attributes: all
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        iosched: BTreeMap::new(),
        hctxs: Vec::new(),
        lines: BTreeMap::new(),
    })
}

/// Bytes there, sectors here; without the attribute discards are not split.
#[test]
fn discards_are_cut_at_the_granularity_that_the_capture_shows() {
    let granularity = |more: &[(&str, &str)]| limits_with(more).unwrap().discard_granularity;
    assert_eq!(granularity(&[("discard_granularity", "4096")]), 8);
    assert_eq!(granularity(&[("discard_granularity", "512")]), 1);
    assert_eq!(granularity(&[("discard_granularity", "0")]), 0);
    assert_eq!(granularity(&[]), 0);
    let wrong = limits_with(&[("discard_granularity", "much")]).unwrap_err();
    let message = wrong.to_string();
    assert!(message.contains("queue/discard_granularity"), "{message}");
}

/// bfq-iosched.c: strict_guarantees raises a slice_idle that is shorter than 8 ms; a shorter one
/// needs a write after that.
#[test]
fn an_attribute_that_a_later_write_changed_has_the_shown_value() {
    let iosched = [
        ("slice_idle", "0"),
        ("slice_idle_us", "0"),
        ("strict_guarantees", "1"),
    ];
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let settings = scheduler(
        &DeviceQueue {
            file: "queue.txt".into(),
            line: 1,
            name: "sda".to_owned(),
            sectors: 1 << 20,
            attributes: [owned(&("scheduler", "none [bfq]"))].into(),
            iosched: iosched.iter().map(owned).collect(),
            hctxs: Vec::new(),
            lines: BTreeMap::new(),
        },
        250,
    );
    let settings = settings.expect("all of these are attributes");
    for (name, value) in iosched {
        let shown = settings.show(name).map(|shown| shown.to_string());
        assert_eq!(shown.as_deref(), Some(value), "{name}");
    }
}

/// null_blk: one map of tags for all hardware queues, and a driver that may sleep. A kernel accepts
/// more than 1 as true for a bool parameter.
#[test]
fn parameters_of_null_blk_decide_about_its_tags_and_its_runs() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/no01-burst");
    let with = |name: &str, value: &str| {
        let mut dir = CaptureDir::open(&traces).unwrap();
        let parameters = &mut dir.meta.device.parameters;
        parameters.insert(name.to_owned(), value.to_owned());
        let setup = Setup::read(&dir, "nullb0", &Options::default(), 250).unwrap();
        (setup.hctx_shared, setup.blocking)
    };
    for (value, on) in [("1", true), ("Y", true), ("0", false), ("N", false)] {
        assert_eq!(with("shared_tag_bitmap", value), (on, false), "{value}");
        assert_eq!(with("blocking", value), (false, on), "{value}");
        assert_eq!(with("memory_backed", value), (false, on), "{value}");
    }
}
