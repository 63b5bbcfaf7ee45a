//! Merging of queues: which process has which queue, planned merges, and the references that keep a
//! queue in memory.
//!
//! References are counted as in the kernel, get by get and put by put, and an access to a freed
//! queue is reported as a fault: the explorer drives this code as it is. Not here: when queues
//! cooperate (`position.rs`), and the service of a queue. Kernel: cfq_get_queue(),
//! cfq_set_request(), cfq_setup_merge(), cfq_merge_cfqqs(), split_cfqq(), cfq_put_cooperator(),
//! cfq_put_queue() in block/cfq-iosched.c (2.6.32 to 4.20), and the patch.

mod call_event;
mod fault;
mod hold;

use crate::elevator::event_log::EventLog;
use crate::request::IoContextId;
use crate::rules::{MergeDirection, QueueMerge, RedirectedSlot, Split, Unreferenced};
pub use call_event::{CallEvent, MergeCall};
pub use fault::{Account, Fault};

pub use super::ids::QId;

/// The fallback queue if an allocation fails (`oom_cfqq`), which is never freed.
pub const FALLBACK: QId = QId(0);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tie {
    /// The queue is in memory.
    pub live: bool,
    /// `ref`.
    pub references: i32,
    /// Allocated requests: reads, writes.
    pub allocated: [i32; 2],
    /// The queue that its processes change to (`new_cfqq`). Never cleared; it holds references
    /// there only while processes refer to this queue.
    pub new: Option<QId>,
    /// By rules: the queue has preempted another one, or is shared.
    pub coop: bool,
    /// The queue must be split (`split_coop`).
    pub split_coop: bool,
    /// Since when the shared queue has been seeky, for the first version of the split
    /// (`seeky_start`).
    pub seeky_since: Option<i64>,
}

/// Queues of one process: asynchronous, synchronous.
pub type Slots = [Option<QId>; 2];

/// All queues, processes' slots and the table of asynchronous queues.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ties {
    /// The version of the merge code.
    pub rules: QueueMerge,
    /// A mutant: at this account so many references too many (or too few, if negative) are taken or
    /// put.
    pub wrong: Option<(Account, i32)>,
    /// For the explorer: numbers are used once, and the next access to a queue that was freed with
    /// requests is a fault.
    pub walked: bool,
    /// Merge events, for the recorder of a run.
    pub events: EventLog<CallEvent>,
    all: Vec<Tie>,
    slots: Vec<Slots>,
    /// Asynchronous queues of the device or of its groups.
    table: Vec<Option<QId>>,
    /// Queues freed since the last [`Ties::take_freed`].
    freed: Vec<QId>,
}

impl Ties {
    /// No process has a queue; the table has so many entries.
    pub fn new(rules: QueueMerge, table: usize) -> Ties {
        let fallback = Tie {
            live: true,
            references: 1,
            ..Tie::default()
        };
        Ties {
            rules,
            wrong: None,
            walked: false,
            events: EventLog::default(),
            all: vec![fallback],
            slots: Vec::new(),
            table: vec![None; table],
            freed: Vec::new(),
        }
    }

    ///
    /// # Errors
    /// If the queue was freed.
    #[inline]
    pub fn tie(&self, q: QId) -> Result<&Tie, Fault> {
        let tie = self.all.get(q.0 as usize).filter(|tie| tie.live);
        tie.ok_or(Fault::UseAfterFree(q))
    }

    ///
    /// # Errors
    /// If the queue was freed.
    #[inline]
    pub fn tie_mut(&mut self, q: QId) -> Result<&mut Tie, Fault> {
        let tie = self.all.get_mut(q.0 as usize).filter(|tie| tie.live);
        tie.ok_or(Fault::UseAfterFree(q))
    }

    pub fn queues(&self) -> impl Iterator<Item = (QId, &Tie)> {
        let all = self.all.iter().enumerate();
        all.map(|(at, tie)| (QId(at as u32), tie))
            .filter(|(_, tie)| tie.live)
    }

    /// Slots of all processes with a request so far, by number.
    pub fn slots(&self) -> &[Slots] {
        &self.slots
    }

    /// The table of asynchronous queues.
    pub fn table(&self) -> &[Option<QId>] {
        &self.table
    }

    #[inline]
    pub fn slot(&self, p: IoContextId, sync: bool) -> Option<QId> {
        self.slots.get(p.0 as usize)?[usize::from(sync)]
    }

    /// References of processes: slots, the table, and reservations for processes that will come
    /// (cfqq_process_refs()).
    ///
    /// # Errors
    /// If the queue was freed, or its count is wrong.
    pub fn process_references(&self, q: QId) -> Result<i32, Fault> {
        let tie = self.tie(q)?;
        let left = tie.references - tie.allocated[0] - tie.allocated[1];
        match left {
            0.. => Ok(left),
            _ => Err(Fault::Underflow(q)),
        }
    }

    /// Freed queues, oldest first; each is returned once.
    pub fn take_freed(&mut self) -> Option<QId> {
        match self.freed.is_empty() {
            true => None,
            false => Some(self.freed.remove(0)),
        }
    }

    fn get(&mut self, account: Account, q: QId, references: i32) -> Result<(), Fault> {
        let more = self.error_at(account);
        self.tie_mut(q)?.references += references + more;
        Ok(())
    }

    fn put(&mut self, account: Account, q: QId) -> Result<(), Fault> {
        for _ in 0..=self.error_at(account) {
            self.put_one(q)?;
        }
        Ok(())
    }

    fn error_at(&self, account: Account) -> i32 {
        match self.wrong {
            Some((wrong, more)) if wrong == account => more,
            _ => 0,
        }
    }

    /// cfq_put_queue().
    fn put_one(&mut self, q: QId) -> Result<(), Fault> {
        let walked = self.walked;
        let tie = self.tie_mut(q)?;
        tie.references -= 1;
        if tie.references > 0 {
            return Ok(());
        }
        if tie.references < 0 {
            return Err(Fault::Underflow(q));
        }
        if tie.allocated != [0, 0] && !walked {
            return Err(Fault::FreedWithRequests(q));
        }
        *tie = Tie::default();
        self.freed.push(q);
        Ok(())
    }

    /// A queue in memory without references.
    fn allocate(&mut self) -> QId {
        let fresh = Tie {
            live: true,
            ..Tie::default()
        };
        // A number that some pointer still leads to stays unused: its reuse would hide a use after
        // free.
        let free = (0..self.all.len() as u32).map(QId);
        let free = free.filter(|&q| !self.all[q.0 as usize].live);
        let mut free = free.filter(|&q| !self.is_pointed_at(q));
        let free = (!self.walked).then(|| free.next()).flatten();
        if let Some(q) = free {
            self.all[q.0 as usize] = fresh;
            return q;
        }
        self.all.push(fresh);
        QId(self.all.len() as u32 - 1)
    }

    fn is_pointed_at(&self, q: QId) -> bool {
        let q = Some(q);
        self.all.iter().any(|tie| tie.live && tie.new == q)
            || self.slots.iter().any(|slots| slots.contains(&q))
            || self.table.contains(&q)
    }

    /// Plans the merge of two queues, if it is allowed; returns the queue that is merged, and its
    /// target (cfq_setup_merge()). The first argument is the active queue.
    ///
    /// # Errors
    /// If a chain leads to a freed queue, or back to itself.
    pub fn set_up(&mut self, cur: QId, candidate: QId) -> Result<Option<(QId, QId)>, Fault> {
        let planned = self.look_for_tail(cur, candidate)?;
        self.record(|| MergeCall::SetUp { cur, candidate });
        Ok(planned)
    }

    fn look_for_tail(&mut self, cur: QId, candidate: QId) -> Result<Option<(QId, QId)>, Fault> {
        let all = self.rules.unreferenced == Unreferenced::AllChecked;
        if all && self.process_references(candidate)? == 0 {
            return Ok(None);
        }
        let mut tail = candidate;
        for _ in 0..=self.all.len() {
            let Some(next) = self.tie(tail)?.new else {
                return self.plan(cur, tail);
            };
            if next == cur {
                return Ok(None);
            }
            tail = next;
        }
        Err(Fault::Loop(candidate))
    }

    fn plan(&mut self, cur: QId, tail: QId) -> Result<Option<(QId, QId)>, Fault> {
        let of_cur = self.process_references(cur)?;
        let of_tail = self.process_references(tail)?;
        let all = self.rules.unreferenced == Unreferenced::AllChecked;
        if of_cur == 0 || all && of_tail == 0 {
            return Ok(None);
        }
        let backward = self.rules.direction == MergeDirection::ToMoreProcesses && of_tail < of_cur;
        let (from, to, moving) = match backward {
            false => (cur, tail, of_cur),
            true => (tail, cur, of_tail),
        };
        self.tie_mut(from)?.new = Some(to);
        self.get(Account::Reservation, to, moving)?;
        Ok(Some((from, to)))
    }

    /// The queue for the next request of a process, which may leave a shared queue or change to the
    /// planned one. None: the process needs a queue of its own (first part of cfq_set_request()).
    /// `aged`: a seeky queue is due for the first version of the split.
    ///
    /// # Errors
    /// If a reference is wrong.
    pub fn find(
        &mut self,
        p: IoContextId,
        sync: bool,
        aged: impl Fn(&Tie) -> bool,
    ) -> Result<Option<QId>, Fault> {
        let before = self.slot(p, sync);
        let found = self.find_shared(p, sync, aged)?;
        self.record(|| MergeCall::Find {
            process: p,
            sync,
            before,
            found,
        });
        Ok(found)
    }

    fn find_shared(
        &mut self,
        p: IoContextId,
        sync: bool,
        aged: impl Fn(&Tie) -> bool,
    ) -> Result<Option<QId>, Fault> {
        let Some(mut q) = self.slot(p, sync) else {
            return Ok(None);
        };
        if q == FALLBACK {
            if self.rules.puts_fallback {
                self.put(Account::Slot, q)?;
            }
            return Ok(None);
        }
        if self.breaks_apart(q, aged)? {
            match self.split(p, q)? {
                Some(kept) => q = kept,
                None => return Ok(None),
            }
        }
        if self.tie(q)?.new.is_some() {
            q = self.redirect(p, sync, q)?;
        }
        Ok(Some(q))
    }

    /// The next request of a process of this shared queue splits it.
    ///
    /// # Errors
    /// If the queue was freed.
    pub fn breaks_apart(&self, q: QId, aged: impl Fn(&Tie) -> bool) -> Result<bool, Fault> {
        let tie = self.tie(q)?;
        let due = match self.rules.split {
            Split::Never => false,
            Split::AfterSecond => aged(tie),
            Split::AtExpiry => tie.split_coop,
        };
        Ok(tie.coop && due)
    }

    /// cfq_merge_cfqqs().
    fn redirect(&mut self, p: IoContextId, sync: bool, q: QId) -> Result<QId, Fault> {
        let new = self.tie(q)?.new.expect("the caller has looked");
        let sync = sync || self.rules.redirected_slot == RedirectedSlot::Sync;
        self.slots[p.0 as usize][usize::from(sync)] = Some(new);
        let shared = self.rules.marks_shared();
        self.tie_mut(new)?.coop |= shared;
        self.put(Account::Redirection, q)?;
        Ok(new)
    }

    /// split_cfqq(): returns the queue if only this process has it now.
    fn split(&mut self, p: IoContextId, q: QId) -> Result<Option<QId>, Fault> {
        if self.process_references(q)? == 1 {
            let tie = self.tie_mut(q)?;
            tie.coop = false;
            tie.split_coop = false;
            tie.seeky_since = None;
            return Ok(Some(q));
        }
        self.slots[p.0 as usize][1] = None;
        if self.rules.split_drops_chain {
            self.put_chain(Account::SplitChain, q)?;
        }
        self.put(Account::Split, q)?;
        Ok(None)
    }

    /// Puts a process's reservations along the chain of its queue (cfq_put_cooperator()).
    fn put_chain(&mut self, account: Account, q: QId) -> Result<(), Fault> {
        let mut at = self.tie(q)?.new;
        while let Some(link) = at {
            if link == q {
                return Err(Fault::Loop(q));
            }
            at = self.tie(link)?.new;
            self.put(account, link)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
