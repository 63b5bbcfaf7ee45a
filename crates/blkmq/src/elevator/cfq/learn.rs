//! Estimates for processes: think time and seek distance.
//!
//! Kernel: cfq_update_io_thinktime(), cfq_update_io_seektime() in block/cfq-iosched.c (2.6.32 to
//! 4.20).

use super::{Cfq, QId};
use crate::request::{IoContextId, Request};
use crate::rules::{Seeks, SliceIdling, Split};

/// Mean distance of requests above which a queue is seeky, and below which queues cooperate, in
/// sectors (CFQQ_SEEK_THR, CFQQ_CLOSE_THR).
pub(super) const FAR: u64 = 8 * 1024;
/// Distance of a request that sets a bit of the seek history.
const FAR_OF_BIT: u64 = 8 * 100;
/// On a non-rotational drive, a request with fewer sectors sets the bit.
const SMALL_OF_BIT: u32 = 2 * 32;
/// With more bits set a queue is seeky.
const SEEKY_BITS: u32 = 32 / 8;
/// The weight from which a mean is valid, which the third sample reaches.
const VALID: u64 = 80;

/// Think time, in the unit of the clock (struct cfq_ttime).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ThinkTime {
    pub(super) last_end: i64,
    pub(super) total: u64,
    pub(super) samples: u64,
    pub(super) mean: i64,
}

impl ThinkTime {
    pub(super) fn is_valid(&self) -> bool {
        self.samples > VALID
    }

    fn update(&mut self, now: i64, idle: i64) {
        let thought = (now - self.last_end).clamp(0, 2 * idle).cast_unsigned();
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * thought) / 8;
        self.mean = ((self.total + 128) / self.samples).cast_signed();
    }

    /// Longer than idling is worth (cfq_io_thinktime_big()).
    pub(super) fn is_long(&self, idle: i64) -> bool {
        self.is_valid() && self.mean > idle
    }
}

/// Mean distance of requests, sectors (2.6.32, 2.6.33).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct SeekMean {
    samples: u64,
    total: u64,
    pub(super) mean: u64,
}

impl SeekMean {
    pub(super) fn is_valid(&self) -> bool {
        self.samples > VALID
    }

    pub(super) fn is_seeky(&self) -> bool {
        self.mean > FAR
    }

    fn update(&mut self, distance: u64) {
        // One bound for the first three samples, another one for later samples.
        let most = match self.samples {
            0..=60 => self.mean * 4 + 2 * 1024 * 1024,
            _ => self.mean * 4 + 2 * 1024 * 64,
        };
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * distance.min(most)) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
    }
}

/// Distance from the end of the last request; none if there was none.
fn distance(last: u64, sector: u64) -> u64 {
    match last {
        0 => 0,
        last => last.abs_diff(sector),
    }
}

impl Cfq {
    /// cfq_update_io_thinktime().
    pub(super) fn update_think_time(&mut self, q: QId, p: IoContextId) {
        let (now, idle) = (self.now, self.tuned.slice_idle);
        if self.rules.idling != SliceIdling::ByTreeAndGroup {
            self.process(p).think.update(now, idle);
            return;
        }
        if self.queues[q].flags.sync {
            self.process(p).think.update(now, idle);
            let (group, tree) = self.queues[q].tree.expect("it has a request");
            let tree = &mut self.groups[group].trees[usize::from(tree)];
            tree.think.update(now, idle);
        }
        let group = self.queues[q].group;
        self.groups[group].think.update(now, self.tuned.group_idle);
    }

    /// cfq_update_io_seektime(); also records the end of the queue's last request.
    pub(super) fn update_seeks(&mut self, q: QId, rq: &Request) {
        let (sector, end) = (rq.sector.0, rq.end().0);
        match self.rules.seeks {
            Seeks::MeanOfProcess => {
                let process = self.process(rq.io_context);
                let far = distance(process.last_request_pos, sector);
                process.seeks.update(far);
            }
            Seeks::MeanOfQueue => {
                let queue = &mut self.queues[q];
                let far = distance(queue.last_request_pos, sector);
                queue.seeks.update(far);
            }
            Seeks::History => {
                let rotational = self.rotational;
                let queue = &mut self.queues[q];
                let far = match rotational {
                    true => distance(queue.last_request_pos, sector) > FAR_OF_BIT,
                    false => rq.sectors.0 < SMALL_OF_BIT,
                };
                queue.seek_history = queue.seek_history << 1 | u32::from(far);
            }
        }
        self.note_seeky_since(q);
        // The kernel sets this after the idle window, which does not depend on it.
        self.process(rq.io_context).last_request_pos = end;
        self.queues[q].last_request_pos = end;
    }

    /// The first version of the split: records since when a shared queue has been seeky.
    fn note_seeky_since(&mut self, q: QId) {
        if self.rules.merge.split != Split::AfterSecond {
            return;
        }
        let (seeky, now) = (self.queues[q].seeks.is_seeky(), self.now);
        let tie = self.ties.tie_mut(q);
        let tie = tie.expect("a queue with a request is in memory");
        if tie.coop {
            tie.seeky_since = match seeky {
                true => tie.seeky_since.or(Some(now)),
                false => None,
            };
        }
    }

    /// The requests are far from each other (CFQQ_SEEKY). By rules that measure processes, the
    /// requests of `p`.
    pub(super) fn is_seeky(&self, q: QId, p: Option<IoContextId>) -> bool {
        match self.rules.seeks {
            Seeks::MeanOfProcess => {
                p.is_some_and(|p| self.processes[p.0 as usize].seeks.is_seeky())
            }
            Seeks::MeanOfQueue => self.queues[q].seeks.is_seeky(),
            Seeks::History => self.queues[q].seek_history.count_ones() > SEEKY_BITS,
        }
    }

    /// The same, after enough samples.
    pub(super) fn is_surely_seeky(&self, q: QId, p: IoContextId) -> bool {
        let valid = match self.rules.seeks {
            Seeks::MeanOfProcess => self.processes[p.0 as usize].seeks.is_valid(),
            Seeks::MeanOfQueue => self.queues[q].seeks.is_valid(),
            Seeks::History => true,
        };
        valid && self.is_seeky(q, Some(p))
    }
}
