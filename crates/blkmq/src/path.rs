//! The kernel's paths, each a function with labels: one label, one critical section or one access
//! to a shared word.
//!
//! [`crate::drive`] keeps a stack of [`Frame`]s for each context, steps the top one and does what
//! [`Next`] asks. Read first: docs/internals/architecture.md, which follows one I/O label by label.

mod bio;
mod bio_end;
mod bio_work;
mod clone;
mod clone_end;
mod complete;
mod ctx;
mod driver;
mod end_batch;
mod flush;
mod frame;
mod hook;
mod insert;
pub mod label;
mod list;
mod map;
mod map_end;
mod may_queue;
mod owned;
mod pass;
mod plug;
mod requeue;
mod run;
mod run_queues;
mod sbitmap;
mod single;
mod submit;
mod suspend;
mod switch;
mod tag;
mod target;
mod timeout;
mod token;
mod wait;

pub use bio::MapBio;
pub use bio_end::BioEnd;
pub use bio_work::BioWorkPath;
pub use clone::{AllocateClone, IssueClone};
pub use clone_end::CloneEnd;
pub use complete::CompletePath;
pub use driver::CompleteOn;
pub use end_batch::EndBatchPath;
pub use flush::FlushPath;
pub use flush::alone::{FlushAlone, Ran as FlushRan};
pub use frame::Frame;
pub(crate) use frame::{Path, of_path};
pub use hook::HookFrame;
pub use insert::InsertPath;
pub use label::Label;
pub use map::MapPath;
pub use map_end::MapEnd;
pub use owned::{OwnedByRun, OwnedTags};
pub use plug::{IssuePath, PlugPath};
pub use requeue::{RequeuePath, RequeueRequest};
pub use run::RunPath;
pub use run_queues::RunQueuesPath;
pub use sbitmap::alone::MapAlone;
pub use single::{SingleEnd, SingleRun, SingleSubmit};
pub use submit::{Execute, ExecutePath, SubmitPath};
pub use suspend::{SuspendPath, Suspends};
pub use switch::SwitchPath;
pub use target::TargetPath;
pub use timeout::TimeoutPath;
pub use token::{GetToken, PutToken, ResizeTokens};
pub use wait::{WaitPath, WakeUpPath};

pub use crate::call::{
    BioEndOf, BioFrom, BioWork, Call, Event, Inserts, RunBy, RunHow, SingleEndHow, ThenUnplug,
    ToTarget, Unplug,
};
pub use crate::plug::{Plug, PlugList};
pub use crate::step::Next;
