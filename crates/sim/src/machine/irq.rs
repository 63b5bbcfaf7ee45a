//! Handlers of hard interrupts and the block softirq.
//!
//! Kernel: nvme_irq(), blk_done_softirq(), kernel/softirq.c.

use blkmq::path::Frame;
use blkmq::request::CpuId;

use super::cpu::{Ended, IrqStage};
use super::{Simulator, timer};

impl Simulator {
    /// The handler looks for one more completion, or ends.
    pub(super) fn irq_turn(&mut self, id: CpuId) {
        match self.cpus[id].irq() {
            IrqStage::Look(device, vector) => {
                let now = self.cpus.at(id);
                let found = self.with_device(device, Some(id), |device, _, out| {
                    device.interrupt(vector, now, out)
                });
                if let Some(found) = found {
                    self.end_found(device, id, found);
                    return;
                }
            }
            IrqStage::Timer(queue, timer) => {
                return timer::interrupt(&mut self.cpus, &self.layer.mq, id, queue, timer);
            }
            IrqStage::Runs(path) => {
                self.cpus[id].set_irq(IrqStage::Leave);
                self.cpus.push(id, Frame::RunQueues(path));
                return;
            }
            IrqStage::Leave => {}
            IrqStage::None => unreachable!("no handler runs"),
        }
        // An empty batch takes no time, so the rest need not wait for its turn.
        if self.end_batch(id) {
            self.cpus[id].set_irq(IrqStage::Leave);
            return;
        }
        self.cpus.leave_irq(id);
    }

    /// The softirq ends one more request, or itself.
    pub(super) fn softirq_turn(&mut self, id: CpuId) {
        if let Some((queue, timer)) = self.cpus[id].softirq_timers.pop_front() {
            timer::expire(&mut self.cpus, &self.layer.mq, id, queue, timer);
            return;
        }
        let cpu = &mut self.cpus[id];
        let now = cpu.at();
        let Some(ended) = cpu.softirq_list.take(now) else {
            self.cpus.leave_softirq(id);
            return;
        };
        let Ended {
            queue, rq, status, ..
        } = ended;
        self.push_end(queue, id, rq, status);
    }
}
