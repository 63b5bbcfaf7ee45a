//! fio's report as text: the format `normal`, and `terse` in its version 3.
//!
//! After show_thread_status_normal(), show_thread_status_terse_all() and show_group_stats() in
//! stat.c, and num2str(), of fio 3.33. Processes have no number, and the time is the epoch.

use std::fmt::Write as _;

use sim::plan::{Output, Plan};

use super::steady::FioSteady;
use super::{DiskUtil, FioJobReport, FioLatency, FioRates, FioReport, Shares, VERSION, whole_ms};

/// Columns of a line of percentiles.
const WIDTH: usize = 80 - 7;
/// Percentiles of a line of terse (FIO_IO_U_LIST_MAX_LEN).
const LIST_MAX: usize = 20;

/// Units of numbers in the text.
#[derive(Clone, Copy)]
enum Unit {
    Plain,
    Bytes,
    /// A second: 8 as bytes, 1 as bits.
    Rate(u32),
    /// A rate in thousands.
    Thousands(u32),
}

/// A number of at most so many digits, with a prefix of 1000 or 1024 (num2str()).
fn short(number: u64, digits: usize, binary: bool, unit: Unit) -> String {
    let thousand = if binary { 1024 } else { 1000 };
    let prefixes = match binary {
        true => ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
        false => ["", "k", "M", "G", "T", "P", "E"],
    };
    let (name, mut number) = match unit {
        Unit::Plain => ("", number),
        Unit::Bytes => ("B", number),
        Unit::Rate(1) | Unit::Thousands(1) => ("bit/s", number.saturating_mul(8)),
        Unit::Rate(_) | Unit::Thousands(_) => ("B/s", number),
    };
    let length = |number: u64| number.to_string().len();
    let (mut power, mut rest) = (usize::from(matches!(unit, Unit::Thousands(_))), None);
    while length(number) > digits && power + 1 < prefixes.len() {
        rest = Some(number % thousand);
        number /= thousand;
        power += 1;
    }
    let prefix = prefixes[power];
    let Some(rest) = rest else {
        return format!("{number}{prefix}{name}");
    };
    let places = digits.saturating_sub(length(number) + 1);
    if places == 0 {
        let rounded = number + u64::from(rest >= thousand / 2);
        return format!("{rounded}{prefix}{name}");
    }
    let fraction = format!("{:.places$}", rest as f64 / thousand as f64);
    let carry = u64::from(fraction.starts_with('1'));
    format!("{}.{}{prefix}{name}", number + carry, &fraction[2..])
}

/// What fio prints before the run: a line about each job, and how many threads it starts.
pub(super) fn head(plan: &Plan) -> String {
    let mut text = String::new();
    let mut first = None;
    for thread in &plan.threads {
        if first == Some(thread.job) {
            if thread.clone == 1 {
                text.push_str("...\n");
            }
            continue;
        }
        first = Some(thread.job);
        let output = plan.output_of(thread.job);
        let (head, digits) = (&output.head, output.significant_figures as usize);
        let size = |bytes: u64| short(bytes, digits, output.kb_base == 1024, Unit::Bytes);
        let sizes = head
            .bs
            .map(|(min, max)| format!("{}-{}", size(min), size(max)));
        let [read, write, trim] = sizes;
        let _ = writeln!(
            text,
            "{}: (g={}): rw={}, bs=(R) {read}, (W) {write}, (T) {trim}, ioengine={}, iodepth={}",
            thread.name, output.group, head.rw, head.ioengine, head.iodepth
        );
    }
    let is_thread = |of: &&sim::plan::ThreadPlan| of.thread;
    let threads = plan.threads.iter().filter(is_thread).count();
    let processes = plan.threads.len() - threads;
    let many = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {more}")),
    };
    let kinds = [
        many(threads, "thread", "threads"),
        many(processes, "process", "processes"),
    ];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    let _ = writeln!(text, "{VERSION}\nStarting {}", kinds.join(" and "));
    text
}

impl FioReport {
    /// The format `normal`.
    pub fn to_normal(&self) -> String {
        let mut text = self.head.clone();
        text.push('\n');
        for job in &self.jobs {
            job.write_normal(&mut text);
        }
        self.write_groups(&mut text);
        if !self.disk_util.is_empty() {
            text.push_str("\nDisk stats (read/write):\n");
        }
        for disk in &self.disk_util {
            disk.write_normal(&mut text);
        }
        text
    }

    /// The format `terse`: a line for each entry.
    pub fn to_terse(&self) -> String {
        let mut text = String::new();
        for job in &self.jobs {
            job.write_terse(&self.disk_util, &mut text);
        }
        text
    }

    fn write_groups(&self, text: &mut String) {
        for (number, group) in self.groups.iter().enumerate() {
            let _ = writeln!(text, "\nRun status group {number} (all jobs):");
            let style = self
                .jobs
                .iter()
                .find(|job| usize::from(job.groupid) == number);
            let Some(style) = style.map(|job| job.style) else {
                continue;
            };
            let names = ["   READ", "  WRITE", "   TRIM"];
            for (name, of) in names.into_iter().zip(&group.directions) {
                if of.bytes == 0 {
                    continue;
                }
                let rate = |rate: u64| style.both(rate, Unit::Rate(style.unit_base));
                let (all, low, high) = (rate(of.rate()), rate(of.rate_min), rate(of.rate_max));
                let bytes = style.both(of.bytes, Unit::Bytes);
                let ms = [of.span_min, of.span_max].map(whole_ms);
                let _ = writeln!(
                    text,
                    "{name}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec",
                    all.0, all.1, low.0, high.0, low.1, high.1, bytes.0, bytes.1, ms[0], ms[1]
                );
            }
        }
    }
}

/// How numbers of a job are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) digits: usize,
    pub(super) kb_base: u32,
    pub(super) unit_base: u32,
    /// Digits of percentiles after the point.
    pub(super) precision: usize,
}

impl Style {
    pub(super) fn of(output: &Output) -> Style {
        // Digits after the point, without zeros at their end.
        let places = |billionths: u64| {
            let mut part = billionths % 1_000_000_000;
            let mut places = 9;
            while places > 0 && part.is_multiple_of(10) {
                part /= 10;
                places -= 1;
            }
            places
        };
        let list = output.percentile_list.iter();
        Style {
            digits: output.significant_figures as usize,
            kb_base: output.kb_base,
            unit_base: output.unit_base,
            precision: list.map(|of| places(of.billionths)).max().unwrap_or(0),
        }
    }

    /// With the prefixes of kb_base, and with the other ones.
    fn both(self, number: u64, unit: Unit) -> (String, String) {
        let binary = self.kb_base == 1024;
        let of = |binary| short(number, self.digits, binary, unit);
        (of(binary), of(!binary))
    }
}

impl FioJobReport {
    fn write_normal(&self, text: &mut String) {
        let ios: u64 = self.directions().iter().map(|of| of.total_ios).sum();
        if ios == 0 {
            return;
        }
        let _ = writeln!(
            text,
            "{}: (groupid={}, jobs={}): err={:2}: pid=0: Thu Jan  1 00:00:00 1970",
            self.jobname, self.groupid, self.members, self.error
        );
        if !self.desc.is_empty() {
            let _ = writeln!(text, "  Description  : [{}]", self.desc);
        }
        let names = ["read", "write", "trim"];
        for (name, rates) in names.into_iter().zip(self.directions()) {
            if rates.io_bytes > 0 {
                rates.write_normal(name, self.style, text);
            }
        }
        let ranges = [
            ("nsec", &self.latency_ns),
            ("usec", &self.latency_us),
            ("msec", &self.latency_ms),
        ];
        for (unit, shares) in ranges {
            write_ranges(unit, shares, text);
        }
        if self.sync.total_ios > 0 {
            text.push_str("  fsync/fdatasync/sync_file_range:\n");
            self.sync.lat_ns.write_normal("sync", text);
            self.sync.lat_ns.write_percentiles("sync", self.style, text);
        }
        let _ = writeln!(
            text,
            "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx={}, majf=0, minf=0",
            self.usr_cpu, self.sys_cpu, self.ctx
        );
        let levels = [
            ("  IO depths    ", &self.iodepth_level),
            ("     submit    ", &self.iodepth_submit),
            ("     complete  ", &self.iodepth_complete),
        ];
        for (name, shares) in levels {
            let each = shares
                .iter()
                .map(|(level, of)| format!("{level}={of:3.1}%"));
            let _ = writeln!(text, "{name}: {}", each.collect::<Vec<_>>().join(", "));
        }
        let [read, write, trim] = self.directions().map(|of| of.total_ios);
        let _ = writeln!(
            text,
            "     issued rwts: total={read},{write},{trim},{} short=0,0,0,0 dropped=0,0,0,0",
            self.sync.total_ios
        );
        if let Some(first) = self.first_error {
            let _ = writeln!(
                text,
                "     errors    : total={}, first_error={first}",
                self.total_err
            );
        }
        let _ = writeln!(
            text,
            "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
            self.latency_target, self.latency_window, self.latency_percentile, self.latency_depth
        );
        if let Some(of) = &self.steadystate {
            of.write_normal(self.style, text);
        }
    }

    fn write_terse(&self, disks: &[DiskUtil], text: &mut String) {
        let _ = write!(
            text,
            "3;{VERSION};{};{};{}",
            self.jobname, self.groupid, self.error
        );
        self.read.write_terse(&self.list, text);
        self.write.write_terse(&self.list, text);
        let _ = write!(
            text,
            ";{:.6}%;{:.6}%;{};0;0",
            self.usr_cpu, self.sys_cpu, self.ctx
        );
        for (_, share) in &self.iodepth_level {
            let _ = write!(text, ";{share:3.1}%");
        }
        // Those below 1 us are in the first range.
        let below: f64 = self.latency_ns.iter().map(|(_, share)| share).sum();
        for (number, (_, share)) in self.latency_us.iter().enumerate() {
            let more = if number == 0 { below } else { 0.0 };
            let _ = write!(text, ";{:3.2}%", share + more);
        }
        for (_, share) in &self.latency_ms {
            let _ = write!(text, ";{share:3.2}%");
        }
        for disk in disks {
            disk.write_terse(text);
        }
        if let Some(first) = self.first_error {
            let _ = write!(text, ";{};{first}", self.total_err);
        }
        if !self.desc.is_empty() {
            let _ = write!(text, ";{}", self.desc);
        }
        text.push('\n');
    }
}

/// Lines of up to five ranges that are not empty.
fn write_ranges(unit: &str, shares: &Shares, text: &mut String) {
    let shares: Vec<String> = shares
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| format!("{name}={share:3.2}%"))
        .collect();
    for line in shares.chunks(5) {
        let _ = writeln!(text, "  lat ({unit})   : {}", line.join(", "));
    }
}

impl FioSteady {
    fn write_normal(&self, style: Style, text: &mut String) {
        let thousands = self.data.bw_mean / u64::from(style.kb_base);
        let bw = style.both(thousands, Unit::Thousands(style.unit_base));
        let iops = short(self.data.iops_mean, style.digits, false, Unit::Plain);
        let attained = if self.attained == 1 { "yes" } else { "no" };
        let _ = writeln!(
            text,
            "  steadystate  : attained={attained}, bw={} ({}), iops={iops}, {}",
            bw.0, bw.1, self.measured
        );
    }
}

impl FioRates {
    fn write_normal(&self, name: &str, style: Style, text: &mut String) {
        let rate = style.both(self.bw_bytes, Unit::Rate(style.unit_base));
        let bytes = style.both(self.io_bytes, Unit::Bytes).0;
        let zones = if name == "write" {
            "; 0 zone resets"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  {name}: IOPS={}, BW={} ({})({bytes}/{}msec){zones}",
            short(self.iops as u64, style.digits, false, Unit::Plain),
            rate.0,
            rate.1,
            self.runtime
        );
        let parts = [
            ("slat", &self.slat_ns),
            ("clat", &self.clat_ns),
            (" lat", &self.lat_ns),
        ];
        for (part, latency) in parts {
            latency.write_normal(part, text);
        }
        for (part, latency) in parts {
            latency.write_percentiles(part.trim_start(), style, text);
        }
        self.write_samples(style, text);
    }

    fn write_samples(&self, style: Style, text: &mut String) {
        if self.bw_samples > 0 {
            let (bits, binary) = (style.unit_base == 1, style.kb_base == 1024);
            let base = f64::from(style.kb_base);
            let mut name = match (bits, binary) {
                (true, true) => "Kibit",
                (true, false) => "kbit",
                (false, true) => "KiB",
                (false, false) => "kB",
            };
            let mut factor = if bits { 8.0 } else { 1.0 };
            if self.bw_mean * factor > base * base {
                factor /= base;
                name = if bits { "Mibit" } else { "MiB" };
            }
            let whole = |value: u64| (value as f64 * factor) as u64;
            let _ = writeln!(
                text,
                "   bw ({name:>5}/s): min={:5}, max={:5}, per={:3.2}%, avg={:5.02}, stdev={:5.02}, \
                 samples={}",
                whole(self.bw_min),
                whole(self.bw_max),
                self.bw_agg,
                self.bw_mean * factor,
                self.bw_dev * factor,
                self.bw_samples
            );
        }
        if self.iops_samples > 0 {
            let _ = writeln!(
                text,
                "   iops        : min={:5}, max={:5}, avg={:5.02}, stdev={:5.02}, samples={}",
                self.iops_min, self.iops_max, self.iops_mean, self.iops_stddev, self.iops_samples
            );
        }
    }

    fn write_terse(&self, list: &[f64], text: &mut String) {
        let _ = write!(
            text,
            ";{};{};{};{}",
            self.io_kbytes, self.bw, self.iops as u64, self.runtime
        );
        self.slat_ns.write_terse(text);
        self.clat_ns.write_terse(text);
        let chosen = match self.lat_ns.percentile.is_empty() {
            true => &self.clat_ns.percentile,
            false => &self.lat_ns.percentile,
        };
        for number in 0..LIST_MAX {
            let _ = match list.get(number) {
                Some(percent) => {
                    let value = chosen.get(number).map_or(0, |(_, value)| value / 1000);
                    write!(text, ";{percent:.6}%={value}")
                }
                None => write!(text, ";0%=0"),
            };
        }
        self.lat_ns.write_terse(text);
        let _ = write!(
            text,
            ";{};{};{:.6}%;{:.6};{:.6}",
            self.bw_min, self.bw_max, self.bw_agg, self.bw_mean, self.bw_dev
        );
    }
}

impl FioLatency {
    /// A line in the unit that fits (display_lat()).
    fn write_normal(&self, name: &str, text: &mut String) {
        if self.count == 0 {
            return;
        }
        let fits = |least: u64, most: u64, spread: f64| {
            self.min > least && self.max > most && self.stddev > spread
        };
        let (unit, by) = if fits(2_000_000, 99_999_999, 1e6) {
            ("(msec)", 1_000_000)
        } else if fits(2_000, 99_999, 1e3) {
            ("(usec)", 1_000)
        } else {
            ("(nsec)", 1)
        };
        let (min, max) = (self.min / by, self.max / by);
        let _ = writeln!(
            text,
            "    {name} {unit}: min={}, max={}, avg={:5.02}, stdev={:5.02}",
            short(min, 6, false, Unit::Plain),
            short(max, 6, false, Unit::Plain),
            self.mean / by as f64,
            self.stddev / by as f64
        );
    }

    fn write_percentiles(&self, name: &str, style: Style, text: &mut String) {
        let values = || self.percentile.iter().map(|(_, value)| *value);
        let (Some(least), Some(most)) = (values().min(), values().max()) else {
            return;
        };
        let (unit, rounds) = if least > 2_000_000 && most > 99_999_999 {
            ("msec", 2)
        } else if least > 2_000 && most > 99_999 {
            ("usec", 1)
        } else {
            ("nsec", 0)
        };
        let places = (most / 1000_u64.pow(rounds)).max(1).ilog10() as usize + 1;
        let (width, precision) = (places.max(5), style.precision);
        let in_line = (WIDTH / (precision + 10 + width)).max(1);
        let _ = write!(text, "    {name} percentiles ({unit}):\n     |");
        let last = self.percentile.len() - 1;
        for (number, (percent, value)) in self.percentile.iter().enumerate() {
            if number > 0 && number % in_line == 0 {
                text.push_str("     |");
            }
            let value = (0..rounds).fold(*value, |value, _| value.div_ceil(1000));
            let percent: f64 = percent.parse().unwrap_or_default();
            let of = precision + 3;
            let _ = write!(text, " {percent:of$.precision$}th=[{value:width$}]");
            text.push(if number == last { '\n' } else { ',' });
            if number != last && (number + 1) % in_line == 0 {
                text.push('\n');
            }
        }
    }

    fn write_terse(&self, text: &mut String) {
        let _ = write!(
            text,
            ";{};{};{:.6};{:.6}",
            self.min / 1000,
            self.max / 1000,
            self.mean / 1000.0,
            self.stddev / 1000.0
        );
    }
}

/// Of a disk, or means of its paths: ios, merges and ticks of reads and of writes, in_queue, util.
struct Used([u64; 7], f64);

impl Used {
    fn normal(&self, prefix: &str) -> String {
        let Used([ios, of, merges, and, ticks, all, in_queue], util) = self;
        format!(
            "{prefix}ios={ios}/{of}, {prefix}merge={merges}/{and}, {prefix}ticks={ticks}/{all}, \
             {prefix}in_queue={in_queue}, {prefix}util={util:3.2}%"
        )
    }

    fn terse(&self) -> String {
        let counts = self.0.map(|count| count.to_string()).join(";");
        format!("{counts};{:3.2}%", self.1)
    }
}

impl DiskUtil {
    fn used(&self) -> Used {
        let counts = [
            self.read_ios,
            self.write_ios,
            self.read_merges,
            self.write_merges,
            self.read_ticks,
            self.write_ticks,
            self.in_queue,
        ];
        Used(counts, self.util)
    }

    /// The same of the paths of a mapped disk.
    fn used_below(&self) -> Option<Used> {
        let of = self.below.as_ref()?;
        let counts = [
            of.aggr_read_ios,
            of.aggr_write_ios,
            of.aggr_read_merges,
            of.aggr_write_merge,
            of.aggr_read_ticks,
            of.aggr_write_ticks,
            of.aggr_in_queue,
        ];
        Some(Used(counts, of.aggr_util))
    }

    fn write_normal(&self, text: &mut String) {
        let (name, used) = (&self.name, self.used().normal(""));
        let _ = match self.used_below() {
            None => writeln!(text, "  {name}: {used}"),
            Some(below) => writeln!(text, "    {name}: {used}, {}", below.normal("aggr")),
        };
    }

    fn write_terse(&self, text: &mut String) {
        let _ = write!(text, ";{};{}", self.name, self.used().terse());
        if let Some(below) = self.used_below() {
            let _ = write!(text, ";slaves;{}", below.terse());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 prints them.
    #[test]
    fn numbers_are_as_short_as_those_of_fio() {
        let plain = |number, digits| short(number, digits, false, Unit::Plain);
        assert_eq!(plain(4964, 4), "4964");
        assert_eq!(plain(93_923, 4), "93.9k");
        assert_eq!(plain(1_500_000, 4), "1500k");
        assert_eq!(plain(56_186_000, 6), "56186k");
        assert_eq!(plain(3_462_100, 6), "3462.1k");
        assert_eq!(short(20_342_374, 4, true, Unit::Rate(8)), "19.4MiB/s");
        assert_eq!(short(20_342_374, 4, false, Unit::Rate(8)), "20.3MB/s");
        assert_eq!(short(409_190, 4, true, Unit::Rate(8)), "400KiB/s");
        assert_eq!(short(409_190, 4, false, Unit::Rate(8)), "409kB/s");
        assert_eq!(short(1_048_575, 4, true, Unit::Bytes), "1024KiB");
    }
}
