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
//! state                               flags, path and groups in use, the last uevent
//! worker                              queue_mode bio (6.1): its worker maps the bios that are held
//! table TABLE                         as dmsetup table prints another one, or why it is refused
//! wait 2ms                            the clock; otherwise it does not advance
//! ```

use blkmq::dm::multipath::{Answer, Ask, Flag, InitResult, Message, Multipath, Uevent};
use blkmq::dm::table::{QueueMode, Table, bare_name};
use blkmq::dm::{Ending, Incoming, Mapped, Mapping, PathId};
use blkmq::request::{BioId, CpuId, Status};
use blkmq::rules::{BioMap, DeviceMapper};
use blkmq::time::{Duration, SimTime};
use std::collections::VecDeque;

use super::World;

/// The target of a script.
pub(crate) struct Target {
    table: Table,
    rules: DeviceMapper,
    cpus: usize,
    of: Multipath,
    now: SimTime,
    /// What has a clone, oldest first.
    in_flight: Vec<InFlight>,
    /// Bytes of each bio, of a bio-based target.
    bios: Vec<u32>,
    /// Until it is shown.
    uevent: Option<Uevent>,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    mapped: Mapped,
    /// When the clone was issued.
    since: SimTime,
    bio: Option<BioId>,
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

const FLAGS: [(&str, Flag); 6] = [
    ("queue_io", Flag::QueueIo),
    ("queue_if_no_path", Flag::QueueIfNoPath),
    ("saved", Flag::SavedQueueIfNoPath),
    ("disabled", Flag::InitDisabled),
    ("required", Flag::InitRequired),
    ("delay_retry", Flag::InitDelayRetry),
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
            "state" => self.state(),
            "worker" => self.worker(),
            "table" => vec![match Table::parse(rest, &self.rules, self.cpus) {
                Ok(table) => table.to_string(),
                Err(reason) => reason,
            }],
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
        if table.queue_mode == QueueMode::Bio && rules.bio_map != BioMap::UnderLock {
            return Err("scripts have bios of 6.1 and later".to_owned());
        }
        let node = |cpu: u64| (cpu * nodes / cpus) as u16;
        let nodes: Vec<u16> = (0..cpus).map(node).collect();
        Ok(Box::new(Target {
            of: Multipath::new(&table, rules, &nodes, timeout),
            table,
            rules,
            cpus: cpus as usize,
            now: SimTime::ZERO,
            in_flight: Vec::new(),
            bios: Vec::new(),
            uevent: None,
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
        let mut io = Incoming {
            bytes: u32::try_from(bytes).map_err(|_| format!("{bytes} bytes are too many"))?,
            cpu: CpuId(cpu as u16),
            now: self.now,
            bio: None,
        };
        let mut answers = Vec::new();
        for _ in 0..times {
            if self.table.queue_mode == QueueMode::Bio {
                io.bio = Some(BioId(self.bios.len() as u32));
                self.bios.push(io.bytes);
            }
            let mapping = self.of.map(io);
            answers.push(match (mapping, fate) {
                (Mapping::To(mapped), "") => self.issue(mapped, io.bio),
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

    /// Returns the device.
    fn issue(&mut self, mapped: Mapped, bio: Option<BioId>) -> String {
        self.of.start(mapped);
        self.in_flight.push(InFlight {
            mapped,
            since: self.now,
            bio,
        });
        self.device(mapped.path)
    }

    /// process_queued_bios(): what becomes of each bio that is not held again.
    fn worker(&mut self) -> Vec<String> {
        let mut list = VecDeque::new();
        self.of.take_held(&mut list);
        let mut answers = Vec::new();
        for bio in list {
            let mapping = self.of.map(Incoming {
                bytes: self.bios[bio.0 as usize],
                cpu: CpuId(0),
                now: self.now,
                bio: Some(bio),
            });
            answers.extend(match mapping {
                Mapping::To(mapped) => Some(self.issue(mapped, Some(bio))),
                Mapping::Held => None,
                mapping => Some(self.show(mapping)),
            });
        }
        Vec::from_iter((!answers.is_empty()).then(|| in_a_row(&answers)))
    }

    /// multipath_end_io_bio() of 6.1, whose steps are in path/bio_end.rs.
    fn end_bio(&mut self, of: InFlight, bio: BioId, status: Status) -> String {
        let answer = if self.of.is_path_error(status) {
            self.of.fail(of.mapped.path);
            if self.of.valid_paths() > 0 || self.of.queues_if_no_path() {
                self.of.hold(bio);
                "held".to_owned()
            } else if self.of.must_defer() {
                "requeue".to_owned()
            } else {
                ended(Status::IoError)
            }
        } else {
            ended(status)
        };
        self.of.account_end(of.mapped, of.since, self.now);
        answer
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
            let mut in_flight = self.in_flight.iter();
            let at = in_flight.position(|of| of.mapped.path == path);
            let at = at.ok_or(format!("nothing is in flight on {}", self.device(path)))?;
            let of = self.in_flight.remove(at);
            answers.push(match of.bio {
                Some(bio) => self.end_bio(of, bio, status),
                None => match self.of.end(of.mapped, status, of.since, self.now) {
                    Ending::Done(status) => ended(status),
                    Ending::Requeue => "requeue".to_owned(),
                    Ending::DelayRequeue => "delay".to_owned(),
                },
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
        add(todo.call_worker, "call worker");
        add(todo.cancel_timer, "no timer");
        add(todo.wake, "wake");
        if let Some(secs) = todo.arm_timer {
            lines.push(format!("timer in {secs}s"));
        }
        self.uevent = todo.uevent.or(self.uevent);
    }

    fn state(&mut self) -> Vec<String> {
        let io = Incoming {
            bytes: 0,
            cpu: CpuId(0),
            now: self.now,
            bio: None,
        };
        let mut flags = "flags:".to_owned();
        for (name, flag) in FLAGS {
            if self.of.answer(Ask::Flag(flag), io) == Answer::Is(true) {
                flags = flags + " " + name;
            }
        }
        let current = match self.of.answer(Ask::CurrentPath, io) {
            Answer::Path(Some(path)) => self.device(path),
            _ => "-".to_owned(),
        };
        let [of, next] = [Ask::CurrentGroup, Ask::NextGroup].map(|ask| {
            let group = match self.of.answer(ask, io) {
                Answer::Group(group) => group,
                _ => None,
            };
            group.map_or(0, |group| group.0 + 1)
        });
        let valid = self.of.valid_paths();
        let activates = if self.of.is_activating() {
            ", activating"
        } else {
            ""
        };
        let mut lines = vec![
            flags,
            format!("current: {current} of {of}, next {next}, valid {valid}{activates}"),
        ];
        lines.extend(self.uevent.take().map(|uevent| {
            let (what, path) = match uevent {
                Uevent::PathFailed(path) => ("failed", path),
                Uevent::PathReinstated(path) => ("reinstated", path),
            };
            format!("uevent: {what} {}", bare_name(&self.device(path)))
        }));
        lines
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

fn ended(status: Status) -> String {
    match status {
        Status::Ok => "done".to_owned(),
        status => format!("done {}", word_of(status)),
    }
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
