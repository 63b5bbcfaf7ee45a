//! A growing list of small records by number; the older ones go to a file if memory is short.

use std::io::{self, SeekFrom};
use std::sync::{Mutex, PoisonError};

use crate::resources::{OpenFile, Spill};

/// Records that are read from the file at once.
const BLOCK: usize = 1024;

/// Records of `N` bytes.
pub(crate) struct Column<const N: usize> {
    /// The most records in memory.
    tail_max: usize,
    tail: Vec<[u8; N]>,
    /// The records before those in memory, and their number.
    file: Option<Mutex<Box<dyn Spill>>>,
    filed: usize,
}

impl<const N: usize> Column<N> {
    /// Keeps about so many bytes in memory.
    pub(crate) fn new(bytes: u64) -> Column<N> {
        Column {
            tail_max: usize::try_from(bytes / N as u64)
                .unwrap_or(usize::MAX)
                .max(BLOCK),
            tail: Vec::new(),
            file: None,
            filed: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.filed + self.tail.len()
    }

    pub(crate) fn push(&mut self, record: [u8; N], open: OpenFile<'_>) -> io::Result<()> {
        if self.tail.len() == self.tail_max {
            self.spill(open)?;
        }
        self.tail.push(record);
        Ok(())
    }

    /// Appends what is in memory to the file.
    fn spill(&mut self, open: OpenFile<'_>) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(Mutex::new(open()?));
        }
        let file = self.file.as_mut().expect("it was just opened");
        let file = file.get_mut().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start((self.filed * N) as u64))?;
        for block in self.tail.chunks(BLOCK) {
            file.write_all(block.as_flattened())?;
        }
        self.filed += self.tail.len();
        self.tail.clear();
        Ok(())
    }

    /// Calls `each` with the records of these numbers. Fast if neighbours are near each other.
    pub(crate) fn read(
        &self,
        ids: impl Iterator<Item = usize>,
        mut each: impl FnMut([u8; N]),
    ) -> io::Result<()> {
        let mut block: Vec<[u8; N]> = Vec::new();
        let mut first = usize::MAX;
        for id in ids {
            if id >= self.filed {
                each(self.tail[id - self.filed]);
                continue;
            }
            if first != id - id % BLOCK {
                first = id - id % BLOCK;
                self.read_block(first, &mut block)?;
            }
            each(block[id - first]);
        }
        Ok(())
    }

    pub(crate) fn get(&self, id: usize) -> io::Result<[u8; N]> {
        let mut found = [0; N];
        self.read(core::iter::once(id), |record| found = record)?;
        Ok(found)
    }

    fn read_block(&self, first: usize, block: &mut Vec<[u8; N]>) -> io::Result<()> {
        let file = self.file.as_ref().expect("records were written to it");
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        block.resize(BLOCK.min(self.filed - first), [0; N]);
        file.seek(SeekFrom::Start((first * N) as u64))?;
        file.read_exact(block.as_flattened_mut())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn records_come_back_from_memory_and_from_the_file() {
        let open = || Ok(Box::new(Cursor::new(Vec::new())) as Box<dyn Spill>);
        let mut column = Column::<6>::new(0);
        for number in 0..5_000_u32 {
            let [a, b, c, d] = (number * 7).to_le_bytes();
            column.push([a, b, c, d, 1, 2], &open).expect("memory");
        }
        assert!(column.filed > 0);
        assert_eq!(column.len(), 5_000);
        let ids = [0, 4_999, 1, 4_095, 4_096, 1_024, 1_023];
        let mut got = Vec::new();
        let read = column.read(ids.into_iter(), |[a, b, c, d, ..]| {
            got.push(u32::from_le_bytes([a, b, c, d]) as usize / 7);
        });
        read.expect("memory");
        assert_eq!(got, ids);
    }
}
