//! The captured device by itself: times, budget.

use blkmq::request::{CpuId, HctxId, Op, OpFlags, RequestId, Sector, Sectors};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};

use super::{CapturedCounts, CapturedDevice};
use crate::device::bench;
use crate::device::{Action, Command, Device, DeviceSetup};
use crate::plan::{DeviceId, DevicePlan};
use crate::replay::Services;

fn services() -> Services {
    let mut services = Services::default();
    services.add(Op::Read, (0, 8), (SimTime(0), SimTime(5000)), 1);
    services.add(Op::Read, (8, 16), (SimTime(0), SimTime(700)), 1);
    services.finish();
    services
}

fn device(plan: &DevicePlan) -> CapturedDevice {
    let setup = DeviceSetup {
        plan,
        rules: &Rules::v6_1(),
        io_timeout: Duration::from_secs(30),
        seed: 1,
        device: DeviceId(0),
        vector_cpus: &[CpuId(0)],
        requests: 4,
        units: 1,
    };
    CapturedDevice::new(services(), &setup)
}

fn read(rq: u32, sector: u64, budget: Option<u32>) -> Command {
    Command {
        rq: RequestId(rq),
        unit: 0,
        hctx: HctxId(0),
        cpu: CpuId(0),
        op: Op::Read,
        flags: OpFlags::default(),
        sector: Sector(sector),
        sectors: Sectors(8),
        polled: false,
        last: true,
        of_plug: false,
        budget,
        since_start: Duration::ZERO,
    }
}

#[test]
fn each_request_takes_its_captured_time_and_is_found_once() {
    let plan = bench::plan(crate::plan::DeviceKind::NullBlk(bench::null_blk(
        crate::plan::IrqMode::Timer,
    )));
    let mut device = device(&plan);
    let mut out = Vec::new();
    device.queue_rq(&read(0, 0, None), SimTime(1000), &mut out);
    device.queue_rq(&read(1, 8, None), SimTime(1000), &mut out);
    let after: Vec<u64> = out
        .iter()
        .map(|action| match action {
            Action::Interrupt { after, .. } => after.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(after, [5000, 700]);
    assert_eq!(device.in_flight(), 2);
    assert_eq!(
        device.interrupt(1, SimTime(1700), &mut out).unwrap().rq,
        RequestId(1)
    );
    assert!(
        device.interrupt(1, SimTime(1701), &mut out).is_none(),
        "only once"
    );
    assert_eq!(
        device.counts(),
        CapturedCounts {
            exact: 2,
            near: 0,
            mean: 0,
        }
    );
}

#[test]
fn a_budget_is_kept_and_a_full_one_runs_the_queues_again() {
    let mut plan = bench::scsi_debug(2);
    plan.budget = 2;
    let mut device = device(&plan);
    let mut out = Vec::new();
    let first = device.get_budget(0, SimTime(0), &mut out);
    let second = device.get_budget(0, SimTime(0), &mut out);
    assert!(first.is_some());
    assert!(second.is_some());
    assert_eq!(device.get_budget(0, SimTime(0), &mut out), None);
    device.queue_rq(&read(0, 0, first), SimTime(0), &mut out);
    device.put_budget(0);
    assert!(device.get_budget(0, SimTime(0), &mut out).is_some());
    out.clear();
    device.ended(RequestId(0), SimTime(5000), &mut out);
    assert_eq!(
        out,
        [Action::RunQueues {
            unit: None,
            delay: Duration::ZERO
        }]
    );
    assert!(device.get_budget(0, SimTime(5000), &mut out).is_some());
}
