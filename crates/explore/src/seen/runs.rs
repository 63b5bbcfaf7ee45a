//! Sorted runs of entries in a file, and the search for many of them at once.

use std::io::{self, SeekFrom};

use super::Entry;
use crate::resources::{OpenFile, Spill};

/// Entries that are read at once.
const BLOCK: usize = 256;
/// So many runs become one.
const RUNS_MAX: usize = 8;

#[derive(Default)]
pub(super) struct Runs {
    file: Option<Box<dyn Spill>>,
    runs: Vec<Run>,
}

/// Entries of the file from `start` on.
struct Run {
    start: usize,
    count: usize,
    /// The first entry of each block.
    firsts: Vec<Entry>,
}

impl Runs {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Appends a run of entries, which come sorted.
    pub(super) fn write(
        &mut self,
        entries: impl Iterator<Item = Entry>,
        open: OpenFile<'_>,
    ) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open()?,
        };
        let start = self.runs.last().map_or(0, |run| run.start + run.count);
        let mut writer = Writer::new(&mut *file, start)?;
        for entry in entries {
            writer.push(entry)?;
        }
        let run = writer.finish()?;
        self.file = Some(file);
        if run.count > 0 {
            self.runs.push(run);
        }
        match self.runs.len() {
            RUNS_MAX => self.merge(open),
            _ => Ok(()),
        }
    }

    /// Makes one run of all, in another file.
    fn merge(&mut self, open: OpenFile<'_>) -> io::Result<()> {
        let mut to = open()?;
        let from = self.file.as_mut().expect("the runs are in it");
        let mut readers: Vec<Reader> = self.runs.iter().map(Reader::new).collect();
        let mut writer = Writer::new(&mut *to, 0)?;
        loop {
            let mut least: Option<(Entry, usize)> = None;
            for (nth, reader) in readers.iter_mut().enumerate() {
                if let Some(entry) = reader.peek(&mut **from)?
                    && least.is_none_or(|(known, _)| entry < known)
                {
                    least = Some((entry, nth));
                }
            }
            let Some((entry, nth)) = least else { break };
            readers[nth].at += 1;
            writer.push(entry)?;
        }
        self.runs = vec![writer.finish()?];
        self.file = Some(to);
        Ok(())
    }

    /// Looks for the keys in these slots, sorted by key; a found one gets its number.
    pub(super) fn find(&mut self, sorted: &[u32], slots: &mut [Entry]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        for run in &self.runs {
            let mut block = Vec::new();
            let mut loaded = usize::MAX;
            let mut from = 0;
            for &at in sorted {
                let slot = &mut slots[at as usize];
                // The last block that does not begin after the key.
                let later = run.firsts[from..].partition_point(|first| first.key() <= slot.key());
                from = (from + later).saturating_sub(1);
                if loaded != from {
                    loaded = from;
                    run.read(&mut **file, from, &mut block)?;
                }
                let known = block.binary_search_by_key(&slot.key(), |entry| entry.key());
                if let Ok(known) = known {
                    *slot = block[known];
                }
            }
        }
        Ok(())
    }
}

impl Run {
    /// Reads the n-th block.
    fn read(&self, file: &mut dyn Spill, nth: usize, block: &mut Vec<Entry>) -> io::Result<()> {
        let first = nth * BLOCK;
        let count = BLOCK.min(self.count - first);
        let mut bytes = [0; BLOCK * Entry::BYTES];
        let bytes = &mut bytes[..count * Entry::BYTES];
        file.seek(SeekFrom::Start(
            ((self.start + first) * Entry::BYTES) as u64,
        ))?;
        file.read_exact(bytes)?;
        block.clear();
        let (entries, _) = bytes.as_chunks();
        block.extend(
            entries
                .iter()
                .map(|entry| Entry(u128::from_le_bytes(*entry))),
        );
        Ok(())
    }
}

/// Reads a run from its beginning.
struct Reader<'a> {
    run: &'a Run,
    at: usize,
    block: Vec<Entry>,
    /// Entries that were read.
    read: usize,
}

impl<'a> Reader<'a> {
    fn new(run: &'a Run) -> Reader<'a> {
        Reader {
            run,
            at: 0,
            block: Vec::new(),
            read: 0,
        }
    }

    fn peek(&mut self, file: &mut dyn Spill) -> io::Result<Option<Entry>> {
        if self.at == self.run.count {
            return Ok(None);
        }
        if self.at == self.read {
            self.run.read(file, self.at / BLOCK, &mut self.block)?;
            self.read += self.block.len();
        }
        Ok(Some(self.block[self.at % BLOCK]))
    }
}

/// Writes a run.
struct Writer<'a> {
    file: &'a mut dyn Spill,
    run: Run,
    buffer: Vec<u8>,
    last: Entry,
}

impl<'a> Writer<'a> {
    fn new(file: &'a mut dyn Spill, start: usize) -> io::Result<Writer<'a>> {
        file.seek(SeekFrom::Start((start * Entry::BYTES) as u64))?;
        Ok(Writer {
            file,
            run: Run {
                start,
                count: 0,
                firsts: Vec::new(),
            },
            buffer: Vec::new(),
            last: Entry(0),
        })
    }

    fn push(&mut self, entry: Entry) -> io::Result<()> {
        assert!(self.last <= entry, "a run is sorted");
        self.last = entry;
        if self.run.count.is_multiple_of(BLOCK) {
            self.run.firsts.push(entry);
            self.file.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        self.buffer.extend(entry.0.to_le_bytes());
        self.run.count += 1;
        Ok(())
    }

    fn finish(self) -> io::Result<Run> {
        self.file.write_all(&self.buffer)?;
        Ok(self.run)
    }
}
