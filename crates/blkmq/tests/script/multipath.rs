//! Scripts about a multipath target: `multipath rules=v6.1 0 8 multipath 0 0 1 1 round-robin ...`.
//!
//! No queues, no clones: requests are mapped and end, paths fail and are reinstated. Every command
//! checks the target afterwards, and prints its work for the caller.
//!
//! ```text
//! multipath [rules=v6.1] [cpus=4] [nodes=1] [timeout=0] TABLE    a line of dmsetup table; timeout
//!                                     is queue_if_no_path_timeout_secs
//! map [4k] [times=1] [cpu=0]          prints paths, "requeue", "delay" or how it was killed
//! map ... noclone | dying | undone    its path has no tag, or goes away, or the clone is given up
//! end DEVICE [STATUS] [times=1]       the oldest request of a path; prints "done", "done ioerr",
//!                                     "requeue" or "delay"
//! message TEXT                        as dmsetup message; refusals are printed
//! suspend [noflush], suspended, resume
//! work DEVICE                         its activation runs: "activates", or "is offline"
//! init DEVICE RESULT                  it is over: ok, nosys, dev_temp_busy, retry, imm_retry,
//!                                     res_temp_unavail, dev_offlined or io
//! stop, start                         a suspension waits for activations, and has waited
//! expire                              the timer of held requests
//! busy [DEVICE]...                    is the target, if these paths are?
//! status                              as dmsetup status
//! accounts                            what selectors count: "empty" or "in use"
//! wait 2ms                            the clock; otherwise it does not advance
//! ```

use blkmq::dm::multipath::{InitResult, Message, Multipath};
use blkmq::dm::table::Table;
use blkmq::dm::{Ending, Incoming, Mapped, Mapping, PathId};
use blkmq::request::{CpuId, Status};
use blkmq::rules::DeviceMapper;
use blkmq::time::{Duration, SimTime};

use super::World;

/// The target of a script.
pub(crate) struct Target {
    table: Table,
    of: Multipath,
    now: SimTime,
    /// Requests with clones, oldest first, and when those were issued.
    in_flight: Vec<(Mapped, SimTime)>,
}

/// Words and numbers that scripts have for a status.
const STATUSES: [(&str, Status); 12] = [
    ("ok", Status::Ok),
    ("ioerr", Status::IoError),
    ("timeout", Status::Timeout),
    ("again", Status::Again),
    ("notsupp", Status::NotSupported),
    ("resource", Status::Resource),
    ("transport", Status::Transport),
    ("target", Status::Target),
    ("nexus", Status::Nexus),
    ("medium", Status::Medium),
    ("protection", Status::Protection),
    ("nospc", Status::NoSpace),
];

const RESULTS: [(&str, InitResult); 8] = [
    ("ok", InitResult::Ok),
    ("nosys", InitResult::NoHandler),
    ("dev_temp_busy", InitResult::TemporarilyBusy),
    ("retry", InitResult::Retry),
    ("imm_retry", InitResult::RetryAtOnce),
    ("res_temp_unavail", InitResult::Unavailable),
    ("dev_offlined", InitResult::Offlined),
    ("io", InitResult::Failed),
];

impl World for Target {
    fn command(&mut self, line: &str) -> Result<Vec<String>, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let mut lines = match word {
            "map" => self.map(rest)?,
            "end" => self.end(rest)?,
            "message" => match Message::parse(&self.table, rest) {
                Err(what) => vec![what],
                Ok(messages) => {
                    let refused = messages.into_iter().any(|of| !self.of.message(of));
                    let what = format!("{rest}: the device is suspended");
                    Vec::from_iter(refused.then_some(what))
                }
            },
            "suspend" => {
                self.of.suspend(rest == "noflush");
                Vec::new()
            }
            "suspended" => {
                self.of.suspended();
                Vec::new()
            }
            "resume" => {
                self.of.resume();
                Vec::new()
            }
            "work" => match self.of.begin_activation(self.path(rest)?) {
                true => vec![format!("{rest} activates")],
                false => vec![format!("{rest} is offline")],
            },
            "init" => {
                let (device, result) = rest.split_once(' ').ok_or("init DEVICE RESULT")?;
                let result = named(&RESULTS, result)?;
                self.of.init_done(self.path(device)?, result);
                Vec::new()
            }
            "stop" => {
                let waits = self.of.stop_initialising();
                vec![if waits { "waits" } else { "goes on" }.to_owned()]
            }
            "start" => {
                self.of.may_initialise();
                Vec::new()
            }
            "expire" => {
                self.of.timer_expires();
                Vec::new()
            }
            "busy" => self.busy(rest)?,
            "status" => vec![self.of.status(&self.table)],
            "accounts" => {
                let empty = self.of.accounts_are_empty();
                vec![if empty { "empty" } else { "in use" }.to_owned()]
            }
            "wait" => {
                self.now = self.now + span(rest)?;
                Vec::new()
            }
            _ => return Err(format!("unknown command {word:?}")),
        };
        self.of.check();
        self.show_todo(&mut lines);
        Ok(lines)
    }
}

impl Target {
    /// `multipath NAME=VALUE ... TABLE`.
    pub(crate) fn create(line: &str) -> Result<Box<dyn World>, String> {
        let mut rules = DeviceMapper::V6_1;
        let (mut cpus, mut nodes, mut timeout) = (4, 1, 0);
        let mut rest = line.strip_prefix("multipath").unwrap_or(line).trim();
        while let Some((name, value)) = rest
            .split_whitespace()
            .next()
            .and_then(|word| word.split_once('='))
        {
            match name {
                "rules" => {
                    let unknown = format!("unknown rules {value:?}");
                    rules = DeviceMapper::by_name(value).ok_or(unknown)?;
                }
                "cpus" => cpus = number(value)?,
                "nodes" => nodes = number(value)?,
                "timeout" => timeout = number(value)?,
                _ => return Err(format!("unknown property {name:?} of a target")),
            }
            rest = rest[name.len() + 1 + value.len()..].trim();
        }
        let table = Table::parse(rest, &rules, cpus as usize)?;
        let node = |cpu: u64| (cpu * nodes / cpus) as u16;
        let nodes: Vec<u16> = (0..cpus).map(node).collect();
        Ok(Box::new(Target {
            of: Multipath::new(&table, rules, &nodes, timeout),
            table,
            now: SimTime::ZERO,
            in_flight: Vec::new(),
        }))
    }

    fn map(&mut self, text: &str) -> Result<Vec<String>, String> {
        let (mut bytes, mut times, mut cpu, mut fate) = (4096, 1, 0, "");
        for word in text.split_whitespace() {
            match word.split_once('=').unwrap_or((word, "")) {
                ("times", count) => times = number(count)?,
                ("cpu", id) => cpu = number(id)?,
                ("noclone" | "dying" | "undone", "") => fate = word,
                (size, "") => bytes = size_of(size)?,
                _ => return Err(format!("unknown property {word:?} of a request")),
            }
        }
        let io = Incoming {
            bytes: u32::try_from(bytes).map_err(|_| format!("{bytes} bytes are too many"))?,
            cpu: CpuId(cpu as u16),
            now: self.now,
            bio: None,
        };
        let mut answers = Vec::new();
        for _ in 0..times {
            let mapping = self.of.map(io);
            answers.push(match (mapping, fate) {
                (Mapping::To(mapped), "") => {
                    self.of.start(mapped);
                    self.in_flight.push((mapped, self.now));
                    self.device(mapped.path)
                }
                (Mapping::To(mapped), "undone") => {
                    self.of.start(mapped);
                    self.of.undo(mapped, SimTime::ZERO, self.now);
                    format!("{}: given up", self.device(mapped.path))
                }
                (Mapping::To(mapped), fate) => {
                    let mapping = self.of.no_clone(mapped.path, fate == "dying");
                    let mapping = self.show(mapping);
                    format!("{}: {mapping}", self.device(mapped.path))
                }
                (mapping, _) => self.show(mapping),
            });
        }
        Ok(vec![in_a_row(&answers)])
    }

    fn end(&mut self, text: &str) -> Result<Vec<String>, String> {
        let mut words = text.split_whitespace();
        let path = self.path(words.next().unwrap_or_default())?;
        let (mut status, mut times) = (Status::Ok, 1);
        for word in words {
            match word.split_once('=') {
                Some(("times", count)) => times = number(count)?,
                _ => status = named(&STATUSES, word)?,
            }
        }
        let mut answers = Vec::new();
        for _ in 0..times {
            let at = self.in_flight.iter().position(|(of, _)| of.path == path);
            let at = at.ok_or(format!("nothing is in flight on {}", self.device(path)))?;
            let (mapped, started) = self.in_flight.remove(at);
            answers.push(match self.of.end(mapped, status, started, self.now) {
                Ending::Done(Status::Ok) => "done".to_owned(),
                Ending::Done(status) => format!("done {}", word_of(status)),
                Ending::Requeue => "requeue".to_owned(),
                Ending::DelayRequeue => "delay".to_owned(),
            });
        }
        Ok(vec![in_a_row(&answers)])
    }

    fn busy(&self, text: &str) -> Result<Vec<String>, String> {
        let busy: Result<Vec<PathId>, String> = text
            .split_whitespace()
            .map(|name| self.path(name))
            .collect();
        let busy = busy?;
        let answer = self.of.is_busy(|path| busy.contains(&path));
        Ok(vec![if answer { "yes" } else { "no" }.to_owned()])
    }

    /// Work of the target for its caller, and activations to be queued.
    fn show_todo(&mut self, lines: &mut Vec<String>) {
        while let Some((path, ms)) = self.of.take_activation() {
            let device = self.device(path);
            lines.push(match ms {
                0 => format!("queue work of {device}"),
                ms => format!("queue work of {device} after {ms}ms"),
            });
        }
        let todo = self.of.take_todo();
        let mut add = |wanted: bool, text: &str| {
            if wanted {
                lines.push(text.to_owned());
            }
        };
        add(todo.run_queue, "run queue");
        add(todo.kick_list, "kick list");
        add(todo.cancel_timer, "no timer");
        add(todo.wake, "wake");
        if let Some(secs) = todo.arm_timer {
            lines.push(format!("timer in {secs}s"));
        }
    }

    fn show(&self, mapping: Mapping) -> String {
        match mapping {
            Mapping::To(mapped) => self.device(mapped.path),
            Mapping::Requeue => "requeue".to_owned(),
            Mapping::DelayRequeue => "delay".to_owned(),
            Mapping::Held => "held".to_owned(),
            Mapping::Kill(status) => format!("killed {}", word_of(status)),
        }
    }

    fn device(&self, path: PathId) -> String {
        let path = self.table.paths().nth(path.index());
        path.expect("the table has the path").device.clone()
    }

    fn path(&self, device: &str) -> Result<PathId, String> {
        let mut paths = (0..).map(PathId).zip(self.table.paths());
        let path = paths.find(|(_, path)| path.device == device);
        path.map(|(id, _)| id).ok_or(format!("no path {device:?}"))
    }
}

/// `8:0 x3, 8:16`.
fn in_a_row(answers: &[String]) -> String {
    let runs = answers.chunk_by(|a, b| a == b).map(|run| match run.len() {
        1 => run[0].clone(),
        count => format!("{} x{count}", run[0]),
    });
    runs.collect::<Vec<_>>().join(", ")
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Result<T, String> {
    let known = || names.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known = known().join(", ");
        format!("{name:?} is none of {known}")
    })
}

fn word_of(status: Status) -> &'static str {
    let found = STATUSES.iter().find(|(_, of)| *of == status);
    found.expect("each status has a word").0
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}

/// `512`, `4k`, `2g`.
fn size_of(text: &str) -> Result<u64, String> {
    let units = [('k', 10), ('m', 20), ('g', 30)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    match unit {
        Some((letter, shift)) => Ok(number(text.trim_end_matches(*letter))? << shift),
        None => number(text),
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let found = units.iter().find_map(|(unit, ns)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration(number * ns))
    });
    found.ok_or(format!("{text:?} is no span: 2ms"))
}
