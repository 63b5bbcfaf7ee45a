//! Kyber: limits the requests of each kind that the device holds, by latency.
//!
//! * [`domain`]: the four kinds of operations with their constants
//! * `khd`: what happens under `khd->lock` of an hctx
//! * [`latency`]: histograms, percentiles, and the depths that follow from them
//! * [`settings`]: the attributes in queue/iosched
//! * [`shared`]: a lock for each ctx queue and each hctx, and the words beside them
//! * [`merge`], [`insert`], [`dispatch`], [`hook`]: the functions that stop at labels
//!
//! Tokens are maps of the queue (`queue/tokens.rs`). Kernel: block/kyber-iosched.c (6.1.192,
//! 6.12.117; 5.11 as data).

pub mod dispatch;
pub mod domain;
pub mod hctx_data;
pub mod hook;
pub mod insert;
pub mod latency;
pub mod merge;
mod overrides;
pub mod settings;
pub mod shared;

pub(crate) use dispatch::dispatch_request;
pub use domain::Domain;
pub(crate) use hook::call_hook;
pub(crate) use insert::insert_requests;
pub(crate) use merge::bio_merge;
pub use settings::KyberSettings;
pub(crate) use settings::KyberSettings as Settings;
pub use shared::KyberShared;
pub(crate) use shared::KyberShared as Shared;

use super::hook::{ElevatorTimer, Hooks, TimerContext};
use super::info::{ElevatorLock, MinShallow, Probes, RequestPath, SchedulerInfo, TokenEvents};
use super::shape::QueueShape;
use super::token::ElevatorTokens;
use crate::queue::QueueSettings;

/// KYBER_ASYNC_PERCENT: scheduler tags that operations which are not synchronous may use.
pub const ASYNC_PERCENT: u32 = 75;

/// Number of kcq->lock among Kyber's locks.
pub(crate) const KCQ: u8 = 0;
/// Number of khd->lock.
pub(crate) const KHD: u8 = 1;
/// Number of the one timer.
pub(crate) const TIMER: u8 = 0;

pub const INFO: SchedulerInfo = SchedulerInfo {
    path: RequestPath::MultiQueue,
    single_queue: false,
    // sbitmap_queue_min_shallow_depth() in kyber_depth_updated().
    min_shallow_depth: MinShallow::Percent(ASYNC_PERCENT),
    hooks: Hooks {
        prepare: true,
        completed: true,
        requeued: true,
        finished: true,
        exits: false,
    },
    timers: &[ElevatorTimer {
        name: "kqd->timer",
        context: TimerContext::Softirq,
    }],
    tokens: &[
        tokens("read token", Domain::Read),
        tokens("write token", Domain::Write),
        tokens("discard token", Domain::Discard),
        tokens("other token", Domain::Other),
    ],
    probes: Probes {
        insert: "ins",
        dispatch_entry: "kybere",
        dispatch_return: "kyber",
        finish: "kyfin",
        deadlines: false,
        events: Some(TokenEvents {
            percentile: "kyber_latency",
            depth: "kyber_adjust",
            throttled: "kyber_throttled",
        }),
        log: None,
    },
    ..SchedulerInfo::plain(
        "kyber",
        &[
            ElevatorLock::plain("kcq->lock"),
            ElevatorLock::plain("khd->lock"),
        ],
    )
};

const fn tokens(name: &'static str, domain: Domain) -> ElevatorTokens {
    ElevatorTokens {
        name,
        group: domain.name(),
        depth: domain.depth_max(),
        given_twice: true,
    }
}

pub(crate) fn new(
    settings: &KyberSettings,
    queue: &QueueSettings,
    shape: &QueueShape,
) -> KyberShared {
    KyberShared::new(settings, &queue.rules, shape)
}
