//! The `[machine]` and `[queue]` tables.

use std::collections::BTreeMap;

use blkmq::elevator::SchedulerKind;
use serde::{Deserialize, Deserializer};

use crate::split::{self, Split};

/// CPUs and costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Machine profile, see `blksim list`. Default `ryzen-7950x`, the best documented one.
    pub profile: Option<String>,
    /// CPUs in use, from CPU 0 on. Default: all CPUs of the profile.
    pub cpus: Option<u16>,
    /// Ticks a second: 100, 250, 300 or 1000. Default 250, as Debian builds its kernels.
    pub hz: Option<u32>,
    /// Page cache for each disk, MiB, 16 to 16384; only jobs with `direct=0` use it. Default 1024.
    pub page_cache_mb: Option<u32>,
}

/// Files of queue/ and queue/iosched/ in sysfs, by their names. The scheduler's own attributes are
/// keys, too: see schedulers.md.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, remote = "Self")]
pub struct Queue {
    /// Kernel release whose rules apply, see `blksim run --help`; `v4.5`, `v4.6` and `v4.12` only
    /// for mapped devices. Default `v6.12`, on the single-queue path `v2.6.32`.
    pub rules: Option<String>,
    /// Path of requests to the driver: `blk-mq`, or `single-queue`, which kernels up to v4.20 had.
    /// Default: that of `rules`.
    pub path: Option<String>,
    /// Part of the January 2024 series that mq-deadline or bfq has: `stock`, `poc`, `v1`, `v2`,
    /// `v2-repaired`, `v3`, `serialise-only` or `skip-merge`. Default `stock`: no released kernel
    /// has the series.
    pub series: Option<String>,
    /// DD_CPU_BUCKETS: insertion buckets of `poc`, `v1`, `v2` and `v2-repaired`, 1 to 1024. Default
    /// 32, as posted.
    pub dd_cpu_buckets: Option<u16>,
    /// Kernel release whose rule restarts a hardware queue after a lack of tags: `v4.11`, `v4.14`,
    /// `v4.14-map-count`, `v4.15`, `v4.19`, `v5.9` or `v5.12`. All other rules are those of
    /// `rules`. Default `v5.12`.
    pub restart: Option<String>,
    /// The hardware queues that the end of a request restarts if queues share tags: `R0`, `R1`,
    /// `R2`, `R2p`, `R4` or `all`. Default: that of `restart`.
    pub restart_rule: Option<String>,
    /// Plugs of tasks without one: `each-bio`, `each-write` or `never`. Default: as `rules`
    /// have it.
    pub lone_plug: Option<String>,
    /// When bfq merges queues of processes that start together: `never`, `within-burst` (v5.13) or
    /// `since-activation` (v5.14 and later). Default: as in `rules`.
    pub stable_merge: Option<String>,
    /// Repairs of bfq that no kernel has, joined by `+` (docs/findings): `candidate` (0002),
    /// `per-actuator` (0003), `sequential` (0004), `active-lists` (0005), `raised-count` (0006).
    /// Default `none`.
    pub repairs: Option<String>,
    /// A scheduler's name, or `none`. Default as in the kernel: mq-deadline if the device has one
    /// hardware queue (poll queues count) or one tag map for all, else none.
    pub scheduler: Option<String>,
    /// Scheduler tags of each hardware queue, 4 to 2048; without a scheduler at most the device's
    /// depth. Default 2 * min(depth, 128), without a scheduler the depth (blk_mq_init_sched()). On
    /// the single-queue path the requests of each kind, sync and async; default 128.
    pub nr_requests: Option<u32>,
    /// 0 all merges, 1 only the cheap ones, 2 none. Default 0.
    pub nomerges: Option<u8>,
    /// true: a submission that inserts a request runs the hardware queue itself, as kernels patched
    /// for measurements do; false: kblockd runs it. Default false.
    pub inline_runs: Option<bool>,
    /// Completion: 0 on the CPU of the interrupt, 1 on a CPU that shares a cache with the
    /// submitter's, 2 on the submitter's. Default 1.
    pub rq_affinity: Option<u8>,
    /// Largest request, KiB. Default and maximum: the device's limit.
    pub max_sectors_kb: Option<u32>,
    /// Largest read-ahead window, KiB, a multiple of 4 up to 65536; 0 reads page by page. Only for
    /// reads through the page cache. Default 128 (VM_MAX_READAHEAD).
    pub read_ahead_kb: Option<u32>,
    /// Time after which a request times out, ms, at least 1. Default 5000 for null_blk, else 30000.
    pub io_timeout: Option<u32>,
    /// Files of queue/iosched/ that are written, with their values: attributes that some scheduler
    /// has ([`SchedulerKind::attributes`]). Defaults are the scheduler's. The odd one is
    /// mq-deadline's `async_depth`: nr_requests as it is before `nr_requests` here changes it, for
    /// that is what the kernels do (dd_depth_updated() runs before the new value is stored, v6.1
    /// and v6.12).
    #[serde(skip)]
    pub iosched: BTreeMap<String, i64>,
}

/// Attributes by themselves, all other keys as fields.
impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Queue, D::Error> {
        split::read(deserializer)
    }
}

impl<'de> Split<'de> for Queue {
    type Other = i64;
    const EXPECTED: &'static str = "a table of files of queue/ and queue/iosched/";
    const OTHERS: &'static str = "the attributes of the scheduler: see blksim reference schedulers";

    fn others() -> impl Iterator<Item = &'static str> {
        let all = SchedulerKind::ALL.iter().flat_map(|kind| kind.attributes());
        all.map(|(name, _)| name)
    }

    fn fields<D: Deserializer<'de>>(deserializer: D) -> Result<Queue, D::Error> {
        Queue::deserialize(deserializer)
    }

    fn with(self, iosched: BTreeMap<String, i64>) -> Queue {
        Queue { iosched, ..self }
    }
}

impl Queue {
    /// Settings written here, else those of `base`.
    pub(super) fn over(&self, base: &Queue) -> Queue {
        Queue {
            rules: self.rules.clone().or_else(|| base.rules.clone()),
            path: self.path.clone().or_else(|| base.path.clone()),
            series: self.series.clone().or_else(|| base.series.clone()),
            dd_cpu_buckets: self.dd_cpu_buckets.or(base.dd_cpu_buckets),
            restart: self.restart.clone().or_else(|| base.restart.clone()),
            restart_rule: self
                .restart_rule
                .clone()
                .or_else(|| base.restart_rule.clone()),
            lone_plug: self.lone_plug.clone().or_else(|| base.lone_plug.clone()),
            stable_merge: self
                .stable_merge
                .clone()
                .or_else(|| base.stable_merge.clone()),
            repairs: self.repairs.clone().or_else(|| base.repairs.clone()),
            scheduler: self.scheduler.clone().or_else(|| base.scheduler.clone()),
            nr_requests: self.nr_requests.or(base.nr_requests),
            nomerges: self.nomerges.or(base.nomerges),
            inline_runs: self.inline_runs.or(base.inline_runs),
            rq_affinity: self.rq_affinity.or(base.rq_affinity),
            max_sectors_kb: self.max_sectors_kb.or(base.max_sectors_kb),
            read_ahead_kb: self.read_ahead_kb.or(base.read_ahead_kb),
            io_timeout: self.io_timeout.or(base.io_timeout),
            iosched: base
                .iosched
                .clone()
                .into_iter()
                .chain(self.iosched.clone())
                .collect(),
        }
    }

    /// Without the settings that a scheduler of this name does not have.
    pub(super) fn of_scheduler(mut self, name: &str) -> Queue {
        let kind = SchedulerKind::by_name(name);
        let known = kind.map_or(Vec::new(), SchedulerKind::attributes);
        let has = |name: &str| known.iter().any(|&(known, _)| known == name);
        self.iosched.retain(|name, _| has(name));
        let info = kind.and_then(SchedulerKind::info);
        if !info.is_some_and(|info| info.has_series) {
            (self.series, self.dd_cpu_buckets) = (None, None);
        }
        if !info.is_some_and(|info| info.fair_queueing) {
            (self.stable_merge, self.repairs) = (None, None);
        }
        self
    }
}
