//! Jobs that end at a steady state: a look each second at their I/Os or bytes of that second.
//!
//! After fio 3.33 steadystate.c, which computes in floating point as well.

use blkmq::time::{Duration, SimTime};

use super::cpus::Cpus;
use super::event::{Event, class};
use super::fio::Life;
use super::task::{Program, TaskId};
use super::tasks::Tasks;
use crate::plan::{Plan, SteadyPlan};

/// STEADYSTATE_MSEC.
const SECOND: Duration = Duration::from_secs(1);

/// Threads that are watched together.
#[derive(Debug)]
struct Group {
    plan: SteadyPlan,
    members: Vec<Member>,
    /// The last so many seconds, the oldest at `next` once all are there.
    seconds: Vec<u64>,
    next: usize,
    attained: bool,
}

#[derive(Debug)]
struct Member {
    task: TaskId,
    ramp_over: bool,
    /// The last look, and I/Os or bytes until then.
    at: Option<SimTime>,
    done: u64,
}

#[derive(Debug)]
pub(super) struct Steady {
    groups: Vec<Group>,
}

impl Steady {
    pub(super) fn new(plan: &Plan) -> Steady {
        let mut groups: Vec<Group> = Vec::new();
        // The group of the last thread, if it has one.
        let mut last = None;
        for (task, thread) in (0..).map(TaskId).zip(&plan.threads) {
            let Some(steady) = thread.control.steady else {
                continue;
            };
            let member = Member {
                task,
                ramp_over: steady.ramp == Duration::ZERO,
                at: None,
                done: 0,
            };
            let number = steady.grouped.then_some(thread.control.group);
            match groups.last_mut() {
                Some(group) if number.is_some() && last == number => group.members.push(member),
                _ => groups.push(Group {
                    plan: steady,
                    members: vec![member],
                    seconds: Vec::with_capacity(steady.seconds as usize),
                    next: 0,
                    attained: false,
                }),
            }
            last = number;
        }
        Steady { groups }
    }

    pub(super) fn start(&self, cpus: &mut Cpus) {
        if !self.groups.is_empty() {
            let next = cpus.core.now + SECOND;
            cpus.core.events.push(next, class::TIMER, Event::Second);
        }
    }

    /// steadystate_check(); the next one in a second, while anything runs.
    pub(super) fn look(&mut self, cpus: &mut Cpus, tasks: &mut Tasks) {
        let now = cpus.core.now;
        for group in &mut self.groups {
            if group.attained || !group.is_steady(tasks, now) {
                continue;
            }
            group.attained = true;
            for member in &group.members {
                tasks.terminate_one(cpus, now, member.task);
            }
        }
        if tasks.running > 0 {
            self.start(cpus);
        }
    }
}

impl Group {
    /// The second that is over, and whether the state is steady with it.
    fn is_steady(&mut self, tasks: &Tasks, now: SimTime) -> bool {
        let (mut sum, mut counts) = (0, false);
        for member in &mut self.members {
            let Program::Fio(Some(fio)) = &tasks[member.task].program else {
                continue;
            };
            let control = fio.control.as_deref().expect("steadystate is one of these");
            if control.life != Life::Runs || now <= fio.started {
                continue;
            }
            if now.since(fio.started) >= self.plan.ramp + SECOND {
                member.ramp_over = true;
            }
            let done = match self.plan.state.iops {
                true => control.ios.iter().sum::<u64>(),
                false => control.bytes.iter().sum(),
            };
            let from = member.at.replace(now).unwrap_or(fio.started);
            let ms = now.since(from).0 / 1_000_000;
            if member.ramp_over && ms > 0 {
                sum += 1000 * (done - member.done) / ms;
                counts = true;
            }
            member.done = done;
        }
        counts && self.add(sum)
    }

    /// steadystate_slope() or steadystate_deviation() with a further second.
    fn add(&mut self, value: u64) -> bool {
        let all = self.plan.seconds as usize;
        if self.seconds.len() < all {
            self.seconds.push(value);
        } else {
            self.seconds[self.next] = value;
            self.next = (self.next + 1) % all;
        }
        if self.seconds.len() < all {
            return false;
        }
        let count = all as f64;
        let sum: f64 = self.seconds.iter().map(|&value| value as f64).sum();
        let mean = sum / count;
        let measured = if self.plan.state.slope {
            let in_order = (0..all).map(|i| self.seconds[(self.next + i) % all] as f64);
            let sum_xy: f64 = (0..).zip(in_order).map(|(x, y)| f64::from(x) * y).sum();
            let sum_x = count * (count - 1.0) / 2.0;
            let sum_x_sq = (count - 1.0) * count * (2.0 * count - 1.0) / 6.0;
            (sum_xy - sum_x * sum / count) / (sum_x_sq - sum_x * sum_x / count)
        } else {
            let far = self
                .seconds
                .iter()
                .map(|&value| (value as f64 - mean).abs());
            far.fold(0.0, f64::max)
        };
        let measured = match self.plan.state.percent {
            true => 100.0 * measured / mean,
            false => measured,
        };
        measured.abs() < self.plan.state.limit.to_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SteadyState;
    use trace::fio::Decimal;

    fn group(slope: bool, percent: bool, limit: u64) -> Group {
        Group {
            plan: SteadyPlan {
                state: SteadyState {
                    iops: true,
                    slope,
                    percent,
                    limit: Decimal::hundredths(limit),
                },
                seconds: 4,
                ramp: Duration::ZERO,
                grouped: false,
            },
            members: Vec::new(),
            seconds: Vec::new(),
            next: 0,
            attained: false,
        }
    }

    /// After which of these seconds the state is steady, from 1.
    fn attained(mut group: Group, seconds: &[u64]) -> Option<usize> {
        let steady = |value: &u64| group.add(*value);
        seconds.iter().position(steady).map(|at| at + 1)
    }

    #[test]
    fn a_state_is_steady_when_no_second_of_the_last_ones_is_far_from_their_mean() {
        // Farthest of four from their mean: 75, 11.25 of 101.25, 10 of 100, 7.75 of 97.75.
        let seconds = [200, 100, 110, 90, 105, 95, 101];
        assert_eq!(attained(group(false, true, 1001), &seconds), Some(6));
        assert_eq!(attained(group(false, false, 801), &seconds), Some(7));
        assert_eq!(attained(group(false, true, 1000), &seconds[..5]), None);
    }

    #[test]
    fn a_state_is_steady_when_the_regression_line_is_nearly_level() {
        // Slopes of four: 10, -0.5, -3.1, -2.3, 3.9.
        let seconds = [100, 110, 120, 130, 105, 118, 118, 118];
        assert_eq!(attained(group(true, false, 300), &seconds), Some(5));
        assert_eq!(attained(group(true, false, 1001), &seconds), Some(4));
        assert_eq!(attained(group(true, true, 1), &seconds), None);
    }
}
