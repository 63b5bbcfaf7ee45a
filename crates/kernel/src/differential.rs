//! Two schedulers on the same random operations: the first difference, as the shortest script that
//! shows it.
//!
//! Both sides carry out the commands of scripts (`crates/blkmq/tests/script/policy.rs`); what they
//! print and what state they show must be alike after every command. Not here: which commands
//! (`generate.rs`).

mod generate;
mod shrink;

use crate::policy::{DISCARD_LEFT_QUEUED, Fault};
use crate::script::World;
use crate::script::policy::PolicyQueue;
use blkmq::elevator::{SchedulerKind, SchedulerSettings, Value};
use generate::Generator;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    /// Both sides; scripts expect what the second one prints.
    pub sides: [Side; 2],
}

/// Commands after which a new queue is made.
const SCRIPT: usize = 120;

/// What scripts remark after a dispatch by blkmq's mq-deadline; the state shows it, too.
const REMARK: &str = "    starved=0";

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Commands that both sides carried out.
    pub operations: u64,
    /// Scripts that ended at a deviation of blkmq that is known.
    pub deviations: u64,
    /// The first difference.
    pub difference: Option<Difference>,
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

/// Both queues of a script.
struct Pair([PolicyQueue; 2]);

impl Comparison {
    /// Compares on `operations` random commands; `progress` is called with their number.
    pub fn run(&self, seed: u64, operations: u64, mut progress: impl FnMut(u64)) -> Outcome {
        let (mut done, mut deviations) = (0, 0);
        let mut generator = Generator::new(&self.scheduler, &self.attributes(), seed);
        while done < operations {
            let mut script = generator.begin();
            let Some(mut pair) = self.begin(&script) else {
                continue;
            };
            for _ in 0..SCRIPT {
                let command = generator.command();
                script.push(command.clone());
                let [one, other] = pair.command(&command);
                done += 1;
                if is_deviation(&one) || is_deviation(&other) {
                    deviations += 1;
                    break;
                }
                if one != other {
                    return Outcome {
                        operations: done,
                        deviations,
                        difference: Some(self.shrink(script)),
                    };
                }
                match one {
                    Ok(lines) => generator.learn(&lines),
                    // The command had no object; both sides agree about that.
                    Err(Stop::Refused) => drop(script.pop()),
                    Err(Stop::Failed(_)) => break,
                }
            }
            progress(done);
        }
        Outcome {
            operations: done,
            deviations,
            difference: None,
        }
    }

    /// Attributes of the second side with their defaults.
    fn attributes(&self) -> Vec<(&'static str, Value)> {
        let [_, other] = &self.sides;
        match (&other.scheduler, SchedulerKind::by_name(&self.scheduler)) {
            (Some(settings), _) => settings.shown(),
            (None, Some(kind)) => kind.defaults(self.hz, 128).shown(),
            (None, None) => Vec::new(),
        }
    }

    /// Queues of the first command of a script; none if it makes no sense.
    fn begin(&self, script: &[String]) -> Option<Pair> {
        let queue = |side: &Side| {
            let line = script[0].replace("rules=", &format!("rules={}", side.rules));
            let line = line.replace("hz=", &format!("hz={}", self.hz));
            PolicyQueue::with(&line, side.scheduler.as_ref()).ok()
        };
        let [one, other] = &self.sides;
        Some(Pair([queue(one)?, queue(other)?]))
    }

    /// The command at which the sides differ, if they do, and what they print there.
    fn first_difference(&self, script: &[String]) -> Option<(usize, [Vec<String>; 2])> {
        let mut pair = self.begin(script)?;
        for (at, command) in script.iter().enumerate().skip(1) {
            let [one, other] = pair.command(command);
            if is_deviation(&one) || is_deviation(&other) {
                return None;
            }
            if one != other {
                return Some((at, [one, other].map(lines_of)));
            }
            one.ok()?;
        }
        None
    }

    fn shrink(&self, script: Vec<String>) -> Difference {
        let differs = |script: &[String]| self.first_difference(script).is_some();
        let shortest = match differs(&script) {
            true => shrink::shrink(script, differs),
            false => script,
        };
        let found = self.first_difference(&shortest);
        let (at, printed) = found.unwrap_or((shortest.len() - 1, [Vec::new(), Vec::new()]));
        Difference {
            script: self.written(&shortest[..=at], &printed[1]),
            printed,
        }
    }

    /// The script in the format of blkmq's tests.
    fn written(&self, script: &[String], last: &[String]) -> String {
        let [one, other] = &self.sides;
        let mut text = format!(
            "# {} and {} differ at the last command.\n",
            one.name, other.name
        );
        let mut expected = Vec::new();
        if let Some(mut pair) = self.begin(script) {
            for command in &script[1..script.len() - 1] {
                // Both print the same, but for remarks about blkmq's own state.
                let printed = pair.0[0].command(command).unwrap_or_default();
                expected.extend(printed);
                let _ = carry_out(&mut pair.0[1], command);
            }
        }
        let first = script[0].replace("rules=", &format!("rules={}", other.rules));
        text += &first.replace("hz=", &format!("hz={}", self.hz));
        for command in &script[1..] {
            text.push('\n');
            text += command;
        }
        text += "\n----\n";
        for line in expected.iter().chain(last) {
            text += line;
            text.push('\n');
        }
        text
    }
}

fn is_deviation(done: &Done) -> bool {
    matches!(done, Err(Stop::Failed(text)) if text.ends_with(DISCARD_LEFT_QUEUED))
}

fn lines_of(done: Done) -> Vec<String> {
    match done {
        Ok(lines) => lines,
        Err(Stop::Refused) => vec!["this side refuses the command".to_owned()],
        Err(Stop::Failed(text)) => vec![text],
    }
}

impl Pair {
    fn command(&mut self, command: &str) -> [Done; 2] {
        self.0.each_mut().map(|queue| carry_out(queue, command))
    }
}

/// What a queue prints for a command, then its state, each line of it after a `|`.
fn carry_out(queue: &mut PolicyQueue, command: &str) -> Done {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let printed = queue.command(command);
        let state = queue.command("show state").unwrap_or_default();
        printed.map(|mut lines| {
            for line in &mut lines {
                line.truncate(line.trim_end_matches(REMARK).len());
            }
            lines.extend(state.iter().filter_map(|line| comparable(line)));
            lines
        })
    }));
    match ran {
        Ok(Ok(lines)) => Ok(lines),
        Ok(Err(_)) => Err(Stop::Refused),
        Err(payload) => Err(Stop::Failed(match payload.downcast::<Fault>() {
            Ok(fault) => fault.text,
            Err(other) => match other.downcast::<String>() {
                Ok(text) => format!("blkmq stops: {text}"),
                Err(_) => "blkmq stops".to_owned(),
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
