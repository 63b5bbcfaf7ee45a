//! A trace of a mapped device in which one clone came to another path.

use std::fs;

use serde_json::Value;

use crate::place::{Place, json};

/// Two SCSI hosts of four tags under a mapped device.
const SCENARIO: &str = r#"
[machine]
cpus = 1
[queue]
rules = "v6.1"
scheduler = "none"
[device]
type = "scsi_debug"
add_host = 2
ndelay = 200000
max_queue = 4
dev_size_mb = 256
[mapped]
use_blk_mq = 1
table = "0 524288 multipath 0 0 1 1 service-time 0 2 2 sda 1 1 sdb 1 1"
[[job]]
name = "j"
rw = "randrw"
rwmixread = 70
bs = "4k"
ioengine = "libaio"
direct = 1
iodepth = 24
size = "64m"
number_ios = 200
"#;

/// The verdicts on the device above, of a folder `trace`: choices and dispatches.
fn judged(place: &Place, mode: &str) -> Value {
    let args = ["conform", "trace", "--trace-device", "dm-0", "--mode", mode];
    json(&place.blksim(&[&args[..], &["--json"]].concat()))
}

/// Choices of a bio-based device are judged as those of requests; nothing is dispatched there, and
/// the dispatches of its paths are predicted besides.
#[test]
fn choices_of_bios_are_predicted() {
    for (selector, words) in [("round-robin", 1), ("queue-length", 1), ("service-time", 2)] {
        let path = |device: &str| format!("{device}{}", " 1".repeat(words));
        let paths = format!("2 {words} {} {}", path("sda"), path("sdb"));
        let table = format!("0 524288 multipath 2 queue_mode bio 0 1 1 {selector} 0 {paths}");
        let old = "0 524288 multipath 0 0 1 1 service-time 0 2 2 sda 1 1 sdb 1 1";
        let scenario = SCENARIO
            .replace("use_blk_mq = 1\n", "")
            .replace(old, &table)
            .replace(r#"bs = "4k""#, r#"bsrange = "4k-64k""#);
        let place = Place::new();
        fs::write(place.0.path().join("mp.toml"), scenario).unwrap();
        let ran = place.blksim(&["run", "mp.toml", "--blktrace", "trace"]);
        assert_eq!(ran.code, Some(0), "{selector}: {ran:?}");
        let verdict = judged(&place, "records");
        let what = format!("{selector}: {verdict:#}");
        assert_eq!(verdict["choices"]["total"], 200, "{what}");
        assert_eq!(verdict["choices"]["predicted"], 200, "{what}");
        assert_eq!(verdict["total"], 0, "{what}");
        let ran = place.blksim(&["conform", "trace"]);
        let note = "note: dm-0: bio-based, so that no request is there to dispatch";
        assert!(ran.stdout.contains(note), "{ran:?}");
        assert!(
            ran.stdout.contains("predicted 200/200 dispatches"),
            "{ran:?}"
        );
        // The mutant: one clone that came to the other path.
        move_a_clone(&place);
        let ran = place.blksim(&["conform", "trace", "--trace-device", "dm-0", "--json"]);
        assert_eq!(ran.code, Some(1), "{selector}: {ran:?}");
        let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(verdict["choices"]["total"], 200, "{selector}: {verdict:#}");
        assert!(
            verdict["choices"]["predicted"].as_u64() < Some(200),
            "{selector}: {verdict:#}"
        );
    }
}

/// All records of the twentieth clone of sda are of sdb instead.
fn move_a_clone(place: &Place) {
    let file = |device: &str| place.0.path().join(format!("trace/{device}.blktrace.0"));
    let [mut from, mut to] = ["sda", "sdb"].map(|device| records(&fs::read(file(device)).unwrap()));
    let is_remap = |record: &&Vec<u8>| record[28..30] == [15, 0];
    let sector = from.iter().filter(is_remap).nth(19).expect("clones")[16..24].to_vec();
    let other = to.last().expect("records")[36..40].to_vec();
    let is_of_clone = |record: &Vec<u8>| record[16..24] == sector[..];
    let (mut moved, mut kept): (Vec<_>, Vec<_>) = from.drain(..).partition(is_of_clone);
    for record in &mut moved {
        record[36..40].copy_from_slice(&other);
    }
    to.extend(moved);
    to.sort_by_key(|record| u64::from_le_bytes(record[8..16].try_into().unwrap()));
    // None is missing; a record that is no event has no number.
    for records in [&mut kept, &mut to] {
        let events = records.iter_mut().filter(|record| record[4..8] != [0; 4]);
        for (number, record) in (1_u32..).zip(events) {
            record[4..8].copy_from_slice(&number.to_le_bytes());
        }
    }
    fs::write(file("sda"), kept.concat()).unwrap();
    fs::write(file("sdb"), to.concat()).unwrap();
}

/// Each record of a binary trace, with its payload.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while bytes.len() >= 48 {
        let length = 48 + usize::from(u16::from_le_bytes([bytes[46], bytes[47]]));
        records.push(bytes[..length].to_vec());
        bytes = &bytes[length..];
    }
    records
}
