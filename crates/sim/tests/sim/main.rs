//! Runs of the simulator from outside, one noun a file. One program: each of its own would be
//! linked with all the crates below.

mod bio_based;
mod buffered;
mod captured_queues;
mod devices;
mod direct_issue;
mod disk;
mod groups;
mod hand_off;
mod idle_user;
mod joined;
mod ksoftirqd;
mod kyber_properties;
mod lockers;
mod looked_at;
mod luns;
mod mapped;
mod mapped_single;
mod meddler;
mod own_hooks;
mod own_merging;
mod own_messages;
mod own_scheduler;
mod paced;
mod plug_order;
mod plugs;
mod readers;
mod replay;
mod reruns;
mod restart_cost;
mod runs;
mod scenarios;
mod seeks;
mod series;
mod single_paths;
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
mod waits;
