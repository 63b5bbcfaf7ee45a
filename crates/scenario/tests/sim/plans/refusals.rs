//! Scenarios, options and fio files that are refused, and the errors.

use super::*;

const BAD_TOML: &[(&str, &str)] = &[
    ("[queue", "dir/s.toml:1: "),
    (
        "[queue]\nfifo_bach = 1",
        "dir/s.toml:2: unknown field `fifo_bach`; did you mean `fifo_batch`?",
    ),
    (
        "[quue]\n",
        "dir/s.toml:1: unknown field `quue`; did you mean `queue`?",
    ),
    (
        "[machine]\n\ncpus = \"two\"",
        "dir/s.toml:3: machine.cpus: invalid type: string \"two\", expected u16",
    ),
    (
        "[queue]\nnomerges = -1",
        "dir/s.toml:2: queue.nomerges: invalid value: integer `-1`, expected u8",
    ),
    (
        "[queue]\nnr_requests = 18446744073709551615",
        "dir/s.toml:2: queue.nr_requests: 18446744073709551615 is too large; numbers go up to \
         9223372036854775807",
    ),
    (
        "seed = 99999999999999999999",
        "dir/s.toml:1: seed: 99999999999999999999 is too large; numbers go up to",
    ),
    (
        "[[job]]\nrw = \"read\"\n\n[[job]]\nrw = \"read\"\nsize = 0xffffffffffffffff",
        "dir/s.toml:6: job.1.size: 0xffffffffffffffff is too large; numbers go up to",
    ),
    (
        "[queue]\nrules = \"v2.6.32\"\nscheduler = \"cfq\"\ngroup_idle = 0",
        "dir/s.toml:4: queue.group_idle: cfq of this kernel has no attribute \"group_idle\"; it has \
         quantum, fifo_expire_sync,",
    ),
    (
        "[queue]\nrules = \"v4.20\"\nscheduler = \"cfq\"\ngroup_isolation = 1",
        "dir/s.toml:4: queue.group_isolation: cfq of this kernel has no attribute",
    ),
    (
        "[queue]\nnomerges = 3",
        "dir/s.toml:2: queue.nomerges: 3 is not 0 to 2",
    ),
    (
        "[queue]\nrq_affinity = 3",
        "dir/s.toml:2: queue.rq_affinity: 3 is not 0 to 2",
    ),
    (
        "[queue]\nio_timeout = 0",
        "dir/s.toml:2: queue.io_timeout: is at least 1 ms",
    ),
    (
        "[queue]\nrules = \"v5.4\"",
        "dir/s.toml:2: queue.rules: no rules of a kernel `v5.4`; there are v5.11, v5.13, v6.1",
    ),
    (
        "[queue]\nscheduler = \"mq-deadline\"\nseries = \"v4\"",
        "dir/s.toml:3: queue.series: no series `v4`; there are stock, poc, v1, v2, v2-repaired, v3,",
    ),
    (
        "[queue]\nscheduler = \"none\"\nseries = \"v3\"",
        "dir/s.toml:3: queue.series: v3 changes mq-deadline and bfq, but the scheduler is none",
    ),
    (
        "[queue]\nscheduler = \"mq-deadline\"\nseries = \"v3\"\ndd_cpu_buckets = 8",
        "dir/s.toml:4: queue.dd_cpu_buckets: the series v3 has no insertion buckets",
    ),
    (
        "[queue]\nscheduler = \"mq-deadline\"\nseries = \"v2\"\ndd_cpu_buckets = 0",
        "dir/s.toml:4: queue.dd_cpu_buckets: 0 is not 1 to 1024",
    ),
    (
        "[queue]\nscheduler = \"mqdeadline\"",
        "dir/s.toml:2: queue.scheduler: no scheduler `mqdeadline`; did you mean `mq-deadline`?",
    ),
    (
        "[queue]\nscheduler = \"cfq\"",
        "dir/s.toml:2: queue.scheduler: cfq is of the path single-queue",
    ),
    (
        "[queue]\nfifo_batch = 1",
        "dir/s.toml:2: queue.fifo_batch: an attribute of mq-deadline and deadline, but the scheduler is none",
    ),
    (
        "[queue]\nnr_requests = 65",
        "dir/s.toml:2: queue.nr_requests: 65 is more than 64, the device's tags",
    ),
    (
        "[queue]\nscheduler = \"mq-deadline\"\nnr_requests = 3",
        "dir/s.toml:3: queue.nr_requests: 3 is less than 4",
    ),
    (
        "[queue]\nscheduler = \"mq-deadline\"\nnr_requests = 4096",
        "dir/s.toml:3: queue.nr_requests: 4096 is more than 2048",
    ),
    (
        "[queue]\nscheduler = \"mq-deadline\"\nfifo_batch = 9999999999",
        "dir/s.toml:3: queue.fifo_batch: fifo_batch: \"9999999999\" is outside",
    ),
    (
        "[queue]\nmax_sectors_kb = 128",
        "dir/s.toml:2: queue.max_sectors_kb: 128 is not 4 (a page) to 127",
    ),
    (
        "[machine]\nprofile = \"ryzen-7950\"",
        "dir/s.toml:2: machine.profile: no profile `ryzen-7950`; did you mean `ryzen-7950x`?",
    ),
    (
        "[machine]\nprofile = \"pdp11\"",
        "dir/s.toml:2: machine.profile: no profile `pdp11`; there are ryzen-7950x, xeon-10c",
    ),
    (
        "[machine]\ncpus = 33",
        "dir/s.toml:2: machine.cpus: 33 is not 1 to 32",
    ),
    (
        "[machine]\nhz = 64",
        "dir/s.toml:2: machine.hz: 64 is none of",
    ),
    (
        "[[job]]\niodpeth = 4\ndirect = 1",
        "dir/s.toml:2: job.0.iodpeth: no such fio option; did you mean `iodepth`?",
    ),
    (
        "[[job]]\ndirect = 1\nbs = 0",
        "dir/s.toml:3: job.0.bs: an I/O of 0 bytes",
    ),
    (
        "[[job]]\ndirect = 1\nblocksize = \"1000\"",
        "dir/s.toml:3: job.0.blocksize: 1000 to 1000 bytes are not whole",
    ),
    (
        "[[job]]\ndirect = 1.5",
        "dir/s.toml:2: job.0.direct: expected a string, a whole number, true or false",
    ),
    (
        "[[job]]\ndirect = 1\nbs = \"4k\"\nblocksize = \"8k\"",
        "dir/s.toml:3: job.0.bs: blocksize is the same option",
    ),
    (
        "[[job]]\nrw = \"write\"\ndirect = 0",
        "dir/s.toml:3: job.0.direct: reads go through the page cache alone",
    ),
    (
        "[[job]]\nrw = \"read\"\nbuffered = 1\nioengine = \"libaio\"",
        "dir/s.toml:3: job.0.buffered: libaio blocks in io_submit(2)",
    ),
    (
        "[[job]]\nrw = \"read\"\ndirect = 0\nioengine = \"io_uring\"",
        "dir/s.toml:3: job.0.direct: io_uring's retries of reads through the page cache",
    ),
    (
        "[[interleaved]]\nrw = \"read\"",
        "dir/s.toml:2: interleaved.0.rw: follows from the other keys of this table",
    ),
    (
        "[[interleaved]]\npiece = \"6k\"",
        "dir/s.toml:2: interleaved.0.piece: is one size in whole pages of 4096 bytes",
    ),
    (
        "[[interleaved]]\npiece = \"six\"",
        "dir/s.toml:2: interleaved.0.piece: ",
    ),
    (
        "[[interleaved]]\nhand_over = 1",
        "dir/s.toml:2: interleaved.0.hand_over: is \"none\" or \"in-order\"",
    ),
    (
        "[[nfsd]]\nthreads = 0",
        "dir/s.toml:2: nfsd.0.threads: is a whole number from 1 to 256",
    ),
    (
        "[[nfsd]]\nthreads = 2",
        "dir/s.toml:1: nfsd.0.runtime: is required: clients stream without end",
    ),
    (
        "[[nfsd]]\ndirect = 1\nruntime = 1",
        "dir/s.toml:2: nfsd.0.direct: a server of files reads through the page cache",
    ),
    (
        "[queue]\nread_ahead_kb = 6",
        "dir/s.toml:2: queue.read_ahead_kb: 6 is not 0 to 65536 in whole pages of 4",
    ),
    (
        "[machine]\npage_cache_mb = 8",
        "dir/s.toml:2: machine.page_cache_mb: 8 is not 16 to 16384",
    ),
    (
        "[machine]\npage_cache_mb = 16\n[[job]]\nrw = \"read\"\ndirect = 0\nnumjobs = 20",
        "dir/s.toml:2: machine.page_cache_mb: 16 MiB are too few: all readers may have",
    ),
    (
        "[[job]]\ndirect = 1\ncpus_allowed = \"40\"",
        "dir/s.toml:3: job.0.cpus_allowed: there is no CPU 40",
    ),
    (
        "[[job]]\ndirect = 1\noffset = \"300g\"",
        "dir/s.toml:3: job.0.offset: after the end of nullb0",
    ),
    (
        "[[job]]\ndirect = 1\nsize = \"300g\"",
        "dir/s.toml:3: job.0.size: 629145600 sectors from sector 0 on end after",
    ),
    (
        "[[job]]\ndirect = 1\nrw = \"trim\"",
        "dir/s.toml:3: job.0.rw: nullb0 takes no discards",
    ),
    (
        "[[job]]\ndirect = 1\nioengine = \"io_uring\"\niodepth = 65536\nbs = \"1g\"",
        "dir/s.toml:1: job: ",
    ),
];

#[test]
fn bad_scenarios() {
    for (text, want) in BAD_TOML {
        let device = "\n[device]\ntype = \"null_blk\"\n";
        let whole = if text.starts_with("[[job]]") {
            format!("{text}{device}")
        } else {
            format!("{text}{device}{JOB}")
        };
        let got = error(&whole);
        assert!(got.starts_with(want), "{whole}\n  got {got}\n want {want}");
    }
    assert!(
        error("[device]\ntype = \"null_blk\"\n").starts_with("dir/s.toml: job: there is no job")
    );
}

const BAD_DEVICES: &[(&str, &str)] = &[
    ("", "expected TYPE,PARAMETER=VALUE"),
    ("irqmode=1", "expected TYPE,PARAMETER=VALUE"),
    ("null_blk,irqmode", "`irqmode` is not PARAMETER=VALUE"),
    ("null_blk,irqmode=", "`irqmode=` is not PARAMETER=VALUE"),
    ("null_blk,irqmode=1,irqmode=2", "irqmode is given twice"),
    (
        "null_blk,irq_mode=1",
        "unknown field `irq_mode`; did you mean `irqmode`?",
    ),
    (
        "null_blk,irqmode=fast",
        "device.irqmode: `fast` is not 0 to 2",
    ),
    (
        "nul_blk",
        "device.type: no device `nul_blk`; did you mean `null_blk`?",
    ),
    (
        "floppy",
        "device.type: no device `floppy`; there are null_blk, nvme, scsi_debug",
    ),
    (
        "null_blk,channels=4",
        "device.channels: null_blk has no such parameter; it has",
    ),
    ("null_blk,irqmode=3", "device.irqmode: 3 is not 0 to 2"),
    (
        "null_blk,completion_nsec=5000",
        "device.completion_nsec: has a meaning with irqmode=2 only",
    ),
    (
        "null_blk,hw_queue_depth=0",
        "device.hw_queue_depth: 0 is not 1 to 10240",
    ),
    ("null_blk,bs=1000", "device.bs: 1000 is none of"),
    (
        "null_blk,discard=1",
        "device.discard: needs memory_backed=1",
    ),
    (
        "null_blk,cache_size=16",
        "device.cache_size: needs memory_backed=1",
    ),
    ("null_blk,queue_mode=0", "device.queue_mode: only 2"),
    (
        "null_blk,nr_devices=0",
        "device.nr_devices: 0 is not 1 to 255",
    ),
    (
        "null_blk,mbps=50000",
        "device.mbps: 50000 is not 0 to 40960",
    ),
    (
        "null_blk,blocking=2",
        "device.blocking: 2 is no switch: true, false, 1 or 0",
    ),
    (
        "null_blk,fault.busy=1",
        "device.fault.busy: a device that is always busy",
    ),
    (
        "null_blk,fault.requeue=2/2",
        "device.fault.requeue: a device that gives all back",
    ),
    (
        "null_blk,fault.busy=3/2",
        "invalid value: string \"3/2\", expected a chance",
    ),
    (
        "null_blk,fault.busy=1/0",
        "invalid value: string \"1/0\", expected a chance",
    ),
    (
        "null_blk,fault.busy_status=later",
        "device.fault.busy_status: `later` is neither",
    ),
    (
        "nvme,io_queue_depth=1",
        "device.io_queue_depth: 1 is not 2 to 4095",
    ),
    (
        "nvme,coalesce_threshold=8",
        "device.coalesce_threshold: needs coalesce_time",
    ),
    ("nvme,nr_queues=0", "device.nr_queues: 0 is not 1 to 65535"),
    (
        "null_blk,jitter_percent=10",
        "device.jitter_percent: has a meaning with irqmode=2 only",
    ),
    (
        "nvme,jitter_percent=101",
        "device.jitter_percent: 101 is not 0 to 100",
    ),
    ("nvme,latency_ns=0", "device.latency_ns: 0 is not 1 to"),
    (
        "scsi_debug,num_tgts=0",
        "device.num_tgts: 0 is not 1 to 255",
    ),
    (
        "scsi_debug,max_queue=193",
        "device.max_queue: 193 is not 1 to 192",
    ),
    (
        "scsi_debug,poll_queues=1",
        "device.poll_queues: 1 of submit_queues=1 leave none",
    ),
    (
        "scsi_debug,ndelay=1000000000",
        "device.ndelay: 1000000000 is not 0 to",
    ),
];

#[test]
fn bad_device_options() {
    for (text, want) in BAD_DEVICES {
        let made = fio("[j]\nfilename=/dev/nullb0\ndirect=1\n")
            .unwrap()
            .set_device(text);
        let got = made
            .and_then(|s| s.plan(PROFILES))
            .expect_err(text)
            .to_string();
        assert!(
            got.starts_with(&format!("--device {text}: {want}")),
            "{text}\n  {got}"
        );
    }
}

const BAD_SETS: &[(&str, &str)] = &[
    ("queue.fifo_batch", "expected KEY=VALUE"),
    ("queue.fifo_batch=", "queue.fifo_batch needs a value"),
    ("=1", "`` is no name"),
    ("queue.=1", "`queue.` is no name"),
    (
        "queue.fifo_bach=1",
        "unknown field `fifo_bach`; did you mean `fifo_batch`?",
    ),
    (
        "queues.fifo_batch=1",
        "unknown field `queues`; did you mean `queue`?",
    ),
    (
        "queue.fifo_batch=many",
        "invalid type: string \"many\", expected i64",
    ),
    ("queue=1", "`queue` is a table"),
    ("seed.x=1", "`seed` is a value, not a table"),
    (
        "machine.cpus=70000",
        "invalid value: integer `70000`, expected u16",
    ),
    ("machine.cpus=64", "machine.cpus: 64 is not 1 to 32"),
    (
        "job.iodpeth=4",
        "job.0.iodpeth: no such fio option; did you mean `iodepth`?",
    ),
    ("job.0.iodepth=4", "write job.OPTION=VALUE"),
    ("job.bs=0", "job.0.bs: an I/O of 0 bytes"),
    (
        "device.type=nvm",
        "device.type: no device `nvm`; did you mean `nvme`?",
    ),
];

#[test]
fn bad_sets() {
    for (text, want) in BAD_SETS {
        let base = format!("seed = 1\n[queue]\nnomerges = 0\n[device]\ntype = \"null_blk\"\n{JOB}");
        let made = scenario(&base).unwrap().set(text);
        let got = made
            .and_then(|s| s.plan(PROFILES))
            .expect_err(text)
            .to_string();
        assert!(
            got.starts_with(&format!("--set {text}: {want}")),
            "{text}\n  {got}"
        );
    }
}

const BAD_FIO: &[(&str, &str)] = &[
    (
        "[j]\ndirect=1\n",
        "j.fio: device: no device is given: use --device null_blk",
    ),
    (
        "[j]\ndirect=1\nfilename=/dev/vdb\n",
        "j.fio:3: job.0.filename: /dev/vdb is no device that is modelled",
    ),
    (
        "[j]\ndirect=1\nfilename=/tmp/file\n",
        "j.fio:3: job.0.filename: /tmp/file is no device",
    ),
    (
        "[j]\nfilename=/dev/nullb0\ndirect=0\nrw=write\n",
        "j.fio:3: job.0.direct: reads go through the page cache alone",
    ),
    (
        "[j]\nfilename=/dev/nullb0\n[k]\nfilename=/dev/vdb\n",
        "j.fio:4: job.1.filename: /dev/vdb is no device",
    ),
    (
        "[j]\nfilename=/dev/nullb0:/dev/nullb1\n[k]\nbs=4k\n",
        "j.fio:3: job.1.filename: the job names none of the devices; they are /dev/nullb0, \
         /dev/nullb1",
    ),
    (
        "[j]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=io_uring\nhipri\n",
        "j.fio:5: job.0.hipri: the device has no poll queues",
    ),
    (
        "[j]\nfilename=/dev/nvme0n1\nrw=write\nioengine=io_uring\nhipri\nfdatasync=4\n",
        "j.fio:6: fdatasync: a ring that polls (hipri) takes no sync",
    ),
    (
        "[j]\nfilename=/dev/nvme0n1\nrw=write\nioengine=io_uring\ndirect=1\nhipri\nfsync=1\n",
        "j.fio:7: fsync: a ring that polls (hipri) takes no sync",
    ),
    (
        "[j]\nfilename=/dev/nvme0n1\nioengine=io_uring\nhipri\n",
        "j.fio:4: job.0.hipri: the device has no poll queues",
    ),
    (
        "[j]\nfilename=/dev/nvme0n1\ndirect=0\nioengine=io_uring\nhipri\n",
        "j.fio:5: hipri: polled I/O goes around the page cache",
    ),
    (
        "[j]\nfilename=/dev/sda\ndirect=1\nsize=9m\n",
        "j.fio:4: job.0.size: 18432 sectors from sector 0 on end after sda",
    ),
    (
        "[j]\nfilename=/dev/nullb0\ndirect=1\nbssplit=4k/50:8k/60\n",
        "j.fio:4: bssplit: the shares of `4k/50:8k/60` add up to 110 percent",
    ),
    (
        "[j]\nfilename=/dev/nullb0\nrw=randread:0\n",
        "j.fio:3: rw: `0` is no number of I/Os, at least 1",
    ),
    (
        "[j]\nfilename=/dev/sda\nrw=randread\nrandom_distribution=zoned_abs:60/4m:40/8m\n",
        "j.fio:4: job.0.random_distribution: zones of 24576 sectors in a region of 16384",
    ),
    (
        "[j]\nfilename=/dev/sda\nrw=randread\nrandom_distribution=zoned_abs:60/512:40/1m\n",
        "j.fio:4: job.0.random_distribution: a zone holds no I/O of 8 sectors",
    ),
    (
        "[j]\nfilename=/dev/sda\nnumjobs=3\noffset_increment=4m\n",
        "j.fio:4: job.0.offset_increment: after the end of sda (16384 sectors)",
    ),
    (
        "[j]\nfilename=/dev/sda\nfilesize=9m\n",
        "j.fio:3: job.0.filesize: sda has 16384 sectors",
    ),
    (
        "[j]\nfilename=/dev/sda\nrw=read:512\n[k]\nfilename=/dev/sda\nrate=1m\nrate_iops=9\n",
        "j.fio:7: rate_iops: rate is given as well",
    ),
    (
        "[j]\nfilename=/dev/nullb0\ndirect=1\nverify=md5\n",
        "j.fio:4: verify: not modelled",
    ),
];

#[test]
fn bad_fio_files() {
    for (text, want) in BAD_FIO {
        let got = fio(text)
            .and_then(|s| s.plan(PROFILES))
            .expect_err(text)
            .to_string();
        assert!(got.starts_with(want), "{text}\n  {got}");
    }
}

/// A weight of a group without jobs is a mistake; that of a job's group or of a parent of it is
/// not.
#[test]
fn a_group_that_no_job_is_in_is_refused() {
    let text = |cgroup: &str| {
        format!(
            "[machine]\nprofile = \"xeon-10c\"\n[queue]\nscheduler = \"bfq\"\n[device]\n\
             type = \"null_blk\"\n[group.a]\n\"io.bfq.weight\" = 300\n[[job]]\nname = \"x\"\n\
             rw = \"read\"\ndirect = 1\ncgroup = \"{cgroup}\"\n"
        )
    };
    for used in ["a", "a/b"] {
        assert!(super::plan(&text(used)).is_ok(), "{used}");
    }
    for other in ["b", "ab"] {
        let error = super::error(&text(other));
        assert!(error.contains("group.a"), "{error}");
        assert!(error.contains("no job is in this group"), "{error}");
    }
}

/// Each error names the group, its place, and the values that would be right.
#[test]
fn groups_that_cannot_be_are_refused() {
    let text = |group: &str, cgroup: &str| {
        format!(
            "[queue]\nscheduler = \"bfq\"\n[device]\ntype = \"null_blk\"\n{group}\n[[job]]\n\
             name = \"x\"\nrw = \"read\"\ndirect = 1\ncgroup = \"{cgroup}\"\n"
        )
    };
    let weight = |path: &str, weight: &str| format!("[group.{path}]\n\"io.bfq.weight\" = {weight}");
    let cases = [
        (
            weight("a", "0"),
            "a",
            "dir/s.toml:6: group.a.io.bfq.weight: 0 is no weight; expected 1 to 1000",
        ),
        (
            weight("a", "\"much\""),
            "a",
            "dir/s.toml:6: group.a.io.bfq.weight: invalid type: string \"much\", expected u64",
        ),
        (
            "[group.a]\n\"io.weight\" = 5".to_owned(),
            "a",
            "dir/s.toml:6: group.a.io.weight: no attribute of a group; expected io.bfq.weight",
        ),
        (
            weight("\"a/../b\"", "5"),
            "b",
            "dir/s.toml:5: group.a/../b: `a/../b` is no path of a group; expected one as a/b",
        ),
        (
            weight("\"/\"", "5"),
            "b",
            "dir/s.toml:5: group./: the root has no attributes",
        ),
        (
            format!("{}\n{}", weight("a", "5"), weight("\"a/\"", "6")),
            "a",
            "dir/s.toml:7: group.a/: the group has a table already, under another spelling",
        ),
        (
            String::new(),
            "a//b",
            "dir/s.toml:10: job.0.cgroup: `a//b` is no path of a group; expected one as a/b",
        ),
    ];
    for (group, cgroup, want) in cases {
        let text = text(&group, cgroup);
        let error = super::error(&text);
        assert!(error.starts_with(want), "{text}\n{error}");
    }
}

#[test]
fn a_weight_can_be_set() {
    let text = "[queue]\nscheduler = \"bfq\"\n[device]\ntype = \"null_blk\"\n[[job]]\nname = \"x\"\n\
                rw = \"read\"\ndirect = 1\ncgroup = \"a.b/c\"\n";
    let set =
        |assignment: &str| super::scenario(text).and_then(|scenario| scenario.set(assignment));
    let plan = set("group.a.b/c.io.bfq.weight=9").and_then(|scenario| scenario.plan(PROFILES));
    let groups = plan.unwrap().groups;
    let weights: Vec<(&str, u16)> = groups.iter().map(|g| (&g.path[..], g.weight)).collect();
    assert_eq!(weights, [("", 100), ("a.b", 100), ("a.b/c", 9)]);
    let wrong = set("group.a.weight=9").and_then(|scenario| scenario.plan(PROFILES));
    let error = wrong.unwrap_err().to_string();
    let want = "--set group.a.weight=9: group.a.weight: no attribute of a group";
    assert!(error.starts_with(want), "{error}");
}
