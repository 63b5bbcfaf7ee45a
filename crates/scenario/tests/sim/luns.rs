//! SCSI hosts with several logical units: tags of the host, a depth of each unit, and the queue
//! that is run when a budget is released.

use std::path::Path;

use scenario::{ProfileFacts, Scenario};
use sim::machine::{Simulator, Stall};
use sim::plan::{DeviceId, Plan};
use wrapper::DeviceWrapper;

use crate::runs;
use crate::wrapper;

const IOS: u64 = 600;

/// Disks `sda` and so on of these hosts, a job of two threads on each.
fn plan(scheduler: &str, device: &str, disks: u8) -> Plan {
    let job = |disk: u8| {
        let name = format!("sd{}", char::from(b'a' + disk));
        format!(
            "[[job]]\nname = \"{name}\"\nfilename = \"/dev/{name}\"\nrw = \"randread\"\n\
             direct = 1\nioengine = \"io_uring\"\niodepth = 16\nnumjobs = 2\n\
             norandommap = true\nnumber_ios = {}\n",
            IOS / 2
        )
    };
    let jobs: String = (0..disks).map(job).collect();
    runs::plan_of(&format!(
        "[machine]\ncpus = 4\n[queue]\nscheduler = \"{scheduler}\"\n\
         [device]\ntype = \"scsi_debug\"\nndelay = 20000\ndev_size_mb = 64\n{device}\n{jobs}"
    ))
}

/// Runs to the end. Most requests with all devices at once, and with each disk.
fn depths(plan: &Plan) -> (u32, Vec<u32>) {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    simulator.settle();
    let recorder = simulator.recorder();
    for job in &recorder.jobs {
        assert_eq!(job.directions[0].ios, IOS, "{}", job.name);
    }
    let of = recorder.disks.iter().map(|disk| disk.depth.max);
    (recorder.device_depth.max, of.collect())
}

#[test]
fn tags_are_of_the_host_and_budgets_of_the_unit() {
    for scheduler in ["none", "mq-deadline"] {
        let one_host = "num_tgts = 2\nmax_luns = 2\nmax_queue = 8\n";
        let plan_of = |keys: &str| plan(scheduler, &format!("{one_host}{keys}"), 4);
        let (all, each) = depths(&plan_of(""));
        assert_eq!(all, 8, "{scheduler}: {each:?}");
        assert!(each.iter().any(|most| *most > 3), "{scheduler}: {each:?}");
        let (all, each) = depths(&plan_of("cmd_per_lun = 3\n"));
        assert_eq!((all, &each[..]), (8, &[3; 4][..]), "{scheduler}");
        let (all, each) = depths(&plan_of("cmd_per_lun = 1\n"));
        assert_eq!((all, &each[..]), (4, &[1; 4][..]), "{scheduler}");
        // Each on a host of its own.
        let (all, each) = depths(&plan(scheduler, "add_host = 4\nmax_queue = 8\n", 4));
        assert!(all > 16, "{scheduler}: {all}");
        assert!(each.iter().all(|most| *most == 8), "{scheduler}: {each:?}");
    }
}

#[test]
fn hosts_have_units_each() {
    let keys = "add_host = 2\nmax_luns = 2\nmax_queue = 4\nhost_max_queue = 4\n\
                submit_queues = 2\n";
    let plan = plan("none", keys, 4);
    let sets: Vec<u8> = plan.disks.iter().map(|disk| disk.set.0).collect();
    assert_eq!(sets, [0, 0, 1, 1]);
    let (all, each) = depths(&plan);
    assert_eq!(all, 8);
    assert!(each.iter().all(|most| (1..=4).contains(most)), "{each:?}");
}

/// Budgets that are released without running a queue leave I/O that nothing will start.
#[test]
fn without_runs_after_an_end_a_unit_hangs() {
    let keys = "max_luns = 2\nmax_queue = 16\ncmd_per_lun = 1\n";
    let plan = plan("mq-deadline", keys, 2);
    let run = |lazy: bool| -> Option<Box<Stall>> {
        let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
        DeviceWrapper::around(&mut simulator, DeviceId(0), |wrapper| wrapper.lazy = lazy);
        runs::to_its_end(&mut simulator)
    };
    assert!(run(false).is_none());
    let stall = run(true).expect("no queue is run").to_string();
    let both = "unit 0: 0 of 1 budgets used, restarts 0, blocked: device 0 host 0; \
                unit 1: 0 of 1 budgets used, restarts 0";
    assert!(stall.contains(both), "{stall}");
}

/// More units than interrupt levels, all of which the host refuses now and then.
#[test]
fn many_units_starve_and_are_run() {
    let keys = "num_tgts = 4\nmax_luns = 4\nmax_queue = 2\n\
                [device.fault]\nbusy = \"1/2\"\nbusy_status = \"resource\"\n";
    for scheduler in ["none", "mq-deadline"] {
        let (all, _) = depths(&plan(scheduler, keys, 16));
        assert_eq!(all, 2, "{scheduler}");
    }
}

#[test]
fn what_may_be_wrong() {
    for (keys, want) in [
        (
            "num_tgts = 0",
            "s.toml:3: device.num_tgts: 0 is not 1 to 255",
        ),
        (
            "max_luns = 300",
            "s.toml:3: device.max_luns: 300 is not 1 to 255",
        ),
        (
            "max_luns = 16\nnum_tgts = 20",
            "s.toml:4: device.num_tgts: 320 is not 1 to 255",
        ),
        (
            "max_queue = 8\ncmd_per_lun = 9",
            "s.toml:4: device.cmd_per_lun: 9 is not 1 to 8",
        ),
    ] {
        let text = format!(
            "[device]\ntype = \"scsi_debug\"\n{keys}\n[[job]]\nrw = \"randread\"\ndirect = 1\n"
        );
        let scenario = Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
        let profile = runs::machine();
        let info = ProfileFacts {
            name: "ryzen-7950x",
            cpus: profile.cpus(),
        };
        let got = scenario.plan(&[info]).unwrap_err().to_string();
        assert_eq!(got, want);
    }
}
