//! Options of random draws of places and times, from fio's words to the plan.

use super::*;
use sim::plan::{
    Decimal, Distribution, PerDirection, RateProcess, Sequencer, Shape, SizeShare, ThinktimeBlocks,
};

/// The plan of one job on a device of 8 MiB.
fn job(options: &str) -> Plan {
    let text = format!("[j]\nfilename=/dev/sda\ndirect=1\n{options}\n");
    let scenario = fio(&text).unwrap();
    scenario.plan(PROFILES).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn sizes_with_shares() {
    let p = job("rw=randrw\nbssplit=4k/30:8k/70,512/100");
    let t = &p.threads[0];
    let share = |sectors, percent| SizeShare { sectors, percent };
    assert_eq!(t.splits.read, [share(8, 30), share(16, 70)]);
    assert_eq!(t.splits.write, [share(1, 100)]);
    assert_eq!(
        (t.block.read.min_sectors, t.block.read.max_sectors),
        (8, 16)
    );
    assert_eq!(t.block.write.max_sectors, 1);
    // As a bio is cut up by the largest.
    assert_eq!(job("bssplit=4k/99:2m/1").disks[0].capacity.bios, 3);
}

/// A size given later replaces a split, as --set would otherwise do nothing.
#[test]
fn a_size_of_the_command_line_replaces_a_split() {
    let scenario = fio("[j]\nfilename=/dev/sda\ndirect=1\nbssplit=4k/50:8k/50\n").unwrap();
    let set = scenario.clone().set("job.bs=16k").unwrap();
    let p = set.plan(PROFILES).unwrap();
    assert_eq!(p.threads[0].splits.read, []);
    assert_eq!(p.threads[0].block.read.max_sectors, 32);
    let set = scenario.set("job.bssplit=512/100").unwrap();
    let p = set.plan(PROFILES).unwrap();
    assert_eq!(p.threads[0].block.read.max_sectors, 1);
    let rates = fio("[j]\nfilename=/dev/sda\ndirect=1\nrate=1m\n").unwrap();
    let p = rates
        .set("job.rate_iops=10")
        .unwrap()
        .plan(PROFILES)
        .unwrap();
    assert_eq!(p.threads[0].rate_bytes.read, 40960);
}

#[test]
fn distributions_keep_no_map() {
    let order = |options: &str| job(options).threads[0].order;
    assert_eq!(order("rw=randread"), Order::RandomOnce);
    assert_eq!(
        order("rw=randread\nrandom_distribution=random"),
        Order::RandomOnce
    );
    assert_eq!(
        order("rw=randread\nrandom_distribution=zipf:1.2"),
        Order::Random
    );
    let zipf = job("rw=randread\nrandom_distribution=zipf:1.2:0.5");
    let Distribution::Skewed(skew) = &zipf.threads[0].distribution else {
        panic!("{:?}", zipf.threads[0]);
    };
    assert_eq!(skew.shape, Shape::Zipf(Decimal::hundredths(120)));
    assert_eq!(skew.center, Some(Decimal::hundredths(50)));
    // A sequential job draws nothing, which is noted.
    let p = job("rw=read\nrandom_distribution=zipf:1.2");
    assert_eq!(p.threads[0].distribution, Distribution::Uniform);
    assert_eq!(
        p.ignored,
        ["j.fio:5: random_distribution: positions are sequential"]
    );
    assert!(matches!(
        job("rw=randread\nrandom_distribution=zoned_abs:60/4m:40/4m").threads[0].distribution,
        Distribution::Zoned(_)
    ));
}

#[test]
fn modifiers_of_rw() {
    let p = job("rw=randrw:8\nrw_sequencer=identical\npercentage_random=50,20");
    let t = &p.threads[0];
    assert_eq!((t.new_every, t.sequencer), (8, Sequencer::Identical));
    let percents = PerDirection {
        read: 50,
        write: 20,
        trim: 20,
    };
    assert_eq!(t.random_percent, percents);
    assert_eq!(job("rw=read:-8k").threads[0].gap_sectors, -16);
}

#[test]
fn rates_are_bytes() {
    let rate = |options: &str| job(options).threads[0].rate_bytes;
    let p = rate("rw=randrw\nrate=1m,2m");
    assert_eq!((p.read, p.write), (1 << 20, 2 << 20));
    // I/Os of the smallest size.
    let p = rate("rw=randrw\nrate_iops=10,20\nbssplit=4k/50:8k/50");
    assert_eq!((p.read, p.write), (40960, 81920));
    let process = |options: &str| job(options).threads[0].rate_process;
    assert_eq!(
        process("rate=1m\nrate_process=poisson"),
        RateProcess::Poisson
    );
    let counts = |options: &str| job(options).threads[0].thinktime_counts;
    let issue = "thinktime=1\nthinktime_blocks_type=issue";
    assert_eq!(counts(issue), ThinktimeBlocks::Issue);
}

#[test]
fn regions_of_clones_and_their_ends() {
    let regions = |options: &str| {
        let threads = job(options).threads;
        let region =
            |t: &sim::plan::ThreadPlan| (t.files[0].first_sector, t.files[0].region_sectors);
        threads.iter().map(region).collect::<Vec<_>>()
    };
    let got = regions("numjobs=3\noffset=1m\noffset_increment=2m\nsize=1m");
    assert_eq!(got, [(2048, 2048), (6144, 2048), (10240, 2048)]);
    // Without a size each has the rest.
    assert_eq!(
        regions("numjobs=2\noffset_increment=50%"),
        [(0, 16384), (8192, 8192)]
    );
    // A percentage is rounded up to blocks.
    assert_eq!(regions("bs=4k\noffset=33%")[0].0, 5408);
    assert_eq!(regions("filesize=2m\noffset=1m"), [(2048, 2048)]);
    let bytes = |options: &str| job(options).threads[0].io_bytes;
    assert_eq!(bytes("size=4m\nio_size=1m"), 1 << 20);
    assert_eq!(bytes("size=1m\nio_size=4m"), 4 << 20);
    assert_eq!(bytes("size=4m\nio_size=50%"), 2 << 20);
    assert_eq!(bytes("filesize=4m\nsize=1m"), 1 << 20);
    assert_eq!(bytes("io_size=1m\ntime_based\nruntime=1"), u64::MAX);
}

#[test]
fn nrfiles_takes_the_first_devices() {
    let text = "[j]\nfilename=/dev/nullb0:/dev/nullb1\ndirect=1\nnrfiles=1\n";
    let p = fio(text).unwrap().plan(PROFILES).unwrap();
    assert_eq!((p.disks.len(), p.threads[0].files.len()), (1, 1));
}

#[test]
fn options_are_kept_as_they_were_written() {
    let p = job("rw=randrw:2\ntime_based\nruntime=1\nbssplit=4k/50:8k/50");
    let option = |name: &str| {
        let mut options = p.job_options[0].iter();
        options.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    };
    assert_eq!(option("rw"), Some("randrw:2"));
    assert_eq!(option("bssplit"), Some("4k/50:8k/50"));
    assert_eq!(option("time_based"), Some("1"));
    assert_eq!(option("name"), None);
}
