//! Captures read and written, compared with blkparse and btt; damaged ones are errors.

extern crate blksim_trace as trace;

mod blkparse;
mod btt;
mod common;
mod damage;
mod matching;
mod roundtrip;
mod samples;
mod texts;
mod tools;
