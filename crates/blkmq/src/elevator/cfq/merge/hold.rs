//! Holders of a queue: processes from their first request to their exit, requests from their
//! allocation to their end.
//!
//! Kernel: cfq_set_request(), cfq_put_request(), cfq_get_queue(), cfq_exit_single_io_context(),
//! changed_ioprio(), changed_cgroup() in block/cfq-iosched.c (2.6.32 to 4.20).

use super::{Account, FALLBACK, Fault, MergeCall, QId, Slots, Ties};
use crate::request::IoContextId;

impl Ties {
    /// Gives a process a queue: an asynchronous one is in entry `place` of the table. `memory`: a
    /// new queue can be allocated. Returns true if the queue is new (cfq_get_queue() and its
    /// caller).
    ///
    /// # Errors
    /// If the table leads to a freed queue.
    pub fn give(
        &mut self,
        p: IoContextId,
        place: Option<usize>,
        memory: bool,
    ) -> Result<(QId, bool), Fault> {
        let (q, fresh) = self.obtain(place, memory)?;
        if self.slots.len() <= p.0 as usize {
            self.slots.resize(p.0 as usize + 1, Slots::default());
        }
        self.slots[p.0 as usize][usize::from(place.is_none())] = Some(q);
        Ok((q, fresh))
    }

    fn obtain(&mut self, place: Option<usize>, memory: bool) -> Result<(QId, bool), Fault> {
        if let Some(q) = place.and_then(|place| self.table[place]) {
            self.get(Account::Slot, q, 1)?;
            return Ok((q, false));
        }
        let q = match memory {
            true => self.allocate(),
            false => FALLBACK,
        };
        if let Some(place) = place
            && (memory || !self.rules.fallback_is_nobodys)
        {
            self.get(Account::Table, q, 1)?;
            self.table[place] = Some(q);
        }
        self.get(Account::Slot, q, 1)?;
        Ok((q, memory))
    }

    /// A request of this queue is set up.
    ///
    /// # Errors
    /// If the queue was freed.
    pub fn hold(&mut self, q: QId, write: bool) -> Result<(), Fault> {
        self.tie_mut(q)?.allocated[usize::from(write)] += 1;
        self.get(Account::Request, q, 1)?;
        self.record(|| MergeCall::Hold(q));
        Ok(())
    }

    /// A request of this queue is freed (cfq_put_request()).
    ///
    /// # Errors
    /// If a reference is wrong.
    pub fn release(&mut self, q: QId, write: bool) -> Result<(), Fault> {
        self.tie_mut(q)?.allocated[usize::from(write)] -= 1;
        self.put(Account::RequestEnd, q)?;
        self.record(|| MergeCall::Release(q));
        Ok(())
    }

    /// The exit of a process, for one of its queues (cfq_exit_cfqq()).
    ///
    /// # Errors
    /// If a reference is wrong.
    pub fn exit(&mut self, p: IoContextId, sync: bool) -> Result<(), Fault> {
        if let Some(q) = self.slot(p, sync) {
            self.put_chain(Account::ExitChain, q)?;
            self.put(Account::Exit, q)?;
            self.slots[p.0 as usize][usize::from(sync)] = None;
        }
        self.record(|| MergeCall::Exit { process: p, sync });
        Ok(())
    }

    /// The priority of a process changes, and so does its asynchronous queue (changed_ioprio()).
    /// Returns what [`Ties::give`] returns, if the process had such a queue.
    ///
    /// # Errors
    /// If a reference is wrong.
    pub fn change_ioprio(
        &mut self,
        p: IoContextId,
        place: usize,
    ) -> Result<Option<(QId, bool)>, Fault> {
        let Some(old) = self.slot(p, false) else {
            return Ok(None);
        };
        let given = self.give(p, Some(place), true)?;
        if self.rules.ioprio_change_drops_chain {
            self.put_chain(Account::IoprioChange, old)?;
        }
        self.put(Account::IoprioChange, old)?;
        self.record(|| MergeCall::ChangeIoprio(p));
        Ok(Some(given))
    }

    /// The group of a process changes: it gets other queues there (changed_cgroup(),
    /// check_blkcg_changed()).
    ///
    /// # Errors
    /// If a reference is wrong.
    pub fn change_group(&mut self, p: IoContextId) -> Result<(), Fault> {
        let kinds: &[bool] = match self.rules.group_change_drops_async {
            true => &[false, true],
            false => &[true],
        };
        for &sync in kinds {
            let Some(q) = self.slot(p, sync) else {
                continue;
            };
            self.slots[p.0 as usize][usize::from(sync)] = None;
            if self.rules.group_change_drops_chain {
                self.put_chain(Account::GroupChange, q)?;
            }
            self.put(Account::GroupChange, q)?;
        }
        self.record(|| MergeCall::ChangeGroup(p));
        Ok(())
    }
}
