//! A table of README.md: how close simulated figures are.
//!
//! It repeats figures of blocks in docs/results, as they are in the files: after those have
//! changed it is stale until it is made once more.

use std::fs;

use super::markdown::{columns, table};
use crate::paths;
use crate::step::{Failure, Result};

/// Figures of `blksim reproduce`: name in the README, table, row and figure.
const HEADLINES: &str = "\
32 threads on null_blk, mq-deadline (Axboe, January 2024)\
    |Axboe, 19 Jan 2024|null_blk, stock|IOPS
the same with the posted series, repaired|Axboe, 19 Jan 2024|null_blk, patched|IOPS
32 threads on NVMe, mq-deadline|Axboe, 19 Jan 2024|nvme, stock|IOPS
one polling thread on NVMe, t/io_uring|Axboe, Jan 2024, t/io_uring|1 thread|IOPS
one process on NVMe, bfq (Ren et al., 2023)|Ren, 2023, one drive|bfq|IOPS
four processes on NVMe, mq-deadline (Ren et al., 2023)|Ren, 2023, processes|4|IOPS
bfq, factor of merging queues at creation (Valente, March 2021)\
    |Valente, March 2021|merged / not merged|ratio
one walk over 8,192 hardware queues (Pen, October 2017)|Pen, October 2017|all hctxs|us/call";

/// Captures, then published figures.
pub(super) fn accuracy() -> Result<String> {
    let captures = page("captures.md")?;
    let mut rows = Vec::new();
    for (what, column) in [
        ("dispatch calls of Linux 6.1 and 6.12 predicted", CALLS),
        ("dispatches predicted from blktrace records alone", RECORDS),
    ] {
        let Counted {
            predicted,
            total,
            undecidable,
            captures,
        } = counted(&captures, column)?;
        rows.push([
            format!("{what}, {captures} captures"),
            format!("{total}"),
            format!("{predicted}"),
            match total - predicted {
                0 => "all: in".to_owned(),
                missed => format!(
                    "all: **{} differ**, {undecidable} not decidable",
                    missed - undecidable
                ),
            },
        ]);
    }
    let reproduced = page("published.md")?;
    for line in HEADLINES.lines() {
        rows.push(headline(line, &reproduced)?);
    }
    let disk = page("disk.md")?;
    for (what, rules) in [
        (
            "nine processes that read a disk in turn, cfq, MB/s (Moyer, October 2009)",
            "v2.6.32-rc5",
        ),
        ("the same with the posted patch", "v2.6.32-rc5-coop"),
    ] {
        let cells = cells(&disk, rules)?;
        let (simulated, published) = (parsed(cells[3])?, parsed(cells[4])?);
        let within = (simulated / published - 1.0).abs() <= 0.15;
        let tolerance = judged("15 %", within);
        rows.push([
            what.to_owned(),
            cells[4].to_owned(),
            cells[3].to_owned(),
            tolerance,
        ]);
    }
    rows.push(multipath()?);
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    Ok(table(
        &columns(&["", "measured", "simulated", "tolerance"]),
        &rows,
    ))
}

fn headline(line: &str, reproduced: &str) -> Result<[String; 4]> {
    let missing = || Failure(format!("published.md has no {line}"));
    let parts: Vec<&str> = line.split('|').collect();
    let &[what, table, row, figure] = &parts[..] else {
        return Err(missing());
    };
    let table = format!("{table}: ");
    let lines = reproduced
        .lines()
        .skip_while(|line| !line.starts_with(&table));
    let found = lines.take_while(|line| !line.is_empty()).find_map(|line| {
        let rest = line.strip_prefix("  ")?.strip_prefix(row)?;
        rest.trim_start().strip_prefix(figure)
    });
    let words: Vec<&str> = found.ok_or_else(missing)?.split_whitespace().collect();
    let &[published, simulated, _, ref tolerance @ .., verdict] = &words[..] else {
        return Err(missing());
    };
    let written = |value: f64| match figure {
        "IOPS" if value >= 1e6 => format!("{:.2} M", value / 1e6),
        "IOPS" => format!("{:.0} K", value / 1e3),
        "us/call" => format!("{value:.0} us"),
        _ => format!("{value:.2}"),
    };
    Ok([
        what.to_owned(),
        written(parsed(published)?),
        written(parsed(simulated)?),
        judged(&tolerance.join(" "), verdict == "in"),
    ])
}

fn judged(tolerance: &str, within: bool) -> String {
    match within {
        true => format!("{tolerance}: in"),
        false => format!("{tolerance}: **out**"),
    }
}

/// The row of dm-multipath, whose published throughput is a range.
fn multipath() -> Result<[String; 4]> {
    let (lowest, highest) = (600.0, 1000.0);
    let page = page("multipath.md")?;
    let simulated = cells(&page, "4.5, 64 tags")?[2..=5]
        .iter()
        .map(|cell| cell.split(' ').next().unwrap_or(cell))
        .collect::<Vec<_>>();
    let mut off = Vec::new();
    for value in &simulated {
        let value = parsed(value)?;
        off.push(value / f64::clamp(value, lowest, highest) - 1.0);
    }
    Ok([
        "dm-multipath of 4.5, 64 tags, 1 to 12 queues, K IOPS (Snitzer, February 2016)".to_owned(),
        format!("{lowest} to {highest}"),
        simulated.join(", "),
        beside_range(&off),
    ])
}

/// The verdict on values that are these parts of a range below (negative) or above it.
fn beside_range(off: &[f64]) -> String {
    let lowest = off.iter().copied().fold(0.0, f64::min);
    let highest = off.iter().copied().fold(0.0, f64::max);
    match (lowest, highest) {
        (0.0, 0.0) => "in".to_owned(),
        (0.0, _) => format!("**out**: up to {:.0} % above", 100.0 * highest),
        _ => format!(
            "**out**: {:.0} % below to {:.0} % above",
            -100.0 * lowest,
            100.0 * highest
        ),
    }
}

fn page(name: &str) -> Result<String> {
    let path = paths::root().join("docs/results").join(name);
    let text = fs::read_to_string(&path);
    text.map_err(|e| Failure(format!("{}: cannot read: {e}", path.display())))
}

/// Cells of the first row of a table that begins with this one; the first is number 1.
fn cells<'a>(page: &'a str, first: &str) -> Result<Vec<&'a str>> {
    let begin = format!("| {first} |");
    let row = page.lines().find(|line| line.starts_with(&begin));
    let row = row.ok_or_else(|| Failure(format!("no row `{first}`")))?;
    Ok(row.split('|').map(str::trim).collect())
}

/// Cells of a capture's row between its ends, and which of them has calls, and records.
const CAPTURE_CELLS: usize = 8;
const CALLS: usize = 3;
const RECORDS: usize = 4;

#[derive(Debug, Default, PartialEq)]
struct Counted {
    predicted: u64,
    total: u64,
    undecidable: u64,
    captures: u64,
}

/// Sums of `12/13` and `12/13, 1 not decidable` in a column of the tables of captures.
fn counted(page: &str, column: usize) -> Result<Counted> {
    let mut sums = Counted::default();
    for row in page.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if cells.len() != CAPTURE_CELLS {
            continue;
        }
        let (counts, rest) = cells[column].split_once(',').unwrap_or((cells[column], ""));
        if let Some((predicted, total)) = counts.split_once('/') {
            sums.predicted += parsed(predicted)? as u64;
            sums.total += parsed(total)? as u64;
            sums.captures += 1;
            if let Some(undecidable) = rest.strip_suffix("not decidable") {
                sums.undecidable += parsed(undecidable)? as u64;
            }
        }
    }
    Ok(sums)
}

fn parsed(text: &str) -> Result<f64> {
    let number = text.trim().parse();
    number.map_err(|_| Failure(format!("`{text}` is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_pages() {
        let text = "A: b\n  x / y      IOPS  1.0  2.0  2.00  15 %  in\n\n\
                    Axboe, 19 Jan 2024: c\n  n, stock / o  ratio  1.0 1.0 1.00 10 %  in\n  \
                    n, stock  sys %  89.0  95.6   1.07  6 points  out\n\n";
        let row = headline("w|Axboe, 19 Jan 2024|n, stock|sys %", text).unwrap();
        assert_eq!(row, ["w", "89.00", "95.60", "6 points: **out**"]);
        assert!(headline("w|A|n, stock|sys %", text).is_err());
        let page = "| a | 6.1 | 1/2 | 3/4, 1 not decidable | - | - |\n| b | - | - | 5/6 | - | - |\n\
                    | c | - | 7/8 | 7/8 |\n";
        let sums = |predicted, total, undecidable, captures| Counted {
            predicted,
            total,
            undecidable,
            captures,
        };
        assert_eq!(counted(page, CALLS).unwrap(), sums(1, 2, 0, 1));
        assert_eq!(counted(page, RECORDS).unwrap(), sums(8, 10, 1, 2));
        assert_eq!(
            beside_range(&[-0.09, 0.0]),
            "**out**: 9 % below to 0 % above"
        );
        assert_eq!(cells(page, "b").unwrap()[4], "5/6");
        assert!(cells(page, "d").is_err());
    }
}
