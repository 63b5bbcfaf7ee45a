//! Requests that an interrupt handler may put into its batch.

use crate::plan::{DeviceId, DiskId};
use blkmq::request::{CpuId, HctxId, Place, QueueId, RequestId, Status, Tag};

use crate::device::bench::nvme;
use crate::device::{EndedBy, Found};
use crate::machine::bench;
use crate::plan::DeviceKind;

/// blk_mq_add_to_batch() refuses a request that has an end_io: part of a flush sequence.
#[test]
fn parts_of_a_flush_sequence_are_no_batch() {
    let cpu = CpuId(0);
    for (flush_seq, batched) in [(false, 1), (true, 0)] {
        let mut simulator = bench::idle(4, DeviceKind::Nvme(nvme(8)), "v5.12");
        let rq = RequestId(0);
        {
            let mut pool = simulator.layer.mq.queue(QueueId(0)).pool.held(cpu);
            pool[rq].place = Place::Device;
            pool[rq].tag = Some(Tag(0));
            pool[rq].ctx = cpu;
            pool[rq].hctx = HctxId(0);
            pool[rq].flush_seq = flush_seq;
        }
        let now = simulator.now();
        simulator
            .recorder
            .depth_changes((DiskId(0), QueueId(0)), now, true);
        let found = Found {
            rq,
            status: Status::Ok,
            by: EndedBy::Batch,
        };
        simulator.end_found(DeviceId(0), cpu, found);
        assert_eq!(simulator.cpus[cpu].batch.len(), batched, "{flush_seq}");
    }
}
