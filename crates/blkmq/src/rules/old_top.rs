//! A mapped queue of the single-queue kind: a thread of the device maps its requests.
//!
//! That is dm-mod's use_blk_mq=N, the default of Linux 4.1 to 4.19, over queues of either kind.
//! Kernel: dm_request_fn(), map_tio_request() in drivers/md/dm.c of 4.5 and 4.6.2, dm-rq.c of 4.12;
//! Kconfig (DM_MQ_DEFAULT).

use super::{
    DeviceMapper, EndRun, Held, IoData, MappedRequests, Pathless, RefusedRun, Restart, Rules,
    SecondEnd, SingleQueueRules, WaitingItem,
};
use crate::time::Duration;

crate::axes! {
    /// Such a queue in one kernel.
    pub struct OldTop, const {
        /// Linux 4.5 and 4.6.
        V4_5 "v4.5",
        V4_12 "v4.12" = V4_5,
    }

    /// A busy target is asked again after HZ/100, meant as 10 ms and passed as ms, or after 10 ms
    /// (blk_delay_queue(), 4.9).
    busy_again: BusyAgain { V4_5 => HundredthOfHz, V4_12 => TenMs }
    /// The end of a request checks without the queue's lock, or under it, whether the queue is
    /// stopped, which is not run then.
    stopped_look: StoppedLook { V4_5 => Bare, V4_12 => Locked }
    /// Where the target keeps its data of an I/O.
    io_data: IoData [V4_5 => IoData::Mempool, V4_12 => IoData::InRequest]
}

impl BusyAgain {
    pub(crate) fn after(self, hz: u32) -> Duration {
        Duration::from_millis(match self {
            BusyAgain::HundredthOfHz => u64::from(hz / 100),
            BusyAgain::TenMs => 10,
        })
    }
}

impl Rules {
    /// The rules of a mapped queue with use_blk_mq=N over queues of these; none: the kernel has no
    /// such queue.
    pub fn of_old_top(self) -> Option<Rules> {
        let old = self.device_mapper.requests.old_top?;
        let requests = MappedRequests {
            io_data: old.io_data,
            second_end: SecondEnd::Softirq,
            end_run: EndRun::Hctxs,
            refused_run: RefusedRun::Nothing,
            ..self.device_mapper.requests
        };
        Some(Rules {
            device_mapper: DeviceMapper {
                pathless: Pathless::Busy,
                held: Held::RunQueue,
                requests,
                ..self.device_mapper
            },
            single_queue: Some(SingleQueueRules::V4_20),
            // blk_run_queue_async() is mod_delayed_work().
            restart: Restart {
                waiting_item: WaitingItem::Stolen,
                ..self.restart
            },
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{CloneInsertion, TargetLookUp};

    #[test]
    fn kernels_up_to_4_19_have_one_and_it_keeps_what_is_not_its_own() {
        for rules in Rules::MAPPED {
            let old = rules.of_old_top().expect("it has such a queue");
            let (of, own) = (rules.device_mapper, old.device_mapper);
            assert!(old.single_queue.is_some(), "{}", rules.name);
            assert_eq!(own.pathless, Pathless::Busy, "{}", rules.name);
            assert_eq!(own.requests.second_end, SecondEnd::Softirq);
            assert_eq!(own.requests.end_run, EndRun::Hctxs);
            assert_eq!(own.requests.insertion, of.requests.insertion);
            assert_eq!(own.target_lock, of.target_lock);
        }
        let v4_6 = Rules::v4_6().of_old_top().unwrap();
        let requests = v4_6.device_mapper.requests;
        assert_eq!(requests.target, TargetLookUp::Known);
        assert_eq!(requests.insertion, CloneInsertion::AtOnce);
        assert_eq!(requests.io_data, IoData::Mempool, "until 4.7 at least");
        for rules in [Rules::v6_1(), Rules::v6_12(), Rules::v4_20()] {
            assert!(rules.of_old_top().is_none(), "{}", rules.name);
        }
    }

    #[test]
    fn a_busy_target_is_asked_again_in_ticks_of_100_hz_taken_for_ms() {
        let after = |rules: Rules, hz| {
            let old = rules.device_mapper.requests.old_top;
            old.expect("it has such a queue").busy_again.after(hz)
        };
        for (hz, ms) in [(1000, 10), (250, 2), (100, 1)] {
            assert_eq!(after(Rules::v4_5(), hz), Duration::from_millis(ms));
            assert_eq!(after(Rules::v4_12(), hz), Duration::from_millis(10));
        }
    }
}
