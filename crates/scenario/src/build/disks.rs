//! Disks of a scenario, their names, and the disk that a `filename` means.
//!
//! Not here: the drivers' use of parameters (`drivers.rs`).

use blkmq::dm::PathId;
use blkmq::dm::table::bare_name;
use blkmq::queue::QUEUES_MAX;
use blkmq::request::SetId;
use std::collections::{BTreeMap, BTreeSet};

use trace::fio::FioJob;

use super::drivers::value;
use super::mapped::{Over, take_paths};
use super::{Result, Scenario};
use crate::Device;
use crate::mapped::Written;
use sim::plan::DiskId;

/// Most disks of a run, paths included.
const DISKS_MAX: u16 = QUEUES_MAX;

/// Names shown in an error at most.
const SHOWN: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    NullBlk,
    Nvme,
    ScsiDebug,
    Ahci,
    Fc,
    /// Multipath, from `[mapped]`: not a type of `[device]`.
    Mapped,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [
        Kind::NullBlk,
        Kind::Nvme,
        Kind::ScsiDebug,
        Kind::Ahci,
        Kind::Fc,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::NullBlk => "null_blk",
            Kind::Nvme => "nvme",
            Kind::ScsiDebug => "scsi_debug",
            Kind::Ahci => "ahci",
            Kind::Fc => "fc",
            Kind::Mapped => "multipath",
        }
    }

    /// Beginning of its names below /dev.
    fn prefix(self) -> &'static str {
        match self {
            Kind::NullBlk => "nullb",
            Kind::Nvme => "nvme",
            Kind::ScsiDebug | Kind::Ahci | Kind::Fc => "sd",
            Kind::Mapped => "dm-",
        }
    }

    /// Name of its disk number `index` from 0.
    fn disk_name(self, index: usize) -> String {
        match self {
            Kind::NullBlk => format!("nullb{index}"),
            Kind::Nvme => format!("nvme{index}n1"),
            Kind::ScsiDebug | Kind::Ahci | Kind::Fc => format!("sd{}", letters(index)),
            Kind::Mapped => format!("dm-{index}"),
        }
    }

    /// The parameter for a number of devices, and its written value.
    fn count(self, device: &Device) -> (&'static str, Option<u16>) {
        match self {
            Kind::NullBlk => ("nr_devices", device.count("nr_devices")),
            Kind::Nvme | Kind::Ahci | Kind::Mapped => ("count", device.count("count")),
            Kind::ScsiDebug | Kind::Fc => {
                let names = ["add_host", "num_tgts", "max_luns"];
                let written = names.map(|name| device.count(name));
                let one = |written: Option<u16>| written.unwrap_or(1);
                let count = written
                    .into_iter()
                    .fold(1, |all: u16, n| all.saturating_mul(one(n)));
                // The parameter to report if there are too many, or none.
                let least = |count: u16| written.iter().position(|n| one(*n) == count);
                let most = written.into_iter().map(one).max().unwrap_or(1);
                let blamed = least(0).or_else(|| least(most)).unwrap_or(0);
                let given = written.iter().any(Option::is_some);
                (names[blamed], given.then_some(count))
            }
        }
    }

    /// Disks of one host, which have one tag set and one driver.
    fn units(self, device: &Device) -> u16 {
        match self {
            Kind::NullBlk | Kind::Nvme | Kind::Ahci | Kind::Mapped => 1,
            Kind::ScsiDebug | Kind::Fc => {
                let of = |written: Option<u16>| written.unwrap_or(1);
                of(device.count("num_tgts")).saturating_mul(of(device.count("max_luns")))
            }
        }
    }

    /// The type that a `filename` implies, and the name below /dev.
    fn of_file(filename: &str) -> Option<(Kind, &str)> {
        let bare = filename.strip_prefix("/dev/")?;
        // The name is used in file names and in texts.
        if !bare.chars().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| bare.starts_with(kind.prefix()))?;
        Some((kind, bare))
    }
}

/// a to z, aa to zz and so on (sd_format_disk_name()).
fn letters(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    match index / 26 {
        0 => last.to_string(),
        more => letters(more - 1) + &last.to_string(),
    }
}

/// A disk before its driver sets it up.
#[derive(Clone, Debug)]
pub(super) struct Disk<'a> {
    pub(super) kind: Kind,
    /// Name below /dev.
    pub(super) name: String,
    pub(super) device: &'a Device,
    /// Name of its table: `device`, `device.1`.
    pub(super) field: String,
    pub(super) set: SetId,
    /// Number of its host, if that has several units.
    pub(super) host: Option<u16>,
}

/// All disks, by the `filename` that means each.
#[derive(Debug)]
pub(super) struct Disks<'a> {
    pub(super) list: Vec<Disk<'a>>,
    /// Multipath devices, which are the last ones of the list, with the devices below.
    pub(super) mapped: Vec<Over<'a>>,
    /// Hosts of several units so far.
    host_count: u16,
    by_file: BTreeMap<String, u16>,
}

/// A `filename`, and the first job's option that has it.
type File<'a> = (&'a str, String);

impl<'a> Disks<'a> {
    /// `nothing` replaces a scenario without any device. Notes on names that are replaced by others
    /// go to `ignored`.
    pub(super) fn new(
        scenario: &'a Scenario,
        nothing: &'a Device,
        jobs: &[FioJob],
        ignored: &mut Vec<String>,
    ) -> Result<Disks<'a>> {
        let files = files(jobs);
        let mut disks = Disks {
            list: Vec::new(),
            mapped: Vec::new(),
            host_count: 0,
            by_file: BTreeMap::new(),
        };
        let of_list = scenario.source.table("device").is_none() && !scenario.device.is_empty();
        if !scenario.mapped.is_empty() {
            disks.of_mapped(scenario, nothing, of_list)?;
            disks.find(scenario, &files)?;
        } else if of_list {
            disks.of_tables(scenario)?;
            disks.find(scenario, &files)?;
        } else {
            let device = scenario.device.first().unwrap_or(nothing);
            disks.of_table(scenario, device, &files, ignored)?;
        }
        Ok(disks)
    }

    /// Disks that a job works on, in the order of its filename.
    pub(super) fn of_job(
        &self,
        scenario: &Scenario,
        index: usize,
        job: &FioJob,
    ) -> Result<Vec<u16>> {
        if !job.filenames.is_empty() {
            let numbers = job.filenames.iter().map(|name| self.by_file[name]);
            return Ok(numbers.collect());
        }
        if let [_] = self.list.as_slice() {
            return Ok(vec![0]);
        }
        let what = format!(
            "the job names none of the devices; they are {}",
            self.names()
        );
        Err(scenario.error(&scenario.job_field(index, "filename"), what))
    }

    /// Hosts of several disks: the first one, and how many more follow it.
    pub(super) fn hosts(&self) -> Vec<(DiskId, usize)> {
        let of = |host: u16| {
            let mut units = (0..).zip(&self.list);
            let first = units.find(|(_, disk)| disk.host == Some(host))?.0;
            let more = units.filter(|(_, disk)| disk.host == Some(host)).count();
            Some((DiskId(first), more))
        };
        (0..self.host_count).filter_map(of).collect()
    }

    /// Hosts of several paths: the path of a disk that each unit is.
    pub(super) fn hosts_below(&self) -> Vec<Vec<(DiskId, PathId)>> {
        let first = (self.list.len() - self.mapped.len()) as u16;
        let mapped = (first..).map(DiskId).zip(&self.mapped);
        let paths = mapped.flat_map(|(disk, over)| {
            let paths = (0..).map(PathId).zip(&over.paths);
            paths.map(move |(path, unit)| (unit.host, (disk, path)))
        });
        let paths: Vec<_> = paths.collect();
        let of = |host: u16| paths.iter().filter(move |(of, _)| *of == Some(host));
        let all = (0..self.host_count).map(|host| of(host).map(|(_, path)| *path).collect());
        all.filter(|units: &Vec<_>| !units.is_empty()).collect()
    }

    /// `[mapped]` over some of the devices of `[[device]]` tables.
    fn of_mapped(
        &mut self,
        scenario: &'a Scenario,
        nothing: &'a Device,
        of_list: bool,
    ) -> Result<()> {
        match of_list {
            true => self.of_tables(scenario)?,
            false => {
                let device = scenario.device.first().unwrap_or(nothing);
                let Some(kind) = kind(scenario, device, "device")? else {
                    let what = "is missing: null_blk, nvme, scsi_debug or ahci";
                    return Err(scenario.error("device.type", what));
                };
                self.add(scenario, kind, device, "device")?;
            }
        }
        for written in Written::all(scenario) {
            let paths = take_paths(&written, &self.mapped, &mut self.list)?;
            for path in &paths {
                if path.kind == Kind::NullBlk && path.device.has("shared_tags") {
                    let what = format!("{} is a path: it shares no tags here", path.name);
                    return Err(scenario.error(&format!("{}.shared_tags", path.field), what));
                }
            }
            self.mapped.push(Over { written, paths });
        }
        self.number_sets();
        for (number, written) in Written::all(scenario).enumerate() {
            let name = written.mapped.name.clone();
            let name = name.unwrap_or_else(|| Kind::Mapped.disk_name(number));
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') || name.is_empty() {
                return Err(written.error("name", format!("`{name}` is no name below /dev")));
            }
            let mut paths = self.mapped.iter().flat_map(|over| &over.paths);
            if paths.any(|path| path.name == name) {
                return Err(written.error("name", format!("there are two devices {name}")));
            }
            self.push(scenario, Kind::Mapped, nothing, &written.table(), name)?;
        }
        Ok(())
    }

    /// An error if some units of a host are paths, and some are disks.
    pub(super) fn whole_hosts(&self) -> Result<()> {
        for over in &self.mapped {
            for path in over.paths.iter().filter(|path| path.host.is_some()) {
                let mut others = self.list.iter().filter(|disk| disk.host == path.host);
                if let Some(other) = others.next() {
                    let what = format!(
                        "{} is a path, but {}, a unit of the same host, is none; expected all \
                         units of a host in tables, or none",
                        path.name, other.name
                    );
                    return Err(over.written.error("table", what));
                }
            }
        }
        Ok(())
    }

    /// Numbers tag sets without gaps, after some disks were taken out.
    fn number_sets(&mut self) {
        let (mut before, mut number) = (None, 0);
        for disk in &mut self.list {
            let old = disk.set;
            number += u16::from(before.is_some_and(|before| before != old));
            (disk.set, before) = (SetId(number), Some(old));
        }
    }

    /// Several `[[device]]`.
    fn of_tables(&mut self, scenario: &'a Scenario) -> Result<()> {
        for (i, device) in scenario.device.iter().enumerate() {
            let field = format!("device.{i}");
            let Some(kind) = kind(scenario, device, &field)? else {
                let what = "is missing: null_blk, nvme or scsi_debug";
                return Err(scenario.error(&format!("{field}.type"), what));
            };
            self.add(scenario, kind, device, &field)?;
        }
        Ok(())
    }

    /// One `[device]`, or none.
    fn of_table(
        &mut self,
        scenario: &'a Scenario,
        device: &'a Device,
        files: &[File<'_>],
        ignored: &mut Vec<String>,
    ) -> Result<()> {
        let Some(kind) = kind(scenario, device, "device")? else {
            return self.of_files(scenario, device, files);
        };
        let (names, others): (Vec<File<'_>>, Vec<File<'_>>) = files
            .iter()
            .cloned()
            .partition(|(name, _)| name.starts_with("/dev/"));
        self.of_names(scenario, (kind, device), &names, ignored)?;
        // Files lie on the device.
        for (index, (name, field)) in others.iter().enumerate() {
            let number = index % self.list.len();
            self.stands_for(scenario, (name, field), number, ignored);
        }
        Ok(())
    }

    /// A file's name that means the disk of this number.
    fn stands_for(
        &mut self,
        scenario: &Scenario,
        (name, field): (&str, &str),
        number: usize,
        ignored: &mut Vec<String>,
    ) {
        let (place, disk) = (scenario.source.place(field), &self.list[number]);
        ignored.push(match self.list.len() {
            1 => format!(
                "{place}: filename: {name} means the given {}",
                disk.kind.name()
            ),
            _ => format!("{place}: filename: {name} means {}", disk.name),
        });
        self.by_file.insert(name.to_owned(), number as u16);
    }

    /// One `[device]` for these names of devices.
    fn of_names(
        &mut self,
        scenario: &'a Scenario,
        (kind, device): (Kind, &'a Device),
        files: &[File<'_>],
        ignored: &mut Vec<String>,
    ) -> Result<()> {
        let given: Vec<_> = files.iter().filter_map(|(f, _)| Kind::of_file(f)).collect();
        let named = !given.is_empty() && given.len() == files.len();
        let alike = named && given.iter().all(|(other, _)| *other == kind);
        let (_, count) = kind.count(device);
        if alike
            && count.is_none_or(|count| count == 1 && given.len() == 1)
            && device.name.is_none()
        {
            for (_, name) in given {
                self.push(scenario, kind, device, "device", name.to_string())?;
            }
            return self.find(scenario, files);
        }
        if count.is_some() || files.is_empty() || device.name.is_some() {
            self.add(scenario, kind, device, "device")?;
        } else {
            for index in 0..files.len() {
                self.push(scenario, kind, device, "device", kind.disk_name(index))?;
            }
        }
        let stand_in = files.len() <= self.list.len() && given.iter().all(|(k, _)| *k != kind);
        if !stand_in {
            return self.find(scenario, files);
        }
        for (number, (name, field)) in files.iter().enumerate() {
            self.stands_for(scenario, (name, field), number, ignored);
        }
        Ok(())
    }

    /// Disks that only `filename` names.
    fn of_files(
        &mut self,
        scenario: &'a Scenario,
        device: &'a Device,
        files: &[File<'_>],
    ) -> Result<()> {
        if files.is_empty() {
            let what = "no device is given: use --device null_blk (or nvme, scsi_debug), [device] \
                        type, or fio's filename=/dev/nullb0";
            return Err(scenario.error("device", what));
        }
        for (name, field) in files {
            let Some((kind, bare)) = Kind::of_file(name) else {
                let what = format!(
                    "{name} is no device that is modelled; use /dev/nullb0, /dev/nvme0n1 or \
                     /dev/sda, or set the device (--device null_blk, or [device] type)"
                );
                return Err(scenario.error(field, what));
            };
            self.push(scenario, kind, device, "device", bare.to_string())?;
        }
        self.find(scenario, files)
    }

    /// All disks of one table.
    fn add(
        &mut self,
        scenario: &Scenario,
        kind: Kind,
        device: &'a Device,
        field: &str,
    ) -> Result<()> {
        let (parameter, count) = kind.count(device);
        let count = count.unwrap_or(1);
        if count == 0 || count > DISKS_MAX {
            let written = device.number(parameter).unwrap_or(0).max(count.into());
            let what = format!("{written} is not 1 to {DISKS_MAX}");
            return Err(scenario.error(&format!("{field}.{parameter}"), what));
        }
        if let Some(name) = &device.name {
            let field = format!("{field}.name");
            if count > 1 {
                let what = format!("one name for {count} devices; leave it out");
                return Err(scenario.error(&field, what));
            }
            if Kind::of_file(&format!("/dev/{name}"))
                .is_none_or(|(given, _)| given.prefix() != kind.prefix())
            {
                let example = kind.disk_name(0);
                let what = format!("`{name}` is no name of {}, as {example} is", kind.name());
                return Err(scenario.error(&field, what));
            }
            self.push(
                scenario,
                kind,
                device,
                field.trim_end_matches(".name"),
                name.clone(),
            )?;
            return Ok(());
        }
        // Each of several tables may name its disk: the others get free names.
        let written: BTreeSet<&str> = scenario
            .device
            .iter()
            .filter_map(|device| device.name.as_deref())
            .collect();
        let taken: BTreeSet<String> = self.list.iter().map(|disk| disk.name.clone()).collect();
        let free = (0..)
            .map(|index| kind.disk_name(index))
            .filter(|name| !written.contains(name.as_str()) && !taken.contains(name));
        let first = self.list.len();
        for name in free.take(usize::from(count)) {
            self.push(scenario, kind, device, field, name)?;
        }
        let units = usize::from(kind.units(device));
        if units > 1 {
            for host in self.list[first..].chunks_mut(units) {
                for unit in host {
                    unit.host = Some(self.host_count);
                }
                self.host_count += 1;
            }
        }
        Ok(())
    }

    /// The tag set of a further disk: null_blk has one for all disks that share tags.
    fn set_of(
        &self,
        scenario: &Scenario,
        kind: Kind,
        device: &Device,
        field: &str,
    ) -> Result<SetId> {
        let shares =
            |kind: Kind, device: &Device| kind == Kind::NullBlk && device.has("shared_tags");
        let sets = self.list.iter().map(|disk| disk.set.0 + 1);
        let new = SetId(sets.max().unwrap_or(0));
        let first = self.list.iter().find(|d| shares(d.kind, d.device));
        let Some(first) = first.filter(|_| shares(kind, device)) else {
            return Ok(new);
        };
        if self.list.last().is_some_and(|last| last.set != first.set) {
            let what = "tables with shared_tags have one tag set: they must be adjacent";
            return Err(scenario.error(&format!("{field}.shared_tags"), what));
        }
        let alike = [
            "hw_queue_depth",
            "submit_queues",
            "poll_queues",
            "shared_tag_bitmap",
        ];
        for parameter in alike {
            let of = |device: &Device| value(kind, device, parameter);
            let (there, here) = (of(first.device), of(device));
            if there != here {
                let what = format!(
                    "{here}, but {there} in {}: shared_tags makes one tag set of both",
                    first.field
                );
                return Err(scenario.error(&format!("{field}.{parameter}"), what));
            }
        }
        Ok(first.set)
    }

    fn push(
        &mut self,
        scenario: &Scenario,
        kind: Kind,
        device: &'a Device,
        field: &str,
        name: String,
    ) -> Result<()> {
        if self.list.iter().any(|disk| disk.name == name) {
            let what = format!("there are two devices {name}");
            return Err(scenario.error(&format!("{field}.name"), what));
        }
        let below: usize = self.mapped.iter().map(|over| over.paths.len()).sum();
        if self.list.len() + below >= usize::from(DISKS_MAX) {
            let what = format!("more than {DISKS_MAX} devices");
            return Err(scenario.error(field, what));
        }
        let set = self.set_of(scenario, kind, device, field)?;
        self.list.push(Disk {
            kind,
            name,
            device,
            field: field.to_string(),
            set,
            host: None,
        });
        Ok(())
    }

    /// Every `filename` names one of the disks.
    fn find(&mut self, scenario: &Scenario, files: &[File<'_>]) -> Result<()> {
        for (name, field) in files {
            let bare = bare_name(name);
            let Some(number) = self.list.iter().position(|disk| disk.name == bare) else {
                let what = format!("there is no device {name}; there are {}", self.names());
                return Err(scenario.error(field, what));
            };
            self.by_file.insert((*name).to_string(), number as u16);
        }
        Ok(())
    }

    fn names(&self) -> String {
        let name = |disk: &Disk<'_>| format!("/dev/{}", disk.name);
        let shown: Vec<String> = self.list.iter().take(SHOWN).map(name).collect();
        match self.list.len() {
            count if count > SHOWN => format!("{} and {} more", shown.join(", "), count - SHOWN),
            _ => shown.join(", "),
        }
    }
}

/// Every name that jobs use, in order.
fn files(jobs: &[FioJob]) -> Vec<File<'_>> {
    let mut all: Vec<File<'_>> = Vec::new();
    for (i, job) in jobs.iter().enumerate() {
        for name in &job.filenames {
            if !all.iter().any(|(known, _)| known == name) {
                all.push((name, format!("job.{i}.filename")));
            }
        }
    }
    all
}

/// The type in a table.
fn kind(scenario: &Scenario, device: &Device, field: &str) -> Result<Option<Kind>> {
    let Some(name) = device.kind.as_deref() else {
        return Ok(None);
    };
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) {
        return Ok(Some(kind));
    }
    let known = Kind::ALL.map(Kind::name);
    let what = match trace::fio::nearest(name, known) {
        Some(near) => format!("no device `{name}`; did you mean `{near}`?"),
        None => format!("no device `{name}`; there are {}", known.join(", ")),
    };
    Err(scenario.error(&format!("{field}.type"), what))
}
