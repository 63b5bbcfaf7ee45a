//! Where on a device I/O went, over time: a fixed grid of cells.
//!
//! Columns are spans of time, rows spans of sectors; both become twice as long whenever an I/O lies
//! outside. A bio counts in the cell of its submission and first sector.

use blkmq::time::SimTime;

use crate::matching::Io;

const COLUMNS: u64 = 384;
const ROWS: u64 = 192;

/// See the head of the file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Offsets {
    /// Length of a column, ns, and of a row, sectors; 0 while there is no I/O.
    pub column_ns: u64,
    pub row_sectors: u64,
    /// First sector of the first row, a multiple of the length of a row.
    pub from: u64,
    /// Reads and others of each cell, row by row.
    pub cells: Vec<[u32; 2]>,
}

impl Offsets {
    pub const COLUMNS: u64 = COLUMNS;
    pub const ROWS: u64 = ROWS;

    #[inline]
    pub(super) fn add(&mut self, io: &Io, genesis: SimTime) {
        let begin = io.queued.or(io.issued).or(io.completed);
        if io.bytes == 0 {
            return;
        }
        let time = begin.map_or(0, |begin| begin.since(genesis).0);
        if self.cells.is_empty() {
            (self.column_ns, self.row_sectors) = (1 << 10, 1);
            self.from = io.sector;
            self.cells = vec![[0; 2]; (COLUMNS * ROWS) as usize];
        }
        while time / self.column_ns >= COLUMNS {
            self.double_columns();
        }
        while io.sector < self.from || (io.sector - self.from) / self.row_sectors >= ROWS {
            self.double_rows(io.sector);
        }
        let row = (io.sector - self.from) / self.row_sectors;
        let at = row * COLUMNS + time / self.column_ns;
        let cell = &mut self.cells[at as usize][usize::from(io.is_write())];
        *cell = cell.saturating_add(1);
    }

    #[cold]
    fn double_columns(&mut self) {
        let old = self.column_ns;
        self.column_ns = 2 * old;
        self.move_cells(|column, row| (column / 2, row));
    }

    /// Also moves the beginning down to a sector, as far as the rows in use allow.
    #[cold]
    fn double_rows(&mut self, sector: u64) {
        let (length, from) = (self.row_sectors, self.from);
        self.row_sectors = 2 * length;
        let used = self.cells.rchunks(COLUMNS as usize);
        let free = used.take_while(|row| row.iter().all(|cell| *cell == [0; 2]));
        let top = from + (ROWS - free.count() as u64) * length;
        // The last row in use stays inside.
        let least = top.div_ceil(2 * length).saturating_sub(ROWS) * 2 * length;
        let wanted = from.min(sector) / (2 * length) * 2 * length;
        self.from = wanted.max(least).min(from / (2 * length) * 2 * length);
        let begin = self.from;
        self.move_cells(|column, row| (column, (from + row * length - begin) / (2 * length)));
    }

    fn move_cells(&mut self, to: impl Fn(u64, u64) -> (u64, u64)) {
        let old = std::mem::replace(&mut self.cells, vec![[0; 2]; (COLUMNS * ROWS) as usize]);
        for (at, cell) in old
            .into_iter()
            .enumerate()
            .filter(|(_, cell)| *cell != [0; 2])
        {
            let (column, row) = to(at as u64 % COLUMNS, at as u64 / COLUMNS);
            let into = &mut self.cells[(row * COLUMNS + column) as usize];
            *into = [0, 1].map(|of: usize| into[of].saturating_add(cell[of]));
        }
    }
}
