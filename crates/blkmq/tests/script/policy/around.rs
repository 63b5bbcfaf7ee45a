//! The surroundings of the scheduler of a script: the clock, its timer, its log, its submitters.
//!
//! Not here: requests and the device (`policy.rs`).

use blkmq::elevator::{
    Now, Scheduler, SchedulerKind, Submitter, SubmitterGroup, Submitters, TRACED, TimerAsk,
    TimerContext,
};
use blkmq::request::{IoClass, IoContextId, IoPrio};
use blkmq::time::{Duration, SimTime};

use super::parse::{parse_number, parse_prio};

/// Clock, timer, log, names of tasks.
pub(super) struct Around {
    pub(super) time: SimTime,
    pub(super) hz: u32,
    kind: SchedulerKind,
    timer: Option<(SimTime, u8)>,
    /// Lines of the log that contain one of these are printed.
    pub(super) listen_for: Vec<String>,
    printed: Vec<String>,
    /// Names of tasks by I/O context; number 0 belongs to no task.
    tasks: Vec<String>,
    /// Further names of those that several tasks have.
    shared: Vec<(String, IoContextId)>,
    pub(super) submitters: Submitters,
    /// Groups of tasks; others are in the root.
    groups: Vec<(IoContextId, u16)>,
}

impl Around {
    pub(super) fn new(hz: u32, kind: SchedulerKind) -> Around {
        Around {
            time: SimTime::ZERO,
            hz,
            kind,
            timer: None,
            listen_for: Vec::new(),
            printed: Vec::new(),
            tasks: vec![String::new()],
            shared: Vec::new(),
            submitters: Submitters::default(),
            groups: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> Now {
        let tick = self.time.jiffies(self.hz);
        Now {
            time: self.time,
            tick,
            kept: false,
        }
    }

    /// Takes the results of a call: lines, and the request to set its timer.
    pub(super) fn after_call(&mut self, policy: &mut dyn Scheduler) {
        match policy.take_timer() {
            Some(TimerAsk::Arm { timer, after }) => {
                let info = self.kind.info().expect("scripts are about a scheduler");
                let due = match info.timers[usize::from(timer)].context {
                    // At the tick at which jiffies reach it.
                    TimerContext::Softirq => self.time.tick_after(after, self.hz),
                    TimerContext::Hardirq => self.time + after,
                };
                self.timer = Some((due, timer));
            }
            Some(TimerAsk::Cancel { .. }) => self.timer = None,
            None => {}
        }
        policy.take_log(&mut |line| self.hear(line));
    }

    /// A line of the scheduler's log.
    pub(super) fn hear(&mut self, line: &str) {
        let mut words = self.listen_for.iter();
        if line != TRACED && words.any(|word| line.contains(word.as_str())) {
            self.printed.push(format!("  {line}"));
        }
    }

    /// A line of the script, after those of the log so far.
    pub(super) fn print(&mut self, line: String) {
        self.printed.push(line);
    }

    pub(super) fn take_printed(&mut self) -> Vec<String> {
        core::mem::take(&mut self.printed)
    }

    /// When the timer that is armed expires.
    pub(super) fn expiry(&self) -> Option<SimTime> {
        self.timer.map(|(at, _)| at)
    }

    /// The timer that expires by then, if one does; the clock is at its expiry.
    pub(super) fn take_expired(&mut self, by: SimTime) -> Option<u8> {
        let (at, timer) = self.timer.filter(|&(at, _)| at <= by)?;
        self.timer = None;
        self.time = at;
        Some(timer)
    }

    /// The I/O context of a task by its name, a new one for a new name.
    pub(super) fn task(&mut self, name: &str) -> IoContextId {
        if let Some((_, shared)) = self.shared.iter().find(|(known, _)| known == name) {
            return *shared;
        }
        let at = self.tasks.iter().position(|known| known == name);
        let at = at.unwrap_or_else(|| {
            self.tasks.push(name.to_owned());
            self.tasks.len() - 1
        });
        IoContextId(at as u32)
    }

    /// `by=NAME`, nothing without a task.
    pub(super) fn name_of(&self, io_context: IoContextId) -> String {
        match io_context {
            IoContextId(0) => String::new(),
            IoContextId(at) => format!(" by={}", self.tasks[at as usize]),
        }
    }

    /// `group PATH [weight=N]`.
    pub(super) fn add_group(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.split_whitespace();
        let path = words.next().ok_or("a group has a path")?.to_owned();
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let parent = self.group(parent)?;
        let mut weight = 100;
        for word in words {
            let value = word.strip_prefix("weight=");
            weight = parse_number(value.ok_or(format!("unknown property {word:?} of a group"))?)?;
        }
        self.submitters.groups.push(SubmitterGroup {
            path,
            parent,
            weight,
        });
        Ok(())
    }

    pub(super) fn group(&self, path: &str) -> Result<u16, String> {
        let at = self.submitters.groups.iter().position(|g| g.path == path);
        at.map(|at| at as u16)
            .ok_or(format!("there is no group {path:?}"))
    }

    /// `task NAME [prio=CLASS/LEVEL] [group=PATH] [pid=N]`.
    pub(super) fn add_task(&mut self, rest: &str) -> Result<(), String> {
        if let Some((name, other)) = rest.split_once(" shares=") {
            let shared = self.task(other.trim());
            self.shared.push((name.trim().to_owned(), shared));
            return Ok(());
        }
        let mut words = rest.split_whitespace();
        let id = self.task(words.next().ok_or("a task has a name")?);
        let normal = |pid| Submitter {
            pid,
            ioprio: IoPrio::default(),
            nice: IoPrio {
                class: IoClass::BestEffort,
                level: 4,
            },
        };
        for at in self.submitters.tasks.len()..=id.0 as usize {
            self.submitters.tasks.push(normal(at as i32));
        }
        let mut task = normal(id.0 as i32);
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("prio", prio) => task.ioprio = parse_prio(prio)?,
                ("group", path) => self.move_to(id, self.group(path)?),
                ("pid", pid) => task.pid = parse_number(pid)?,
                _ => return Err(format!("unknown property {word:?} of a task")),
            }
        }
        self.submitters.tasks[id.0 as usize] = task;
        Ok(())
    }
}

impl Around {
    /// `move NAME GROUP`: its bios are of that group from here on.
    pub(super) fn move_task(&mut self, rest: &str) -> Result<(), String> {
        let (name, path) = rest.split_once(' ').ok_or("move NAME GROUP")?;
        let (task, group) = (self.task(name), self.group(path.trim())?);
        self.move_to(task, group);
        Ok(())
    }

    fn move_to(&mut self, task: IoContextId, group: u16) {
        self.groups.retain(|&(known, _)| known != task);
        self.groups.push((task, group));
    }

    pub(super) fn group_of(&self, task: IoContextId) -> u16 {
        let known = self.groups.iter().find(|&&(known, _)| known == task);
        known.map_or(0, |&(_, group)| group)
    }
}

/// `20ms`, `8us`, `5ns`, `2s`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1),
        ("us", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let found = units
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)));
    let (number, ns) = found.ok_or(format!("{text:?} is not a time in ns, us, ms or s"))?;
    Ok(Duration(parse_number::<u64>(number)? * ns))
}
