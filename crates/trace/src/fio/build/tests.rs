use super::{FileService, file_service};
use crate::fio::{
    Decimal, Extent, FioEngine, FioJob, JobFile, PerDirection, RateProcess, Reading, Sequencer,
    Shape, Skew, ThinktimeBlocks, parse_arguments, parse_command_line,
};

/// The only job of `--name=j` and these options.
fn job(options: &str) -> FioJob {
    let line = format!("--name=j {options}");
    let words: Vec<&str> = line.split_whitespace().collect();
    parse_command_line(&words).unwrap().jobs.remove(0)
}

#[test]
fn names_add_up() {
    let all = job("--filename=/dev/a:/dev/b --filename=/dev/c").filenames;
    assert_eq!(all, ["/dev/a", "/dev/b", "/dev/c"]);
    let words = ["--filename=/dev/a", "--name=j", "--filename=/dev/b"];
    let mut jobs = parse_command_line(&words).unwrap().jobs;
    assert_eq!(jobs.remove(0).filenames, ["/dev/a", "/dev/b"]);
}

#[test]
fn ways_to_turn_to_the_next_file() {
    assert_eq!(job("").file_service, FileService::RoundRobin(1));
    let option = "--file_service_type=roundrobin:4";
    assert_eq!(job(option).file_service, FileService::RoundRobin(4));
    let good = |text: &str| file_service(text).unwrap();
    assert_eq!(good("roundrobin"), FileService::RoundRobin(1));
    assert_eq!(good("random"), FileService::Random(1));
    assert_eq!(good("random:64"), FileService::Random(64));
    assert_eq!(good("sequential"), FileService::Sequential);
    let normal = Skew {
        shape: Shape::Normal(Decimal::hundredths(1000)),
        center: None,
    };
    assert_eq!(good("gauss:10"), FileService::Skewed(normal));
    for (text, want) in [
        ("zipf:1.0", "fio's zipf has no theta of exactly 1"),
        ("pareto:x", "`x` is no number"),
        ("random:0", "the number of I/Os after `:` is at least 1"),
        ("random:5000000000", "the number of I/Os"),
        ("random:x", "`x` is not"),
        ("sequential:2", "expected roundrobin, random"),
        ("", "expected roundrobin, random"),
    ] {
        let got = file_service(text).unwrap_err();
        assert!(got.starts_with(want), "{text}: {got}");
    }
}

#[test]
fn it_is_idle_with_one_file() {
    let words = [
        "--name=j",
        "--filename=/dev/a",
        "--file_service_type=random",
    ];
    let ignored = parse_command_line(&words).unwrap().ignored;
    assert!(
        ignored
            .iter()
            .any(|note| note.option == "file_service_type")
    );
}

/// Options that have no effect with these.
fn idle(options: &str) -> Vec<(String, String)> {
    let line = format!("--name=j {options}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let ignored = parse_command_line(&words).unwrap().ignored;
    ignored.into_iter().map(|n| (n.option, n.why)).collect()
}

#[test]
fn rw_and_what_stands_after_its_colon() {
    let modifiers = |options: &str| {
        let job = job(options);
        (job.rw.random, job.rw_every, job.rw_gap)
    };
    assert_eq!(modifiers("--rw=randrw:2"), (true, 2, 0));
    assert_eq!(modifiers("--rw=read:4k"), (false, 1, 4096));
    assert_eq!(modifiers("--rw=write:-8k"), (false, 1, -8192));
    assert_eq!(modifiers("--rw=read:4kib"), (false, 1, 4000));
    // The last rw counts, with all of it.
    assert_eq!(modifiers("--rw=randread:8 --rw=randread"), (true, 1, 0));
    let sequencer = "--rw=randread:4 --rw_sequencer=identical";
    assert_eq!(job(sequencer).rw_sequencer, Sequencer::Identical);
    let why = "rw names no number of I/Os from one random position to the next";
    let ignored = idle("--rw=randread --rw_sequencer=identical");
    assert_eq!(ignored, [("rw_sequencer".to_string(), why.to_string())]);
}

#[test]
fn options_of_random_positions_need_some() {
    let ignored = idle("--rw=read --random_distribution=zipf:1.2 --percentage_random=50");
    let names: Vec<&str> = ignored.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["random_distribution", "percentage_random"]);
    assert!(
        ignored
            .iter()
            .all(|(_, why)| why == "positions are sequential")
    );
    let percents = job("--rw=randrw --percentage_random=50,20").percentage_random;
    assert_eq!((percents.read, percents.write, percents.trim), (50, 20, 20));
}

#[test]
fn rates_by_bytes_and_their_process() {
    let rated = job("--rate=1m,500k --rate_process=poisson");
    let want = PerDirection {
        read: 1 << 20,
        write: 500 << 10,
        trim: 500 << 10,
    };
    assert_eq!(rated.rate, want);
    assert_eq!(rated.rate_process, RateProcess::Poisson);
    assert_eq!(job("").rate_process, RateProcess::Linear);
    let ignored = idle("--rate_process=poisson");
    assert_eq!(ignored[0].1, "there is no rate");
}

#[test]
fn thinktime_counts_what_completed_or_was_issued() {
    let with = |options: &str| job(&format!("--thinktime=1 {options}")).thinktime_blocks_type;
    assert_eq!(with(""), ThinktimeBlocks::Complete);
    let issue = with("--thinktime_blocks_type=issue");
    assert_eq!(issue, ThinktimeBlocks::Issue);
    let ignored = idle("--thinktime_blocks_type=issue --thinktime_blocks=4");
    assert!(
        ignored
            .iter()
            .all(|(_, why)| why == "there is no thinktime")
    );
    assert_eq!(ignored.len(), 2);
}

#[test]
fn how_much_and_where() {
    let sized = job("--io_size=2m --offset_increment=10% --numjobs=2 --filesize=1g");
    assert_eq!(sized.io_size, Some(Extent::Bytes(2 << 20)));
    assert_eq!(sized.offset_increment, Extent::Percent(10));
    assert_eq!(sized.filesize, Some(1 << 30));
    assert_eq!(job("--io_limit=50%").io_size, Some(Extent::Percent(50)));
    let ignored = idle("--io_size=1m --time_based --runtime=1 --offset_increment=1m");
    let names: Vec<&str> = ignored.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["io_size", "offset_increment"]);
}

/// nrfiles takes the first names; more than there are change nothing.
#[test]
fn some_of_the_devices() {
    let names =
        |options: &str| job(&format!("--filename=/dev/a:/dev/b:/dev/c {options}")).filenames;
    assert_eq!(names("--nrfiles=2"), ["/dev/a", "/dev/b"]);
    assert_eq!(names("--nrfiles=4").len(), 3);
    assert_eq!(idle("--filename=/dev/a --nrfiles=4")[0].0, "nrfiles");
    assert_eq!(idle("--filename=/dev/a:/dev/b:/dev/c --nrfiles=2"), []);
}

/// The jobs without what is not modelled.
fn without(line: &str) -> crate::Result<JobFile> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let reading = Reading {
        ignore_unmodelled: true,
        ..Reading::plain()
    };
    parse_arguments(&words, &reading)
}

#[test]
fn all_problems_are_reported_in_their_order() {
    let line =
        "--nowait=1 --name=a --bs=4x --atomic=1 --rate=1m --rate_iops=9 --name=b --iodepth=x";
    let words: Vec<&str> = line.split_whitespace().collect();
    let error = parse_command_line(&words).unwrap_err();
    let crate::Error::Jobs(problems) = &error else {
        panic!("{error}")
    };
    let seen: Vec<_> = problems
        .list
        .iter()
        .map(|of| (of.line, of.unmodelled))
        .collect();
    // A contradiction of options with right values is found beside wrong ones.
    let want = [(1, true), (3, false), (4, true), (6, false), (8, false)];
    assert_eq!(seen, want);
    assert_eq!(error.to_string().lines().count(), 5);
}

#[test]
fn a_job_runs_without_what_is_not_modelled() {
    let line = "--name=a --nowait=1 --direct=0 --rw=write --nrfiles=8 --bs=8k --name=b \
                --ioengine=rbd --pool=x --iodepth=8 --name=c --ioengine=cpuio --cpuload=9";
    let all = without(line).unwrap();
    assert_eq!(all.jobs.len(), 2);
    let (a, b) = (&all.jobs[0], &all.jobs[1]);
    assert!(a.direct && a.nrfiles.is_none() && a.setting("nowait").is_none());
    assert_eq!(a.setting("direct").unwrap().value.as_deref(), Some("1"));
    assert_eq!((b.ioengine, b.iodepth), (FioEngine::Libaio, 8));
    assert_eq!(
        b.setting("ioengine").unwrap().value.as_deref(),
        Some("libaio")
    );
    let seen: Vec<_> = all.left_out.iter().map(|of| of.line).collect();
    let want = [2, 3, 5, 8, 9, 12, 13];
    assert_eq!(seen, want);
    assert!(
        all.left_out[1].why.ends_with("; run with direct=1"),
        "{:?}",
        all.left_out
    );
    assert!(
        all.left_out[3].why.ends_with("; run with ioengine=libaio"),
        "{:?}",
        all.left_out
    );
    // What is wrong stays wrong.
    let error = without("--name=a --nowait=1 --bs=4x")
        .unwrap_err()
        .to_string();
    assert_eq!(error.lines().count(), 1);
    let error = without("--name=a --ioengine=exec --program=ls")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "command line: none of its jobs reads or writes a device"
    );
}

#[test]
fn the_last_setting_of_an_option_counts() {
    let line = "--name=a --nowait=1 --nowait=0 --ioengine=rbd --ioengine=libaio";
    let words: Vec<&str> = line.split_whitespace().collect();
    let all = parse_command_line(&words).unwrap();
    assert_eq!(all.jobs[0].ioengine, FioEngine::Libaio);
}

#[test]
fn some_engines_run_as_another() {
    assert_eq!(job("--ioengine=pvsync").ioengine, FioEngine::Psync);
    let notes = idle("--ioengine=pvsync2 --iodepth=8 --hipri");
    let names: Vec<&str> = notes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ioengine", "iodepth", "hipri"]);
    assert!(notes[0].1.starts_with("run as psync: preadv2"), "{notes:?}");
    let words = ["--name=j", "--ioengine=pvsync", "--hipri"];
    let error = parse_command_line(&words).unwrap_err().to_string();
    assert!(
        error.contains("3: hipri: not modelled: polling with another engine"),
        "{error}"
    );
}
