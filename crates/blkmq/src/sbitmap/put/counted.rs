//! The end of a request's count among those with tags, relative to the free of its tag.
//!
//! Kernel: __blk_mq_dec_active_requests() around blk_mq_put_tag() (6.1.192, 6.12.117).

use super::{At, Put};

/// Whether a request counts among those with tags, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Counted {
    /// It does not, or not any more.
    No,
    /// Until its tag is freed.
    Before,
    /// Until after the free of its tag.
    After,
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

    /// The request counts until its bit is free and the waiter is woken.
    pub fn counted_after(self) -> Put {
        let counted = match self.counted {
            Counted::No => Counted::No,
            _ => Counted::After,
        };
        Put { counted, ..self }
    }

    /// True once, either while the bit is still set, or after everything else: the caller now ends
    /// the count of the request.
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

    /// Only the end of the count is left: true if the request still counts.
    pub fn is_left_to_count(&mut self) -> bool {
        if self.counted == Counted::After {
            self.at = At::Uncount;
        }
        self.at == At::Uncount
    }

    /// The count ended after everything else.
    pub fn is_over(&self) -> bool {
        self.at == At::Uncount && self.counted == Counted::No
    }
}
