//! Tokens of a queue's scheduler, and the hctxs that wait for one.
//!
//! State only; allocation and free are in `path/token.rs`. Created for the queue's scheduler from
//! its `SchedulerInfo`. Kernel: kyber_queue_data and kyber_hctx_data in block/kyber-iosched.c,
//! struct sbq_wait in include/linux/sbitmap.h (6.1.192, 6.12.117).

use super::QueueSettings;
use crate::elevator::{ElevatorTokens, TOKEN_MAPS_MAX};
use crate::env::{Bit, Hint, value};
use crate::sbitmap::Sbitmap;

/// Tokens of one kind (domain_tokens), and the entries of hctxs in their wait queues.
#[derive(Debug)]
pub struct TokenMap {
    pub info: &'static ElevatorTokens,
    pub map: Sbitmap,
    /// One entry for each hctx (domain_wait).
    pub waits: Vec<TokenWait>,
}

value!(TokenMap { info; map, waits });

/// An hctx's entry in the wait queues of one map. Only the dispatch of that hctx adds it, under the
/// lock that its scheduler has for that.
#[derive(Debug)]
pub struct TokenWait {
    /// It is in a wait queue: `!list_empty(&wait->entry)`, as read without the queue's lock.
    pub queued: Bit,
    /// The wait queue (domain_ws).
    pub ws_index: Hint,
    /// The next wait queue to use (wait_index).
    pub wait_index: Hint,
}

value!(TokenWait { ; queued, ws_index, wait_index });

/// The maps of the scheduler that these settings name; none for one without tokens. `hint` draws
/// first allocation hints.
pub(super) fn token_maps(
    settings: &QueueSettings,
    cpus: usize,
    hctxs: usize,
    hint: &mut dyn FnMut() -> u32,
) -> Vec<TokenMap> {
    let maps = settings.scheduler.info().map_or(&[][..], |f| f.tokens);
    assert!(maps.len() <= TOKEN_MAPS_MAX, "a scheduler has fewer maps");
    let of = |info: &'static ElevatorTokens| {
        let rule = settings.rules.shallow_depth;
        let mut map = Sbitmap::new(info.depth, cpus, rule, None, hctxs, &mut *hint);
        map.follow(&settings.rules);
        map.given_twice = info.given_twice;
        let wait = |_| TokenWait {
            queued: Bit::new(false),
            ws_index: Hint::new(0),
            wait_index: Hint::new(0),
        };
        TokenMap {
            info,
            map,
            waits: (0..hctxs).map(wait).collect(),
        }
    };
    maps.iter().map(of).collect()
}
