use std::path::Path;

use blkmq::request::{IoClass, IoPrio};
use blkmq::rules::{Rules, SchedulerKind};
use blkmq::time::{Duration, Jiffies};

use super::{ProfileFacts, Scenario};
use crate::plan::{DeviceKind, Engine, IrqMode, Order, Plan, Ratio};

const PROFILES: &[ProfileFacts<'_>] = &[
    ProfileFacts {
        name: "ryzen-7950x",
        cpus: 32,
    },
    ProfileFacts {
        name: "xeon-10c",
        cpus: 10,
    },
];

fn scenario(text: &str) -> super::Result<Scenario> {
    Scenario::from_toml(Path::new("dir/s.toml"), text)
}

fn plan(text: &str) -> super::Result<Plan> {
    scenario(text)?.plan(PROFILES)
}

fn error(text: &str) -> String {
    match plan(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e.to_string(),
    }
}

/// A job that is right, behind anything else.
const JOB: &str = "[[job]]\nrw = \"randread\"\ndirect = 1\n";

fn fio(text: &str) -> super::Result<Scenario> {
    Scenario::from_fio(Path::new("j.fio"), text)
}

#[test]
fn everything_may_be_left_out() {
    let p = plan(&format!("[device]\ntype = \"null_blk\"\n{JOB}")).unwrap();
    assert_eq!((p.name.as_str(), p.seed), ("s", 1));
    assert_eq!(
        (p.machine.profile.as_str(), p.machine.cpus, p.machine.hz),
        ("ryzen-7950x", 32, 250)
    );
    assert_eq!(p.disks[0].queue.rules, Rules::v6_12());
    // One queue and one poll queue make two: no scheduler by default.
    assert_eq!(p.disks[0].queue.scheduler, SchedulerKind::None);
    assert_eq!(
        (
            p.disks[0].queue.nr_requests,
            p.disks[0].queue.limits.max_sectors
        ),
        (64, 255)
    );
    assert_eq!(p.disks[0].queue.io_timeout, Duration::from_secs(5));
    let device = &p.disks[0].device;
    assert_eq!(
        (
            device.default_queues,
            device.read_queues,
            device.poll_queues,
            device.queue_depth
        ),
        (1, 0, 1, 64)
    );
    assert_eq!(
        (device.sectors, device.name.as_str(), device.budget),
        (250 << 21, "nullb0", 0)
    );
    let DeviceKind::NullBlk(n) = &device.kind else {
        panic!("{device:?}")
    };
    assert_eq!(
        (n.irqmode, n.completion),
        (IrqMode::Softirq, Duration(10_000))
    );
    assert_eq!(device.fault.busy, Ratio::NEVER);
    let [t] = p.threads.as_slice() else { panic!() };
    assert_eq!(
        (t.name.as_str(), t.engine, t.order),
        ("job0", Engine::Sync, Order::RandomOnce)
    );
    assert_eq!((t.iodepth, t.block.read.min_sectors), (1, 8));
    assert_eq!(
        (
            t.files[0].first_sector,
            t.files[0].region_sectors,
            t.io_bytes
        ),
        (0, 250 << 21, 250 << 30)
    );
    assert_eq!(t.cpus.len(), 32);
    let room = p.disks[0].capacity;
    assert_eq!(
        (room.hctxs, room.driver_tags, room.sched_tags, room.requests),
        (2, 128, 0, 130)
    );
    assert_eq!((room.bios, room.waiters, p.phases), (2, 1, 1));
}

#[test]
fn default_schedulers_follow_the_hardware_queues() {
    let kind = |device: &str| {
        plan(&format!("[device]\n{device}\n{JOB}")).unwrap().disks[0]
            .queue
            .scheduler
            .name()
    };
    assert_eq!(kind("type = \"null_blk\"\npoll_queues = 0"), "mq-deadline");
    assert_eq!(
        kind("type = \"null_blk\"\npoll_queues = 0\nno_sched = 1"),
        "none"
    );
    assert_eq!(
        kind("type = \"null_blk\"\nsubmit_queues = 4\nshared_tag_bitmap = true"),
        "mq-deadline"
    );
    assert_eq!(kind("type = \"nvme\""), "none");
    assert_eq!(kind("type = \"nvme\"\nnr_queues = 1"), "mq-deadline");
    assert_eq!(kind("type = \"scsi_debug\""), "mq-deadline");
    assert_eq!(kind("type = \"scsi_debug\"\nsubmit_queues = 2"), "none");
    assert_eq!(
        kind("type = \"scsi_debug\"\nsubmit_queues = 2\nhost_max_queue = 8"),
        "mq-deadline"
    );
}

#[test]
fn scheduler_tags_and_tunables() {
    let base = "[machine]\nhz = 1000\n[device]\ntype = \"null_blk\"\n";
    let with = |queue: &str| {
        let text = format!("[queue]\nscheduler = \"mq-deadline\"\n{queue}\n{base}{JOB}");
        plan(&text).unwrap()
    };
    let p = with("");
    assert_eq!(
        (
            p.disks[0].queue.nr_requests,
            p.disks[0].queue.mq_deadline.async_depth
        ),
        (128, 128)
    );
    assert_eq!(
        (p.disks[0].capacity.sched_tags, p.disks[0].capacity.requests),
        (256, 258)
    );
    // The kernels compute async_depth before the new nr_requests is stored.
    let p = with("nr_requests = 512");
    assert_eq!(
        (
            p.disks[0].queue.nr_requests,
            p.disks[0].queue.mq_deadline.async_depth
        ),
        (512, 128)
    );
    let p = with("nr_requests = 512\nasync_depth = 300\nread_expire = 20\nfront_merges = 0");
    assert_eq!(p.disks[0].queue.mq_deadline.async_depth, 300);
    assert_eq!(p.disks[0].queue.mq_deadline.read_expire, Jiffies(20));
    assert!(!p.disks[0].queue.mq_deadline.front_merges);
    // As a write to sysfs: clamped.
    assert_eq!(
        with("fifo_batch = -3").disks[0]
            .queue
            .mq_deadline
            .fifo_batch,
        0
    );
    assert_eq!(
        with("max_sectors_kb = 64").disks[0]
            .queue
            .limits
            .max_sectors,
        128
    );
    // A device of depth 1 has 2 scheduler tags, fewer than may be written.
    let p = plan(&format!(
        "[queue]\nscheduler = \"mq-deadline\"\nnr_requests = 2\n[device]\ntype = \"null_blk\"\n\
         hw_queue_depth = 1\n{JOB}"
    ));
    assert_eq!(p.unwrap().disks[0].queue.nr_requests, 2);
}

#[test]
fn queues_of_nvme() {
    let queues = |device: &str| {
        let p = plan(&format!("[device]\ntype = \"nvme\"\n{device}\n{JOB}")).unwrap();
        (
            p.disks[0].device.default_queues,
            p.disks[0].device.read_queues,
            p.disks[0].device.poll_queues,
        )
    };
    assert_eq!(queues(""), (32, 0, 0));
    assert_eq!(queues("poll_queues = 4"), (32, 0, 4));
    assert_eq!(queues("write_queues = 8"), (8, 32, 0));
    assert_eq!(queues("nr_queues = 8\nwrite_queues = 2"), (2, 6, 0));
    assert_eq!(queues("nr_queues = 8\nwrite_queues = 8"), (7, 1, 0));
    assert_eq!(queues("nr_queues = 8\npoll_queues = 16"), (1, 0, 7));
    assert_eq!(
        queues("nr_queues = 1\nwrite_queues = 2\npoll_queues = 2"),
        (1, 0, 0)
    );
    let p = plan(&format!(
        "[queue]\nrules = \"6.1\"\n[device]\ntype = \"nvme\"\n{JOB}"
    ))
    .unwrap();
    assert_eq!(
        (
            p.disks[0].device.queue_depth,
            p.disks[0].queue.limits.max_sectors
        ),
        (1023, 2560)
    );
    let DeviceKind::Nvme(n) = &p.disks[0].device.kind else {
        panic!()
    };
    assert_eq!(
        (n.latency.read.0, n.latency.write.0, n.latency.flush.0),
        (60_000, 20_000, 60_000)
    );
}

#[test]
fn scsi_debug_shares_tags_across_the_host() {
    let p = plan(&format!(
        "[device]\ntype = \"scsi_debug\"\nsubmit_queues = 2\nhost_max_queue = 8\nndelay = 500000\n\
         dev_size_mb = 256\n{JOB}"
    ))
    .unwrap();
    assert!(p.disks[0].device.hctx_shared);
    assert_eq!(
        (
            p.disks[0].device.queue_depth,
            p.disks[0].device.budget,
            p.disks[0].device.default_queues
        ),
        (8, 8, 2)
    );
    assert_eq!(
        (
            p.disks[0].capacity.driver_tags,
            p.disks[0].capacity.sched_tags
        ),
        (8, 16)
    );
    assert_eq!(p.disks[0].queue.limits.max_sectors, 1024);
    let DeviceKind::ScsiDebug(s) = &p.disks[0].device.kind else {
        panic!()
    };
    assert_eq!((s.delay, s.lun_depth), (Duration(500_000), 8));
    let p = plan(&format!(
        "[machine]\nhz = 250\n[device]\ntype = \"scsi_debug\"\n{JOB}"
    ))
    .unwrap();
    let DeviceKind::ScsiDebug(s) = &p.disks[0].device.kind else {
        panic!()
    };
    assert_eq!(s.delay, Duration::from_millis(4));
}

#[test]
fn clones_cpus_phases_and_seeds() {
    let p = plan(
        "seed = 7\n[device]\ntype = \"null_blk\"\n\
         [[job]]\nname = \"a\"\nrw = \"randread\"\ndirect = true\nnumjobs = 3\nrandrepeat = 0\n\
         cpus_allowed = \"4-5\"\ncpus_allowed_policy = \"split\"\n\
         [[job]]\nname = \"b\"\nrw = \"write\"\ndirect = true\nstonewall = true\nprio = 3\n\
         [[job]]\nrw = \"randtrim\"\ndirect = true\n",
    );
    assert!(p.unwrap_err().to_string().contains("takes no discards"));
    let text = "seed = 7\n[device]\ntype = \"null_blk\"\n\
         [[job]]\nname = \"a\"\nrw = \"randread\"\ndirect = true\nnumjobs = 3\nrandrepeat = 0\n\
         cpus_allowed = \"4-5\"\ncpus_allowed_policy = \"split\"\n\
         [[job]]\nname = \"b\"\nrw = \"write\"\ndirect = true\nstonewall = true\nprio = 3\n";
    let p = plan(text).unwrap();
    let seen: Vec<_> = p
        .threads
        .iter()
        .map(|t| (t.job, t.clone, t.phase, t.cpus[0]))
        .collect();
    assert_eq!(
        seen,
        [(0, 0, 0, 4), (0, 1, 0, 5), (0, 2, 0, 4), (1, 0, 1, 0)]
    );
    assert_eq!(p.phases, 2);
    assert_eq!(
        p.threads[3].priority,
        IoPrio {
            class: IoClass::BestEffort,
            level: 3
        }
    );
    assert_ne!(p.threads[0].random_seed, p.threads[1].random_seed);
    // randrepeat=0 follows the run's seed, randrepeat=1 does not.
    let other = scenario(text)
        .unwrap()
        .set("seed=8")
        .unwrap()
        .plan(PROFILES)
        .unwrap();
    assert_ne!(p.threads[0].random_seed, other.threads[0].random_seed);
    assert_eq!(p.threads[3].random_seed, other.threads[3].random_seed);
}

#[test]
fn bios_in_flight_count_pieces() {
    let p = plan(
        "[device]\ntype = \"null_blk\"\n[[job]]\nrw = \"read\"\nbs = \"1m\"\ndirect = 1\n\
         ioengine = \"libaio\"\niodepth = 4\nnumjobs = 2\n",
    )
    .unwrap();
    // 2048 sectors in pieces of 255: nine, four times, and a flush; twice.
    assert_eq!(p.disks[0].capacity.bios, 2 * (4 * 9 + 1));
}

#[test]
fn fio_files_name_their_device() {
    let p = fio("[j]\nfilename=/dev/nvme0n1\ndirect=1\nrw=randread\ndescription=x\n").unwrap();
    let p = p.plan(PROFILES).unwrap();
    assert!(matches!(p.disks[0].device.kind, DeviceKind::Nvme(_)));
    assert_eq!(
        (p.name.as_str(), p.disks[0].device.name.as_str()),
        ("j", "nvme0n1")
    );
    assert_eq!(
        p.ignored,
        ["j.fio:5: description: has no effect on a model of the block layer"]
    );
    let p = fio("[j]\nfilename=/dev/sda\ndirect=1\nsize=4m\n")
        .unwrap()
        .plan(PROFILES)
        .unwrap();
    assert!(matches!(p.disks[0].device.kind, DeviceKind::ScsiDebug(_)));
    // What is told on the command line wins, and the report says so.
    let p = fio("[j]\nfilename=/dev/vdb\ndirect=1\n").unwrap();
    let p = p
        .set_device("null_blk,irqmode=2,completion_nsec=5000,fault.busy=1/100")
        .unwrap();
    let p = p.plan(PROFILES).unwrap();
    let DeviceKind::NullBlk(n) = &p.disks[0].device.kind else {
        panic!()
    };
    assert_eq!(n.completion, Duration(5000));
    assert_eq!(
        p.disks[0].device.fault.busy,
        Ratio {
            numerator: 1,
            denominator: 100
        }
    );
    assert_eq!(
        p.ignored,
        ["j.fio:2: filename: /dev/vdb stands for the null_blk told"]
    );
    // Globals are overridden, not contradicted.
    let p = fio("[global]\ndirect=1\nbs=8k\n[j]\nfilename=/dev/nullb0\nbsrange=4k-16k\n").unwrap();
    assert_eq!(
        p.plan(PROFILES).unwrap().threads[0].block.read.max_sectors,
        32
    );
}

#[test]
fn the_calibration_command_line() {
    let line = "--bs=512 --group_reporting=1 --gtod_reduce=1 --invalidate=1 --ioengine=io_uring \
         --norandommap --runtime=60 --rw=randread --thread --time_based=1 --buffered=0 \
         --fixedbufs=1 --numjobs=32 --iodepth=4 --iodepth_batch_submit=4 \
         --iodepth_batch_complete=4 --name=j --filename=/dev/nullb0";
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let p = Scenario::from_fio_arguments(&arguments).unwrap();
    let p = p
        .set("queue.scheduler=mq-deadline")
        .unwrap()
        .set("job.runtime=200ms")
        .unwrap();
    let p = p.plan(PROFILES).unwrap();
    assert_eq!(
        (p.threads.len(), p.disks[0].queue.scheduler),
        (32, SchedulerKind::MqDeadline)
    );
    let t = &p.threads[31];
    assert_eq!(
        (t.batch_submit, t.batch_complete_min, t.batch_complete_max),
        (4, 4, 4)
    );
    assert_eq!(
        (t.runtime, t.io_bytes),
        (Duration::from_millis(200), u64::MAX)
    );
    assert_eq!((t.order, t.block.read.max_sectors), (Order::Random, 1));
    assert_eq!((p.disks[0].capacity.bios, p.ignored.len()), (160, 0));
}

#[test]
fn set_changes_values_and_all_jobs() {
    let text = format!("[device]\ntype = \"null_blk\"\n{JOB}{JOB}");
    let s = scenario(&text).unwrap();
    let s = s
        .set("queue.scheduler=mq-deadline")
        .unwrap()
        .set("queue.fifo_batch=1")
        .unwrap();
    let s = s
        .set("device.hw_queue_depth=8")
        .unwrap()
        .set("job.ioengine=libaio")
        .unwrap();
    let s = s
        .set("job.iodepth = 32")
        .unwrap()
        .set("job.blocksize=8k")
        .unwrap();
    let s = s
        .set("machine.cpus=2")
        .unwrap()
        .set("device.fault.error=1/2")
        .unwrap();
    let p = s.plan(PROFILES).unwrap();
    assert_eq!(p.disks[0].queue.mq_deadline.fifo_batch, 1);
    assert_eq!((p.disks[0].device.queue_depth, p.machine.cpus), (8, 2));
    assert!(
        p.threads
            .iter()
            .all(|t| t.iodepth == 32 && t.block.read.min_sectors == 16)
    );
    assert_eq!(
        p.disks[0].device.fault.error,
        Ratio {
            numerator: 1,
            denominator: 2
        }
    );
    // The opposite of what is written replaces it.
    let e = s
        .set("job.buffered=1")
        .unwrap()
        .plan(PROFILES)
        .unwrap_err()
        .to_string();
    assert_eq!(
        e,
        "--set job.buffered=1: job.0.buffered: buffered I/O is not modelled; write direct=1"
    );
}

/// Text behind a right device and job, or in front of them, and what must be said.
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
        "dir/s.toml:3: invalid type: string \"two\", expected u16",
    ),
    (
        "[queue]\nnomerges = -1",
        "dir/s.toml:2: invalid value: integer `-1`, expected u8",
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
        "dir/s.toml:2: queue.rules: no rules of a kernel `v5.4`; there are v6.1",
    ),
    (
        "[queue]\nscheduler = \"mq-deadline\"\nseries = \"v4\"",
        "dir/s.toml:3: queue.series: no series `v4`; there are stock, poc, v1, v2, v2-repaired, v3,",
    ),
    (
        "[queue]\nscheduler = \"none\"\nseries = \"v3\"",
        "dir/s.toml:3: queue.series: v3 changes mq-deadline, but the scheduler is none",
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
        "[queue]\nscheduler = \"bfq\"",
        "dir/s.toml:2: queue.scheduler: bfq is not modelled",
    ),
    (
        "[queue]\nfifo_batch = 1",
        "dir/s.toml:2: queue.fifo_batch: an attribute of mq-deadline, but the scheduler is none",
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
        "[[job]]\nrw = \"read\"\ndirect = 0",
        "dir/s.toml:3: job.0.direct: buffered I/O is not modelled",
    ),
    (
        "[[job]]\ndirect = 1\ncpus_allowed = \"40\"",
        "dir/s.toml:3: job.0.cpus_allowed: there is no CPU 40",
    ),
    (
        "[[job]]\ndirect = 1\noffset = \"300g\"",
        "dir/s.toml:3: job.0.offset: behind the end of nullb0",
    ),
    (
        "[[job]]\ndirect = 1\nsize = \"300g\"",
        "dir/s.toml:3: job.0.size: 629145600 sectors from sector 0 on end behind",
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
        "invalid type: string \"fast\", expected u8",
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
        "invalid value: integer `2`, expected a switch",
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
        "nvme,jitter_percent=101",
        "device.jitter_percent: 101 is not 0 to 100",
    ),
    ("nvme,latency_ns=0", "device.latency_ns: 0 is not 1 to"),
    (
        "scsi_debug,num_tgts=2",
        "device.num_tgts: only 1 is modelled",
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
        "j.fio: device: no device is told: give --device null_blk",
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
        "[j]\nfilename=/dev/nullb0\ndirect=0\n",
        "j.fio:3: job.0.direct: buffered I/O is not modelled",
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
        "j.fio:4: job.0.size: 18432 sectors from sector 0 on end behind sda",
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

/// NVME_MAX_SEGS and NVME_MAX_KB_SZ by kernel; null_blk of v6.1 has no `fua`.
#[test]
fn limits_and_parameters_of_each_kernel() {
    let nvme = |rules: &str| {
        let text = format!("[device]\ntype = \"nvme\"\n[queue]\nrules = \"{rules}\"\n{JOB}");
        plan(&text).unwrap().disks[0].queue.limits
    };
    assert_eq!(
        (nvme("v6.1").max_segments, nvme("v6.12").max_segments),
        (127, 128)
    );
    let null_blk = |rules: &str| {
        let device = "[device]\ntype = \"null_blk\"\nmemory_backed = 1\ncache_size = 1\nfua = 0\n";
        format!("{device}[queue]\nrules = \"{rules}\"\n{JOB}")
    };
    assert!(!plan(&null_blk("v6.12")).unwrap().disks[0].queue.limits.fua);
    let told = error(&null_blk("v6.1"));
    assert!(
        told.contains("null_blk of v6.1 has no such parameter"),
        "{told}"
    );
}

/// Pages are segments: a thread of 1 MiB reads has three bios in flight on an NVMe drive of v6.1.
#[test]
fn bios_in_flight_count_the_splits_at_segments() {
    let bios = |rules: &str, size: &str| {
        let job = format!("[[job]]\nrw = \"randread\"\ndirect = 1\nbs = \"{size}\"\n");
        let text = format!("[device]\ntype = \"nvme\"\n[queue]\nrules = \"{rules}\"\n{job}");
        plan(&text).unwrap().disks[0].capacity.bios
    };
    assert_eq!(bios("v6.1", "1m") - bios("v6.1", "4k"), 2);
    assert_eq!(bios("v6.12", "1m") - bios("v6.12", "4k"), 1);
}
