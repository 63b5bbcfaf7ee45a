//! multipath.conf's no_path_retry: how long requests wait without a path.

use blkmq::dm::multipath::Message;
use blkmq::request::Status;
use blkmq::time::Duration;
use sim::machine::Simulator;

use crate::runs;

/// Both paths are out of reach from 100 ms on, and come back at 2 s, which multipathd sees there.
/// When the only thread failed, s; `None`: all its I/Os ended.
fn run(no_path_retry: &str) -> (Option<f64>, Vec<(Duration, Message)>) {
    let outage =
        |path| format!("[[mapped.outage]]\npath = \"{path}\"\nfrom_us = 100000\nto_us = 1500000\n");
    let plan = runs::plan_of(&format!(
        "[queue]\nrules = \"v6.1\"\nscheduler = \"none\"\n\
         [device]\ntype = \"null_blk\"\nnr_devices = 2\nirqmode = 2\ncompletion_nsec = 10000000\n\
         [mapped]\npolling_interval = 1\nno_path_retry = {no_path_retry}\n\
         table = \"0 8000 multipath 0 0 1 1 round-robin 0 2 1 nullb0 1 nullb1 1\"\n\
         {}{}\
         [[job]]\nname = \"j\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\niodepth = 2\n\
         number_ios = 100\nnorandommap = true\n",
        outage("nullb0"),
        outage("nullb1"),
    ));
    let message = plan.disks[0].mapped().unwrap().messages.clone();
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    assert!(runs::to_its_end(&mut simulator).is_none());
    let job = &simulator.recorder().jobs[0];
    let failed = (job.failed_threads > 0).then(|| job.until.0 as f64 / 1e9);
    match failed {
        Some(_) => assert_ne!(job.error, Status::Ok),
        None => assert_eq!(job.directions[0].ios, 100),
    }
    (failed, message)
}

/// One check after the loss requests fail; two checks after it a path is back.
#[test]
fn requests_fail_when_multipathd_has_looked_so_often() {
    let near = |failed: Option<f64>, expected: f64| {
        let off = failed.expect("a thread failed") - expected;
        assert!((0.0..0.05).contains(&off), "{failed:?}");
    };
    near(run("\"fail\"").0, 0.1);
    near(run("0").0, 0.1);
    let (failed, message) = run("1");
    near(failed, 1.1);
    let seconds = |tenths: u64| Duration::from_millis(100 * tenths);
    let of_policy = |of: &&(Duration, Message)| matches!(of.1, Message::QueueIfNoPath(_));
    let message: Vec<_> = message.iter().filter(of_policy).copied().collect();
    let policy = Message::QueueIfNoPath;
    assert_eq!(
        message,
        [(seconds(11), policy(false)), (seconds(20), policy(true))]
    );
    assert_eq!(run("2").0, None);
    assert_eq!(run("4294967295").0, None);
    assert_eq!(run("\"queue\"").0, None);
}
