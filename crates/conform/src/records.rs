//! Mode records: every `D` of blktrace under mq-deadline, with nothing but records.
//!
//! When the scheduler was asked is inferred from the rules of `layer.rs`. A run of a queue that
//! ends with the driver having a request shows in the trace, at the `D` itself; one that does not
//! (no tag is free, or the scheduler gives nothing) is taken to happen where it was caused.

use std::collections::BTreeMap;

use blkmq::request::{Op, RequestId};
use blkmq::time::SimTime;

mod sides;

use super::Error;
use super::desk::{Decision, Desk};
use super::event::{Event, Events, Kind};
use super::flushes::Flushes;
use super::layer::{Asked, Layer, Token};
use super::ledger::At;
use super::model::Step;
use super::plugs::Batches;
use super::replay::Arrival;
use super::setup::Setup;
use super::verdict::{Judge, Unjudged, show_queues, show_request};

#[derive(Debug)]
struct Records<'a> {
    desk: Desk<'a>,
    layer: Layer,
    batches: Batches,
    flushes: Flushes,
    /// Events so far.
    number: usize,
    /// Which event inserted each request that waits.
    inserted: BTreeMap<RequestId, usize>,
    /// Latest event of each CPU that handed a request over.
    issuers: BTreeMap<u16, usize>,
}

/// Compares every D of every device. Devices that share tags are replayed together.
pub(super) fn judge(
    capture: &str,
    setups: &[Setup],
    traces: &[Events],
    judge: &mut Judge,
) -> Result<(), Error> {
    let mut devices: Vec<Records> = Vec::new();
    for (setup, events) in setups.iter().zip(traces) {
        devices.push(Records::new(setup, &events.list));
    }
    let mut order: Vec<(SimTime, usize, usize)> = Vec::new();
    for (device, events) in traces.iter().enumerate() {
        let of_device = events.list.iter().enumerate();
        order.extend(of_device.map(|(index, event)| (event.time, device, index)));
    }
    order.sort();
    for (_, device, index) in order {
        let event = &traces[device].list[index];
        judge.start(&setups[device].device, traces[device].list[0].time);
        share_tags(&mut devices, device);
        devices[device].take(event, judge).map_err(|what| {
            let replay = &devices[device].desk.replay;
            replay.contradiction(capture, event, what)
        })?;
        wake_others(&mut devices, device, event.kind);
    }
    Ok(())
}

/// Tags that the other devices of a shared set hold.
fn share_tags(devices: &mut [Records], device: usize) {
    if !devices[device].desk.replay.setup.queue_shared {
        return;
    }
    for map in 0..devices[device].layer.used.len() {
        let of = |other: &Records| other.layer.used.get(map).copied().unwrap_or(0);
        let all: u32 = devices.iter().map(of).sum();
        let others = devices
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != device);
        let active = |other: &Records| other.layer.active.get(map).is_some_and(|on| *on);
        let users = others.filter(|(_, other)| active(other)).count() as u32;
        let layer = &mut devices[device].layer;
        layer.foreign[map] = all - layer.used[map];
        layer.other_users[map] = users;
    }
}

/// A completion gives a shared tag back: another device may have waited for it.
fn wake_others(devices: &mut [Records], device: usize, kind: Kind) {
    let completed = matches!(kind, Kind::Complete { .. });
    if !completed || !devices[device].desk.replay.setup.queue_shared {
        return;
    }
    for (other, records) in devices.iter_mut().enumerate() {
        if other != device {
            records.layer.wake_one();
        }
    }
}

impl<'a> Records<'a> {
    fn new(setup: &'a Setup, events: &[Event]) -> Records<'a> {
        Records {
            desk: Desk::new(setup, events),
            layer: Layer::new(setup),
            batches: Batches::default(),
            flushes: Flushes::new(setup),
            number: 0,
            inserted: BTreeMap::new(),
            issuers: BTreeMap::new(),
        }
    }

    fn take(&mut self, event: &Event, judge: &mut Judge) -> Result<(), String> {
        event.check()?;
        self.delayed_runs(event);
        self.desk.now = event.time;
        self.desk.replay.overdue(event, judge);
        match event.kind {
            Kind::Get => {
                let rq = self.desk.replay.get(event)?;
                let hctx = self.desk.replay.setup.hctx_of(event.cpu);
                self.flushes.open(rq, event, hctx);
            }
            Kind::BioMerge { front } => self.desk.replay.bio_merge(event, front, judge)?,
            Kind::Unplug { count, sleeps } => self.batches.unplug(event.pid, count, sleeps),
            Kind::Insert => {
                let now = self.desk.tick(event.time);
                self.desk.replay.insert(event, arrival(event), now, judge)?;
                let ledger = &self.desk.replay.ledger;
                let is = ledger
                    .iter()
                    .filter(|(_, e)| e.at == At::Queued && e.is(event));
                if let Some((rq, _)) = is.max_by_key(|(_, e)| e.age) {
                    self.inserted.insert(rq, self.number);
                }
                self.inserted(event);
            }
            Kind::RequestMerge => {
                let fresh = self.desk.replay.ledger.fresh(event).is_some();
                let now = self.desk.tick(event.time);
                self.desk
                    .replay
                    .request_merge(event, arrival(event), now, judge)?;
                if fresh {
                    self.inserted(event);
                }
            }
            Kind::Issue => {
                self.issuers.insert(event.cpu, self.number);
                self.issue(event, judge);
            }
            Kind::Requeue => self.requeue(event),
            Kind::Complete { .. } => self.complete(event, judge),
            _ => {}
        }
        self.number += 1;
        self.resync();
        self.settle(event.cpu);
        self.desk.forget();
        if cfg!(debug_assertions) && self.desk.replay.is_settled() {
            self.check();
        }
        Ok(())
    }

    /// A request has reached the scheduler: its queue is run once the whole batch has.
    fn inserted(&mut self, event: &Event) {
        if self.batches.one_in(event.pid) {
            let hctx = self.desk.replay.setup.hctx_of(event.cpu);
            self.layer.kick(hctx);
        }
    }

    fn complete(&mut self, event: &Event, judge: &mut Judge) {
        let own = self.desk.replay.setup.hctx_of(event.cpu);
        if let Some(hctx) = self.flushes.complete(event, own) {
            self.layer.put(hctx);
            return;
        }
        let Some(rq) = self.desk.replay.complete(event) else {
            if let Some(early) = self.desk.replay.complete_early(event) {
                judge.note("a request completed before the driver had it");
                let cpu = self.desk.replay.ledger.entry(early).cpu;
                self.layer.put(self.desk.replay.setup.hctx_of(cpu));
            }
            return;
        };
        let entry = self.desk.replay.ledger.entry(rq);
        let hctx = self.desk.replay.setup.hctx_of(entry.cpu);
        let had_tag = entry.at == At::Issued;
        self.flushes.data_ended(rq);
        self.desk.replay.finish(rq);
        if had_tag {
            self.layer.put(hctx);
        }
    }

    /// Delayed runs whose tick has come before this event.
    fn delayed_runs(&mut self, event: &Event) {
        let hz = self.desk.replay.setup.hz;
        loop {
            let due = self.layer.next_delayed();
            let Some((hctx, at)) = due.filter(|&(_, at)| at <= event.time.jiffies(hz)) else {
                return;
            };
            let first = self.desk.replay.setup.hctxs[hctx].cpus.first();
            self.desk.now = SimTime(at.0 * (1_000_000_000 / u64::from(hz)));
            self.layer.kick(hctx);
            self.settle(first.copied().unwrap_or(0));
        }
    }

    /// Runs what would leave no trace.
    fn settle(&mut self, cpu: u16) {
        for hctx in 0..self.layer.hctxs.len() {
            if self.layer.hctxs[hctx].kicked && !self.would_issue(hctx) {
                let now = self.desk.now;
                self.layer.run(hctx, cpu, now, &mut self.desk);
            }
        }
    }

    /// A run of this queue now would hand a request to the driver.
    fn would_issue(&self, hctx: usize) -> bool {
        let budget = self.layer.budget_free();
        if let Some(&token) = self.layer.hctxs[hctx].dispatch.first() {
            return budget && self.layer.tag_free(self.desk.hctx_of(token));
        }
        if !budget || !self.desk.has_work() {
            return false;
        }
        let replay = &self.desk.replay;
        replay
            .model
            .would_choose(self.desk.call())
            .is_some_and(|rq| self.layer.tag_free(self.desk.hctx_of_request(rq)))
    }

    /// D: the next that the model hands over is this one.
    fn issue(&mut self, event: &Event, judge: &mut Judge) {
        let ledger = &self.desk.replay.ledger;
        let queued = ledger.oldest(At::Queued, |e| e.is(event));
        let kernel = queued.or_else(|| ledger.oldest(At::Chosen, |e| e.is(event)));
        let Some(kernel) = kernel else {
            self.issue_around(event, judge);
            return;
        };
        if self.several_cpus() && self.issue_chosen(kernel) {
            judge.hit();
            return;
        }
        let token = self.next_expected(event.cpu);
        let holder = self.holder_of(kernel);
        if token.is_some() && token == holder {
            judge.hit();
            self.shown(holder);
        } else if self.several_cpus() && self.issue_chosen(kernel) {
            judge.hit();
            return;
        } else if self.several_cpus() && self.explain(token, kernel)
            || token.is_some_and(|token| self.beside_tick(token, kernel))
        {
            judge.hit();
        } else {
            if self.is_race(token, kernel) {
                self.desk.replay.has_differed();
                judge.unjudged(Unjudged::Order);
            } else {
                self.report(event, token, judge);
            }
            match (token, holder) {
                (Some(token), Some(held))
                    if self.desk.hctx_of(token) == self.desk.hctx_of(held) =>
                {
                    self.layer.swap(token, held);
                    self.shown(Some(held));
                }
                (Some(token), None) => {
                    self.correct(token, kernel);
                    if let Some(held) = self.holder_of(kernel).filter(|&held| held != token) {
                        // A decision after this one takes it, and this one took nothing.
                        self.layer.swap(token, held);
                        self.layer.withdraw(token);
                        self.shown(Some(held));
                    }
                    self.shown(Some(token));
                }
                (_, Some(held)) => {
                    // Its tag is counted already if it was about to go.
                    if !self.layer.expects(held) {
                        self.layer.withdraw(held);
                        self.account(kernel);
                    }
                    self.shown(Some(held));
                }
                (None, None) => {
                    let call = self.desk.call();
                    let answer = Some(kernel);
                    self.desk.replay.apply(Step::Dispatch {
                        call,
                        answer,
                        forced: true,
                    });
                    self.account(kernel);
                }
            }
        }
        self.is_issued(kernel);
    }

    /// The decision was made in the tick beside that of its record.
    fn beside_tick(&mut self, token: Token, kernel: RequestId) -> bool {
        if !self.desk.move_tick(token, kernel) {
            return false;
        }
        self.correct(token, kernel);
        self.shown(Some(token));
        true
    }

    /// The kernel's choice takes the place of a decision.
    fn correct(&mut self, token: Token, kernel: RequestId) {
        for void in self.desk.correct(token, kernel) {
            self.layer.withdraw(void);
        }
    }

    /// With several CPUs: is the request one that the model has chosen? Which CPU hands over
    /// first, and in which order several put requests on a dispatch list, is not recorded.
    fn issue_chosen(&mut self, kernel: RequestId) -> bool {
        let Some(held) = self.holder_of(kernel) else {
            return false;
        };
        if !self.layer.expects(held) {
            self.layer.withdraw(held);
            self.account(kernel);
        }
        self.shown(Some(held));
        self.is_issued(kernel);
        true
    }

    fn is_issued(&mut self, kernel: RequestId) {
        let entry = self.desk.replay.ledger.entry_mut(kernel);
        entry.at = At::Issued;
        if entry.ended_early {
            self.desk.replay.finish(kernel);
        }
    }

    /// With several CPUs neither the moment of a decision nor that of a freed tag is recorded:
    /// looks for ones that fit the rules, and goes on from there.
    fn explain(&mut self, token: Option<Token>, kernel: RequestId) -> bool {
        let own = token.map_or(0, |token| self.desk.hctx_of(token));
        let call = self.desk.call();
        let Some(found) = self.desk.find(token, kernel, call) else {
            return false;
        };
        for void in self.desk.adopt(found) {
            self.layer.withdraw(void);
        }
        if let Some(token) = token {
            self.layer.give_back(own);
            self.shown(Some(token));
        }
        self.account(kernel);
        true
    }

    /// Which of two requests was chosen first is not recorded: since both waited more than one CPU
    /// has handed requests over. With one CPU, or while only one was at it, the order of records is
    /// the order of decisions, and another one is a divergence.
    fn is_race(&self, token: Option<Token>, kernel: RequestId) -> bool {
        let model = token.map(|token| self.desk.decision(token).rq);
        let since = |rq: RequestId| self.inserted.get(&rq).copied();
        let both = since(kernel).max(model.and_then(since));
        let Some(both) = both.filter(|_| self.several_cpus()) else {
            return false;
        };
        self.issuers
            .values()
            .filter(|&&latest| latest >= both)
            .count()
            > 1
    }

    fn several_cpus(&self) -> bool {
        self.desk.anchor.is_some()
    }

    /// The decision that chose this request.
    fn holder_of(&self, rq: RequestId) -> Option<Token> {
        let found = self.desk.decisions.iter().find(|d| d.rq == rq);
        found.map(|d| d.token)
    }

    /// A decision is in the trace now.
    fn shown(&mut self, token: Option<Token>) {
        let Some(token) = token else { return };
        self.layer.expected.retain(|&(_, other)| other != token);
        self.desk.decisions.retain(|d| d.token != token);
    }

    /// A request that the model did not hand over is with the device.
    fn account(&mut self, kernel: RequestId) {
        let cpu = self.desk.replay.ledger.entry(kernel).cpu;
        self.layer.take_tag(self.desk.replay.setup.hctx_of(cpu));
        self.layer.take_budget();
    }

    /// What the driver is expected to get next from this CPU; if that is nothing yet, a run that
    /// was pending happens now.
    fn next_expected(&mut self, cpu: u16) -> Option<Token> {
        let strict = self.several_cpus();
        if let Some(token) = self.layer.first_expected(cpu, strict) {
            return Some(token);
        }
        let own = self.desk.replay.setup.hctx_of(cpu);
        let serves = |hctx: &usize| self.desk.replay.setup.hctxs[*hctx].cpus.contains(&cpu);
        let kicked = (0..self.layer.hctxs.len())
            .filter(serves)
            .find(|&hctx| self.layer.hctxs[hctx].kicked && self.would_issue(hctx));
        let now = self.desk.now;
        self.layer
            .run(kicked.unwrap_or(own), cpu, now, &mut self.desk);
        self.layer.first_expected(cpu, strict)
    }

    /// A request that is not in the scheduler.
    fn issue_around(&mut self, event: &Event, judge: &mut Judge) {
        let fresh = self.desk.replay.ledger.fresh(event);
        if fresh.is_none() && event.op != Op::Flush {
            self.issue_unknown(event, judge);
            return;
        }
        let cpu = fresh.map_or(event.cpu, |rq| self.desk.replay.ledger.entry(rq).cpu);
        let hctx = self.desk.replay.setup.hctx_of(cpu);
        match self.flushes.issue(event, fresh, hctx) {
            Ok(()) => judge.hit(),
            Err(expected) => {
                let text = show_queues(&self.desk.replay);
                judge.miss(event.time, show_request(event), expected, text);
            }
        }
        if let Some(rq) = fresh {
            self.desk.replay.ledger.entry_mut(rq).at = At::Issued;
        }
        self.layer.take_tag(hctx);
        self.layer.take_budget();
    }

    /// Nothing that the trace shows is of this range: it stands for what the model hands over.
    fn issue_unknown(&mut self, event: &Event, judge: &mut Judge) {
        let token = self.next_expected(event.cpu);
        self.report(event, token, judge);
        if let Some(token) = token {
            let rq = self.desk.decision(token).rq;
            self.desk.replay.ledger.entry_mut(rq).at = At::Issued;
            self.shown(Some(token));
        }
    }

    /// R: the driver gave it back; it waits at the head of the dispatch list and is offered again
    /// after a while.
    fn requeue(&mut self, event: &Event) {
        let replay = &mut self.desk.replay;
        let Some(rq) = replay.ledger.oldest(At::Issued, |e| e.is(event)) else {
            return;
        };
        let entry = replay.ledger.entry_mut(rq);
        entry.at = At::Chosen;
        let hctx = replay.setup.hctx_of(entry.cpu);
        let token = self.desk.new_token();
        self.desk.decisions.push(Decision {
            token,
            rq,
            step: usize::MAX,
            before: self.desk.replay.model.clone(),
            unseen: false,
            made: self.desk.now,
        });
        self.layer.refused(hctx, token, self.desk.now);
    }

    fn report(&mut self, event: &Event, token: Option<Token>, judge: &mut Judge) {
        self.desk.replay.has_differed();
        let replay = &self.desk.replay;
        let model = match token {
            None => "nothing".to_owned(),
            Some(token) => replay
                .ledger
                .entry(self.desk.decision(token).rq)
                .to_string(),
        };
        let mut text = show_queues(replay);
        for (index, hctx) in self.layer.hctxs.iter().enumerate() {
            let waiting: Vec<String> = hctx
                .dispatch
                .iter()
                .map(|&t| replay.ledger.entry(self.desk.decision(t).rq).to_string())
                .collect();
            text.push_str(&format!(
                "  hctx {index}: dispatch [{}] restart={} busy={}\n",
                waiting.join(", "),
                u8::from(hctx.restart),
                hctx.busy
            ));
        }
        judge.miss(event.time, show_request(event), model, text);
    }
}

fn arrival(event: &Event) -> Option<Arrival> {
    event.ioprio.map(|ioprio| Arrival { rq: None, ioprio })
}
