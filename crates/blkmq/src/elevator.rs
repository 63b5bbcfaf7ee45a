//! Schedulers: the interface to the block layer, and the closed set of them.
//!
//! * [`SchedulerInfo`]: static properties; [`Attributes`]: the files in sysfs
//! * [`Scheduler`]: the interface of a policy with one lock; [`Locked`]: its paths; [`series`]: the
//!   same with the January 2024 series
//! * a folder for each scheduler: policy, shared state, paths, settings
//! * [`Custom`]: a scheduler of a program that uses this library
//!
//! A path runs the scheduler's part in it (`bio_merge`, `insert_requests`, `dispatch_request`,
//! `call_hook`); which lock, word or wait queue that needs is the scheduler's business. Not here:
//! `none`, which keeps requests in software queues. Kernel: block/elevator.c, block/elevator.h
//! (v6.1, v6.12).

/// The schedulers: gives the list to the macro of this name, after what else it takes. Each module
/// in the list has `INFO`, `Settings` (with `defaults(hz, nr_requests)`), `new(settings, queue,
/// shape)`, which makes a `Shared` with the methods of `shared::Ops` that it has, and the functions
/// of `path.rs`, which for a scheduler with one lock are those of `locked`. In brackets: the groups
/// of its own labels.
macro_rules! schedulers {
    ($then:ident $($first:tt)*) => {
        $then! {
            $($first)*
            MqDeadline => mq_deadline,
            Kyber => kyber [
                /// Insertion of further requests of a list.
                KyberInsert = insert::At,
                /// Dispatch calls.
                KyberDispatch = dispatch::At,
                /// Hooks and the timer.
                KyberHook = hook::At,
            ],
            Bfq => bfq,
            Noop => noop,
            /// deadline of the single-queue path.
            SqDeadline => sq_deadline,
            Cfq => cfq,
        }
    };
}
pub(crate) use schedulers;

#[macro_use]
mod messages;
mod attribute;
pub mod bfq;
pub mod cfq;
mod choose_rq;
mod custom;
mod event_log;
mod hook;
mod ideal_share;
mod info;
mod kind;
pub mod kyber;
mod locked;
mod merging;
pub mod mq_deadline;
pub mod noop;
mod path;
mod pos_tree;
mod scheduler;
pub mod series;
mod shape;
mod shared;
pub mod sq_deadline;
mod submitters;
mod token;

pub use attribute::{Attribute, Attributes, Store, StoreError, Value};
pub use custom::{Custom, CustomScheduler, Fault};
pub use event_log::EventLog;
pub use hook::{After, ElevatorTimer, Hooks, TimerAsk, TimerContext};
pub use info::{
    ELEVATOR_LOCKS_MAX, ElevatorLock, LogMarks, MinShallow, Probes, RequestPath, SchedulerInfo,
    TokenEvents, shallow_share,
};
pub use kind::{SchedulerKind, SchedulerSettings, labels};
pub(crate) use locked::runs_under_lock;
pub use locked::{InsertionAt, Locked, MergeAt};
pub use merging::{MergeHooks, insert_merge, try_merge};
pub(crate) use path::{bio_merge, call_hook, dispatch_request, insert_requests};
pub use scheduler::{
    BioMerge, CalledOn, Charge, DispatchTime, InsertAt, Insertion, LEVELS, MayQueue, Now, Override,
    Scheduler, TRACED, TagMapSize, Wanted, completed_level,
};
pub use shape::QueueShape;
pub use shared::Elevator;
pub(crate) use shared::queue_lock;
pub use submitters::{Submitter, SubmitterGroup, Submitters};
pub use token::{ElevatorTokens, TOKEN_MAPS_MAX};

pub use crate::call::{Hook, Token};

use crate::list::QueueList;
use crate::request::RequestId;

/// All schedulers that kernels have or had besides `none`: another name is unknown, one of these
/// without a model is reported as not modelled.
pub const OF_KERNELS: [&str; 6] = ["bfq", "kyber", "mq-deadline", "cfq", "deadline", "noop"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merged {
    /// The bio needs a request of its own.
    No,
    /// The bio is part of a request; `absorbed` was emptied by that and must be freed.
    Into { absorbed: Option<RequestId> },
}

/// Requests of an insertion that are in no shared list, and the state of the January 2024 series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnedByInsert {
    /// The requests to insert, in order.
    pub list: QueueList,
    /// insert_seq as this path read it; zero where no later label reads it.
    pub seq: i32,
    /// The bucket that is filled or checked.
    pub bucket: u16,
    /// The list went to a bucket whose inserter may have gone: buckets first.
    pub filled: bool,
}
