//! fio's engines: the modelled ones, those that run as another one, and the rest.
//!
//! Names of fio 3.33 (`fio --enghelp`, engines/), and those that fio has added since.

use super::job::FioEngine;
use super::t_io_uring;

/// What becomes of a job with an engine.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Modelled.
    Is(FioEngine),
    /// Runs as another engine, which submits the same I/O; why.
    As(FioEngine, &'static str),
    /// Not modelled, for this reason; the nearest engine.
    Not(FioEngine, &'static str),
    /// Its job does not read or write a device.
    NoIo(&'static str),
}

use Fate::{As, Is, NoIo, Not};
use FioEngine::{IoUring, IoUringCmd, Libaio, Null, PosixAio, Psync, Sync};

/// Ends the reason why a job of [`Fate::NoIo`] is not modelled.
pub(super) const WITHOUT_IO: &str = "; its job reads and writes no device";

/// Names, and what becomes of them.
const ENGINES: &[(&str, Fate)] = &[
    ("io_uring", Is(IoUring)),
    ("libaio linuxaio", Is(Libaio)),
    ("sync", Is(Sync)),
    ("psync", Is(Psync)),
    ("io_uring_cmd", Is(IoUringCmd)),
    ("posixaio", Is(PosixAio)),
    ("null", Is(Null)),
    (t_io_uring::NAME, Is(FioEngine::TIoUring)),
    (
        "pvsync",
        As(Psync, "preadv(2) and pwritev(2) of one buffer"),
    ),
    (
        PVSYNC2,
        As(Psync, "preadv2(2) and pwritev2(2) of one buffer"),
    ),
    ("cpp_null", As(Null, "the same engine in C++")),
    ("vsync", Not(Sync, "adjacent I/Os joined into one readv(2)")),
    ("mmap", Not(Psync, "page faults")),
    ("splice", Not(Psync, "pages passed through a pipe")),
    ("sg", Not(Psync, "SCSI commands of its own")),
    ("xnvme", Not(Libaio, "a driver of its own")),
    ("libblkio", Not(Libaio, "drivers of its own")),
    ("libzbc", Not(Psync, "zoned devices")),
    ("solarisaio windowsaio", Not(Libaio, "another system")),
    ("ime_aio", Not(Libaio, "another storage system")),
    ("ime_psync ime_psyncv", Not(Psync, "another storage system")),
    (
        "gfapi libhdfs",
        Not(Psync, "a file system over the network"),
    ),
    (
        "gfapi_async dfs nfs",
        Not(Libaio, "a file system over the network"),
    ),
    (
        "rados rbd nbd libiscsi http",
        Not(Libaio, "storage over the network"),
    ),
    (
        "pmemblk dev-dax libpmem",
        Not(Psync, "persistent memory, which has no block layer"),
    ),
    ("libcufile libhipfile", Not(Psync, "the memory of a GPU")),
    ("mtd", Not(Psync, "flash without a block layer")),
    ("e4defrag", Not(Psync, "moves of blocks between files")),
    ("falloc ftruncate", Not(Psync, "sizes of files")),
    ("external", Not(Psync, "an engine of a file of its own")),
    ("cpuio", NoIo("burns CPU time")),
    ("exec", NoIo("runs a program")),
    ("page_fault", NoIo("touches memory")),
    ("net netsplice rdma", NoIo("sends over the network")),
    (
        "librpma_apm_client librpma_apm_server librpma_gpspm_client librpma_gpspm_server",
        NoIo("sends over the network"),
    ),
    (
        "filecreate filestat filedelete dircreate dirstat dirdelete",
        NoIo("works on names in a file system"),
    ),
];

/// The engine that has `hipri` and is modelled by another one.
pub(super) const PVSYNC2: &str = "pvsync2";

/// All engines by name.
pub fn known_engines() -> impl Iterator<Item = (&'static str, Fate)> {
    let names = |(names, fate): &(&'static str, Fate)| {
        let fate = *fate;
        names.split(' ').map(move |name| (name, fate))
    };
    ENGINES.iter().flat_map(names)
}

/// The engine of this name. `external:FILE` names a file.
pub(super) fn engine(text: &str) -> Result<Fate, String> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    if let Some((_, fate)) = known_engines().find(|(known, _)| *known == name) {
        return Ok(fate);
    }
    let near = super::nearest(name, known_engines().map(|(known, _)| known));
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Err(format!("`{text}` is no ioengine of fio{hint}"))
}

/// The name of a modelled engine.
pub(super) fn name(engine: FioEngine) -> &'static str {
    let found = known_engines().find(|(_, fate)| matches!(fate, Is(one) if *one == engine));
    found.expect("each engine is listed").0
}
