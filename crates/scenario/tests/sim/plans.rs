//! Plans of scenarios and fio jobs, and their errors.

mod dealt;
mod disks;
mod drawn;
mod global;
mod mapped;
mod words;

use std::path::Path;

use blkmq::elevator::SchedulerKind;
use blkmq::request::{IoClass, IoPrio};
use blkmq::rules::Rules;
use blkmq::time::Duration;

use scenario::{ProfileFacts, Scenario, ScenarioError};
use sim::plan::{DeviceKind, Engine, IrqMode, Order, Plan, Ratio};
use trace::fio::Reading;

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

fn scenario(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::from_toml(Path::new("dir/s.toml"), text)
}

fn plan(text: &str) -> Result<Plan, ScenarioError> {
    scenario(text)?.plan(PROFILES)
}

fn error(text: &str) -> String {
    match plan(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e.to_string(),
    }
}

/// A job that is right, after any other text.
const JOB: &str = "[[job]]\nrw = \"randread\"\ndirect = 1\n";

fn fio(text: &str) -> Result<Scenario, ScenarioError> {
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
    assert_eq!(p.disks[0].queue.scheduler.kind(), SchedulerKind::None);
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
            .kind()
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
            p.disks[0].queue.scheduler.show("async_depth")
        ),
        (128, Some(128))
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
            p.disks[0].queue.scheduler.show("async_depth")
        ),
        (512, Some(128))
    );
    let p = with("nr_requests = 512\nasync_depth = 300\nread_expire = 20\nfront_merges = 0");
    let shown = |name: &str| p.disks[0].queue.scheduler.show(name);
    assert_eq!(shown("async_depth"), Some(300));
    assert_eq!(shown("read_expire"), Some(20));
    assert_eq!(shown("front_merges"), Some(0));
    // As a write to sysfs: clamped.
    assert_eq!(
        with("fifo_batch = -3").disks[0]
            .queue
            .scheduler
            .show("fifo_batch"),
        Some(0)
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
fn a_drive_has_the_bandwidths_of_its_data_sheet_unless_others_are_reported() {
    let limits = |parameters: &str| {
        let text = format!("[device]\ntype = \"nvme\"\n{parameters}\n{JOB}");
        match plan(&text).unwrap().disks[0].device.kind {
            DeviceKind::Nvme(nvme) => (nvme.mbps, nvme.read_mbps, nvme.write_mbps),
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(limits(""), (0, 6675, 4768));
    assert_eq!(limits("write_mbps = 0"), (0, 6675, 0));
    assert_eq!(limits("mbps = 3000"), (3000, 0, 0));
    assert_eq!(limits("mbps = 3000\nread_mbps = 2000"), (3000, 2000, 0));
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
    for (rules, sectors) in [("v6.1", 1024), ("v6.12", 2560), ("v7.2", 8192)] {
        let p = plan(&format!(
            "[queue]\nrules = \"{rules}\"\n[device]\ntype = \"scsi_debug\"\n{JOB}"
        ));
        assert_eq!(p.unwrap().disks[0].queue.limits.max_sectors, sectors);
    }
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
    let p = fio("[j]\nfilename=/dev/nvme0n1\ndirect=1\nrw=randread\ncomm=x\n").unwrap();
    let p = p.plan(PROFILES).unwrap();
    assert!(matches!(p.disks[0].device.kind, DeviceKind::Nvme(_)));
    assert_eq!(
        (p.name.as_str(), p.disks[0].device.name.as_str()),
        ("j", "nvme0n1")
    );
    assert_eq!(p.ignored, ["j.fio:5: comm: has no effect: text for people"]);
    let p = fio("[j]\nfilename=/dev/sda\ndirect=1\nsize=4m\n")
        .unwrap()
        .plan(PROFILES)
        .unwrap();
    assert!(matches!(p.disks[0].device.kind, DeviceKind::ScsiDebug(_)));
    // Options of the command line win, and the report notes that.
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
        ["j.fio:2: filename: /dev/vdb means the given null_blk"]
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
    let p = Scenario::from_fio_arguments(&arguments, &Reading::plain()).unwrap();
    let p = p
        .set("queue.scheduler=mq-deadline")
        .unwrap()
        .set("job.runtime=200ms")
        .unwrap();
    let p = p.plan(PROFILES).unwrap();
    assert_eq!(
        (p.threads.len(), p.disks[0].queue.scheduler.kind()),
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
    assert_eq!(p.disks[0].queue.scheduler.show("fifo_batch"), Some(1));
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
    // The opposite of a written option replaces it.
    let s = s.set("job.ioengine=io_uring").unwrap();
    let changed = s.set("job.buffered=1").and_then(|s| s.plan(PROFILES));
    let e = changed.unwrap_err().to_string();
    assert!(
        e.starts_with("--set job.buffered=1: job.0.buffered: "),
        "{e}"
    );
}

/// Text after a right device and job, or in front of them, and the error. NVME_MAX_SEGS and
/// NVME_MAX_KB_SZ by kernel; null_blk of v6.1 has no `fua`.
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
    let message = error(&null_blk("v6.1"));
    assert!(
        message.contains("null_blk of v6.1 has no such parameter"),
        "{message}"
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

#[test]
fn a_weight_can_be_set() {
    let text = "[queue]\nscheduler = \"bfq\"\n[device]\ntype = \"null_blk\"\n[[job]]\nname = \"x\"\n\
                rw = \"read\"\ndirect = 1\ncgroup = \"a.b/c\"\n";
    let set = |assignment: &str| scenario(text).and_then(|scenario| scenario.set(assignment));
    let plan = set("group.a.b/c.io.bfq.weight=9").and_then(|scenario| scenario.plan(PROFILES));
    let groups = plan.unwrap().groups;
    let weights: Vec<(&str, u16)> = groups.iter().map(|g| (&g.path[..], g.weight)).collect();
    assert_eq!(weights, [("", 100), ("a.b", 100), ("a.b/c", 9)]);
}

/// The weight of a group under a scheduler that reads this attribute, or does so later.
#[test]
fn a_weight_is_read_by_the_scheduler_whose_it_is() {
    let weight = |scheduler: &str, name: &str, more: &str| {
        let text = format!(
            "[queue]\nscheduler = \"{scheduler}\"\n[device]\ntype = \"null_blk\"\n\
             [group.a]\n\"{name}\" = 300\n{more}{JOB}cgroup = \"a\"\n"
        );
        plan(&text).unwrap().groups[1].weight
    };
    let later = "[[change]]\nat_us = 10\nscheduler = \"bfq\"\n";
    assert_eq!(weight("bfq", "io.bfq.weight", ""), 300);
    assert_eq!(weight("none", "io.bfq.weight", later), 300);
    assert_eq!(weight("none", "io.bfq.weight", ""), 100);
    assert_eq!(weight("bfq", "blkio.weight", ""), 100);
}
