//! One call as Rust and C see it: `shim/call.h` has the same types.
//!
//! Not here: the calls ([`Queue`](crate::library::Queue)).

use std::ffi::{c_char, c_uint, c_ulong, c_ulonglong};
use std::ptr::null_mut;

/// Absorbed requests of one call, and requests that it lets merge no more.
const GONE_MAX: usize = 64;
/// Runs of hctxs that one call asks for.
const RUNS_MAX: usize = 64;
/// Accesses of one call.
const TOUCHES_MAX: usize = 4096;
/// Bytes for the text of an attribute, a file of debugfs or messages.
pub(crate) const TEXT: usize = 64 << 10;
/// Hctxs of a queue.
pub(crate) const HCTXS_MAX: usize = 64;
/// No request, no bio.
pub(crate) const NONE: c_uint = c_uint::MAX;
/// Actuators that a queue can have.
pub(crate) const RANGES_MAX: usize = 16;
/// Operations of [`Call`], as `shim/call.h` numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub(crate) enum Op {
    MergeBio,
    Insert,
    Dispatch,
    #[default]
    HasWork,
    Finish,
    Completed,
    Requeue,
    ExitIcq,
    Timer,
    LimitDepth,
    DepthUpdated,
    Store,
    Show,
    Debugfs,
    Rotates,
    Attributes,
    Exit,
    Group,
    Task,
    Limit,
    SetRequest,
    MayQueue,
    Activate,
    Drain,
}

/// struct shim_io.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Io {
    pub(crate) sector: c_ulong,
    pub(crate) bytes: c_uint,
    pub(crate) opf: c_uint,
    pub(crate) ioprio: u16,
    pub(crate) segments: u16,
    pub(crate) hctx: c_uint,
    pub(crate) task: c_uint,
    pub(crate) group: c_uint,
    pub(crate) flush_seq: c_uint,
    /// Set up without the scheduler.
    pub(crate) bare: c_uint,
    /// The CPU that allocated the request, or submits the bio.
    pub(crate) ctx: c_uint,
    /// The number of its ctx in the hctx.
    pub(crate) index: c_uint,
    pub(crate) start_ns: c_ulonglong,
    pub(crate) issue_ns: c_ulonglong,
}

/// A request that was absorbed, and the one that took it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Gone {
    pub(crate) rq: c_uint,
    pub(crate) into: c_uint,
}

/// struct shim_call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Call {
    pub(crate) op: c_uint,
    pub(crate) rq: c_uint,
    pub(crate) bio: c_uint,
    pub(crate) number: c_uint,
    /// log2 of the bits of a word of the map of scheduler tags.
    pub(crate) shift: c_uint,
    pub(crate) ticks: c_ulong,
    /// jiffies once the call has a lock.
    pub(crate) locked_ticks: c_ulong,
    pub(crate) ktime_ns: c_ulonglong,
    /// The call reads the clock: 1 for one that does not advance, 2 for one that does.
    pub(crate) clock: c_uint,
    /// The caller is a worker of kblockd with this process id, or 0.
    pub(crate) kworker: i32,
    pub(crate) pid: i32,
    pub(crate) ioprio: c_uint,
    pub(crate) nice: c_uint,
    pub(crate) group: c_uint,
    pub(crate) weight: c_uint,
    /// The level that the scheduler counts a request in; of an insertion one more, 0 for none.
    pub(crate) level: c_uint,
    pub(crate) cpu: c_uint,
    pub(crate) at_head: c_uint,
    pub(crate) io: Io,
    pub(crate) limits: Limits,
    pub(crate) name: *const c_char,
    pub(crate) text: *const c_char,

    pub(crate) found: c_uint,
    pub(crate) side: c_uint,
    pub(crate) result: c_uint,
    /// The dispatched request was marked as started.
    pub(crate) started: c_uint,
    /// The call took a lock other than q->queue_lock.
    pub(crate) locked: c_uint,
    /// The queue must be run before its lock is dropped.
    pub(crate) run_now: c_uint,
    pub(crate) run: c_uint,
    pub(crate) timer_asked: c_uint,
    pub(crate) timer: c_uint,
    pub(crate) timer_after_ns: c_ulonglong,
    /// That of an inserted request, in ticks.
    pub(crate) fifo_time: c_ulonglong,
    accesses: c_uint,
    // Arrays of `Found`, and how many elements were appended.
    pub(crate) gone_count: c_uint,
    pub(crate) nomerge_count: c_uint,
    pub(crate) run_count: c_uint,
    pub(crate) touch_count: c_uint,
    pub(crate) out_room: c_uint,
    pub(crate) out_used: c_uint,
    pub(crate) log_room: c_uint,
    pub(crate) log_used: c_uint,
    pub(crate) gone: *mut Gone,
    pub(crate) nomerge: *mut c_uint,
    pub(crate) run_hctx: *mut c_uint,
    pub(crate) touches: *mut c_uint,
    pub(crate) out: *mut u8,
    pub(crate) log: *mut u8,
}

impl Call {
    pub(crate) fn new(op: Op) -> Call {
        Call {
            op: op as c_uint,
            rq: NONE,
            bio: NONE,
            number: 0,
            shift: 0,
            ticks: 0,
            locked_ticks: 0,
            ktime_ns: 0,
            clock: 0,
            kworker: 0,
            pid: 0,
            ioprio: 0,
            nice: 0,
            group: 0,
            weight: 0,
            level: 0,
            cpu: 0,
            at_head: 0,
            io: Io::default(),
            limits: Limits::default(),
            name: std::ptr::null(),
            text: std::ptr::null(),
            found: 0,
            side: 0,
            result: NONE,
            started: 0,
            locked: 0,
            run_now: 0,
            run: 0,
            timer_asked: 0,
            timer: 0,
            timer_after_ns: 0,
            fifo_time: 0,
            accesses: 0,
            gone_count: 0,
            nomerge_count: 0,
            run_count: 0,
            touch_count: 0,
            out_room: 0,
            out_used: 0,
            log_room: 0,
            log_used: 0,
            gone: null_mut(),
            nomerge: null_mut(),
            run_hctx: null_mut(),
            touches: null_mut(),
            out: null_mut(),
            log: null_mut(),
        }
    }
}

/// What a call found. C appends to these arrays, whose room was taken before: one without room is
/// not wanted.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Requests that were absorbed, in the order of their merges.
    pub(crate) gone: Vec<Gone>,
    /// Requests that may not merge any more (req_set_nomerge()).
    pub(crate) nomerge: Vec<c_uint>,
    /// Hctxs that are to be run.
    pub(crate) runs: Vec<c_uint>,
    /// What the scheduler's code read and wrote.
    pub(crate) touches: Vec<c_uint>,
    /// Text of a file, or trace events.
    pub(crate) out: Vec<u8>,
    /// Messages, a line each.
    pub(crate) log: Vec<u8>,
}

impl Found {
    /// All but text.
    pub(crate) fn of_hook() -> Found {
        Found {
            gone: Vec::with_capacity(GONE_MAX),
            nomerge: Vec::with_capacity(GONE_MAX),
            runs: Vec::with_capacity(RUNS_MAX),
            touches: Vec::with_capacity(TOUCHES_MAX),
            ..Found::default()
        }
    }

    /// Text alone.
    pub(crate) fn text() -> Found {
        Found {
            out: Vec::with_capacity(TEXT),
            ..Found::default()
        }
    }
}

/// The same room, empty.
impl Clone for Found {
    fn clone(&self) -> Found {
        Found {
            gone: Vec::with_capacity(self.gone.capacity()),
            nomerge: Vec::with_capacity(self.nomerge.capacity()),
            runs: Vec::with_capacity(self.runs.capacity()),
            touches: Vec::with_capacity(self.touches.capacity()),
            out: Vec::with_capacity(self.out.capacity()),
            log: Vec::with_capacity(self.log.capacity()),
        }
    }
}

/// struct shim_config.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Config {
    pub(crate) requests: c_uint,
    pub(crate) bios: c_uint,
    pub(crate) nr_requests: c_uint,
    pub(crate) hctxs: c_uint,
    pub(crate) cpus: c_uint,
    pub(crate) tasks: c_uint,
    pub(crate) groups: c_uint,
    pub(crate) rotational: c_uint,
    pub(crate) bytes: c_ulong,
    /// ctxs of each hctx.
    pub(crate) nr_ctx: [c_uint; HCTXS_MAX],
    pub(crate) ranges: c_ulong,
    /// Of each actuator: the first sector, and their number.
    pub(crate) range: [[c_ulong; 2]; RANGES_MAX],
}

/// A queue has a copy, which is part of its state: without padding, whose bytes are random.
const _: () = assert!(size_of::<Config>() == 4 * (8 + HCTXS_MAX) + 8 * (2 + 2 * RANGES_MAX));

/// struct shim_limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub(crate) struct Limits {
    pub(crate) max_sectors: u32,
    pub(crate) max_segments: u32,
    pub(crate) max_discard_segments: u32,
    pub(crate) max_discard_sectors: u32,
    pub(crate) chunk_sectors: u32,
    pub(crate) nomerges: u32,
}

/// Functions of a part alone, as `shim/call.h` numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum PartOp {
    Get,
    GetBatch,
    Put,
    PutBatch,
    Resize,
    Share,
    WakeAll,
    Wait,
    Runs,
    Leave,
    Add,
    Del,
    Find,
    Beside,
    Command,
}

/// Bits of one call.
pub(crate) const BITS_MAX: usize = 64;

/// struct shim_part.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PartCall {
    pub(crate) op: c_uint,
    pub(crate) cpu: c_uint,
    pub(crate) arg: [c_uint; 4],
    pub(crate) bit_count: c_uint,
    pub(crate) bits: [c_uint; BITS_MAX],
    /// A command of a script, where the part takes those.
    pub(crate) text: *const c_char,
    pub(crate) out: *mut c_char,
    pub(crate) out_room: c_uint,
    pub(crate) out_used: c_uint,
}

impl PartCall {
    pub(crate) const NONE: PartCall = PartCall {
        op: 0,
        cpu: 0,
        arg: [0; 4],
        bit_count: 0,
        bits: [0; BITS_MAX],
        text: std::ptr::null(),
        out: null_mut(),
        out_room: 0,
        out_used: 0,
    };
}
