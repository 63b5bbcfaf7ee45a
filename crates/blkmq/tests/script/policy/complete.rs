//! Ends: `complete`, `requeue`, `exit`.

use super::{PolicyQueue, Printed};
use blkmq::elevator::{InsertAt, completed_level};
use blkmq::request::{BioId, Place, RequestId};

impl PolicyQueue {
    pub(super) fn complete(&mut self, rest: &str) -> Printed {
        if rest == "all" {
            // The driver completes what it has looked at.
            let held = self.held.clone();
            let (left, ended): (Vec<_>, Vec<_>) = core::mem::take(&mut self.in_device)
                .into_iter()
                .partition(|rq| held.contains(rq));
            self.in_device = left;
            for rq in ended {
                self.end(rq);
            }
            return Ok(Vec::new());
        }
        for name in rest.split(',') {
            let rq = self.take_from_device(name.trim())?;
            if self.held.contains(&rq) {
                self.in_device.push(rq);
                return Err(format!("the driver has not looked at {name:?}"));
            }
            self.end(rq);
        }
        Ok(Vec::new())
    }

    pub(super) fn requeue(&mut self, rest: &str) -> Printed {
        let rq = self.take_from_device(rest)?;
        if self.hooks().requeued {
            let after = self.call(|policy, pool, now| policy.requeued(pool, rq, now));
            self.after(after);
        }
        if self.is_single() {
            self.in_device.push(rq);
            self.held.push(rq);
            return Ok(Vec::new());
        }
        self.pool[rq].place = Place::Path;
        Ok(self.insert_request(rq, InsertAt::Head))
    }

    pub(super) fn exit(&mut self, name: &str) -> Vec<String> {
        let task = self.around.task(name);
        if self.hooks().exits {
            let after = self.call(|policy, pool, now| policy.exits(pool, task, now));
            self.after(after);
        }
        Vec::new()
    }

    fn take_from_device(&mut self, name: &str) -> Result<RequestId, String> {
        let is_it = |&rq: &RequestId| {
            let full = self.name(rq);
            full == name || full.split(" by=").next() == Some(name)
        };
        let at = self.in_device.iter().position(is_it);
        Ok(self
            .in_device
            .remove(at.ok_or(format!("{name:?} is not in the device"))?))
    }

    /// The device completes a request.
    pub(super) fn end(&mut self, rq: RequestId) {
        if self.hooks().completed {
            let after = self.call(|policy, pool, now| policy.completed(pool, rq, now));
            self.after(after);
        }
        self.finish(rq);
    }

    /// Ends a request: its bios, its count, its slot.
    pub(super) fn finish(&mut self, rq: RequestId) {
        if self.hooks().finished {
            let after = self.call(|policy, pool, now| policy.finished(pool, rq, now));
            self.after(after);
        }
        for bio in self.pool.bios_of(rq).collect::<Vec<BioId>>() {
            self.pool.free_bio(bio);
        }
        if let Some(level) = completed_level(self.pool[rq].elv_priv) {
            self.completed[level] += 1;
        }
        self.pool[rq].place = Place::Free;
        self.pool.reset(rq);
    }
}
