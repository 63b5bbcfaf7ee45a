//! Random commands for a scheduler that looks at tasks: streams of I/O with think times, in
//! patterns that its heuristics look for.
//!
//! Not here: single random requests (`generate.rs`).

use super::dice::Dice;
use super::generate::{first_line, setting};
use super::{Commands, is_single};
use blkmq::elevator::Value;
use std::collections::VecDeque;
use std::fmt::Write;

/// A task, its I/O context, and where its stream has got to.
#[derive(Clone, Debug)]
struct Task {
    name: String,
    /// The next sector of its stream.
    at: u64,
    /// Sectors of a request, and of what it leaves out after one.
    sectors: u64,
    gap: u64,
    /// One in so many requests goes elsewhere; 1: all do.
    seeks: u64,
    op: &'static str,
    /// Words after the range.
    words: &'static str,
}

/// Random commands of scripts about tasks.
#[derive(Clone, Debug)]
pub(super) struct TaskCommands {
    scheduler: String,
    /// Attributes of the scheduler with their defaults.
    attributes: Vec<(&'static str, Value)>,
    dice: Dice,
    streams: Streams,
    /// Random commands that are left, and those after them, which leave nothing queued.
    left: u64,
    drain: std::slice::Iter<'static, &'static str>,
}

/// Random commands of a script: what depends on the past needs many.
const LENGTHS: [u64; 5] = [60, 120, 120, 300, 600];
const DRAIN: [&str; 4] = [
    "complete all",
    "serve 600 each=1ms",
    "complete all",
    "has_work",
];

impl TaskCommands {
    pub(super) fn new(
        scheduler: &str,
        attributes: &[(&'static str, Value)],
        seed: u64,
    ) -> TaskCommands {
        TaskCommands {
            scheduler: scheduler.to_owned(),
            attributes: attributes.to_vec(),
            dice: Dice(seed),
            streams: Streams::default(),
            left: 0,
            drain: [].iter(),
        }
    }
}

impl Commands for TaskCommands {
    fn begin(&mut self) -> Vec<String> {
        let dice = &mut self.dice;
        let mut lines = vec![first_line(&self.scheduler, &self.attributes, dice)];
        lines.extend(self.streams.begin(dice, is_single(&self.scheduler)));
        lines[0] += &self.streams.device(dice);
        (self.left, self.drain) = (*dice.one(&LENGTHS), DRAIN.iter());
        lines
    }

    fn command(&mut self) -> Option<String> {
        if self.left == 0 {
            return self.drain.next().map(|&command| command.to_owned());
        }
        self.left -= 1;
        let attributes = &self.attributes;
        let setting = |dice: &mut Dice| setting(attributes, dice);
        Some(self.streams.command(&mut self.dice, setting))
    }

    fn learn(&mut self, command: &str, printed: &[String]) {
        self.streams.learn(command, printed);
    }
}

/// What is known of the queue of a script, its tasks and groups.
#[derive(Clone, Debug, Default)]
struct Streams {
    tasks: Vec<Task>,
    groups: Vec<&'static str>,
    named: u64,
    /// Requests that the device has, as they are printed.
    in_device: VecDeque<String>,
    /// Commands of a pattern that has begun.
    planned: VecDeque<String>,
    /// How often a command of each kind comes, for this script.
    weights: [u64; KINDS],
    /// Sectors that streams are spread over.
    span: u64,
    /// Longest usual pause, us.
    pause_us: u64,
    /// From this sector on, streams are on another actuator, and far enough from the others.
    border: Option<u64>,
    /// The scheduler is of the single-queue path.
    single: bool,
}

/// Submission, dispatch, end, pause, pattern, rare ones.
const KINDS: usize = 6;

/// Sectors between the streams of two actuators: queues that are closer than 8192 may merge.
const HOLE: u64 = 16_384;

const GROUPS: [&str; 5] = ["g", "g/x", "h", "g/x/y", "h/z"];
const PRIOS: [&str; 9] = [
    "rt", "rt/4", "be/0", "be/4", "be/7", "idle", "be/2", "none", "none",
];

impl Streams {
    /// The first commands of a new script after `queue`.
    fn begin(&mut self, dice: &mut Dice, single: bool) -> Vec<String> {
        *self = Streams {
            single,
            ..Streams::default()
        };
        self.weights = [
            dice.below(10) + 3,
            dice.below(10) + 3,
            dice.below(10) + 3,
            dice.below(8) + 1,
            dice.below(4),
            1 + dice.below(3),
        ];
        self.span = 1 << (8 + dice.below(22));
        self.pause_us = 1 << (6 + dice.below(9));
        let mut lines = vec!["log on".to_owned()];
        if dice.one_in(2) {
            for path in &GROUPS[..=dice.below(GROUPS.len() as u64) as usize] {
                let weight = dice.of(&["100", "1", "10", "200", "1000"]);
                lines.push(format!("group {path} weight={weight}"));
                self.groups.push(path);
            }
        }
        for _ in 0..=dice.below(5) {
            lines.push(self.new_task(dice));
        }
        lines
    }

    /// Settings of the first line, of which the last range goes to the end of all disks.
    fn device(&mut self, dice: &mut Dice) -> String {
        let mut text = String::new();
        if dice.one_in(2) {
            text += " rotational=1";
        }
        if self.single {
            let _ = write!(text, " runs={}", dice.below(4));
            return text;
        }
        if !dice.one_in(5) {
            return text;
        }
        let border = self.span * 4;
        match dice.below(8) {
            // More than eight count as one; with three to eight, 6.12 follows a list without a
            // head: bfq_init_queue() makes two of those in active_list[].
            0 => {
                text += " ranges=";
                for at in 0..8 {
                    let _ = write!(text, "{at}-{},", at + 1);
                }
                let _ = write!(text, "8-{}", 1u64 << 40);
            }
            1 => {
                let _ = write!(text, " ranges=0-{}", 1u64 << 40);
            }
            // Streams on both sides meet, and a kernel's mistake ends the script
            // (docs/findings/0003).
            2 => {
                let _ = write!(text, " ranges=0-{border},{border}-{}", 1u64 << 40);
            }
            _ => {
                self.border = Some(border);
                let border = border + HOLE / 2;
                let _ = write!(text, " ranges=0-{border},{border}-{}", 1u64 << 40);
            }
        }
        text
    }

    /// A task with a stream; returns the command that names it.
    fn new_task(&mut self, dice: &mut Dice) -> String {
        self.named += 1;
        let name = format!("t{}", self.named);
        let mut line = format!("task {name}");
        if dice.one_in(3) {
            let _ = write!(line, " prio={}", dice.of(&PRIOS));
        }
        if !self.groups.is_empty() && !dice.one_in(3) {
            let _ = write!(line, " group={}", dice.of(&self.groups));
        }
        // Streams that begin where another one is, or goes, meet.
        let near = match self.tasks.len() as u64 {
            0 => None,
            all => (!dice.one_in(3)).then(|| self.tasks[dice.below(all) as usize].clone()),
        };
        let sectors = 8 << dice.below(7);
        let gap = match dice.below(4) {
            0 | 1 => 0,
            2 => sectors,
            _ => dice.below(64) * 8,
        };
        let at = match near {
            Some(near) => near.at + dice.below(5) * near.sectors,
            None => dice.below(self.span) * 8,
        };
        self.tasks.push(Task {
            name,
            at,
            sectors,
            gap,
            seeks: *dice.one(&[1, 1, 8, 50, 1000]),
            op: dice.of(&["r", "r", "r", "r", "w"]),
            words: dice.of(&["", "", "", "", " sync", " sync noidle", " noidle", " meta"]),
        });
        line
    }

    /// A submission of this task.
    fn submission(&mut self, dice: &mut Dice, of: usize) -> String {
        let span = self.span;
        let task = &mut self.tasks[of];
        if dice.one_in(task.seeks) {
            task.at = dice.below(span) * 8;
        }
        let op = match dice.below(30) {
            0 => dice.of(&["w", "d", "z", "r"]),
            _ => task.op,
        };
        let mut text = format!("submit {op} {}+{}", task.at, task.sectors);
        let words = if op == "r" && task.words.contains("sync") {
            ""
        } else {
            task.words
        };
        let _ = write!(text, " by={}{words}", task.name);
        task.at += task.sectors + task.gap;
        match dice.below(24) {
            0 => {
                let _ = write!(text, " times={}", 2 + dice.below(6));
                let _ = write!(text, " gap={}", task.sectors + task.gap);
                task.at += 3 * (task.sectors + task.gap);
            }
            1 => text = text.replace("submit", "insert"),
            2 => text = text.replace("submit", "insert head"),
            3 => text = text.replace("submit", "bio"),
            4 if !self.groups.is_empty() => {
                let _ = write!(text, " group={}", dice.of(&self.groups));
            }
            // The priority of the process from here on.
            5 if self.single => {
                let _ = write!(text, " prio={}", dice.of(&PRIOS));
            }
            5 if dice.one_in(4) => text += " bare",
            6 if !self.single => text = text.replace("submit", "insert kworker=77"),
            7 if !self.single => text = text.replace("submit", "insert head kworker=78"),
            _ => {}
        }
        text
    }

    fn some_task(&self, dice: &mut Dice) -> usize {
        dice.below(self.tasks.len() as u64) as usize
    }

    fn pause(&self, dice: &mut Dice) -> String {
        match dice.below(60) {
            0 => format!("tick {}ms", 1000 + dice.below(30_000)),
            1 | 2 => format!("tick {}ms", 20 + dice.below(500)),
            3..=5 => format!("wait {}us", 7900 + dice.below(300)),
            6..=8 => format!("wait {}us", dice.below(30_000)),
            9..=11 => format!("wait {}ns", 1 + dice.below(5000)),
            _ => format!("wait {}us", 1 + dice.below(self.pause_us)),
        }
    }

    fn command(
        &mut self,
        dice: &mut Dice,
        setting: impl Fn(&mut Dice) -> Option<String>,
    ) -> String {
        let mut command = self.any_command(dice, setting);
        if self.single {
            command = of_single_queue(&command);
        }
        match (self.border, command.split(' ').next()) {
            (Some(border), Some("submit" | "insert" | "bio" | "depth")) => beyond(border, &command),
            _ => command,
        }
    }

    fn any_command(
        &mut self,
        dice: &mut Dice,
        setting: impl Fn(&mut Dice) -> Option<String>,
    ) -> String {
        if let Some(command) = self.planned.pop_front() {
            return self.expanded(command);
        }
        match dice.weighted(&self.weights) {
            0 => {
                let of = self.some_task(dice);
                self.submission(dice, of)
            }
            1 => match dice.below(6) {
                0 => format!("dispatch {}", 2 + dice.below(6)),
                1 => format!(
                    "serve {} each={}us",
                    1 + dice.below(12),
                    1 + dice.below(3000)
                ),
                _ => "dispatch".to_owned(),
            },
            2 => self.end(dice),
            3 => self.pause(dice),
            4 => {
                self.plan(dice);
                self.any_command(dice, setting)
            }
            _ => self.rare(dice, setting),
        }
    }

    /// `complete` alone in a plan is that of the oldest request in the device.
    fn expanded(&mut self, command: String) -> String {
        if command != "complete" {
            return command;
        }
        match self.in_device.pop_front() {
            Some(name) => format!("complete {name}"),
            None => "has_work".to_owned(),
        }
    }

    /// The device completes a request, or gives it back.
    fn end(&mut self, dice: &mut Dice) -> String {
        if self.in_device.is_empty() || dice.one_in(12) {
            self.in_device.clear();
            return "complete all".to_owned();
        }
        let at = match dice.one_in(3) {
            true => dice.below(self.in_device.len() as u64) as usize,
            false => 0,
        };
        let name = self.in_device.remove(at).expect("it is there");
        match dice.one_in(30) {
            true if self.single => {
                self.planned.push_front(format!("activate {name}"));
                format!("requeue {name}")
            }
            true => format!("requeue {name}"),
            false => format!("complete {name}"),
        }
    }

    /// Commands in a row that one of the scheduler's heuristics looks for.
    fn plan(&mut self, dice: &mut Dice) {
        let (one, other) = (self.some_task(dice), self.some_task(dice));
        let mut plan = Vec::new();
        match dice.below(if self.single { 13 } else { 11 }) {
            11 => self.plan_allocation(dice, &mut plan, one),
            12 => plan.extend(["dispatch held".to_owned(), self.submission(dice, other)]),
            0 => self.plan_burst(dice, &mut plan),
            1 => self.plan_wakes(dice, &mut plan, one, other),
            2 => self.plan_pauses(dice, &mut plan, one),
            3 => self.plan_turns(dice, &mut plan, one, other),
            4 => self.plan_depth(dice, &mut plan, [one, other]),
            5 => self.plan_parting(dice, &mut plan, [one, other]),
            6 => self.plan_exit(dice, &mut plan, one, other),
            7 => self.plan_sparse(dice, &mut plan, one),
            8 => self.plan_wait(dice, &mut plan, one),
            9 => self.plan_gap(dice, &mut plan, one),
            _ => self.plan_long(dice, &mut plan, [one, other]),
        }
        self.planned.extend(plan);
    }

    /// New tasks at once.
    fn plan_burst(&mut self, dice: &mut Dice, plan: &mut Vec<String>) {
        for _ in 0..2 + dice.below(14) {
            let known = self.tasks.len();
            drop(self.new_task(dice));
            plan.push(self.submission(dice, known));
            if dice.one_in(2) {
                plan.push("dispatch".to_owned());
            }
            plan.push(format!("wait {}us", dice.below(15_000)));
        }
        self.tasks.truncate(12);
    }

    /// One request at a time, with a pause: of a player, or of a reader that thinks.
    fn plan_pauses(&mut self, dice: &mut Dice, plan: &mut Vec<String>, of: usize) {
        let longest = *dice.one(&[8_000, 40_000, 400_000]);
        let pause = dice.below(longest);
        for _ in 0..3 + dice.below(8) {
            plan.push(self.submission(dice, of));
            plan.push("dispatch".to_owned());
            plan.push(format!("wait {}us", 1 + dice.below(3000)));
            plan.push("complete".to_owned());
            plan.push(format!("wait {}us", 1 + pause));
        }
    }

    /// Many requests in the device at once.
    fn plan_depth(&mut self, dice: &mut Dice, plan: &mut Vec<String>, tasks: [usize; 2]) {
        for _ in 0..3 + dice.below(10) {
            let of = *dice.one(&tasks);
            plan.push(self.submission(dice, of));
        }
        plan.push(format!("dispatch {}", 2 + dice.below(12)));
        for _ in 0..dice.below(8) {
            plan.push(format!("wait {}us", 1 + dice.below(600)));
            plan.push("complete".to_owned());
            plan.push("dispatch".to_owned());
        }
    }

    /// A shared stream ends: both tasks seek, are slow, and part.
    fn plan_parting(&mut self, dice: &mut Dice, plan: &mut Vec<String>, tasks: [usize; 2]) {
        self.plan_turns(dice, plan, tasks[0], tasks[1]);
        for turn in 0..20 + dice.below(40) {
            let name = &self.tasks[tasks[turn as usize % 2]].name;
            let at = dice.below(self.span) * 8;
            plan.push(format!("submit r {at}+8 by={name}"));
            if dice.one_in(3) {
                plan.push(format!("serve 2 each={}us", 1 + dice.below(2000)));
            }
            if dice.one_in(12) {
                plan.push(format!("tick {}ms", 1 + dice.below(6000)));
            }
        }
    }

    /// A task that others wake, or that wakes others, exits.
    fn plan_exit(&mut self, dice: &mut Dice, plan: &mut Vec<String>, one: usize, other: usize) {
        self.plan_wakes(dice, plan, one, other);
        if dice.one_in(2) {
            let third = self.some_task(dice);
            self.plan_wakes(dice, plan, third, other);
        }
        if dice.one_in(2) {
            self.plan_turns(dice, plan, one, other);
        }
        if self.tasks.len() > 2 && dice.one_in(2) {
            plan.push(format!("exit {}", self.tasks.swap_remove(one).name));
        }
    }

    /// A request is set up, and inserted later or never.
    fn plan_allocation(&mut self, dice: &mut Dice, plan: &mut Vec<String>, of: usize) {
        let task = &self.tasks[of];
        let name = format!("r {}+{} by={}", task.at, task.sectors, task.name);
        plan.push(format!("alloc {name}"));
        for _ in 0..dice.below(3) {
            let other = self.some_task(dice);
            plan.push(self.submission(dice, other));
            plan.push(format!("serve 1 each={}us", 1 + dice.below(900)));
        }
        let end = dice.of(&["add", "add", "free"]);
        plan.push(format!("{end} {name}"));
    }

    /// Little I/O at long intervals, then much.
    fn plan_sparse(&mut self, dice: &mut Dice, plan: &mut Vec<String>, of: usize) {
        for _ in 0..2 + dice.below(6) {
            plan.push(self.submission(dice, of));
            plan.push(format!("serve 1 each={}us", 1 + dice.below(900)));
            plan.push(format!("tick {}ms", 20 + dice.below(900)));
        }
        for _ in 0..dice.below(30) {
            let at = dice.below(self.span) * 8;
            let name = &self.tasks[of].name;
            plan.push(format!("submit r {at}+8 by={name}"));
            plan.push(format!("serve 1 each={}us", 1 + dice.below(9000)));
        }
    }

    /// The device waits for a task, which submits little; then the wait ends.
    fn plan_wait(&mut self, dice: &mut Dice, plan: &mut Vec<String>, of: usize) {
        for _ in 0..2 + dice.below(4) {
            plan.push(self.submission(dice, of));
            plan.push("dispatch".to_owned());
            plan.push(format!("wait {}us", 1 + dice.below(900)));
            plan.push("complete".to_owned());
            plan.push(format!("wait {}us", 1 + dice.below(3000)));
            let task = &self.tasks[of];
            plan.push(format!("submit r {}+8 by={}", task.at, task.name));
            plan.push(format!("wait {}us", dice.one(&[100, 3000, 8100])));
            plan.push("dispatch".to_owned());
            plan.push("complete".to_owned());
        }
    }

    /// What lies between two requests comes last, or what lies before them.
    fn plan_gap(&mut self, dice: &mut Dice, plan: &mut Vec<String>, of: usize) {
        let (name, sectors) = (self.tasks[of].name.clone(), self.tasks[of].sectors);
        let first = self.tasks[of].at + sectors;
        let orders = [[0, 2, 1], [2, 1, 0], [1, 0, 2], [2, 0, 1]];
        for part in dice.one(&orders) {
            let at = first + part * sectors;
            plan.push(format!("submit r {at}+{sectors} by={name}"));
            if dice.one_in(4) {
                plan.push("dispatch".to_owned());
            }
        }
    }

    /// Both tasks submit much, and are served for long.
    fn plan_long(&mut self, dice: &mut Dice, plan: &mut Vec<String>, tasks: [usize; 2]) {
        for _ in 0..2 + dice.below(5) {
            for of in tasks {
                for _ in 0..dice.below(6) {
                    plan.push(self.submission(dice, of));
                }
            }
            let (calls, each) = (4 + dice.below(24), 1 + dice.below(6000));
            plan.push(format!("serve {calls} each={each}us"));
        }
    }

    /// Each of two tasks begins shortly after a request of the other one has ended.
    fn plan_wakes(&mut self, dice: &mut Dice, plan: &mut Vec<String>, one: usize, other: usize) {
        for _ in 0..3 + dice.below(4) {
            for of in [one, other] {
                plan.push(self.submission(dice, of));
                plan.push("dispatch".to_owned());
                plan.push(format!("wait {}us", 1 + dice.below(2000)));
                plan.push("complete".to_owned());
                plan.push(format!("wait {}us", 1 + dice.below(900)));
            }
        }
    }

    /// Two tasks read one stream in turns.
    fn plan_turns(&mut self, dice: &mut Dice, plan: &mut Vec<String>, one: usize, other: usize) {
        let sectors = 8 << dice.below(6);
        let mut at = dice.below(self.span) * 8;
        for _ in 0..3 + dice.below(8) {
            for of in [one, other] {
                let name = &self.tasks[of].name;
                plan.push(format!("submit r {at}+{sectors} by={name}"));
                at += sectors + 8 * dice.below(2);
            }
            plan.push("dispatch".to_owned());
            plan.push(format!("wait {}us", 1 + dice.below(2000)));
            plan.push("complete".to_owned());
            if dice.one_in(2) {
                plan.push("dispatch".to_owned());
            }
        }
    }

    fn rare(&mut self, dice: &mut Dice, setting: impl Fn(&mut Dice) -> Option<String>) -> String {
        let of = self.some_task(dice);
        match dice.below(16) {
            0 if self.tasks.len() > 2 => format!("exit {}", self.tasks.swap_remove(of).name),
            1 | 2 if !self.groups.is_empty() => {
                format!("move {} {}", self.tasks[of].name, dice.of(&self.groups))
            }
            3 | 4 => match setting(dice) {
                Some(pair) => format!("set {pair}"),
                None => "has_work".to_owned(),
            },
            5 => format!("rotational {}", dice.below(2)),
            6 => format!("nr_requests {}", 4 + dice.below(200)),
            7..=9 => {
                let request = self.submission(dice, of);
                let request = request
                    .replace("insert head", "submit")
                    .replace("insert", "submit");
                let request = request.replace("bio", "submit").replace(" bare", "");
                let request = request
                    .replace(" kworker=77", "")
                    .replace(" kworker=78", "");
                request.replace("submit", "depth")
            }
            10 if self.single => "force".to_owned(),
            10 => "has_work".to_owned(),
            11 => {
                let text = self.new_task(dice);
                drop(text);
                self.submission(dice, self.tasks.len() - 1)
            }
            _ => format!(
                "serve {} each={}us",
                1 + dice.below(40),
                1 + dice.below(5000)
            ),
        }
    }

    /// Takes in what the last command printed.
    fn learn(&mut self, command: &str, printed: &[String]) {
        if command.starts_with("serve") {
            return;
        }
        for line in printed {
            if let Some(name) = line.strip_prefix("D ") {
                if command == "dispatch held" {
                    self.planned.push_back(format!("activate {name}"));
                }
                self.in_device.push_back(name.to_owned());
            }
        }
    }
}

/// The command as the single-queue path has it: no insertion passes the scheduler by, and a task
/// may allocate or not.
fn of_single_queue(command: &str) -> String {
    let command = command.replace("insert head", "insert");
    command.replace(" bare", "").replace("depth ", "may ")
}

/// The command with its ranges from `border` on moved up.
fn beyond(border: u64, command: &str) -> String {
    let moved = command.split(' ').map(|word| {
        let range = word.split_once('+');
        let sector = range.and_then(|(sector, rest)| Some((sector.parse::<u64>().ok()?, rest)));
        match sector {
            Some((sector, rest)) if sector >= border => format!("{}+{rest}", sector + HOLE),
            _ => word.to_owned(),
        }
    });
    moved.collect::<Vec<_>>().join(" ")
}
