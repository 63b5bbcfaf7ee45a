//! Schedulers of a kernel tree, compiled from their own C: beside those of blkmq, or in their
//! place.
//!
//! * [`Tree`]: a directory with a kernel's source; nothing of it is in this project
//! * [`Library`]: a scheduler's C file, compiled over the headers in `shim/`, and loaded
//! * [`Coverage`]: which lines of it were reached
//! * [`Policy`]: that scheduler as blkmq sees one ([`blkmq::elevator::Scheduler`])
//!
//! The only crate with `unsafe`: it calls C, in `library.rs` alone. Not here: locks, CPUs and
//! prices, which are those of any scheduler of a program (`blkmq::elevator::Custom`).

mod call;
mod compile;
mod coverage;
pub mod differential;
mod library;
mod mirror;
mod policy;
/// The scripts of blkmq's own tests, and what carries them out.
#[allow(dead_code, reason = "only scripts about a scheduler are needed")]
#[path = "../../blkmq/tests/script/mod.rs"]
mod script;
mod show;
mod tree;

pub use blkmq::elevator::Fault;
pub use coverage::Coverage;
pub use library::Library;
pub use policy::Policy;
pub use tree::{Error, Tree};
