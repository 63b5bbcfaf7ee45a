//! Values that are accepted but changed, or set for an absent scheduler: a note reports them.

use crate::captures::json;
use crate::place::Place;

/// One job in a group that has a weight.
const GROUP: &str = "\
[queue]
scheduler = \"bfq\"
[device]
type = \"null_blk\"
[group.a]
\"io.bfq.weight\" = 300
[[job]]
rw = \"randread\"
direct = 1
number_ios = 20
cgroup = \"a\"
";

#[test]
fn a_value_out_of_range_is_reported_with_the_one_that_is_used() {
    let place = Place::new();
    place.write("g.toml", GROUP);
    let args = ["run", "g.toml", "--set", "queue.fifo_expire_sync=0"];
    let ran = place.blksim(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let note = "--set queue.fifo_expire_sync=0: queue.fifo_expire_sync: 0 is taken as 1";
    let message = format!("Taken as the scheduler takes it\n  {note}\n");
    assert!(ran.stdout.ends_with(&message), "{}", ran.stdout);
    let report = json(&place.blksim(&[&args[..], &["--json"]].concat()));
    assert_eq!(report["adjusted_options"][0], note);
    assert_eq!(report["blksim"]["iosched"]["fifo_expire_sync"], 1);
    let ran = place.blksim(&["run", "g.toml", "--set", "queue.fifo_expire_sync=-1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let range = "fifo_expire_sync: \"-1\" is outside 0 to 18446744073709551615";
    assert!(ran.stderr.contains(range), "{ran:?}");
}

#[test]
fn a_weight_that_nobody_reads_is_reported_and_schedulers_are_compared_all_the_same() {
    let place = Place::new();
    place.write("g.toml", GROUP);
    let ran = place.blksim(&["run", "g.toml"]);
    assert!(!ran.stdout.contains("not read by"), "{}", ran.stdout);
    let ran = place.blksim(&["run", "g.toml", "--scheduler", "kyber"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let note = "g.toml:6: group.a.io.bfq.weight: not read by kyber";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    let args = ["compare", "g.toml", "--scheduler", "bfq,mq-deadline,none"];
    let ran = place.blksim(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Whether the device rotated decides something only under bfq.
#[test]
fn conform_refuses_an_option_that_the_scheduler_does_not_read() {
    for (scheduler, code) in [("bfq", Some(0)), ("kyber", Some(2))] {
        let place = Place::new();
        place.write("g.toml", GROUP);
        let args = ["run", "g.toml", "--set", "machine.cpus=1"];
        let more = ["--scheduler", scheduler, "--blktrace", "run"];
        let ran = place.blksim(&[&args[..], &more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let args = ["conform", "run", "--mode", "records"];
        let ran = place.blksim(&[&args[..], &["--rotational-when-chosen", "0"]].concat());
        assert_eq!(ran.code, code, "{ran:?}");
        let says = "--rotational-when-chosen decides nothing: scheduler kyber does not look at it";
        assert_eq!(ran.stderr.contains(says), code == Some(2), "{ran:?}");
    }
}
