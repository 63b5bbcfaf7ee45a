//! Captured and simulated latencies side by side.
//!
//! Every figure is over bios, from the same events: Q2D, D2C and Q2C. Integers only, so that equal
//! runs give equal bytes.

use std::fmt::Write as _;

use blkmq::time::SimTime;
use serde::Serialize;

use sim::replay::{Arrival, Arrivals, Pace, Point, Times};

/// Limits of open loop.
pub const OPEN_LOOP: &str = "Open loop: arrivals come when they were captured and do not react to \
faster or slower completions. So this shows the latency that another scheduler or device would \
give to the same arrivals; it does not predict queue depth, throughput or run time under it \
(--closed-loop lets every process wait for its completions).";

/// Assumptions of closed loop.
pub const CLOSED_LOOP: &str = "Closed loop: every process submits its next I/O its captured think \
time after so many of its own completions that it has room in flight, which is the most that it \
had in flight near that I/O of the capture. Think times and the order of each process's I/O stay \
as captured, also where the application would have done otherwise.";

fn between(from: SimTime, to: SimTime) -> Option<u64> {
    (from != SimTime::NEVER && to != SimTime::NEVER).then(|| to.since(from).0)
}

/// A distribution of spans, ns. Percentiles are by nearest rank.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Spread {
    /// Spans.
    pub count: u64,
    /// Mean, rounded down.
    pub mean_ns: u64,
    /// Half of them are at most this.
    pub p50_ns: u64,
    /// 99 of 100 are at most this.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Spread {
    pub fn of(spans: impl Iterator<Item = u64>) -> Spread {
        let mut spans: Vec<u64> = spans.collect();
        if spans.is_empty() {
            return Spread::default();
        }
        spans.sort_unstable();
        let count = spans.len();
        let total: u128 = spans.iter().map(|&span| u128::from(span)).sum();
        let rank = |percent: usize| spans[(count * percent).div_ceil(100).max(1) - 1];
        Spread {
            count: count as u64,
            mean_ns: (total / count as u128) as u64,
            p50_ns: rank(50),
            p99_ns: rank(99),
            max_ns: spans[count - 1],
        }
    }
}

/// How far a simulated column is from the captured one, I/O by I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Agreement {
    /// Mean Q2C (with `--from D`: D2C) as parts per million of the captured mean, less 1,000,000.
    pub mean_off_ppm: i64,
    /// |simulated - captured| of each I/O.
    pub off: Spread,
    /// I/Os that were issued at the place in the order that they had in the capture.
    pub issued_in_order: u64,
    /// I/Os that both columns saw issued.
    pub issued: u64,
    /// Simulated less captured arrival: processes that waited for a tag arrive late.
    pub late: Spread,
}

/// One column of the comparison.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Column {
    /// `captured`, or the scheduler of a replay.
    pub name: String,
    /// Submission to issue.
    pub q2d: Spread,
    /// Issue to completion.
    pub d2c: Spread,
    /// Submission to completion.
    pub q2c: Spread,
    /// First arrival to last completion, ns.
    pub elapsed_ns: u64,
    /// Comparison with the captured column. Null for that column.
    pub agreement: Option<Agreement>,
    /// Notes on this column.
    pub notes: Vec<String>,
}

/// Captured and simulated latencies side by side, with `blksim` as in the report of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Comparison {
    /// Event that the arrivals are: `Q` or `D`.
    pub from: &'static str,
    /// `open` or `closed` (`--closed-loop`).
    pub pace: &'static str,
    /// I/Os that were replayed.
    pub ios: u64,
    /// Processes that submitted them.
    pub processes: u64,
    /// The captured column first.
    pub columns: Vec<Column>,
    /// Parts of the capture that were not replayed, and other notes.
    pub notes: Vec<String>,
    /// Limits of this way of replaying.
    pub limits: &'static str,
    /// The only device whose I/Os count, of several that were replayed together.
    #[serde(skip)]
    of_disk: Option<u16>,
}

type OfColumn = fn(&Column) -> Spread;
type OfSpread = fn(Spread) -> u64;

impl Comparison {
    /// With the captured column only. `of_disk`: the only device whose I/Os count.
    pub fn new(arrivals: &Arrivals, pace: Pace, of_disk: Option<u16>) -> Comparison {
        let captured: Vec<Times> = arrivals.ios.iter().map(|io| io.captured).collect();
        let mut captured = only(arrivals, of_disk, &captured);
        let counts = |io: &&Arrival| of_disk.is_none_or(|disk| io.disk == disk);
        if arrivals.point == Point::Issue {
            // The time before D is not known.
            for times in &mut captured {
                times.queued = SimTime::NEVER;
            }
        }
        Comparison {
            from: match arrivals.point {
                Point::Queue => "Q",
                Point::Issue => "D",
            },
            pace: match pace {
                Pace::Open => "open",
                Pace::Closed => "closed",
            },
            ios: arrivals.ios.iter().filter(counts).count() as u64,
            processes: arrivals.streams.len() as u64,
            columns: vec![column("captured".to_string(), &captured)],
            notes: arrivals.notes.clone(),
            limits: match pace {
                Pace::Open => OPEN_LOOP,
                Pace::Closed => CLOSED_LOOP,
            },
            of_disk,
        }
    }

    /// Adds a replay: `times` by arrival.
    pub fn add(&mut self, name: String, arrivals: &Arrivals, times: &[Times], notes: Vec<String>) {
        let times = only(arrivals, self.of_disk, times);
        let mut column = column(name, &times);
        column.agreement = Some(agreement(arrivals, &times));
        column.notes = notes;
        self.columns.push(column);
    }

    /// As a table, with notes and limits below.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let names: Vec<&str> = self
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        let width = names
            .iter()
            .map(|name| name.len())
            .max()
            .unwrap_or(0)
            .max(12);
        line(&mut out, "", "", &names, width);
        let spans: [(&str, OfColumn); 4] = [
            ("Q2D", |c| c.q2d),
            ("D2C", |c| c.d2c),
            ("Q2C", |c| c.q2c),
            ("late", |c| {
                c.agreement.map_or_else(Spread::default, |a| a.late)
            }),
        ];
        // In closed loop no arrival has a captured time.
        let shown = if self.pace == "closed" { 3 } else { 4 };
        for (span, of) in spans.into_iter().take(shown) {
            let figures: [(&str, OfSpread); 4] = [
                ("mean", |s| s.mean_ns),
                ("p50", |s| s.p50_ns),
                ("p99", |s| s.p99_ns),
                ("max", |s| s.max_ns),
            ];
            let spreads: Vec<Spread> = self.columns.iter().map(of).collect();
            let counts: Vec<String> = spreads.iter().map(|s| s.count.to_string()).collect();
            line(&mut out, span, "count", &counts, width);
            for (figure, get) in figures {
                let cell = |s: &Spread| {
                    if s.count == 0 {
                        "-".to_string()
                    } else {
                        us(get(*s))
                    }
                };
                let cells: Vec<String> = spreads.iter().map(cell).collect();
                line(&mut out, "", figure, &cells, width);
            }
        }
        let elapsed: Vec<String> = self.columns.iter().map(|c| us(c.elapsed_ns)).collect();
        line(&mut out, "span", "", &elapsed, width);
        out.push_str("times in microseconds\n");
        self.agreements(&mut out);
        self.all_notes(&mut out);
        let _ = writeln!(out, "{}", self.limits);
        out
    }

    /// As CSV: a header, then a row for each column of the comparison. `names` and `cells` go
    /// before the rest in each row. Quoted as in RFC 4180. Panics if they are not as many.
    pub fn to_csv(&self, names: &[&str], cells: &[String]) -> String {
        assert_eq!(names.len(), cells.len());
        let mut header: Vec<String> = names.iter().map(ToString::to_string).collect();
        header.extend(["from", "pace", "column"].map(str::to_string));
        for span in ["q2d", "d2c", "q2c", "late"] {
            let figures = ["count", "mean_ns", "p50_ns", "p99_ns", "max_ns"];
            header.extend(figures.map(|figure| format!("{span}_{figure}")));
        }
        header.extend(
            ["elapsed_ns", "mean_off_ppm", "issued_in_order", "issued"].map(str::to_string),
        );
        let mut rows = vec![header];
        for column in &self.columns {
            let mut row: Vec<String> = cells.to_vec();
            row.extend([self.from, self.pace, &column.name].map(str::to_string));
            let agreement = column.agreement;
            let late = agreement.map_or_else(Spread::default, |a| a.late);
            for s in [column.q2d, column.d2c, column.q2c, late] {
                let figures = [s.count, s.mean_ns, s.p50_ns, s.p99_ns, s.max_ns];
                row.extend(figures.map(|figure| figure.to_string()));
            }
            row.push(column.elapsed_ns.to_string());
            row.extend(match agreement {
                Some(a) => [
                    a.mean_off_ppm.to_string(),
                    a.issued_in_order.to_string(),
                    a.issued.to_string(),
                ],
                None => Default::default(),
            });
            rows.push(row);
        }
        crate::table::csv_of(&rows)
    }

    fn all_notes(&self, out: &mut String) {
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        let simulated = self.columns.get(1..).unwrap_or_default();
        let of_all = |note: &String| simulated.iter().all(|column| column.notes.contains(note));
        for (index, column) in simulated.iter().enumerate() {
            for note in &column.notes {
                if !of_all(note) {
                    let _ = writeln!(out, "note: {}: {note}", column.name);
                } else if index == 0 {
                    let _ = writeln!(out, "note: {note}");
                }
            }
            let late = column.agreement.map_or(0, |a| a.late.mean_ns);
            if self.pace == "open" && late > column.q2c.mean_ns / 100 {
                let _ = writeln!(
                    out,
                    "note: {}: its processes waited before Q (for a tag, or for one another): Q2C \
                     begins at Q, and `late` is the time from the captured arrival to Q",
                    column.name
                );
            }
        }
    }

    fn agreements(&self, out: &mut String) {
        for column in &self.columns {
            let Some(a) = &column.agreement else { continue };
            let what = if self.from == "D" { "D2C" } else { "Q2C" };
            let sign = if a.mean_off_ppm < 0 { '-' } else { '+' };
            let off = a.mean_off_ppm.unsigned_abs();
            let _ = writeln!(
                out,
                "{}: mean {what} {sign}{}.{:02} % of captured; each I/O off by {} at the median, \
                 {} at most; {} of {} issued in captured order",
                column.name,
                off / 10_000,
                off % 10_000 / 100,
                us(a.off.p50_ns),
                us(a.off.max_ns),
                a.issued_in_order,
                a.issued,
            );
        }
    }
}

/// Microseconds with a digit after the point.
fn us(ns: u64) -> String {
    let tenths = (u128::from(ns) + 50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn line<T: AsRef<str>>(out: &mut String, span: &str, figure: &str, cells: &[T], width: usize) {
    let mut text = format!("{span:<4} {figure:<5}");
    for cell in cells {
        let _ = write!(text, "  {:>width$}", cell.as_ref());
    }
    let _ = writeln!(out, "{}", text.trim_end());
}

/// The times of one device's I/Os; those of others are as if they had not come.
fn only(arrivals: &Arrivals, of_disk: Option<u16>, times: &[Times]) -> Vec<Times> {
    let of = |(io, times): (&Arrival, &Times)| match of_disk {
        Some(disk) if io.disk != disk => Times::NEVER,
        _ => *times,
    };
    arrivals.ios.iter().zip(times).map(of).collect()
}

fn column(name: String, times: &[Times]) -> Column {
    let finished = || times.iter().filter(|t| t.completed != SimTime::NEVER);
    let from = |t: &Times| {
        if t.queued == SimTime::NEVER {
            t.issued
        } else {
            t.queued
        }
    };
    let first = finished().map(from).min().unwrap_or(SimTime::ZERO);
    let last = finished()
        .map(|t| t.completed)
        .max()
        .unwrap_or(SimTime::ZERO);
    Column {
        name,
        q2d: Spread::of(finished().filter_map(|t| between(t.queued, t.issued))),
        d2c: Spread::of(finished().filter_map(|t| between(t.issued, t.completed))),
        q2c: Spread::of(finished().filter_map(|t| between(t.queued, t.completed))),
        elapsed_ns: last.since(first).0,
        agreement: None,
        notes: Vec::new(),
    }
}

fn agreement(arrivals: &Arrivals, times: &[Times]) -> Agreement {
    let total = |t: &Times| match arrivals.point {
        Point::Queue => between(t.queued, t.completed),
        Point::Issue => between(t.issued, t.completed),
    };
    let pairs = || {
        let both = arrivals.ios.iter().zip(times);
        both.filter_map(|(io, t)| Some((total(&io.captured)?, total(t)?)))
    };
    let sums = pairs().fold((0_i128, 0_i128), |(a, b), (captured, simulated)| {
        (a + i128::from(captured), b + i128::from(simulated))
    });
    let (issued_in_order, issued) = order(arrivals, times);
    let late = arrivals.ios.iter().zip(times);
    Agreement {
        mean_off_ppm: ((sums.1 - sums.0) * 1_000_000 / sums.0.max(1)) as i64,
        off: Spread::of(pairs().map(|(captured, simulated)| captured.abs_diff(simulated))),
        issued_in_order,
        issued,
        late: Spread::of(
            late.filter_map(|(io, t)| between(arrival(io.captured, arrivals), t.queued)),
        ),
    }
}

fn arrival(captured: Times, arrivals: &Arrivals) -> SimTime {
    match arrivals.point {
        Point::Queue => captured.queued,
        Point::Issue => captured.issued,
    }
}

/// I/Os at the same place in both orders of issue. Bios of one request have one time; the sector
/// decides then.
fn order(arrivals: &Arrivals, times: &[Times]) -> (u64, u64) {
    let issued = |of: &dyn Fn(usize) -> SimTime| {
        let both = |&i: &usize| {
            let captured = arrivals.ios[i].captured.issued;
            captured != SimTime::NEVER && times[i].issued != SimTime::NEVER
        };
        let mut order: Vec<usize> = (0..times.len()).filter(both).collect();
        order.sort_by_key(|&i| (of(i), arrivals.ios[i].sector, i));
        order
    };
    let captured = issued(&|i| arrivals.ios[i].captured.issued);
    let simulated = issued(&|i| times[i].issued);
    let same = captured
        .iter()
        .zip(&simulated)
        .filter(|(a, b)| a == b)
        .count();
    (same as u64, captured.len() as u64)
}
