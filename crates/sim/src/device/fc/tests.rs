//! A Fibre Channel host: the link of both directions, answers by interrupts, units.

use proptest::prelude::*;

use crate::device::bench::{Bench, Io, fc, random_ios, reads};
use crate::plan::{DeviceKind, DevicePlan};
use blkmq::request::Op;
use blkmq::rules::Rules;
use blkmq::time::Duration;

fn with_link(mut plan: DevicePlan, read_mbps: u32, write_mbps: u32) -> DevicePlan {
    let DeviceKind::Fc(kind) = &mut plan.kind else {
        panic!("it is a Fibre Channel host");
    };
    (kind.read_mbps, kind.write_mbps) = (read_mbps, write_mbps);
    plan
}

/// When the last of some I/Os ended, in us.
fn took(plan: &DevicePlan, ios: &[Io]) -> u64 {
    let mut bench = Bench::new(plan, &Rules::v6_12(), 1);
    bench.run(ios).expect("drains");
    bench.ended.iter().map(|end| end.at.0 / 1000).max().unwrap()
}

#[test]
fn data_wait_for_the_link_of_their_direction() {
    let plan = with_link(fc(64), 1, 0);
    let reads: Vec<Io> = reads(16)
        .iter()
        .map(|&io| Io { sectors: 8, ..io })
        .collect();
    let writes: Vec<Io> = reads
        .iter()
        .map(|&io| Io {
            op: Op::Write,
            ..io
        })
        .collect();
    // 64 KiB at 1 MiB/s, and 10 us of the last one.
    let slow = took(&plan, &reads);
    assert!((62_500..62_600).contains(&slow), "{slow}");
    let free = took(&plan, &writes);
    assert!((10..30).contains(&free), "{free}");
    // Both directions at once take no longer than reads only.
    let both = took(&plan, &[reads, writes].concat());
    assert!((62_500..62_600).contains(&both), "{both}");
}

#[test]
fn one_interrupt_finds_all_that_was_answered() {
    let mut bench = Bench::new(&fc(64), &Rules::v6_12(), 1);
    bench.late_ns = 100_000;
    bench.run(&reads(32)).expect("drains");
    assert_eq!(bench.ended.len(), 32);
    assert!(bench.interrupts <= 4, "{} interrupts", bench.interrupts);
}

/// The mutant: a handler that leaves after one completion loses the others.
#[test]
fn a_handler_that_takes_one_loses_the_others() {
    let mut bench = Bench::new(&fc(64), &Rules::v6_12(), 1);
    bench.late_ns = 100_000;
    bench.takes_one = true;
    assert!(bench.run(&reads(32)).is_err(), "completions are lost");
}

proptest! {
    /// No command is lost, whatever the depth; never more in flight than the unit takes.
    #[test]
    fn everything_drains(
        seed in 0u64..1000,
        lun_depth in 1u32..30,
        depth in 1u32..20,
        mbps in prop::sample::select(vec![0u32, 1, 100, 10_000]),
        late_ns in 0u64..30_000,
    ) {
        let mut plan = with_link(fc(lun_depth), mbps, mbps);
        plan.default_queues = 2;
        plan.queue_depth = depth;
        let mut bench = Bench::new(&plan, &Rules::v6_1(), seed);
        bench.late_ns = late_ns;
        let ios = random_ios(seed, 300, 2, 2_000);
        prop_assert_eq!(bench.run(&ios), Ok(()));
        prop_assert!(bench.in_flight_max <= lun_depth);
        for ended in &bench.ended {
            prop_assert!(ended.at.since(ended.issued) >= Duration::from_micros(10));
        }
    }
}
