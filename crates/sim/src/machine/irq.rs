//! Handlers of hard interrupts and the block softirq.
//!
//! Kernel: nvme_irq(), blk_done_softirq(), kernel/softirq.c.

use blkmq::path::{CompletePath, Frame};
use blkmq::request::CpuId;

use super::Simulator;
use super::cpu::{IrqStage, Mode};
use crate::cost::Step;
use crate::plan::DeviceId;
use crate::recorder::SpanKind;

impl Simulator {
    /// The handler looks for one more completion, or ends.
    pub(super) fn irq_turn(&mut self, id: CpuId) {
        match self.cpu(id).irq() {
            IrqStage::Look(device, vector) => {
                let mut found = None;
                self.with_device(device, Some(id), |device, now, out| {
                    found = device.interrupt(vector, now, out);
                });
                if let Some(found) = found {
                    self.charge_completion(id, device);
                    self.end_found(self.numbers.queue_above(device), id, found);
                    return;
                }
            }
            IrqStage::Leave => {}
            IrqStage::None => unreachable!("no handler runs"),
        }
        // What has nothing to do takes no time, so what follows need not wait for its turn.
        if self.end_one_of_batch(id) {
            self.cpu_mut(id).set_irq(IrqStage::Leave);
            return;
        }
        self.cpu_mut(id).set_irq(IrqStage::None);
        self.span_ends(id, SpanKind::Irq);
        if self.cpu(id).softirq_raised && !self.cpu(id).in_softirq() {
            self.enter_softirq(id);
        }
    }

    /// Driver's work for one completion it found.
    pub(super) fn charge_completion(&mut self, id: CpuId, device: DeviceId) {
        if let Some(step) = self.charges(device).completion {
            self.charge(id, step);
        }
    }

    pub(super) fn enter_softirq(&mut self, id: CpuId) {
        let cpu = self.cpu_mut(id);
        cpu.set_softirq(true);
        cpu.softirq_raised = false;
        self.span_begins(id, SpanKind::Softirq);
        self.charge_as(id, Step::Softirq, Mode::Softirq);
    }

    /// The softirq ends one more request, or itself.
    pub(super) fn softirq_turn(&mut self, id: CpuId) {
        let Some((queue, rq, status)) = self.cpu_mut(id).softirq_list.pop_front() else {
            let cpu = self.cpu_mut(id);
            cpu.set_softirq(false);
            cpu.softirq_raised = false;
            self.span_ends(id, SpanKind::Softirq);
            return;
        };
        self.with_device_over(queue, id, rq);
        let path = CompletePath::end(queue, rq, status);
        self.cpu_mut(id)
            .level_state()
            .stack
            .push(Frame::Complete(path));
    }
}
