//! The latencies of `Btt` agree with btt's output for every capture.

use crate::common;
use std::collections::BTreeMap;
use std::path::Path;

use trace::blktrace::{Action, Event, Reader};
use trace::matching::{Btt, BttTable, Latency};

/// btt's "All Devices" table: name to (min, avg, max, count), as printed.
fn printed(text: &str) -> BTreeMap<String, [String; 4]> {
    let table = text
        .split("All Devices")
        .nth(1)
        .expect("there is such a table");
    let table = table
        .split("====================")
        .nth(1)
        .expect("the rest of the title line");
    let mut rows = BTreeMap::new();
    for line in table.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [name, min, avg, max, count] = fields[..]
            && name.contains('2')
        {
            rows.insert(name.into(), [min, avg, max, count].map(String::from));
        }
    }
    rows
}

fn row(latency: &Latency) -> [String; 4] {
    let seconds = |ns: f64| format!("{:.9}", ns / 1e9);
    [
        seconds(latency.min.0 as f64),
        seconds(latency.total_ns as f64 / latency.count as f64),
        seconds(latency.max.0 as f64),
        latency.count.to_string(),
    ]
}

fn rows(table: &BttTable) -> BTreeMap<String, [String; 4]> {
    let all = table.rows();
    all.iter()
        .filter(|(_, latency)| latency.count > 0)
        .map(|(name, latency)| ((*name).to_string(), row(latency)))
        .collect()
}

/// The capture as btt sees it, its events changed first.
fn counted(capture: &Path, change: impl FnOnce(&mut Vec<Event>)) -> BTreeMap<String, [String; 4]> {
    let mut reader = Reader::open(&[capture], common::all_devices()).expect("it opens");
    let mut events = Vec::new();
    while let Some(event) = reader.next().expect("it is not damaged") {
        events.push(event);
    }
    change(&mut events);
    let mut btt = Btt::new();
    for event in &events {
        btt.add(event);
    }
    rows(&btt.table())
}

/// The comparison has teeth: one event less or two completions exchanged, and it fails.
#[test]
fn a_changed_capture_no_longer_agrees() {
    for name in [
        "dd09-waves",
        "m2-seqmerge-mq-deadline",
        "m4-shared3-mq-deadline",
    ] {
        let capture = common::traces().join(name);
        let want = printed(&common::text(&capture.join("btt.txt.xz")));
        assert_eq!(counted(&capture, |_| {}), want);
        let kinds = [
            Action::Queue,
            Action::GetRequest,
            Action::Issue,
            Action::Complete,
        ];
        for kind in kinds {
            let got = counted(&capture, |events| {
                let mut of_kind = events.iter().enumerate().filter(|(_, e)| e.action == kind);
                let at = of_kind.nth(20).expect("there are more").0;
                events.remove(at);
            });
            assert_ne!(got, want, "{name} without one {kind:?}");
        }
        let got = counted(&capture, |events| {
            let mut done: Vec<&mut Event> = events
                .iter_mut()
                .filter(|e| e.action == Action::Complete)
                .collect();
            let (left, right) = done.split_at_mut(21);
            std::mem::swap(&mut left[20].sector, &mut right[1].sector);
        });
        assert_ne!(got, want, "{name} with two completions exchanged");
    }
}

#[test]
fn every_capture_has_the_latencies_btt_printed() {
    let mut wrong = Vec::new();
    let captures = common::captures();
    assert!(captures.len() >= 30);
    for capture in captures {
        let want = printed(&common::text(&capture.join("btt.txt.xz")));
        let got = counted(&capture, |_| {});
        let names: std::collections::BTreeSet<&String> = want.keys().chain(got.keys()).collect();
        for name in names {
            if want.get(name) != got.get(name) {
                wrong.push(format!(
                    "{} {name}: btt {:?}, here {:?}",
                    capture.file_name().expect("named").display(),
                    want.get(name),
                    got.get(name)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
