//! What a search may use: threads, memory, files beyond that memory.

use core::fmt;
use std::io::{self, Read, Seek, Write};

/// A file for what does not fit into memory.
pub trait Spill: Read + Write + Seek + Send + Sync {}

impl<T: Read + Write + Seek + Send + Sync> Spill for T {}

/// Opens an empty file that disappears when it is closed.
pub type OpenFile<'a> = &'a (dyn Fn() -> io::Result<Box<dyn Spill>> + Sync);

/// No result depends on any of these.
#[derive(Clone, Copy)]
pub struct Resources<'a> {
    /// Number of threads; 0: as many as `RAYON_NUM_THREADS` says, or one a core.
    pub jobs: usize,
    /// Bytes for visited states; the program, and states that are being expanded, take some tens of
    /// MB more.
    pub memory: u64,
    pub file: OpenFile<'a>,
    /// Ends the search once it is true.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
    /// Called again and again by the thread that began the search.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// How far a search has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Distinct states so far.
    pub states: u64,
    pub depth: u64,
    /// States of this depth that are not expanded yet.
    pub open: u64,
}

impl Resources<'static> {
    /// One thread, as much memory as it takes, no file.
    pub const ALONE: Resources<'static> = Resources {
        jobs: 1,
        memory: u64::MAX,
        file: &|| Err(io::ErrorKind::Unsupported.into()),
        stopped: &|| false,
        progress: &|_| {},
    };
}

impl fmt::Debug for Resources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Resources");
        text.field("jobs", &self.jobs).field("memory", &self.memory);
        text.finish_non_exhaustive()
    }
}

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    #[error("stopped after {0} states")]
    Stopped(u64),
    #[error("{0}")]
    File(#[from] io::Error),
    #[error("threads cannot be started: {0}")]
    Threads(String),
}
