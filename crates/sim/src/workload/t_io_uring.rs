//! The next read of a thread of t/io_uring: its file, and the position in it.
//!
//! The pure part, as `Stream` is for fio. After init_io(), get_offset() and reap_events_uring() of
//! fio's t/io_uring.c. The random words differ: there they come from taus258, seeded with the
//! thread's number, so that no two runs are alike.

use super::{NextIo, random};
use crate::plan::{FilePlan, Order, ThreadPlan};
use crate::rng::Rng;
use blkmq::request::{IoPrio, Op, Sector, Sectors};
use blkmq::time::Duration;

/// The reads of one thread, in order.
#[derive(Clone, Debug)]
pub struct Reads {
    // Settings.
    files: Vec<FilePlan>,
    random: bool,
    sectors: u32,
    /// I/Os on one file before the thread turns to the next (file_depth()).
    file_depth: u32,

    // State.
    rng: Rng,
    /// By file: I/Os prepared and not reaped, and the position of its next sequential one.
    pending: Vec<u32>,
    cursors: Vec<u64>,
    current: usize,
}

impl Reads {
    /// The reads of a thread, from the beginning.
    ///
    /// Panics if a file holds less than three blocks.
    pub fn new(plan: &ThreadPlan) -> Reads {
        let sectors = plan.block.read.min_sectors;
        for file in &plan.files {
            let blocks = file.region_sectors / u64::from(sectors);
            assert!(blocks > 2, "{} blocks in {}", blocks, plan.name);
        }
        let count = plan.files.len();
        Reads {
            files: plan.files.clone(),
            random: plan.order != Order::Sequential,
            sectors,
            file_depth: plan.iodepth.div_ceil(count as u32),
            rng: random(plan, "offset"),
            pending: vec![0; count],
            cursors: vec![0; count],
            current: 0,
        }
    }

    /// The next read, and the number of its file. There is always one.
    pub fn next_read(&mut self) -> (u8, NextIo) {
        if self.files.len() > 1 && self.pending[self.current] >= self.file_depth {
            self.current = (self.current + 1) % self.files.len();
        }
        let file = self.current;
        self.pending[file] += 1;
        let io = NextIo {
            op: Op::Read,
            disk: self.files[file].disk,
            prio: IoPrio::default(),
            sector: Sector(self.files[file].first_sector + self.offset(file)),
            sectors: Sectors(self.sectors),
            not_before: Duration::ZERO,
        };
        (file as u8, io)
    }

    /// An I/O of this file was reaped.
    pub fn reaped(&mut self, file: u8) {
        self.pending[usize::from(file)] -= 1;
    }

    /// In sectors from the start of the file.
    fn offset(&mut self, file: usize) -> u64 {
        let (size, sectors) = (self.files[file].region_sectors, u64::from(self.sectors));
        if self.random {
            // max_blocks is one less than there are, and the remainder leaves one more out.
            return self.rng.below(size / sectors - 2) * sectors;
        }
        let offset = self.cursors[file];
        let next = offset + sectors;
        self.cursors[file] = if next + sectors > size { 0 } else { next };
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::thread;
    use super::{NextIo, Reads};
    use crate::plan::{DiskId, FilePlan, Order, ThreadPlan};

    fn on_files(count: u16, order: Order) -> ThreadPlan {
        let file = |disk| FilePlan {
            disk: DiskId(disk),
            block_sectors: 1,
            first_sector: 0,
            region_sectors: 47,
            has_rest: false,
        };
        ThreadPlan {
            order,
            iodepth: 4,
            files: (0..count).map(file).collect(),
            ..thread()
        }
    }

    fn sectors(plan: &ThreadPlan, count: usize) -> Vec<u64> {
        let mut reads = Reads::new(plan);
        let mut next = || {
            let (file, NextIo { sector, .. }) = reads.next_read();
            reads.reaped(file);
            sector.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn sequential_reads_begin_again_where_no_whole_block_is_left() {
        // Blocks of 8 sectors; the sixth would extend over the end.
        let plan = on_files(1, Order::Sequential);
        assert_eq!(sectors(&plan, 7), [0, 8, 16, 24, 32, 0, 8]);
    }

    #[test]
    fn random_reads_leave_out_the_last_two_blocks_and_remember_nothing() {
        let plan = on_files(1, Order::Random);
        let all = sectors(&plan, 200);
        assert_eq!(all, sectors(&plan, 200));
        for block in 0..3 {
            assert!(all.contains(&(block * 8)));
        }
        assert!(all.iter().all(|sector| sector % 8 == 0 && *sector < 24));
    }

    #[test]
    fn a_file_gets_its_share_of_the_depth_before_the_next_one() {
        let mut reads = Reads::new(&on_files(2, Order::Random));
        let mut files =
            |count: usize| -> Vec<u8> { (0..count).map(|_| reads.next_read().0).collect() };
        assert_eq!(files(4), [0, 0, 1, 1]);
        let mut reads = Reads::new(&on_files(3, Order::Random));
        let mut files =
            |count: usize| -> Vec<u8> { (0..count).map(|_| reads.next_read().0).collect() };
        assert_eq!(files(3), [0, 0, 1]);
        // It stays with a file that has room again.
        reads.reaped(1);
        let mut files =
            |count: usize| -> Vec<u8> { (0..count).map(|_| reads.next_read().0).collect() };
        assert_eq!(files(3), [1, 1, 2]);
    }
}
