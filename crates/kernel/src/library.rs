//! A compiled scheduler, and queues of it: each is one arena that the C code has all its state in.
//!
//! The only file with `unsafe`. A call that fails in C (a BUG(), an access to memory that is not
//! there) comes back as its text: `shim/host.c`. The C code has no state of its own but what is the
//! same for all queues, so queues may be called by several threads at once. Copies of a queue share
//! its arena, and the one that is called is put there.

#![allow(unsafe_code, reason = "calls into C")]

use crate::call::{Call, Config, Found, HCTXS_MAX, PartCall, PartOp, RANGES_MAX, TEXT};
use crate::compile::{Build, LIBRARY};
use crate::tree::{Error, Tree};
use std::alloc::{self, Layout};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_uint, c_ulong, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Create = unsafe extern "C" fn(*mut c_void, usize, *const Config) -> *const c_char;
type Run = unsafe extern "C" fn(*mut c_void, *mut Call) -> *const c_char;
type CallPart = unsafe extern "C" fn(*mut c_void, usize, *mut PartCall) -> *const c_char;
type Save = unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> usize;
type Restore = unsafe extern "C" fn(*const u8);
type Print = unsafe extern "C" fn(*mut c_void, *mut [c_ulong; 2]);
type Counts = unsafe extern "C" fn();
type Name = unsafe extern "C" fn() -> *const c_char;

/// Functions of shim/host.c.
struct Calls {
    create: Create,
    run: Run,
    call_part: CallPart,
    save: Save,
    restore: Restore,
    print: Print,
    /// Writes the counts of lines, where they are counted (missing.c).
    counts: Option<Counts>,
}

impl Calls {
    fn of(code: &libloading::Library) -> Result<Calls, libloading::Error> {
        // SAFETY: functions of these types; the library outlives them, as it has both.
        unsafe {
            Ok(Calls {
                create: *code.get(b"shim_create\0")?,
                run: *code.get(b"shim_call\0")?,
                call_part: *code.get(b"shim_call_part\0")?,
                save: *code.get(b"shim_save\0")?,
                restore: *code.get(b"shim_restore\0")?,
                print: *code.get(b"shim_print\0")?,
                counts: code.get::<Counts>(b"shim_counts\0").ok().map(|f| *f),
            })
        }
    }
}

/// A scheduler's C file, compiled and loaded.
pub struct Library {
    // Functions of `code`, which is never unloaded before them.
    calls: Calls,
    /// The name that the scheduler registers.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// The tree that what it calls is of.
    pub tree: Tree,
    /// Ticks a second that it was compiled for.
    pub hz: u32,
    /// Texts of errors with a place, as they are shown.
    places: Mutex<BTreeMap<String, String>>,
    /// Never unloaded: its signal handlers stay.
    _code: ManuallyDrop<libloading::Library>,
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
    /// second. With `coverage`, lines that are reached are counted.
    pub fn build(tree: &Tree, file: &Path, hz: u32, coverage: bool) -> Result<Arc<Library>, Error> {
        let dir = tempfile::tempdir().map_err(Error::read(&std::env::temp_dir()))?;
        let path = Build {
            tree,
            file,
            hz,
            coverage,
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
        let calls = Calls::of(&code).map_err(failed)?;
        // SAFETY: functions of shim/shim.c with these types; `code` outlives them.
        let (start, name) = unsafe {
            (
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
            calls,
            name,
            file: file.to_owned(),
            tree: tree.clone(),
            hz,
            places: Mutex::default(),
            _code: ManuallyDrop::new(code),
            dir,
        }))
    }
}

impl Library {
    /// Writes the counts of lines next to the objects.
    pub(crate) fn write_counts(&self) {
        if let Some(counts) = self.calls.counts {
            // SAFETY: the runtime of gcov, which locks its own data.
            unsafe { counts() };
        }
    }

    /// What was compiled.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A text with a place in the library at its end, as one with function and line, if addr2line
    /// of binutils is there.
    fn with_line(&self, text: String) -> String {
        let Some((what, place)) = text.rsplit_once(" @") else {
            return text;
        };
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = places.get(&text) {
            return known.clone();
        }
        let file = self.dir.path().join(LIBRARY);
        let mut command = std::process::Command::new("addr2line");
        command.args(["-f", "-s", "-e"]).arg(file).arg(place);
        let output = command.output().map(|output| output.stdout);
        let printed = String::from_utf8(output.unwrap_or_default()).unwrap_or_default();
        let known = printed
            .split_once('\n')
            .filter(|(name, _)| !name.starts_with('?'));
        let shown = match known {
            Some((name, line)) => format!("{what}: {name}(), {}", line.trim()),
            None => what.to_owned(),
        };
        places.insert(text.clone(), shown.clone());
        shown
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

/// An arena for a queue and its copies, whose pointers are right at its addresses alone.
struct Home {
    arena: Arena,
    /// The number of the image whose state is there; 0: that of none.
    here: u64,
    /// Images so far.
    images: u64,
}

/// The state of a queue that shares its home.
#[derive(Debug)]
struct Image {
    number: u64,
    /// What makes states the same.
    print: [c_ulong; 2],
    bytes: Vec<u8>,
}

/// A queue of a library's scheduler.
pub(crate) struct Queue {
    library: Arc<Library>,
    home: Arc<Mutex<Home>>,
    /// Its state; none while it is alone in its home, where the state then is.
    image: Mutex<Option<Arc<Image>>>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a queue with {:?}", self.library)
    }
}

/// A panic of another thread in the middle of a call ends the program in any case.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Home {
    /// Puts the state of an image there.
    fn put(&mut self, library: &Library, image: &Image) {
        if self.here != image.number {
            // SAFETY: an image of a queue in this arena.
            unsafe { (library.calls.restore)(image.bytes.as_ptr()) };
            self.here = image.number;
        }
    }

    /// The state that is there, which was that of `old`.
    fn image(&mut self, library: &Library, old: Option<&Arc<Image>>) -> Arc<Image> {
        let mut bytes = Vec::with_capacity(old.map_or(0, |old| old.bytes.len()));
        loop {
            let (at, room) = (bytes.as_mut_ptr(), bytes.capacity());
            // SAFETY: there is so much room.
            let size = unsafe { (library.calls.save)(self.arena.address(), at, room) };
            if size <= room {
                // SAFETY: so many bytes were written.
                unsafe { bytes.set_len(size) };
                break;
            }
            bytes.reserve_exact(size);
        }
        if let Some(old) = old.filter(|old| old.bytes == bytes) {
            return Arc::clone(old);
        }
        self.images += 1;
        self.here = self.images;
        Arc::new(Image {
            number: self.here,
            print: self.print(library),
            bytes,
        })
    }

    fn print(&mut self, library: &Library) -> [c_ulong; 2] {
        let mut print = [0; 2];
        // SAFETY: the arena has a queue.
        unsafe { (library.calls.print)(self.arena.address(), &raw mut print) };
        print
    }
}

impl Queue {
    /// A queue with an idle scheduler, or the text of what went wrong in C.
    pub(crate) fn new(library: &Arc<Library>, config: &Config) -> Result<Queue, String> {
        if config.hctxs as usize > HCTXS_MAX || config.ranges as usize > RANGES_MAX {
            return Err(format!(
                "{} hctxs and {} access ranges: at most {HCTXS_MAX} and {RANGES_MAX}",
                config.hctxs, config.ranges
            ));
        }
        // Pages that nothing is written to cost nothing.
        let slots = config.requests as usize * 512
            + config.bios as usize * 256
            + config.tasks as usize * 256;
        let bytes = config.bytes as usize + slots;
        let mut arena = Arena::new(bytes)?;
        // SAFETY: the arena is zeroed, of that size, and belongs to this queue alone.
        let error = unsafe { (library.calls.create)(arena.address(), bytes, config) };
        match text_of(error) {
            Some(text) => Err(library.with_line(text)),
            None => Ok(Queue {
                library: Arc::clone(library),
                home: Arc::new(Mutex::new(Home {
                    arena,
                    here: 0,
                    images: 0,
                })),
                image: Mutex::default(),
            }),
        }
    }

    /// One call. An error is the text of what went wrong in C; the queue must not be called after
    /// it.
    pub(crate) fn call(&self, call: &mut Call, found: &mut Found) -> Result<(), String> {
        found.offer(call);
        let mut image = lock(&self.image);
        let mut home = lock(&self.home);
        if let Some(old) = &*image {
            home.put(&self.library, old);
            if Arc::strong_count(&self.home) == 1 {
                *image = None;
            }
        }
        // SAFETY: `call` has the layout of struct shim_call, and its pointers are null or live.
        let error = unsafe { (self.library.calls.run)(home.arena.address(), call) };
        if let Some(text) = text_of(error) {
            home.here = 0;
            return Err(self.library.with_line(text));
        }
        // SAFETY: C has written so many elements.
        unsafe { found.take(call) };
        if let Some(old) = &mut *image {
            *old = home.image(&self.library, Some(old));
        }
        Ok(())
    }

    /// The text that a call returns: of the file with this name, to which `text` is written.
    pub(crate) fn call_named(
        &self,
        call: &mut Call,
        name: &CStr,
        text: &CStr,
        found: &mut Found,
    ) -> Result<String, String> {
        (call.name, call.text) = (name.as_ptr(), text.as_ptr());
        let result = self.call(call, found);
        (call.name, call.text) = (std::ptr::null(), std::ptr::null());
        result.map(|()| String::from_utf8_lossy(&found.out).into_owned())
    }

    /// What makes states the same.
    pub(crate) fn print(&self) -> [u64; 2] {
        match &*lock(&self.image) {
            Some(image) => image.print,
            None => lock(&self.home).print(&self.library),
        }
    }
}

/// In the same state, and in the same home.
impl Clone for Queue {
    fn clone(&self) -> Queue {
        let mut image = lock(&self.image);
        let own = image.get_or_insert_with(|| lock(&self.home).image(&self.library, None));
        Queue {
            library: Arc::clone(&self.library),
            home: Arc::clone(&self.home),
            image: Mutex::new(Some(Arc::clone(own))),
        }
    }
}

impl Found {
    /// Its arrays are where the call appends to; null for one without room.
    fn offer(&mut self, call: &mut Call) {
        fn at<T>(array: &mut Vec<T>) -> *mut T {
            array.clear();
            match array.capacity() {
                0 => std::ptr::null_mut(),
                _ => array.as_mut_ptr(),
            }
        }
        call.gone = at(&mut self.gone);
        call.nomerge = at(&mut self.nomerge);
        call.run_hctx = at(&mut self.runs);
        call.touches = at(&mut self.touches);
        (call.out, call.out_room) = (at(&mut self.out), self.out.capacity() as c_uint);
        (call.log, call.log_room) = (at(&mut self.log), self.log.capacity() as c_uint);
    }

    /// # Safety
    /// The call was offered these arrays, and C has appended as many elements as it says.
    unsafe fn take(&mut self, call: &Call) {
        // SAFETY: as the caller promises.
        unsafe {
            self.gone.set_len(call.gone_count as usize);
            self.nomerge.set_len(call.nomerge_count as usize);
            self.runs.set_len(call.run_count as usize);
            self.touches.set_len(call.touch_count as usize);
            self.out.set_len(call.out_used as usize);
            self.log.set_len(call.log_used as usize);
        }
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
        let error = unsafe { (self.library.calls.call_part)(address, bytes, &raw mut call) };
        if let Some(text) = text_of(error) {
            return Err(self.library.with_line(text));
        }
        let text = &self.text[..call.out_used as usize];
        Ok(String::from_utf8_lossy(text).into_owned())
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
