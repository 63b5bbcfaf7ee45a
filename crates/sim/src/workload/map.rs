//! The blocks of a region that are done (fio's axmap).
//!
//! A tree of words: a bit of an upper level is set when all 64 bits of the word below it are.

const BITS: u64 = u64::BITS as u64;

#[derive(Clone, Debug)]
pub(super) struct Map {
    /// The lowest level first; the highest is one word.
    levels: Vec<Vec<u64>>,
    blocks: u64,
}

impl Map {
    /// No block of so many is done. Panics if there are none.
    pub(super) fn new(blocks: u64) -> Map {
        assert!(blocks > 0, "a map of no block");
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(BITS);
            levels.push(vec![0; words as usize]);
            bits = words;
            if words == 1 {
                break;
            }
        }
        let mut map = Map { levels, blocks };
        map.close_ends();
        map
    }

    pub(super) fn clear(&mut self) {
        for level in &mut self.levels {
            level.fill(0);
        }
        self.close_ends();
    }

    /// Bits after the last one of a level are never free.
    fn close_ends(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            let last = level.last_mut().expect("a level has a word");
            if !bits.is_multiple_of(BITS) {
                *last = u64::MAX << (bits % BITS);
            }
            bits = bits.div_ceil(BITS);
        }
    }

    pub(super) fn is_done(&self, block: u64) -> bool {
        assert!(block < self.blocks, "block {block} of {}", self.blocks);
        self.levels[0][(block / BITS) as usize] >> (block % BITS) & 1 == 1
    }

    /// Marks `count` blocks from one on, but none from the first on that is done: how many.
    pub(super) fn mark(&mut self, first: u64, count: u64) -> u64 {
        let end = (first + count).min(self.blocks);
        let mut block = first;
        while block < end && !self.is_done(block) {
            self.mark_one(block);
            block += 1;
        }
        block - first
    }

    fn mark_one(&mut self, block: u64) {
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / BITS) as usize];
            *word |= 1 << (bit % BITS);
            if *word != u64::MAX {
                return;
            }
            bit /= BITS;
        }
    }

    /// The first block that is not done from this one on, then from the beginning.
    pub(super) fn free(&self, from: u64) -> Option<u64> {
        self.free_after(from).or_else(|| self.free_after(0))
    }

    fn free_after(&self, from: u64) -> Option<u64> {
        let mut bit = from;
        let mut level = 0;
        // Up until a word has a free bit, then down to the first block below that.
        loop {
            let word = self.levels[level].get((bit / BITS) as usize)?;
            let free = !word & (u64::MAX << (bit % BITS));
            if free != 0 {
                bit = bit / BITS * BITS + u64::from(free.trailing_zeros());
                break;
            }
            level += 1;
            if level == self.levels.len() {
                return None;
            }
            bit = bit / BITS + 1;
        }
        for level in self.levels[..level].iter().rev() {
            bit = bit * BITS + u64::from((!level[bit as usize]).trailing_zeros());
        }
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::Map;
    use proptest::prelude::*;

    proptest! {
        /// As with a list of flags.
        #[test]
        fn it_is_a_set_of_blocks(
            blocks in prop::sample::select(vec![1u64, 63, 64, 65, 700, 4096, 4097, 9000]),
            runs in prop::collection::vec((0u64..9000, 1u64..700), 0..60),
        ) {
            let mut map = Map::new(blocks);
            let mut done = vec![false; blocks as usize];
            for (first, count) in runs {
                let first = first % blocks;
                let at = first as usize;
                let run = done[at..].iter().take(count as usize).take_while(|done| !**done);
                let run = run.count();
                prop_assert_eq!(map.is_done(first), run == 0);
                prop_assert_eq!(map.mark(first, count), run as u64);
                done[at..at + run].fill(true);
                let turned = (at..done.len()).chain(0..at);
                let free = turned.filter(|&block| !done[block]).map(|block| block as u64).next();
                prop_assert_eq!(map.free(first), free);
            }
            map.clear();
            prop_assert_eq!(map.mark(0, blocks + 70), blocks);
            prop_assert_eq!(map.free(0), None);
        }
    }
}
