//! Handlers of hard interrupts and the block softirq.
//!
//! Kernel: nvme_irq(), blk_done_softirq(), kernel/softirq.c.

use blkmq::path::{CompletePath, Frame};
use blkmq::request::CpuId;

use super::cpu::{Ended, IrqStage, Mode};
use super::{Event, Of, Simulator, class};
use crate::cost::Step;
use crate::plan::DeviceId;
use crate::recorder::SpanKind;

impl Simulator {
    /// The handler looks for one more completion, or ends.
    pub(super) fn irq_turn(&mut self, id: CpuId) {
        match self.cpu(id).irq() {
            IrqStage::Look(device, vector) => {
                let mut found = None;
                let now = self.at(id);
                self.with_device(device, Some(id), |device, _, out| {
                    found = device.interrupt(vector, now, out);
                });
                if let Some(found) = found {
                    self.charge_completion(id, device);
                    self.end_found(self.numbers.queue_above(device), id, found);
                    return;
                }
            }
            IrqStage::Timer(queue, timer) => return self.timer_interrupt(id, queue, timer),
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
        if self.cpu(id).softirq_raised() && !self.cpu(id).in_softirq() {
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
        self.span_begins(id, SpanKind::Softirq);
        self.charge_as(id, Step::Softirq, Mode::Softirq);
    }

    /// The softirq ends one more request, or itself.
    pub(super) fn softirq_turn(&mut self, id: CpuId) {
        if let Some((queue, timer)) = self.cpu_mut(id).softirq_timers.pop_front() {
            self.timer_expires(id, queue, timer);
            return;
        }
        let cpu = self.cpu_mut(id);
        let now = cpu.at();
        let Some(ended) = cpu.softirq_list.take(now) else {
            cpu.set_softirq(false);
            self.span_ends(id, SpanKind::Softirq);
            self.announce_rest(id);
            return;
        };
        let Ended {
            queue, rq, status, ..
        } = ended;
        self.with_device_over(queue, id, rq);
        let path = CompletePath::end(queue, rq, status);
        self.cpu_mut(id)
            .level_state()
            .stack
            .push(Frame::Complete(path));
    }

    /// What is left on the list when the softirq ends was put there later, by CPUs that are ahead:
    /// they found it empty, so the first of them has sent an interrupt.
    fn announce_rest(&mut self, id: CpuId) {
        let list = &mut self.cpus[usize::from(id.0)].softirq_list;
        let Some(given) = list.next_time() else {
            return;
        };
        let first = list.first_mut().expect("it was given at some time");
        if !core::mem::replace(&mut first.announced, true) {
            let at = given + self.core.costs.delay(Step::IpiLatency);
            self.core
                .events
                .push(at, class::INTERRUPT, Event::Ipi(Of::cpu(id, 0)));
        }
    }
}
