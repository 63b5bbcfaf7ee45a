use super::{FileService, file_service};
use crate::fio::{FioJob, parse_command_line};

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
    for (text, want) in [
        ("zipf:1.2", "only uniform choices are modelled"),
        ("random:0", "the number of I/Os behind `:` is at least 1"),
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
