//! Random commands of a script about a scheduler with state of CPUs and hctxs: the world `layer`,
//! with the block layer, its tags and its work items around the scheduler
//! (`crates/blkmq/tests/script/layer.rs`).
//!
//! What is printed of the block layer, the requests in their lists, tokens, waiting hctxs and trace
//! events are compared. Its clock has 250 ticks a second.

use super::Commands;
use super::dice::Dice;
use std::fmt::Write;

/// What is known of the script so far.
#[derive(Clone, Debug)]
pub(super) struct LayerCommands {
    scheduler: String,
    dice: Dice,
    cpus: u64,
    hctxs: u64,
    /// Ranges that were submitted lately.
    recent: Vec<(&'static str, u64, u64)>,
    in_device: Vec<String>,
    /// Tasks that sleep.
    sleeping: Vec<u64>,
    weights: [u64; KINDS],
    span: u64,
    /// Commands that follow, the next one last.
    pending: Vec<String>,
    /// Commands that are left.
    left: u64,
    /// Operations of this script.
    ops: &'static [&'static str],
}

/// Commands of a script.
const LENGTH: u64 = 120;

/// Submissions, plugs, work items, completions, clock, series of I/O, the driver, settings.
const KINDS: usize = 8;

impl LayerCommands {
    pub(super) fn new(scheduler: &str, seed: u64) -> LayerCommands {
        LayerCommands {
            scheduler: scheduler.to_owned(),
            dice: Dice(seed),
            cpus: 1,
            hctxs: 1,
            recent: Vec::new(),
            in_device: Vec::new(),
            sleeping: Vec::new(),
            weights: [1; KINDS],
            span: 1,
            pending: Vec::new(),
            left: 0,
            ops: &["r"],
        }
    }

    /// `OP SECTOR+SECTORS [PROPERTY]...`.
    fn request(&mut self) -> String {
        let dice = &mut self.dice;
        let near = match self.recent.len() as u64 {
            0 => None,
            all => (!dice.one_in(3)).then(|| self.recent[dice.below(all) as usize]),
        };
        let sectors = if dice.one_in(5) {
            1 + dice.below(20)
        } else {
            8
        };
        let (op, sector) = match near {
            Some((op, at, of)) if self.ops.contains(&op) => {
                let sector = match dice.below(4) {
                    0 | 1 => at + of,
                    2 => at.saturating_sub(sectors),
                    _ => at + of + sectors,
                };
                (op, sector)
            }
            _ => {
                let at = dice.below(self.ops.len() as u64) as usize;
                (self.ops[at], dice.below(self.span) * 8)
            }
        };
        self.recent.push((op, sector, sectors));
        if self.recent.len() > 12 {
            self.recent.remove(0);
        }
        let mut text = format!("{op} {sector}+{sectors}");
        for (word, rarely) in [
            ("sync", 5),
            ("fua", 40),
            ("preflush", 40),
            ("nomerge", 40),
            ("nowait", 40),
        ] {
            if dice.one_in(rarely) {
                let _ = write!(text, " {word}");
            }
        }
        text
    }

    /// A CPU whose task does not sleep; none if all do.
    fn cpu(&mut self) -> Option<u64> {
        let cpu = self.dice.below(self.cpus);
        (!self.sleeping.contains(&cpu)).then_some(cpu)
    }

    fn submission(&mut self) -> String {
        let Some(cpu) = self.cpu() else {
            return "complete all".to_owned();
        };
        let request = self.request();
        match self.dice.below(8) {
            0 => format!("many {} {request} cpu={cpu}", 2 + self.dice.below(24)),
            _ => format!("bio {request} cpu={cpu}"),
        }
    }

    fn plug(&mut self) -> String {
        match (self.cpu(), self.dice.one_in(2)) {
            (None, _) => "work".to_owned(),
            (Some(cpu), true) => format!("plug {} cpu={cpu}", 1 + self.dice.below(8)),
            (Some(cpu), false) => format!("unplug cpu={cpu}"),
        }
    }

    /// The device completes some; those that wait for their tokens then come.
    fn end(&mut self) -> String {
        if self.dice.one_in(3) {
            self.pending.push("work".to_owned());
        }
        if self.in_device.is_empty() || self.dice.one_in(4) {
            self.in_device.clear();
            return "complete all".to_owned();
        }
        let at = self.dice.below(self.in_device.len() as u64) as usize;
        let name = self.in_device.swap_remove(at);
        match self.dice.one_in(16) {
            true => format!("fail {name}"),
            false => format!("complete {name}"),
        }
    }

    /// I/O one after another, each of some length; or requests that wait before the device has
    /// them.
    fn series(&mut self) -> String {
        let at = self.dice.below(self.ops.len() as u64) as usize;
        let op = self.ops[at];
        let dice = &mut self.dice;
        self.in_device.clear();
        let mut pending = Vec::new();
        match dice.below(9) {
            0..=2 => {
                let waits = [1, 4, 30][dice.below(3) as usize];
                pending.push("stop 0".to_owned());
                for at in 0..=dice.below(3) {
                    pending.push(format!("bio {op} {}+8", at * 100));
                }
                pending.extend([
                    format!("tick {waits}ms"),
                    "start 0".to_owned(),
                    "work".to_owned(),
                    format!("tick {}us", 1 + dice.below(100)),
                    "complete all".to_owned(),
                ]);
                if dice.one_in(2) {
                    pending.extend(evaluation(op));
                }
            }
            3 | 4 => {
                // The device is congested: other domains get fewer tokens.
                pending.push("io 3 r 0+8 after 100us".to_owned());
                pending.push("io 3 w 0+8 after 30ms".to_owned());
                pending.extend(evaluation("r"));
                if dice.one_in(2) {
                    pending.extend(evaluation("w"));
                }
                for cpu in 0..self.cpus.min(1 + dice.below(3)) {
                    pending.push(format!("many 20 r 0+8 cpu={cpu}"));
                }
            }
            _ => {}
        }
        pending.reverse();
        self.pending = pending;
        let (many, short) = (dice.one_in(12), dice.one_in(2));
        let count = 1 + dice.below(if many { 600 } else { 30 });
        let us = 1 + dice.below(if many || short { 300 } else { 30_000 });
        format!("io {count} {op} 0+8 after {us}us")
    }

    fn driver(&mut self) -> String {
        let dice = &mut self.dice;
        match dice.below(10) {
            0 => format!("room {}", dice.below(4)),
            1 | 2 => format!("room {}", 5 + dice.below(200)),
            3 | 4 => {
                let answers = [
                    "requeue",
                    "requeue_dontprep",
                    "resource",
                    "dev_resource",
                    "ok",
                ];
                format!("answer {}", dice.of(&answers))
            }
            5 => format!("stop {}", dice.below(self.hctxs)),
            6 => format!("start {}", dice.below(self.hctxs)),
            7 => dice.of(&["quiesce", "unquiesce", "unquiesce"]).to_owned(),
            8 => "rerun".to_owned(),
            _ => format!("rerun {}", 1 + dice.below(5)),
        }
    }

    /// A target that makes latencies good or bad.
    fn setting(&mut self) -> String {
        let dice = &mut self.dice;
        let name = dice.of(&["read_lat_nsec", "write_lat_nsec"]);
        let value = dice.of(&[
            "0",
            "1",
            "100000",
            "2000000",
            "20000000",
            "10000000000",
            "-1",
        ]);
        format!("{name}={value}")
    }
}

/// What it takes until few samples are evaluated: the timer expires once more a second later.
fn evaluation(op: &str) -> [String; 3] {
    let tick = || "tick 1100ms".to_owned();
    [tick(), format!("io 1 {op} 0+8 after 10us"), tick()]
}

impl Commands for LayerCommands {
    fn begin(&mut self) -> Vec<String> {
        self.recent.clear();
        self.in_device.clear();
        self.sleeping.clear();
        self.pending.clear();
        self.left = LENGTH;
        let dice = &mut self.dice;
        self.weights = [
            dice.below(12) + 4,
            dice.below(4),
            dice.below(10) + 2,
            dice.below(8) + 2,
            dice.below(4) + 1,
            if dice.one_in(4) { 20 } else { dice.below(4) },
            dice.below(3),
            dice.below(3),
        ];
        self.span = 1 << (4 + dice.below(14));
        self.ops = match dice.below(8) {
            0 => &["z"],
            1 => &["d", "z"],
            2 => &["r", "w"],
            3 => &["r"],
            _ => &["r", "r", "r", "w", "w", "w", "d", "z"],
        };
        self.cpus = if dice.one_in(3) { 1 } else { 1 + dice.below(4) };
        self.hctxs = 1 + dice.below(self.cpus);
        let mut line = format!(
            "layer scheduler={} rules= cpus={} hctxs={}",
            self.scheduler, self.cpus, self.hctxs
        );
        let tags = dice.of(&["1", "2", "8", "32", "64", "128"]);
        let nr_requests = dice.of(&["2", "4", "16", "64", "128"]);
        let _ = write!(line, " tags={tags} nr_requests={nr_requests}");
        for word in [
            "lone_plug=never",
            "queue_rqs=1",
            "commit_rqs=1",
            "write_cache=1",
        ] {
            if dice.one_in(3) {
                let _ = write!(line, " {word}");
            }
        }
        for (word, rarely) in [
            ("max_segments=2", 4),
            ("read_hctxs=1", 4),
            ("max_sectors=16", 8),
        ] {
            if dice.one_in(rarely) {
                let _ = write!(line, " {word}");
            }
        }
        let mut script = vec![line];
        for _ in 0..dice.below(3) {
            script.push(format!("set {}", self.setting()));
        }
        script
    }

    fn command(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        if let Some(next) = self.pending.pop() {
            return Some(next);
        }
        Some(match self.dice.weighted(&self.weights) {
            0 => self.submission(),
            1 => self.plug(),
            2 => match self.dice.one_in(4) {
                true => "work timers".to_owned(),
                false => "work".to_owned(),
            },
            3 => self.end(),
            4 => match self.dice.below(4) {
                0 => format!("tick {}us", 1 + self.dice.below(3000)),
                1 => format!("tick {}ms", 1 + self.dice.below(30)),
                2 => "tick 100ms".to_owned(),
                _ => "tick 1100ms".to_owned(),
            },
            5 if self.sleeping.is_empty() => self.series(),
            6 => self.driver(),
            7 => format!("set {}", self.setting()),
            _ => "complete all".to_owned(),
        })
    }

    fn learn(&mut self, _command: &str, printed: &[String]) {
        for line in printed {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["D", op, range, ..] => self.in_device.push(format!("{op} {range}")),
                ["cpu", cpu, "sleeps"] => self.sleeping.extend(cpu.parse::<u64>()),
                ["cpu", cpu, "wakes"] => self.sleeping.retain(|other| other.to_string() != *cpu),
                _ => {}
            }
        }
    }
}

/// The state of a scheduler in C's words (`show.rs`) from what `show scheduler` and `show
/// token_maps` print of blkmq's, in which a list does not have its name: C shows the lists of ctx
/// queues as such.
pub(super) fn state(scheduler: &[String], tokens: &[String]) -> Vec<String> {
    let mut lines = tokens.to_vec();
    let mut hctx = "";
    for line in scheduler {
        let line = line.trim();
        if let Some((name, rest)) = line
            .split_once(": ")
            .filter(|(name, _)| name.starts_with("hctx"))
        {
            hctx = name;
            lines.push(format!("{name}: {rest}"));
        } else if let Some((name, requests)) = line.split_once("):") {
            lines.push(format!("list:{requests}"));
            if let Some((domain, _)) = name.split_once(" rqs ") {
                lines.push(format!("{hctx} {domain}:{requests}"));
            }
        }
    }
    lines
}

/// Lines of the scheduler's trace events, and the others.
pub(super) fn split_events(printed: Vec<String>) -> (Vec<String>, Vec<String>) {
    let domains = ["READ ", "WRITE ", "DISCARD ", "throttled ", "depth "];
    let is_event = |line: &String| domains.iter().any(|word| line.starts_with(word));
    printed.into_iter().partition(is_event)
}
