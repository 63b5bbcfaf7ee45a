//! Runs of hardware queues: how many, by requesting CPU, and how many offered the driver no
//! request.
//!
//! Counted where a run ends (`machine/burst.rs`), and where kblockd takes a work item
//! (`machine/work.rs`); only while a run is watched.

use blkmq::request::{HctxId, QueueId};

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RunStats {
    /// All: direct runs, and work items of kblockd.
    pub runs: u64,
    /// Work items of kblockd that only CPUs of other hctxs queued.
    pub foreign: u64,
    /// Those that offered the driver no request.
    pub in_vain: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Runs {
    hctxs: Box<[RunStats]>,
    /// Number of each queue's first hctx.
    first: Box<[u32]>,
    /// By level of a CPU and queue: state of its run. A run of a mapped queue may have runs of its
    /// paths inside.
    levels: Box<[Known]>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Known {
    /// It has offered the driver a request.
    offered: bool,
    /// No CPU of its hctx asked for it.
    foreign: bool,
}

impl Runs {
    /// No runs yet. `hctxs`: how many each queue has; `owners`: how many levels there are.
    pub(super) fn new(hctxs: &[usize], owners: usize) -> Runs {
        let mut first = Vec::new();
        let mut all = 0;
        for &count in hctxs {
            first.push(all as u32);
            all += count;
        }
        Runs {
            hctxs: vec![RunStats::default(); all].into(),
            first: first.into(),
            levels: vec![Known::default(); owners * hctxs.len()].into(),
        }
    }

    fn of(&mut self, queue: QueueId, hctx: HctxId) -> &mut RunStats {
        let first = self.first[queue.index()] as usize;
        &mut self.hctxs[first + usize::from(hctx.0)]
    }

    /// The run of this queue that a level is in.
    fn known(&mut self, queue: QueueId, owner: u32) -> &mut Known {
        &mut self.levels[owner as usize * self.first.len() + queue.index()]
    }

    /// It offers the driver a request.
    pub(super) fn offers(&mut self, queue: QueueId, owner: u32) {
        self.known(queue, owner).offered = true;
    }

    /// It has ended.
    pub(super) fn add(&mut self, queue: QueueId, hctx: HctxId, owner: u32) {
        let known = core::mem::take(self.known(queue, owner));
        let stats = self.of(queue, hctx);
        stats.runs += 1;
        stats.in_vain += u64::from(!known.offered);
        stats.foreign += u64::from(known.foreign);
    }

    /// No CPU of the hctx asked for it; it begins.
    pub(super) fn foreign(&mut self, queue: QueueId, owner: u32) {
        self.known(queue, owner).foreign = true;
    }

    pub(super) fn stats(&self) -> Vec<Vec<RunStats>> {
        let ends = self.first.iter().skip(1).map(|&first| first as usize);
        let ends = ends.chain([self.hctxs.len()]);
        let queues = self.first.iter().zip(ends);
        let of_queue = |(&first, end): (&u32, usize)| self.hctxs[first as usize..end].to_vec();
        queues.map(of_queue).collect()
    }

    /// Forgets everything (end of the ramp).
    pub(super) fn reset(&mut self) {
        self.hctxs.fill(RunStats::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hctx_of_each_queue_has_its_own() {
        let mut runs = Runs::new(&[2, 1], 8);
        runs.offers(QueueId(0), 5);
        runs.add(QueueId(0), HctxId(1), 5);
        runs.foreign(QueueId(1), 5);
        runs.add(QueueId(1), HctxId(0), 5);
        let of = |runs, foreign, in_vain| RunStats {
            runs,
            foreign,
            in_vain,
        };
        let all = [vec![of(0, 0, 0), of(1, 0, 0)], vec![of(1, 1, 1)]];
        assert_eq!(runs.stats(), all);
        runs.reset();
        assert_eq!(runs.stats(), [vec![of(0, 0, 0); 2], vec![of(0, 0, 0)]]);
    }

    /// A clone that is inserted and run while its mapped queue is run.
    #[test]
    fn a_run_inside_another_is_counted_by_itself() {
        let mut runs = Runs::new(&[1, 1], 8);
        runs.foreign(QueueId(0), 5);
        runs.offers(QueueId(0), 5);
        runs.offers(QueueId(1), 5);
        runs.add(QueueId(1), HctxId(0), 5);
        runs.add(QueueId(1), HctxId(0), 5);
        runs.add(QueueId(0), HctxId(0), 5);
        let of = |runs, foreign, in_vain| RunStats {
            runs,
            foreign,
            in_vain,
        };
        assert_eq!(runs.stats(), [vec![of(1, 1, 0)], vec![of(2, 0, 1)]]);
    }
}
