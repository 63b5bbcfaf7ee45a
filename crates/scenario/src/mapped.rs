//! `[mapped]`, or several `[[mapped]]`: device-mapper multipath devices over some of the devices.
//!
//! Keys are the names of dmsetup, of the parameters of the modules dm-mod and dm-multipath, and of
//! multipath.conf.

mod words;

pub use words::NoPathRetry;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::device::{Switch, tables};
use super::{FioText, Queue, Scenario, ScenarioError};

/// A multipath device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapped {
    /// Name below /dev, which fio's `filename` uses. Default `dm-0`, then `dm-1` and so on.
    pub name: Option<String>,
    /// A line of `dmsetup table`, with devices by their names here: `0 8388608 multipath 0 0 1 1
    /// service-time 0 2 1 nullb0 1 nullb1 1`, or `/dev/nullb0`. They are no disks of their own any
    /// more.
    pub table: String,
    /// The same before the keys of words are written into it (`words.rs`); empty up to then.
    #[serde(skip)]
    pub(super) plain: String,
    /// multipath.conf: the feature words of the table with their number, `1 queue_if_no_path`.
    pub features: Option<FioText>,
    /// Its hardware handler with the number of its words, `1 alua`.
    pub hw_handler: Option<FioText>,
    /// multipath.conf: selector of all groups with the number of its arguments, `service-time 0`.
    /// Paths keep the first of their arguments.
    pub path_selector: Option<String>,
    /// multipath.conf: the first argument of all paths.
    pub rr_min_io_rq: Option<u32>,
    /// multipath.conf: what becomes of requests without a path. Default: what the features say.
    pub no_path_retry: Option<NoPathRetry>,
    /// What its queue has of its own; for the rest `[queue]` holds. Default: nothing.
    #[serde(default)]
    pub queue: Queue,
    /// dm-mod: hardware queues, 1 to 32. Default 1.
    pub dm_mq_nr_hw_queues: Option<u16>,
    /// dm-mod: tags of each, 1 to 10240. Default 2048; 128 up to 4.5.
    pub dm_mq_queue_depth: Option<u32>,
    /// dm-mod: 0 makes the mapped queue a single-queue one, whose requests a thread maps. Default 0
    /// where the kernel has such a queue (v4.5, v4.6, v4.12), else 1.
    pub use_blk_mq: Option<Switch>,
    /// dm-multipath: how long requests are held for want of a path, s; 0: for ever. Default 0.
    pub queue_if_no_path_timeout_secs: Option<u64>,
    /// How long a hardware handler takes to activate a path, us. Default 1000.
    pub activation_us: Option<u64>,
    /// multipath.conf: seconds between two looks of multipathd at a path. Default 5.
    pub polling_interval: Option<u64>,
    /// Single changes of the kernel's device-mapper, by name. Default: as `queue.rules` says.
    #[serde(default)]
    pub kernel: BTreeMap<String, String>,
    /// Times at which a path is out of reach. Default: none.
    #[serde(default)]
    pub outage: Vec<Outage>,
    /// Messages of dmsetup. Default: none.
    #[serde(default)]
    pub message: Vec<Message>,
    /// Suspensions. Default: none.
    #[serde(default)]
    pub suspend: Vec<Suspend>,
}

/// `[[mapped.suspend]]`: `dmsetup suspend DEVICE`, and `dmsetup resume DEVICE`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// When, us from the start of the run.
    pub at_us: u64,
    /// `--noflush`: requests that wait for a path stay, instead of failing. Default false.
    #[serde(default)]
    pub noflush: bool,
    /// When it goes on, us; later if the suspension takes longer.
    pub resume_us: u64,
}

/// `[[mapped.outage]]`: what the device of a path has, and what it gets, fails.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Name of the device.
    pub path: String,
    /// From this time of the run on, us.
    pub from_us: u64,
    /// Until then, us.
    pub to_us: u64,
    /// When multipathd has the path reinstated, us. Default: its next look.
    pub reinstate_us: Option<u64>,
}

/// `[[mapped.message]]`: `dmsetup message DEVICE 0 TEXT`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// When, us from the start of the run.
    pub at_us: u64,
    /// `fail_path nullb0`, `reinstate_path nullb0`, `queue_if_no_path`, `fail_if_no_path`,
    /// `switch_group N`, `disable_group N` or `enable_group N`.
    pub text: String,
}

/// One `[mapped]` or several `[[mapped]]`.
pub(super) fn one_or_more<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<Mapped>, D::Error> {
    tables(source, "a table [mapped] or several [[mapped]]")
}

/// Dotted name of the table with this place among several; none of the only one.
pub(super) fn table_name(number: Option<usize>) -> String {
    match number {
        Some(number) => format!("mapped.{number}"),
        None => "mapped".to_owned(),
    }
}

/// A multipath device where it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) mapped: &'a Mapped,
    /// Its place among several; none of the only one.
    pub(super) number: Option<usize>,
}

impl<'a> Written<'a> {
    /// All of a scenario, in order.
    pub(super) fn all(scenario: &'a Scenario) -> impl Iterator<Item = Written<'a>> {
        let one = scenario.source.table("mapped").is_some();
        let all = scenario.mapped.iter().enumerate();
        all.map(move |(number, mapped)| Written {
            scenario,
            mapped,
            number: (!one).then_some(number),
        })
    }

    /// Dotted name of its table: `mapped`, `mapped.1`.
    pub(super) fn table(&self) -> String {
        table_name(self.number)
    }

    /// Dotted name of a key.
    pub(super) fn field(&self, key: &str) -> String {
        format!("{}.{key}", self.table())
    }

    /// An error about a key, where it was written.
    pub(super) fn error(&self, key: &str, what: impl Into<String>) -> ScenarioError {
        self.scenario.error(&self.field(key), what)
    }
}
