//! Drives by name and from files.

use std::path::Path;

use scenario::{Scenario, ScenarioError};

fn scenario(text: &str) -> Result<Scenario, ScenarioError> {
    let job = "[[job]]\nrw = \"randread\"\nnumber_ios = 1\n";
    Scenario::from_toml(Path::new("s.toml"), &format!("{text}{job}"))
}

#[test]
fn a_table_has_the_keys_of_its_drive_and_its_own_before_them() {
    let text = "[device]\ndrive = \"samsung-980-pro\"\nchannels = 9\n";
    let read = scenario(text).expect("right");
    let device = &read.device[0];
    assert_eq!(device.kind.as_deref(), Some("nvme"));
    assert_eq!(
        (device.number("channels"), device.number("dies")),
        (Some(9), Some(64))
    );
    // Another drive replaces all keys of the first one.
    let changed = read.set("device.drive=fast-512").expect("right");
    assert_eq!(changed.device[0].number("dies"), None);
    assert_eq!(changed.device[0].number("latency_ns"), Some(5000));
    assert_eq!(changed.device[0].number("channels"), Some(9));
}

#[test]
fn set_drive_takes_the_old_drive_out_and_leaves_the_rest() {
    let text = "[[device]]\ntype = \"nvme\"\nlatency_ns = 1\ncount = 2\n\
                [device.queue]\nnomerges = 2\n[[device]]\ntype = \"null_blk\"\nirqmode = 2\n";
    let read = scenario(text).expect("right");
    let changed = read.set_drive("slow-66k", None).expect("right");
    let [first, second] = changed.device.as_slice() else {
        panic!("{:?}", changed.device);
    };
    assert_eq!(
        (first.number("latency_ns"), first.number("count")),
        (Some(106_000), Some(2))
    );
    assert_eq!(first.queue.nomerges, Some(2));
    assert_eq!(second.kind.as_deref(), Some("nvme"));
    assert_eq!(
        (second.number("channels"), second.number("irqmode")),
        (Some(7), None)
    );
}

#[test]
fn a_drive_of_a_file_is_one_as_well() {
    let text = "type = \"nvme\"\nlatency_ns = 77\n";
    let file = Path::new("d/mine.toml");
    let read = scenario("").expect("right");
    let changed = read.set_drive("d/mine.toml", Some((file, text)));
    assert_eq!(
        changed.expect("right").device[0].number("latency_ns"),
        Some(77)
    );
}
