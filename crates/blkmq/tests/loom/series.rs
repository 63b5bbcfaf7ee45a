//! Insertion buckets of the January 2024 series: two CPUs insert a read each, at once.
//!
//! A thread that finds the other one inserting leaves its request in a bucket and returns; the
//! verdict is whether the request ends. Kernel: none; see `Series`.

use super::driver::{Context, Machine, Setup};
use super::{Arc, COMPLETER, DISPATCHER, spawn};
use blkmq::elevator::SchedulerKind;
use blkmq::rules::{Rules, Series};

/// Two submissions against each other.
pub(super) fn insert(name: &str) {
    let series = Series {
        buckets: 2,
        ..Series::by_name(name).expect("a preset")
    };
    let machine = Arc::new(Machine::new(&Setup::of(
        Rules::v6_12().with_series(series),
        SchedulerKind::MqDeadline,
    )));
    let bios = [machine.submission(1), machine.submission(2)];
    let other = Arc::clone(&machine);
    let second = spawn(move || {
        other.run(Context::new(1, COMPLETER, bios[1]));
    });
    machine.run(Context::new(0, DISPATCHER, bios[0]));
    second.join().expect("the second submitter ends");
    machine.drain_of(2);
}
