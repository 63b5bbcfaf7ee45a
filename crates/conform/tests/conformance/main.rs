//! Captures against the model: those that it follows, changed ones that it must reject, and those
//! that lack something.

extern crate blksim_conform as conform;

mod change;
mod choices;
mod common;
mod disagree;
mod fuzz;
mod issues;
mod rewritten;
mod unlogged;
