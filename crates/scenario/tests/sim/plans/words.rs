//! Keys of `[mapped]` that write words into its table.

use scenario::{Scenario, ScenarioError};

use super::{JOB, scenario};

const TABLE: &str = "0 800 multipath 2 queue_if_no_path retain_attached_hw_handler 0 2 1 \
                     service-time 0 1 2 sda 1 1 round-robin 0 2 1 sdb 7 sdc 7";

fn read(table: &str, keys: &str) -> Result<Scenario, ScenarioError> {
    scenario(&format!("[mapped]\ntable = \"{table}\"\n{keys}\n{JOB}"))
}

fn written(table: &str, keys: &str) -> Result<String, String> {
    let scenario = read(table, keys).map_err(|error| error.to_string())?;
    Ok(scenario.mapped[0].table.clone())
}

#[test]
fn without_keys_a_table_stays_what_it_is() {
    assert_eq!(written(TABLE, "").unwrap(), TABLE);
    let folders = TABLE.replace("sda", "/dev/sda").replace("sdc", "/dev/sdc");
    assert_eq!(written(&folders, "").unwrap(), TABLE);
    let other = "0 800 linear sda 0";
    assert_eq!(written(other, "rr_min_io_rq = 3").unwrap(), other);
}

#[test]
fn keys_are_written_into_the_table() {
    let rest = "2 1 service-time 0 1 2 sda 1 1 round-robin 0 2 1 sdb 7 sdc 7";
    let cases = [
        ("features = \"0\"", format!("0 0 {rest}")),
        ("features = 0\nhw_handler = 0", format!("0 0 {rest}")),
        (
            "features = \"2 pg_init_retries 5\"\nno_path_retry = \"queue\"",
            format!("3 queue_if_no_path pg_init_retries 5 0 {rest}"),
        ),
        (
            "no_path_retry = \"fail\"\nhw_handler = \"1 alua\"",
            format!("1 retain_attached_hw_handler 1 alua {rest}"),
        ),
        (
            "no_path_retry = 0",
            format!("1 retain_attached_hw_handler 0 {rest}"),
        ),
        (
            "no_path_retry = 3",
            format!("2 queue_if_no_path retain_attached_hw_handler 0 {rest}"),
        ),
        (
            "path_selector = \"queue-length 0\"\nrr_min_io_rq = 4",
            "2 queue_if_no_path retain_attached_hw_handler 0 2 1 queue-length 0 1 1 sda 4 \
             queue-length 0 2 1 sdb 4 sdc 4"
                .to_owned(),
        ),
    ];
    for (keys, expected) in cases {
        let table = written(TABLE, keys).unwrap();
        assert_eq!(table, format!("0 800 multipath {expected}"), "{keys}");
    }
}
