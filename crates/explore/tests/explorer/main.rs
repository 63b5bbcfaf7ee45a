//! Small configurations explored whole, specifications followed, and random walks: one program, so
//! that it is linked once and its tests share both CPUs.

extern crate blksim_explore as explore;

mod bfq;
mod bfq_merge;
mod cfq_merge;
mod clean;
mod corpus;
mod counts;
mod dispatch;
mod exhaustive;
mod kyber;
mod mapped;
mod mapped_bio;
mod own;
mod resources;
mod restart;
mod series;
mod shared;
mod single;
mod soak;
mod spec;
mod specs;
mod switch;
#[path = "../../../blkmq/tests/common/throttle.rs"]
mod throttle;
mod tokens;
mod two_paths;
