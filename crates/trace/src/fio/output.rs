//! What a job asks of fio's own output: percentiles, averages, log files.
//!
//! None of it changes the I/O. Defaults are those of fio 3.33 (options.c).

use blkmq::time::Duration;

use super::draw::{Decimal, decimal};
use super::value;

/// Most percentiles of a list (FIO_IO_U_LIST_MAX_LEN).
const LIST_MAX: usize = 20;

/// Options of fio's report and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub description: String,
    /// Default false.
    pub slat_percentiles: bool,
    /// Default true.
    pub clat_percentiles: bool,
    /// Default false.
    pub lat_percentiles: bool,
    /// In ascending order.
    pub percentile_list: Vec<Decimal>,
    /// Default 500 ms.
    pub bw_avg_time: Duration,
    /// Default 500 ms.
    pub iops_avg_time: Duration,
    /// Digits of the text. Default 4.
    pub significant_figures: u32,
    /// 8 bits or 1 bit is the unit of rates. Default 8.
    pub unit_base: u32,
    /// 1024 or 1000. Default 1024.
    pub kb_base: u32,
    /// Not an option: number of the group that it is reported in (groupid).
    pub group: u16,
    /// group_reporting.
    pub is_grouped: bool,
    pub logs: LogOptions,
    /// Not an option: what the first line about the job has.
    pub head: Head,
    /// Those of [`Control`](super::Control).
    pub latency_target: Duration,
    pub latency_percentile: Decimal,
    pub latency_window: Duration,
    /// Not an option: settings of the job itself and of `[global]`, as they were written.
    pub own: Vec<(String, String)>,
    pub global: Vec<(String, String)>,
}

/// What fio prints of a job before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub rw: String,
    pub ioengine: String,
    pub iodepth: u32,
    /// Smallest and largest of reads, writes and trims, bytes.
    pub bs: [(u64, u64); 3],
    pub thread: bool,
}

/// Log files: the beginnings of their names, empty for the job's name, and what is in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Default none, as that of the others.
    pub lat: Option<String>,
    pub bw: Option<String>,
    pub iops: Option<String>,
    pub hist: Option<String>,
    /// Default 0: a line for each I/O.
    pub avg_msec: u32,
    /// Default false: means.
    pub max_value: bool,
    /// Default false.
    pub offset: bool,
    /// Default false.
    pub prio: bool,
    /// Default 0: no histograms.
    pub hist_msec: u32,
    /// Powers of two of buckets in a column, 0 to 6. Default 0.
    pub hist_coarseness: u32,
    /// Default true: a file for each thread.
    pub per_job: bool,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            lat: None,
            bw: None,
            iops: None,
            hist: None,
            avg_msec: 0,
            max_value: false,
            offset: false,
            prio: false,
            hist_msec: 0,
            hist_coarseness: 0,
            per_job: true,
        }
    }
}

impl LogOptions {
    /// True if there is a log.
    pub fn are_written(&self) -> bool {
        [&self.lat, &self.bw, &self.iops, &self.hist]
            .into_iter()
            .any(Option::is_some)
    }

    /// The file of a thread's log: `kind` is that of the log, `number` counts threads from 1.
    pub fn file(&self, kind: &str, job: &str, number: usize) -> String {
        let own = match kind {
            "bw" => &self.bw,
            "iops" => &self.iops,
            "clat_hist" => &self.hist,
            _ => &self.lat,
        };
        let own = own.as_deref().filter(|own| !own.is_empty());
        let begins = own.unwrap_or(job);
        match self.per_job {
            true => format!("{begins}_{kind}.{number}.log"),
            false => format!("{begins}_{kind}.log"),
        }
    }

    fn apply(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let begins = || Some(value.to_owned());
        let ms = |value: &str| match value::number(value)? {
            ms if ms > 86_400_000 => Err(format!(
                "{ms} ms is too long; expected at most a day, 86400000"
            )),
            ms => Ok(ms as u32),
        };
        match name {
            "write_lat_log" => self.lat = begins(),
            "write_bw_log" => self.bw = begins(),
            "write_iops_log" => self.iops = begins(),
            "write_hist_log" => self.hist = begins(),
            "log_avg_msec" => self.avg_msec = ms(value)?,
            "log_max_value" => self.max_value = value::flag(Some(value))?,
            "log_offset" => self.offset = value::flag(Some(value))?,
            "log_prio" => self.prio = value::flag(Some(value))?,
            "log_hist_msec" => self.hist_msec = ms(value)?,
            "log_hist_coarseness" => match value::number(value)? {
                power @ 0..=6 => self.hist_coarseness = power as u32,
                other => return Err(format!("{other} is not 0 to 6")),
            },
            "per_job_logs" => self.per_job = value::flag(Some(value))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Default for Output {
    fn default() -> Output {
        let percentiles = [
            100, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 9500, 9900, 9950, 9990,
            9995, 9999,
        ];
        Output {
            description: String::new(),
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            percentile_list: percentiles.map(Decimal::hundredths).to_vec(),
            bw_avg_time: Duration::from_millis(500),
            iops_avg_time: Duration::from_millis(500),
            significant_figures: 4,
            unit_base: 8,
            kb_base: 1024,
            group: 0,
            is_grouped: false,
            latency_target: Duration::ZERO,
            latency_percentile: Decimal::hundredths(10_000),
            latency_window: Duration::ZERO,
            logs: LogOptions::default(),
            head: Head::default(),
            own: Vec::new(),
            global: Vec::new(),
        }
    }
}

impl Output {
    /// Sets what an option means. False if it is none of these.
    pub(super) fn apply(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "description" => value.clone_into(&mut self.description),
            "slat_percentiles" => self.slat_percentiles = value::flag(Some(value))?,
            "clat_percentiles" => self.clat_percentiles = value::flag(Some(value))?,
            "lat_percentiles" => self.lat_percentiles = value::flag(Some(value))?,
            "percentile_list" => self.percentile_list = percentiles(value)?,
            "bwavgtime" => self.bw_avg_time = milliseconds(value)?,
            "iopsavgtime" => self.iops_avg_time = milliseconds(value)?,
            "significant_figures" => match value::number(value)? {
                digits @ 1..=10 => self.significant_figures = digits as u32,
                other => return Err(format!("{other} is not 1 to 10")),
            },
            "unit_base" => {
                self.unit_base = match value {
                    "0" | "8" => 8,
                    "1" => 1,
                    _ => return Err(format!("`{value}` is none of 0, 1, 8")),
                };
            }
            _ => return self.logs.apply(name, value),
        }
        Ok(true)
    }
}

fn percentiles(text: &str) -> Result<Vec<Decimal>, String> {
    let list: Result<Vec<Decimal>, String> = text.split(':').map(decimal).collect();
    let mut list = list?;
    let wrong = |of: &&Decimal| of.billionths == 0 || **of > Decimal::hundredths(10_000);
    if let Some(of) = list.iter().find(wrong) {
        return Err(format!("{} is not above 0 and up to 100", of.to_f64()));
    }
    if list.len() > LIST_MAX {
        return Err(format!("{} percentiles; at most {LIST_MAX}", list.len()));
    }
    list.sort_unstable();
    Ok(list)
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    match value::number(text)? {
        // fio then samples whenever it looks.
        0 => Ok(Duration::from_millis(250)),
        ms if ms > 86_400_000 => Err(format!(
            "{ms} ms is too long; expected at most a day, 86400000"
        )),
        ms => Ok(Duration::from_millis(ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_percentiles_are_sorted_and_bounded() {
        let of = |text: &str| {
            let mut output = Output::default();
            output.apply("percentile_list", text).map(|_| {
                let list = output.percentile_list.iter();
                list.map(|of| of.to_f64()).collect::<Vec<_>>()
            })
        };
        assert_eq!(of("99.9:50:100").unwrap(), [50.0, 99.9, 100.0]);
        assert_eq!(of("0").unwrap_err(), "0 is not above 0 and up to 100");
        assert_eq!(
            of("100.1").unwrap_err(),
            "100.1 is not above 0 and up to 100"
        );
        assert_eq!(of("x").unwrap_err(), "`x` is no number such as 1.2");
        let many = vec!["1"; 21].join(":");
        assert_eq!(of(&many).unwrap_err(), "21 percentiles; at most 20");
    }
}
