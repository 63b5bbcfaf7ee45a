//! Time and machine: the simulated machine that the block layer of `blkmq` runs on.
//!
//! [`Simulator::new`](machine::Simulator::new) takes a [`Plan`](plan::Plan), which the crate
//! `blksim-scenario` makes of a scenario, and a [`MachineProfile`](profile::MachineProfile);
//! [`run`](machine::Simulator::run) runs it, and after
//! [`settle`](machine::Simulator::settle) the [`Recorder`](recorder::Recorder) has what happened.
//! The front page of `blksim-scenario` is a complete program. A device model of your own is a
//! [`Device`](device::Device), put in by
//! [`replace_device`](machine::Simulator::replace_device). Errors are texts with the field's name;
//! a panic is a defect of the simulator. Times are nanoseconds, prices of cache lines picoseconds.
//!
//! The layers, each of which uses only those above it (`cargo xtask tidy` looks for circles):
//!
//! | Layer | Contents |
//! |---|---|
//! | `rng`, `event_queue` | random numbers; events in their order |
//! | `estimate`, `batch_means` | confidence intervals: of independent values; of one run |
//! | `step`, `profile`, `cost` | steps outside the block layer; machines and prices; times |
//! | `page_cache`, `readahead` | pages of a file; pages read ahead |
//! | `plan` | a run with every setting decided (crate `scenario`: the settings as written) |
//! | `recorder` | statistics of a run |
//! | `workload`, `replay` | sources of I/O: jobs; the arrivals of a capture |
//! | `device` | null_blk, NVMe, scsi_debug, fc, disk, captured, mapped; faults around any of them |
//! | `machine` | CPUs, tasks, locks, workers: the run itself |
#![forbid(unsafe_code)]

pub mod batch_means;
pub mod cost;
pub mod device;
pub mod estimate;
pub mod event_queue;
pub mod machine;
pub mod page_cache;
pub mod plan;
pub mod profile;
pub mod readahead;
pub mod recorder;
pub mod replay;
pub mod rng;
pub mod step;
pub mod workload;
