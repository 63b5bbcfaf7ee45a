//! When a request stops counting among those with tags, relative to the free of its tag.
//!
//! Kernel: __blk_mq_dec_active_requests() around blk_mq_put_tag() (6.1.192, 6.12.117).

use super::{At, Put};

/// Whether a request counts among those with tags, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Counted {
    /// It does not, or not any more.
    No,
    /// Until its tag is about to go back.
    Before,
    /// Until its tag is back.
    Behind,
}

impl Put {
    /// Frees the bit of a request that counts as one with a tag, or does not.
    pub fn counted(self, counted: bool) -> Put {
        let counted = if counted {
            Counted::Before
        } else {
            Counted::No
        };
        Put { counted, ..self }
    }

    /// One that counts does so until its bit is free and whoever waited for it is woken.
    pub fn counted_after(self) -> Put {
        let counted = match self.counted {
            Counted::No => Counted::No,
            _ => Counted::Behind,
        };
        Put { counted, ..self }
    }

    /// True once, either while the bit is still set, or after everything else: the caller counts
    /// the request out now.
    pub fn count_out(&mut self) -> bool {
        let due = match self.at {
            At::Clear => self.counted == Counted::Before,
            At::Uncount => true,
            _ => false,
        };
        if due {
            self.counted = Counted::No;
        }
        due
    }

    /// Nothing is left but to count the request out: true if it still counts.
    pub fn is_left_to_count(&mut self) -> bool {
        if self.counted == Counted::Behind {
            self.at = At::Uncount;
        }
        self.at == At::Uncount
    }

    /// It was counted out after everything else.
    pub fn is_over(&self) -> bool {
        self.at == At::Uncount && self.counted == Counted::No
    }
}
