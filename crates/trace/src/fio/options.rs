//! What fio's options are to us: modelled, without effect, or refused.
//!
//! The one list of options, of job files and of scenarios' `[[job]]` tables alike. Names, aliases
//! and defaults of fio 3.33 (options.c).

/// An option that fio knows.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What we do with it.
    pub treatment: Treatment,
}

/// What we do with an option.
#[derive(Clone, Copy, Debug)]
pub enum Treatment {
    /// Modelled; needs a value. The text tells unit and default.
    Value(&'static str),
    /// Modelled; may stand alone (a switch). The text tells what it does.
    Flag(&'static str),
    /// Cannot change what the block layer sees; accepted and listed.
    Ignored,
    /// Would change what the block layer sees and is not modelled: an error with this reason.
    Refused(&'static str),
}

use Treatment::{Flag, Ignored, Refused, Value};

const fn known(
    name: &'static str,
    aliases: &'static [&'static str],
    treatment: Treatment,
) -> Known {
    Known {
        name,
        aliases,
        treatment,
    }
}

/// Modelled options.
const MODELLED: &[Known] = &[
    known(
        "filename",
        &[],
        Value(
            "device: /dev/nullb0, /dev/nvme0n1, /dev/sda; `:` separates several, and several lines \
             of it add up",
        ),
    ),
    known(
        "file_service_type",
        &[],
        Value(
            "how a job turns from one device of several to the next: roundrobin, random (after 1 \
             I/O, or N: roundrobin:N), sequential, zipf:THETA, pareto:H, normal:PERCENT; default \
             roundrobin",
        ),
    ),
    known(
        "rw",
        &["readwrite"],
        Value(
            "read, write, trim, rw, trimwrite, or one of these behind `rand`; default read. \
             randread:N goes on behind a random position for N - 1 I/Os, read:SIZE leaves SIZE \
             bytes out between two (-SIZE: backwards)",
        ),
    ),
    known(
        "rw_sequencer",
        &[],
        Value(
            "sequential or identical: where the I/Os between two random positions of rw=randread:N \
             go; default sequential",
        ),
    ),
    known(
        "random_distribution",
        &[],
        Value(
            "random, zipf:THETA, pareto:H, normal:PERCENT (each with :CENTER, 0 to 1), \
             zoned:ACCESS/SIZE:... in percent, zoned_abs:ACCESS/BYTES:...; default random",
        ),
    ),
    known(
        "percentage_random",
        &[],
        Value(
            "percent of random positions of a random stream, for reads,writes,trims; default 100",
        ),
    ),
    known(
        "rwmixread",
        &[],
        Value("percent of reads in a mixed stream; default 50"),
    ),
    known(
        "rwmixwrite",
        &[],
        Value("percent of writes in a mixed stream; default 50; the last of both counts"),
    ),
    known(
        "bs",
        &["blocksize"],
        Value("bytes of an I/O, for reads,writes,trims; default 4k"),
    ),
    known(
        "bsrange",
        &["blocksize_range"],
        Value("bytes min-max of an I/O, for reads,writes,trims"),
    ),
    known(
        "bssplit",
        &[],
        Value(
            "SIZE/PERCENT:SIZE/PERCENT..., for reads,writes,trims; sizes without PERCENT share \
             what the others leave",
        ),
    ),
    known("iodepth", &[], Value("I/Os in flight at most; default 1")),
    known(
        "iodepth_batch",
        &["iodepth_batch_submit"],
        Value("I/Os gathered before one submission; default 1, 0 is iodepth"),
    ),
    known(
        "iodepth_batch_complete_min",
        &["iodepth_batch_complete"],
        Value("completions waited for; default 1; 0 looks after each submission without waiting"),
    ),
    known(
        "iodepth_batch_complete_max",
        &[],
        Value("completions taken at once; default iodepth_batch_complete_min"),
    ),
    known(
        "iodepth_low",
        &[],
        Value("once full, reaps down to this many; default iodepth"),
    ),
    known(
        "continue_on_error",
        &[],
        Value("none, read, write, io, verify, all: I/Os that may fail; default none"),
    ),
    known("numjobs", &[], Value("clones of the job; default 1")),
    known("thread", &[], Flag("clones are threads of one process")),
    known(
        "direct",
        &[],
        Value("0 or 1: around the page cache; default 0"),
    ),
    known(
        "buffered",
        &[],
        Value("0 or 1: the opposite of direct; default 1"),
    ),
    known(
        "ioengine",
        &[],
        Value(
            "io_uring, libaio, sync, psync; default psync; or t/io_uring: fio's small benchmark in \
             fio's place",
        ),
    ),
    known(
        "hipri",
        &[],
        Flag("polls for completions (io_uring, direct)"),
    ),
    known(
        "fixedbufs",
        &[],
        Flag("buffers registered with the kernel (io_uring)"),
    ),
    known(
        "registerfiles",
        &[],
        Flag("files registered with the kernel (io_uring)"),
    ),
    known(
        "register_ring",
        &[],
        Flag("the ring registered with the kernel (t/io_uring, not an option of fio)"),
    ),
    known(
        "norandommap",
        &[],
        Flag("random positions are drawn without remembering the last ones"),
    ),
    known(
        "randrepeat",
        &[],
        Value("0 or 1: the same random positions in each run; default 1"),
    ),
    known("randseed", &[], Value("seed of random positions")),
    known(
        "runtime",
        &["timeout"],
        Value("time after the ramp, in seconds unless it has a unit; default no limit"),
    ),
    known(
        "ramp_time",
        &[],
        Value("time at the start that does not count, in seconds unless it has a unit; default 0"),
    ),
    known(
        "time_based",
        &[],
        Flag("starts over at the end of the region until the runtime is over"),
    ),
    known(
        "number_ios",
        &[],
        Value("I/Os after which the job ends; default no limit"),
    ),
    known(
        "size",
        &[],
        Value("bytes or percent of the device; default all of it"),
    ),
    known(
        "io_size",
        &["io_limit"],
        Value("bytes, or percent of the region, after which the job ends; default 100%"),
    ),
    known(
        "filesize",
        &[],
        Value("bytes of the device that are used, the offset counted; default all of it"),
    ),
    known(
        "nrfiles",
        &["nr_files"],
        Value("devices of filename that are used, from the first on; default all"),
    ),
    known(
        "offset_increment",
        &[],
        Value("bytes or percent of the device by which each clone begins later; default 0"),
    ),
    known(
        "offset",
        &[],
        Value("bytes or percent of the device where the region begins; default 0"),
    ),
    known(
        "prioclass",
        &[],
        Value("0 none, 1 real time, 2 best effort, 3 idle; default best effort with prio"),
    ),
    known(
        "prio",
        &[],
        Value("0 highest to 7 lowest; default 0 with prioclass"),
    ),
    known(
        "fsync",
        &[],
        Value("an fsync(2) after this many writes; default 0, none"),
    ),
    known(
        "fdatasync",
        &[],
        Value("an fdatasync(2) after this many writes; default 0, none"),
    ),
    known(
        "thinktime",
        &[],
        Value("pause between I/Os, in microseconds unless it has a unit; default 0"),
    ),
    known(
        "thinktime_blocks",
        &[],
        Value("I/Os between two pauses; default 1"),
    ),
    known(
        "thinktime_blocks_type",
        &[],
        Value("complete or issue: which I/Os thinktime_blocks counts; default complete"),
    ),
    known(
        "rate",
        &[],
        Value("most bytes a second, for reads,writes,trims; default no limit"),
    ),
    known(
        "rate_process",
        &[],
        Value("linear: evenly spaced, or poisson: exponential gaps; default linear"),
    ),
    known(
        "rate_iops",
        &[],
        Value("most I/Os a second, for reads,writes,trims; default no limit"),
    ),
    known(
        "startdelay",
        &[],
        Value("time before the first I/O, in seconds unless it has a unit; default 0"),
    ),
    known(
        "stonewall",
        &["wait_for_previous"],
        Flag("waits for the jobs before it to end"),
    ),
    known(
        "cgroup",
        &[],
        Value("the control group that it is in, below the root, as a/b; default the root"),
    ),
    known(
        "cpus_allowed",
        &[],
        Value("CPU numbers such as 0-3,8; default all"),
    ),
    known(
        "cpus_allowed_policy",
        &[],
        Value("shared, or split: one CPU for each clone; default shared"),
    ),
    known(
        "group_reporting",
        &[],
        Flag("reported together with the section before, if that is of the same group"),
    ),
    known("new_group", &[], Flag("begins a group, as stonewall does")),
    known(
        "gtod_reduce",
        &[],
        Value("0 or 1: fewer time stamps; default 0"),
    ),
    known(
        "invalidate",
        &[],
        Value("0 or 1: drops the page cache first; nothing to drop with direct; default 1"),
    ),
    known(
        "fadvise_hint",
        &[],
        Value(
            "0, 1, none, random, sequential: what the kernel is told of a file; 1 as rw is; \
             matters to buffered reads; default 1",
        ),
    ),
    known(
        "kb_base",
        &[],
        Value("1024: k is 1024 and ki is 1000; 1000: the reverse; default 1024"),
    ),
    known("name", &[], Value("name of the job")),
];

/// Options without effect on a model of the block layer.
const IGNORED: &[&str] = &[
    "description",
    "unit_base",
    "unified_rw_reporting",
    "stats",
    "create_serialize",
    "create_fsync",
    "create_on_open",
    "create_only",
    "file_append",
    "fallocate",
    "unlink",
    "unlink_each_loop",
    "overwrite",
    "nonvectored",
    "allow_file_create",
    "allow_mounted_write",
    "clocksource",
    "gtod_cpu",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "percentile_list",
    "significant_figures",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "disable_bw",
    "disable_bw_measurement",
    "disk_util",
    "bwavgtime",
    "iopsavgtime",
    "zero_buffers",
    "refill_buffers",
    "scramble_buffers",
    "buffer_pattern",
    "buffer_compress_percentage",
    "buffer_compress_chunk",
    "dedupe_percentage",
    "dedupe_mode",
    "mem",
    "iomem",
    "iomem_align",
    "mem_align",
    "hugepage-size",
    "lockmem",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "log_avg_msec",
    "log_hist_msec",
    "log_hist_coarseness",
    "log_entries",
    "log_max_value",
    "log_offset",
    "log_compression",
    "log_compression_cpus",
    "log_store_compressed",
    "log_unix_epoch",
    "log_alternate_epoch",
    "log_prio",
    "log_issue_time",
    "log_window_value",
    "per_job_logs",
    "steadystate",
    "ss",
    "write_iolog",
    "error_dump",
    "uid",
    "gid",
    "random_generator",
    "allrandrepeat",
    "exitall_on_error",
    "userspace_reap",
    "thread_stack_size",
    "softrandommap",
    "ignore_error",
];

/// Options that matter and are not modelled, with what stands in the way.
const REFUSED: &[(&str, &[&str], &str)] = &[
    (
        "directory",
        &[],
        "files in a file system are not modelled; use filename=/dev/...",
    ),
    ("opendir", &[], "files in a file system are not modelled"),
    (
        "filename_format",
        &[],
        "files in a file system are not modelled",
    ),
    ("openfiles", &[], "all devices of filename are open"),
    (
        "fill_device",
        &["fill_fs"],
        "running until the device is full is not modelled",
    ),
    ("offset_align", &[], "not modelled"),
    ("loops", &[], "use time_based with runtime"),
    (
        "bs_unaligned",
        &["blocksize_unaligned"],
        "unaligned I/O is not modelled",
    ),
    ("bs_is_seq_rand", &[], "use bs=read,write,trim"),
    ("blockalign", &["ba"], "positions are aligned to bs"),
    ("rwmixcycle", &[], "deprecated in fio, and not modelled"),
    (
        "sync",
        &[],
        "O_SYNC and O_DSYNC writes are not modelled; use fsync or fdatasync",
    ),
    ("sync_file_range", &[], "buffered I/O is not modelled"),
    ("write_barrier", &[], "use fdatasync"),
    ("end_fsync", &[], "use fsync"),
    ("fsync_on_close", &[], "use fsync"),
    ("atomic", &[], "atomic writes are not modelled"),
    ("zonemode", &[], "zoned devices are not modelled"),
    ("zonesize", &[], "zoned devices are not modelled"),
    ("zonerange", &[], "zoned devices are not modelled"),
    ("zonecapacity", &[], "zoned devices are not modelled"),
    ("zoneskip", &[], "zoned devices are not modelled"),
    ("max_open_zones", &[], "zoned devices are not modelled"),
    ("job_max_open_zones", &[], "zoned devices are not modelled"),
    (
        "zone_reset_threshold",
        &[],
        "zoned devices are not modelled",
    ),
    (
        "zone_reset_frequency",
        &[],
        "zoned devices are not modelled",
    ),
    ("read_beyond_wp", &[], "zoned devices are not modelled"),
    ("experimental_verify", &[], "verification is not modelled"),
    ("verify", &[], "verification reads are not modelled"),
    ("do_verify", &[], "verification reads are not modelled"),
    ("verify_only", &[], "verification reads are not modelled"),
    ("verify_backlog", &[], "verification reads are not modelled"),
    ("verify_async", &[], "verification reads are not modelled"),
    (
        "trim_percentage",
        &[],
        "use rw=trimwrite or a job with rw=randtrim",
    ),
    ("trim_backlog", &[], "use a job with rw=randtrim"),
    ("pre_read", &[], "buffered I/O is not modelled"),
    ("read_iolog", &[], "replay the log with `blksim replay`"),
    (
        "replay_no_stall",
        &[],
        "replay the log with `blksim replay`",
    ),
    (
        "replay_redirect",
        &[],
        "replay the log with `blksim replay`",
    ),
    (
        "rate_min",
        &[],
        "limits in bytes are not modelled; use rate_iops",
    ),
    (
        "rate_iops_min",
        &[],
        "giving up below a rate is not modelled",
    ),
    ("rate_cycle", &[], "only linear pacing is modelled"),
    ("rate_ignore_thinktime", &[], "not modelled"),
    (
        "latency_target",
        &[],
        "searching for a depth is not modelled",
    ),
    (
        "latency_window",
        &[],
        "searching for a depth is not modelled",
    ),
    (
        "latency_percentile",
        &[],
        "searching for a depth is not modelled",
    ),
    ("latency_run", &[], "searching for a depth is not modelled"),
    ("max_latency", &[], "ending at a slow I/O is not modelled"),
    (
        "thinktime_spin",
        &[],
        "a pause in which the thread burns CPU is not modelled; use thinktime",
    ),
    (
        "thinktime_iotime",
        &[],
        "not modelled; use thinktime_blocks",
    ),
    ("flow", &[], "jobs that pace each other are not modelled"),
    ("flow_id", &[], "jobs that pace each other are not modelled"),
    (
        "flow_sleep",
        &[],
        "jobs that pace each other are not modelled",
    ),
    (
        "nice",
        &[],
        "scheduling priorities of tasks are not modelled; use prioclass and prio",
    ),
    ("cpumask", &[], "use cpus_allowed"),
    ("numa_cpu_nodes", &[], "use cpus_allowed"),
    (
        "numa_mem_policy",
        &[],
        "placement of memory is not modelled",
    ),
    (
        "cgroup_weight",
        &[],
        "weights of groups stand in the scenario's [group] tables",
    ),
    ("cgroup_nodelete", &[], "cgroups are not modelled"),
    (
        "cmdprio_percentage",
        &[],
        "priorities of single I/Os are not modelled; use two jobs",
    ),
    (
        "cmdprio_class",
        &[],
        "priorities of single I/Os are not modelled; use two jobs",
    ),
    (
        "cmdprio",
        &[],
        "priorities of single I/Os are not modelled; use two jobs",
    ),
    (
        "cmdprio_bssplit",
        &[],
        "priorities of single I/Os are not modelled; use two jobs",
    ),
    ("prio_split", &[], "use several jobs"),
    (
        "sqthread_poll",
        &[],
        "the kernel's submission thread is not modelled",
    ),
    (
        "sqthread_poll_cpu",
        &[],
        "the kernel's submission thread is not modelled",
    ),
    (
        "force_async",
        &[],
        "handing I/O to io_uring's workers is not modelled",
    ),
    ("nowait", &[], "RWF_NOWAIT is not modelled as a choice"),
    ("uncached", &[], "buffered I/O is not modelled"),
    ("cmd_type", &[], "passthrough commands are not modelled"),
    (
        "io_submit_mode",
        &[],
        "offloaded submission is not modelled; the default inline is",
    ),
    ("serialize_overlap", &[], "not modelled"),
    ("exitall", &[], "jobs end by themselves"),
    ("exit_what", &[], "jobs end by themselves"),
    ("wait_for", &[], "use stonewall"),
    ("exec_prerun", &[], "no command is run"),
    ("exec_postrun", &[], "no command is run"),
    (
        "ioscheduler",
        &[],
        "tell the scheduler in the scenario: queue.scheduler",
    ),
    ("profile", &[], "profiles are not modelled"),
    ("trigger_file", &[], "triggers are not modelled"),
    ("ioengine_path", &[], "external engines are not modelled"),
];

/// Finds an option by name or alias.
pub fn lookup(name: &str) -> Option<Known> {
    known_options().find(|known| known.name == name || known.aliases.contains(&name))
}

/// All options, modelled ones first.
pub fn known_options() -> impl Iterator<Item = Known> {
    let ignored = IGNORED.iter().map(|name| known(name, &[], Ignored));
    let program = super::cmdline::PROGRAM_OPTIONS
        .iter()
        .map(|name| known(name, &[], Ignored));
    let refused = REFUSED
        .iter()
        .map(|(name, aliases, why)| known(name, aliases, Refused(why)));
    MODELLED
        .iter()
        .copied()
        .chain(ignored)
        .chain(program)
        .chain(refused)
}

/// The error for an option that fio does not know either.
pub(super) fn unknown(name: &str) -> String {
    let names = known_options()
        .flat_map(|known| std::iter::once(known.name).chain(known.aliases.iter().copied()));
    match super::nearest(name, names) {
        Some(near) => format!("no such fio option; did you mean `{near}`?"),
        None => "no such fio option".to_string(),
    }
}
