//! The `[machine]` and `[queue]` tables.

use serde::Deserialize;

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
}

/// `[queue]`: files of queue/ and queue/iosched/ of sysfs, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// Kernel: `v6.1` or `v6.12`. Default `v6.12`.
    pub rules: Option<String>,
    /// What of the January 2024 series mq-deadline has: `stock`, `poc`, `v1`, `v2`, `v2-repaired`,
    /// `v3`, `serialise-only` or `skip-merge`. Goes with both `rules`. Default `stock`, as kernels
    /// have nothing of it.
    pub series: Option<String>,
    /// DD_CPU_BUCKETS: insertion buckets of `poc`, `v1`, `v2` and `v2-repaired`, 1 to 1024. Default
    /// 32, as posted.
    pub dd_cpu_buckets: Option<u16>,
    /// Who runs a hardware queue again that could not issue all it had: `v4.11`, `v4.14`,
    /// `v4.14-map-count`, `v4.15`, `v4.19` or `v5.9`. Goes with both `rules`, which are those of
    /// the rest. Default `v5.9`, as both have it.
    pub restart: Option<String>,
    /// One axis of it: `R0`, `R1`, `R2`, `R2p`, `R4` or `all`. Default: that of `restart`.
    pub restart_rule: Option<String>,
    /// `none` or `mq-deadline`. Default as in the kernel: mq-deadline if the device has one
    /// hardware queue (poll queues count) or one tag map for all, else none.
    pub scheduler: Option<String>,
    /// Scheduler tags of each hardware queue, 4 to 2048; without scheduler at most the device's
    /// depth. Default with a scheduler 2 * min(depth, 128), else the depth (blk_mq_init_sched()).
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
    /// Time after which a request counts as lost, ms, at least 1. Default 5000 for null_blk,
    /// 30000 for others.
    pub io_timeout: Option<u32>,
    /// mq-deadline: age at which a read goes first, ms. Default 500.
    pub read_expire: Option<i64>,
    /// mq-deadline: age at which a write goes first, ms. Default 5000.
    pub write_expire: Option<i64>,
    /// mq-deadline: age at which a lower class overtakes, ms. Default 10000.
    pub prio_aging_expire: Option<i64>,
    /// mq-deadline: read batches before writes get one. Default 2.
    pub writes_starved: Option<i64>,
    /// mq-deadline: requests in a batch. Default 16.
    pub fifo_batch: Option<i64>,
    /// mq-deadline: 1 looks for front merges. Default 1.
    pub front_merges: Option<i64>,
    /// mq-deadline: scheduler tags for anything but reads, at least 1. Default: nr_requests as it
    /// is before `nr_requests` here changes it, for that is what the kernels do (dd_depth_updated()
    /// runs before the new value is stored, v6.1 and v6.12).
    pub async_depth: Option<i64>,
}

impl Queue {
    /// What is written here, else what `base` says.
    pub(super) fn over(&self, base: &Queue) -> Queue {
        Queue {
            rules: self.rules.clone().or_else(|| base.rules.clone()),
            series: self.series.clone().or_else(|| base.series.clone()),
            dd_cpu_buckets: self.dd_cpu_buckets.or(base.dd_cpu_buckets),
            restart: self.restart.clone().or_else(|| base.restart.clone()),
            restart_rule: self
                .restart_rule
                .clone()
                .or_else(|| base.restart_rule.clone()),
            scheduler: self.scheduler.clone().or_else(|| base.scheduler.clone()),
            nr_requests: self.nr_requests.or(base.nr_requests),
            nomerges: self.nomerges.or(base.nomerges),
            inline_runs: self.inline_runs.or(base.inline_runs),
            rq_affinity: self.rq_affinity.or(base.rq_affinity),
            max_sectors_kb: self.max_sectors_kb.or(base.max_sectors_kb),
            io_timeout: self.io_timeout.or(base.io_timeout),
            read_expire: self.read_expire.or(base.read_expire),
            write_expire: self.write_expire.or(base.write_expire),
            prio_aging_expire: self.prio_aging_expire.or(base.prio_aging_expire),
            writes_starved: self.writes_starved.or(base.writes_starved),
            fifo_batch: self.fifo_batch.or(base.fifo_batch),
            front_merges: self.front_merges.or(base.front_merges),
            async_depth: self.async_depth.or(base.async_depth),
        }
    }

    /// Without what only mq-deadline has.
    pub(super) fn without_iosched(self) -> Queue {
        Queue {
            series: None,
            dd_cpu_buckets: None,
            read_expire: None,
            write_expire: None,
            prio_aging_expire: None,
            writes_starved: None,
            fifo_batch: None,
            front_merges: None,
            async_depth: None,
            ..self
        }
    }

    /// Files of queue/iosched/ that are written, with their values.
    pub(super) fn iosched(&self) -> Vec<(&'static str, i64)> {
        let all = [
            ("read_expire", self.read_expire),
            ("write_expire", self.write_expire),
            ("prio_aging_expire", self.prio_aging_expire),
            ("writes_starved", self.writes_starved),
            ("fifo_batch", self.fifo_batch),
            ("front_merges", self.front_merges),
            ("async_depth", self.async_depth),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}
