//! Mode records without a scheduler: the order in which the block layer itself hands requests over.
//!
//! A request is issued at once by its task, or when its task's plug is let go, or waits in the
//! software queue of its CPU (traced as I) until somebody runs the hardware queue. Who acts shows
//! in the trace; what comes next is predicted. Kernel: block/blk-mq.c blk_mq_submit_bio(),
//! blk_mq_plug_issue_direct(), block/blk-mq-sched.c blk_mq_do_dispatch_ctx() (6.1.192, 6.12.117).

use std::collections::{BTreeMap, VecDeque};

use blkmq::request::{Op, RequestId, Sector, Sectors};
use blkmq::rules::{DirectUnplug, FlushData, NoMerges, PlugOrder};

use super::Error;
use super::event::{Event, Kind};
use super::flushes::Flushes;
use super::layer::average;
use super::ledger::{At, Ledger};
use super::setup::Setup;
use super::verdict::{Judge, show_request};

/// BLK_MAX_REQUEST_COUNT.
const PLUG_MAX: usize = 32;
/// BLK_PLUG_FLUSH_SIZE, sectors.
const PLUG_FLUSH_SECTORS: u32 = 256;

/// What a task is doing.
#[derive(Clone, Debug, Default)]
struct Task {
    /// Its latest request, of which the next event tells whether it went into a plug.
    fresh: Option<RequestId>,
    /// Requests in its plug, oldest first.
    plug: Vec<RequestId>,
    /// The bio whose Q was its latest event: it waits for a tag.
    waits: Option<(Sector, Sectors)>,
}

/// A hardware queue.
#[derive(Clone, Debug, Default)]
struct Hctx {
    /// Refused, or without budget: goes before everything.
    dispatch: VecDeque<RequestId>,
    /// dispatch_busy.
    busy: u32,
    /// Next software queue of the round robin.
    from: usize,
}

#[derive(Debug)]
struct NoScheduler<'a> {
    setup: &'a Setup,
    ledger: Ledger,
    flushes: Flushes,
    tasks: BTreeMap<u32, Task>,
    /// Software queues, by CPU.
    ctxs: BTreeMap<u16, VecDeque<RequestId>>,
    hctxs: Vec<Hctx>,
    /// What each CPU hands over next, in order.
    expected: BTreeMap<u16, VecDeque<RequestId>>,
    /// Commands that the device holds.
    in_device: u32,
}

/// Compares every D of a device.
pub(super) fn judge(
    capture: &str,
    setup: &Setup,
    events: &[Event],
    judge: &mut Judge,
) -> Result<(), Error> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    judge.start(&setup.device, first.time);
    let mut none = NoScheduler::new(setup, events);
    for event in events {
        none.take(event, judge)
            .map_err(|what| event.contradiction(capture, &setup.device, what))?;
    }
    Ok(())
}

impl<'a> NoScheduler<'a> {
    fn new(setup: &'a Setup, events: &[Event]) -> NoScheduler<'a> {
        let allocated = |e: &&Event| matches!(e.kind, Kind::Get | Kind::Insert);
        NoScheduler {
            setup,
            ledger: Ledger::new(events.iter().filter(allocated).count() + 1),
            flushes: Flushes::new(setup),
            tasks: BTreeMap::new(),
            ctxs: BTreeMap::new(),
            hctxs: vec![Hctx::default(); setup.hctxs.len()],
            expected: BTreeMap::new(),
            in_device: 0,
        }
    }

    fn take(&mut self, event: &Event, judge: &mut Judge) -> Result<(), String> {
        event.check()?;
        match event.kind {
            Kind::Queue => {
                self.task(event.pid).waits = Some((event.sector, event.sectors));
            }
            Kind::Get => self.get(event)?,
            Kind::Plug => {
                let task = self.task(event.pid);
                task.plug.extend(task.fresh.take());
            }
            Kind::Unplug { sleeps, .. } => self.unplug(event, sleeps),
            Kind::BioMerge { front } => self.bio_merge(event, front, judge)?,
            Kind::Insert => self.insert(event)?,
            Kind::Issue => self.issue(event, judge),
            Kind::Requeue => self.requeue(event),
            Kind::Complete { failed } => {
                // A bio that must not wait ends instead.
                let task = self.task(event.pid);
                let waiting = task.waits == Some((event.sector, event.sectors));
                if failed && waiting {
                    task.waits = None;
                }
                self.complete(event);
            }
            _ => {}
        }
        if !matches!(
            event.kind,
            Kind::Queue | Kind::Complete { .. } | Kind::Issue
        ) {
            self.task(event.pid).waits = None;
        }
        Ok(())
    }

    fn task(&mut self, pid: u32) -> &mut Task {
        self.tasks.entry(pid).or_default()
    }

    fn get(&mut self, event: &Event) -> Result<(), String> {
        let ioprio = event.ioprio.unwrap_or_default();
        let open = self.ledger.open(event, ioprio);
        let rq = open.ok_or("more requests at once than were allocated")?;
        self.flushes.open(rq, event, self.setup.hctx_of(event.cpu));
        if self.goes_around(rq) {
            return Ok(());
        }
        let sized = self.setup.nomerges != NoMerges::Never;
        let order = self.setup.rules.plug_order;
        let task = self.tasks.entry(event.pid).or_default();
        let peeked = match order {
            PlugOrder::Lifo => task.plug.last(),
            PlugOrder::Fifo => task.plug.first(),
        };
        let Some(&peeked) = peeked else {
            task.fresh = Some(rq);
            return Ok(());
        };
        let large = self.ledger.entry(peeked).sectors.0 >= PLUG_FLUSH_SECTORS;
        if task.plug.len() >= PLUG_MAX || (sized && large) {
            self.issue_plug(event);
            self.task(event.pid).fresh = Some(rq);
        } else {
            task.plug.push(rq);
        }
        Ok(())
    }

    /// A request that the flush machine takes, and no plug and no software queue sees.
    fn goes_around(&self, rq: RequestId) -> bool {
        let entry = self.ledger.entry(rq);
        let rule = self.setup.rules.flush_data;
        entry.flush && (rule == FlushData::DispatchList || entry.flags.preflush)
    }

    fn unplug(&mut self, event: &Event, sleeps: bool) {
        if !sleeps && self.setup.rules.direct_unplug == DirectUnplug::Traced {
            self.issue_plug(event);
        }
    }

    /// The plug is let go and its requests are issued in its order.
    fn issue_plug(&mut self, event: &Event) {
        let mut list = core::mem::take(&mut self.task(event.pid).plug);
        if self.setup.rules.plug_order == PlugOrder::Lifo {
            list.reverse();
        }
        let refused = self.hand_over(event.cpu, list);
        // The first without budget waits on the dispatch list; the rest will be inserted.
        if let Some(&first) = refused.first() {
            let hctx = self.setup.hctx_of(self.ledger.entry(first).cpu);
            self.hctxs[hctx].dispatch.push_back(first);
        }
    }

    /// Expects the list of this CPU, as far as the device has room. The rest comes back.
    fn hand_over(&mut self, cpu: u16, list: Vec<RequestId>) -> Vec<RequestId> {
        let waiting: usize = self.expected.values().map(VecDeque::len).sum();
        let room = match self.setup.budget {
            Some(budget) => (budget as usize).saturating_sub(self.in_device as usize + waiting),
            _ => list.len(),
        };
        let mut list = list;
        let rest = list.split_off(room.min(list.len()));
        self.expected.entry(cpu).or_default().extend(list);
        rest
    }

    fn bio_merge(&mut self, event: &Event, front: bool, judge: &mut Judge) -> Result<(), String> {
        let limits = &self.setup.limits;
        let plugged = self.ledger.in_plug(event, front, limits);
        match plugged.or_else(|| self.ledger.queued_beside(event, front)) {
            Some(rq) => self.ledger.grow(rq, event, front)?,
            _ => judge.note("a bio merged with nothing that the trace shows"),
        }
        Ok(())
    }

    fn insert(&mut self, event: &Event) -> Result<(), String> {
        let rq = match self.ledger.fresh(event) {
            Some(rq) => rq,
            _ => {
                let ioprio = event.ioprio.unwrap_or_default();
                self.ledger
                    .open(event, ioprio)
                    .ok_or("more requests at once than were allocated")?
            }
        };
        for task in self.tasks.values_mut() {
            task.plug.retain(|&other| other != rq);
            task.fresh = task.fresh.filter(|&other| other != rq);
        }
        for hctx in &mut self.hctxs {
            hctx.dispatch.retain(|&other| other != rq);
        }
        let at_head = self.goes_around(rq);
        let age = self.ledger.next_age();
        let entry = self.ledger.entry_mut(rq);
        entry.at = At::Queued;
        entry.age = age;
        let ctx = self.ctxs.entry(entry.cpu).or_default();
        if at_head {
            ctx.push_front(rq);
        } else {
            ctx.push_back(rq);
        }
        Ok(())
    }

    fn issue(&mut self, event: &Event, judge: &mut Judge) {
        let queued = self.ledger.oldest(At::Queued, |e| e.is(event));
        let waiting = queued.or_else(|| self.ledger.oldest(At::Chosen, |e| e.is(event)));
        let kernel = waiting.or_else(|| self.ledger.fresh(event));
        let around = match kernel {
            Some(rq) => self.ledger.entry(rq).at == At::Fresh && self.goes_around(rq),
            None => event.op == Op::Flush,
        };
        if around {
            let cpu = kernel.map_or(event.cpu, |rq| self.ledger.entry(rq).cpu);
            let hctx = self.setup.hctx_of(cpu);
            match self.flushes.issue(event, kernel, hctx) {
                Ok(()) => judge.hit(),
                Err(expected) => {
                    judge.miss(event.time, show_request(event), expected, self.show());
                }
            }
        } else {
            self.judge_next(event, kernel, judge);
        }
        self.in_device += 1;
        if let Some(rq) = kernel {
            self.forget(rq);
            self.ledger.entry_mut(rq).at = At::Issued;
        }
    }

    fn judge_next(&mut self, event: &Event, kernel: Option<RequestId>, judge: &mut Judge) {
        if self.first_expected(event.cpu).is_none() {
            self.act(event);
        }
        let next = self.first_expected(event.cpu);
        if next.is_some() && next == kernel {
            judge.hit();
        } else {
            let model = next.map(|rq| self.ledger.entry(rq).to_string());
            let model = model.unwrap_or_else(|| "nothing".to_owned());
            judge.miss(event.time, show_request(event), model, self.show());
        }
        // A range that nothing in the trace has stands for what the model hands over.
        if let (None, Some(rq)) = (kernel, next) {
            self.forget(rq);
            self.ledger.entry_mut(rq).at = At::Issued;
        }
    }

    fn first_expected(&self, cpu: u16) -> Option<RequestId> {
        self.expected.get(&cpu)?.front().copied()
    }

    /// Somebody hands over a request on this CPU: which list is it that he works on?
    fn act(&mut self, event: &Event) {
        let task = self.tasks.get(&event.pid).cloned().unwrap_or_default();
        if let Some(rq) = task.fresh {
            self.task(event.pid).fresh = None;
            self.hand_over(event.cpu, vec![rq]);
        } else if !task.plug.is_empty() && task.waits.is_none() {
            self.issue_plug(event);
        } else {
            self.run(event.cpu);
        }
    }

    /// A run of the CPU's hardware queue, or of another one that has something.
    fn run(&mut self, cpu: u16) {
        let own = self.setup.hctx_of(cpu);
        let hctx = if self.has_work(own) {
            own
        } else {
            let any = (0..self.hctxs.len()).find(|&hctx| self.has_work(hctx));
            any.unwrap_or(own)
        };
        let leftovers: Vec<RequestId> = self.hctxs[hctx].dispatch.drain(..).collect();
        if !leftovers.is_empty() {
            let rest = self.hand_over(cpu, leftovers);
            let busy = !rest.is_empty();
            let state = &mut self.hctxs[hctx];
            state.dispatch.extend(rest);
            state.busy = average(state.busy, busy);
            if busy {
                return;
            }
        }
        if self.hctxs[hctx].busy > 0 {
            self.round_robin(hctx, cpu);
        } else {
            self.flush_ctxs(hctx, cpu);
        }
    }

    fn has_work(&self, hctx: usize) -> bool {
        let of = |cpu: &u16| self.ctxs.get(cpu).is_some_and(|ctx| !ctx.is_empty());
        !self.hctxs[hctx].dispatch.is_empty() || self.setup.hctxs[hctx].cpus.iter().any(of)
    }

    /// All software queues in order, each as it is.
    fn flush_ctxs(&mut self, hctx: usize, cpu: u16) {
        let mut all = Vec::new();
        for of in &self.setup.hctxs[hctx].cpus {
            all.extend(self.ctxs.entry(*of).or_default().drain(..));
        }
        if all.is_empty() {
            return;
        }
        let rest = self.hand_over(cpu, all);
        let state = &mut self.hctxs[hctx];
        state.busy = average(state.busy, !rest.is_empty());
        state.dispatch.extend(rest);
    }

    /// One request of each software queue in turn, while the device takes them.
    fn round_robin(&mut self, hctx: usize, cpu: u16) {
        let cpus = &self.setup.hctxs[hctx].cpus;
        loop {
            let from = self.hctxs[hctx].from;
            let turn = (0..cpus.len()).map(|offset| (from + offset) % cpus.len());
            let next = turn.into_iter().find(|&index| {
                self.ctxs
                    .get(&cpus[index])
                    .is_some_and(|ctx| !ctx.is_empty())
            });
            let Some(index) = next else { return };
            let waiting: usize = self.expected.values().map(VecDeque::len).sum();
            let held = self.in_device as usize + waiting;
            if self
                .setup
                .budget
                .is_some_and(|budget| held >= budget as usize)
            {
                return;
            }
            let rq = self
                .ctxs
                .get_mut(&cpus[index])
                .and_then(VecDeque::pop_front);
            let rq = rq.expect("the queue was seen to hold one");
            self.hctxs[hctx].from = (index + 1) % cpus.len();
            self.expected.entry(cpu).or_default().push_back(rq);
            let state = &mut self.hctxs[hctx];
            state.busy = average(state.busy, false);
        }
    }

    fn requeue(&mut self, event: &Event) {
        let Some(rq) = self.ledger.oldest(At::Issued, |e| e.is(event)) else {
            return;
        };
        let entry = self.ledger.entry_mut(rq);
        entry.at = At::Chosen;
        let hctx = self.setup.hctx_of(entry.cpu);
        let state = &mut self.hctxs[hctx];
        state.dispatch.push_front(rq);
        state.busy = average(state.busy, true);
        self.in_device = self.in_device.saturating_sub(1);
    }

    fn complete(&mut self, event: &Event) {
        let own = self.setup.hctx_of(event.cpu);
        if self.flushes.complete(event, own).is_some() {
            self.in_device = self.in_device.saturating_sub(1);
            return;
        }
        let Some(rq) = self.ledger.completing(event) else {
            let bare = |e: &super::ledger::Entry| e.flush && e.is(event);
            if let Some(rq) = self.ledger.oldest(At::Fresh, bare) {
                self.ledger.close(rq);
            }
            return;
        };
        if self.ledger.complete(rq, event.sectors) {
            self.flushes.data_ended(rq);
            self.ledger.close(rq);
            self.in_device = self.in_device.saturating_sub(1);
        }
    }

    /// The request is with the device: nobody else has it.
    fn forget(&mut self, rq: RequestId) {
        for list in self.expected.values_mut().chain(self.ctxs.values_mut()) {
            list.retain(|&other| other != rq);
        }
        for hctx in &mut self.hctxs {
            hctx.dispatch.retain(|&other| other != rq);
        }
        for task in self.tasks.values_mut() {
            task.plug.retain(|&other| other != rq);
            task.fresh = task.fresh.filter(|&other| other != rq);
        }
    }

    /// Both queues, to print.
    fn show(&self) -> String {
        let list = |requests: &mut dyn Iterator<Item = RequestId>| {
            let names: Vec<String> = requests
                .map(|rq| self.ledger.entry(rq).to_string())
                .collect();
            names.join(", ")
        };
        let mut text = String::from("kernel's queue:\n");
        text.push_str(&self.ledger.show_queued("  "));
        text.push_str("model's queue:\n");
        for (pid, task) in &self.tasks {
            let mut all = task.plug.iter().chain(&task.fresh).copied();
            if !task.plug.is_empty() || task.fresh.is_some() {
                text.push_str(&format!("  plug of task {pid}: {}\n", list(&mut all)));
            }
        }
        for (cpu, ctx) in self.ctxs.iter().filter(|(_, ctx)| !ctx.is_empty()) {
            let names = list(&mut ctx.iter().copied());
            text.push_str(&format!("  software queue of CPU {cpu}: {names}\n"));
        }
        for (index, hctx) in self.hctxs.iter().enumerate() {
            let names = list(&mut hctx.dispatch.iter().copied());
            text.push_str(&format!(
                "  hctx {index}: dispatch [{names}] busy={}\n",
                hctx.busy
            ));
        }
        for (cpu, next) in self.expected.iter().filter(|(_, next)| !next.is_empty()) {
            let names = list(&mut next.iter().copied());
            text.push_str(&format!("  CPU {cpu} hands over: {names}\n"));
        }
        text
    }
}
