//! Weights and classes that follow from priorities.
//!
//! A change is stored at once and applied when the entity is inserted into a tree the next time.
//! Kernel: bfq_check_ioprio_change(), bfq_set_next_ioprio_data() in block/bfq-iosched.c,
//! __bfq_entity_update_weight_prio() in block/bfq-wf2q.c (6.1.192, 6.12.117).

use super::Bfq;
use super::arrive::Arrived;
use super::group::LEVELS;
use super::ids::{EntityId, QId};
use super::process::ProcessId;
use super::queue::{BE, IDLE, RT};
use crate::request::{IoClass, IoPrio};

/// BFQ_MIN_WEIGHT.
const WEIGHT_MIN: u32 = 1;
/// BFQ_MAX_WEIGHT.
const WEIGHT_MAX: u32 = 1000;
/// BFQ_WEIGHT_CONVERSION_COEFF.
const WEIGHT_OF_LEVEL: u32 = 10;

impl Bfq {
    /// Checks whether the process's priority has changed (bfq_check_ioprio_change()).
    pub(super) fn check_ioprio(&mut self, of: Arrived) {
        self.charge(2);
        let ioprio = self.submitters.of(of.process).ioprio;
        let process = &mut self.processes[of.process.0 as usize];
        if process.ioprio == ioprio {
            return;
        }
        process.ioprio = ioprio;
        if let Some(old) = self.slot(of.process, false, of.actuator) {
            let q = self.get_queue(Arrived { sync: false, ..of }, true);
            self.set_slot(of.process, false, of.actuator, Some(q));
            self.release(old);
        }
        if let Some(q) = self.slot(of.process, true, of.actuator) {
            self.set_next_ioprio(q, of.process);
        }
    }

    /// bfq_set_next_ioprio_data().
    pub(super) fn set_next_ioprio(&mut self, q: QId, process: ProcessId) {
        let IoPrio { class, level } = self.processes[process.0 as usize].ioprio;
        let (class, level) = match class {
            // nice -20 (WQ_HIGHPRI).
            IoClass::None if self.kworker != 0 => (class_number(IoClass::BestEffort), 0),
            IoClass::None => {
                let nice = self.submitters.of(process).nice;
                (class_number(nice.class), nice.level)
            }
            IoClass::Idle => (IDLE, LEVELS as u8 - 1),
            class => (class_number(class), level),
        };
        let queue = &mut self.queues[q];
        queue.new_class = class;
        queue.new_level = level;
        let weight = (LEVELS as u32 - u32::from(level)) * WEIGHT_OF_LEVEL;
        let e = self.entities.of(q);
        self.entities[e].new_weight = weight;
        trace_msg!(self, q, "new_ioprio {level} new_weight {weight}");
        self.entities[e].prio_changed = true;
    }

    /// Applies the stored weight and, with `class_too`, the stored class. Returns the tree that the
    /// entity belongs to afterwards (__bfq_entity_update_weight_prio()).
    pub(super) fn update_weight_prio(&mut self, e: EntityId, class_too: bool) -> (usize, usize) {
        self.charge(8);
        let old = self.tree_of(e);
        if !self.entities[e].prio_changed {
            return old;
        }
        let q = self.entities.queue(e);
        let entity = &mut self.entities[e];
        let weight_before = entity.weight;
        self.groups[old.0].trees[old.1].wsum -= u64::from(weight_before);
        if entity.new_weight != entity.orig_weight {
            entity.new_weight = entity.new_weight.clamp(WEIGHT_MIN, WEIGHT_MAX);
            entity.orig_weight = entity.new_weight;
            if let Some(q) = q {
                self.queues[q].level = self.rules.level_of(entity.orig_weight);
            }
        }
        match q {
            Some(q) => {
                let queue = &mut self.queues[q];
                if class_too {
                    queue.class = queue.new_class;
                }
                if queue.class == queue.new_class {
                    self.entities[e].prio_changed = false;
                }
            }
            None => self.entities[e].prio_changed = false,
        }
        let new = self.tree_of(e);
        let coeff = q.map_or(1, |q| self.queues[q].wr.coeff);
        let weight = self.entities[e].orig_weight * coeff;
        if let Some(q) = q
            && weight != weight_before
        {
            self.weights_remove(q);
        }
        self.entities[e].weight = weight;
        if let Some(q) = q
            && weight != weight_before
            && coeff == 1
        {
            self.weights_add(q);
        }
        let tree = &mut self.groups[new.0].trees[new.1];
        tree.wsum += u64::from(weight);
        if new != old {
            self.entities[e].start = tree.vtime;
        }
        new
    }
}

fn class_number(class: IoClass) -> u8 {
    match class {
        IoClass::RealTime => RT,
        IoClass::None | IoClass::BestEffort => BE,
        IoClass::Idle => IDLE,
    }
}
