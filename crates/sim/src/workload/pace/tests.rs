use crate::plan::{RateProcess, ThreadPlan};
use crate::workload::tests::{same, take, thread};

fn at_rate(bytes_a_second: u64, process: RateProcess) -> ThreadPlan {
    let mut plan = thread();
    plan.rate_bytes = same(bytes_a_second);
    plan.rate_process = process;
    plan
}

/// Gaps between two I/Os, us.
fn gaps(plan: &ThreadPlan, count: usize) -> Vec<u64> {
    let ios = take(plan, count);
    let times: Vec<u64> = ios.iter().map(|io| io.not_before.0).collect();
    times.windows(2).map(|w| (w[1] - w[0]) / 1000).collect()
}

/// rate counts bytes: a long I/O makes the next one wait longer.
#[test]
fn bytes_make_the_next_one_wait() {
    let mut plan = at_rate(1_024_000, RateProcess::Linear);
    assert_eq!(gaps(&plan, 4), [4000, 4000, 4000]);
    plan.block.read.max_sectors = 16;
    for (io, gap) in take(&plan, 101).iter().zip(gaps(&plan, 101)) {
        assert_eq!(gap, 500 * u64::from(io.sectors.0));
    }
}

/// Exponential gaps: the standard deviation is the mean, and 1/e of them are longer than it.
#[test]
fn a_poisson_process_has_exponential_gaps() {
    let gaps = gaps(&at_rate(1000 * 4096, RateProcess::Poisson), 20_001);
    let mean = gaps.iter().sum::<u64>() as f64 / 20_000.0;
    // fio cuts each gap to whole microseconds: half a microsecond less than a thousandth.
    assert!((mean - 999.5).abs() < 21.0, "{mean}");
    let square = gaps.iter().map(|gap| (*gap as f64 - mean).powi(2));
    let deviation = (square.sum::<f64>() / 20_000.0).sqrt();
    assert!((deviation / mean - 1.0).abs() < 0.04, "{deviation}");
    let long = gaps.iter().filter(|gap| **gap > 1000).count();
    assert!((7_100..7_620).contains(&long), "{long}");
}

/// fio's mean gap is a whole number of microseconds: 300,000 a second give one I/O every 3 us.
#[test]
fn poisson_gaps_are_whole_microseconds() {
    let plan = at_rate(300_000 * 4096, RateProcess::Poisson);
    let ios = take(&plan, 20_001);
    assert!(ios.iter().all(|io| io.not_before.0.is_multiple_of(1000)));
    // 3 us exponentially, cut: 1 / (e^(1/3) - 1) = 2.53 on average.
    let mean = ios[20_000].not_before.0 as f64 / 20_000.0;
    assert!((mean - 2528.0).abs() < 100.0, "{mean}");
}
