//! The list of fio's options. A string has the names of one, then `=` and the values with which it
//! asks for nothing.

use super::Treatment::{self, Flag, Value};

type ByReason = &'static [(&'static str, &'static [&'static str])];

/// Modelled options: names, then unit, values and default, or the effect of the switch.
#[rustfmt::skip]
pub(super) const MODELLED: &[(&str, Treatment)] = &[
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
               sequential (when the device has no further position), zipf:THETA, pareto:H, \
               normal:PERCENT (the first devices more often); roundrobin:N and random:N change \
               after N I/Os; default roundrobin, after 1 I/O"),
    ),
    (
        "rw readwrite",
        Value("read, write, trim, rw, trimwrite, or one of these after `rand`, e.g. randread; \
               default read. randread:N draws a random position for every Nth I/O and continues \
               sequentially in between; read:SIZE leaves SIZE bytes out between two I/Os, \
               read:-SIZE goes backwards; a job ends when its last I/O ended at the end of the \
               region, a gap over the end starts over"),
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
    (
        "blockalign ba",
        Value("bytes of which random positions are multiples, for reads,writes,trims; another \
               value than the smallest bs turns the random map off; default the smallest bs"),
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
        "io_submit_mode",
        Value("inline; offload: iodepth workers, each a thread with an engine of its own, submit \
               and await one I/O each, so that a rate does not wait for I/Os (libaio, sync, \
               psync; fio has none with io_uring); default inline"),
    ),
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
               of sync, psync and libaio, which blocks in io_submit(2), go through the page cache; \
               everything else with 0 is refused"),
    ),
    ("buffered", Value("0 or 1: the opposite of direct")),
    (
        "ioengine",
        Value("io_uring, io_uring_cmd (NVMe commands around the scheduler), libaio, posixaio, \
               sync, psync, null (I/Os end in fio, the device has none); default psync; \
               t/io_uring is fio's small benchmark of that name (see below)"),
    ),
    (
        "hipri",
        Flag("polls for completions (io_uring, direct); needs poll queues; refused with fsync or \
              fdatasync, as the kernel refuses a sync on a polled ring"),
    ),
    ("fixedbufs", Flag("buffers registered with the kernel (io_uring)")),
    ("registerfiles", Flag("files registered with the kernel (io_uring)")),
    ("cmd_type", Value("nvme (io_uring_cmd); default nvme")),
    (
        "force_async",
        Value("each of so many requests, counted in the order of submission, is handed to a \
               worker of io_uring (IOSQE_ASYNC), of which there are iodepth, at most 4 for each \
               CPU (io_uring); default 0, none"),
    ),
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
        Value("time after the ramp, in seconds unless it has a unit; default no limit. I/Os in \
               flight then count, and the reported runtime is longer by them; a pause of thinktime \
               is slept out"),
    ),
    (
        "ramp_time",
        Value("time at the start that is not measured, in seconds unless it has a unit; default 0"),
    ),
    (
        "time_based",
        Flag("starts again at the end of the region until runtime is over; needs runtime"),
    ),
    (
        "loops",
        Value("times that the job goes over its region; number_ios and io_size are of one of \
               them; default 1, and 0 is 1"),
    ),
    (
        "number_ios",
        Value("I/Os after which the job ends; default no limit; a job of fio that is time_based \
               goes on until the runtime is over"),
    ),
    (
        "size",
        Value("bytes or percent of the device: the region; default all of it. Bytes are divided by \
               the number of devices in filename. Of a rest as many whole I/Os as fit are done"),
    ),
    (
        "io_size io_limit",
        Value("bytes, or percent of the region, after which the job ends; the last I/O is whole; \
               more than size starts over; default 100%"),
    ),
    (
        "filesize",
        Value("bytes of the device that are used, the offset included; size then only limits the \
               bytes transferred; default all of it"),
    ),
    (
        "zonemode",
        Value("none; strided: I/Os stay in a zone of the region until it had its share, then go \
               to the next, at the end to the first; zbd, for zoned devices, is refused; default \
               none"),
    ),
    ("zonesize", Value("bytes of I/O of a zone, which zonemode=strided needs")),
    ("zonerange", Value("bytes of a zone; default zonesize")),
    ("zoneskip", Value("bytes from the end of a zone to the next one; default 0")),
    ("offset fileoffset", Value("bytes or percent of the device: start of the region; default 0")),
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
        "sync",
        Value("none or 0; sync or 1 (O_SYNC) and dsync (O_DSYNC), which are the same for a device: \
               direct writes are FUA, and with a synchronous engine a flush follows each in the \
               same call (generic_write_sync()); default none"),
    ),
    ("end_fsync", Flag("an fsync(2) of each file at the end of the job and of each round")),
    ("fsync_on_close", Flag("the same: files are closed then")),
    (
        "verify",
        Value("0, md5, crc32c, meta, pattern ...: after a round the job reads what it wrote, in \
               the order of its random writes with a map, else by position; these reads count as \
               reads. Reads of the job itself are checked. Checking takes no time here; default 0"),
    ),
    ("do_verify", Value("0 or 1: 0 writes and reads nothing back; default 1")),
    (
        "verify_backlog",
        Value("reads some of what it wrote after this number of writes; default 0, at the end of \
               the round"),
    ),
    ("verify_backlog_batch", Value("so many of them; default verify_backlog")),
    (
        "cmdprio_percentage",
        Value("percent of the I/Os, for reads,writes, with the priority of cmdprio_class and \
               cmdprio (io_uring, libaio); default 0"),
    ),
    ("cmdprio_class", Value("1 real time, 2 best effort, 3 idle, for reads,writes; default 1")),
    ("cmdprio", Value("0 highest to 7 lowest, for reads,writes; default 0")),
    (
        "cmdprio_bssplit",
        Value("SIZE/PERCENT:SIZE/PERCENT/CLASS/LEVEL..., for reads,writes: the same by the size of \
               the I/O, also with priorities of their own"),
    ),
    (
        "thinktime",
        Value("pause, in microseconds unless it has a unit, which starts when nothing is in \
               flight; default 0"),
    ),
    ("thinktime_blocks", Value("I/Os between two pauses; default 1, and 0 is 1")),
    (
        "thinktime_blocks_type",
        Value("complete or issue: the I/Os that thinktime_blocks counts; default complete"),
    ),
    (
        "thinktime_spin",
        Value("microseconds at the start of a pause in which the thread burns CPU time; default 0"),
    ),
    (
        "thinktime_iotime",
        Value("in seconds unless it has a unit: a pause is also due so long after the last one, \
               whatever thinktime_blocks counts; default 0, none"),
    ),
    (
        "rate_ignore_thinktime",
        Value("0 or 1: a rate does not catch up with a pause of thinktime; default 0"),
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
    (
        "rate_min ratemin",
        Value("bytes a second, for reads,writes,trims: after two seconds a thread that does less \
               in a rate_cycle fails with EIO; default no limit"),
    ),
    ("rate_iops_min", Value("the same in IOPS; not together with rate_min")),
    ("rate_cycle ratecycle", Value("ms from one look at rate_min to the next; default 1000")),
    (
        "max_latency",
        Value("for reads,writes,trims, in microseconds unless it has a unit: a thread with a \
               slower I/O fails with ETIMEDOUT; default no limit"),
    ),
    (
        "latency_target",
        Value("in microseconds unless it has a unit: the thread begins with one I/O in flight and \
               searches for the largest depth, up to iodepth, with latency_percentile of its I/Os \
               not slower than this in each latency_window; then it counts one window more and \
               ends. Not modelled for clones without latency_run; default none"),
    ),
    ("latency_window", Value("in microseconds unless it has a unit; default 0, after each I/O")),
    ("latency_percentile", Value("0 to 100; default 100, where one slow I/O ends a window")),
    ("latency_run", Value("0 or 1: goes on to search until the job ends; default 0")),
    (
        "steadystate ss",
        Value("iops:LIMIT, iops_slope:LIMIT, bw:LIMIT, bw_slope:LIMIT: a job (with \
               group_reporting its group) ends when in steadystate_duration no second is so far \
               from the mean, or the slope of the regression line is less, LIMIT in IOPS, bytes a \
               second, or % of the mean; default none"),
    ),
    (
        "steadystate_duration ss_dur",
        Value("in seconds unless it has a unit, whole seconds; default 0, no end at a steady \
               state"),
    ),
    (
        "steadystate_ramp_time ss_ramp",
        Value("time before the first second that counts, in seconds unless it has a unit; default \
               0"),
    ),
    (
        "flow",
        Value("weight of a job's threads among those of its flow_id: a thread with more than its \
               share of the I/Os spins, or sleeps for flow_sleep, until the others have done \
               theirs; default 0, no flow"),
    ),
    ("flow_id", Value("number of the flow; default 0")),
    (
        "flow_sleep",
        Value("microseconds that a thread held back sleeps, after all its I/Os are complete; \
               default 0, it spins"),
    ),
    ("startdelay", Value("time before the first I/O, in seconds unless it has a unit; default 0")),
    (
        "ioscheduler",
        Value("I/O scheduler of the devices, one for all jobs, in files and on command lines; a \
               scenario has queue.scheduler; default that of the device. `--scheduler` overrides \
               it"),
    ),
    (
        "exitall",
        Flag("when a thread of the run ends, those of its job's exit_what end too"),
    ),
    (
        "exit_what",
        Value("group, stonewall (all that run), all (also those that have not started); default \
               group"),
    ),
    ("wait_for", Value("name of an earlier job; starts when all of its threads have ended")),
    ("stonewall wait_for_previous", Flag("waits for the end of all jobs before it")),
    ("cgroup", Value("control group of the job, as a/b below the root; default the root")),
    ("cpus_allowed", Value("CPU numbers, e.g. 0-3,8; default all")),
    ("cpumask", Value("the same as bits of a number: 3 is cpus_allowed=0,1")),
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
    ("description", Value("text of fio's report")),
    (
        "write_lat_log",
        Flag("writes NAME_lat.N.log, NAME_slat.N.log and NAME_clat.N.log of each thread N; NAME is \
              the value, or that of the job"),
    ),
    ("write_bw_log", Flag("writes NAME_bw.N.log")),
    ("write_iops_log", Flag("writes NAME_iops.N.log")),
    ("write_hist_log", Flag("writes NAME_clat_hist.N.log; needs log_hist_msec")),
    (
        "log_avg_msec",
        Value("ms of virtual time of a line in logs; default 0, a line for each I/O"),
    ),
    ("log_max_value", Value("0 or 1: a line has the largest value, not the mean; default 0")),
    ("log_offset", Value("0 or 1: lines of logs have the offset; default 0")),
    ("log_prio", Value("0 or 1: lines of logs have class and level of prio; default 0")),
    ("log_hist_msec", Value("ms of virtual time between two histograms; default 0, none")),
    (
        "log_hist_coarseness",
        Value("0 to 6: a column of a histogram is so many powers of two of buckets; default 0"),
    ),
    (
        "per_job_logs",
        Value("0 or 1: each thread has log files of its own, N; with 0 threads of one NAME follow \
               each other in one file, which replaces an older one; default 1"),
    ),
    (
        "percentile_list",
        Value("percentiles of fio's report, each above 0 and up to 100, with `:` between; at most \
               20; default 1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
    ),
    ("slat_percentiles", Value("0 or 1: percentiles of submission latencies; default 0")),
    ("clat_percentiles", Value("0 or 1: percentiles of completion latencies; default 1")),
    ("lat_percentiles", Value("0 or 1: percentiles of total latencies; default 0")),
    (
        "bwavgtime",
        Value("ms of virtual time that a sample of bw_min ... covers; 0 is 250; default 500"),
    ),
    (
        "iopsavgtime",
        Value("ms of virtual time that a sample of iops_min ... covers; 0 is 250; default 500"),
    ),
    ("significant_figures", Value("digits in fio's text, 1 to 10; default 4")),
    ("unit_base", Value("8 or 1: rates in fio's text are of bytes or bits; default 8")),
    (
        "kb_base",
        Value("1024: k, kb and ki are 1024 and kib is 1000; 1000: k, kb and ki are 1000 and kib is \
               1024; default 1024"),
    ),
];

/// Options without effect on a model of the block layer: the reason, and the options.
#[rustfmt::skip]
pub(super) const IGNORED: ByReason = &[
    ("text for people", &["comm"]),
    (
        "fio leaves figures out or joins them; here the report has all of them, in fio's formats \
         too, and reads, writes and trims apart",
        &[
            "unified_rw_reporting", "stats", "disk_util", "disable_lat", "disable_clat",
            "disable_slat", "disable_bw_measurement disable_bw",
        ],
    ),
    (
        "figures that the report does not have",
        &["block_error_percentiles", "job_start_clock_id"],
    ),
    (
        "settings of fio's log files that change nothing here",
        &[
            "log_entries", "log_window_value", "log_compression", "log_compression_cpus",
            "log_store_compressed", "log_alternate_epoch_clock_id", "log_issue_time", "error_dump",
        ],
    ),
    (
        "files are not made: their I/O goes to the device",
        &[
            "directory", "opendir", "filename_format", "unique_filename", "create_serialize",
            "create_fsync", "create_on_open", "create_only", "file_append", "fallocate", "unlink",
            "unlink_each_loop", "overwrite", "fill_device fill_fs", "allow_file_create",
            "allow_mounted_write",
        ],
    ),
    (
        "contents of buffers; the model has no data",
        &[
            "zero_buffers", "refill_buffers", "scramble_buffers", "buffer_pattern",
            "buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage",
            "dedupe_mode", "dedupe_global", "dedupe_working_set_percentage",
        ],
    ),
    (
        "memory of fio's process",
        &[
            "mem iomem", "iomem_align mem_align", "hugepage-size", "lockmem", "thread_stack_size",
            "gpu_dev_id", "numa_mem_policy",
        ],
    ),
    ("source of fio's time stamps", &["clocksource", "gtod_cpu"]),
    ("user and group of fio's process", &["uid", "gid"]),
    (
        "how fio draws or submits; the same I/O reaches the block layer",
        &["nonvectored", "random_generator", "allrandrepeat", "userspace_reap", "libaio_vectored"],
    ),
    ("reaction to errors outside of the I/O", &["exitall_on_error", "ignore_error"]),
    (
        "deprecated in fio, and without effect there",
        &["softrandommap", "verifysort", "verifysort_nr", "flow_watermark"],
    ),
    (
        "contents of verified blocks, and the time to check them; the model has no data",
        &[
            "verify_interval", "verify_offset", "verify_pattern", "verify_pattern_interval",
            "verify_fatal", "verify_dump", "verify_async", "verify_async_cpus",
            "verify_state_save", "verify_header_seed", "verify_write_sequence", "verify_policy",
            "trim_verify_zero",
        ],
    ),
    (
        "counts only with trim_percentage, which is not modelled",
        &["trim_backlog", "trim_backlog_batch"],
    ),
    (
        "counts only with read_iolog, which is not modelled",
        &[
            "read_iolog_chunked", "replay_no_stall", "replay_redirect", "replay_scale",
            "replay_align", "replay_time_scale", "replay_skip", "merge_blktrace_file",
            "merge_blktrace_scalars", "merge_blktrace_iters",
        ],
    ),
    (
        "counts only with zonemode=zbd, which is not modelled",
        &[
            "zonecapacity", "read_beyond_wp", "max_open_zones",
            "job_max_open_zones", "ignore_zone_limits", "zone_reset_threshold",
            "zone_reset_frequency", "recover_zbd_write_error", "write_zone_remainder",
        ],
    ),
    ("hints beside a priority", &["cmdprio_hint"]),
    ("counts only with sqthread_poll, which is not modelled", &["sqthread_poll_cpu"]),
    ("counts only with fdp, which is not modelled", &[
        "plids fdp_pli", "plid_select fdp_pli_select", "dp_scheme",
    ]),
    ("counts only with sprandom, which is not modelled", &["spr_num_regions", "spr_op", "spr_cs"]),
    (
        "an option of fio's profiles tiobench and act; a job without a profile is the same without \
         it, in fio too",
        &[
            "threads", "dir", "numruns", "block", "device-names", "load", "prep",
            "threads-per-queue", "test-duration", "read-req-num-512-blocks",
            "large-block-op-kbytes",
        ],
    ),
];

/// Options for outputs of fio that are not written.
#[rustfmt::skip]
pub(super) const UNWRITTEN: ByReason = &[
    ("no iolog is written; `--blktrace DIR` writes the run as a capture", &["write_iolog"]),
];

/// Options of the program rather than of a job. None of them changes the I/O; the reason is empty
/// if they change nothing that a run prints either.
#[rustfmt::skip]
pub(super) const PROGRAM: ByReason = &[
    ("names the file of the report", &["output"]),
    ("normal, terse, json, json+: formats of fio, several with commas", &["output-format"]),
    (
        "there is one report, at the end",
        &["status-interval", "eta-newline"],
    ),
    ("the same as --output-format=terse, or in addition to it", &["minimal", "append-terse"]),
    ("terse is written in version 3", &["terse-version"]),
    ("no log of all jobs is written; use write_bw_log", &["bandwidth-log"]),
    ("use write_lat_log", &["latency-log"]),
    ("nothing of the kind is printed", &["debug", "idle-prof"]),
    (
        "",
        &[
            "eta", "eta-interval", "max-jobs", "warnings-fatal", "alloc-size", "readonly",
            "allow-mounted-write", "aux-path",
        ],
    ),
];

/// Options of engines that are not modelled: the engines, and the options.
#[rustfmt::skip]
pub(super) const OF_ENGINES: ByReason = &[
    ("cpuio", &["cpuload", "cpuchunks cpuchunk", "cpumode", "exit_on_io_done"]),
    ("mmap", &["thp"]),
    ("pvsync2", &["hipri_percentage"]),
    (
        "net netsplice rdma libhdfs librpma_apm_client librpma_apm_server librpma_gpspm_client \
         librpma_gpspm_server",
        &["hostname", "port"],
    ),
    (
        "net netsplice",
        &[
            "protocol", "nodelay", "listen", "pingpong", "interface", "ttl", "window_size", "mss",
        ],
    ),
    ("net netsplice rdma", &["proto"]),
    ("rdma", &["bindname", "verb"]),
    ("filestat dirstat", &["stat_type"]),
    ("exec", &["program", "arguments", "grace_time", "std_redirect"]),
    ("e4defrag", &["donorname", "inplace"]),
    ("gfapi gfapi_async", &["volume", "brick", "single-instance"]),
    ("mtd", &["skip_bad"]),
    ("sg", &["readfua", "writefua"]),
    ("sg", &["sg_write_mode", "stream_id"]),
    ("nbd", &["uri"]),
    ("rados rbd", &["clustername", "clientname", "busy_poll"]),
    ("rados rbd dfs", &["pool"]),
    ("rados", &["conf", "touch_objects"]),
    ("rbd", &["rbdname", "rbd_encryption_format", "rbd_encryption_passphrase"]),
    ("dfs", &["cont", "object_class", "svcl"]),
    ("dfs libhdfs", &["chunk_size chunck_size"]),
    ("libhdfs", &["namenode", "hdfsdirectory", "single_instance", "hdfs_use_direct"]),
    (
        "http",
        &[
            "https", "http_host", "http_user", "http_pass", "http_s3_key", "http_s3_keyid",
            "http_s3_region", "http_s3_sse_customer_key", "http_s3_sse_customer_algorithm",
            "http_s3_storage_class", "http_s3_security_token", "http_swift_auth_token",
            "http_mode", "http_object_mode", "http_verbose",
        ],
    ),
    ("libcufile libhipfile", &["gpu_dev_ids", "cuda_io", "rocm_io"]),
    ("libiscsi", &["initiator"]),
    ("nfs", &["nfs_url"]),
    (
        "librpma_apm_client librpma_apm_server librpma_gpspm_client librpma_gpspm_server",
        &["serverip", "direct_write_to_pmem", "busy_wait_polling"],
    ),
    (
        "libblkio",
        &[
            "libblkio_driver", "libblkio_path", "libblkio_pre_connect_props",
            "libblkio_pre_start_props", "libblkio_num_entries", "libblkio_queue_size",
            "libblkio_vectored", "libblkio_write_zeroes_on_trim", "libblkio_wait_mode",
            "libblkio_force_enable_completion_eventfd",
        ],
    ),
    ("windowsaio", &["no_completion_thread"]),
    (
        "xnvme",
        &[
            "xnvme_be", "xnvme_async", "xnvme_sync", "xnvme_admin", "xnvme_dev_nsid",
            "xnvme_iovec", "xnvme_dev_subnqn", "xnvme_mem",
        ],
    ),
    (
        "io_uring io_uring_cmd xnvme",
        &[
            "cdb_len", "md_per_io_size", "pi_act", "pi_chk", "apptag", "apptag_mask",
            "read_mode", "write_mode", "verify_mode", "verify_bytchk", "deac",
        ],
    ),
];

/// Options that would have an effect and are not modelled: the reason, and the options with their
/// other names.
#[rustfmt::skip]
pub(super) const REFUSED: ByReason = &[
    ("fio 3.33 looks each second", &["steadystate_check_interval ss_interval =1,1s"]),
    ("all devices of filename are open", &["openfiles =0,1"]),
    ("start positions aligned on their own; use offset", &["offset_align =0"]),
    ("waiting for an overlapping I/O; use iodepth=1", &["serialize_overlap =0"]),
    ("I/O of lengths that are no whole sectors", &["bs_unaligned blocksize_unaligned =0"]),
    ("use bs=read,write,trim", &["bs_is_seq_rand =0"]),
    ("deprecated in fio", &["rwmixcycle"]),
    ("refused by fio too; use percentage_random", &["percentage_sequential"]),
    ("use fdatasync", &["write_barrier =0"]),
    ("syncfs(2); use end_fsync", &["end_syncfs =0"]),
    ("atomic writes", &["atomic =0"]),
    ("locks on files", &["lockfile =none"]),
    ("files of other types", &["filetype =none,file"]),
    ("reads to verify what no write of the job wrote; use a job of reads", &["verify_only =0"]),
    ("verify that draws its positions again; leave it out", &["experimental_verify =0"]),
    ("states of verify", &["verify_state_load =0"]),
    ("trims between verified writes; use rw=trimwrite or rw=randtrim", &[
        "trim_percentage =0",
    ]),
    ("reading files into the page cache first", &["pre_read =0"]),
    ("sync_file_range(2); use fdatasync", &["sync_file_range"]),
    (
        "RWF_DONTCACHE of I/O through the page cache, which Linux 6.14 brought; use direct=1",
        &["uncached =0"],
    ),
    ("iologs; `blksim replay` takes captures of blktrace", &["read_iolog"]),
    ("a pause counted in cycles; use thinktime_spin", &["thinkcycles =0"]),
    ("a ramp by size; use ramp_time", &["ramp_size =0"]),
    ("scheduling priorities of tasks; use prioclass and prio", &["nice =0"]),
    ("use cpus_allowed", &["numa_cpu_nodes"]),
    ("weights of groups are in the scenario's [group] tables", &["cgroup_weight"]),
    ("the life of a cgroup", &["cgroup_nodelete =0"]),
    ("use several jobs", &["prio_split"]),
    ("hints beside a priority", &["priohint =0"]),
    ("the kernel's submission thread (SQPOLL)", &["sqthread_poll =0"]),
    ("RWF_NOWAIT as a choice", &["nowait =0"]),
    ("no command is run", &["exec_prerun", "exec_postrun"]),
    ("hints of the life of data", &["write_hint =none"]),
    ("placement of data by the drive", &["fdp =0", "dataplacement data_placement =none"]),
    ("several ranges in one trim", &["num_range =1"]),
    ("preparing a drive in random order", &["sprandom =0"]),
    ("a stride between random positions", &["random_sequence_stride =0"]),
    ("simulated time has no date", &["log_unix_epoch =0", "log_alternate_epoch =0"]),
    ("profiles; write the jobs", &["profile"]),
    ("triggers", &["trigger_file"]),
    ("external engines", &["ioengine_path"]),
];
