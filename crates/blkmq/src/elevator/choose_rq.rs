//! The better of two requests: synchronous before others, metadata before the rest, then the one
//! nearer to the head, where moving forward is cheaper than back.
//!
//! Not here: the position of the head, and which two are compared.
//! Kernel: block/cfq-iosched.c cfq_choose_req() (2.6.32 to 4.20), block/bfq-iosched.c
//! bfq_choose_req() (6.1.192, 6.12.117).

use super::scheduler::is_sync;
use crate::request::{RequestId, RequestPool};

/// The cost of seeking back.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackSeek {
    /// Longest seek backward that is considered, KiB.
    pub(super) max_kib: u32,
    /// Cost of a sector backward, of one forward.
    pub(super) penalty: u32,
}

/// The distance of a request from the head, or too far below it.
enum Distance {
    Sectors(u64),
    Wrapped,
}

/// The better request, as seen from sector `last`.
pub(super) fn choose_rq(
    pool: &RequestPool,
    first: Option<RequestId>,
    second: Option<RequestId>,
    last: u64,
    back: BackSeek,
) -> Option<RequestId> {
    let (Some(one), Some(two)) = (first, second) else {
        return first.or(second);
    };
    if one == two {
        return first;
    }
    let (of_one, of_two) = (&pool[one], &pool[two]);
    let sync = [of_one, of_two].map(|rq| is_sync(rq.op, rq.flags));
    let takes_one = match (sync, [of_one.flags.meta, of_two.flags.meta]) {
        ([true, false], _) => true,
        ([false, true], _) => false,
        (_, [true, false]) => true,
        (_, [false, true]) => false,
        _ => back.is_nearer(of_one.sector.0, of_two.sector.0, last),
    };
    Some(if takes_one { one } else { two })
}

impl BackSeek {
    /// The first sector is nearer to the head; of equals the higher one, of those too far below the
    /// lower one.
    fn is_nearer(self, one: u64, two: u64, last: u64) -> bool {
        match (self.distance(one, last), self.distance(two, last)) {
            (Distance::Sectors(near), Distance::Sectors(far)) if near != far => near < far,
            (Distance::Sectors(_), Distance::Sectors(_)) => one >= two,
            (Distance::Sectors(_), Distance::Wrapped) => true,
            (Distance::Wrapped, Distance::Sectors(_)) => false,
            (Distance::Wrapped, Distance::Wrapped) => one <= two,
        }
    }

    fn distance(self, sector: u64, last: u64) -> Distance {
        let back_max = u64::from(self.max_kib) * 2;
        if sector >= last {
            Distance::Sectors(sector - last)
        } else if sector + back_max >= last {
            Distance::Sectors((last - sector) * u64::from(self.penalty))
        } else {
            Distance::Wrapped
        }
    }
}
