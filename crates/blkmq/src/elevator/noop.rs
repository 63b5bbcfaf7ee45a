//! noop: one list, oldest first; only merging and its lock distinguish it from `none`.
//!
//! The noop of the single-queue block layer with the hooks of a multi-queue scheduler, which no
//! kernel has: it shows the cost of a scheduler without decisions. It has no attributes. Read:
//! [`policy`]. Kernel: block/noop-iosched.c (4.20).

pub mod policy;

pub(crate) use super::locked::{bio_merge, call_hook, dispatch_request, insert_requests};
pub use policy::Noop;

use super::attribute::{Attribute, Attributes};
use super::info::{ElevatorLock, SchedulerInfo};
use super::locked::Locked;
use super::shape::QueueShape;
use crate::queue::QueueSettings;

pub const INFO: SchedulerInfo = SchedulerInfo::plain("noop", &[ElevatorLock::plain("nd->lock")]);

/// noop has no settings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NoopSettings;

pub(crate) use NoopSettings as Settings;

impl NoopSettings {
    pub fn defaults(_hz: u32, _nr_requests: u32) -> NoopSettings {
        NoopSettings
    }
}

impl Attributes for NoopSettings {
    const SCHEDULER: &'static str = INFO.name;
    const TABLE: &'static [Attribute<NoopSettings>] = &[];
}

pub(crate) type Shared = Locked<Noop>;

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "as every scheduler has it: the list makes all alike"
)]
pub(crate) fn new(_settings: &NoopSettings, _queue: &QueueSettings, _shape: &QueueShape) -> Shared {
    Locked::with(Noop::default(), &INFO)
}
