//! Flows: threads that do I/Os in a ratio to each other.
//!
//! A thread is held back while its share of the flow's I/Os is above its share of the weights. The
//! weights of all jobs of the run count until their threads have ended. After fio 3.33 flow.c.

use crate::plan::{FlowPlan, Plan};

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// One more than the I/Os of its threads.
    count: u64,
    weight: u64,
}

#[derive(Debug)]
pub(super) struct Flows {
    all: Vec<Flow>,
}

impl Flows {
    pub(super) fn new(plan: &Plan) -> Flows {
        let mut all = Vec::new();
        for flow in plan.threads.iter().filter_map(|thread| thread.control.flow) {
            let number = usize::from(flow.number);
            if all.len() <= number {
                let none = Flow {
                    count: 1,
                    weight: 0,
                };
                all.resize(number + 1, none);
            }
            all[number].weight += u64::from(flow.weight);
        }
        Flows { all }
    }

    /// flow_threshold_exceeded() of a thread with so many I/Os; otherwise it does one more.
    pub(super) fn holds_back(&mut self, plan: FlowPlan, own: &mut u64) -> bool {
        let flow = &mut self.all[usize::from(plan.number)];
        let share = u128::from(*own) * u128::from(flow.weight);
        if share > u128::from(plan.weight) * u128::from(flow.count) {
            return true;
        }
        flow.count += 1;
        *own += 1;
        false
    }

    /// flow_exit_job().
    pub(super) fn leave(&mut self, plan: FlowPlan, own: u64) {
        let flow = &mut self.all[usize::from(plan.number)];
        flow.count -= own;
        flow.weight -= u64::from(plan.weight);
    }
}
