//! Dispatch: `dispatch` and `drain` print each request, `serve` and `pull` which task was served
//! how often in a row.

use super::around::span;
use super::parse::parse_number;
use super::{PolicyQueue, Printed};
use blkmq::elevator::DispatchTime;
use blkmq::request::{Place, RequestId};
use blkmq::time::Jiffies;

impl PolicyQueue {
    pub(super) fn dispatch(&mut self, rest: &str) -> Printed {
        let (mut calls, mut entered, mut held) = (1, self.clocks().tick, false);
        for word in rest.split_whitespace() {
            match word.strip_prefix("waited=") {
                Some(span) => entered = entered - self.millis(span)?,
                None if word == "held" => held = true,
                None => calls = parse_number(word)?,
            }
        }
        for _ in 0..calls {
            let line = match held {
                true => self.pull_once(entered),
                false => self.dispatch_once(entered),
            };
            self.around.print(line.unwrap_or("-".to_owned()));
            if held && let Some(&rq) = self.in_device.last() {
                self.held.push(rq);
            }
        }
        Ok(Vec::new())
    }

    pub(super) fn drain(&mut self) -> Vec<String> {
        while let Some(line) = self.dispatch_once(self.clocks().tick) {
            self.around.print(line);
        }
        Vec::new()
    }

    /// One call, and the driver's first look at its result.
    pub(super) fn dispatch_once(&mut self, entered: Jiffies) -> Option<String> {
        let line = self.pull_once(entered)?;
        let last = self.in_device.last();
        self.activated(*last.expect("it is there"));
        Some(line)
    }

    /// One call; reports when it reset `starved`.
    fn pull_once(&mut self, entered: Jiffies) -> Option<String> {
        let starved = self.starved();
        let completed = self.completed;
        let rq = self.call(|policy, pool, now| {
            let now = DispatchTime {
                entered,
                ..DispatchTime::at(now)
            };
            policy.dispatch(pool, now, completed)
        })?;
        self.handed_to_device(rq);
        let reset = starved > 0 && self.starved() == 0;
        Some(format!(
            "D {}{}",
            self.name(rq),
            if reset { "    starved=0" } else { "" }
        ))
    }

    pub(super) fn handed_to_device(&mut self, rq: RequestId) {
        self.pool[rq].place = Place::Device;
        self.in_device.push(rq);
    }

    /// `serve N [each=1ms]`: the number of requests of each task that were served in a row.
    pub(super) fn serve(&mut self, rest: &str) -> Printed {
        let (mut calls, mut each) = (1, span("1ms")?);
        for word in rest.split_whitespace() {
            match word.strip_prefix("each=") {
                Some(length) => each = span(length)?,
                None => calls = parse_number(word)?,
            }
        }
        let mut who = Vec::new();
        while calls > 0 {
            calls -= 1;
            if self.dispatch_once(self.clocks().tick).is_some() {
                let rq = self.in_device[self.in_device.len() - 1];
                who.push(self.submitter(rq));
                self.move_clock(self.around.time + each);
                self.in_device.pop();
                let lines = self.around.take_printed();
                self.end(rq);
                // Whether queues must be run is not printed here.
                let more = self.around.take_printed();
                let more = more.into_iter().filter(|line| line != "run");
                lines
                    .into_iter()
                    .chain(more)
                    .for_each(|line| self.around.print(line));
            } else {
                who.push("-".to_owned());
                match self.around.expiry() {
                    Some(expiry) => drop(self.move_clock(expiry)),
                    None => calls = 0,
                }
            }
        }
        self.around.print(runs_of(&who));
        Ok(Vec::new())
    }

    /// `pull N`: as many dispatches at once, printed in the same way.
    pub(super) fn pull(&mut self, rest: &str) -> Printed {
        let calls = parse_number(rest)?;
        let dispatched = |queue: &mut PolicyQueue| {
            queue.dispatch_once(queue.clocks().tick)?;
            queue.in_device.last().map(|&rq| queue.submitter(rq))
        };
        let who: Vec<String> = (0..calls)
            .map(|_: u32| dispatched(self).unwrap_or("-".to_owned()))
            .collect();
        self.around.print(runs_of(&who));
        Ok(Vec::new())
    }

    fn submitter(&self, rq: RequestId) -> String {
        let by = self.around.name_of(self.pool[rq].io_context);
        by.trim_start_matches(" by=").to_owned()
    }
}

/// `D 3a b`: the tasks that were served, with the number of requests in a row.
fn runs_of(who: &[String]) -> String {
    let runs = who.chunk_by(|one, other| one == other);
    let runs = runs.map(|run| match run.len() {
        1 => format!(" {}", run[0]),
        number => format!(" {number}{}", run[0]),
    });
    format!("D{}", runs.collect::<String>())
}
