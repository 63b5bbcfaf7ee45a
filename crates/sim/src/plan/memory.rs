//! The memory of a run, added up from its plan before any of it is taken.
//!
//! Counted are the parts that grow with what a scenario may ask for: requests and bios of disks
//! that are used, I/Os, histograms and maps of threads, pages of the page cache.

use std::mem::size_of;

use blkmq::env::Line;
use blkmq::request::{Bio, Slot};

use super::{DiskPlan, FilePlan, Plan, ThreadPlan};

/// Bytes of a request beside its slot: its entries at the device.
const OF_REQUEST: u64 = 32;
/// Bytes of an I/O of a thread, whose lines are counted apart.
const OF_IO: u64 = 96;
/// Bytes of a hardware queue: its own, its locks' and its bits' state.
const OF_HCTX: u64 = 4096;
/// Bytes of a CPU: its own state, and prices of cache lines.
const OF_CPU: u64 = 16_384;
/// Bytes of a software queue, which each queue has for each CPU, with its lock.
const OF_CTX: u64 = 512;
/// Bytes of the place where a CPU begins to search a map of tags.
const OF_HINT: u64 = 4;
/// Bytes of a histogram of fio's latencies.
const OF_HISTOGRAM: u64 = 15_000;
/// Bytes of a page of the page cache.
const OF_PAGE: u64 = 32;
/// Bytes of the figures of a job, most of them latencies by direction. Few jobs take 1 MB each.
const OF_JOB: u64 = 450_000;

impl Plan {
    /// About how many bytes a simulator of this plan allocates at its setup.
    pub fn memory(&self) -> u64 {
        let disks: u64 = self.queues().map(DiskPlan::memory).sum();
        let cpus = self.memory_of_cpus();
        let ios: u64 = self.threads.iter().map(|of| u64::from(of.iodepth)).sum();
        let lines = self.threads.len() as u64 + ios + 2 * u64::from(self.hired());
        let files: usize = self.threads.iter().map(|of| of.files.len()).sum();
        let read = |number: &usize| {
            let mut threads = self.threads.iter().filter(|of| of.buffered.is_some());
            threads.any(|of| of.files.iter().any(|file| file.disk.index() == *number))
        };
        let cached = (0..self.disks.len()).filter(read).count();
        let jobs = self.threads.iter().map(|of| u64::from(of.entry) + 1).max();
        disks
            + cpus
            + jobs.unwrap_or(0) * OF_JOB
            + ios * OF_IO
            + lines * size_of::<Line>() as u64
            + (files * size_of::<FilePlan>()) as u64
            + self
                .threads
                .iter()
                .map(|of| self.of_thread(of))
                .sum::<u64>()
            + (cached * self.cache_pages) as u64 * OF_PAGE
    }

    /// Bytes of CPUs and of what the kernel has for each CPU in each queue.
    pub fn memory_of_cpus(&self) -> u64 {
        let cpus = u64::from(self.machine.cpus);
        let of_queue = |disk: &DiskPlan| {
            let maps = if disk.capacity.sched_tags > 0 { 2 } else { 1 };
            OF_CTX + maps * u64::from(disk.capacity.hctxs) * OF_HINT
        };
        cpus * (OF_CPU + self.queues().map(of_queue).sum::<u64>())
    }

    /// Bytes of the histograms of fio's output, if that is asked for, and of the maps of blocks.
    fn of_thread(&self, thread: &ThreadPlan) -> u64 {
        let of = self.output_of(thread.job);
        let kinds = [of.slat_percentiles, of.clat_percentiles, of.lat_percentiles];
        let kinds = kinds.iter().filter(|wanted| **wanted).count() as u64;
        let blocks = [thread.block.read, thread.block.write, thread.block.trim];
        let least = blocks.iter().map(|block| block.min_sectors).min();
        let least = u64::from(least.unwrap_or(1).max(1));
        let files = thread.files.iter().filter(|_| thread.keeps_map);
        let maps: u64 = files.map(|file| file.region_sectors / least / 8).sum();
        3 * kinds * OF_HISTOGRAM + maps
    }
}

impl DiskPlan {
    /// Bytes of its queue and of its part of the device.
    pub fn memory(&self) -> u64 {
        let room = self.capacity;
        let request = size_of::<Slot>() as u64 + OF_REQUEST;
        let bio = size_of::<Bio>() as u64 + 8;
        // A bit of a tag map, and the place of a request in a drive's queues.
        let tags = u64::from(room.driver_tags) * 10;
        u64::from(room.requests) * request
            + u64::from(room.bios) * bio
            + tags
            + u64::from(room.hctxs) * OF_HCTX
            + u64::from(room.bios > 0) * OF_JOB
    }
}
