//! From fio jobs to the threads of a plan.

use blkmq::request::{IoClass, IoPrio, Op};
use blkmq::rules::Rules;
use blkmq::time::Duration;
use trace::fio::{self, CpusPolicy, Extent, FioEngine, FioJob, SizeRange};

use super::{Disks, Result, Scenario};
use sim::plan::{
    BlockSize, ControlPlan, DeviceKind, DiskPlan, Distribution, Engine, FileService, MachinePlan,
    Mix, Order, PerDirection, QueuePlan, SizeShare, Submitter, ThreadPlan, ZonesPlan,
};

mod control;
mod dealt;
mod region;
mod writes;

/// Most threads of a run.
pub(super) const THREADS_MAX: u64 = 4096;
/// Most blocks in the random maps of a run: 256 MiB.
const MAPS_MAX: u64 = 1 << 31;
/// Most bios in flight of a run: about what fits into memory.
const BIOS_MAX: u64 = 1 << 24;

/// Most bios of a thread in flight: its depth, each I/O split at the queue's limits, and one flush.
pub(super) fn bios_in_flight(thread: &ThreadPlan, queue: &QueuePlan) -> u64 {
    if thread.buffered.is_some() {
        return queue.pages_under_read(super::cached::pages_asked(thread));
    }
    let limits = &queue.limits;
    let parts = |op: Op, size: BlockSize| u64::from(limits.parts_max(op, size.max_sectors));
    // What is written is read back.
    let back = thread
        .writes
        .verify
        .map_or(thread.block.read, |_| thread.block.write);
    let per_io = parts(Op::Read, thread.block.read)
        .max(parts(Op::Read, back))
        .max(parts(Op::Write, thread.block.write))
        .max(parts(Op::Discard, thread.block.trim));
    u64::from(thread.iodepth) * per_io + 1
}

/// All threads, and the number of phases that stonewall makes.
pub(super) fn threads(
    scenario: &Scenario,
    jobs: &[FioJob],
    machine: &MachinePlan,
    disks: &[DiskPlan],
    named: &Disks<'_>,
) -> Result<(Vec<ThreadPlan>, u16)> {
    let workers = |job: &FioJob| if job.control.offload { job.iodepth } else { 0 };
    let of_job = |job: &FioJob| u64::from(job.numjobs) * (1 + u64::from(workers(job)));
    let total: u64 = jobs.iter().map(of_job).sum();
    if total > THREADS_MAX {
        let what = format!("{total} threads in all jobs; at most {THREADS_MAX}");
        return Err(scenario.error("job", what));
    }
    let mut threads = Vec::new();
    let mut phase = 0;
    let entries = entries(jobs);
    let controls = control::of_jobs(scenario, jobs)?;
    for (index, options) in jobs.iter().enumerate() {
        let job = Written {
            scenario,
            index,
            entry: entries[index],
            options,
        };
        if index > 0 && options.stonewall {
            phase += 1;
        }
        let files = named.of_job(scenario, index, options)?;
        let mut template = job.template(job.cpus(machine)?, disks, &files)?;
        template.control = controls[index].clone();
        for clone in 0..options.numjobs as u16 {
            let mut thread = job.clone_of(&template, clone, phase);
            if options.offset_increment != Extent::Bytes(0) {
                (thread.files, _) = job.files(disks, &files, &template.block, clone)?;
            }
            if options.ioengine == FioEngine::TIoUring {
                thread.files = job.dealt(&template.files, clone)?;
            }
            threads.push(thread);
        }
    }
    keep_maps(&mut threads);
    let bios: u64 = threads
        .iter()
        .flat_map(|thread| thread.files.iter().map(move |file| (thread, file)))
        .map(|(thread, file)| bios_in_flight(thread, &disks[file.disk.index()].queue))
        .sum();
    if bios > BIOS_MAX {
        let what = format!("{bios} bios in flight in all jobs; at most {BIOS_MAX}");
        return Err(scenario.error("job", what));
    }
    Ok((threads, phase + 1))
}

/// Random maps are kept if all together are not too large.
fn keep_maps(threads: &mut [ThreadPlan]) {
    let blocks = |thread: &ThreadPlan| {
        let [read, write, trim] = [thread.block.read, thread.block.write, thread.block.trim];
        let least = [read, write, trim].map(|block| block.min_sectors);
        let least = least.into_iter().min().map_or(1, u64::from);
        let sectors: u64 = thread.files.iter().map(|file| file.region_sectors).sum();
        sectors / least
    };
    let kept = threads.iter().filter(|thread| thread.keeps_map);
    if kept.map(blocks).sum::<u64>() > MAPS_MAX {
        for thread in threads {
            thread.keeps_map = false;
        }
    }
}

/// The report's entry of each job, as in show_run_stats() of fio: one with group_reporting joins
/// the entry before it, if that is of its group. Clones are always summed up.
pub(super) fn entries(jobs: &[FioJob]) -> Vec<u16> {
    let apart = |job: &FioJob| {
        let program = job.ioengine == FioEngine::TIoUring;
        program || job.stonewall || job.new_group || !job.group_reporting
    };
    let mut entry = 0;
    let numbers = jobs.iter().enumerate().map(|(index, job)| {
        entry += u16::from(index > 0 && apart(job));
        entry
    });
    numbers.collect()
}

struct Written<'a> {
    scenario: &'a Scenario,
    index: usize,
    entry: u16,
    options: &'a FioJob,
}

impl Written<'_> {
    fn error<T>(&self, option: &str, what: String) -> Result<T> {
        // The option may be written under another of its names.
        let written = self
            .options
            .setting(option)
            .map_or(option, |setting| setting.option.as_str());
        let field = self.scenario.job_field(self.index, written);
        Err(self.scenario.error(&field, what))
    }

    /// A clone: same but for its number, CPU and seed.
    fn clone_of(&self, template: &ThreadPlan, clone: u16, phase: u16) -> ThreadPlan {
        let cpus = match self.options.cpus_allowed_policy {
            CpusPolicy::Shared => template.cpus.clone(),
            CpusPolicy::Split => vec![template.cpus[usize::from(clone) % template.cpus.len()]],
        };
        // randrepeat: positions do not depend on the run's seed.
        let run = if self.options.randrepeat {
            0
        } else {
            self.scenario.seed.unwrap_or(1)
        };
        let parts = [
            run,
            self.options.randseed.unwrap_or(0),
            self.index as u64,
            u64::from(clone),
        ];
        let random_seed = parts.into_iter().fold(0, |hash, part| mix64(hash ^ part));
        ThreadPlan {
            clone,
            phase,
            cpus,
            random_seed,
            ..template.clone()
        }
    }

    /// Refuses options that the device or the model does not support.
    fn possible(&self, disk: &DiskPlan) -> Result<()> {
        let (options, device, limits) = (self.options, &disk.device, &disk.queue.limits);
        if let Some((option, what)) = super::cached::refused(options, disk) {
            return self.error(option, what);
        }
        if options.ioengine == FioEngine::Null {
            return Ok(());
        }
        if options.rw.trim && limits.max_discard_sectors == 0 {
            let instead = match device.kind {
                DeviceKind::NullBlk(_) => "--device null_blk,memory_backed=1,discard=1 does",
                DeviceKind::ScsiDebug(_) => "--device scsi_debug,lbpu=1 does",
                _ => "--device nvme does",
            };
            let what = format!(
                "{} takes no discards as it is set up; {instead}",
                device.name
            );
            return self.error("rw", what);
        }
        let rules = &disk.queue.rules;
        let is_whole = Rules::PRESETS.iter().any(|known| known.name == rules.name);
        if options.ioengine == FioEngine::IoUringCmd
            && !(matches!(device.kind, DeviceKind::Nvme(_)) && is_whole)
        {
            let what = "io_uring_cmd needs an NVMe drive and a kernel since 5.19".to_string();
            return self.error("ioengine", what);
        }
        let is_old = rules.single_queue.is_none() && !is_whole;
        if options.hipri && !options.polls() && is_old {
            let what = format!("not modelled: {} polls in preadv2(2)", rules.name);
            return self.error("hipri", what);
        }
        if options.polls() && device.poll_queues == 0 {
            let what = "the device has no poll queues (device.poll_queues)".to_string();
            return self.error("hipri", what);
        }
        Ok(())
    }

    fn template(&self, cpus: Vec<u16>, disks: &[DiskPlan], files: &[u16]) -> Result<ThreadPlan> {
        let job = self.options;
        let block = self.block();
        let (files, files_bytes) = self.files(disks, files, &block, 0)?;
        let (io_bytes, rounds) = self.ends(files_bytes);
        Ok(ThreadPlan {
            name: job.name.clone(),
            job: self.index as u16,
            entry: self.entry,
            clone: 0,
            phase: 0,
            cpus,
            submitter: submitter(job),
            buffered: super::cached::buffered(job),
            hands_over: false,
            shares_context: false,
            server: None,
            engine: engine(job),
            order: order(job),
            distribution: distribution(job),
            new_every: job.rw_every,
            keeps_map: order(job) == Order::RandomOnce && !has_one_size(job),
            sequencer: job.rw_sequencer,
            random_percent: each(&job.percentage_random, |percent| *percent),
            gap_sectors: job.rw_gap / 512,
            zones: zones(job),
            mix: mix(job),
            block,
            splits: each(&job.bssplit, |sizes| shares(sizes)),
            files,
            file_service: file_service(job),
            iodepth: job.iodepth,
            batch_submit: batch_submit(job),
            batch_complete_min: job.iodepth_batch_complete_min,
            batch_complete_max: job.iodepth_batch_complete_max,
            iodepth_low: job.iodepth_low,
            polled: job.polls(),
            fixed_buffers: job.fixedbufs,
            registered_files: job.registerfiles,
            passthrough: job.ioengine == FioEngine::IoUringCmd,
            force_async: job.control.force_async,
            offload: job.control.offload,
            thread: job.thread,
            gtod_reduce: job.gtod_reduce,
            priority: priority(job),
            group: 0,
            fsync: job.fsync,
            fdatasync: job.fdatasync,
            thinktime: job.thinktime,
            thinktime_blocks: writes::thinktime_blocks(job),
            thinktime_counts: job.thinktime_blocks_type,
            rate_bytes: rate_bytes(job),
            rate_process: job.rate_process,
            survives_read: job.continue_on_error.read,
            survives_write: job.continue_on_error.write,
            random_seed: 0,
            startdelay: job.startdelay,
            ramp_time: job.ramp_time,
            runtime: job.runtime.unwrap_or(Duration(u64::MAX)),
            counts_tail: self.as_fio() && job.ioengine != FioEngine::TIoUring,
            number_ios: self.number_ios().unwrap_or(u64::MAX),
            io_bytes,
            rounds,
            align_sectors: each(&job.blockalign, |bytes| (bytes / 512) as u32),
            writes: writes::plan(job),
            cmdprio: writes::cmdprio(job),
            control: ControlPlan::default(),
        })
    }

    fn as_fio(&self) -> bool {
        self.scenario.count_tail == Some(true)
    }

    /// fio starts over until the runtime is over; a trim and a write are two I/Os of trimwrite. Of
    /// several rounds each has as many (exceeds_number_ios()).
    fn number_ios(&self) -> Option<u64> {
        let job = self.options;
        let both = if job.rw.trim && job.rw.write { 2 } else { 1 };
        let ends = !(self.as_fio() && job.time_based);
        job.number_ios
            .filter(|_| ends)
            .map(|ios| ios.saturating_mul(both * u64::from(job.loops)))
    }

    fn cpus(&self, machine: &MachinePlan) -> Result<Vec<u16>> {
        let Some(cpus) = &self.options.cpus_allowed else {
            return Ok((0..machine.cpus).collect());
        };
        match cpus.iter().find(|cpu| **cpu >= machine.cpus) {
            Some(cpu) => {
                let what = format!("there is no CPU {cpu}; they are 0 to {}", machine.cpus - 1);
                self.error("cpus_allowed", what)
            }
            None => Ok(cpus.clone()),
        }
    }

    fn block(&self) -> PerDirection<BlockSize> {
        let sectors = |bytes: u64| (bytes / 512).max(1) as u32;
        each(&self.options.bs, |range| BlockSize {
            min_sectors: sectors(range.min),
            max_sectors: sectors(range.max),
        })
    }
}

/// All I/Os have the same size. The blocks of fio's map are the smallest of all directions, also of
/// those that the job does not use (rw_min_bs).
fn has_one_size(job: &FioJob) -> bool {
    let sizes = [job.bs.read, job.bs.write, job.bs.trim];
    sizes
        .iter()
        .all(|size| (size.min, size.max) == (sizes[0].min, sizes[0].min))
}

fn submitter(job: &FioJob) -> Submitter {
    match job.ioengine {
        FioEngine::TIoUring => Submitter::TIoUring {
            registered_ring: job.register_ring,
        },
        _ => Submitter::Fio,
    }
}

fn engine(job: &FioJob) -> Engine {
    match job.ioengine {
        FioEngine::IoUring | FioEngine::IoUringCmd | FioEngine::TIoUring => Engine::IoUring,
        FioEngine::Libaio => Engine::Libaio,
        FioEngine::Sync | FioEngine::Psync => Engine::Sync,
        FioEngine::PosixAio => Engine::PosixAio,
        FioEngine::Null => Engine::Null,
    }
}

/// An engine without a commit gets each I/O at once (td_io_queue()).
fn batch_submit(job: &FioJob) -> u32 {
    match job.ioengine {
        FioEngine::PosixAio => 1,
        _ => job.iodepth_batch,
    }
}

/// Only uniform positions that are multiples of the smallest block have a map (fixup_options()).
fn order(job: &FioJob) -> Order {
    let uniform = job.random_distribution == fio::Distribution::Uniform;
    let moved = |align: u64, size: SizeRange| align != 0 && align != size.min;
    let (align, bs) = (job.blockalign, job.bs);
    let aligned =
        !moved(align.read, bs.read) && !moved(align.write, bs.write) && !moved(align.trim, bs.trim);
    match (job.rw.random, uniform && aligned && !job.norandommap) {
        (false, _) => Order::Sequential,
        (true, true) => Order::RandomOnce,
        (true, false) => Order::Random,
    }
}

fn distribution(job: &FioJob) -> Distribution {
    match &job.random_distribution {
        _ if !job.rw.random => Distribution::Uniform,
        fio::Distribution::Uniform => Distribution::Uniform,
        fio::Distribution::Skewed(skew) => Distribution::Skewed(*skew),
        fio::Distribution::Zoned(zones) => Distribution::Zoned(each(zones, Clone::clone)),
    }
}

fn zones(job: &FioJob) -> Option<ZonesPlan> {
    let zones = &job.control.zones;
    zones.strided.then(|| ZonesPlan {
        size_sectors: zones.size.div_ceil(512),
        range_sectors: zones.range() / 512,
        skip_sectors: zones.skip / 512,
    })
}

fn shares(sizes: &[fio::SizeShare]) -> Vec<SizeShare> {
    let share = |size: &fio::SizeShare| SizeShare {
        sectors: (size.bytes / 512).max(1) as u32,
        percent: size.percent,
    };
    sizes.iter().map(share).collect()
}

/// rate, or rate_iops in I/Os of the smallest size (__setup_rate()).
fn rate_bytes(job: &FioJob) -> PerDirection<u64> {
    let (rate, iops, bs) = (job.rate, job.rate_iops, job.bs);
    let bytes = |rate: u64, iops: u32, size: SizeRange| match iops {
        0 => rate,
        iops => u64::from(iops) * size.min,
    };
    PerDirection {
        read: bytes(rate.read, iops.read, bs.read),
        write: bytes(rate.write, iops.write, bs.write),
        trim: bytes(rate.trim, iops.trim, bs.trim),
    }
}

fn each<T, U>(values: &fio::PerDirection<T>, value: impl Fn(&T) -> U) -> PerDirection<U> {
    PerDirection {
        read: value(&values.read),
        write: value(&values.write),
        trim: value(&values.trim),
    }
}

fn file_service(job: &FioJob) -> FileService {
    match job.file_service {
        fio::FileService::RoundRobin(ios) => FileService::RoundRobin(ios),
        fio::FileService::Random(ios) => FileService::Random(ios),
        fio::FileService::Sequential => FileService::Sequential,
        fio::FileService::Skewed(skew) => FileService::Skewed(skew),
    }
}

fn mix(job: &FioJob) -> Mix {
    let (read_percent, write_percent, trim_percent) = match (job.rw.read, job.rw.write, job.rw.trim)
    {
        (true, true, _) => (job.rwmixread, 100 - job.rwmixread, 0),
        (true, false, _) => (100, 0, 0),
        // trimwrite: every block is trimmed, then written.
        (false, true, true) => (0, 50, 50),
        (false, true, false) => (0, 100, 0),
        (false, false, _) => (0, 0, 100),
    };
    Mix {
        read_percent,
        write_percent,
        trim_percent,
    }
}

fn priority(job: &FioJob) -> IoPrio {
    let Some(priority) = job.priority else {
        return IoPrio::default();
    };
    let class = match priority.class {
        1 => IoClass::RealTime,
        2 => IoClass::BestEffort,
        3 => IoClass::Idle,
        _ => IoClass::None,
    };
    IoPrio {
        class,
        level: priority.level,
    }
}

/// Steele and Vigna's finalizer (SplitMix64): spreads neighbouring numbers over all 64 bits.
fn mix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
