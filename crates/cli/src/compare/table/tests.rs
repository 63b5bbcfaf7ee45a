use scenario::profile;
use scenario::report::Origin;
use scenario::{ProfileFacts, Scenario};
use sim::machine::Simulator;

use super::*;

/// A report whose figures are set by hand, so that no price of a machine is in the snapshot.
fn report(iops: f64, idle: f64) -> Report {
    let text = "[machine]\ncpus = 1\n[device]\ntype = \"null_blk\"\n[[job]]\nrw = \"randread\"\n\
                direct = 1\nnumber_ios = 1\n";
    let scenario = Scenario::from_toml(std::path::Path::new("small.toml"), text).unwrap();
    let profile = profile::built_in("ryzen-7950x").unwrap();
    let info = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    let plan = scenario.plan(&[info]).unwrap();
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    simulator.run(|_| true);
    simulator.settle();
    let origin = Origin::default();
    let mut report = Report::new(origin, &plan, &profile, simulator.recorder(), None);
    let read = &mut report.jobs[0].read;
    read.iops = iops;
    read.bw_bytes = (iops * 512.0) as u64;
    read.clat_ns.mean = 1e9 / iops;
    for (_, value) in &mut read.clat_ns.percentile.0 {
        *value = 1000;
    }
    report.cpus.idle = idle;
    report.cpus.lock_wait = 10.0;
    report.cpus.system = 60.0 - idle;
    report.cpus.softirq = 1.0;
    report.cpus.irq = 0.0;
    report
}

fn table() -> Table {
    let first = [
        report(1000.0, 0.0),
        report(1100.0, 1.0),
        report(1200.0, 2.0),
    ];
    let second = [
        report(2000.0, 50.0),
        report(2200.0, 50.0),
        report(2500.0, 50.0),
    ];
    let third = [
        report(1010.0, 0.0),
        report(1080.0, 1.0),
        report(1205.0, 2.0),
    ];
    let mut variants = [first, second, third];
    for (reports, scheduler) in variants.iter_mut().zip(["mq-deadline", "none", "kyber"]) {
        for (report, seed) in reports.iter_mut().zip(7..) {
            report.blksim.seed = seed;
            report.blksim.varied = vec![
                ("scheduler".to_owned(), scheduler.to_owned()),
                ("job.iodepth".to_owned(), "4".to_owned()),
                ("seed".to_owned(), seed.to_string()),
            ];
        }
    }
    Table::new(&variants.each_ref().map(|of| &of[..]), None)
}

#[test]
fn text() {
    insta::assert_snapshot!(table().text());
}

#[test]
fn csv() {
    insta::assert_snapshot!(table().csv());
}

#[test]
fn json_has_the_figures_of_the_text() {
    let json: Value = serde_json::from_str(&table().json()).unwrap();
    assert_eq!(json["seeds"], json!([7, 8, 9]));
    assert_eq!(json["read"]["iops"], json["measures"]["iops"]);
    let iops = &json["measures"]["iops"]["variants"];
    assert_eq!(iops[0]["mean"], json!(1100.0));
    assert_eq!(iops[0]["difference"], Value::Null);
    assert_eq!(iops[1]["values"], json!([2000.0, 2200.0, 2500.0]));
    let difference = iops[1]["difference"].as_f64().unwrap();
    assert!((difference - 100.0 * (6700.0 - 3300.0) / 3300.0).abs() < 1e-9);
}

#[test]
fn one_seed_has_no_interval() {
    let reports = [report(1000.0, 0.0)];
    let table = Table::new(&[&reports, &reports], None);
    assert!(!table.text().contains('\u{b1}'), "{}", table.text());
    assert!(
        table
            .text()
            .contains("seed 1, 95 % intervals from batches of each run")
    );
}
