//! A device with a deliberate defect between it and the machine.

use blkmq::request::{CpuId, HctxId, RequestId};
use blkmq::time::{Duration, SimTime};
use sim::device::{Action, Actions, Command, Device, Found, Reply, Verdict};
use sim::machine::Simulator;
use sim::plan::DeviceId;

/// Passes everything on except its defect.
#[derive(Debug)]
pub(crate) struct DeviceWrapper {
    of: Box<dyn Device>,
    /// Pollers find nothing.
    pub(crate) blind: bool,
    /// It does not report when a poller will find a completion.
    pub(crate) silent: bool,
    /// It accepts no command, and asks to be offered it again at once.
    pub(crate) busy: bool,
    /// No queue is run when a request ends.
    pub(crate) lazy: bool,
}

impl DeviceWrapper {
    /// Puts one around a device of a machine.
    pub(crate) fn around(
        simulator: &mut Simulator,
        device: DeviceId,
        wrap: impl FnOnce(&mut DeviceWrapper),
    ) {
        simulator.replace_device(device, |of| {
            let mut wrapper = DeviceWrapper {
                of,
                blind: false,
                silent: false,
                busy: false,
                lazy: false,
            };
            wrap(&mut wrapper);
            Box::new(wrapper)
        });
    }
}

impl Device for DeviceWrapper {
    fn get_budget(&mut self, unit: u16, now: SimTime, out: &mut Actions) -> Option<u32> {
        self.of.get_budget(unit, now, out)
    }

    fn put_budget(&mut self, token: u32) {
        self.of.put_budget(token);
    }

    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        if !self.busy {
            return self.of.queue_rq(command, now, out);
        }
        out.push(Action::RunQueues {
            unit: None,
            // At once would have no effect: nothing is pending yet, so there is nothing to run.
            delay: Duration::from_millis(1),
        });
        Reply {
            verdict: Verdict::DevResource,
            started: false,
        }
    }

    fn commit_rqs(&mut self, hctx: HctxId, cpu: CpuId, now: SimTime, out: &mut Actions) {
        self.of.commit_rqs(hctx, cpu, now, out);
    }

    fn timer(&mut self, mark: u64, now: SimTime, out: &mut Actions) {
        self.of.timer(mark, now, out);
    }

    fn interrupt(&mut self, vector: u32, now: SimTime, out: &mut Actions) -> Option<Found> {
        self.of.interrupt(vector, now, out)
    }

    fn poll(&mut self, hctx: HctxId, now: SimTime, out: &mut Actions) -> Option<Found> {
        if self.blind {
            return None;
        }
        self.of.poll(hctx, now, out)
    }

    fn due_after(&self, now: SimTime) -> Option<SimTime> {
        if self.silent {
            return None;
        }
        self.of.due_after(now)
    }

    fn ended(&mut self, rq: RequestId, now: SimTime, out: &mut Actions) {
        self.of.ended(rq, now, out);
        if self.lazy {
            out.retain(|action| !matches!(action, Action::RunQueues { .. }));
        }
    }

    fn in_flight(&self) -> u32 {
        self.of.in_flight()
    }

    fn describe(&self) -> String {
        self.of.describe()
    }
}
