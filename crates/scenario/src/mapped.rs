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
    /// service-time 0 2 1 nullb0 1 nullb1 1`, or `/dev/nullb0`. It starts at 0 and is no longer
    /// than the smallest path. Features, hardware handler (`alua`, `emc`, `hp_sw` or `rdac`, over
    /// SCSI devices), selectors and their arguments are those of the kernel.
    pub table: String,
    /// The same before the keys that change words are applied (`words.rs`); empty up to then.
    #[serde(skip)]
    pub(super) plain: String,
    /// Feature words of the table with their number: `1 queue_if_no_path`; 0 is none. Default:
    /// those of `table`.
    pub features: Option<FioText>,
    /// Hardware handler of the table with the number of its words: `1 alua` (multipath.conf:
    /// `hardware_handler`); 0 is none. Default: that of `table`.
    pub hw_handler: Option<FioText>,
    /// Path selector of all groups with the number of its arguments: `service-time 0`. Paths keep
    /// their first argument. Default: that of `table`.
    pub path_selector: Option<String>,
    /// The first argument of all paths. Default: those of `table`.
    pub rr_min_io_rq: Option<u32>,
    /// multipath.conf: `fail`, `queue`, or the number of checks of multipathd (one each
    /// `polling_interval`) for which requests are queued without a path. Default: as the features
    /// say.
    pub no_path_retry: Option<NoPathRetry>,
    /// Settings of this device's queue, in place of those in `[queue]`. Default: none.
    #[serde(default)]
    pub queue: Queue,
    /// Module dm_mod: hardware queues, 1 to 32. Default 1.
    pub dm_mq_nr_hw_queues: Option<u16>,
    /// Module dm_mod: tags of each hardware queue, 1 to 10240. Default 2048; 128 for v4.5.
    pub dm_mq_queue_depth: Option<u32>,
    /// Module dm_mod: 0 makes the mapped queue a single-queue one, with `noop` or `deadline`, whose
    /// requests a thread maps. Default 0 for v4.5, v4.6 and v4.12, else 1.
    pub use_blk_mq: Option<Switch>,
    /// Module dm_multipath: how long requests are queued without a path, s; 0: without limit.
    /// Default 0.
    pub queue_if_no_path_timeout_secs: Option<u64>,
    /// Time in which a hardware handler activates a path, us. Default 1000.
    pub activation_us: Option<u64>,
    /// multipath.conf: seconds between two checks of a path by multipathd. Default 5.
    pub polling_interval: Option<u64>,
    /// Single changes between kernels, by name: `target_lock` (`whole`, `changes`), `target`
    /// (`table`, `known`), `io_data` (`mempool`, `in-request`), `insertion` of clones
    /// (`in-background`, `at-once`, `scheduler`, `direct`), `second_end` (`softirq`, `placed`),
    /// `end_run` (`hctxs`, `nothing`); the first word is v4.5's. A change without effect on the
    /// device is an error. Default: as `queue.rules` says.
    #[serde(default)]
    pub kernel: BTreeMap<String, String>,
    /// Times in which a path fails. Default: none.
    #[serde(default)]
    pub outage: Vec<Outage>,
    /// Messages of dmsetup. Default: none.
    #[serde(default)]
    pub message: Vec<Message>,
    /// Suspensions. Default: none.
    #[serde(default)]
    pub suspend: Vec<Suspend>,
}

/// `dmsetup suspend DEVICE`, and `dmsetup resume DEVICE` with the same table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// Time of the suspend, us from the start of the run.
    pub at_us: u64,
    /// `--noflush`: requests that wait for a path stay queued instead of failing. Default false.
    #[serde(default)]
    pub noflush: bool,
    /// Time of the resume, us; later if the suspension takes longer.
    pub resume_us: u64,
}

/// Commands that the path's device has or gets in this time fail with a transport error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Name of the device.
    pub path: String,
    /// Start, us from the start of the run.
    pub from_us: u64,
    /// End, us from the start of the run.
    pub to_us: u64,
    /// When multipathd reinstates the path, us. Default: its next check.
    pub reinstate_us: Option<u64>,
}

/// `dmsetup message DEVICE 0 TEXT`. A suspended device refuses it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Time of the message, us from the start of the run.
    pub at_us: u64,
    /// `fail_path nullb0`, `reinstate_path nullb0`, `queue_if_no_path`, `fail_if_no_path`,
    /// `switch_group N`, `disable_group N` or `enable_group N`.
    pub text: String,
}

pub(super) fn one_or_more<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<Mapped>, D::Error> {
    tables(source, "a table [mapped] or several [[mapped]]")
}

/// Dotted name of the table with this place among several, or of the only one.
pub(super) fn table_name(number: Option<usize>) -> String {
    match number {
        Some(number) => format!("mapped.{number}"),
        None => "mapped".to_owned(),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) mapped: &'a Mapped,
    /// Its place among several; `None` for the only one.
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
