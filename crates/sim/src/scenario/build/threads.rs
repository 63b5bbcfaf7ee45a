//! From fio jobs to the threads of a plan.

use blkmq::request::{IoClass, IoPrio, Op};
use blkmq::rules::QueueLimits;
use blkmq::time::Duration;
use trace::fio::{self, CpusPolicy, Extent, FioEngine, FioJob, SizeRange};

use super::{Disks, Result, Scenario};
use crate::plan::{
    BlockSize, DevicePlan, DiskId, DiskPlan, Engine, FilePlan, FileService, MachinePlan, Mix,
    Order, PerDirection, ThreadPlan,
};

/// Most threads of a run.
const THREADS_MAX: u64 = 4096;
/// Most bios in flight of a run: about what fits into memory.
const BIOS_MAX: u64 = 1 << 24;

/// Bios that a thread has in flight at most: its depth, each I/O cut up at the queue's limits, and
/// one flush.
pub(super) fn bios_in_flight(thread: &ThreadPlan, limits: &QueueLimits) -> u64 {
    let parts = |op: Op, size: BlockSize| u64::from(limits.parts_max(op, size.max_sectors));
    let per_io = parts(Op::Read, thread.block.read)
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
    let total: u64 = jobs.iter().map(|job| u64::from(job.numjobs)).sum();
    if total > THREADS_MAX {
        let what = format!("{total} threads in all jobs; at most {THREADS_MAX}");
        return Err(scenario.error("job", what));
    }
    let mut threads = Vec::new();
    let mut phase = 0;
    for (index, options) in jobs.iter().enumerate() {
        let job = Written {
            scenario,
            index,
            options,
        };
        if index > 0 && options.stonewall {
            phase += 1;
        }
        let files = named.of_job(scenario, index, options)?;
        let template = job.template(machine, disks, &files)?;
        for clone in 0..options.numjobs as u16 {
            threads.push(job.clone_of(&template, clone, phase));
        }
    }
    let bios: u64 = threads
        .iter()
        .flat_map(|thread| thread.files.iter().map(move |file| (thread, file)))
        .map(|(thread, file)| bios_in_flight(thread, &disks[file.disk.index()].queue.limits))
        .sum();
    if bios > BIOS_MAX {
        let what = format!("{bios} bios in flight in all jobs; at most {BIOS_MAX}");
        return Err(scenario.error("job", what));
    }
    Ok((threads, phase + 1))
}

struct Written<'a> {
    scenario: &'a Scenario,
    index: usize,
    options: &'a FioJob,
}

impl Written<'_> {
    fn error<T>(&self, option: &str, what: String) -> Result<T> {
        // The option may be written under another of its names.
        let written = self
            .options
            .setting(option)
            .map_or(option, |setting| setting.option.as_str());
        Err(self
            .scenario
            .error(&format!("job.{}.{written}", self.index), what))
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

    /// What the device or the model cannot do.
    fn possible(&self, disk: &DiskPlan) -> Result<()> {
        let (options, device, limits) = (self.options, &disk.device, &disk.queue.limits);
        if !options.direct && super::names_buffering(options) {
            let what = "buffered I/O is not modelled; write direct=1".to_string();
            let option = if options.setting("buffered").is_some() {
                "buffered"
            } else {
                "direct"
            };
            return self.error(option, what);
        }
        if options.rw.trim && limits.max_discard_sectors == 0 {
            let what = format!("{} takes no discards as it is set up", device.name);
            return self.error("rw", what);
        }
        if options.hipri && device.poll_queues == 0 {
            let what = "the device has no poll queues (device.poll_queues)".to_string();
            return self.error("hipri", what);
        }
        Ok(())
    }

    fn template(
        &self,
        machine: &MachinePlan,
        disks: &[DiskPlan],
        files: &[u8],
    ) -> Result<ThreadPlan> {
        let job = self.options;
        let block = self.block();
        let files = self.files(disks, files, &block)?;
        let region_sectors: u64 = files.iter().map(|file| file.region_sectors).sum();
        Ok(ThreadPlan {
            name: job.name.clone(),
            job: self.index as u16,
            clone: 0,
            phase: 0,
            cpus: self.cpus(machine)?,
            engine: engine(job),
            order: order(job),
            mix: mix(job),
            block,
            files,
            file_service: file_service(job),
            iodepth: job.iodepth,
            batch_submit: job.iodepth_batch,
            batch_complete_min: job.iodepth_batch_complete_min,
            batch_complete_max: job.iodepth_batch_complete_max,
            iodepth_low: job.iodepth_low,
            polled: job.hipri,
            fixed_buffers: job.fixedbufs,
            registered_files: job.registerfiles,
            thread: job.thread,
            gtod_reduce: job.gtod_reduce,
            priority: priority(job),
            fsync: job.fsync,
            fdatasync: job.fdatasync,
            thinktime: job.thinktime,
            thinktime_blocks: job.thinktime_blocks,
            rate_iops: PerDirection {
                read: job.rate_iops.read,
                write: job.rate_iops.write,
                trim: job.rate_iops.trim,
            },
            survives_read: job.continue_on_error.read,
            survives_write: job.continue_on_error.write,
            random_seed: 0,
            startdelay: job.startdelay,
            ramp_time: job.ramp_time,
            runtime: job.runtime.unwrap_or(Duration(u64::MAX)),
            number_ios: job.number_ios.unwrap_or(u64::MAX),
            io_bytes: if job.time_based {
                u64::MAX
            } else {
                region_sectors * 512
            },
        })
    }

    /// Its parts of the disks with these numbers.
    fn files(
        &self,
        disks: &[DiskPlan],
        numbers: &[u8],
        block: &PerDirection<BlockSize>,
    ) -> Result<Vec<FilePlan>> {
        let mut files = Vec::new();
        for &number in numbers {
            let disk = &disks[usize::from(number)];
            self.possible(disk)?;
            self.whole_blocks(&disk.device)?;
            let (first_sector, region_sectors) = self.region(&disk.device, block, numbers.len())?;
            files.push(FilePlan {
                disk: DiskId(number),
                block_sectors: disk.device.block_sectors,
                first_sector,
                region_sectors,
            });
        }
        Ok(files)
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

    /// Sizes of its I/Os.
    fn block(&self) -> PerDirection<BlockSize> {
        let sectors = |bytes: u64| (bytes / 512).max(1) as u32;
        let size = |range: SizeRange| BlockSize {
            min_sectors: sectors(range.min),
            max_sectors: sectors(range.max),
        };
        PerDirection {
            read: size(self.options.bs.read),
            write: size(self.options.bs.write),
            trim: size(self.options.bs.trim),
        }
    }

    /// Each I/O is whole blocks of the device.
    fn whole_blocks(&self, device: &DevicePlan) -> Result<()> {
        let unit = u64::from(device.block_sectors) * 512;
        let (bs, rw) = (&self.options.bs, self.options.rw);
        for (range, used) in [(bs.read, rw.read), (bs.write, rw.write), (bs.trim, rw.trim)] {
            if used && (!range.min.is_multiple_of(unit) || !range.max.is_multiple_of(unit)) {
                let option = if self.options.setting("bsrange").is_some() {
                    "bsrange"
                } else {
                    "bs"
                };
                let what = format!("not whole blocks of {} ({unit} bytes)", device.name);
                return self.error(option, what);
            }
        }
        Ok(())
    }

    /// First sector and length of the part of the device that the job works on. A size in bytes is
    /// that of all its `files` together.
    fn region(
        &self,
        device: &DevicePlan,
        block: &PerDirection<BlockSize>,
        files: usize,
    ) -> Result<(u64, u64)> {
        let whole = u64::from(device.block_sectors);
        let resolve = |extent: Extent| match extent {
            Extent::Bytes(bytes) => bytes / 512,
            Extent::Percent(percent) => {
                // No overflow: no device has 2^57 sectors.
                let sectors = device.sectors * u64::from(percent) / 100;
                sectors - sectors % whole
            }
        };
        let first = resolve(self.options.offset);
        if first >= device.sectors {
            let what = format!(
                "behind the end of {} ({} sectors)",
                device.name, device.sectors
            );
            return self.error("offset", what);
        }
        let rest = device.sectors - first;
        let sectors = match self.options.size {
            Extent::Percent(100) => rest,
            Extent::Bytes(bytes) => resolve(Extent::Bytes(bytes / files as u64)),
            percent @ Extent::Percent(_) => resolve(percent),
        };
        if sectors > rest {
            let what = format!(
                "{sectors} sectors from sector {first} on end behind {} ({} sectors)",
                device.name, device.sectors
            );
            return self.error("size", what);
        }
        let directions = [
            (self.options.rw.read, block.read),
            (self.options.rw.write, block.write),
            (self.options.rw.trim, block.trim),
        ];
        let largest = directions
            .iter()
            .filter(|(used, _)| *used)
            .map(|(_, b)| b.max_sectors)
            .max();
        if sectors < u64::from(largest.unwrap_or(1)) {
            return self.error("size", format!("{sectors} sectors do not hold one I/O"));
        }
        Ok((first, sectors))
    }
}

fn engine(job: &FioJob) -> Engine {
    match job.ioengine {
        FioEngine::IoUring => Engine::IoUring,
        FioEngine::Libaio => Engine::Libaio,
        FioEngine::Sync | FioEngine::Psync => Engine::Sync,
    }
}

fn order(job: &FioJob) -> Order {
    match (job.rw.random, job.norandommap) {
        (false, _) => Order::Sequential,
        (true, false) => Order::RandomOnce,
        (true, true) => Order::Random,
    }
}

fn file_service(job: &FioJob) -> FileService {
    match job.file_service {
        fio::FileService::RoundRobin(ios) => FileService::RoundRobin(ios),
        fio::FileService::Random(ios) => FileService::Random(ios),
        fio::FileService::Sequential => FileService::Sequential,
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
