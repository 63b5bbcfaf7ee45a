//! Whole runs: what one simulated I/O costs.
//!
//! Budget: 1 us of one core per simulated I/O for 32 threads on one null_blk under mq-deadline
//! (`mq-deadline-scaling`); 0.4 us is where it must arrive. The other scenarios have no budget of
//! their own and show what the scheduler, the device and the contention add. The workload is
//! endless; criterion times a fixed number of I/Os of a run that is warm.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::Simulator;

/// Built-in scenarios of the command line, by file.
const SCENARIOS: [(&str, &str); 4] = [
    (
        "mq-deadline-scaling",
        include_str!("../../crates/cli/scenarios/mq-deadline-scaling.toml"),
    ),
    (
        "null-blk-randread",
        include_str!("../../crates/cli/scenarios/null-blk-randread.toml"),
    ),
    (
        "nvme-randread",
        include_str!("../../crates/cli/scenarios/nvme-randread.toml"),
    ),
    (
        "seq-merge",
        include_str!("../../crates/cli/scenarios/seq-merge.toml"),
    ),
];

/// I/Os before the clock starts.
const WARM_UP: u64 = 20_000;
/// I/Os that count as one iteration.
const BATCH: u64 = 1_000;

/// A run that does not end by itself.
fn endless(text: &str) -> Simulator {
    let profile = profile::built_in("ryzen-7950x").expect("it is built in");
    let scenario = Scenario::from_toml(std::path::Path::new("bench.toml"), text);
    let info = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    let plan = scenario.and_then(|scenario| scenario.plan(&[info]));
    let mut plan = plan.expect("built-in scenarios are right");
    for thread in &mut plan.threads {
        thread.ramp_time = blkmq::time::Duration(0);
        thread.runtime = blkmq::time::Duration::from_secs(1 << 20);
        (thread.number_ios, thread.io_bytes) = (u64::MAX, u64::MAX);
    }
    Simulator::new(&plan, &profile).expect("the machine has room")
}

/// Runs until `ios` more have ended.
fn run(simulator: &mut Simulator, ios: u64) {
    let end = simulator.recorder().total_ios + ios;
    while simulator.recorder().total_ios < end {
        assert!(simulator.run_some(64).is_none(), "it does not end");
    }
}

fn simulate(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate");
    group.throughput(Throughput::Elements(BATCH));
    for (name, text) in SCENARIOS {
        let mut simulator = endless(text);
        run(&mut simulator, WARM_UP);
        group.bench_function(name, |b| {
            b.iter(|| run(&mut simulator, BATCH));
        });
    }
    group.finish();
}

criterion_group!(benches, simulate);
criterion_main!(benches);
