//! Distribution of files to the threads of t/io_uring.
//!
//! After main() of fio's t/io_uring.c: file by file, each to the next threads in turn, so that
//! every thread has at least one.

use super::super::Result;
use super::Written;
use sim::plan::FilePlan;

/// Most files of a thread (MAX_FDS).
const FILES_MAX: usize = 16;
/// Fewest blocks of a file: get_offset() divides by their number less two.
const BLOCKS_MIN: u64 = 3;

impl Written<'_> {
    /// The files of the job that a thread works on.
    pub(super) fn dealt(&self, files: &[FilePlan], thread: u16) -> Result<Vec<FilePlan>> {
        let threads = self.options.numjobs as usize;
        let mine = dealt(threads, files.len(), usize::from(thread));
        let mine: Vec<FilePlan> = mine.into_iter().map(|file| files[file]).collect();
        if mine.len() > FILES_MAX {
            let what = format!(
                "{} files for a thread; t/io_uring takes at most {FILES_MAX}, or more threads (-n)",
                mine.len()
            );
            return self.error("filename", what);
        }
        let sectors = u64::from(self.block().read.min_sectors);
        if mine
            .iter()
            .any(|file| file.region_sectors / sectors < BLOCKS_MIN)
        {
            let what = format!("the device holds less than {BLOCKS_MIN} I/Os of this size");
            return self.error("bs", what);
        }
        Ok(mine)
    }
}

/// Numbers of the files of a thread, in order.
fn dealt(threads: usize, files: usize, thread: usize) -> Vec<usize> {
    // threads_per_f and threads_rem: with fewer threads than files each file has one of them.
    let (per_file, rest) = match threads / files {
        0 => (1, 0),
        per_file => (per_file, threads % files),
    };
    let first = |file: usize| file * per_file + file.min(rest);
    let takes = |file: &usize| (first(*file)..first(file + 1)).any(|at| at % threads == thread);
    (0..files).filter(takes).collect()
}
