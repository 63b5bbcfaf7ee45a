//! The name of pid 0, which every CPU's idle task has: blkparse prints the first that it has read.
//!
//! blkparse reads 512 events of each per-CPU file before it prints any, and again whenever those of
//! a file are printed; the first note wins. The reader of the events is at most one event ahead, so
//! a second reader of each file looks, until a name of pid 0 is found. Names of other tasks need
//! none: the note precedes the task's first event. Read first: ms_prime() in blkparse.c.

use std::path::PathBuf;

use super::{dropped, parse_name};
use crate::blktrace::{DeviceChoice, Options, Reader};

const BATCH: u32 = 512;

#[derive(Debug)]
struct Ahead {
    reader: Reader,
    /// Events until the next batch is read.
    left: u32,
}

/// Readers of the files ahead of what is printed.
#[derive(Debug)]
pub(super) struct IdleName {
    /// By number of the file; empty when the name is known.
    files: Vec<Option<Ahead>>,
    name: Option<String>,
}

impl IdleName {
    /// Reads the first batch of each file. A file that cannot be read is left to the main reader.
    pub(super) fn new(files: &[PathBuf]) -> IdleName {
        let mut idle = IdleName {
            files: Vec::new(),
            name: None,
        };
        for (number, file) in files.iter().enumerate() {
            let options = Options {
                device: DeviceChoice::All,
                salvage: true,
                ..Options::default()
            };
            let reader = parse_name(file).and_then(|_| Reader::open(&[file], options).ok());
            idle.files
                .push(reader.map(|reader| Ahead { reader, left: 0 }));
            idle.read(number);
        }
        idle
    }

    pub(super) fn get(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// An event of a file was printed.
    #[inline]
    pub(super) fn printed(&mut self, file: usize) {
        if self.name.is_some() {
            return;
        }
        if let Some(Some(ahead)) = self.files.get_mut(file) {
            ahead.left -= 1;
            if ahead.left == 0 {
                self.read(file);
            }
        }
    }

    /// Reads a batch of one file.
    fn read(&mut self, file: usize) {
        let Some(Some(ahead)) = self.files.get_mut(file) else {
            return;
        };
        while ahead.left < BATCH {
            match ahead.reader.next() {
                Ok(Some(event)) => ahead.left += u32::from(!dropped(&event)),
                // No batch follows the last one.
                Ok(None) | Err(_) => ahead.left = u32::MAX,
            }
        }
        let name = ahead.reader.process_name(0).map(str::to_owned);
        if name.is_some() && self.name.is_none() {
            self.name = name;
        }
    }
}
