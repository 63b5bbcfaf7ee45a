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
use crate::recorder::SteadyStats;

/// STEADYSTATE_MSEC.
const SECOND: Duration = Duration::from_secs(1);

/// Threads that are watched together.
#[derive(Debug)]
struct Group {
    plan: SteadyPlan,
    members: Vec<Member>,
    /// The oldest second is at `next` once all are there.
    found: SteadyStats,
    next: usize,
}

#[derive(Debug)]
struct Member {
    task: TaskId,
    ramp_over: bool,
    /// The last look, and I/Os and bytes until then.
    at: Option<SimTime>,
    done: [u64; 2],
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
                done: [0; 2],
            };
            let number = steady.grouped.then_some(thread.control.group);
            match groups.last_mut() {
                Some(group) if number.is_some() && last == number => group.members.push(member),
                _ => groups.push(Group {
                    plan: steady,
                    members: vec![member],
                    found: SteadyStats {
                        seconds: Vec::with_capacity(steady.seconds as usize),
                        ..SteadyStats::default()
                    },
                    next: 0,
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
            if group.found.attained || !group.is_steady(tasks, now) {
                continue;
            }
            group.found.attained = true;
            for member in &group.members {
                tasks.terminate_one(cpus, now, member.task);
            }
        }
        if tasks.running > 0 {
            self.start(cpus);
        }
    }

    /// What was found, of each group with the index of its last thread.
    pub(super) fn found(&self) -> Vec<(usize, SteadyStats)> {
        let groups = self.groups.iter();
        let found = groups.filter_map(|group| {
            let mut found = group.found.clone();
            found.seconds.rotate_left(group.next);
            Some((group.members.last()?.task.0 as usize, found))
        });
        found.collect()
    }
}

impl Group {
    /// The second that is over, and whether the state is steady with it.
    fn is_steady(&mut self, tasks: &Tasks, now: SimTime) -> bool {
        let (mut sums, mut counts) = ([0; 2], false);
        for member in &mut self.members {
            let Program::Fio(Some(fio)) = &tasks[member.task].program else {
                continue;
            };
            let control = fio.control.as_deref().expect("steadystate is one of these");
            if control.life != Life::Runs || now <= fio.started {
                continue;
            }
            // fio's looks come a little before whole seconds of a thread: the thread that looks
            // starts first.
            if now.since(fio.started) > self.plan.ramp + SECOND {
                member.ramp_over = true;
            }
            let done = [&control.ios, &control.bytes].map(|of| of.iter().sum::<u64>());
            let from = member.at.replace(now).unwrap_or(fio.started);
            let ms = now.since(from).0 / 1_000_000;
            if member.ramp_over && ms > 0 {
                for (sum, (done, before)) in sums.iter_mut().zip(done.iter().zip(member.done)) {
                    *sum += 1000 * (done - before) / ms;
                }
                counts = true;
            }
            member.done = done;
        }
        counts && self.add(sums)
    }

    /// steadystate_slope() or steadystate_deviation() with a further second.
    fn add(&mut self, second: [u64; 2]) -> bool {
        let (all, state, found) = (
            self.plan.seconds as usize,
            &self.plan.state,
            &mut self.found,
        );
        if found.seconds.len() < all {
            found.seconds.push(second);
        } else {
            found.seconds[self.next] = second;
            self.next = (self.next + 1) % all;
        }
        if found.seconds.len() < all {
            return false;
        }
        let measure = usize::from(!state.iops);
        let values = || found.seconds.iter().map(|second| second[measure]);
        let (count, sum) = (all as f64, values().sum::<u64>());
        let mean = sum as f64 / count;
        if state.slope {
            let in_order = values().cycle().skip(self.next).take(all);
            let sum_xy: f64 = (0..)
                .zip(in_order)
                .map(|(x, y)| f64::from(x) * y as f64)
                .sum();
            let sum_x = count * (count - 1.0) / 2.0;
            let sum_x_sq = (count - 1.0) * count * (2.0 * count - 1.0) / 6.0;
            found.slope =
                (sum_xy - sum_x * sum as f64 / count) / (sum_x_sq - sum_x * sum_x / count);
        } else {
            let far = values().map(|value| (value as f64 - mean).abs());
            found.deviation = far.fold(0.0, f64::max);
        }
        found.criterion = match (state.percent, state.slope) {
            // fio divides whole numbers here.
            (true, true) => 100.0 * found.slope / mean.trunc(),
            (true, false) => 100.0 * found.deviation / mean,
            (false, true) => found.slope,
            (false, false) => found.deviation,
        };
        found.criterion.abs() < state.limit.to_f64()
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
            found: SteadyStats::default(),
            next: 0,
        }
    }

    /// After which of these seconds the state is steady, from 1.
    fn attained(mut group: Group, seconds: &[u64]) -> Option<usize> {
        let steady = |value: &u64| group.add([*value, 0]);
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
