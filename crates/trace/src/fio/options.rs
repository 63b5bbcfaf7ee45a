//! The treatment of each of fio's options: modelled, without effect, or refused.
//!
//! The one list of options: job files, command lines and `[[job]]` tables of scenarios are read by
//! it, and docs/reference/fio.md is printed from it. Names, aliases and defaults of fio 3.33
//! (options.c).

#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub name: &'static str,
    /// Its name, then other names for it, with blanks between.
    names: &'static str,
    pub treatment: Treatment,
}

/// The simulator's treatment of an option.
#[derive(Clone, Copy, Debug)]
pub enum Treatment {
    /// Modelled; needs a value. The text has the unit and the default.
    Value(&'static str),
    /// Modelled; a switch, which may be given without a value. The text describes it.
    Flag(&'static str),
    /// Has no effect on the block layer, for this reason; accepted and listed in the report.
    Ignored(&'static str),
    /// Would have an effect on the block layer and is not modelled: an error with this reason.
    Refused(&'static str),
}

use Treatment::{Flag, Ignored, Refused, Value};

impl Known {
    const fn new(names: &'static str, treatment: Treatment) -> Known {
        let mut end = 0;
        while end < names.len() && names.as_bytes()[end] != b' ' {
            end += 1;
        }
        Known {
            name: names.split_at(end).0,
            names,
            treatment,
        }
    }

    /// Its name and the other names for it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ')
    }
}

/// Modelled options: names, then unit, values and default, or the effect of the switch.
#[rustfmt::skip]
const MODELLED: &[(&str, Treatment)] = &[
    ("name", Value("name of the job; clones (numjobs) share it")),
    (
        "filename",
        Value("device, e.g. /dev/nullb0, /dev/nvme0n1, /dev/sda; `:` separates several, and \
               several lines add up, those of [global] too. A thread opens all of them and has \
               iodepth I/Os in flight on all together; each device has its own random map and \
               sequential position"),
    ),
    (
        "nrfiles nr_files",
        Value("devices of filename that are used, from the first on; default all"),
    ),
    (
        "file_service_type",
        Value("how a job goes from one of several devices to the next: roundrobin, random, \
               sequential (after as many bytes as the region has), zipf:THETA, pareto:H, \
               normal:PERCENT (the first devices more often); roundrobin:N and random:N change \
               after N I/Os; default roundrobin, after 1 I/O"),
    ),
    (
        "rw readwrite",
        Value("read, write, trim, rw, trimwrite, or one of these after `rand`, e.g. randread; \
               default read. randread:N draws a random position for every Nth I/O and continues \
               sequentially in between; read:SIZE leaves SIZE bytes out between two I/Os, \
               read:-SIZE goes backwards"),
    ),
    (
        "rw_sequencer",
        Value("sequential or identical: the position of the I/Os between two random positions of \
               rw=randread:N; default sequential"),
    ),
    (
        "random_distribution",
        Value("random, zipf:THETA (1.1, never 1), pareto:H (0.2), normal:PERCENT (0), each of the \
               last three with :CENTER from 0 to 1; zoned:ACCESS/SIZE:... in percent, \
               zoned_abs:ACCESS/BYTES:...; for reads,writes,trims; default random. Only random \
               keeps a random map. Blocks are those of fio's code, with its hash, for the same \
               random numbers"),
    ),
    (
        "percentage_random",
        Value("percent of positions of a random stream that are random, for reads,writes,trims; \
               default 100"),
    ),
    ("rwmixread", Value("percent of reads in a mixed stream; default 50")),
    (
        "rwmixwrite",
        Value("percent of writes in a mixed stream; default 50; the later one of both options \
               counts"),
    ),
    (
        "bs blocksize",
        Value("bytes of an I/O, for reads,writes,trims (bs=4k,8k: writes and trims have 8k; bs=,8k \
               leaves reads as they are); default 4k"),
    ),
    ("bsrange blocksize_range", Value("bytes of an I/O, min-max, for reads,writes,trims")),
    (
        "bssplit",
        Value("SIZE/PERCENT:SIZE/PERCENT..., for reads,writes,trims. Sizes without PERCENT share \
               the rest; of shares below 100 the most frequent size gets the rest, as in fio. An \
               error where fio is silent: shares above 100, a size that is no multiple of the \
               smallest one, bs after bssplit"),
    ),
    ("iodepth", Value("most I/Os in flight; default 1; a synchronous engine has 1")),
    (
        "iodepth_batch iodepth_batch_submit",
        Value("I/Os gathered before one submission; default 1; 0, and more than iodepth, is \
               iodepth"),
    ),
    (
        "iodepth_batch_complete_min iodepth_batch_complete",
        Value("completions waited for; default 1; 0 looks for completions after each submission \
               and waits only when iodepth is used up"),
    ),
    (
        "iodepth_batch_complete_max",
        Value("completions taken at once; default, and at least, iodepth_batch_complete_min"),
    ),
    ("iodepth_low", Value("once iodepth is reached, reaps down to this number; default iodepth")),
    (
        "continue_on_error",
        Value("none, read, write, io, verify, all: errors after which a thread continues; default \
               none. Trims and syncs count as writes. After another error a thread submits no \
               further I/O and waits for those in flight; the report has fio's `error` and the \
               number of failed threads"),
    ),
    ("numjobs", Value("clones of the job; default 1; the report sums them up")),
    ("thread", Flag("clones are threads of one process")),
    (
        "direct",
        Value("0 or 1: I/O that bypasses the page cache. Default 0 in fio; a job that gives \
               neither direct nor buffered is direct here, and the report says so. With 0, reads \
               of sync and psync go through the page cache; everything else with 0 is refused"),
    ),
    ("buffered", Value("0 or 1: the opposite of direct")),
    (
        "ioengine",
        Value("io_uring, libaio, sync, psync; default psync; t/io_uring is fio's small benchmark \
               of that name (see below)"),
    ),
    (
        "hipri",
        Flag("polls for completions (io_uring, direct); needs poll queues; refused with fsync or \
              fdatasync, as the kernel refuses a sync on a polled ring"),
    ),
    ("fixedbufs", Flag("buffers registered with the kernel (io_uring)")),
    ("registerfiles", Flag("files registered with the kernel (io_uring)")),
    (
        "register_ring",
        Flag("the ring registered with the kernel (t/io_uring; not an option of fio)"),
    ),
    ("norandommap", Flag("random positions without a map of those already used")),
    (
        "randrepeat",
        Value("0 or 1: the same random positions in each run, whatever the scenario's seed; \
               default 1"),
    ),
    ("randseed", Value("seed of random positions")),
    (
        "runtime timeout",
        Value("time after the ramp, in seconds unless it has a unit; default no limit"),
    ),
    (
        "ramp_time",
        Value("time at the start that is not measured, in seconds unless it has a unit; default 0"),
    ),
    (
        "time_based",
        Flag("starts again at the end of the region until runtime is over; needs runtime"),
    ),
    ("number_ios", Value("I/Os after which the job ends; default no limit")),
    (
        "size",
        Value("bytes or percent of the device: the region; default all of it. Bytes are divided by \
               the number of devices in filename"),
    ),
    (
        "io_size io_limit",
        Value("bytes, or percent of the region, after which the job ends; default 100%"),
    ),
    (
        "filesize",
        Value("bytes of the device that are used, the offset included; size then only limits the \
               bytes transferred; default all of it"),
    ),
    ("offset", Value("bytes or percent of the device: start of the region; default 0")),
    (
        "offset_increment",
        Value("bytes or percent of the device by which the region of each further clone starts \
               later; default 0"),
    ),
    (
        "prioclass",
        Value("0 none, 1 real time, 2 best effort, 3 idle; default best effort if prio is given"),
    ),
    ("prio", Value("0 highest to 7 lowest; default 0 if prioclass is given")),
    ("fsync", Value("an fsync(2) after this number of writes; default 0, none")),
    ("fdatasync", Value("an fdatasync(2) after this number of writes; default 0, none")),
    (
        "thinktime",
        Value("pause, in microseconds unless it has a unit, which starts when nothing is in \
               flight; default 0"),
    ),
    ("thinktime_blocks", Value("I/Os between two pauses; default 1")),
    (
        "thinktime_blocks_type",
        Value("complete or issue: the I/Os that thinktime_blocks counts; default complete"),
    ),
    (
        "rate",
        Value("most bytes a second, for reads,writes,trims; default no limit. A thread that is \
               ahead waits until nothing is in flight, then sleeps"),
    ),
    (
        "rate_iops",
        Value("most IOPS, for reads,writes,trims; default no limit; not together with rate"),
    ),
    (
        "rate_process",
        Value("linear: evenly spaced; poisson: exponential gaps in whole microseconds, so above \
               about 100,000 IOPS the rate comes out higher, as in fio; default linear"),
    ),
    ("startdelay", Value("time before the first I/O, in seconds unless it has a unit; default 0")),
    ("stonewall wait_for_previous", Flag("waits for the end of all jobs before it")),
    ("cgroup", Value("control group of the job, as a/b below the root; default the root")),
    ("cpus_allowed", Value("CPU numbers, e.g. 0-3,8; default all")),
    ("cpus_allowed_policy", Value("shared, or split: one CPU for each clone; default shared")),
    (
        "group_reporting",
        Flag("reported together with the section before, under the name of the first one, unless \
              this section begins a group (stonewall, new_group)"),
    ),
    ("new_group", Flag("begins a group of group_reporting")),
    ("gtod_reduce", Value("0 or 1: fewer clock reads; default 0")),
    ("invalidate", Value("0 or 1: drops the page cache of the device first (direct=0); default 1")),
    (
        "fadvise_hint",
        Value("0, 1, none, random, sequential: posix_fadvise(2) at the start; 1 means as rw is. \
               Only for reads with direct=0: sequential doubles the read-ahead window, random \
               reads only the requested pages; default 1"),
    ),
    ("kb_base", Value("1024: k is 1024 and ki is 1000; 1000: the reverse; default 1024")),
];

/// Options without effect on a model of the block layer: the reason, and the options.
#[rustfmt::skip]
const IGNORED: &[(&str, &[&str])] = &[
    ("text for people", &["description"]),
    (
        "units and statistics of fio's own output",
        &[
            "unit_base", "unified_rw_reporting", "stats", "disk_util", "bwavgtime", "iopsavgtime",
            "clat_percentiles", "lat_percentiles", "slat_percentiles", "percentile_list",
            "significant_figures", "disable_lat", "disable_clat", "disable_slat", "disable_bw",
            "disable_bw_measurement",
        ],
    ),
    (
        "log files of fio",
        &[
            "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "log_avg_msec",
            "log_hist_msec", "log_hist_coarseness", "log_entries", "log_max_value", "log_offset",
            "log_compression", "log_compression_cpus", "log_store_compressed", "log_unix_epoch",
            "log_alternate_epoch", "log_prio", "log_issue_time", "log_window_value", "per_job_logs",
            "steadystate", "ss", "write_iolog", "error_dump",
        ],
    ),
    (
        "creation of files; jobs use devices",
        &[
            "create_serialize", "create_fsync", "create_on_open", "create_only", "file_append",
            "fallocate", "unlink", "unlink_each_loop", "overwrite", "allow_file_create",
            "allow_mounted_write",
        ],
    ),
    (
        "contents of buffers; the model has no data",
        &[
            "zero_buffers", "refill_buffers", "scramble_buffers", "buffer_pattern",
            "buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage",
            "dedupe_mode",
        ],
    ),
    (
        "memory of fio's process",
        &[
            "mem", "iomem", "iomem_align", "mem_align", "hugepage-size", "lockmem",
            "thread_stack_size",
        ],
    ),
    ("source of fio's time stamps", &["clocksource", "gtod_cpu"]),
    ("user and group of fio's process", &["uid", "gid"]),
    (
        "how fio draws or submits; the same I/O reaches the block layer",
        &[
            "nonvectored", "random_generator", "allrandrepeat", "softrandommap", "userspace_reap",
        ],
    ),
    ("reaction to errors outside of the I/O", &["exitall_on_error", "ignore_error"]),
];

/// Options that would have an effect and are not modelled: the reason, and the options with their
/// other names.
#[rustfmt::skip]
const REFUSED: &[(&str, &[&str])] = &[
    (
        "files in a file system are not modelled; use filename=/dev/...",
        &[
            "directory", "opendir", "filename_format",
        ],
    ),
    ("all devices of filename are open", &["openfiles"]),
    ("running until the device is full is not modelled", &["fill_device fill_fs"]),
    ("not modelled", &["offset_align", "rate_ignore_thinktime", "serialize_overlap"]),
    ("use time_based with runtime", &["loops"]),
    ("unaligned I/O is not modelled", &["bs_unaligned blocksize_unaligned"]),
    ("use bs=read,write,trim", &["bs_is_seq_rand"]),
    ("positions are aligned to bs", &["blockalign ba"]),
    ("deprecated in fio, and not modelled", &["rwmixcycle"]),
    ("O_SYNC and O_DSYNC writes are not modelled; use fsync or fdatasync", &["sync"]),
    ("use fdatasync", &["write_barrier"]),
    ("use fsync", &["end_fsync", "fsync_on_close"]),
    ("atomic writes are not modelled", &["atomic"]),
    (
        "zoned devices are not modelled",
        &[
            "zonemode", "zonesize", "zonerange", "zonecapacity", "zoneskip", "max_open_zones",
            "job_max_open_zones", "zone_reset_threshold", "zone_reset_frequency", "read_beyond_wp",
        ],
    ),
    (
        "verification is not modelled",
        &[
            "verify", "do_verify", "verify_only", "verify_backlog", "verify_async",
            "experimental_verify",
        ],
    ),
    ("use rw=trimwrite or a job with rw=randtrim", &["trim_percentage", "trim_backlog"]),
    ("not modelled for buffered I/O", &["pre_read", "sync_file_range", "uncached"]),
    (
        "replay the capture with `blksim replay`",
        &[
            "read_iolog", "replay_no_stall", "replay_redirect",
        ],
    ),
    ("limits in bytes are not modelled; use rate_iops", &["rate_min", "rate_cycle"]),
    ("ending below a rate is not modelled", &["rate_iops_min"]),
    (
        "searching for a depth is not modelled",
        &[
            "latency_target", "latency_window", "latency_percentile", "latency_run",
        ],
    ),
    ("ending at a slow I/O is not modelled", &["max_latency"]),
    ("a pause in which the thread burns CPU is not modelled; use thinktime", &["thinktime_spin"]),
    ("not modelled; use thinktime_blocks", &["thinktime_iotime"]),
    ("jobs that pace each other are not modelled", &["flow", "flow_id", "flow_sleep"]),
    ("scheduling priorities of tasks are not modelled; use prioclass and prio", &["nice"]),
    ("use cpus_allowed", &["cpumask", "numa_cpu_nodes"]),
    ("placement of memory is not modelled", &["numa_mem_policy"]),
    ("weights of groups are in the scenario's [group] tables", &["cgroup_weight"]),
    ("the life of a cgroup is not modelled", &["cgroup_nodelete"]),
    (
        "priorities of single I/Os are not modelled; use two jobs",
        &[
            "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit",
        ],
    ),
    ("use several jobs", &["prio_split"]),
    (
        "the kernel's submission thread (SQPOLL) is not modelled",
        &[
            "sqthread_poll", "sqthread_poll_cpu",
        ],
    ),
    ("handing every I/O to io_uring's workers is not modelled", &["force_async"]),
    ("RWF_NOWAIT is not modelled as a choice", &["nowait"]),
    ("passthrough commands are not modelled", &["cmd_type"]),
    ("offloaded submission is not modelled; the default inline is", &["io_submit_mode"]),
    ("jobs end by themselves", &["exitall", "exit_what"]),
    ("use stonewall", &["wait_for"]),
    ("no command is run", &["exec_prerun", "exec_postrun"]),
    ("give the scheduler in the scenario: queue.scheduler", &["ioscheduler"]),
    ("profiles are not modelled", &["profile"]),
    ("triggers are not modelled", &["trigger_file"]),
    ("external engines are not modelled", &["ioengine_path"]),
];

/// Finds an option by name or alias.
pub fn lookup(name: &str) -> Option<Known> {
    known_options().find(|known| known.names().any(|other| other == name))
}

/// All options, modelled ones first.
pub fn known_options() -> impl Iterator<Item = Known> {
    let each = |list: &'static [(&'static str, &'static [&'static str])]| {
        let options = |(why, names): &(&'static str, &'static [&'static str])| {
            let why = *why;
            names.iter().map(move |names| (*names, why))
        };
        list.iter().flat_map(options)
    };
    let modelled = MODELLED.iter().copied();
    let ignored = each(IGNORED).map(|(names, why)| (names, Ignored(why)));
    let program = super::cmdline::PROGRAM_OPTIONS.iter();
    let program = program.map(|name| (*name, Ignored("an option of the program, not of a job")));
    let refused = each(REFUSED).map(|(names, why)| (names, Refused(why)));
    let all = modelled.chain(ignored).chain(program).chain(refused);
    all.map(|(names, treatment)| Known::new(names, treatment))
}

/// The error for an option that is not in this list.
pub(super) fn unknown(name: &str) -> String {
    let unknown = "not an option that blksim knows";
    match super::nearest(name, known_options().flat_map(Known::names)) {
        Some(near) => format!("{unknown}; did you mean `{near}`?"),
        None => format!("{unknown}: `blksim reference fio` lists them"),
    }
}
