//! Figures of a comparison by hand.

use blkmq::request::{IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::SimTime;

use sim::replay::{Arrival, Arrivals, CapturedDisk, Pace, Point, Times};

use scenario::replay::{Comparison, Spread};

fn times(queued: u64, issued: u64, completed: u64) -> Times {
    Times {
        queued: SimTime(queued),
        issued: SimTime(issued),
        completed: SimTime(completed),
    }
}

fn arrivals(point: Point, captured: &[Times]) -> Arrivals {
    let io = |(index, &captured): (usize, &Times)| Arrival {
        op: Op::Read,
        flags: OpFlags::default(),
        sector: Sector(index as u64 * 8),
        sectors: Sectors(8),
        ioprio: IoPrio::default(),
        of_root: false,
        pid: 1,
        cpu: 0,
        disk: 0,
        captured,
        got: SimTime::NEVER,
    };
    Arrivals {
        groups: trace::processes::groups(&[], [], None),
        point,
        base: SimTime::ZERO,
        ios: captured.iter().enumerate().map(io).collect(),
        streams: Vec::new(),
        disks: vec![CapturedDisk::default()],
        cpus: 1,
        notes: Vec::new(),
    }
}

#[test]
fn percentiles_are_by_nearest_rank() {
    let spread = Spread::of((1..=200).rev());
    assert_eq!(spread.count, 200);
    assert_eq!(
        (spread.mean_ns, spread.p50_ns, spread.p99_ns, spread.max_ns),
        (100, 100, 198, 200)
    );
    let one = Spread::of([7].into_iter());
    assert_eq!((one.p50_ns, one.p99_ns, one.max_ns), (7, 7, 7));
    assert_eq!(Spread::of([].into_iter()), Spread::default());
}

#[test]
fn agreement_counts_what_differs() {
    let captured = [
        times(0, 100, 1000),
        times(10, 1100, 2100),
        times(20, 2200, 3020),
    ];
    let arrivals = arrivals(Point::Queue, &captured);
    let mut comparison = Comparison::new(&arrivals, Pace::Open, None);
    // The second and the third in the other order; the first 10 % late.
    let simulated = [
        times(0, 100, 1100),
        times(10, 2200, 2100),
        times(25, 1100, 3025),
    ];
    comparison.add("none".to_string(), &arrivals, &simulated, Vec::new());
    let agreement = comparison.columns[1].agreement.unwrap();
    assert_eq!((agreement.issued_in_order, agreement.issued), (1, 3));
    assert_eq!(agreement.off.max_ns, 100);
    assert_eq!(agreement.mean_off_ppm, 100 * 1_000_000 / 6090);
    assert_eq!(agreement.late.max_ns, 5);
    assert_eq!(comparison.columns[0].elapsed_ns, 3020);
}

#[test]
fn an_io_without_completion_counts_in_no_column() {
    let captured = [times(0, 100, 1000), times(10, 1100, u64::MAX)];
    let arrivals = arrivals(Point::Queue, &captured);
    let mut comparison = Comparison::new(&arrivals, Pace::Open, None);
    comparison.add(
        "none".to_string(),
        &arrivals,
        &[captured[0], times(10, 20, 30)],
        Vec::new(),
    );
    assert_eq!(comparison.columns[0].q2d.count, 1);
    assert_eq!(comparison.columns[1].q2d.count, 2);
    assert_eq!(comparison.columns[1].agreement.unwrap().off.count, 1);
}

#[test]
fn from_d_there_is_no_captured_time_before_d() {
    let captured = [times(100, 100, 1000)];
    let arrivals = arrivals(Point::Issue, &captured);
    let mut comparison = Comparison::new(&arrivals, Pace::Open, None);
    comparison.add(
        "none".to_string(),
        &arrivals,
        &[times(105, 110, 1010)],
        Vec::new(),
    );
    assert_eq!(
        (
            comparison.columns[0].q2c.count,
            comparison.columns[0].d2c.mean_ns
        ),
        (0, 900)
    );
    assert_eq!(comparison.columns[1].q2c.mean_ns, 905);
    let text = comparison.text();
    assert!(text.contains("mean D2C +0.00 %"), "{text}");
    let row = text.lines().find(|line| line.starts_with("Q2C")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["Q2C", "count", "0", "1"]
    );
}

#[test]
fn microseconds_round_to_a_tenth() {
    for (ns, us) in [
        (0, "0.0"),
        (149, "0.1"),
        (150, "0.2"),
        (12_345_678, "12345.7"),
    ] {
        let captured = [times(100, 100 + ns, 20_000_000)];
        let text = Comparison::new(&arrivals(Point::Queue, &captured), Pace::Open, None).text();
        let mean = text.lines().nth(2).unwrap();
        assert_eq!(
            mean.split_whitespace().collect::<Vec<_>>(),
            ["mean", us],
            "{text}"
        );
    }
}
