//! Measurements of runs on the rotational disk `sata2009`, next to the data of its file.

use toml::Table;

use super::markdown::{columns, table};
use super::runs::{Blksim, number};
use super::sweeps;
use crate::paths;
use crate::step::{Failure, Result};

/// The file of the drive, from the top of the workspace.
const FILE: &str = "crates/scenario/drives/sata2009.toml";

/// Its data, ms and MB/s.
struct Data {
    turn: f64,
    track: f64,
    third: f64,
    full: f64,
    overhead: f64,
    outer: f64,
    inner: f64,
    link: f64,
}

impl Data {
    fn read() -> Result<Data> {
        let text = sweeps::read(&paths::root().join(FILE))?;
        let table: Table = toml::from_str(&text).map_err(|e| Failure(format!("{FILE}: {e}")))?;
        let of = |key: &str| {
            let number = table.get(key).and_then(toml::Value::as_integer);
            let number = number.map(|number| number as f64);
            number.ok_or_else(|| Failure(format!("{FILE}: {key}: expected a number")))
        };
        Ok(Data {
            turn: 60_000.0 / of("rpm")?,
            track: of("seek_track_us")? / 1000.0,
            third: of("seek_third_us")? / 1000.0,
            full: of("seek_full_us")? / 1000.0,
            overhead: of("overhead_us")? / 1000.0,
            outer: of("outer_mb_s")?,
            inner: of("inner_mb_s")?,
            link: of("link_mb_s")?,
        })
    }

    /// A movement over this part of all cylinders: a root up to a third, straight from there on.
    fn seek(&self, part: f64) -> f64 {
        match part * 3.0 {
            near if near <= 1.0 => self.track + (self.third - self.track) * near.sqrt(),
            far => self.third + (self.full - self.third) * (far - 1.0) / 2.0,
        }
    }

    /// The mean over pairs of cylinders: shorter ways have more of them.
    fn seek_mean(&self) -> f64 {
        const STEPS: u32 = 10_000;
        let middle = |step: u32| (f64::from(step) + 0.5) / f64::from(STEPS);
        let weighted = |part: f64| 2.0 * (1.0 - part) * self.seek(part);
        (0..STEPS).map(middle).map(weighted).sum::<f64>() / f64::from(STEPS)
    }
}

/// Micro-scenarios, and the values of the file.
pub(super) fn measured(blksim: &Blksim) -> Result<String> {
    let data = Data::read()?;
    let lines = [
        "disk-turn",
        "disk-random",
        "disk-stroke",
        "disk-stream",
        "disk-stream --set job.offset=58%",
        "disk-stream --set job.offset=455g",
        "disk-cached",
    ];
    let reports = blksim.all(&lines.map(|line| format!("run {line} --json")))?;
    let latency = |at: usize, of: &str| {
        let ns = number(&reports[at], &format!("/jobs/0/read/clat_ns/{of}"))?;
        Ok::<f64, Failure>(ns / 1e6)
    };
    let rate = |at: usize| Ok::<f64, Failure>(number(&reports[at], "/jobs/0/read/bw_bytes")? / 1e6);
    // After the seek a read waits half a turn, and the command takes its time.
    let beside = data.turn / 2.0 + data.overhead;
    let ms = |value: f64| format!("{value:.2} ms");
    let mb_s = |value: f64| format!("{value:.1} MB/s");
    let middle = f64::midpoint(data.outer, data.inner);
    let cached = data.overhead + 4096.0 / 1e3 / data.link;
    let found = [
        ("one turn", ms(latency(0, "mean")?), ms(data.turn)),
        (
            "mean movement of the arm",
            ms(latency(1, "mean")? - beside),
            ms(data.seek_mean()),
        ),
        (
            "full stroke",
            // Each of the two readers waits for the other one's, too.
            ms(latency(2, "mean")? / 2.0 - beside),
            ms(data.full),
        ),
        ("streaming, outside", mb_s(rate(3)?), mb_s(data.outer)),
        ("streaming, middle cylinder", mb_s(rate(4)?), mb_s(middle)),
        ("streaming, inside", mb_s(rate(5)?), mb_s(data.inner)),
        (
            "4 KiB from the cache",
            format!("{:.3} ms", latency(6, "percentile/50.000000")?),
            format!("{cached:.3} ms"),
        ),
    ];
    let rows = found.into_iter().zip(lines);
    let rows = rows.map(|((what, is, data), line)| {
        vec![what.to_owned(), format!("`blksim run {line}`"), is, data]
    });
    let header = columns(&["what", "run", "measured", "by its file"]);
    Ok(table(&header, &rows.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_goes_through_the_data_of_the_file() {
        let data = Data::read().expect("the drive's file");
        for (part, ms) in [(0.0, data.track), (1.0 / 3.0, data.third), (1.0, data.full)] {
            assert!((data.seek(part) - ms).abs() < 1e-9, "{part}");
        }
        assert!(data.seek_mean() > data.track && data.seek_mean() < data.third);
    }
}
