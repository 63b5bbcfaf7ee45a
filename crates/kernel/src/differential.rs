//! Two schedulers on the same random operations: the first difference, as the shortest script that
//! shows it.
//!
//! Both sides carry out the commands of scripts (`crates/blkmq/tests/script/policy.rs`); what they
//! print and what state they show must be alike after every command. Not here: which commands
//! (`generate.rs`).

mod dice;
mod flush;
mod generate;
mod layer;
mod multipath;
mod part;
mod rbtree;
mod sbitmap;
mod shrink;
mod sides;
mod streams;

use crate::library::Library;
use crate::policy::DISCARD_LEFT_QUEUED;
use crate::script::World;
use crate::script::layer::Layer;
use crate::script::policy::PolicyQueue;
use blkmq::elevator::{Fault, RequestPath, SchedulerKind, SchedulerSettings, Value};
use blkmq::rules::Rules;
use generate::Generator;
use layer::LayerCommands;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use streams::TaskCommands;

/// One of the two schedulers that are compared.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name in reports: `blkmq`, or a file and its kernel.
    pub name: String,
    /// `rules=` of its scripts.
    pub rules: &'static str,
    /// Its scheduler; none: blkmq's own.
    pub scheduler: Option<SchedulerSettings>,
}

/// What to compare.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Name of the scheduler that both sides have.
    pub scheduler: String,
    /// Ticks a second.
    pub hz: u32,
    /// Decisions alone are compared: what is printed, without state and messages.
    pub decisions: bool,
    /// Both sides; scripts expect what the second one prints.
    pub sides: [Side; 2],
}

/// What scripts remark after a dispatch by blkmq's mq-deadline; the state shows it, too.
const REMARK: &str = "    starved=0";

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Commands that both sides carried out.
    pub operations: u64,
    /// How many scripts ended before their last command, by the reason: a known deviation of
    /// blkmq, or an error of both.
    pub ended: BTreeMap<String, u64>,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// A comparison of a part of the kernel on random commands of this seed, so many of them: C of one
/// library beside blkmq's, or of two libraries beside each other.
pub type OfPart = fn(&[Arc<Library>], u64, u64) -> Outcome;

/// lib/sbitmap.c beside blkmq's.
pub fn sbitmap(libraries: &[Arc<Library>], seed: u64, operations: u64) -> Outcome {
    part::compare::<sbitmap::Map>(libraries, seed, operations)
}

/// lib/rbtree.c beside blkmq's.
pub fn rbtree(libraries: &[Arc<Library>], seed: u64, operations: u64) -> Outcome {
    part::compare::<rbtree::Tree>(libraries, seed, operations)
}

/// block/blk-flush.c beside blkmq's, or beside that of another tree.
pub fn flush(libraries: &[Arc<Library>], seed: u64, operations: u64) -> Outcome {
    part::compare::<flush::Machines>(libraries, seed, operations)
}

/// drivers/md/dm-mpath.c with its selectors beside blkmq's, or beside those of another tree.
pub fn multipath(libraries: &[Arc<Library>], seed: u64, operations: u64) -> Outcome {
    part::compare::<multipath::Targets>(libraries, seed, operations)
}

/// The first difference of two schedulers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// A script that shows it, and expects what the second side prints.
    pub script: String,
    /// What each side prints or shows at the last command.
    pub printed: [Vec<String>; 2],
}

/// What a side did with a command: lines that it printed, then its state. An error ends the script.
type Done = Result<Vec<String>, Stop>;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Stop {
    /// The command makes no sense here.
    Refused,
    /// A panic, or an error of C.
    Failed(String),
}

/// Random commands of scripts.
trait Commands {
    /// The first commands of a new script; values of `rules=` and `hz=` are the sides' own.
    fn begin(&mut self) -> Vec<String>;
    /// The next command; none at the end of the script.
    fn command(&mut self) -> Option<String>;
    /// Takes in what it printed.
    fn learn(&mut self, command: &str, printed: &[String]);
}

/// A scheduler that scripts see with the block layer around it, since it has state of CPUs and
/// hctxs.
fn needs_layer(scheduler: &str) -> bool {
    let info = SchedulerKind::by_name(scheduler).and_then(SchedulerKind::info);
    info.is_some_and(|info| !info.single_queue)
}

/// Scripts call it as the single-queue path does.
fn is_single(scheduler: &str) -> bool {
    let info = SchedulerKind::by_name(scheduler).and_then(SchedulerKind::info);
    info.is_some_and(|info| info.path == RequestPath::SingleQueue)
}

fn looks_at_tasks(scheduler: &str) -> bool {
    let info = SchedulerKind::by_name(scheduler).and_then(SchedulerKind::info);
    info.is_some_and(|info| info.hooks.exits)
}

/// A side of a script; true: its scheduler is in C.
enum Carrier {
    Policy(Box<PolicyQueue>, bool),
    /// The block layer with the scheduler.
    Layer(Box<Layer>, bool),
}

/// Both queues of a script.
struct Pair {
    sides: [Carrier; 2],
    /// C shows lists of requests only.
    lists: bool,
}

impl Comparison {
    /// Compares on `operations` random commands.
    pub fn run(&self, seed: u64, operations: u64) -> Outcome {
        let mut outcome = Outcome::default();
        let attributes = self.attributes();
        let mut generator: Box<dyn Commands> = if needs_layer(&self.scheduler) {
            Box::new(LayerCommands::new(&self.scheduler, seed))
        } else if looks_at_tasks(&self.scheduler) {
            Box::new(TaskCommands::new(&self.scheduler, &attributes, seed))
        } else {
            Box::new(Generator::new(&self.scheduler, &attributes, seed))
        };
        while outcome.operations < operations && outcome.difference.is_none() {
            self.script(&mut *generator, &mut outcome);
        }
        outcome
    }

    /// One script, up to the first difference in it.
    fn script(&self, generator: &mut dyn Commands, outcome: &mut Outcome) {
        let mut begin = generator.begin();
        begin.retain(|line| !(self.decisions && line == "log on"));
        let mut begin = begin.into_iter();
        let mut script: Vec<String> = begin.next().into_iter().collect();
        let Some(mut pair) = self.begin(&script) else {
            let why = "settings that make no sense together";
            *outcome.ended.entry(why.to_owned()).or_default() += 1;
            outcome.operations += 1;
            return;
        };
        loop {
            let set_up = begin.next();
            let learns = set_up.is_none();
            let Some(command) = set_up.or_else(|| generator.command()) else {
                return;
            };
            script.push(command.clone());
            let [one, other] = self.command(&mut pair, &command);
            outcome.operations += u64::from(learns);
            if let Some(why) = [&one, &other]
                .iter()
                .find_map(|of| deviation(&script[0], of))
            {
                *outcome.ended.entry(why.to_owned()).or_default() += 1;
                return;
            }
            if one != other {
                outcome.difference = Some(self.shrink(script, [one, other].map(lines_of)));
                return;
            }
            match one {
                Ok(lines) if learns => generator.learn(&command, &lines),
                // The command had no object; both sides agree about that. It stays in the script,
                // since it may have begun.
                Ok(_) | Err(Stop::Refused) => {}
                Err(Stop::Failed(text)) => {
                    *outcome.ended.entry(text).or_default() += 1;
                    return;
                }
            }
        }
    }

    /// Attributes that both sides have, with the second one's defaults.
    fn attributes(&self) -> Vec<(&'static str, Value)> {
        let of = |side: &Side| match (&side.scheduler, SchedulerKind::by_name(&self.scheduler)) {
            (Some(settings), _) => settings.shown(),
            (None, Some(kind)) => kind.defaults(self.hz, 128).shown(),
            (None, None) => Vec::new(),
        };
        let [first, mut attributes] = self.sides.each_ref().map(of);
        attributes.retain(|(name, _)| first.iter().any(|(other, _)| other == name));
        attributes
    }

    /// Queues of the first command of a script; none if it makes no sense.
    fn begin(&self, script: &[String]) -> Option<Pair> {
        let queue = |side: &Side| {
            // The same block layer around both schedulers.
            let rules = match self.decisions {
                true => self.sides[1].rules,
                false => side.rules,
            };
            let line = script[0].replace("rules=", &format!("rules={rules}"));
            let line = line.replace("hz=", &format!("hz={}", self.hz));
            let scheduler = side.scheduler.as_ref();
            if !needs_layer(&self.scheduler) {
                let queue = PolicyQueue::with(&line, scheduler).ok()?;
                return Some(Carrier::Policy(Box::new(queue), scheduler.is_some()));
            }
            let mut layer = Layer::with(&line, scheduler).ok()?;
            layer.command("probes on").ok()?;
            Some(Carrier::Layer(Box::new(layer), scheduler.is_some()))
        };
        let [one, other] = &self.sides;
        let rules = Rules::by_name(other.rules);
        Some(Pair {
            sides: [queue(one)?, queue(other)?],
            lists: rules.is_some_and(|rules| rules.single_queue.is_some()),
        })
    }

    /// What of a command is compared.
    fn command(&self, pair: &mut Pair, command: &str) -> [Done; 2] {
        let lists = pair.lists;
        let [one, other] = pair.sides.each_mut().map(|queue| {
            carry_out(queue, command).map(|(lines, state)| match lists {
                true => (without_pointers(lines), lists_of(&state)),
                false => (lines, state),
            })
        });
        // A scheduler in C without files in debugfs shows no state: then its log has to do.
        let both = |done: &Shown| done.as_ref().is_ok_and(|(_, state)| !state.is_empty());
        let compared = !self.decisions && both(&one) && both(&other);
        [one, other].map(|done| {
            done.map(|(mut lines, state)| {
                lines.extend(state.into_iter().filter(|_| compared));
                lines
            })
        })
    }

    /// The command at which the sides differ, if they do, and what they print there.
    fn first_difference(&self, script: &[String]) -> Option<(usize, [Vec<String>; 2])> {
        let mut pair = self.begin(script)?;
        for (at, command) in script.iter().enumerate().skip(1) {
            let [one, other] = self.command(&mut pair, command);
            if [&one, &other]
                .iter()
                .any(|of| deviation(&script[0], of).is_some())
            {
                return None;
            }
            if one != other {
                return Some((at, [one, other].map(lines_of)));
            }
            if let Err(Stop::Failed(_)) = one {
                return None;
            }
        }
        None
    }

    /// The shortest script with this difference; if it does not show it again, the whole script.
    fn shrink(&self, script: Vec<String>, seen: [Vec<String>; 2]) -> Difference {
        let differs = |script: &[String]| self.first_difference(script).is_some();
        let shortest = match differs(&script) {
            true => shrink::shrink(script, differs),
            false => script,
        };
        let found = self.first_difference(&shortest);
        let (at, printed) = found.unwrap_or((shortest.len() - 1, seen));
        Difference {
            script: self.written(&shortest[..=at], &printed),
            printed,
        }
    }

    /// The script in the format of blkmq's tests. What only the state shows is in comments.
    fn written(&self, script: &[String], printed: &[Vec<String>; 2]) -> String {
        let [one, other] = &self.sides;
        let mut text = format!(
            "# {} and {} differ at the last command.\n",
            one.name, other.name
        );
        for (at, side) in [one, other].into_iter().enumerate() {
            let missing = printed[at]
                .iter()
                .filter(|line| !printed[1 - at].contains(line));
            for line in missing.filter_map(|line| line.strip_prefix("| ")) {
                text += &format!("# Only in the state of {}: {line}\n", side.name);
            }
        }
        let last = printed[1]
            .iter()
            .filter_map(|line| match line.strip_prefix("| ") {
                Some(of_state) => of_state.strip_prefix("event: "),
                None => Some(line.as_str()),
            });
        let mut expected = Vec::new();
        if let Some(mut pair) = self.begin(script) {
            for command in &script[1..script.len() - 1] {
                // Both print the same, but for remarks about blkmq's own state.
                let [one, other] = &mut pair.sides;
                expected.extend(one.print(command).unwrap_or_default());
                let _ = carry_out(other, command);
            }
        }
        let first = script[0].replace("rules=", &format!("rules={}", other.rules));
        text += &first.replace("hz=", &format!("hz={}", self.hz));
        if needs_layer(&self.scheduler) {
            text += "\nprobes on";
        }
        for command in &script[1..] {
            text.push('\n');
            text += command;
        }
        text += "\n----\n";
        for line in expected.iter().map(String::as_str).chain(last) {
            text += line;
            text.push('\n');
        }
        text
    }
}

/// A kernel's mistake that both sides stop at (docs/findings/0003): bfq merges the queues of two
/// actuators, and a process keeps a queue whose reference is gone, or gets back the state of
/// another one: weight raising that is not counted, a weight of zero that C divides by, a pointer
/// of a queue that is freed.
const MERGED_ACROSS_ACTUATORS: [&str; 8] = [
    "access to address",
    "parent of the root",
    "busy queues that are raised",
    "a division by zero",
    "references of processes",
    "is freed while busy",
    "is freed with requests",
    "is put and has no reference",
];

/// The deviation that is known at which a side stops; `first` is the first line of the script.
fn deviation(first: &str, done: &Done) -> Option<&'static str> {
    let Err(Stop::Failed(text)) = done else {
        return None;
    };
    let of_freed = MERGED_ACROSS_ACTUATORS
        .iter()
        .any(|lost| text.contains(lost));
    if text.ends_with(DISCARD_LEFT_QUEUED) {
        return Some("deviation D5 of docs/explanation/model.md");
    }
    (first.contains(" ranges=") && of_freed).then_some("docs/findings/0003-bfq-actuators.md")
}

fn lines_of(done: Done) -> Vec<String> {
    match done {
        Ok(lines) => lines,
        Err(Stop::Refused) => vec!["this side refuses the command".to_owned()],
        Err(Stop::Failed(text)) => vec![text],
    }
}

impl Carrier {
    /// What a script prints for a command.
    fn print(&mut self, command: &str) -> Result<Vec<String>, String> {
        match self {
            Carrier::Policy(queue, _) => queue.command(command),
            Carrier::Layer(layer, _) => layer.command(command),
        }
    }

    /// The same, and the state, each line of it after a `|`.
    fn done(&mut self, command: &str) -> Result<(Vec<String>, Vec<String>), String> {
        let mut lines = self.print(command)?;
        let Carrier::Layer(layer, in_c) = self else {
            let mut state = self.print("show state").unwrap_or_default();
            if let Carrier::Policy(queue, false) = self {
                state.extend(of_debugfs(queue));
            }
            for line in &mut lines {
                line.truncate(line.trim_end_matches(REMARK).len());
            }
            let state = state.iter().filter_map(|line| comparable(line));
            return Ok((lines, state.collect()));
        };
        let (events, mut lines) = layer::split_events(lines);
        if command.starts_with("set ") {
            // C refuses a value with a number, blkmq with a reason.
            let refused = |line: &mut String| "refused".clone_into(line);
            lines.iter_mut().for_each(refused);
        }
        let scheduler = layer.command("show scheduler")?;
        let mut state = match in_c {
            true => scheduler,
            false => {
                let mut state = layer::state(&scheduler, &layer.command("show token_maps")?);
                state.extend(events.iter().map(|line| format!("event: {line}")));
                state
            }
        };
        if command.starts_with("io ") {
            // It prints only what the timer reports.
            state.retain(|line| !line.starts_with("event: throttled"));
        }
        state.extend(layer.command("show work")?);
        // Events stay in their order.
        state.sort_by_key(|line| match line.starts_with("event: ") {
            true => "~".to_owned(),
            false => line.clone(),
        });
        for what in ["show pending", "show restart", "show timer", "show places"] {
            state.extend(layer.command(what)?);
        }
        let state = state.into_iter().map(|line| format!("| {line}"));
        Ok((lines, state.collect()))
    }
}

/// What files of debugfs show of blkmq's mq-deadline besides its state: the requests that it counts
/// of each priority, and a setting.
fn of_debugfs(queue: &mut PolicyQueue) -> Vec<String> {
    let (Ok(counts), Ok(depth)) = (
        queue.command("show counts"),
        queue.command("show async_depth"),
    ) else {
        return Vec::new();
    };
    let here = ["rt", "be", "idle"].map(|name| {
        let of = counts.iter().find_map(|line| line.strip_prefix(name));
        let words = of.unwrap_or_default().split(' ').skip(1).take(3);
        let number = |word: &str| word.split('=').nth(1)?.parse::<u32>().ok();
        let numbers: Vec<u32> = words.filter_map(number).collect();
        match numbers[..] {
            [inserted, merged, dispatched] => inserted - merged - dispatched,
            _ => 0,
        }
    });
    let counted = format!("counted: {} {} {}", here[0], here[1], here[2]);
    [vec![counted], depth].concat()
}

/// Lines of a log without pointers: C numbers its objects, blkmq their slots.
fn without_pointers(mut lines: Vec<String>) -> Vec<String> {
    for line in &mut lines {
        if let Some((before, _)) = line.split_once(" with queue ") {
            line.truncate(before.len());
        }
    }
    lines
}

/// The lists of requests of a state, and their number.
fn lists_of(state: &[String]) -> Vec<String> {
    let lists = state.iter().filter_map(|line| line.split_once(": "));
    let name = |rq: &str| rq.split(" by ").next().unwrap_or(rq).to_owned();
    let lists = lists.map(|(_, rqs)| rqs.split(", ").map(name).collect::<Vec<_>>());
    let mut lists: Vec<String> = lists.map(|rqs| format!("| {}", rqs.join(", "))).collect();
    lists.sort();
    lists.push(format!("| {} lists", lists.len()));
    lists
}

/// What a queue prints for a command, and its state, each line of that after a `|`.
type Shown = Result<(Vec<String>, Vec<String>), Stop>;

fn carry_out(queue: &mut Carrier, command: &str) -> Shown {
    let ran = catch_unwind(AssertUnwindSafe(|| queue.done(command)));
    match ran {
        Ok(Ok(shown)) => Ok(shown),
        // It has submitted some, and what they printed is lost: the script ends here.
        Ok(Err(_)) if command.starts_with("io ") => Err(Stop::Failed("a task sleeps".to_owned())),
        Ok(Err(_)) => Err(Stop::Refused),
        Err(payload) => Err(Stop::Failed(match payload.downcast::<Fault>() {
            Ok(fault) => fault.text,
            Err(other) => match other.downcast::<String>() {
                Ok(text) => format!("blkmq stops: {text}"),
                Err(other) => format!(
                    "blkmq stops: {}",
                    other.downcast_ref::<&str>().unwrap_or(&"")
                ),
            },
        })),
    }
}

/// The part of a line of a state that both sides show: C has no file for the order by sector, nor
/// for the position of a batch, which decide what is dispatched next.
fn comparable(line: &str) -> Option<String> {
    let (name, _) = line.split_once(':').unwrap_or((line, ""));
    let hidden = ["sort", "next_rq", "latest_pos"];
    if hidden.iter().any(|word| name.ends_with(word)) {
        return None;
    }
    let words = line
        .split(' ')
        .filter(|word| !word.starts_with("last_dir="));
    Some(format!("| {}", words.collect::<Vec<_>>().join(" ")))
}
