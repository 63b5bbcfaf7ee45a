//! A `Plan`: a scenario with every default filled in, every size computed, nothing optional.
//!
//! Plain data: the simulator is set up from it, once. Made only by `Scenario::plan`, which checks
//! it as a whole; the scenario is not used afterwards.

use blkmq::elevator::{SchedulerSettings, SubmitterGroup};
use blkmq::request::{IoClass, IoPrio, SetId};
use blkmq::rules::{NoMerges, QueueLimits, Rules};
use blkmq::time::{Duration, SimTime};

use crate::page_cache::PAGE_SECTORS;

use crate::readahead::{Advice, RaLimits, ReadAheadRules};

mod ahci;
mod control;
mod device;
mod ids;
mod joined;
mod mapped;
mod memory;
mod precision;

pub use ahci::{AhciPlan, DiskZone, NcqOrder};
pub use control::{
    ControlPlan, ExitWhat, FloorPlan, FlowPlan, LatencyPlan, SteadyPlan, SteadyState,
};
pub use device::{
    BusyKind, DIE_SECTORS, DeviceKind, DevicePlan, FaultPlan, FcPlan, IrqMode, Jitter, NullBlkPlan,
    NvmePlan, OpLatency, Ratio, ScsiDebugPlan, ServiceKind, ServiceTime,
};
pub use ids::{DeviceId, DiskId, Owner};
pub use mapped::{MappedPlan, Outage, Suspension};
pub use precision::{Figure, PERCENTILES, Wanted};
pub use trace::fio::{
    Decimal, Extent, LogOptions, Output, RateProcess, Sequencer, Shape, Skew, ThinktimeBlocks, Zone,
};

/// A run, ready to be simulated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Name of the scenario: its file's stem, or the built-in's name.
    pub name: String,
    /// One line about it; empty if the file has none.
    pub description: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// CPUs and their prices.
    pub machine: MachinePlan,
    /// Disks by number, at least one.
    pub disks: Vec<DiskPlan>,
    /// Options as they were written of each entry of the report, but for names.
    pub job_options: Vec<Vec<(String, String)>>,
    /// What each job asks of fio's own output, by its number.
    pub outputs: Vec<Output>,
    /// One entry per thread: `numjobs` is already unrolled.
    pub threads: Vec<ThreadPlan>,
    /// NFS servers, whose threads are among the others.
    pub servers: Vec<NfsdPlan>,
    /// Phases of the run (stonewall), at least 1.
    pub phases: u16,
    /// The run ends before its time when all of these are known so well. Empty: it does not.
    pub precision: Vec<Wanted>,
    /// Control groups with the weight of each, the root first.
    pub groups: Vec<SubmitterGroup>,
    /// Pages that the page cache holds of each disk, if a thread reads through it.
    pub cache_pages: usize,
    /// Changes of schedulers while it runs, in order of time.
    pub changes: Vec<ChangePlan>,
    /// Options that were accepted though they have no effect here, for the report.
    pub ignored: Vec<String>,
    /// What was left out of fio's jobs since it is not modelled.
    pub left_out: Vec<String>,
    /// Attributes that a scheduler shows with another value than was written, for the report.
    pub adjusted: Vec<String>,
}

impl Plan {
    /// Tasks of fio's processes beside the threads of this plan.
    pub fn hired(&self) -> u32 {
        let threads = self.threads.iter().filter(|thread| thread.hires());
        threads
            .map(|thread| thread.workers(self.machine.cpus))
            .sum()
    }

    /// The thread of each worker that submits for one, in the order of tasks.
    pub fn of_workers(&self) -> impl Iterator<Item = &ThreadPlan> {
        let cpus = self.machine.cpus;
        let each = move |thread: &'_ ThreadPlan| thread.workers(cpus) as usize;
        self.threads
            .iter()
            .flat_map(move |thread| core::iter::repeat_n(thread, each(thread)))
    }

    /// When the last change, suspension or outage is over that the plan has: no figure is steady
    /// before.
    pub fn last_event(&self) -> SimTime {
        let changes = self.changes.iter().map(|of| of.at);
        let suspensions = self.suspensions().into_iter().map(|(_, of)| of.resume);
        let mapped = self.mapped_disks().flat_map(|(_, mapped)| &mapped.outages);
        let all = changes.chain(suspensions).chain(mapped.map(|of| of.to));
        SimTime::ZERO + all.max().unwrap_or(Duration::ZERO)
    }

    /// What a job asks of fio's own output.
    ///
    /// # Panics
    /// If there is no job of this number.
    pub fn output_of(&self, job: u16) -> &Output {
        &self.outputs[usize::from(job)]
    }
}

/// Effective priority of a task without one: that of nice 0 (task_nice_ioprio()).
pub const DEFAULT_PRIORITY: IoPrio = IoPrio {
    class: IoClass::BestEffort,
    level: 4,
};

/// A write to a file of queue/ while the run goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangePlan {
    /// From the start of the run.
    pub at: Duration,
    pub disk: DiskId,
    pub to: ChangeTo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeTo {
    /// queue/scheduler: this number among `QueuePlan::further`.
    Scheduler(u8),
    /// A file of queue/iosched/, and its value.
    Attribute(&'static str, i64),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachinePlan {
    /// Name of the profile: `ryzen-7950x` ...
    pub profile: String,
    /// CPUs in use, numbered from 0. At most the profile's, which has at most 1,024.
    pub cpus: u16,
    /// Ticks a second: 100, 250, 300 or 1000.
    pub hz: u32,
}

/// A disk: a device and its request queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskPlan {
    /// Number of its tag set. Disks with one number draw from one set, and their devices' queues
    /// and depths are alike.
    pub set: SetId,
    pub queue: QueuePlan,
    pub device: DevicePlan,
    /// The owner of its device, if it has none of its own: an earlier disk or path.
    pub owner: Option<Owner>,
    /// Sizes of everything that is allocated once.
    pub capacity: Capacity,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuePlan {
    pub rules: Rules,
    /// queue/scheduler, and queue/iosched.
    pub scheduler: SchedulerSettings,
    /// Schedulers that are written during the run, in order.
    pub further: Vec<SchedulerSettings>,
    /// queue/nr_requests: scheduler tags of each hctx, or the driver's depth without scheduler.
    pub nr_requests: u32,
    /// Its default, before it is written.
    pub nr_requests_first: u32,
    /// queue/nomerges.
    pub nomerges: NoMerges,
    /// A submission that inserts runs the hctx itself, not kblockd (a patched kernel).
    pub inline_runs: bool,
    /// queue/rq_affinity: 0, 1 or 2.
    pub rq_affinity: u8,
    pub limits: QueueLimits,
    /// queue/read_ahead_kb, in pages.
    pub read_ahead_pages: u64,
    /// queue/io_timeout.
    pub io_timeout: Duration,
}

impl QueuePlan {
    /// Its limits for read-ahead.
    pub fn read_ahead(&self) -> RaLimits {
        RaLimits {
            ra_pages: self.read_ahead_pages,
            io_pages: u64::from(self.limits.max_sectors) / PAGE_SECTORS,
        }
    }

    /// Read-ahead rules of its kernel.
    ///
    /// # Panics
    /// If the rules are of no kernel.
    pub fn read_ahead_rules(&self) -> ReadAheadRules {
        let rules = ReadAheadRules::of_kernel(self.rules.name);
        rules.expect("each kernel reads ahead in a way that is known")
    }

    /// Most pages that a reader through the page cache may have under read, if it asks for `asked`
    /// at a time: its current window, the next one, and two more that marks of other readers cause.
    pub fn pages_under_read(&self, asked: u64) -> u64 {
        let limits = self.read_ahead();
        4 * (2 * limits.ra_pages).max(limits.io_pages) + 2 * asked
    }
}

/// System interface that a thread submits through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// io_uring.
    IoUring,
    /// io_submit(2) and io_getevents(2).
    Libaio,
    Sync,
    /// aio_read(3) and aio_write(3): threads of glibc read and write, each a file.
    PosixAio,
    /// None: I/Os end in the program that makes them.
    Null,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitter {
    /// t/io_uring: reads that are submitted and awaited in one call.
    Fio,
    /// That of t/io_uring: reads that go out and are waited for in one call.
    TIoUring {
        /// The ring is registered with the kernel: no call looks up its file (-X).
        registered_ring: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// After the last one (of the same direction), wrapping at the end of the region.
    Sequential,
    /// Anywhere, a block hit at most once a pass (a random map).
    RandomOnce,
    /// Anywhere, each draw independent (norandommap).
    Random,
}

/// Kinds of I/O in a thread's stream, as shares of 100.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    pub read_percent: u8,
    pub write_percent: u8,
    pub trim_percent: u8,
}

impl Mix {
    /// trimwrite: each block is trimmed, then written.
    pub fn trims_then_writes(self) -> bool {
        self.trim_percent > 0 && self.write_percent > 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerDirection<T> {
    pub read: T,
    pub write: T,
    pub trim: T,
}

/// A part of a disk that a thread works on (fio's file).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilePlan {
    pub disk: DiskId,
    /// Smallest I/O of the disk, sectors.
    pub block_sectors: u32,
    /// First sector of the region.
    pub first_sector: u64,
    /// Whole sectors of the region; at least one block of the thread.
    pub region_sectors: u64,
    /// The region ends within a further sector, which holds no I/O.
    pub has_rest: bool,
}

/// Strided zones of a file: I/Os stay in one until it had its share (zonemode=strided).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonesPlan {
    /// I/O of a zone (zonesize), sectors.
    pub size_sectors: u64,
    /// Where its I/Os are (zonerange), at least 1.
    pub range_sectors: u64,
    /// From its end to the next one (zoneskip).
    pub skip_sectors: u64,
}

/// How a thread chooses among its files (file_service_type).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileService {
    /// The next one after this many I/Os, at least 1.
    RoundRobin(u32),
    /// Any one, drawn after this many I/Os, at least 1.
    Random(u32),
    /// The next one when the last has no further position.
    Sequential,
    /// Any one, drawn for each I/O with these ranks, 1024 for each file.
    Skewed(Skew),
}

/// How positions of `Order::Random` are drawn (random_distribution).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// All blocks are alike.
    Uniform,
    /// Blocks by ranks, strewn over the region.
    Skewed(Skew),
    /// Parts of the region, with shares that add up to 100; a direction without any is uniform.
    Zoned(PerDirection<Vec<Zone>>),
}

/// One size of several with shares (bssplit).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeShare {
    pub sectors: u32,
    /// Draws of 100.
    pub percent: u8,
}

/// Rounds of a thread: it starts over at the start of its files (keep_running()).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounds {
    /// Bytes of a round; `u64::MAX`: not limited.
    pub bytes: u64,
    /// A round may follow one that came to the end of the files (io_size).
    pub after_end: bool,
    /// So many there are in any case (loops), at least 1.
    pub loops: u32,
    /// Each draws the same random numbers (randrepeat).
    pub alike: bool,
}

/// Sizes of an I/O: uniform from `min` to `max` in steps of `min`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockSize {
    /// Smallest, sectors.
    pub min_sectors: u32,
    /// Largest, sectors; equal to the smallest for a fixed size.
    pub max_sectors: u32,
}

/// One thread (or process) of a fio job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadPlan {
    pub name: String,
    /// Number of the job (its section) from 0.
    pub job: u16,
    /// Number of the report's entry that it belongs to, from 0: group_reporting sums jobs up.
    pub entry: u16,
    /// Number of the clone within the job, from 0.
    pub clone: u16,
    /// Threads of a phase start when all of the phases before have ended (stonewall).
    pub phase: u16,
    /// CPUs it may run on, ascending, never empty.
    pub cpus: Vec<u16>,
    pub submitter: Submitter,
    /// Reads go through the page cache; `None`: they bypass it.
    pub buffered: Option<BufferedPlan>,
    /// Continues after a call only when all clones before it have: they take turns.
    pub hands_over: bool,
    /// Has the I/O context of the first clone (CLONE_IO).
    pub shares_context: bool,
    /// It serves the calls of this one of [`Plan::servers`], and has no stream of its own.
    pub server: Option<u8>,
    /// How it submits; io_uring with `Submitter::TIoUring`.
    pub engine: Engine,
    pub order: Order,
    /// How random positions are drawn; uniform unless `order` is `Order::Random`.
    pub distribution: Distribution,
    /// I/Os from one new position to the next, at least 1 (rw=randread:N).
    pub new_every: u32,
    /// An I/O of `Order::RandomOnce` ends before blocks that are done. Not kept of regions whose
    /// map would be too large, nor needed if all I/Os have one size.
    pub keeps_map: bool,
    pub sequencer: Sequencer,
    /// Positions of 100 that are random if the order is (percentage_random).
    pub random_percent: PerDirection<u8>,
    /// Sectors left out between two sequential I/Os; below 0: backwards (rw=read:SIZE).
    pub gap_sectors: i64,
    pub zones: Option<ZonesPlan>,
    pub mix: Mix,
    pub block: PerDirection<BlockSize>,
    /// Sizes with shares, the rarest first, the last with what the shares leave of 100; none: as
    /// `block` says.
    pub splits: PerDirection<Vec<SizeShare>>,
    /// Its files, in the order of filename; at least one.
    pub files: Vec<FilePlan>,
    pub file_service: FileService,
    /// I/Os in flight at most; 1 for `Engine::Sync`.
    pub iodepth: u32,
    /// I/Os gathered before one submission, at most `iodepth`.
    pub batch_submit: u32,
    /// Completions that a wait asks for. 0: polls once after every submission without waiting, and
    /// waits for one when all of `iodepth` is in flight.
    pub batch_complete_min: u32,
    /// Completions taken at once.
    pub batch_complete_max: u32,
    /// Once full, it reaps until no more than this many are in flight.
    pub iodepth_low: u32,
    pub polled: bool,
    /// Buffers registered with the kernel (fixedbufs).
    pub fixed_buffers: bool,
    /// Files registered with the kernel (registerfiles).
    pub registered_files: bool,
    /// Its I/Os are submitted and awaited by `iodepth` workers, one each; with libaio or a sync
    /// engine.
    pub offload: bool,
    /// Its I/Os are commands of the drive, which go around the scheduler (io_uring_cmd).
    pub passthrough: bool,
    /// Requests from one to the next that a worker of io_uring submits; 0: none.
    pub force_async: u32,
    /// Clones are threads of one process.
    pub thread: bool,
    /// Takes fewer time stamps (gtod_reduce).
    pub gtod_reduce: bool,
    /// ioprio of the task; class none: the kernel's default.
    pub priority: IoPrio,
    /// Its control group: place in [`Plan::groups`].
    pub group: u16,
    /// An fsync(2) after this many writes; 0: none.
    pub fsync: u32,
    /// An fdatasync(2) after this many writes; 0: none.
    pub fdatasync: u32,
    /// Pause after `thinktime_blocks` I/Os; zero: none.
    pub thinktime: Duration,
    /// I/Os between two pauses.
    pub thinktime_blocks: u32,
    pub thinktime_counts: ThinktimeBlocks,
    /// Most bytes a second; 0: no limit.
    pub rate_bytes: PerDirection<u64>,
    pub rate_process: RateProcess,
    /// Goes on when a read fails (continue_on_error).
    pub survives_read: bool,
    /// Goes on when a write, trim or sync fails.
    pub survives_write: bool,
    /// Seed of its random positions.
    pub random_seed: u64,
    /// Time from the start of its phase to its first I/O.
    pub startdelay: Duration,
    /// Time at the start that does not count.
    pub ramp_time: Duration,
    /// Time that counts, after the ramp; `u64::MAX` ns: not limited.
    pub runtime: Duration,
    /// As in fio, I/Os in flight when `runtime` is over count, and a pause does not end with it.
    pub counts_tail: bool,
    /// I/Os after which it ends; `u64::MAX`: not limited.
    pub number_ios: u64,
    /// Bytes after which it ends; `u64::MAX`: not limited (time_based).
    pub io_bytes: u64,
    pub rounds: Rounds,
    /// Sectors of which random positions are multiples: the smallest block, or blockalign.
    pub align_sectors: PerDirection<u32>,
    pub writes: WritesPlan,
    pub cmdprio: CmdPrio,
    pub control: ControlPlan,
}

/// Most threads of glibc that handle I/O (aio_threads of aio_init(3)).
const GLIBC_THREADS: u32 = 20;

impl ThreadPlan {
    /// Other tasks of its process submit for it.
    pub fn hires(&self) -> bool {
        self.offload || self.engine == Engine::PosixAio
    }

    /// Tasks that submit for it: its workers (offload), glibc's (posixaio), or those of io_uring
    /// (io_wq_create()), of which one does the work of all unless it hands them its I/Os.
    pub fn workers(&self, cpus: u16) -> u32 {
        match self.engine {
            _ if self.offload => self.iodepth,
            Engine::IoUring if self.force_async > 0 => {
                self.iodepth.next_power_of_two().min(4 * u32::from(cpus))
            }
            Engine::IoUring => 1,
            // __aio_enqueue_request(): of a file one at a time.
            Engine::PosixAio => (self.files.len() as u32).min(GLIBC_THREADS),
            Engine::Libaio | Engine::Sync | Engine::Null => 0,
        }
    }
}

/// How a thread writes, and what follows its writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WritesPlan {
    /// They are synchronous (O_SYNC, O_DSYNC): in the sync engines a flush follows each.
    pub dsync: bool,
    /// They are FUA.
    pub fua: bool,
    /// An fsync(2) of each file at the end of each round.
    pub end_fsync: bool,
    pub verify: Option<VerifyPlan>,
}

/// Reads of what a thread wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyPlan {
    /// After so many writes some of them are verified; 0: none before the end of the round.
    pub backlog: u32,
    /// So many of them; 0: as many as the backlog.
    pub batch: u32,
    /// The others at the end of the round; otherwise none (do_verify).
    pub after: bool,
}

/// Priorities of single I/Os.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CmdPrio {
    /// Of reads and writes.
    pub shares: PerDirection<Vec<SizePrio>>,
}

/// A share of the I/Os with a priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizePrio {
    /// Of those with this length; 0: of all.
    pub sectors: u32,
    /// Draws of 100.
    pub percent: u8,
    pub prio: IoPrio,
}

/// How a thread reads through the page cache. Only of `Engine::Sync`, and only reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferedPlan {
    /// posix_fadvise(2) of its files.
    pub advice: Advice,
    /// Drops the pages of a file when it opens it and when it starts over (invalidate).
    pub invalidates: bool,
    /// The files are in a file system that passes runs of pages on (mpage_readpages()), not the
    /// block device.
    pub file_system: bool,
}

/// An NFS server and its clients, each of which streams a file of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NfsdPlan {
    pub clients: u16,
    /// Bytes of a call, whole pages.
    pub rsize: u64,
    /// Calls that a client has under way at most, 2 to 32.
    pub slots: u32,
    /// Rate of the link to the clients, bytes a second.
    pub link_bytes: u64,
    /// From one end of the link to the other.
    pub latency: Duration,
    /// CPU time of a call, without reading.
    pub call: Duration,
    /// When its threads end, from the start of the run.
    pub until: Duration,
    /// Where the files lie.
    pub disk: DiskId,
    /// Where the first one begins; the others follow.
    pub first_byte: u64,
    /// Length of each, at least a call.
    pub file_bytes: u64,
    /// posix_fadvise(2) of the files.
    pub advice: Advice,
}

/// Sizes of a disk that follow from the rest.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Hardware queues, poll queues included.
    pub hctxs: u16,
    /// Driver tags of all of them.
    pub driver_tags: u32,
    /// Scheduler tags of all of them; 0 without scheduler.
    pub sched_tags: u32,
    /// Requests that can be alive: the identifying tags, and a flush request for each hctx. 0 of a
    /// disk that nothing submits to.
    pub requests: u32,
    /// Bios that can be alive: the depth of each thread that uses it, each I/O split at the queue's
    /// limits, and a flush for each thread.
    pub bios: u32,
    /// Tasks that can wait for a tag at once.
    pub waiters: u32,
}
