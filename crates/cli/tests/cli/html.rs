//! `--html` from outside: its figures are those of JSON, and a browser shows it.

use std::process::Command;

use serde_json::Value;

use crate::place::Place;

/// The page and the JSON of one run.
fn both() -> (Place, String, Value) {
    let place = Place::small();
    let args = "run small.toml --set job.rw=randrw --json=run.json --html run.html";
    let ran = place.blksim(&args.split(' ').collect::<Vec<_>>());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let read = |name| std::fs::read_to_string(place.path(name)).unwrap();
    let (page, json) = (read("run.html"), read("run.json"));
    (place, page, serde_json::from_str(&json).unwrap())
}

#[test]
fn its_figures_are_those_of_json() {
    let (_place, page, report) = both();
    let mut figures: Vec<f64> = Vec::new();
    let mut add = |of: &Value, names: &[&str]| {
        figures.extend(names.iter().map(|name| of[name].as_f64().unwrap()));
    };
    add(
        &report["cpus"],
        &["user", "system", "softirq", "irq", "lock_wait", "idle"],
    );
    for direction in ["read", "write"] {
        let of = format!("/jobs/0/{direction}");
        let io = report
            .pointer(&format!("/blksim{of}"))
            .or_else(|| report.pointer(&of))
            .unwrap();
        add(io, &["iops", "bw_bytes", "total_ios"]);
        add(&io["clat_ns"], &["min", "mean", "stddev", "max"]);
        let percentile = &io["clat_ns"]["percentile"];
        let names: Vec<&str> = percentile
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert!(names.len() >= 17, "{names:?}");
        add(percentile, &names);
    }
    for work in report["work"].as_array().unwrap() {
        add(work, &["cycles_per_io"]);
    }
    for lock in report["locks"].as_array().unwrap() {
        add(
            lock,
            &[
                "acquisitions",
                "contended",
                "wait_ns",
                "hold_ns",
                "wait_max_ns",
            ],
        );
        for caller in lock["callers"].as_array().into_iter().flatten() {
            add(caller, &["contended", "wait_ns", "wait_max_ns"]);
        }
        if let Some(far) = lock["handoffs"].as_object() {
            let names: Vec<&str> = far.keys().map(String::as_str).collect();
            add(&lock["handoffs"], &names);
        }
    }
    assert!(figures.len() > 100, "{}", figures.len());
    let cells = page.split("<data value=\"").skip(1);
    let cells = cells.map(|rest| rest.split('"').next().unwrap().parse().unwrap());
    let cells: Vec<f64> = cells.collect();
    for figure in figures {
        // Parsing may lose the last digit of the many that both have.
        let same = |cell: &&f64| (**cell - figure).abs() <= 1e-12 * figure.abs();
        assert!(cells.iter().any(|cell| same(&cell)), "{figure}");
    }
}

/// Chromium takes the page for what it is: no part of it is lost, and nothing is fetched. Without
/// it a line says that this is skipped; where CI=true that is a failure.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_browser_shows_all_of_it() {
    let (place, page, _) = both();
    let file = format!("file://{}", place.path("run.html").display());
    let profile = format!("--user-data-dir={}", place.path("profile").display());
    let shown_by = |browser| {
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu"]);
        command.args(["--virtual-time-budget=2000", "--dump-dom"]);
        command.args([&profile, &file]).output().ok()
    };
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let Some(shown) = browsers.into_iter().find_map(shown_by) else {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "chromium is missing");
        println!("skipped: there is no chromium to show a page");
        return;
    };
    let shown = String::from_utf8_lossy(&shown.stdout);
    for part in [
        "<section",
        "<table",
        "<tr>",
        "<td",
        "<svg",
        "<polyline",
        "<details",
        "<pre",
    ] {
        let (wanted, found) = (page.matches(part).count(), shown.matches(part).count());
        assert!(
            wanted > 0 && wanted == found,
            "{part}: {wanted} written, {found} shown"
        );
    }
}
