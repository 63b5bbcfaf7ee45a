//! Work on a request waits once for its lines; neighbours cost one line each.

use super::{Lines, RequestLines};
use crate::env::{Misses, Near, Numbering, Overlap};
use crate::request::CpuId;

const FAR: u64 = 100;

fn lines() -> Lines {
    let mut lines = Lines::default();
    let near = |cpu| Near::new(CpuId(cpu), Numbering::default(), [1, 1, 1, FAR]);
    lines.set_prices([near(0), near(1)].into(), Overlap::Together);
    lines
}

/// The time of dependent misses, and that of stores.
fn taken(lines: &Lines) -> (u64, u64) {
    let Misses {
        chain,
        together,
        stores,
    } = lines.take().unwrap_or_default();
    assert_eq!(together, 0);
    (chain, stores)
}

#[test]
fn lines_of_one_request_come_together() {
    let (lines, a, b) = (lines(), CpuId(0), CpuId(1));
    let rq = RequestLines::default();
    lines.own(a, &rq);
    assert_eq!(taken(&lines), (0, 0), "nobody had them");
    lines.own(b, &rq);
    assert_eq!(taken(&lines), (FAR, FAR), "four lines, one wait; stores");
    lines.own(b, &rq);
    assert_eq!(taken(&lines), (0, 0));
    // A link that CPU 0 changes invalidates one of the lines again.
    lines.relink(a, &rq);
    assert_eq!(taken(&lines), (0, FAR));
    lines.own(b, &rq);
    assert_eq!(taken(&lines), (FAR, FAR));
}

#[test]
fn nodes_on_the_way_are_waited_for_one_by_one_and_stores_are_not() {
    let (lines, a, b) = (lines(), CpuId(0), CpuId(1));
    let requests: [RequestLines; 3] = Default::default();
    for rq in &requests {
        lines.own(a, rq);
    }
    for rq in &requests {
        lines.visit(b, rq);
    }
    assert_eq!(taken(&lines), (3 * FAR, 0));
    for rq in &requests {
        lines.visit(b, rq);
    }
    assert_eq!(taken(&lines), (0, 0), "both have copies");
    for rq in &requests {
        lines.resort(b, rq);
    }
    assert_eq!(taken(&lines), (0, FAR), "stores are under way together");
}

#[test]
fn eight_heads_of_the_hash_share_a_line() {
    let (lines, a, b) = (lines(), CpuId(0), CpuId(1));
    lines.write_hash(a, 0);
    lines.read_hash(b, 7);
    let miss = lines.take().expect("a miss");
    assert_eq!((miss.chain, miss.together), (0, FAR));
    lines.read_hash(b, 8);
    assert_eq!(taken(&lines), (0, 0), "a line that nobody had");
    assert_eq!(lines.take(), None);
}

#[test]
fn last_merge_takes_its_neighbours_on_the_line_away() {
    let (lines, a, b) = (lines(), CpuId(0), CpuId(1));
    lines.write_last_merge(a);
    lines.take();
    lines.read_last_merge(b);
    assert_eq!(taken(&lines), (FAR, 0));
    lines.read_queue(a);
    assert_eq!(lines.take(), None, "both have copies");
    lines.write_last_merge(b);
    assert_eq!(taken(&lines), (0, FAR));
    lines.read_queue(a);
    let miss = lines.take().expect("a miss");
    assert_eq!((miss.chain, miss.together, miss.stores), (0, FAR, 0));
}
