//! The drive's read cache: segments of contiguous sectors, of which the least recently used is
//! replaced first.

use blkmq::request::Sector;

#[derive(Clone, Debug)]
pub(super) struct Segments {
    /// Most sectors of one.
    size: u64,
    all: Vec<Segment>,
    uses: u64,
}

/// Sectors from `start` up to `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
}

impl Segments {
    pub(super) fn new(count: u32, size: u64) -> Segments {
        Segments {
            size,
            all: vec![Segment::default(); count as usize],
            uses: 0,
        }
    }

    /// Sectors that the drive reads ahead after a command; none without segments.
    pub(super) fn ahead(&self) -> u64 {
        if self.all.is_empty() { 0 } else { self.size }
    }

    /// The segment that has `sector`, or ends there, and where it ends.
    pub(super) fn with(&self, sector: Sector) -> Option<(usize, Sector)> {
        let found = |segment: &Segment| {
            segment.start < segment.end && (segment.start..=segment.end).contains(&sector.0)
        };
        let at = self.all.iter().position(found)?;
        Some((at, Sector(self.all[at].end)))
    }

    pub(super) fn touch(&mut self, segment: usize) {
        self.uses += 1;
        self.all[segment].used = self.uses;
    }

    /// Sectors read from `start` up to `end` go into the least recently used segment; none without
    /// segments.
    pub(super) fn replace(&mut self, start: Sector, end: Sector) -> Option<usize> {
        let oldest = self.all.iter().enumerate().min_by_key(|(_, s)| s.used);
        let (at, _) = oldest?;
        self.all[at] = Segment {
            start: start.0,
            end: start.0,
            used: 0,
        };
        self.touch(at);
        self.extend(at, end);
        Some(at)
    }

    /// The segment now reaches to `end`; if it is full, sectors at its beginning are dropped.
    pub(super) fn extend(&mut self, segment: usize, end: Sector) {
        let of = &mut self.all[segment];
        of.end = of.end.max(end.0);
        of.start = of.start.max(of.end.saturating_sub(self.size));
    }

    /// These sectors are written: segments that have one of them are forgotten.
    pub(super) fn forget(&mut self, start: Sector, end: Sector) {
        for segment in &mut self.all {
            if segment.start < end.0 && start.0 < segment.end {
                // The drive may be reading on at its end.
                segment.start = segment.end;
            }
        }
    }
}

#[cfg(test)]
mod tests;
