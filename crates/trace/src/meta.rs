//! `meta.txt`: the machine, the devices and the command of a capture.
//!
//! `KEY=VALUE` lines as the capture script writes them, and `dm: TABLE` lines for stacked devices.

mod cgroup;
mod moments;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::text::Lines;
use crate::{Error, Result};
pub use cgroup::Cgroup;
pub use moments::Moments;

/// Content of `meta.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// `uname -a`.
    pub uname: String,
    /// The kernel's version out of it.
    pub kernel: KernelVersion,
    /// Ticks a second, if uname names them (`HZ=N`); real kernels do not.
    pub hz: Option<u32>,
    pub cpus: u16,
    /// Kernel command line; empty if absent.
    pub cmdline: String,
    /// The device's module and its parameters.
    pub device: ModuleLine,
    /// Tables of device-mapper devices.
    pub dm_tables: Vec<DmTable>,
    /// queue/rotational of each device when its scheduler was chosen, if present: a later value in
    /// queue.txt is too late for bfq.
    pub rotational_when_chosen: BTreeMap<String, bool>,
    /// Records and lines have the time of the label that wrote them, on a clock that begins with
    /// the run, as simulated runs write them; a kernel formats a line before it takes its time.
    pub times_of_labels: bool,
    /// Times that no record shows, if given.
    pub moments: Moments,
    /// Control groups that processes ran in.
    pub cgroups: Vec<Cgroup>,
    /// The command that produced the I/O.
    pub command: Command,
    pub exit_code: Option<i32>,
    /// Unknown keys, as given.
    pub unknown: Vec<String>,
}

/// First two numbers of a kernel release; of 2.6 the third as well, which had the role of today's
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    /// 6 of 6.12.
    pub major: u32,
    /// 12 of 6.12.
    pub minor: u32,
    /// 32 of 2.6.32.
    pub third: Option<u32>,
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)?;
        match self.third {
            Some(third) => write!(f, ".{third}"),
            None => Ok(()),
        }
    }
}

/// `null_blk queue_mode=2 irqmode=2 ...`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleLine {
    pub module: String,
    /// Parameters as given; the others have the module's defaults.
    pub parameters: BTreeMap<String, String>,
}

/// The command that produced the I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The aioscript replayer.
    IoScript {
        /// Name of the device, without /dev/.
        device: String,
        script: String,
    },
    /// fio with these arguments (without the program's name).
    Fio {
        arguments: Vec<String>,
    },
    Other(String),
}

impl Meta {
    /// Opens and reads a file, plain or compressed.
    pub fn open(file: &Path) -> Result<Meta> {
        Meta::read(Lines::open(file)?)
    }

    pub fn read(mut lines: Lines) -> Result<Meta> {
        let (given, more) = Given::read(&mut lines)?;
        let (line, uname) = given.need("uname")?;
        let kernel = kernel_version(&uname)
            .ok_or_else(|| given.error(line, "uname", format!("no kernel release in `{uname}`")))?;
        let hz = hertz(&uname).map_err(|found| {
            given.error(
                line,
                "uname",
                format!("`{found}`, expected HZ=1 to HZ=1200"),
            )
        })?;
        Ok(Meta {
            kernel,
            hz,
            uname,
            cpus: given.number("cpus")?,
            cmdline: given
                .take("cmdline")
                .map_or_else(String::new, |(_, text)| text),
            device: module_line(&given)?,
            dm_tables: more.dm_tables,
            rotational_when_chosen: more.rotational_when_chosen,
            times_of_labels: times_of_labels(&given)?,
            moments: more.moments,
            cgroups: more.cgroups,
            command: command(&given.need("cmd")?.1),
            exit_code: if given.values.contains_key("rc") {
                Some(given.number("rc")?)
            } else {
                None
            },
            unknown: more.unknown,
        })
    }
}

struct Given {
    file: PathBuf,
    values: BTreeMap<String, (u64, String)>,
    last: u64,
}

/// Table of a device-mapper device, as `dmsetup table` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmTable {
    /// Its line in `meta.txt`.
    pub line: u64,
    /// `0 524288 multipath 0 0 1 1 ...`, without the name of the device before it.
    pub text: String,
}

impl DmTable {
    /// Its target is multipath: no two devices are over the same paths.
    pub fn is_multipath(&self) -> bool {
        self.text.split_whitespace().nth(2) == Some("multipath")
    }

    /// `TABLE` or `NAME: TABLE`.
    fn of(line: u64, text: &str) -> DmTable {
        let named = text.split_once(':').filter(|(name, _)| !name.contains(' '));
        let text = named.map_or(text, |(_, table)| table);
        DmTable {
            line,
            text: text.trim().to_owned(),
        }
    }
}

/// Lines that there can be several of.
#[derive(Default)]
struct More {
    dm_tables: Vec<DmTable>,
    rotational_when_chosen: BTreeMap<String, bool>,
    moments: Moments,
    cgroups: Vec<Cgroup>,
    unknown: Vec<String>,
}

/// Keys that are there once at most.
const KEYS: [&str; 8] = [
    "uname",
    "cpus",
    "clocksource",
    "cmdline",
    "device",
    "cmd",
    "rc",
    "record_times",
];

impl Given {
    fn read(lines: &mut Lines) -> Result<(Given, More)> {
        let mut given = Given {
            file: lines.file().to_path_buf(),
            values: BTreeMap::new(),
            last: 0,
        };
        let mut more = More::default();
        while lines.advance()? {
            let line = lines.line().trim();
            if let Some(table) = line.strip_prefix("dm: ") {
                let table = DmTable::of(lines.number(), table);
                let mut others = more.dm_tables.iter();
                let same = |other: &&DmTable| other.text == table.text && table.is_multipath();
                if let Some(other) = others.find(same) {
                    let what = format!("the same table as in line {}", other.line);
                    return Err(lines.error("dm", what));
                }
                more.dm_tables.push(table);
            } else if let Some(group) = line.strip_prefix("cgroup ") {
                cgroup::add(group, &mut more.cgroups)
                    .map_err(|what| lines.error("cgroup", what))?;
            } else if let Some(chosen) = line.strip_prefix(ROTATIONAL) {
                let chosen = rotational(chosen);
                let field = "rotational_when_scheduler_chosen";
                let (device, value) =
                    chosen.ok_or_else(|| lines.error(field, "expected DEVICE=0 or =1"))?;
                more.rotational_when_chosen.insert(device, value);
            } else if !line.is_empty() {
                let (key, value) = line
                    .split_once('=')
                    .ok_or_else(|| lines.error("line", "expected KEY=VALUE or `dm: TABLE`"))?;
                if let Some(taken) = more.moments.take(key, value.trim()) {
                    taken.map_err(|what| lines.error(key, what))?;
                } else if !KEYS.contains(&key) {
                    more.unknown.push(key.to_string());
                } else {
                    let entry = (lines.number(), value.trim().to_string());
                    if given.values.insert(key.to_string(), entry).is_some() {
                        return Err(lines.error(key, "given twice"));
                    }
                }
            }
            given.last = lines.number();
        }
        Ok((given, more))
    }

    fn take(&self, key: &str) -> Option<(u64, String)> {
        self.values.get(key).cloned()
    }

    fn need(&self, key: &str) -> Result<(u64, String)> {
        self.take(key)
            .ok_or_else(|| self.error(self.last, key, "missing"))
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T> {
        let (line, text) = self.need(key)?;
        text.parse()
            .map_err(|_| self.error(line, key, format!("`{text}` is not a number")))
    }

    fn error(&self, line: u64, field: &str, what: impl Into<String>) -> Error {
        Error::text(&self.file, line, field, what)
    }
}

/// Begins the line of a device: `rotational_when_scheduler_chosen_nullb0=0`.
const ROTATIONAL: &str = "rotational_when_scheduler_chosen_";

/// `nullb0=0`.
fn rotational(chosen: &str) -> Option<(String, bool)> {
    let (device, value) = chosen.split_once('=')?;
    let rotational = match value {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some((device.to_owned(), rotational))
}

/// `Linux (none) 6.1.0-56-amd64 #1 SMP ...`: the third word. Distributions number their packages
/// after the second dot, so only the first two numbers have a meaning.
fn kernel_version(uname: &str) -> Option<KernelVersion> {
    let mut numbers = uname.split_whitespace().nth(2)?.split(['.', '-', '+']);
    let mut next = || numbers.next()?.parse::<u32>().ok();
    let (major, minor) = (next()?, next()?);
    let third = match (major, minor) {
        (2, 6) => Some(next()?),
        _ => None,
    };
    Some(KernelVersion {
        major,
        minor,
        third,
    })
}

/// Ticks a second, if uname has it (`HZ=1000`, as simulated runs write it).
fn hertz(uname: &str) -> std::result::Result<Option<u32>, &str> {
    let mut words = uname.split([' ', ',']);
    let Some(word) = words.find(|word| word.starts_with("HZ=")) else {
        return Ok(None);
    };
    let number = word["HZ=".len()..].parse().ok();
    let possible = number.filter(|hz| (1..=1200).contains(hz));
    possible.map(Some).ok_or(word)
}

/// `record_times=labels`.
fn times_of_labels(given: &Given) -> Result<bool> {
    match given.take("record_times") {
        None => Ok(false),
        Some((_, text)) if text == "labels" => Ok(true),
        Some((line, text)) => {
            let what = format!("`{text}`, expected labels");
            Err(given.error(line, "record_times", what))
        }
    }
}

fn module_line(given: &Given) -> Result<ModuleLine> {
    let (line, text) = given.need("device")?;
    let mut words = text.split_whitespace();
    let module = words
        .next()
        .filter(|word| !word.contains('='))
        .ok_or_else(|| given.error(line, "device", "expected MODULE and its parameters"))?;
    let mut parameters = BTreeMap::new();
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| {
            given.error(line, "device", format!("`{word}` is not PARAMETER=VALUE"))
        })?;
        if parameters
            .insert(key.to_string(), value.to_string())
            .is_some()
        {
            return Err(given.error(line, "device", format!("parameter {key} given twice")));
        }
    }
    Ok(ModuleLine {
        module: module.to_string(),
        parameters,
    })
}

fn command(text: &str) -> Command {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is = |word: &&str, program: &str| file_name(word) == program;
    if let Some((_, arguments)) = words.split_first().filter(|(first, _)| is(first, "fio"))
        && !arguments.is_empty()
    {
        return Command::Fio {
            arguments: arguments.iter().map(ToString::to_string).collect(),
        };
    }
    // taskset, nice or a shell may start it.
    let replayer = words.iter().position(|word| is(word, "aioscript"));
    match replayer.map(|at| &words[at + 1..]) {
        Some([device, script, ..]) => Command::IoScript {
            device: device.trim_start_matches("/dev/").to_string(),
            script: file_name(script).to_string(),
        },
        _ => Command::Other(text.to_string()),
    }
}

/// The last part of a path, without quotes and shell syntax after a word.
fn file_name(word: &str) -> &str {
    let word = word.trim_matches(['"', '\'', ';', '(', ')']);
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests;
