//! A compiled scheduler, and queues of it: each is one arena that the C code has all its state in.
//!
//! The only file with `unsafe`. A call that fails in C (a BUG(), an access to memory that is not
//! there) comes back as its text: `shim/host.c`. The C code has no state of its own but what is the
//! same for all queues, so queues may be called by several threads at once.

#![allow(unsafe_code, reason = "calls into C")]

use crate::compile::{Build, LIBRARY};
use crate::tree::{Error, Tree};
use std::alloc::{self, Layout};
use std::ffi::{CStr, c_char, c_uint, c_ulong, c_ulonglong, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// Absorbed requests of one call.
const GONE_MAX: usize = 64;
/// Runs of hctxs that one call asks for.
const RUNS_MAX: usize = 64;
/// Hctxs of a queue.
pub(crate) const HCTXS_MAX: usize = 64;
/// No request, no bio.
pub(crate) const NONE: c_uint = c_uint::MAX;
/// Actuators that a queue can have.
pub(crate) const RANGES_MAX: usize = 16;
/// Bytes for the text of an attribute or a file of debugfs.
const TEXT: usize = 64 << 10;

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
    /// [`NONE`]: that of the task.
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
    op: c_uint,
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
    name: *const c_char,
    text: *const c_char,

    pub(crate) found: c_uint,
    pub(crate) side: c_uint,
    pub(crate) result: c_uint,
    gone_count: c_uint,
    gone: [Gone; GONE_MAX],
    nomerge_count: c_uint,
    nomerge: [c_uint; GONE_MAX],
    /// The dispatched request was marked as started.
    pub(crate) started: c_uint,
    run_count: c_uint,
    run_hctx: [c_uint; RUNS_MAX],
    pub(crate) run: c_uint,
    pub(crate) timer_asked: c_uint,
    pub(crate) timer: c_uint,
    pub(crate) timer_after_ns: c_ulonglong,
    accesses: c_uint,
    touch_count: c_uint,
    touches: *const c_uint,
    out: *mut c_char,
    out_room: c_uint,
    out_used: c_uint,
    log: *mut c_char,
    log_room: c_uint,
    log_used: c_uint,
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
            pid: 0,
            ioprio: 0,
            nice: 0,
            group: 0,
            weight: 0,
            level: 0,
            cpu: 0,
            at_head: 0,
            io: Io::default(),
            name: std::ptr::null(),
            text: std::ptr::null(),
            found: 0,
            side: 0,
            result: NONE,
            gone_count: 0,
            gone: [Gone::default(); GONE_MAX],
            nomerge_count: 0,
            nomerge: [0; GONE_MAX],
            started: 0,
            run_count: 0,
            run_hctx: [0; RUNS_MAX],
            run: 0,
            timer_asked: 0,
            timer: 0,
            timer_after_ns: 0,
            accesses: 0,
            touch_count: 0,
            touches: std::ptr::null(),
            out: std::ptr::null_mut(),
            out_room: 0,
            out_used: 0,
            log: std::ptr::null_mut(),
            log_room: 0,
            log_used: 0,
        }
    }

    /// Requests that were absorbed, in the order of their merges.
    pub(crate) fn gone(&self) -> &[Gone] {
        &self.gone[..self.gone_count as usize]
    }

    /// Hctxs that are to be run.
    pub(crate) fn runs(&self) -> &[c_uint] {
        &self.run_hctx[..self.run_count as usize]
    }

    /// Requests that may not merge any more (req_set_nomerge()).
    pub(crate) fn nomerge(&self) -> &[c_uint] {
        &self.nomerge[..self.nomerge_count as usize]
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
    pub(crate) ranges: c_uint,
    /// Of each actuator: the first sector, and their number.
    pub(crate) range: [[c_ulong; 2]; RANGES_MAX],
}

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
struct PartCall {
    op: c_uint,
    cpu: c_uint,
    arg: [c_uint; 4],
    bit_count: c_uint,
    bits: [c_uint; BITS_MAX],
    text: *const c_char,
    out: *mut c_char,
    out_room: c_uint,
    out_used: c_uint,
}

impl PartCall {
    const NONE: PartCall = PartCall {
        op: 0,
        cpu: 0,
        arg: [0; 4],
        bit_count: 0,
        bits: [0; BITS_MAX],
        text: std::ptr::null(),
        out: std::ptr::null_mut(),
        out_room: 0,
        out_used: 0,
    };
}

type Create = unsafe extern "C" fn(*mut c_void, usize, *const Config) -> *const c_char;
type Run = unsafe extern "C" fn(*mut c_void, *mut Call) -> *const c_char;
type SetLimits = unsafe extern "C" fn(*mut c_void, *const Limits);
type CallPart = unsafe extern "C" fn(*mut c_void, usize, *mut PartCall) -> *const c_char;
type Name = unsafe extern "C" fn() -> *const c_char;

/// A scheduler's C file, compiled and loaded.
pub struct Library {
    // Functions of `code`, which is never unloaded before them.
    create: Create,
    run: Run,
    limits: SetLimits,
    call_part: CallPart,
    /// The name that the scheduler registers.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// The tree that what it calls is of.
    pub tree: Tree,
    /// Ticks a second that it was compiled for.
    pub hz: u32,
    _code: libloading::Library,
    /// Removed with the last queue.
    dir: tempfile::TempDir,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.file.display())
    }
}

impl Library {
    /// Compiles `file` over the shim, with what it calls of `tree`, for kernels with `hz` ticks a
    /// second. `flags`: further ones of the compiler for all files of the tree.
    pub fn build(
        tree: &Tree,
        file: &Path,
        hz: u32,
        flags: &[String],
    ) -> Result<Arc<Library>, Error> {
        let dir = tempfile::tempdir().map_err(Error::read(&std::env::temp_dir()))?;
        let path = Build {
            tree,
            file,
            hz,
            flags,
            into: dir.path(),
        }
        .run()?;
        let failed = |error: libloading::Error| Error::Load {
            file: file.to_owned(),
            text: error.to_string(),
        };
        // SAFETY: the library was linked from the shim, whose only initialisers are those of the C
        // library.
        let code = unsafe { libloading::Library::new(&path) }.map_err(failed)?;
        // SAFETY: functions of shim/host.c and shim/shim.c with these types; `code` outlives them.
        let (create, run, limits, call_part, start, name) = unsafe {
            (
                *code.get::<Create>(b"shim_create\0").map_err(failed)?,
                *code.get::<Run>(b"shim_call\0").map_err(failed)?,
                *code
                    .get::<SetLimits>(b"shim_set_limits\0")
                    .map_err(failed)?,
                *code.get::<CallPart>(b"shim_call_part\0").map_err(failed)?,
                code.get::<unsafe extern "C" fn() -> i32>(b"shim_module_init_0\0")
                    .ok()
                    .map(|f| *f),
                *code.get::<Name>(b"shim_name\0").map_err(failed)?,
            )
        };
        let not_one = || Error::Load {
            file: file.to_owned(),
            text: "it registers no scheduler: expected module_init() with elv_register()"
                .to_owned(),
        };
        let start = start.ok_or_else(not_one)?;
        // SAFETY: the module's init function, which the macro module_init() of the shim made.
        let status = unsafe { start() };
        // SAFETY: returns null or a constant string of the scheduler.
        let name = unsafe { name() };
        if status != 0 || name.is_null() {
            return Err(not_one());
        }
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned();
        Ok(Arc::new(Library {
            create,
            run,
            limits,
            call_part,
            name,
            file: file.to_owned(),
            tree: tree.clone(),
            hz,
            _code: code,
            dir,
        }))
    }
}

impl Library {
    /// A text with a place in the library at its end, as one with function and line, if addr2line
    /// of binutils is there.
    fn with_line(&self, text: String) -> String {
        let Some((what, place)) = text.rsplit_once(" @") else {
            return text;
        };
        let file = self.dir.path().join(LIBRARY);
        let mut command = std::process::Command::new("addr2line");
        command.args(["-f", "-s", "-e"]).arg(file).arg(place);
        let output = command.output().map(|output| output.stdout);
        let printed = String::from_utf8(output.unwrap_or_default()).unwrap_or_default();
        let known = printed
            .split_once('\n')
            .filter(|(name, _)| !name.starts_with('?'));
        match known {
            Some((name, line)) => format!("{what}: {name}(), {}", line.trim()),
            None => what.to_owned(),
        }
    }
}

/// Memory that C has all state of a queue or of a part in; zero at first.
struct Arena {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it has one owner, and the C code keeps nothing of it elsewhere between two calls.
unsafe impl Send for Arena {}
// SAFETY: calls that are given its address take `&mut self`.
unsafe impl Sync for Arena {}

impl Arena {
    fn new(bytes: usize) -> Result<Arena, String> {
        // An alignment up to 16: the allocator need not write the zeroes itself.
        let layout = Layout::from_size_align(bytes, 16).map_err(|_| "too large".to_owned())?;
        assert!(bytes > 0, "an arena of nothing");
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc::alloc_zeroed(layout) });
        let memory = memory.ok_or("no memory for a queue")?;
        Ok(Arena { memory, layout })
    }

    fn address(&mut self) -> *mut c_void {
        self.memory.as_ptr().cast()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { alloc::dealloc(self.memory.as_ptr(), self.layout) };
    }
}

/// A queue of a library's scheduler: its arena.
pub(crate) struct Queue {
    library: Arc<Library>,
    arena: Arena,
    text: Vec<u8>,
    /// Room for the messages of a call; none if nobody listens.
    log: Vec<u8>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a queue with {:?}", self.library)
    }
}

impl Queue {
    /// A queue with an idle scheduler, or the text of what went wrong in C.
    pub(crate) fn new(library: &Arc<Library>, config: &Config) -> Result<Queue, String> {
        // Pages that nothing is written to cost nothing.
        let slots = config.requests as usize * 512
            + config.bios as usize * 256
            + config.tasks as usize * 256;
        let bytes = config.bytes as usize + slots;
        let mut queue = Queue {
            library: Arc::clone(library),
            arena: Arena::new(bytes)?,
            text: vec![0; TEXT],
            log: Vec::new(),
        };
        // SAFETY: the arena is zeroed, of that size, and belongs to this queue alone.
        let error = unsafe { (library.create)(queue.arena.address(), bytes, config) };
        let error = text_of(error);
        error.map_or(Ok(queue), |text| Err(library.with_line(text)))
    }

    /// One call. An error is the text of what went wrong in C; the queue must not be called after
    /// it.
    pub(crate) fn call(&mut self, call: &mut Call) -> Result<(), String> {
        call.out = self.text.as_mut_ptr().cast();
        call.out_room = TEXT as c_uint;
        call.log = self.log.as_mut_ptr().cast();
        call.log_room = self.log.len() as c_uint;
        // SAFETY: `call` has the layout of struct shim_call, and its pointers are null or live.
        let error = unsafe { (self.library.run)(self.arena.address(), call) };
        text_of(error).map_or(Ok(()), |text| Err(self.library.with_line(text)))
    }

    /// What the scheduler's code read and wrote in that call, which was the queue's last one.
    pub(crate) fn touches(&self, call: &Call) -> &[c_uint] {
        if call.touch_count == 0 {
            return &[];
        }
        let first = self.arena.memory.as_ptr() as usize;
        let arena = first..first + self.arena.layout.size();
        assert!(
            arena.contains(&(call.touches as usize)),
            "a call of another queue"
        );
        // SAFETY: an array in the arena with so many elements, written by that call.
        unsafe { std::slice::from_raw_parts(call.touches, call.touch_count as usize) }
    }

    /// What the last call wrote.
    pub(crate) fn text(&self, call: &Call) -> String {
        String::from_utf8_lossy(&self.text[..call.out_used as usize]).into_owned()
    }

    /// The same with the name of a file, and the text that is written to it.
    pub(crate) fn call_named(
        &mut self,
        call: &mut Call,
        name: &CStr,
        text: &CStr,
    ) -> Result<String, String> {
        (call.name, call.text) = (name.as_ptr(), text.as_ptr());
        let result = self.call(call);
        (call.name, call.text) = (std::ptr::null(), std::ptr::null());
        result.map(|()| self.text(call))
    }

    /// Messages are collected from now on.
    pub(crate) fn listen(&mut self) {
        self.log.resize(TEXT, 0);
    }

    /// Messages of the last call, a line each.
    pub(crate) fn messages(&self, of: &Call) -> String {
        String::from_utf8_lossy(&self.log[..of.log_used as usize]).into_owned()
    }

    /// Limits and nomerges of the queue from now on.
    pub(crate) fn set_limits(&mut self, limits: &Limits) {
        // SAFETY: `limits` has the layout of struct shim_limits.
        unsafe { (self.library.limits)(self.arena.address(), limits) };
    }
}

/// A part of the kernel alone: a map of bits with its waiters, a tree of requests, or a multipath
/// target.
pub(crate) struct Part {
    library: Arc<Library>,
    arena: Arena,
    text: Vec<u8>,
}

impl Part {
    /// A map of `arg[0]` bits, or with 0 a tree (part_open() in `shim/parts.c`).
    pub(crate) fn new(library: &Arc<Library>, cpus: u32, arg: [u32; 4]) -> Result<Part, String> {
        let mut part = Part::idle(library)?;
        part.call(PartOp::Get, cpus, arg, &[])?;
        Ok(part)
    }

    /// What the first line of a script says.
    pub(crate) fn of_script(library: &Arc<Library>, line: &CStr) -> Result<Part, String> {
        let mut part = Part::idle(library)?;
        part.command(line)?;
        Ok(part)
    }

    fn idle(library: &Arc<Library>) -> Result<Part, String> {
        Ok(Part {
            library: Arc::clone(library),
            arena: Arena::new(1 << 20)?,
            text: vec![0; TEXT],
        })
    }

    /// One call on this CPU; returns what it returns in C, and the whole state. An error is what
    /// went wrong in C.
    pub(crate) fn call(
        &mut self,
        op: PartOp,
        cpu: u32,
        arg: [u32; 4],
        bits: &[u32],
    ) -> Result<String, String> {
        let mut call = PartCall {
            op: op as c_uint,
            cpu,
            arg,
            bit_count: bits.len() as c_uint,
            ..PartCall::NONE
        };
        call.bits[..bits.len()].copy_from_slice(bits);
        self.run(call)
    }

    /// A command of a script; returns what it prints.
    pub(crate) fn command(&mut self, line: &CStr) -> Result<String, String> {
        self.run(PartCall {
            op: PartOp::Command as c_uint,
            text: line.as_ptr(),
            ..PartCall::NONE
        })
    }

    /// The pointers of `call` are null or live.
    fn run(&mut self, mut call: PartCall) -> Result<String, String> {
        call.out = self.text.as_mut_ptr().cast();
        call.out_room = TEXT as c_uint;
        let (bytes, address) = (self.arena.layout.size(), self.arena.address());
        // SAFETY: `call` has the layout of struct shim_part, and its text has room for `out_room`
        // bytes; the arena has that size and was zero before the first call.
        let error = unsafe { (self.library.call_part)(address, bytes, &raw mut call) };
        let text = &self.text[..call.out_used as usize];
        text_of(error).map_or(Ok(String::from_utf8_lossy(text).into_owned()), Err)
    }
}

fn text_of(error: *const c_char) -> Option<String> {
    // SAFETY: null, or a string of the library that lives until the thread's next call.
    (!error.is_null()).then(|| {
        unsafe { CStr::from_ptr(error) }
            .to_string_lossy()
            .into_owned()
    })
}
