//! The latencies of `Btt` agree with what btt printed for every capture.

mod common;

use std::collections::BTreeMap;

use trace::blktrace::Reader;
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
    let all = [
        ("Q2Q", table.q2q),
        ("Q2Qdm", table.q2q_dm),
        ("Q2Adm", table.q2a_dm),
        ("Q2G", table.q2g),
        ("G2I", table.g2i),
        ("Q2M", table.q2m),
        ("I2D", table.i2d),
        ("M2D", table.m2d),
        ("D2C", table.d2c),
        ("Q2C", table.q2c),
        ("Q2Cdm", table.q2c_dm),
    ];
    all.iter()
        .filter(|(_, latency)| latency.count > 0)
        .map(|(name, latency)| ((*name).to_string(), row(latency)))
        .collect()
}

#[test]
fn every_capture_has_the_latencies_btt_printed() {
    let mut wrong = Vec::new();
    let captures = common::captures();
    assert!(captures.len() >= 30);
    for capture in captures {
        let want = printed(&common::text(&capture.join("btt.txt.xz")));
        let mut reader = Reader::open(&[&capture], common::all_devices()).expect("it opens");
        let mut btt = Btt::new();
        while let Some(event) = reader.next().expect("it is not damaged") {
            btt.add(&event);
        }
        let got = rows(btt.table());
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
