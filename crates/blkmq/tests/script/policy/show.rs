//! State of a scheduler: `show` prints state and attributes, `log` the messages in blktrace.

use super::{PolicyQueue, Printed};
use blkmq::elevator::Scheduler;
use blkmq::elevator::mq_deadline::MqDeadline;
use core::any::Any;

impl PolicyQueue {
    pub(super) fn show(&self, what: &str) -> Printed {
        let counts = || {
            let counts = self.of_deadline(MqDeadline::counts);
            counts.ok_or_else(|| format!("show {what}: the scheduler counts nothing"))
        };
        let names = ["rt", "be", "idle"];
        match what {
            "state" => Ok(self.state_lines()),
            "queues" => Ok(self.state_lines().split_off(1)),
            "batch" => {
                let line = self.state_lines().swap_remove(0);
                Ok(vec![
                    line.split(" last_merge")
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                ])
            }
            "queued" => {
                let counts = counts()?;
                let queued = |level: usize| counts[level][0] - self.completed[level];
                Ok(vec![format!(
                    "rt={} be={} idle={}",
                    queued(0),
                    queued(1),
                    queued(2)
                )])
            }
            "counts" => Ok(names
                .iter()
                .zip(counts()?)
                .zip(self.completed)
                .filter(|((_, counts), _)| counts[0] > 0)
                .map(|((name, [inserted, merged, dispatched]), completed)| {
                    format!(
                        "{name}: inserted={inserted} merged={merged} dispatched={dispatched} \
                         completed={completed}"
                    )
                })
                .collect()),
            name => {
                let shown = self.look(Scheduler::shown);
                let found = shown.into_iter().find(|&(known, _)| known == name);
                let (_, value) = found.ok_or(format!("unknown {name:?}"))?;
                Ok(vec![format!("{name}={value}")])
            }
        }
    }

    fn state_lines(&self) -> Vec<String> {
        let text = self.look(|policy| policy.show(&self.pool));
        text.lines().map(str::to_owned).collect()
    }

    fn of_deadline<R>(&self, look: impl FnOnce(&MqDeadline) -> R) -> Option<R> {
        self.look(|policy| (policy as &dyn Any).downcast_ref().map(look))
    }

    pub(super) fn starved(&self) -> u32 {
        self.of_deadline(MqDeadline::starved).unwrap_or(0)
    }

    pub(super) fn listen(&mut self, rest: &str) -> Vec<String> {
        self.around.listen_for = match rest {
            "on" => vec![String::new()],
            "off" => Vec::new(),
            words => words.split_whitespace().map(str::to_owned).collect(),
        };
        Vec::new()
    }
}
