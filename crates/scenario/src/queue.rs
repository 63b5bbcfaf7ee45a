//! The `[machine]` and `[queue]` tables.

use std::collections::BTreeMap;
use std::fmt;

use blkmq::elevator::SchedulerKind;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};

/// `[machine]`: CPUs and their prices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Name of a profile. Default `ryzen-7950x`, the best documented one.
    pub profile: Option<String>,
    /// CPUs in use, from CPU 0 on. Default: all of the profile.
    pub cpus: Option<u16>,
    /// Ticks a second: 100, 250, 300 or 1000. Default 250, as Debian builds its kernels.
    pub hz: Option<u32>,
    /// Memory that the page cache has for each disk, MiB, 16 to 16384. Default 1024.
    pub page_cache_mb: Option<u32>,
}

/// `[queue]`: files of queue/ and queue/iosched/ of sysfs, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, remote = "Self")]
pub struct Queue {
    /// Kernel: one of `Rules::names_of`, which for mapped devices has `v4.5`, `v4.6` and `v4.12`.
    /// Default `v6.12`, on the single-queue path `v2.6.32`.
    pub rules: Option<String>,
    /// Way of requests to the driver: `blk-mq`, or `single-queue`, which kernels up to v4.20 had.
    /// Default: what `rules` have.
    pub path: Option<String>,
    /// What of the January 2024 series mq-deadline has: `stock`, `poc`, `v1`, `v2`, `v2-repaired`,
    /// `v3`, `serialise-only` or `skip-merge`. Goes with both `rules`. Default `stock`, as kernels
    /// have nothing of it.
    pub series: Option<String>,
    /// DD_CPU_BUCKETS: insertion buckets of `poc`, `v1`, `v2` and `v2-repaired`, 1 to 1024. Default
    /// 32, as posted.
    pub dd_cpu_buckets: Option<u16>,
    /// Who runs a hardware queue again that could not issue all it had: `v4.11`, `v4.14`,
    /// `v4.14-map-count`, `v4.15`, `v4.19`, `v5.9` or `v5.12`. Goes with both `rules`, which are
    /// those of the rest. Default `v5.12`, as both have it.
    pub restart: Option<String>,
    /// One axis of it: `R0`, `R1`, `R2`, `R2p`, `R4` or `all`. Default: that of `restart`.
    pub restart_rule: Option<String>,
    /// Who plugs where a task has no plug: `each-bio`, `each-write` or `never`. Default: as `rules`
    /// have it.
    pub lone_plug: Option<String>,
    /// When queues of processes that start together are merged, of schedulers that do so: `never`,
    /// `within-burst` or `since-activation`. Default: as `rules` have it.
    pub stable_merge: Option<String>,
    /// A scheduler's name, or `none`. Default as in the kernel: mq-deadline if the device has one
    /// hardware queue (poll queues count) or one tag map for all, else none.
    pub scheduler: Option<String>,
    /// Scheduler tags of each hardware queue, 4 to 2048; without scheduler at most the device's
    /// depth. Default with a scheduler 2 * min(depth, 128), else the depth (blk_mq_init_sched()).
    /// On the single-queue path requests of each kind, sync and async. Default there 128.
    pub nr_requests: Option<u32>,
    /// 0 all merges, 1 only the cheap ones, 2 none. Default 0.
    pub nomerges: Option<u8>,
    /// true: a submission that inserts a request runs the hardware queue itself, as kernels patched
    /// for measurements do; else kblockd does. Default false.
    pub inline_runs: Option<bool>,
    /// 0 completes where the interrupt came, 1 on a CPU that shares a cache with the submitter's,
    /// 2 on the submitter's. Default 1.
    pub rq_affinity: Option<u8>,
    /// Largest request, KiB. Default and most: what the device tells.
    pub max_sectors_kb: Option<u32>,
    /// Longest window of read-ahead, KiB, a multiple of a page (4) up to 65536; reads through the
    /// page cache alone look at it. Default 128 (VM_MAX_READAHEAD).
    pub read_ahead_kb: Option<u32>,
    /// Time after which a request counts as lost, ms, at least 1. Default 5000 for null_blk,
    /// 30000 for others.
    pub io_timeout: Option<u32>,
    /// Files of queue/iosched/ that are written, with their values: attributes that some scheduler
    /// has ([`SchedulerKind::attributes`]). Defaults are the scheduler's. The odd one is
    /// mq-deadline's `async_depth`: nr_requests as it is before `nr_requests` here changes it, for
    /// that is what the kernels do (dd_depth_updated() runs before the new value is stored, v6.1
    /// and v6.12).
    #[serde(skip)]
    pub iosched: BTreeMap<String, i64>,
}

/// Any scheduler has an attribute of this name.
fn is_attribute(name: &str) -> bool {
    let all = SchedulerKind::ALL.iter().flat_map(|kind| kind.attributes());
    all.into_iter().any(|(known, _)| known == name)
}

/// Attributes apart, all else as the fields say.
impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Queue, D::Error> {
        deserializer.deserialize_map(Both)
    }
}

struct Both;

impl<'de> Visitor<'de> for Both {
    type Value = Queue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of files of queue/ and queue/iosched/")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Queue, A::Error> {
        let mut iosched = BTreeMap::new();
        let fields = Fields {
            map,
            iosched: &mut iosched,
        };
        let queue = Queue::deserialize(MapAccessDeserializer::new(fields))?;
        Ok(Queue { iosched, ..queue })
    }
}

/// The table without attributes, which it puts aside.
struct Fields<'a, A> {
    map: A,
    iosched: &'a mut BTreeMap<String, i64>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        mut seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            match self.map.next_key_seed(Key(seed))? {
                None => return Ok(None),
                Some(Found::Field(field)) => return Ok(Some(field)),
                Some(Found::Attribute(name, unused)) => {
                    let value = self.map.next_value()?;
                    self.iosched.insert(name, value);
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A key, which is told from an attribute's name where errors still know its line.
struct Key<K>(K);

enum Found<K, V> {
    Field(V),
    Attribute(String, K),
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<K> {
    type Value = Found<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if is_attribute(&name) {
            return Ok(Found::Attribute(name, self.0));
        }
        let field = self.0.deserialize(name.into_deserializer());
        // An unknown field may be a misspelt attribute: name those, too.
        let more = |e: serde::de::value::Error| {
            let kinds = SchedulerKind::ALL.iter().flat_map(|kind| kind.attributes());
            let names: Vec<String> = kinds.map(|(name, _)| format!("`{name}`")).collect();
            D::Error::custom(format!("{e}, {}", names.join(", ")))
        };
        field.map(Found::Field).map_err(more)
    }
}

impl Queue {
    /// What is written here, else what `base` says.
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

    /// Without what a scheduler of this name has not.
    pub(super) fn of_scheduler(mut self, name: &str) -> Queue {
        let kind = SchedulerKind::by_name(name);
        let known = kind.map_or(Vec::new(), SchedulerKind::attributes);
        let has = |name: &str| known.iter().any(|&(known, _)| known == name);
        self.iosched.retain(|name, _| has(name));
        let facts = kind.and_then(SchedulerKind::facts);
        if !facts.is_some_and(|facts| facts.has_series) {
            (self.series, self.dd_cpu_buckets) = (None, None);
        }
        if !facts.is_some_and(|facts| facts.has_stable_merge) {
            self.stable_merge = None;
        }
        self
    }
}
