//! A line of `dmsetup table` for a multipath target.
//!
//! `START LENGTH multipath FEATURES HW_HANDLER GROUPS FIRST_GROUP [GROUP]...`, where FEATURES and
//! HW_HANDLER are a number and so many words, and a GROUP is `SELECTOR N [ARGUMENT]... PATHS N
//! [DEVICE [ARGUMENT]...]...`. Not here: the contents of a device. Kernel: multipath_ctr() and its
//! callees in drivers/md/dm-mpath.c (6.1.192).

use super::PathId;
use super::selector::SelectorKind;
use crate::rules::{AttachedHandler, DeviceMapper, PgInitDelay, QueueModes, Repeat};

mod text;
mod words;

use words::Words;

/// The line, with defaults for missing words.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Table {
    /// Feature queue_if_no_path.
    pub queue_if_no_path: bool,
    /// Feature retain_attached_hw_handler.
    pub retain_attached_hw_handler: bool,
    /// How the kernel that has read the table prints that feature.
    pub attached_handler: AttachedHandler,
    /// Feature pg_init_retries; 0 if there is none.
    pub pg_init_retries: u32,
    /// Feature pg_init_delay_msecs; 2000 if there is none.
    pub pg_init_delay_msecs: u32,
    pub queue_mode: QueueMode,
    /// Name of the hardware handler.
    pub hw_handler: Option<String>,
    /// The group that is used first; none without groups.
    pub first_group: Option<u16>,
    /// Priority groups, in their order.
    pub groups: Vec<GroupTable>,
}

/// Feature queue_mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum QueueMode {
    /// rq or mq, which is the default.
    #[default]
    Request,
    Bio,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupTable {
    pub selector: SelectorKind,
    /// historical-service-time: first argument, 0 to 1023, by default 972.
    pub base_weight: u32,
    /// historical-service-time: second argument, by default 0.
    pub threshold_multiplier: u32,
    pub paths: Vec<PathTable>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathTable {
    /// Its device as written: `8:16`.
    pub device: String,
    /// First argument of round-robin, queue-length and service-time, as the kernel takes it.
    pub repeat_count: u32,
    /// service-time: second argument, 0 to 100, by default 1.
    pub relative_throughput: u32,
    /// io-affinity: CPUs of its mask that the machine has and no earlier mask had.
    pub cpumask: Vec<usize>,
}

/// Name of a device without /dev/.
pub fn bare_name(device: &str) -> &str {
    device.strip_prefix("/dev/").unwrap_or(device)
}

/// HST_FIXED_95.
const BASE_WEIGHT: u32 = 972;
/// DM_PG_INIT_DELAY_MSECS.
const PG_INIT_DELAY_MSECS: u32 = 2000;

impl Table {
    /// Parses a line as a kernel with these rules and so many CPUs does. An error names the word,
    /// first 1, and what is expected.
    pub fn parse(line: &str, rules: &DeviceMapper, cpus: usize) -> Result<Table, String> {
        let mut words = Words::of(line);
        // dm_table_add_target(): without a gap, and there is one target.
        words.exactly("START", "0")?;
        words.number("LENGTH", 1..=u64::MAX)?;
        words.exactly("the target", "multipath")?;
        let mut table = Table {
            queue_if_no_path: false,
            retain_attached_hw_handler: false,
            attached_handler: rules.attached_handler,
            pg_init_retries: 0,
            pg_init_delay_msecs: PG_INIT_DELAY_MSECS,
            queue_mode: QueueMode::Request,
            hw_handler: None,
            first_group: None,
            groups: Vec::new(),
        };
        table.read_features(&mut words, rules)?;
        if rules.pg_init_delay == PgInitDelay::Default {
            table.pg_init_delay_msecs = PG_INIT_DELAY_MSECS;
        }
        let arguments = words.count("number of hardware handler words", 1024)?;
        let mut handler = words.take(arguments, "hardware handler")?;
        // The parser of each has its own words; a bio-based target has no handler.
        table.hw_handler = handler
            .pop()
            .filter(|_| table.queue_mode == QueueMode::Request);
        let groups = words.count("number of priority groups", 1024)?;
        let first = words.count("first priority group", 1024)?;
        if (groups == 0) != (first == 0) || first > groups {
            let what = match groups {
                0 => "0, as there are no groups".to_owned(),
                _ => format!("one of the groups, 1 to {groups}"),
            };
            return Err(words.error("first priority group", &what));
        }
        table.first_group = first.checked_sub(1).map(|first| first as u16);
        for _ in 0..groups {
            table
                .groups
                .push(GroupTable::read(&mut words, rules, cpus)?);
        }
        words.end()?;
        Ok(table)
    }

    /// All paths, those of the first group first.
    pub fn paths(&self) -> impl Iterator<Item = &PathTable> {
        self.groups.iter().flat_map(|group| &group.paths)
    }

    /// Paths of a device as written, with /dev/ or without. An error names all devices.
    pub fn paths_of(&self, device: &str) -> Result<Vec<PathId>, String> {
        let paths = (0..).map(PathId).zip(self.paths());
        let paths = paths.filter(|(_, path)| bare_name(&path.device) == bare_name(device));
        let paths: Vec<PathId> = paths.map(|(id, _)| id).collect();
        if paths.is_empty() {
            let known: Vec<&str> = self.paths().map(|path| path.device.as_str()).collect();
            let known = known.join(", ");
            return Err(format!("{device}: no path, expected one of {known}"));
        }
        Ok(paths)
    }

    fn read_features(&mut self, words: &mut Words, rules: &DeviceMapper) -> Result<(), String> {
        let count = words.count("number of feature words", 8)?;
        let mut left = words.take(count, "feature")?;
        while let Some(name) = left.pop() {
            match name.as_str() {
                "queue_if_no_path" => self.queue_if_no_path = true,
                "retain_attached_hw_handler" => self.retain_attached_hw_handler = true,
                "pg_init_retries" => {
                    self.pg_init_retries = left.number("pg_init_retries", 1..=50)? as u32;
                }
                "pg_init_delay_msecs" => {
                    let delay = left.number("pg_init_delay_msecs", 0..=60_000)?;
                    self.pg_init_delay_msecs = delay as u32;
                }
                "queue_mode" if rules.queue_mode == QueueModes::Known => {
                    self.queue_mode = match left.word("queue_mode", "bio, rq or mq")?.as_str() {
                        "bio" => QueueMode::Bio,
                        "rq" | "mq" => QueueMode::Request,
                        _ => return Err(left.error("queue_mode", "bio, rq or mq")),
                    };
                }
                _ => {
                    let modes = match rules.queue_mode {
                        QueueModes::Known => ", queue_mode MODE",
                        QueueModes::Unknown => "",
                    };
                    let known = format!(
                        "queue_if_no_path, retain_attached_hw_handler, pg_init_retries N, \
                         pg_init_delay_msecs N{modes}"
                    );
                    return Err(left.error("feature", &known));
                }
            }
        }
        Ok(())
    }
}

impl GroupTable {
    fn read(words: &mut Words, rules: &DeviceMapper, cpus: usize) -> Result<GroupTable, String> {
        let kinds = SelectorKind::of(rules);
        let known: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let known = known.join(", ");
        let name = words.word("selector", &known)?;
        let selector = kinds.iter().copied().find(|kind| kind.name() == name);
        let selector = selector.ok_or_else(|| words.error("selector", &known))?;
        let mut group = GroupTable {
            selector,
            base_weight: BASE_WEIGHT,
            threshold_multiplier: 0,
            paths: Vec::new(),
        };
        let count = words.count("number of selector words", 1024)?;
        let mut arguments = words.take(count, "selector word")?;
        if selector == SelectorKind::HistoricalServiceTime {
            if !arguments.is_empty() {
                group.base_weight = arguments.number("base_weight", 0..=1023)? as u32;
            }
            if !arguments.is_empty() {
                let threshold = arguments.number("threshold_multiplier", 0..=u32::MAX.into())?;
                group.threshold_multiplier = threshold as u32;
            }
            arguments.end()?;
        }
        let paths = words.number("number of paths", 1..=1024)?;
        let count = words.count("number of path words", 1024)?;
        for _ in 0..paths {
            let device = words.word("device", "MAJOR:MINOR or a name")?;
            let arguments = words.take(count, "path word")?;
            let path = group.read_path(device, arguments, rules, cpus)?;
            group.paths.push(path);
        }
        Ok(group)
    }

    fn read_path(
        &self,
        device: String,
        mut words: Words,
        rules: &DeviceMapper,
        cpus: usize,
    ) -> Result<PathTable, String> {
        let mut path = PathTable {
            device,
            repeat_count: default_repeat_count(self.selector, rules),
            relative_throughput: 1,
            cpumask: Vec::new(),
        };
        if self.selector == SelectorKind::IoAffinity {
            path.cpumask = self.new_cpus(&mut words, cpus)?;
            words.end()?;
            return Ok(path);
        }
        if !words.is_empty() {
            let count = words.number("repeat_count", 0..=u32::MAX.into())? as u32;
            path.repeat_count = match counts(self.selector, rules) {
                true => count,
                false => count.min(1),
            };
        }
        if self.selector == SelectorKind::ServiceTime && !words.is_empty() {
            path.relative_throughput = words.number("relative_throughput", 0..=100)? as u32;
        }
        words.end()?;
        Ok(path)
    }

    /// CPUs of a hexadecimal mask that belong to this path.
    fn new_cpus(&self, words: &mut Words, cpus: usize) -> Result<Vec<usize>, String> {
        let what = "a mask of CPUs in hexadecimal";
        let text = words.word("cpumask", what)?;
        let digits: Option<Vec<u32>> = text
            .chars()
            .filter(|&c| c != ',')
            .map(|c| c.to_digit(16))
            .collect();
        let digits = digits.filter(|digits| !digits.is_empty());
        let digits = digits.ok_or_else(|| words.error("cpumask", what))?;
        let bit = |cpu: &usize| {
            let digit = digits.iter().rev().nth(cpu / 4);
            digit.is_some_and(|digit| digit >> (cpu % 4) & 1 == 1)
        };
        let taken = |cpu: &usize| self.paths.iter().any(|path| path.cpumask.contains(cpu));
        let own: Vec<usize> = (0..cpus).filter(bit).filter(|cpu| !taken(cpu)).collect();
        match own.is_empty() {
            true => {
                let what = format!("one of {cpus} CPUs that is in no mask before");
                Err(words.error("cpumask", &what))
            }
            false => Ok(own),
        }
    }
}

/// repeat_count above 1 has an effect.
fn counts(selector: SelectorKind, rules: &DeviceMapper) -> bool {
    match rules.repeat {
        Repeat::ByTarget => true,
        Repeat::ByRoundRobin => selector == SelectorKind::RoundRobin,
        Repeat::One => false,
    }
}

/// RR_MIN_IO, QL_MIN_IO, ST_MIN_IO.
fn default_repeat_count(selector: SelectorKind, rules: &DeviceMapper) -> u32 {
    match (selector, rules.repeat) {
        (SelectorKind::RoundRobin, Repeat::ByTarget | Repeat::ByRoundRobin) => 1000,
        (SelectorKind::QueueLength, Repeat::ByTarget) => 128,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
