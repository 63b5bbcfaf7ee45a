//! Calls of the single-queue path besides insertion and dispatch, as commands and after them.
//!
//! Not here: commands for both paths (`policy.rs`).

use super::{PolicyQueue, Printed};
use blkmq::elevator::{InsertAt, MayQueue, RequestPath, Scheduler};
use blkmq::request::{Place, RequestId};

impl PolicyQueue {
    /// It is of the single-queue path.
    pub(super) fn is_single(&self) -> bool {
        let info = self.scheduler.kind().info();
        info.is_some_and(|info| info.path == RequestPath::SingleQueue)
    }

    pub(super) fn set_up(&mut self, rq: RequestId) {
        let after = self.call(|policy, pool, now| policy.set_request(pool, rq, now));
        self.after(after);
    }

    /// Work that an insertion leaves to be done under its lock.
    pub(super) fn after_insertion(&mut self) {
        let mut handed = self.call(|policy, pool, _| policy.take_handed(pool));
        while let Some(rq) = handed.pop_front(&mut self.pool) {
            self.around.print(format!("handed {}", self.name(rq)));
            self.handed_to_device(rq);
            self.activated(rq);
        }
        if !self.call(|policy, _, _| policy.take_run()) {
            return;
        }
        self.around.print("run at once".to_owned());
        for _ in 0..self.runs {
            let line = self
                .dispatch_once(self.clocks().tick)
                .unwrap_or("-".to_owned());
            self.around.print(line);
        }
        self.call(|policy, _, _| policy.ran());
    }

    pub(super) fn may(&mut self, rest: &str) -> Printed {
        let bio = self.parse_bio(rest)?;
        let wanted = self.wanted(bio);
        self.pool.free_bio(bio);
        let answer = self.call(|policy, _, now| policy.may_queue(wanted, now));
        let word = match answer {
            MayQueue::May => "may",
            MayQueue::Must => "must",
        };
        Ok(vec![word.to_owned()])
    }

    pub(super) fn alloc(&mut self, rest: &str) -> Printed {
        self.each_request(rest, |queue, bio, _| {
            let free = queue.pool.iter().find(|(_, rq)| rq.place == Place::Free);
            let rq = free.map(|(rq, _)| rq).ok_or("full")?;
            queue.pool.reset(rq);
            queue.pool.bio_to_request(rq, bio);
            queue.pool[rq].place = Place::Path;
            queue.pool[rq].use_sched = true;
            queue.pool[rq].start_time = queue.around.time;
            queue.set_up(rq);
            queue.allocated.push(rq);
            Ok(())
        })
    }

    /// Removes requests with these names from a list.
    pub(super) fn named(&self, list: &[RequestId], rest: &str) -> Result<Vec<RequestId>, String> {
        let found = |name: &str| {
            let is_it = |&&rq: &&RequestId| {
                let full = self.name(rq);
                full == name || full.split(" by=").next() == Some(name)
            };
            let found = list.iter().find(is_it).copied();
            found.ok_or(format!("{name:?} is not there"))
        };
        rest.split(',').map(|name| found(name.trim())).collect()
    }

    pub(super) fn add(&mut self, rest: &str) -> Printed {
        for rq in self.named(&self.allocated, rest)? {
            self.allocated.retain(|&other| other != rq);
            for line in self.insert_request(rq, InsertAt::Sorted) {
                self.around.print(line);
            }
        }
        Ok(Vec::new())
    }

    pub(super) fn free(&mut self, rest: &str) -> Printed {
        for rq in self.named(&self.allocated, rest)? {
            self.allocated.retain(|&other| other != rq);
            self.finish(rq);
        }
        Ok(Vec::new())
    }

    pub(super) fn activate(&mut self, rest: &str) -> Printed {
        for rq in self.named(&self.held, rest)? {
            self.held.retain(|&other| other != rq);
            self.activated(rq);
        }
        Ok(Vec::new())
    }

    pub(super) fn activated(&mut self, rq: RequestId) {
        if self.is_single() {
            self.call(|policy, pool, now| policy.activated(pool, rq, now));
        }
    }

    pub(super) fn force(&mut self) -> Vec<String> {
        let mut all = self.call(Scheduler::drain);
        while let Some(rq) = all.pop_front(&mut self.pool) {
            self.around.print(format!("D {}", self.name(rq)));
            self.handed_to_device(rq);
            self.activated(rq);
        }
        Vec::new()
    }
}
