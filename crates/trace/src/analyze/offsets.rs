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
        if self.column(time) >= COLUMNS {
            self.widen(time);
        }
        if self.row(io.sector).is_none() {
            self.reach(io.sector);
        }
        let row = self.row(io.sector).expect("it was made to reach");
        let at = row * COLUMNS + self.column(time);
        let cell = &mut self.cells[at as usize][usize::from(io.is_write())];
        *cell = cell.saturating_add(1);
    }

    /// Column of a time. Lengths are powers of two.
    #[inline]
    fn column(&self, time: u64) -> u64 {
        time >> self.column_ns.trailing_zeros()
    }

    /// Row of a sector, if there is one.
    #[inline]
    fn row(&self, sector: u64) -> Option<u64> {
        let row = sector.checked_sub(self.from)? >> self.row_sectors.trailing_zeros();
        (row < ROWS).then_some(row)
    }

    /// Makes columns longer until a time has one.
    #[cold]
    fn widen(&mut self, time: u64) {
        let old = self.column_ns;
        while self.column(time) >= COLUMNS {
            self.column_ns *= 2;
        }
        let each = self.column_ns / old;
        self.move_cells(|column, row| (column / each, row));
    }

    /// Makes rows longer until a sector has one. Also moves the beginning down to that sector, as
    /// far as the rows in use allow.
    #[cold]
    fn reach(&mut self, sector: u64) {
        let (length, from) = (self.row_sectors, self.from);
        let used = self.cells.rchunks(COLUMNS as usize);
        let free = used.take_while(|row| row.iter().all(|cell| *cell == [0; 2]));
        let top = from + (ROWS - free.count() as u64) * length;
        while self.row(sector).is_none() {
            let double = 2 * self.row_sectors;
            // The last row in use stays inside.
            let least = top.div_ceil(double).saturating_sub(ROWS) * double;
            let wanted = self.from.min(sector) / double * double;
            self.from = wanted.max(least).min(self.from / double * double);
            self.row_sectors = double;
        }
        let (begin, each) = (self.from, self.row_sectors);
        self.move_cells(|column, row| (column, (from + row * length - begin) / each));
    }

    fn move_cells(&mut self, to: impl Fn(u64, u64) -> (u64, u64)) {
        let old = std::mem::replace(&mut self.cells, vec![[0; 2]; (COLUMNS * ROWS) as usize]);
        for (at, cell) in old.iter().enumerate() {
            if *cell == [0; 2] {
                continue;
            }
            let (column, row) = to(at as u64 % COLUMNS, at as u64 / COLUMNS);
            let into = &mut self.cells[(row * COLUMNS + column) as usize];
            *into = [0, 1].map(|of: usize| into[of].saturating_add(cell[of]));
        }
    }
}
