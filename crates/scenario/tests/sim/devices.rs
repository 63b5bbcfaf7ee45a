//! Several devices in one run: independent of each other, and distinguished by all records.

use blkmq::request::QueueId;
use std::path::Path;

use blkmq::env::TraceAction;
use scenario::profile;
use scenario::report::{DiskReport, Origin, Report};
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator, Stall};
use sim::plan::Plan;
use sim::profile::MachineProfile;

fn profile() -> MachineProfile {
    profile::built_in("ryzen-7950x").unwrap()
}

fn plan(text: &str) -> Plan {
    let info = ProfileFacts {
        name: "ryzen-7950x",
        cpus: 32,
    };
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap();
    scenario
        .plan(&[info])
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Runs to the end; the report and, if it stalled, why.
fn run(text: &str) -> (Report, Option<Box<Stall>>) {
    let (plan, profile) = (plan(text), profile());
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    let stall = match simulator.run(|_| true) {
        Outcome::Finished => None,
        Outcome::Stalled(stall) => Some(stall),
    };
    simulator.settle();
    let recorder = simulator.recorder();
    let report = Report::new(
        Origin::default(),
        &plan,
        &profile,
        recorder,
        stall.as_deref(),
    );
    (report, stall)
}

fn ran(text: &str) -> Report {
    let (report, stall) = run(text);
    assert!(stall.is_none(), "{}", stall.unwrap());
    report
}

fn ios(disk: &DiskReport) -> u64 {
    disk.directions().iter().map(|(_, io)| io.total_ios).sum()
}

/// A job of random reads for 4 ms on these devices.
fn job(name: &str, files: &str, more: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nfilename = \"{files}\"\nrw = \"randread\"\ndirect = 1\n\
         ioengine = \"io_uring\"\nnorandommap = true\ntime_based = true\nruntime = \"4ms\"\n{more}"
    )
}

const FAST: &str = "[[device]]\ntype = \"nvme\"\nlatency_ns = 10000\n";

#[test]
fn eight_drives_share_the_load_of_one_thread() {
    let names: Vec<String> = (0..8).map(|i| format!("/dev/nvme{i}n1")).collect();
    let text = format!(
        "[device]\ntype = \"nvme\"\ncount = 8\nlatency_ns = 50000\nchannels = 2\n{}",
        job(
            "one",
            &names.join(":"),
            "iodepth = 32\ncpus_allowed = \"0\"\n"
        )
    );
    let report = ran(&text);
    assert_eq!(report.devices.len(), 8);
    let all: u64 = report.devices.iter().map(ios).sum();
    assert_eq!(all, report.jobs[0].read.total_ios);
    let share = |disk: &DiskReport| (ios(disk) * 800).div_ceil(all);
    for disk in &report.devices {
        assert!((95..=105).contains(&share(disk)), "{}", disk.device.name);
        assert!(disk.device.depth_max >= 2);
    }
    // Two channels of 50 us serve 40 K a second: one drive by itself could not.
    assert!(
        report.jobs[0].read.iops > 200_000.0,
        "{}",
        report.jobs[0].read.iops
    );
    assert_eq!(
        (report.device.name.as_str(), report.device.kind),
        ("8 devices", "nvme")
    );
    let text = report.to_string();
    assert!(
        text.contains("device     nvme0n1 to nvme7n1, nvme latency_ns=50000"),
        "{text}"
    );
    assert!(text.contains("\n  nvme7n1    read "), "{text}");
}

/// A slow drive whose queue is full, beside a fast one: neither depends on the other.
#[test]
fn a_full_drive_does_not_delay_another() {
    let slow =
        "[[device]]\ntype = \"nvme\"\nio_queue_depth = 2\nchannels = 1\nlatency_ns = 3000000\n";
    let fast = |file: &str| job("fast", file, "iodepth = 4\ncpus_allowed = \"0\"\n");
    let flood = job(
        "flood",
        "/dev/nvme1n1",
        "iodepth = 64\ncpus_allowed = \"2\"\n",
    );
    for scheduler in ["none", "mq-deadline"] {
        let queue = format!("[queue]\nscheduler = \"{scheduler}\"\n");
        let alone = ran(&format!("{queue}{FAST}{}", fast("/dev/nvme0n1")));
        let beside = ran(&format!(
            "{queue}{FAST}{slow}{}{flood}",
            fast("/dev/nvme0n1")
        ));
        let (before, after) = (&alone.jobs[0].read, &beside.jobs[0].read);
        // Only the CPUs' caches are shared.
        assert!((after.iops / before.iops - 1.0).abs() < 0.01, "{scheduler}");
        assert!(
            after.clat_ns.max < before.clat_ns.max + 2_000,
            "{scheduler}"
        );
        let slow = &beside.devices[1];
        assert_eq!((ios(slow), slow.device.depth_max), (1, 1), "{scheduler}");
    }
}

/// A drive without I/O changes no figure of a run, but for the list of drives.
#[test]
fn an_idle_drive_changes_nothing() {
    for first in [
        FAST.to_owned(),
        format!("{FAST}jitter_percent = 30\n[device.fault]\nbusy = \"1/9\"\nerror = \"1/50\"\n"),
        "[[device]]\ntype = \"scsi_debug\"\nndelay = 20000\nrandom = 1\n".to_owned(),
        "[[device]]\ntype = \"null_blk\"\nirqmode = 2\nhw_queue_depth = 4\n".to_owned(),
    ] {
        let file = match &first {
            text if text.contains("scsi") => "/dev/sda",
            text if text.contains("null") => "/dev/nullb0",
            _ => "/dev/nvme0n1",
        };
        let jobs = job(
            "work",
            file,
            "iodepth = 16\nnumjobs = 4\ncontinue_on_error = \"io\"\ncpus_allowed = \"0-3\"\n",
        );
        let queue = "[queue]\nscheduler = \"mq-deadline\"\n";
        let idle =
            "[[device]]\ntype = \"nvme\"\nname = \"nvme9n1\"\n[device.fault]\nbusy = \"1/2\"\n";
        let alone = ran(&format!("{queue}{first}{jobs}"));
        let mut beside = ran(&format!("{queue}{first}{idle}{jobs}"));
        assert_eq!(ios(&beside.devices[1]), 0);
        let own = beside.devices[0].device.clone();
        assert_eq!(own, alone.device);
        beside.devices.clear();
        beside.device = own;
        assert_eq!(beside.to_json(), alone.to_json(), "{first}");
    }
}

#[test]
fn several_jobs_on_several_devices() {
    let text = format!(
        "[queue]\nscheduler = \"mq-deadline\"\n{FAST}\
         [[device]]\ntype = \"null_blk\"\nirqmode = 2\n[device.queue]\nscheduler = \"none\"\n\
         [[device]]\ntype = \"scsi_debug\"\nndelay = 15000\n{}{}{}",
        job(
            "a",
            "/dev/nvme0n1:/dev/sda",
            "iodepth = 8\nnumjobs = 2\niodepth_batch_submit = 4\n"
        ),
        job(
            "b",
            "/dev/sda:/dev/nullb0",
            "iodepth = 8\nfile_service_type = \"random\"\n"
        ),
        job("c", "/dev/nullb0", "iodepth = 4\n"),
    );
    let report = ran(&text);
    let done: Vec<u64> = report.devices.iter().map(ios).collect();
    let jobs: Vec<u64> = report.jobs.iter().map(|job| job.read.total_ios).collect();
    assert!(
        done.iter().chain(&jobs).all(|&count| count > 50),
        "{done:?} {jobs:?}"
    );
    assert_eq!(done.iter().sum::<u64>(), jobs.iter().sum::<u64>());
    assert!(done[0].abs_diff(jobs[0] / 2) <= 8, "{done:?} {jobs:?}");
    assert_eq!(
        (report.device.kind, report.blksim.scheduler),
        ("several", "several")
    );
    let schedulers: Vec<&str> = report.devices.iter().map(|disk| disk.scheduler).collect();
    assert_eq!(schedulers, ["mq-deadline", "none", "mq-deadline"]);
    // Equal runs, equal bytes.
    assert_eq!(report.to_json(), ran(&text).to_json());
    assert_eq!(report.to_string(), ran(&text).to_string());
}

/// Polled I/O on two drives: the ring looks at both.
#[test]
fn a_polling_thread_finds_what_either_drive_did() {
    let report = ran(&format!(
        "[device]\ntype = \"nvme\"\ncount = 2\npoll_queues = 2\nlatency_ns = 8000\n{}",
        job(
            "p",
            "/dev/nvme0n1:/dev/nvme1n1",
            "hipri = true\niodepth = 8\ncpus_allowed = \"0\"\n"
        )
    ));
    let [a, b] = [ios(&report.devices[0]), ios(&report.devices[1])];
    assert!(a > 500 && a.abs_diff(b) <= 8, "{a} {b}");
    // An IPI wakes the thread; then nothing raises an interrupt.
    assert!(report.cpus.irq < 0.001, "{}", report.cpus.irq);
}

#[test]
fn faults_are_drawn_apart() {
    let report = ran(&format!(
        "[device]\ntype = \"nvme\"\ncount = 2\nlatency_ns = 8000\njitter_percent = 50\n\
         [device.fault]\nerror = \"1/20\"\n{}",
        job(
            "p",
            "/dev/nvme0n1:/dev/nvme1n1",
            "iodepth = 8\ncontinue_on_error = \"io\"\n"
        )
    ));
    let [a, b] = [&report.devices[0].read, &report.devices[1].read];
    assert!(a.errors > 10 && b.errors > 10, "{} {}", a.errors, b.errors);
    assert_ne!(a.clat_ns, b.clat_ns);
}

#[test]
fn a_stall_names_the_devices() {
    let text = format!(
        "{FAST}[[device]]\ntype = \"nvme\"\nlatency_ns = 10000\n[device.fault]\n\
         lost_completion = \"1/40\"\n{}",
        job("p", "/dev/nvme0n1:/dev/nvme1n1", "iodepth = 8\n")
    );
    let (report, stall) = run(&text);
    let stall = stall.expect("a completion is lost");
    assert!(!stall.requests.is_empty());
    for request in &stall.requests {
        assert_eq!(request.disk.as_deref(), Some("nvme1n1"));
    }
    assert_eq!(stall.devices.len(), 1, "{:?}", stall.devices);
    assert!(
        stall.devices[0].starts_with("nvme1n1, "),
        "{:?}",
        stall.devices
    );
    let message = stall.to_string();
    assert!(message.contains("\n  nvme1n1 request "), "{message}");
    assert!(message.contains("\n  nvme1n1 hctx "), "{message}");
    assert!(!message.contains("nvme0n1"), "{message}");
    assert_eq!(report.blksim.outcome, "stalled");
}

/// Trace points name their queue: each disk's requests are its own.
#[test]
fn trace_points_name_the_disk() {
    let text = format!(
        "[device]\ntype = \"null_blk\"\nnr_devices = 2\nirqmode = 2\n{}",
        job("p", "/dev/nullb0:/dev/nullb1", "iodepth = 4\n")
    );
    let (plan, profile) = (plan(&text), profile());
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    simulator.trace();
    assert!(matches!(simulator.run(|_| true), Outcome::Finished));
    let points = simulator.take_trace();
    for disk in 0..2 {
        let count = |action: TraceAction| {
            let of_disk = points
                .iter()
                .filter(|(_, _, _, p)| p.queue == QueueId(disk));
            of_disk.filter(|(_, _, _, p)| p.action == action).count()
        };
        let queued = count(TraceAction::Queue);
        assert!(queued > 50);
        assert_eq!(queued, count(TraceAction::Issue));
        assert_eq!(queued, count(TraceAction::Complete));
    }
}

/// One tag set for two disks: together they have no more requests with the devices than it has
/// tags, and both make progress.
#[test]
fn devices_of_null_blk_share_their_tags() {
    let text = |shared: u8| {
        format!(
            "[device]\ntype = \"null_blk\"\nnr_devices = 2\nirqmode = 2\nhw_queue_depth = 8\n\
             completion_nsec = 50000\nshared_tags = {shared}\n{}{}",
            job("a", "/dev/nullb0", "iodepth = 16\ncpus_allowed = \"0\"\n"),
            job("b", "/dev/nullb1", "iodepth = 16\ncpus_allowed = \"1\"\n"),
        )
    };
    let (own, shared) = (ran(&text(0)), ran(&text(1)));
    let most = |report: &Report| report.devices.iter().map(|d| d.device.depth_max).max();
    assert_eq!((own.device.depth_max, most(&own)), (16, Some(8)));
    assert_eq!(shared.device.depth_max, 8);
    let sets = |report: &Report| -> Vec<u8> { report.devices.iter().map(|d| d.tag_set).collect() };
    assert_eq!((sets(&own), sets(&shared)), (vec![0, 1], vec![0, 0]));
    for disk in &shared.devices {
        assert!(ios(disk) > 50, "{} got {}", disk.device.name, ios(disk));
    }
    assert!(shared.to_string().contains("one tag set for all 2 of them"));
    assert!(!own.to_string().contains("tag set"));
    let mut four = shared.clone();
    four.devices.extend(
        shared
            .devices
            .iter()
            .cloned()
            .map(|disk| DiskReport { tag_set: 1, ..disk }),
    );
    assert!(four.to_string().contains("2 tag sets for 4 of them"));
}

/// hctx_may_queue(): a job that floods a shared tag set does not starve the other, with any
/// scheduler; with separate sets there is no effect.
#[test]
fn a_shared_tag_set_is_shared_fairly() {
    let text = |scheduler: &str, more: &str| {
        format!(
            "[queue]\nscheduler = \"{scheduler}\"\n[device]\ntype = \"null_blk\"\n\
             nr_devices = 2\nirqmode = 2\nhw_queue_depth = 32\ncompletion_nsec = 50000\n\
             poll_queues = 0\nshared_tags = 1\n{}{more}",
            job("meek", "/dev/nullb0", "iodepth = 8\ncpus_allowed = \"0\"\n"),
        )
    };
    let flood = job(
        "flood",
        "/dev/nullb1",
        "iodepth = 64\nnumjobs = 4\ncpus_allowed = \"2-5\"\n",
    );
    for scheduler in ["none", "mq-deadline"] {
        let alone = ran(&text(scheduler, ""));
        let beside = ran(&text(scheduler, &flood));
        let iops = |report: &Report| report.devices[0].read.iops;
        let flood = &beside.devices[1].device;
        // 32 tags, two users: 16 each, and the small one wants 8 of its own. Threads that have read
        // the counter at the same time may each take one more.
        assert!(iops(&beside) > 0.92 * iops(&alone), "{scheduler}");
        assert!(flood.depth_mean > 12.0, "{scheduler}: {}", flood.depth_mean);
        assert!(
            flood.depth_max <= 16 + 4,
            "{scheduler}: {}",
            flood.depth_max
        );
    }
}
