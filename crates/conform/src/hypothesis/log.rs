//! The model's log compared with the kernel's: line by line, and after a difference where both
//! agree again.

use blkmq::elevator::Now;
use blkmq::request::QueueId;
use blkmq::time::{Duration, Jiffies, SimTime};

use super::{Hypotheses, Hypothesis, Role, TICKS_BEFORE};
use crate::event::Kind;
use crate::judge::Judge;
use crate::lines::{Log, Names, Sides};
use crate::verdict::Divergence;

const CONTEXT: usize = 12;
/// Lines that have to be alike for both sides to go on together.
const ALIKE: usize = 3;
/// Lines that are looked through for that, of each side.
const WINDOW: usize = 96;
/// Between a record and a line of its section, at most.
const OF_SECTION: Duration = Duration(100_000);
/// From the lock to the time that its first line has, ns.
pub(crate) const BEFORE_LINE: u64 = 2_500;
/// A line is formatted before it has its time: so long for a letter, by the cost of one more digit
/// in lines that are otherwise equal, ns.
const NS_A_LETTER: u64 = 30;
/// Lines of which a scheduler knows the time ahead.
const AHEAD: usize = 64;

impl Hypotheses<'_> {
    /// Compares the lines of both sides so far. `ends`: no more lines follow.
    pub(crate) fn compare_lines(&self, state: &mut Hypothesis, index: usize, ends: bool) {
        let unlocked = core::mem::take(&mut state.world.outside.said_unlocked);
        for (queue, actor, line) in unlocked {
            self.compare_unlocked(state, (queue, actor, line), index);
        }
        for (queue, _, line) in state.world.outside.said.drain(..) {
            state.sides[queue.index()].model.push_back(line);
        }
        for (queue, log) in self.stream.logs.iter().enumerate() {
            let seen = log.events.partition_point(|&event| event <= index);
            self.compare_sides(state, (QueueId(queue as _), log), seen, ends);
        }
    }

    fn compare_sides(
        &self,
        state: &mut Hypothesis,
        (queue, log): (QueueId, &Log),
        seen: usize,
        ends: bool,
    ) {
        loop {
            let sides = &mut state.sides[queue.index()];
            if sides.lost && !find_way(sides, log, seen, ends) {
                return;
            }
            if sides.next >= seen {
                return;
            }
            let Some(model) = sides.model.front() else {
                return;
            };
            if sides.names.alike(&log.lines[sides.next], model) {
                sides.model.pop_front();
                sides.next += 1;
                sides.predicted += 1;
                continue;
            }
            sides.lost = true;
            let (next, model) = (sides.next, model.clone());
            self.lines_differ(state, queue, log.events[next], [&log.lines[next], &model]);
        }
    }

    /// A line of the model that needs no lock: the kernel's is anywhere after the Q of its task.
    fn compare_unlocked(
        &self,
        state: &mut Hypothesis,
        (queue, task, line): (QueueId, usize, String),
        index: usize,
    ) {
        let asks = |&at: &usize| {
            self.stream.task[at] == task && self.stream.events[at].kind == Kind::Queue
        };
        let asked = (0..=index.min(self.stream.events.len() - 1))
            .rev()
            .find(asks);
        self.pass_unlocked(state, queue, (task, asked.unwrap_or(0)));
        let log = &self.stream.logs[queue.index()];
        let next = state.sides[queue.index()].unlocked.entry(task).or_default();
        let own = log.unlocked.get(&task).and_then(|all| all.get(*next));
        let kernel = own.filter(|kernel| asked == Some(kernel.asked));
        *next += usize::from(kernel.is_some());
        if kernel.is_some_and(|kernel| kernel.line == line) {
            state.sides[queue.index()].predicted += 1;
            return;
        }
        state.sides[queue.index()].alone += 1;
        let (event, text) = kernel.map_or((index, "nothing"), |k| (k.event, k.line.as_str()));
        self.lines_differ(state, queue, event, [text, &line]);
    }

    /// The kernel's lines without the lock that a task wrote before this Q have come by now.
    fn pass_unlocked(&self, state: &mut Hypothesis, queue: QueueId, (task, asked): (usize, usize)) {
        let all = self.stream.logs[queue.index()].unlocked.get(&task);
        loop {
            let next = state.sides[queue.index()].unlocked.entry(task).or_default();
            let missed = all.and_then(|all| all.get(*next));
            let Some(missed) = missed.filter(|missed| missed.asked < asked) else {
                return;
            };
            *next += 1;
            self.lines_differ(state, queue, missed.event, [&missed.line, "nothing"]);
        }
    }

    /// The kernel's line at this event, and the model's: the first difference is kept.
    fn lines_differ(
        &self,
        state: &mut Hypothesis,
        queue: QueueId,
        event: usize,
        [kernel, model]: [&str; 2],
    ) {
        if state.sides[queue.index()].first.is_none() {
            let first = self.line_divergence(state, queue, event, [kernel, model]);
            state.sides[queue.index()].first = Some(first);
        }
    }

    /// The line of both, the lines before it, and both queues.
    fn line_divergence(
        &self,
        state: &Hypothesis,
        queue: QueueId,
        event: usize,
        [kernel, model]: [&str; 2],
    ) -> Divergence {
        let (log, sides) = (
            &self.stream.logs[queue.index()],
            &state.sides[queue.index()],
        );
        let from = sides.next.saturating_sub(CONTEXT);
        let mut text = String::from("lines before:\n");
        for line in &log.lines[from..sides.next] {
            text.push_str(&format!("  {line}\n"));
        }
        text.push_str("the kernel's next:\n");
        for line in log.lines[sides.next..].iter().take(CONTEXT) {
            text.push_str(&format!("  {line}\n"));
        }
        text.push_str("the model's next:\n");
        for line in sides.model.iter().take(CONTEXT) {
            text.push_str(&format!("  {line}\n"));
        }
        text.push_str(&Self::show(state, queue));
        let unlocked = log.unlocked.values().flatten();
        let before = log.events.partition_point(|&other| other < event)
            + unlocked.filter(|line| line.event < event).count();
        Divergence {
            index: before as u64 + 1,
            device: self.setups[queue.index()].device.clone(),
            time: self.stream.events[event].time,
            kernel: kernel.to_owned(),
            model: model.to_owned(),
            text,
        }
    }

    pub(crate) fn end_lines(&self, state: &mut Hypothesis, judge: &mut Judge) {
        self.compare_lines(state, self.stream.events.len(), true);
        for (queue, log) in self.stream.logs.iter().enumerate() {
            for &task in log.unlocked.keys() {
                self.pass_unlocked(state, QueueId(queue as _), (task, usize::MAX));
            }
            if let Some(line) = log.lines.get(state.sides[queue].next) {
                let event = log.events[state.sides[queue].next];
                self.lines_differ(state, QueueId(queue as _), event, [line, "nothing"]);
            }
            let sides = &mut state.sides[queue];
            let alone = sides.alone + sides.model.len() as u64;
            let first = sides.first.take();
            let device = &self.setups[queue].device;
            let unlocked = log.unlocked.values().map(Vec::len).sum::<usize>();
            let total = (log.lines.len() + unlocked) as u64;
            judge.lines(device, (total, sides.predicted, alone), first);
        }
    }

    /// The clock as the section of an event reads it: the line that it writes next has the time,
    /// where one follows on its CPU before anything else.
    pub(crate) fn time_of_section(
        &self,
        state: &Hypothesis,
        queue: QueueId,
        (time, cpu): (SimTime, u16),
    ) -> SimTime {
        let own = self.measured(time);
        let Some(log) = self.stream.logs.get(queue.index()) else {
            return own;
        };
        let coming = state.coming(queue);
        let Some(&at) = log.events.get(coming) else {
            return own;
        };
        let line = &self.stream.events[at];
        let (first, last) = (time.min(line.time), time.max(line.time));
        let after = self
            .stream
            .events
            .partition_point(|other| other.time < last);
        let between = self.stream.events[..after].iter().rev();
        let between = between.take_while(|other| other.time > first);
        let others = between.filter(|other| {
            let counts = !matches!(
                other.kind,
                Kind::Line(_) | Kind::Ask { .. } | Kind::Answer { .. } | Kind::Exit
            );
            counts && other.cpu == cpu
        });
        let near = line.cpu == cpu && last.since(first) < OF_SECTION;
        match near && others.count() == 0 {
            true if self.times_of_labels() => self.measured(log.times[coming]),
            // The lock was taken, and the tick read, before the line was put together.
            true => SimTime(self.measured(log.times[coming]).0 - BEFORE_LINE),
            false => own,
        }
    }

    /// The first line that the model has written since its line of this number is not the kernel's.
    pub(crate) fn speaks_otherwise(
        &self,
        state: &Hypothesis,
        number: usize,
        queue: QueueId,
    ) -> bool {
        let said = &state.world.outside.said;
        let after = state.coming(queue) - number;
        let mut own = said.iter().filter(|(of, ..)| *of == queue);
        let all = own.clone().count();
        let first = own.nth(all - after.min(all));
        let kernel = self.stream.logs[queue.index()].lines.get(number);
        match (first, kernel) {
            (Some((.., line)), Some(kernel)) if after > 0 => !Names::similar(kernel, line),
            _ => false,
        }
    }

    /// The line of this event was written without the lock, and is its task's next one.
    pub(crate) fn is_next_unlocked(
        &self,
        state: &Hypothesis,
        (queue, task): (QueueId, usize),
        index: usize,
    ) -> bool {
        let all = self.stream.logs[queue.index()].unlocked.get(&task);
        let compared = state.sides[queue.index()].unlocked.get(&task);
        let next = all.and_then(|all| all.get(compared.copied().unwrap_or(0)));
        next.is_some_and(|next| next.event == index)
    }

    /// The number of a line in its log.
    pub(crate) fn number_of(&self, index: usize) -> usize {
        match self.stream.events[index].kind {
            Kind::Line(line) => line as usize,
            _ => usize::MAX,
        }
    }

    /// The schedulers get the clocks of the kernel's next lines. In a simulated run their clock
    /// moves as it did there.
    pub(crate) fn set_log_times(&self, state: &mut Hypothesis, index: usize) {
        if self.times_of_labels() {
            return;
        }
        let Some(ticks) = &self.stream.ticks else {
            return;
        };
        let event = &self.stream.events[index];
        let interrupts = matches!(event.kind, Kind::Complete { .. } | Kind::Finish { .. });
        let kept = state
            .plugged
            .get(self.stream.task[index])
            .copied()
            .flatten();
        let kept = kept.is_some() && !interrupts;
        let scratch = self.actor(Role::Forced);
        for (queue, log) in self.stream.logs.iter().enumerate() {
            let coming = state.coming(QueueId(queue as _)).min(log.times.len());
            let own = log.goes_on[coming..]
                .iter()
                .take(AHEAD)
                .take_while(|&&on| on);
            let until = (coming + 1 + own.count()).min(log.times.len());
            let world = &mut state.world;
            let cpu = &mut world.actors[scratch].cpu;
            let q = world.mq.queue(QueueId(queue as _));
            let times = log.times[coming..until].iter();
            let mut tick = Jiffies(0);
            let read = |(&time, line): (&SimTime, &String)| {
                let known = ticks.known_at(time).map(|known| TICKS_BEFORE + known);
                tick = tick.max(known.unwrap_or_default());
                Now {
                    time: SimTime(self.measured(time).0 - NS_A_LETTER * line.len() as u64),
                    tick,
                    kept,
                }
            };
            let lines = times.zip(&log.lines[coming..until]);
            let clocks: Vec<Now> = lines.map(read).collect();
            q.elevator.lines_at(&clocks, cpu);
        }
    }
}

/// Drops as few lines of both as there must be for both to go on alike. False: not known yet.
fn find_way(sides: &mut Sides, log: &Log, seen: usize, ends: bool) -> bool {
    let kernel = &log.lines[sides.next..seen];
    if !ends && (kernel.len() < WINDOW || sides.model.len() < WINDOW) {
        // More of either may come.
        if kernel.len().min(sides.model.len()) < 4 * ALIKE {
            return false;
        }
    }
    let model = &sides.model;
    let alike = |from: usize, to: usize| {
        let kernel = kernel[from..].iter().take(ALIKE);
        let model: Vec<&String> = model.iter().skip(to).take(ALIKE).collect();
        !model.is_empty()
            && kernel.len().min(model.len()) >= if ends { 1 } else { ALIKE }
            && kernel.zip(model).all(|(a, b)| Names::similar(a, b))
    };
    let reach = (kernel.len() + model.len()).min(2 * WINDOW);
    for away in 0..=reach {
        for from in 0..=away.min(kernel.len()) {
            let to = away - from;
            if to < model.len() && from < kernel.len() && alike(from, to) {
                sides.next += from;
                sides.alone += to as u64;
                sides.model.drain(..to);
                sides.lost = false;
                // Equal lines may differ only in their pointers.
                sides.names = Names::default();
                if away == 0 {
                    sides.next += 1;
                    sides.model.pop_front();
                    sides.alone += 1;
                }
                return true;
            }
        }
    }
    let full = kernel.len() >= WINDOW && model.len() >= WINDOW;
    if ends || full {
        let drop = if ends { model.len() } else { WINDOW / 2 };
        sides.alone += drop as u64;
        sides.model.drain(..drop);
        sides.next += if ends { kernel.len() } else { WINDOW / 2 };
        return false;
    }
    false
}

#[cfg(test)]
mod tests;
