//! The specification `specs/Restart`, walked with the real paths: one action of the specification
//! is a run of blkmq's labels from one named label to the next.
//!
//! [`Setting`] is a configuration of the specification; [`explore`](fn@explore) visits all its
//! states and counts them as TLC does; [`replay`](fn@replay) takes the steps of a schedule. Read
//! next: `restart/world.rs` for how an action runs, `restart/project.rs` for what of a state the
//! specification sees.

mod invariant;
mod liveness;
mod project;
mod replay;
mod run;
mod search;
mod setting;
mod walk;
mod world;

pub use liveness::{Lived, liveness};
pub use replay::{Replayed, replay};
pub use search::{Explored, Options, explore};
pub use setting::{Setting, SettingError};
pub use walk::{Broken, walks};
