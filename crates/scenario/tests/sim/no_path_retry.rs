//! multipath.conf's no_path_retry: what multipathd does about requests without a path.

use blkmq::dm::multipath::Message;
use blkmq::time::Duration;

use crate::runs;

/// Both paths are out of reach from 100 ms to 1.5 s: one check of multipathd after the loss
/// requests no longer wait, and when it sees a path again they do.
#[test]
fn requests_wait_until_multipathd_has_looked_so_often() {
    let plan = runs::plan_of(
        "[queue]\nrules = \"v6.1\"\nscheduler = \"none\"\n\
         [device]\ntype = \"null_blk\"\nnr_devices = 2\n\
         [mapped]\npolling_interval = 1\nno_path_retry = 1\n\
         table = \"0 8000 multipath 0 0 1 1 round-robin 0 2 1 nullb0 1 nullb1 1\"\n\
         outage = [{ path = \"nullb0\", from_us = 100000, to_us = 1500000 },\n\
         { path = \"nullb1\", from_us = 100000, to_us = 1500000 }]\n\
         [[job]]\nname = \"j\"\nrw = \"randread\"\nnumber_ios = 100\n",
    );
    let messages = plan.disks[0].mapped().unwrap().messages.iter();
    let of_policy = |of: &&(Duration, Message)| matches!(of.1, Message::QueueIfNoPath(_));
    let messages: Vec<_> = messages.filter(of_policy).copied().collect();
    let at = |tenths: u64, queues| {
        let at = Duration::from_millis(100 * tenths);
        (at, Message::QueueIfNoPath(queues))
    };
    assert_eq!(messages, [at(11, false), at(20, true)]);
}
