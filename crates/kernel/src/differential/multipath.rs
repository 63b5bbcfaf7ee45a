//! drivers/md/dm-mpath.c with its selectors beside `blkmq::dm`, or beside those of another kernel:
//! commands of scripts (`crates/blkmq/tests/script/multipath.rs`), and after each one the status
//! and the state of both targets.
//!
//! Not here: tables of random targets (`multipath/table.rs`).

mod table;

use super::dice::Dice;
use super::part::Twins;
use super::sides::Sides;
use crate::library::Library;
use crate::script::World;
use crate::script::multipath::Target;
use blkmq::rules::DeviceMapper;
use std::fmt::Write as _;
use std::sync::Arc;

/// Two targets, and what the next commands may be about.
pub(super) struct Targets {
    sides: Sides,
    /// Devices of all paths, and the number of groups.
    devices: Vec<String>,
    groups: u64,
    cpus: u64,
    is_bio: bool,
    /// A selector compares otherwise with 1024 requests in flight.
    looks_at_many: bool,
    /// Devices with an activation that is queued, or in progress; those of requests with clones.
    queued: Vec<String>,
    activating: Vec<String>,
    in_flight: Vec<String>,
    /// The worker of held bios was called.
    called: bool,
    suspension: Suspension,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Suspension {
    None,
    Begun,
    Suspended,
    Waits,
}

/// The model refuses a first group that is none of the groups; the kernel takes it for none.
const STRICTER: &str = "first priority group";

/// The model's target, in the words of C.
struct InWordsOfC(Box<dyn World>);

impl World for InWordsOfC {
    fn command(&mut self, line: &str) -> Result<Vec<String>, String> {
        let word = line.split(' ').next().unwrap_or_default();
        let lines = self.0.command(line)?;
        Ok(lines.iter().map(|line| as_in_c(word, line)).collect())
    }
}

/// A line of the model in the words of C: that has numbers for errors, and names without /dev/.
fn as_in_c(word: &str, line: &str) -> String {
    if word == "table" && line.contains(STRICTER) {
        return STRICTER.to_owned();
    }
    let refused = match word {
        "message" => line.contains("expected") || line.ends_with("the device is suspended"),
        "table" => line.starts_with("word "),
        _ => false,
    };
    match (refused, word) {
        (true, _) => "refused".to_owned(),
        (false, "status" | "table") => line.replace("/dev/", ""),
        (false, _) => line.to_owned(),
    }
}

/// The rules of the newest kernel that is not newer than the library's.
fn rules_of(library: &Library) -> DeviceMapper {
    let number = |rules: &DeviceMapper| {
        let (major, minor) = rules.name.strip_prefix('v')?.split_once('.')?;
        Some([major.parse().ok()?, minor.parse().ok()?])
    };
    let [major, minor, _] = library.tree.version;
    let all = DeviceMapper::ALL.into_iter();
    let mut older = all.filter(|rules| number(rules).is_some_and(|of| of <= [major, minor]));
    older.next_back().unwrap_or(DeviceMapper::ALL[0])
}

impl Targets {
    /// Takes in what a command has printed.
    fn learn(&mut self, line: &str, printed: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let first = printed.lines().next().unwrap_or_default();
        match word {
            "map" | "worker" => {
                self.called &= word == "map";
                for answer in first.split(", ") {
                    let (device, times) = answer.split_once(" x").unwrap_or((answer, "1"));
                    let times = times.parse().unwrap_or(0);
                    if self.devices.iter().any(|of| of == device) {
                        let all = std::iter::repeat_n(device.to_owned(), times);
                        self.in_flight.extend(all);
                    }
                }
            }
            "end" => {
                let device = rest.split(' ').next().unwrap_or_default();
                let times = rest.split_once("times=").map_or(1, |(_, times)| {
                    times
                        .split(' ')
                        .next()
                        .unwrap_or_default()
                        .parse()
                        .unwrap_or(0)
                });
                for _ in 0..times {
                    take(&mut self.in_flight, device);
                }
            }
            "work" => take(&mut self.queued, rest),
            "init" => take(
                &mut self.activating,
                rest.split(' ').next().unwrap_or_default(),
            ),
            "suspend" => self.suspension = Suspension::Begun,
            "suspended" => self.suspension = Suspension::Suspended,
            "stop" if first == "waits" => self.suspension = Suspension::Waits,
            "start" => self.suspension = Suspension::Suspended,
            "resume" => self.suspension = Suspension::None,
            _ => {}
        }
        for line in printed.lines() {
            if let Some(rest) = line.strip_prefix("queue work of ") {
                let device = rest.split(' ').next().unwrap_or_default();
                self.queued.push(device.to_owned());
            }
            if let Some(device) = line.strip_suffix(" activates") {
                self.activating.push(device.to_owned());
            }
            self.called |= line == "call worker";
        }
    }

    fn map(&self, dice: &mut Dice) -> String {
        let mut text = "map".to_owned();
        if dice.one_in(2) {
            text += dice.of(&[" 512", " 8k", " 64k", " 128k", " 1m"]);
        } else if dice.one_in(40) {
            text += dice.of(&[" 1g", " 2g", " 3g"]);
        }
        if dice.one_in(3) {
            let _ = write!(text, " times={}", 1 + dice.below(8));
        } else if self.looks_at_many && dice.one_in(80) {
            text += " times=2300";
        }
        let _ = write!(text, " cpu={}", dice.below(self.cpus));
        if !self.is_bio && dice.one_in(12) {
            text += dice.of(&[" noclone", " noclone", " dying", " undone"]);
        }
        text
    }

    fn end(&self, dice: &mut Dice) -> String {
        let device = dice.one(&self.in_flight);
        let mut text = format!("end {device}");
        if dice.one_in(5) {
            text += dice.of(&[
                " ioerr",
                " ioerr",
                " timeout",
                " again",
                " notsupp",
                " resource",
                " transport",
                " target",
                " nexus",
                " medium",
                " protection",
                " nospc",
            ]);
        }
        let of_it = self.in_flight.iter().filter(|&of| of == device).count() as u64;
        if dice.one_in(3) {
            let _ = write!(text, " times={}", 1 + dice.below(of_it));
        }
        text
    }

    fn message(&self, dice: &mut Dice) -> String {
        let device = dice.one(&self.devices).trim_start_matches("/dev/");
        let group = 1 + dice.below(self.groups.max(1));
        let text = match dice.below(20) {
            0..=4 => format!("fail_path {device}"),
            5..=11 => format!("reinstate_path {device}"),
            12 => "queue_if_no_path".to_owned(),
            13 => "fail_if_no_path".to_owned(),
            14 | 15 => format!("switch_group {group}"),
            16 => format!("disable_group {group}"),
            17 => format!("enable_group {group}"),
            18 => format!("reinstate_path /dev/{device}"),
            _ => {
                let number = dice.of(&["0", "99", "x", ""]);
                match dice.below(6) {
                    0 => format!("{} {number}", dice.of(&["switch_group", "disable_group"])),
                    1 => format!("{} 9:9", dice.of(&["fail_path", "reinstate_path"])),
                    2 => "enable_group".to_owned(),
                    3 => format!("queue_if_no_path {device}"),
                    4 => "Fail_Path 9:9".to_owned(),
                    _ => "fail_path 8:0 8:16".to_owned(),
                }
            }
        };
        format!("message {text}")
    }

    /// The next step of a suspension, at times one that does not belong there.
    fn suspend(&self, dice: &mut Dice) -> String {
        let any = dice.below(6) as usize;
        let text = match self.suspension {
            _ if dice.one_in(12) => {
                ["suspend", "suspended", "stop", "start", "resume", "stop"][any]
            }
            Suspension::None => dice.of(&["suspend", "suspend noflush"]),
            Suspension::Begun => dice.of(&["suspended", "suspended", "resume"]),
            Suspension::Suspended => dice.of(&["stop", "resume"]),
            Suspension::Waits => "start",
        };
        text.to_owned()
    }

    fn busy(&self, dice: &mut Dice) -> String {
        let mut text = "busy".to_owned();
        for device in &self.devices {
            let bare = device.trim_start_matches("/dev/");
            // The driver is that of all paths to a device.
            if !text.contains(bare) && dice.below(3) > 0 {
                let all = self.devices.iter();
                for path in all.filter(|path| path.trim_start_matches("/dev/") == bare) {
                    let _ = write!(text, " {path}");
                }
            }
        }
        text
    }
}

/// Removes the first of these.
fn take(from: &mut Vec<String>, device: &str) {
    if let Some(at) = from.iter().position(|of| of == device) {
        from.remove(at);
    }
}

const RESULTS: [&str; 12] = [
    "ok",
    "ok",
    "ok",
    "ok",
    "nosys",
    "dev_temp_busy",
    "retry",
    "retry",
    "imm_retry",
    "res_temp_unavail",
    "dev_offlined",
    "io",
];

impl Twins for Targets {
    fn begin(libraries: &[Arc<Library>], line: &str) -> Option<Targets> {
        let rest = line.strip_prefix("multipath ")?;
        let library = libraries.last()?;
        let model = || {
            let line = format!("multipath rules={} {rest}", rules_of(library).name);
            Some(Box::new(InWordsOfC(Target::create(&line).ok()?)) as Box<dyn World>)
        };
        let words = || rest.split(' ');
        let number = |name: &str| {
            let mut words = words();
            words.find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok())
        };
        let is_device = |word: &&str| word.contains(':');
        Some(Targets {
            sides: Sides::begin(libraries, line, &["status", "state"], model)?,
            devices: words().filter(is_device).map(str::to_owned).collect(),
            groups: table::groups_of(rest),
            cpus: number("cpus=").unwrap_or(4),
            is_bio: rest.contains(" queue_mode bio"),
            looks_at_many: rest.contains("historical-service-time"),
            queued: Vec::new(),
            activating: Vec::new(),
            in_flight: Vec::new(),
            called: false,
            suspension: Suspension::None,
        })
    }

    fn command(&mut self, line: &str) -> Option<[String; 2]> {
        let mut both = self.sides.command(line)?;
        if both[0].starts_with(STRICTER) {
            return None;
        }
        if line.starts_with("table ") {
            // The model does not know which further CPUs a mask has, nor how many digits.
            for text in &mut both {
                text.truncate(text.find("io-affinity").unwrap_or(text.len()));
            }
        }
        self.learn(line, &both[1]);
        Some(both)
    }

    fn first(dice: &mut Dice) -> String {
        table::first(dice)
    }

    fn random(&self, dice: &mut Dice) -> String {
        let weights = [
            40,
            if self.in_flight.is_empty() {
                0
            } else {
                30 + self.in_flight.len() as u64
            },
            if self.devices.is_empty() { 0 } else { 12 },
            if self.queued.is_empty() { 0 } else { 25 },
            if self.activating.is_empty() { 0 } else { 25 },
            if self.called { 25 } else { 0 },
            match self.suspension {
                Suspension::None => 2,
                Suspension::Begun | Suspension::Suspended | Suspension::Waits => 8,
            },
            3,
            8,
            1,
            1,
        ];
        match dice.weighted(&weights) {
            0 => self.map(dice),
            1 => self.end(dice),
            2 => self.message(dice),
            3 => format!("work {}", dice.one(&self.queued)),
            4 => format!("init {} {}", dice.one(&self.activating), dice.of(&RESULTS)),
            5 => "worker".to_owned(),
            6 => self.suspend(dice),
            7 => self.busy(dice),
            8 => match dice.below(4) {
                0 => format!("wait {}us", 1 + dice.below(900)),
                1 => format!("wait {}ms", 1 + dice.below(3)),
                2 => format!("wait {}ms", 1 + dice.below(30)),
                _ => format!("wait {}ms", 1 + dice.below(2000)),
            },
            9 => "expire".to_owned(),
            _ => format!("table {}", table::perhaps_wrong(dice)),
        }
    }

    /// In the format of blkmq's scripts; what only the state shows is in comments.
    fn written(libraries: &[Arc<Library>], script: &[String]) -> String {
        let Some((mut targets, library)) =
            Targets::begin(libraries, &script[0]).zip(libraries.last())
        else {
            return script.join("\n");
        };
        let release = library.tree.release();
        let mut text = format!("# What dm-mpath.c of {release} prints; the last line differs.\n");
        let mut printed = String::new();
        for line in &script[1..] {
            let both = targets.command(line).unwrap_or_default();
            for line in both[1].lines() {
                match line.strip_prefix("| ") {
                    None => printed = printed + line + "\n",
                    Some(state) if !both[0].contains(line) => {
                        let _ = writeln!(text, "# Only there: {state}");
                    }
                    Some(_) => {}
                }
            }
        }
        let rest = script[0].trim_start_matches("multipath ");
        let _ = write!(
            text,
            "multipath rules={} {rest}\n{}\n",
            rules_of(library).name,
            { script[1..].join("\n") }
        );
        text + "----\n" + &printed
    }
}
