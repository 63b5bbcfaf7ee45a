//! Random commands of a script, chosen so that they meet: addresses close to those in use, requests
//! that the device has, clocks that pass expiries.

use super::Commands;
use super::dice::Dice;
use blkmq::elevator::Value;
use std::fmt::Write;

/// What is known of the queue of the script so far.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    scheduler: String,
    /// Attributes of the scheduler with their defaults.
    attributes: Vec<(&'static str, Value)>,
    dice: Dice,
    /// Ranges that were submitted lately: operation, first sector, sectors.
    recent: Vec<(&'static str, u64, u64)>,
    /// Requests that the device has, as they are printed.
    in_device: Vec<String>,
    /// How often a command of each kind comes, for this script.
    weights: [u64; KINDS],
    /// Sectors that new ranges come from.
    span: u64,
    prios: bool,
    /// Random commands that are left.
    left: u64,
}

/// Random commands of a script.
const LENGTH: u64 = 120;

/// Submissions, dispatches, ends, clock, settings, questions.
const KINDS: usize = 6;

impl Generator {
    pub(super) fn new(
        scheduler: &str,
        attributes: &[(&'static str, Value)],
        seed: u64,
    ) -> Generator {
        Generator {
            scheduler: scheduler.to_owned(),
            attributes: attributes.to_vec(),
            dice: Dice(seed),
            recent: Vec::new(),
            in_device: Vec::new(),
            weights: [1; KINDS],
            span: 1,
            prios: false,
            left: 0,
        }
    }

    /// `OP SECTOR+SECTORS [PROPERTY]...`.
    fn request(&mut self) -> String {
        let dice = &mut self.dice;
        let near = match self.recent.len() as u64 {
            0 => None,
            all => (!dice.one_in(3)).then(|| self.recent[dice.below(all) as usize]),
        };
        let sectors = match dice.below(10) {
            0 => 1,
            1 => 16,
            2 => 1 + dice.below(40),
            _ => 8,
        };
        let (op, sector) = match near {
            Some((op, at, of)) => {
                let sector = match dice.below(8) {
                    0..=3 => at + of,
                    4 | 5 => at.saturating_sub(sectors),
                    6 => at,
                    _ => at + of + sectors,
                };
                (op, sector)
            }
            None => {
                let op = match dice.below(16) {
                    0 => "d",
                    1 => "z",
                    2..=7 => "w",
                    _ => "r",
                };
                (op, dice.below(self.span) * 8)
            }
        };
        self.recent.push((op, sector, sectors));
        if self.recent.len() > 12 {
            self.recent.remove(0);
        }
        let mut text = format!("{op} {sector}+{sectors}");
        if self.prios && dice.one_in(3) {
            let _ = write!(text, " prio={}", dice.of(&["rt", "be/4", "idle", "be"]));
        }
        for (word, rarely) in [
            ("sync", 6),
            ("fua", 40),
            ("nomerge", 40),
            ("meta", 30),
            ("segments=3", 25),
        ] {
            if dice.one_in(rarely) {
                let _ = write!(text, " {word}");
            }
        }
        text
    }

    fn submission(&mut self) -> String {
        let request = self.request();
        match self.dice.below(12) {
            0 => format!("insert head {request}"),
            1 => format!("bio {request}"),
            2 | 3 => {
                let other = self.request();
                format!("insert {request}, {other}")
            }
            4 | 5 => format!("insert {request}"),
            6 => format!("insert {request} times={} gap=8", 2 + self.dice.below(6)),
            _ => format!("submit {request}"),
        }
    }

    /// The device completes a request, or gives it back.
    fn end(&mut self) -> String {
        if self.in_device.is_empty() || self.dice.one_in(12) {
            self.in_device.clear();
            return "complete all".to_owned();
        }
        let at = self.dice.below(self.in_device.len() as u64) as usize;
        let name = self.in_device.swap_remove(at);
        match self.dice.one_in(10) {
            true => format!("requeue {name}"),
            false => format!("complete {name}"),
        }
    }
}

impl Commands for Generator {
    fn begin(&mut self) -> Vec<String> {
        self.recent.clear();
        self.in_device.clear();
        self.left = LENGTH;
        let dice = &mut self.dice;
        self.weights = [
            dice.below(12) + 3,
            dice.below(12) + 2,
            dice.below(8) + 1,
            dice.below(4) + 1,
            dice.below(2),
            dice.below(2) + 1,
        ];
        self.span = 1 << (6 + dice.below(14));
        self.prios = dice.one_in(2);
        vec![first_line(&self.scheduler, &self.attributes, dice)]
    }

    fn command(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        Some(match self.dice.weighted(&self.weights) {
            0 => self.submission(),
            1 => match self.dice.below(8) {
                0 => format!("dispatch {}", 2 + self.dice.below(6)),
                1 => format!("dispatch waited={}ms", self.dice.below(50)),
                _ => "dispatch".to_owned(),
            },
            2 => self.end(),
            3 => match self.dice.below(6) {
                0 => format!("tick {}ms", 100 + self.dice.below(12_000)),
                1 | 2 => format!("tick {}ms", 1 + self.dice.below(20)),
                _ => format!("wait {}us", self.dice.below(3000)),
            },
            4 => match setting(&self.attributes, &mut self.dice) {
                Some(pair) => format!("set {pair}"),
                None => "has_work".to_owned(),
            },
            _ => match self.dice.below(6) {
                0 => format!("nr_requests {}", 4 + self.dice.below(200)),
                1 => "has_work".to_owned(),
                2 if !self.attributes.is_empty() => {
                    let at = self.dice.below(self.attributes.len() as u64);
                    format!("show {}", self.attributes[at as usize].0)
                }
                _ => format!("depth {}", self.request()),
            },
        })
    }

    fn learn(&mut self, _command: &str, printed: &[String]) {
        for line in printed {
            if let Some(name) = line.strip_prefix("D ") {
                let name = name.split("    ").next().unwrap_or(name);
                self.in_device.push(name.to_owned());
            }
        }
    }
}

/// The first command of a script; values of `rules=` and `hz=` are the sides' own.
pub(super) fn first_line(
    scheduler: &str,
    attributes: &[(&'static str, Value)],
    dice: &mut Dice,
) -> String {
    let nr_requests = dice.of(&["64", "8", "3", "256"]);
    let mut line = format!("queue scheduler={scheduler} rules= hz= nr_requests={nr_requests}");
    for _ in 0..dice.below(4) {
        if let Some(pair) = setting(attributes, dice) {
            let _ = write!(line, " {pair}");
        }
    }
    line
}

/// `NAME=VALUE` of an attribute, a limit or nomerges.
pub(super) fn setting(attributes: &[(&'static str, Value)], dice: &mut Dice) -> Option<String> {
    if dice.one_in(4) {
        let limits: [(&str, &[&str]); 5] = [
            ("max_sectors", &["16", "64", "2560"]),
            ("max_segments", &["2", "5", "128"]),
            ("chunk_sectors", &["0", "32"]),
            ("max_discard_segments", &["1", "4", "256"]),
            ("nomerges", &["0", "0", "1", "2"]),
        ];
        let (name, values) = limits[dice.below(5) as usize];
        return Some(format!("{name}={}", dice.of(values)));
    }
    let count = attributes.len() as u64;
    let (name, default) = *attributes.get(dice.below(count.max(1)) as usize)?;
    let value = match dice.below(8) {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => default / 8,
        5 => default / 2,
        6 => default,
        _ => 2 * default,
    };
    Some(format!("{name}={value}"))
}
