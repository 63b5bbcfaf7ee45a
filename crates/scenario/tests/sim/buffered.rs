//! Reads through the page cache under whole runs: the requests in the queue, and the speed of a
//! stream.

use std::path::Path;

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, Status};
use blkmq::time::{Duration, SimTime};
use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::machine::Simulator;

use crate::runs;

type Traced = (SimTime, CpuId, u32, TracePoint);

const NULL: &str = "type = \"null_blk\"\nirqmode = 2\ncompletion_nsec = 50000\nmax_sectors = 2560";

/// A job of single-threaded reads through the page cache.
fn text(queue: &str, device: &str, job: &str) -> String {
    format!(
        "[machine]\ncpus = 2\n[queue]\n{queue}\n[device]\n{device}\n[[job]]\nname = \"one\"\n\
         ioengine = \"psync\"\ndirect = 0\nio_size = \"2m\"\n{job}\n"
    )
}

/// A run to its end, with its trace.
fn run(text: &str) -> (Simulator, Vec<Traced>) {
    let plan = runs::plan_of(text);
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{text}\n{}", stall.unwrap());
    simulator.settle();
    let trace = simulator.take_trace();
    (simulator, trace)
}

/// Sectors of each trace point of this kind, in order.
fn sectors(all: &[Traced], action: TraceAction) -> Vec<u32> {
    let of_kind = all.iter().filter(|(.., point)| point.action == action);
    of_kind.map(|(.., point)| point.sectors.0).collect()
}

fn starts(all: &[Traced], action: TraceAction) -> Vec<u64> {
    let of_kind = all.iter().filter(|(.., point)| point.action == action);
    of_kind.map(|(.., point)| point.sector.0).collect()
}

/// Each page is requested once, all requests end, and the windows double up to the maximum.
#[test]
fn a_stream_is_read_in_windows_that_grow() {
    for (rules, first) in [("v6.12", [32, 64, 128, 256]), ("v6.1", [32, 64, 128, 256])] {
        let job = "rw = \"read\"\nbs = \"4k\"\nfadvise_hint = 0";
        let (_, all) = run(&text(&format!("rules = \"{rules}\""), NULL, job));
        let queued = sectors(&all, TraceAction::Queue);
        assert_eq!(queued[..4], first, "{rules}");
        assert!(queued[4..].iter().all(|&sectors| sectors == 256), "{rules}");
        // The last window extends over the end of the reads, which is not the end of the device.
        let whole: u32 = queued.iter().sum();
        assert!((4096..4096 + 512).contains(&whole), "{rules}: {whole}");
        let ended: u32 = sectors(&all, TraceAction::Complete).iter().sum();
        assert_eq!(whole, ended, "{rules}");
        let mut from = starts(&all, TraceAction::Queue);
        from.sort_unstable();
        from.dedup();
        assert_eq!(from.len(), queued.len(), "{rules}: a page is read twice");
    }
}

/// POSIX_FADV_SEQUENTIAL doubles the window, read_ahead_kb sets it, and 0 leaves page by page.
#[test]
fn advice_and_read_ahead_kb_set_the_longest_window() {
    for (queue, hint, longest) in [
        ("", "fadvise_hint = 1", 512),
        ("", "fadvise_hint = \"none\"", 256),
        ("read_ahead_kb = 32", "fadvise_hint = 0", 64),
        ("read_ahead_kb = 0", "fadvise_hint = 0", 8),
    ] {
        let job = format!("rw = \"read\"\nbs = \"4k\"\n{hint}");
        let (_, all) = run(&text(queue, NULL, &job));
        let most = sectors(&all, TraceAction::Queue).into_iter().max();
        assert_eq!(most, Some(longest), "{queue} {hint}");
    }
}

/// Random reads read the requested pages only.
#[test]
fn random_reads_are_not_read_ahead() {
    let job = "rw = \"randread\"\nbs = \"8k\"";
    let (simulator, all) = run(&text("", NULL, job));
    let queued = sectors(&all, TraceAction::Queue);
    assert_eq!(queued, vec![16; 256]);
    assert_eq!(simulator.recorder().total_ios, 256);
}

/// Pages in the cache cost no I/O, unless they are dropped first.
#[test]
fn a_second_pass_reads_from_the_cache() {
    let again = |invalidate: &str| {
        let job = format!(
            "rw = \"read\"\nbs = \"16k\"\n[[job]]\nname = \"two\"\nioengine = \"psync\"\n\
             direct = 0\nio_size = \"2m\"\nrw = \"read\"\nbs = \"4k\"\nstonewall = true\n{invalidate}"
        );
        let (_, all) = run(&text("", NULL, &job));
        sectors(&all, TraceAction::Queue).iter().sum::<u32>()
    };
    let (kept, dropped) = (again("invalidate = 0"), again("invalidate = 1"));
    assert!((4096..4096 + 1024).contains(&kept), "{kept}");
    assert!(dropped >= 2 * 4096, "{dropped}");
}

/// 2.6.32 reads a block device page by page. The queue's plug holds the pages of the first window
/// back until the reader waits, and they merge.
#[test]
fn pages_of_2_6_32_merge_in_the_plug_of_the_queue() {
    let job = "rw = \"read\"\nbs = \"4k\"\nfadvise_hint = 0";
    let queue = "rules = \"v2.6.32\"\nscheduler = \"deadline\"";
    let (_, all) = run(&text(queue, NULL, job));
    let queued = sectors(&all, TraceAction::Queue);
    assert!(queued.iter().all(|&sectors| sectors == 8), "{queued:?}");
    let issued = sectors(&all, TraceAction::Issue);
    // The initial window of four pages. Its mark has the next eight read, which the reader does not
    // wait for before their own mark has sixteen more read.
    assert_eq!(issued[..2], [32, 192]);
    assert_eq!(queued.iter().sum::<u32>(), issued.iter().sum::<u32>());
    let unplugs = |action| sectors(&all, action).len();
    assert!(unplugs(TraceAction::Unplug) > 0, "sync_page() unplugs");
    // Only a window that no reader waits for yet can make it wait for the timer of 3 ms.
    assert!(
        unplugs(TraceAction::UnplugTimer) <= 2,
        "{}",
        unplugs(TraceAction::UnplugTimer)
    );
}

/// The last page of a device is as long as the device.
#[test]
fn nothing_is_read_after_the_end_of_the_device() {
    let device = "type = \"scsi_debug\"\ndev_size_mb = 2\nndelay = 100000";
    for rules in ["v6.1", "v6.12"] {
        let job = "rw = \"read\"\nbs = \"4k\"";
        let (_, all) = run(&text(&format!("rules = \"{rules}\""), device, job));
        let whole: u32 = sectors(&all, TraceAction::Queue).iter().sum();
        assert_eq!(whole, 4096, "{rules}");
    }
}

/// A page whose read failed is read once more by itself, and then the read fails.
#[test]
fn a_read_fails_with_its_page() {
    let job = "rw = \"read\"\nbs = \"4k\"\n[device.fault]\nerror = \"1/1\"";
    let (simulator, all) = run(&text("", NULL, job));
    let queued = sectors(&all, TraceAction::Queue);
    // The window, and the page by itself.
    assert_eq!(queued, [32, 8]);
    let job = &simulator.recorder().jobs[0];
    assert_eq!((job.failed_threads, job.error), (1, Status::IoError));
}

/// On the disk of 2009 a reader with no more than its windows in flight streams.
#[test]
fn a_sequential_reader_streams_from_the_disk() {
    for queue in [
        "rules = \"v6.12\"\nscheduler = \"mq-deadline\"",
        "rules = \"v2.6.32\"\nscheduler = \"cfq\"",
        "rules = \"v2.6.32\"\nscheduler = \"deadline\"",
    ] {
        let text = format!(
            "[machine]\nprofile = \"quadcore\"\n[queue]\n{queue}\n[device]\ndrive = \"sata2009\"\n\
             [[job]]\nname = \"one\"\nrw = \"read\"\nbs = \"64k\"\nioengine = \"psync\"\n\
             direct = 0\noffset = \"225g\"\nsize = \"1g\"\ntime_based = true\nruntime = \"1s\"\n"
        );
        let bytes = bytes_of(&text);
        assert!(
            (85_000_000..95_000_000).contains(&bytes),
            "{queue}: {bytes}"
        );
    }
}

/// Bytes that a run on the machine of the disk reads.
fn bytes_of(text: &str) -> u64 {
    let profile = profile::built_in("quadcore").unwrap();
    let info = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap();
    let plan = scenario.plan(&[info]).unwrap();
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    simulator.settle();
    let jobs = simulator.recorder().jobs.iter();
    jobs.map(|job| job.directions[0].bytes).sum()
}

/// Readers of one device share its pages, and the same run gives the same trace.
#[test]
fn readers_of_one_device_share_its_pages() {
    let job = "rw = \"read\"\nbs = \"4k\"\nnumjobs = 3\nfadvise_hint = 0\ninvalidate = 0";
    for queue in ["", "rules = \"v2.6.32\"\nscheduler = \"cfq\""] {
        let (simulator, all) = run(&text(queue, NULL, job));
        let whole: u32 = sectors(&all, TraceAction::Queue).iter().sum();
        assert!((4096..4096 + 3 * 512).contains(&whole), "{queue}: {whole}");
        assert_eq!(simulator.recorder().total_ios, 3 * 512);
        let (_, again) = run(&text(queue, NULL, job));
        assert_eq!(format!("{all:?}"), format!("{again:?}"));
        assert!(simulator.now() > SimTime::ZERO + Duration::from_micros(50));
    }
}
