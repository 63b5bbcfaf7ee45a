//! Groups of processes: the queues of a process that changes its group move, too.
//!
//! Kernel: bfq_bic_update_cgroup(), bfq_sync_bfqq_move(), bfq_bfqq_move() in block/bfq-cgroup.c
//! (6.1.192, 6.12.117).

use super::Bfq;
use super::budget::Expiry;
use super::ids::{GroupId, QId};
use super::merge_event::MergeEvent;
use super::process::ProcessId;
use crate::request::RequestPool;
use crate::rules::PendingGroups;

impl Bfq {
    /// bfq_bic_update_cgroup().
    pub(super) fn update_group(&mut self, pool: &RequestPool, p: ProcessId, group: GroupId) {
        let process = &mut self.processes[p.0 as usize];
        if process.group.replace(group) == Some(group) {
            return;
        }
        for actuator in 0..self.actuators() as u8 {
            if let Some(q) = self.slot(p, false, actuator)
                && self.group_of(q) != group
            {
                self.set_slot(p, false, actuator, None);
                self.release(q);
            }
            if let Some(q) = self.slot(p, true, actuator) {
                self.move_sync(pool, (p, actuator), q, group);
            }
        }
        self.record(|| MergeEvent::Moved(p, group.0));
    }

    #[inline]
    fn group_of(&self, q: QId) -> GroupId {
        self.entities[self.entities.of(q)].group
    }

    /// bfq_sync_bfqq_move().
    fn move_sync(
        &mut self,
        pool: &RequestPool,
        (p, actuator): (ProcessId, u8),
        q: QId,
        group: GroupId,
    ) {
        if self.queues[q].new.is_none() && !self.queues[q].flags.coop {
            if self.group_of(q) != group {
                self.move_queue(pool, q, group);
            }
            return;
        }
        let mut at = Some(q);
        while let Some(of_chain) = at {
            if self.group_of(of_chain) != group {
                break;
            }
            at = self.queues[of_chain].new;
        }
        if at.is_some() {
            self.put_cooperators(q);
            self.set_slot(p, true, actuator, None);
            self.release(q);
        }
    }

    /// bfq_bfqq_move().
    fn move_queue(&mut self, pool: &RequestPool, q: QId, group: GroupId) {
        self.queues[q].references += 1;
        let e = self.entities.of(q);
        let exact = self.rules.pending_groups == PendingGroups::Exact;
        let pending = exact && self.entities[e].pending;
        if pending {
            self.del_pending(q);
        }
        if self.in_service == Some(q) {
            self.expire(pool, q, false, Expiry::Preempted);
        }
        let busy = self.queues[q].flags.busy;
        if busy {
            self.deactivate(q, false, false);
        } else if self.entities[e].on_st {
            self.put_idle_entity(e);
        }
        self.reassign_last_created(q, None);
        // Position trees belong to groups: bfq_pos_tree_add_move() removes the queue from the old
        // tree.
        self.position_remove(q);
        // As in the kernel, the requests of the queue stay counted in the groups above its old
        // place, and their ends are counted in the groups above the new one.
        self.entities[e].group = group;
        if pending {
            self.add_pending(q);
        }
        if busy {
            if !self.nonrot_with_queueing {
                self.position_update(pool, q);
            }
            self.activate(q);
        }
        if self.in_service.is_none() && self.in_driver_total == 0 {
            self.schedule_dispatch();
        }
        self.put(q);
    }
}
