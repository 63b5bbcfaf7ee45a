//! Studies of many runs: sweeps, comparisons, published tables, calibration.
//!
//! The layers, each of which uses only those above it:
//!
//! | Layer | Content |
//! |---|---|
//! | `error` | reasons why a study fails |
//! | `fleet` | runs spread over cores, their answers in the order of the questions |
//! | `sweep` | many runs, a report each |
//! | `compare` | means and intervals over seeds, differences between variants |
//! | `design` | the points of a sweep, from its file |
//! | `calibrate` | a profile's costs from measurements |
//! | `reproduce` | published tables next to the results of the profiles |
//! | `ablation` | profiles without a mechanism, fitted again (`calibrate`) |
//! | `what_if` | a capture's arrivals under other schedulers and tunables |
//! | `sensitivity` | how the throughput of published rows (`reproduce`) follows each cost |
//!
//! Not here: arguments, files, printing (`cli`).
#![forbid(unsafe_code)]

pub mod ablation;
pub mod calibrate;
pub mod compare;
pub mod design;
pub mod error;
pub mod fleet;
pub mod reproduce;
pub mod sensitivity;
pub mod sweep;
pub mod what_if;
