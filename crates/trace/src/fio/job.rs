//! One job with typed options and fio's defaults.
//!
//! Values only: `build.rs` fills them in, `check.rs` checks that they go together. Sizes relative
//! to the device stay relative.

use blkmq::time::Duration;

use super::cmdprio::CmdPrio;
use super::control::Control;
use super::draw::{Distribution, SizeShare, Skew};
use super::options::lookup;
use super::output::Output;
use super::writes::Writes;
use super::{Section, Setting};
use crate::ftrace::IoPriority;

/// Sequential or random streams of reads, writes and trims (`rw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWrite {
    pub read: bool,
    pub write: bool,
    /// Trims happen. Together with writes: each block is trimmed, then written (trimwrite).
    pub trim: bool,
    pub random: bool,
}

impl ReadWrite {
    /// Sequential reads.
    const READ: ReadWrite = ReadWrite {
        read: true,
        write: false,
        trim: false,
        random: false,
    };
}

/// I/Os that may fail without ending their thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContinueOnError {
    pub read: bool,
    /// Writes, trims and syncs.
    pub write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerDirection<T> {
    pub read: T,
    pub write: T,
    pub trim: T,
}

impl<T: Clone> PerDirection<T> {
    /// The same value for all three directions.
    pub fn same(value: T) -> PerDirection<T> {
        PerDirection {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}

/// Sizes from `min` to `max` bytes, in steps of `min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// Smallest, bytes.
    pub min: u64,
    /// Largest, bytes.
    pub max: u64,
}

impl SizeRange {
    /// A range of one size in bytes.
    pub fn of(bytes: u64) -> SizeRange {
        SizeRange {
            min: bytes,
            max: bytes,
        }
    }
}

/// Sizes of I/Os by direction.
pub type BlockSizes = PerDirection<SizeRange>;

/// A position or length on a device of unknown size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Bytes.
    Bytes(u64),
    /// 0 to 100 of 100 parts of the device.
    Percent(u8),
}

/// `ioengine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioEngine {
    IoUring,
    Libaio,
    /// sync: lseek(2), read(2) and write(2)
    Sync,
    /// psync: pread(2) and pwrite(2)
    Psync,
    /// io_uring_cmd: NVMe commands through io_uring
    IoUringCmd,
    /// posixaio: aio_read(3) and aio_write(3) of glibc
    PosixAio,
    /// null: I/Os end in fio, none reaches the kernel.
    Null,
    /// Not fio: its small benchmark t/io_uring, with the options of `t_io_uring.rs`.
    TIoUring,
}

impl FioEngine {
    /// Only one I/O in flight for each thread.
    pub fn is_synchronous(self) -> bool {
        matches!(self, FioEngine::Sync | FioEngine::Psync)
    }

    pub fn is_uring(self) -> bool {
        use FioEngine::{IoUring, IoUringCmd, TIoUring};
        matches!(self, IoUring | IoUringCmd | TIoUring)
    }
}

/// `fadvise_hint`: posix_fadvise(2) of each file that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FadviseHint {
    /// 0, none
    None,
    /// 1: as the job's `rw` is
    ByType,
    Random,
    Sequential,
}

/// `cpus_allowed_policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpusPolicy {
    /// Every clone may use all of them.
    Shared,
    /// Clones take one each, in turn.
    Split,
}

/// The file that a job uses next (file_service_type).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileService {
    /// The next one after this many I/Os, at least 1.
    RoundRobin(u32),
    /// A random one, drawn again after this many I/Os, at least 1.
    Random(u32),
    /// The next one when the last is done.
    Sequential,
    /// A random one, with a skewed distribution, drawn again for each I/O.
    Skewed(Skew),
}

/// Position of an I/O that gets no new random position (rw_sequencer).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequencer {
    /// After the last one of its direction.
    Sequential,
    /// Where the last one of its direction went.
    Identical,
}

/// How a rate spaces I/Os (rate_process).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateProcess {
    /// Evenly.
    Linear,
    /// As if they arrived independently of each other.
    Poisson,
}

/// The unit of `thinktime_blocks` (thinktime_blocks_type).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThinktimeBlocks {
    Complete,
    Issue,
}

/// A job. Fields bear fio's names; `option` gives unit and default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioJob {
    pub name: String,
    /// Line (or argument) where it begins.
    pub line: u64,
    /// Devices; empty if none is named.
    pub filenames: Vec<String>,
    /// How it turns from one of them to the next. Default `RoundRobin(1)`.
    pub file_service: FileService,
    /// Default sequential reads.
    pub rw: ReadWrite,
    /// I/Os from one random position to the next, `N` of `rw=randread:N`. Default 1.
    pub rw_every: u32,
    /// Bytes left out between two sequential I/Os, `SIZE` of `rw=read:SIZE`. Default 0.
    pub rw_gap: i64,
    /// Default `Sequential`.
    pub rw_sequencer: Sequencer,
    /// Default `Uniform`.
    pub random_distribution: Distribution,
    /// I/Os of 100 with a random position. Default 100.
    pub percentage_random: PerDirection<u8>,
    /// Percent of reads, when reads and writes are mixed. Default 50.
    pub rwmixread: u8,
    /// Bytes. Default 4096.
    pub bs: BlockSizes,
    /// Shares of sizes; `bs` has the smallest and largest of them. Default none.
    pub bssplit: PerDirection<Vec<SizeShare>>,
    /// Random positions are multiples of so many bytes; 0: of the smallest `bs`. Default 0.
    pub blockalign: PerDirection<u64>,
    /// Default 1, and 1 for synchronous engines.
    pub iodepth: u32,
    /// At most iodepth. Default 1.
    pub iodepth_batch: u32,
    /// At most iodepth; 0 polls. Default 1.
    pub iodepth_batch_complete_min: u32,
    /// At least the minimum. Default the minimum.
    pub iodepth_batch_complete_max: u32,
    /// 1 to iodepth. Default iodepth.
    pub iodepth_low: u32,
    /// Default 1.
    pub numjobs: u32,
    /// Default false: processes.
    pub thread: bool,
    /// Default false.
    pub direct: bool,
    /// The hint that the kernel gets about a file. Default `ByType`.
    pub fadvise_hint: FadviseHint,
    /// Default psync.
    pub ioengine: FioEngine,
    /// Default false.
    pub hipri: bool,
    /// Default false.
    pub fixedbufs: bool,
    /// Default false.
    pub registerfiles: bool,
    /// Only of t/io_uring; there default true.
    pub register_ring: bool,
    /// Default false.
    pub norandommap: bool,
    /// Default true.
    pub randrepeat: bool,
    /// Default none: fio's own constant.
    pub randseed: Option<u64>,
    /// Default none.
    pub runtime: Option<Duration>,
    /// Default none.
    pub ramp_time: Duration,
    /// Default false.
    pub time_based: bool,
    /// Default none.
    pub number_ios: Option<u64>,
    /// Default 1.
    pub loops: u32,
    /// Default 100 %.
    pub size: Extent,
    /// Default 0.
    pub offset: Extent,
    /// Distance of each clone from the one before. Default 0.
    pub offset_increment: Extent,
    /// Default none: as much as the region holds.
    pub io_size: Option<Extent>,
    /// Default none: all that are named.
    pub nrfiles: Option<u32>,
    /// Bytes where each file ends; default none: the device's end.
    pub filesize: Option<u64>,
    /// Default none: the task's own.
    pub priority: Option<IoPriority>,
    /// Writes between two; 0: none.
    pub fsync: u32,
    /// Writes between two; 0: none.
    pub fdatasync: u32,
    /// Default none.
    pub thinktime: Duration,
    /// Default 1.
    pub thinktime_blocks: u32,
    /// Default `Complete`.
    pub thinktime_blocks_type: ThinktimeBlocks,
    /// Bytes a second; 0: no limit.
    pub rate: PerDirection<u64>,
    /// Limit of IOPS; 0: none.
    pub rate_iops: PerDirection<u32>,
    /// Default `Linear`.
    pub rate_process: RateProcess,
    /// Default none.
    pub startdelay: Duration,
    /// Default false.
    pub stonewall: bool,
    /// Default all.
    pub cpus_allowed: Option<Vec<u16>>,
    /// Control group, a path below the root without a slash in front. Default the root: empty.
    pub cgroup: String,
    /// Default shared.
    pub cpus_allowed_policy: CpusPolicy,
    /// Default none.
    pub continue_on_error: ContinueOnError,
    /// Default false.
    pub group_reporting: bool,
    /// Default false.
    pub new_group: bool,
    /// Default false.
    pub gtod_reduce: bool,
    /// Default true.
    pub invalidate: bool,
    /// How it ends, waits for and paces other jobs, and what else few jobs have.
    pub control: Control,
    /// How it writes, and what follows its writes.
    pub writes: Writes,
    /// Priorities of single I/Os.
    pub cmdprio: CmdPrio,
    pub output: Output,
    /// Everything as it was written, global settings first.
    pub written: Vec<Setting>,
}

impl FioJob {
    /// It polls for completions. pvsync2 has the option too: kernels since 5.19 ignore it there.
    pub fn polls(&self) -> bool {
        self.hipri && self.ioengine.is_uring()
    }

    /// An I/O has ended when the engine returns from its submission (FIO_Q_COMPLETED).
    pub fn ends_in_call(&self) -> bool {
        self.ioengine.is_synchronous() || self.ioengine == FioEngine::Null && self.iodepth == 1
    }

    /// The setting that decides an option (its last one), by the option's name.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.written
            .iter()
            .rev()
            .find(|s| lookup(&s.option).is_some_and(|k| k.name == name))
    }

    /// The engine as it was written.
    pub(super) fn engine(&self) -> Option<&str> {
        self.setting("ioengine")?.value.as_deref()
    }

    /// Line of that setting; the job's own if it is not given.
    pub fn line_of(&self, name: &str) -> u64 {
        self.setting(name).map_or(self.line, |setting| setting.line)
    }

    /// The option that has the sizes of its I/Os.
    pub fn size_option(&self) -> &'static str {
        let written = |option: &&str| self.setting(option).is_some();
        let options = ["bssplit", "bsrange"];
        options.into_iter().find(written).unwrap_or("bs")
    }

    /// A section's job before any of its settings.
    pub(super) fn defaults(section: &Section) -> FioJob {
        FioJob {
            name: section.name.clone(),
            line: section.line,
            filenames: Vec::new(),
            file_service: FileService::RoundRobin(1),
            rw: ReadWrite::READ,
            rw_every: 1,
            rw_gap: 0,
            rw_sequencer: Sequencer::Sequential,
            random_distribution: Distribution::Uniform,
            percentage_random: PerDirection::same(100),
            rwmixread: 50,
            bs: PerDirection::same(SizeRange::of(4096)),
            bssplit: PerDirection::same(Vec::new()),
            blockalign: PerDirection::same(0),
            iodepth: 1,
            iodepth_batch: 1,
            iodepth_batch_complete_min: 1,
            iodepth_batch_complete_max: 0,
            iodepth_low: 0,
            numjobs: 1,
            thread: false,
            direct: false,
            fadvise_hint: FadviseHint::ByType,
            ioengine: FioEngine::Psync,
            hipri: false,
            fixedbufs: false,
            registerfiles: false,
            register_ring: false,
            norandommap: false,
            randrepeat: true,
            randseed: None,
            runtime: None,
            ramp_time: Duration::ZERO,
            time_based: false,
            number_ios: None,
            loops: 1,
            size: Extent::Percent(100),
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            io_size: None,
            nrfiles: None,
            filesize: None,
            priority: None,
            fsync: 0,
            fdatasync: 0,
            thinktime: Duration::ZERO,
            thinktime_blocks: 1,
            thinktime_blocks_type: ThinktimeBlocks::Complete,
            rate: PerDirection::same(0),
            rate_iops: PerDirection::same(0),
            rate_process: RateProcess::Linear,
            startdelay: Duration::ZERO,
            stonewall: false,
            cpus_allowed: None,
            cgroup: String::new(),
            cpus_allowed_policy: CpusPolicy::Shared,
            continue_on_error: ContinueOnError::default(),
            group_reporting: false,
            new_group: false,
            gtod_reduce: false,
            invalidate: true,
            control: Control::default(),
            writes: Writes::default(),
            cmdprio: CmdPrio::default(),
            output: Output::default(),
            written: section.settings.clone(),
        }
    }
}
