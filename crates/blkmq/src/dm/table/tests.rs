use super::*;

const MP: &str = "0 524288 multipath 2 queue_mode mq 0 1 1 round-robin 0 2 1 8:0 1 8:16 1";

fn parse(line: &str) -> Result<Table, String> {
    Table::parse(line, &DeviceMapper::V6_1, 4)
}

#[test]
fn a_captured_table() {
    let table = parse(MP).unwrap();
    assert_eq!(table.queue_mode, QueueMode::Request);
    assert_eq!(table.first_group, Some(0));
    assert_eq!(table.groups.len(), 1);
    assert_eq!(table.groups[0].selector, SelectorKind::RoundRobin);
    let devices: Vec<&str> = table.paths().map(|path| path.device.as_str()).collect();
    assert_eq!(devices, ["8:0", "8:16"]);
}

#[test]
fn all_there_is() {
    let table = parse(
        "0 8 multipath 6 queue_if_no_path pg_init_retries 50 pg_init_delay_msecs 0 \
         retain_attached_hw_handler 2 rdac 1 2 2 service-time 0 1 2 sda 1 100 \
         historical-service-time 2 0 3 1 0 sdb",
    );
    let table = table.unwrap();
    assert!(table.queue_if_no_path);
    assert!(table.retain_attached_hw_handler);
    assert_eq!(table.pg_init_retries, 50);
    assert_eq!(table.pg_init_delay_msecs, 0);
    assert_eq!(table.hw_handler.as_deref(), Some("rdac"));
    assert_eq!(table.first_group, Some(1));
    assert_eq!(table.groups[0].paths[0].relative_throughput, 100);
    assert_eq!(table.groups[1].base_weight, 0);
    assert_eq!(table.groups[1].threshold_multiplier, 3);
}

/// A printed table is parsed to one that prints the same, and a table that leaves nothing out
/// prints its own words.
#[test]
fn a_table_is_printed_as_it_is_read() {
    let whole = "6 queue_if_no_path pg_init_retries 50 pg_init_delay_msecs 0 \
                 retain_attached_hw_handler 1 alua 3 2 service-time 0 1 2 sda 1 100 \
                 historical-service-time 2 0 3 1 1 sdb 0 io-affinity 0 2 1 sdc 5 sdd a";
    assert_eq!(
        parse(&format!("0 8 multipath {whole}"))
            .unwrap()
            .to_string(),
        whole
    );
    for line in [
        MP,
        "0 8 multipath 0 0 0 0",
        "0 8 multipath 2 queue_mode bio 0 1 1 queue-length 0 2 0 8:0 8:16",
    ] {
        let printed = parse(line).unwrap().to_string();
        let again = parse(&format!("0 8 multipath {printed}")).unwrap();
        assert_eq!(again.to_string(), printed);
    }
    let many = "0 0 1 1 io-affinity 0 2 1 sda ffffffff sdb ff,00000000";
    let line = format!("0 8 multipath {many}");
    let table = Table::parse(&line, &DeviceMapper::V6_1, 40).unwrap();
    assert_eq!(table.to_string(), many);
}

#[test]
fn a_bio_based_target_has_no_handler() {
    let table = parse("0 8 multipath 2 queue_mode bio 1 alua 1 1 round-robin 0 1 0 sda").unwrap();
    assert_eq!(table.queue_mode, QueueMode::Bio);
    assert_eq!(table.hw_handler, None);
}

/// Wrong lines, and how the error begins.
const WRONG: &[(&str, &str)] = &[
    ("", "word 1, START: missing, expected 0"),
    (
        "0 8 linear",
        "word 3, the target: `linear`, expected multipath",
    ),
    (
        "0 8 multipath 9",
        "word 4, number of feature words: `9`, expected a number from 0 to 8",
    ),
    (
        "0 8 multipath 1 no_path",
        "word 5, feature: `no_path`, expected queue_if_no_path, ",
    ),
    (
        "0 8 multipath 2 queue_mode x",
        "word 6, queue_mode: `x`, expected bio, rq or mq",
    ),
    (
        "0 8 multipath 1 pg_init_retries 3",
        "word 6, pg_init_retries: missing, expected a number",
    ),
    (
        "0 8 multipath 2 pg_init_retries 51",
        "word 6, pg_init_retries: `51`, expected a number",
    ),
    (
        "0 8 multipath 0 0 1 2",
        "word 7, first priority group: `2`, expected one of the groups",
    ),
    (
        "0 8 multipath 0 0 0 1",
        "word 7, first priority group: `1`, expected 0",
    ),
    (
        "0 8 multipath 0 0 1 1 first",
        "word 8, selector: `first`, expected round-robin, ",
    ),
    (
        "0 8 multipath 0 0 1 1 round-robin 0 0",
        "word 10, number of paths: `0`, expected",
    ),
    (
        "0 8 multipath 0 0 1 1 round-robin 0 2 1 sda 1 sdb",
        "word 15, path word: missing",
    ),
    (
        "0 8 multipath 0 0 1 1 round-robin 0 1 2 sda 1 2",
        "word 14, after the last argument",
    ),
    (
        "0 8 multipath 0 0 1 1 round-robin 0 1 1 sda x",
        "word 13, repeat_count: `x`, expected",
    ),
    (
        "0 8 multipath 0 0 1 1 service-time 0 1 2 sda 1 101",
        "word 14, relative_throughput: `101`",
    ),
    (
        "0 8 multipath 0 0 1 1 historical-service-time 1 1024",
        "word 10, base_weight: `1024`",
    ),
    (
        "0 8 multipath 0 0 1 1 io-affinity 0 1 1 sda 10",
        "word 13, cpumask: `10`, expected one of 4",
    ),
    (
        "0 8 multipath 0 0 1 1 io-affinity 0 2 1 sda 3 sdb 2",
        "word 15, cpumask: `2`, expected one",
    ),
    (
        "0 8 multipath 0 0 1 1 io-affinity 0 1 1 sda x",
        "word 13, cpumask: `x`, expected a mask",
    ),
    (
        "0 8 multipath 0 0 1 1 round-robin 0 1 0 sda sdb",
        "word 13, after the last argument",
    ),
];

#[test]
fn what_is_wrong_is_named() {
    for (line, expected) in WRONG {
        let error = parse(line).unwrap_err();
        assert!(error.starts_with(expected), "{line}\n{error}");
    }
}

#[test]
fn older_kernels_know_less() {
    let error = Table::parse(MP, &DeviceMapper::V4_6, 4).unwrap_err();
    assert!(
        error.starts_with("word 5, feature: `queue_mode`"),
        "{error}"
    );
    let newer = "0 8 multipath 0 0 1 1 historical-service-time 0 1 0 sda";
    assert!(parse(newer).is_ok());
    let error = Table::parse(newer, &DeviceMapper::V4_20, 4).unwrap_err();
    let known = "expected round-robin, queue-length, service-time";
    assert!(error.ends_with(known), "{error}");
}
