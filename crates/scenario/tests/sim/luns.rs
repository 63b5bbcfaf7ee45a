//! SCSI hosts with several logical units: the queue that is run when a budget is released.

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
