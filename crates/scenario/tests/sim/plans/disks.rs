//! Devices of a scenario: names, tag sets, files of jobs.

use std::path::Path;

use blkmq::elevator::SchedulerKind;

use scenario::{ProfileFacts, Scenario, ScenarioError};
use sim::plan::{DeviceKind, FileService, Plan};

const PROFILES: &[ProfileFacts<'_>] = &[ProfileFacts {
    name: "ryzen-7950x",
    cpus: 32,
}];

fn plan(text: &str) -> Result<Plan, ScenarioError> {
    Scenario::from_toml(Path::new("s.toml"), text)?.plan(PROFILES)
}

fn fio(text: &str) -> Result<Plan, ScenarioError> {
    Scenario::from_fio(Path::new("j.fio"), text)?.plan(PROFILES)
}

fn names(plan: &Plan) -> Vec<&str> {
    let disks = plan.disks.iter();
    disks.map(|disk| disk.device.name.as_str()).collect()
}

fn sets(plan: &Plan) -> Vec<u16> {
    plan.disks.iter().map(|disk| disk.set.0).collect()
}

fn files(plan: &Plan, thread: usize) -> Vec<u16> {
    let files = plan.threads[thread].files.iter();
    files.map(|file| file.disk.0).collect()
}

#[test]
fn letters_go_on_after_z() {
    let p =
        plan("[device]\ntype = \"scsi_debug\"\nadd_host = 60\n[[job]]\nfilename = \"/dev/sda\"\n")
            .unwrap();
    let all = [0, 25, 26, 51, 52].map(|disk| names(&p)[disk]);
    assert_eq!(all, ["sda", "sdz", "sdaa", "sdaz", "sdba"]);
}

#[test]
fn one_table_makes_several_alike() {
    let p = plan(
        "[device]\ntype = \"nvme\"\ncount = 3\nlatency_ns = 9000\n\
         [[job]]\nfilename = \"/dev/nvme2n1:/dev/nvme0n1\"\ndirect = 1\nnumjobs = 2\n\
         [[job]]\nfilename = \"/dev/nvme1n1\"\ndirect = 1\n\
         file_service_type = \"random:4\"\n",
    )
    .unwrap();
    assert_eq!(names(&p), ["nvme0n1", "nvme1n1", "nvme2n1"]);
    assert_eq!(sets(&p), [0, 1, 2]);
    assert_eq!(
        (files(&p, 0), files(&p, 1), files(&p, 2)),
        (vec![2, 0], vec![2, 0], vec![1])
    );
    for disk in &p.disks {
        let DeviceKind::Nvme(drive) = disk.device.kind else {
            panic!("{disk:?}")
        };
        assert_eq!(drive.latency.read.0, 9000);
    }
    // Each has room for the threads that work on it.
    let waiters = p.disks.iter().map(|disk| disk.capacity.waiters);
    assert_eq!(waiters.collect::<Vec<_>>(), [2, 1, 2]);
    assert_eq!(p.threads[2].file_service, FileService::Random(4));
    // All I/Os of a thread: the sum of its devices.
    assert_eq!(p.threads[0].io_bytes, 2 * p.threads[2].io_bytes);
}

#[test]
fn one_tag_set_for_all_devices_of_null_blk() {
    let text = |more: &str| {
        format!(
            "[device]\ntype = \"null_blk\"\nnr_devices = 3\n{more}\
             [[job]]\nfilename = \"/dev/nullb1\"\ndirect = 1\n"
        )
    };
    let p = plan(&text("")).unwrap();
    assert_eq!(
        (names(&p), sets(&p)),
        (vec!["nullb0", "nullb1", "nullb2"], vec![0, 1, 2])
    );
    let p = plan(&text("shared_tags = true\n")).unwrap();
    assert_eq!(sets(&p), [0, 0, 0]);
    // The module has one, also for those of a second table.
    let tables = |second: &str| {
        plan(&format!(
            "[[device]]\ntype = \"null_blk\"\nnr_devices = 2\nshared_tags = 1\n\
             [[device]]\ntype = \"null_blk\"\n{second}\
             [[device]]\ntype = \"null_blk\"\nshared_tags = 1\n\
             [[job]]\nfilename = \"/dev/nullb3\"\ndirect = 1\n"
        ))
    };
    let p = tables("shared_tags = 1\n").unwrap();
    assert_eq!((sets(&p), files(&p, 0)), (vec![0, 0, 0, 0], vec![3]));
    for (second, wanted) in [
        (
            "shared_tags = 1\nhw_queue_depth = 32\n",
            "device.1.hw_queue_depth: 32, but 64 in device.0: shared_tags makes one tag set of both",
        ),
        (
            "",
            "device.2.shared_tags: tables with shared_tags have one tag set: they must be adjacent",
        ),
    ] {
        let error = tables(second).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn tables_have_types_names_and_queues_of_their_own() {
    let p = plan(
        "[queue]\nscheduler = \"mq-deadline\"\nfifo_batch = 4\nnomerges = 2\n\
         [[device]]\ntype = \"null_blk\"\n\
         [device.queue]\nscheduler = \"none\"\n\
         [[device]]\ntype = \"nvme\"\nname = \"nvme7n1\"\n\
         [device.queue]\nfifo_batch = 1\n\
         [[device]]\ntype = \"null_blk\"\n\
         [[job]]\nfilename = \"/dev/nullb1:/dev/nvme7n1\"\ndirect = 1\n",
    )
    .unwrap();
    assert_eq!(names(&p), ["nullb0", "nvme7n1", "nullb1"]);
    assert_eq!(files(&p, 0), [2, 1]);
    let schedulers: Vec<SchedulerKind> = p.disks.iter().map(|d| d.queue.scheduler.kind()).collect();
    let deadline = SchedulerKind::MqDeadline;
    assert_eq!(schedulers, [SchedulerKind::None, deadline, deadline]);
    let batch = |disk: usize| p.disks[disk].queue.scheduler.show("fifo_batch");
    assert_eq!((batch(1), batch(2)), (Some(1), Some(4)));
    let nomerges = p.disks.iter().map(|disk| disk.queue.nomerges);
    assert!(nomerges.eq([blkmq::rules::NoMerges::Never; 3]));
}

#[test]
fn set_changes_every_device() {
    let text = "[[device]]\ntype = \"nvme\"\n[[device]]\ntype = \"nvme\"\nlatency_ns = 5\n\
                [[job]]\nfilename = \"/dev/nvme0n1:/dev/nvme1n1\"\ndirect = 1\n";
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap();
    let changed = scenario.clone().set("device.latency_ns=7000").unwrap();
    let p = changed.plan(PROFILES).unwrap();
    for disk in &p.disks {
        assert!(matches!(disk.device.kind, DeviceKind::Nvme(n) if n.latency.read.0 == 7000));
    }
    let error = scenario
        .clone()
        .set("device.irqmode=1")
        .unwrap()
        .plan(PROFILES);
    assert_eq!(
        error.unwrap_err().to_string().split(';').next().unwrap(),
        "--set device.irqmode=1: device.0.irqmode: nvme has no such parameter"
    );
    let error = scenario.clone().set("device=3").unwrap_err().to_string();
    assert_eq!(error, "--set device=3: write device.PARAMETER=VALUE");
    let one = scenario.set_device("nvme,count=2").unwrap();
    assert_eq!(names(&one.plan(PROFILES).unwrap()), ["nvme0n1", "nvme1n1"]);
}

#[test]
fn a_job_file_names_its_devices() {
    let lines: String = (0..8)
        .map(|i| format!("filename=/dev/nvme{i}n1\n"))
        .collect();
    let p = fio(&format!("[global]\ndirect=1\n[eight]\n{lines}")).unwrap();
    assert_eq!(p.disks.len(), 8);
    assert_eq!(files(&p, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    let p = fio("[a]\ndirect=1\nfilename=/dev/nullb3\n[b]\ndirect=1\nfilename=/dev/sdb\n").unwrap();
    assert_eq!(names(&p), ["nullb3", "sdb"]);
    assert_eq!((files(&p, 0), files(&p, 1)), (vec![0], vec![1]));
    // The type is given and the names fit, or mean it.
    let message = |device: &str| {
        let text = "[a]\ndirect=1\nfilename=/dev/nvme4n1:/dev/nvme1n1\n";
        let scenario = Scenario::from_fio(Path::new("j.fio"), text).unwrap();
        scenario.set_device(device).unwrap().plan(PROFILES)
    };
    let p = message("nvme,latency_ns=1000").unwrap();
    assert_eq!(
        (names(&p), p.ignored.len()),
        (vec!["nvme4n1", "nvme1n1"], 0)
    );
    let p = message("null_blk").unwrap();
    assert_eq!(
        (names(&p), files(&p, 0)),
        (vec!["nullb0", "nullb1"], vec![0, 1])
    );
    assert_eq!(
        p.ignored,
        [
            "j.fio:3: filename: /dev/nvme4n1 means nullb0",
            "j.fio:3: filename: /dev/nvme1n1 means nullb1"
        ]
    );
}

#[test]
fn a_size_is_shared_by_the_files() {
    let text =
        |size: &str| format!("[a]\ndirect=1\nfilename=/dev/nullb0:/dev/nullb1\nbs=4k\n{size}");
    let p = fio(&text("size=1m\n")).unwrap();
    let regions = p.threads[0].files.iter().map(|file| file.region_sectors);
    assert_eq!(regions.collect::<Vec<_>>(), [1024, 1024]);
    assert_eq!(p.threads[0].io_bytes, 1 << 20);
    let p = fio(&text("size=50%\noffset=1m\n")).unwrap();
    for file in &p.threads[0].files {
        assert_eq!((file.first_sector, file.region_sectors), (2048, 125 << 21));
    }
}
