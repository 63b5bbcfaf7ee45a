//! Priorities of the arrivals of a capture.

use std::path::{Path, PathBuf};

use scenario::replay::{PrioritySource, prioritise, read};
use sim::replay::Point;
use trace::blktrace::Options;
use trace::capture::CaptureDir;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces")
        .join(name)
}

#[test]
fn priorities_come_from_the_script_or_from_probes() {
    for (name, source, classes) in [
        ("dd06-prio", PrioritySource::Script, 3),
        ("m2-prio-mq-deadline", PrioritySource::Probes, 3),
        ("m2-seqmerge-none", PrioritySource::Default, 1),
    ] {
        let path = folder(name);
        let dir = CaptureDir::open(&path).unwrap();
        let mut arrivals = read(&[&path], Options::default(), Point::Queue, &[]).unwrap();
        assert_eq!(prioritise(&mut arrivals, &dir).unwrap(), source, "{name}");
        let found: std::collections::BTreeSet<_> =
            arrivals.ios.iter().map(|io| io.ioprio.class).collect();
        assert_eq!(found.len(), classes, "{name}: {found:?}");
    }
}
