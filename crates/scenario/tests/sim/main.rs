//! Runs of the simulator from outside, one noun a file. One program: each of its own would be
//! linked with all the crates below.

extern crate blksim_scenario as scenario;

mod bio_based;
mod buffered;
mod busy_paths;
mod captured_plugs;
mod captured_queues;
mod captures;
mod clones;
mod compared;
mod devices;
mod direct_issue;
mod drives;
mod fio;
mod fio_report;
mod idle_user;
mod joined;
mod ksoftirqd;
mod kyber_properties;
mod luns;
mod mapped;
mod mapped_delays;
mod mapped_single;
mod no_path_retry;
mod order;
mod own_hooks;
mod own_merging;
mod own_messages;
mod own_scheduler;
mod parquet;
mod plans;
mod plug_order;
mod plugs;
mod profiles;
mod readers;
mod replay;
mod reports;
mod reruns;
mod restart_cost;
mod runs;
mod scenarios;
mod seeks;
mod single_queue;
mod spinning;
mod stalls;
mod sweep;
mod switch;
mod t_io_uring;
#[path = "../../../blkmq/tests/common/throttle.rs"]
mod throttle;
mod tokens;
mod two_hosts;
mod wrapper;
