//! The price of the search for an hctx to restart, and the table of functions that shows it.

use std::path::Path;

use scenario::profile;
use scenario::report::{FunctionReport, Origin, Report};
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::{Cache, Caches, MachineProfile};

/// Calls of blk_mq_sched_restart() on `devices` disks of 16 hctxs that share tags, a third of the
/// requests waiting for one; and the run. Each thread has a CPU and so an hctx of its own.
fn run(rule: &str, devices: u32, profile: &MachineProfile) -> (FunctionReport, Simulator, Plan) {
    let names: Vec<String> = (0..devices).map(|i| format!("/dev/nullb{i}")).collect();
    let text = format!(
        "[machine]\nprofile = \"pserver16\"\ncpus = 16\n\
         [queue]\nscheduler = \"mq-deadline\"\nrestart = \"v4.14\"\nrestart_rule = \"{rule}\"\n\
         [device]\ntype = \"null_blk\"\nnr_devices = {devices}\nshared_tags = 1\n\
         submit_queues = 16\npoll_queues = 0\nhw_queue_depth = 16\nirqmode = 2\n\
         completion_nsec = 1000000\n\
         [[job]]\nname = \"j\"\nfilename = \"{}\"\nrw = \"randread\"\nioengine = \"libaio\"\n\
         iodepth = 24\ndirect = 1\nnumjobs = 16\ncpus_allowed = \"0-15\"\n\
         cpus_allowed_policy = \"split\"\ntime_based = true\nruntime = \"8ms\"\n",
        names.join(":")
    );
    let info = ProfileFacts {
        name: "pserver16",
        cpus: profile.cpus(),
    };
    let scenario = Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
    let plan = scenario.plan(&[info]).unwrap();
    let mut simulator = Simulator::new(&plan, profile).unwrap();
    assert!(matches!(simulator.run(|_| true), Outcome::Finished));
    simulator.settle();
    let all = FunctionReport::all(simulator.recorder());
    let mut found = all
        .into_iter()
        .filter(|f| f.function == FunctionReport::SCHED_RESTART);
    let function = found.next().expect("requests end");
    (function, simulator, plan)
}

fn restart(rule: &str, devices: u32, profile: &MachineProfile) -> FunctionReport {
    run(rule, devices, profile).0
}

/// Price of a look at the own hctx's bit, and of clearing it; nanoseconds.
fn own_hctx(devices: u32, profile: &MachineProfile) -> [f64; 2] {
    let (_, simulator, _) = run("R4", devices, profile);
    ["complete.restart", "complete.clear-restart"].map(|name| {
        let mut labels = simulator.spent().labels();
        let found = labels.find(|(label, _)| label.name() == name);
        let (_, sum) = found.expect("some wait for a tag");
        sum.ps as f64 / 1000.0 / sum.count as f64
    })
}

fn pserver16() -> MachineProfile {
    profile::built_in("pserver16").unwrap()
}

/// R1 and R2 iterate over hctxs, R4 looks at one bit. Their number decides the price of a call, and
/// so the throughput. With few disks a run more often meets requests of other hctxs and reads their
/// bits: a bit that is set already is only read, so the copies are invalidated when it is cleared;
/// that is one line, not one for each disk.
#[test]
fn the_walk_grows_with_the_set_and_the_own_hctx_does_not() {
    let machine = pserver16();
    let mean = |rule, devices| restart(rule, devices, &machine).mean_ns;
    let (few, many) = (mean("R2", 4), mean("R2", 32));
    assert!(many > 2.0 * few, "{few} ns, then {many} ns");
    let (own_few, own_many) = (mean("R4", 4), mean("R4", 32));
    assert!(own_many < own_few + 5.0, "{own_few}, {own_many}");
    let line = machine.transfer_ps.socket as f64 / 1000.0;
    assert!(own_few < own_many + line, "{own_few}, {own_many}");
    assert!(many > 20.0 * own_many, "{many} ns against {own_many} ns");
}

/// With few disks an hctx has more requests: more often one of them waits and the bit is found, and
/// more often another CPU read its line last. With many disks a look that finds it and clears it
/// costs no more than that. (The line comes once, for the look or for the clearing: both together.)
#[test]
fn a_look_at_the_own_hctx_does_not_cost_more_with_many_disks() {
    let machine = pserver16();
    let both = |devices| own_hctx(devices, &machine).iter().sum::<f64>();
    let (few, many) = (both(4), both(32));
    assert!(many < few + 5.0, "{few} ns, then {many} ns");
}

/// hctxs lie 1 KiB apart, so their lines share one sixteenth of the sets: lines that do not fit
/// there come from the last-level cache and, if that has too few sets, too, from memory, though it
/// could hold the lines many times.
#[test]
fn a_walk_comes_from_memory_where_its_lines_share_too_few_sets() {
    let with = |devices, own_kib, last_level_kib| {
        let mut machine = pserver16();
        let (ways, caches) = (16, machine.caches.unwrap());
        let cache = |kib| Cache { kib, ways };
        machine.caches = Some(Caches {
            own: cache(own_kib),
            last_level: cache(last_level_kib),
            ..caches
        });
        restart("R2", devices, &machine).mean_ns
    };
    // 512 hctxs: room for 1024; for 256, then 8192; for 128, then 256, of 4096 lines in all.
    let (kept, near, far) = (
        with(32, 1024, 8192),
        with(32, 256, 8192),
        with(32, 128, 256),
    );
    assert!(near > 1.5 * kept, "{near} ns against {kept} ns");
    assert!(far > 2.0 * near, "{far} ns against {near} ns");
    // 128 hctxs have room in the smallest.
    let (small, large) = (with(8, 128, 256), with(8, 1024, 8192));
    assert!((small - large).abs() < 1e-9, "{small} ns and {large} ns");
}

/// Each request that ends calls it once.
#[test]
fn calls_are_counted() {
    let machine = pserver16();
    let (function, simulator, plan) = run("R4", 8, &machine);
    let recorder = simulator.recorder();
    let report = Report::new(Origin::default(), &plan, &machine, recorder, None);
    let ended = report.blksim.all_ios;
    assert_eq!(function.hits, ended);
    assert!(ended > 1000);
}
