//! Decisions that the trace has not shown yet, and the model that makes them.
//!
//! A decision can be replaced by the kernel's, and all that was done since is done again. Not
//! here: when decisions are made (`layer.rs`), and other orders of them (`search.rs`).

use blkmq::elevator::{DispatchTime, Scheduler as _};
use blkmq::request::RequestId;
use blkmq::time::{Duration, Jiffies, SimTime};

use super::event::Event;
use super::layer::{Asked, Token};
use super::model::{Call, Model, Step};
use super::replay::Replay;
use super::setup::Setup;

/// Added to ticks since the machine's start, so that none is before tick 0: only differences count.
const TICKS_BEFORE: Jiffies = Jiffies(1 << 32);
/// How far a record can stand from the scheduler's look at the tick.
const TICK_EDGE: Duration = Duration::from_micros(30);
/// Steps that are kept though no decision needs them any more.
const LOG_SLACK: usize = 4096;

/// A decision that the trace has not shown yet.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) token: Token,
    pub(super) rq: RequestId,
    /// Its step in the log; the largest number if it is in none (the driver gave it back).
    pub(super) step: usize,
    /// The model just before.
    pub(super) before: Model,
    /// Made by a CPU of which the layer knows nothing: in none of its lists.
    pub(super) unseen: bool,
    /// Time of the event at which it was made.
    pub(super) made: SimTime,
}

/// Decisions and the model that makes them.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    pub(super) replay: Replay<'a>,
    pub(super) decisions: Vec<Decision>,
    /// With several CPUs: the model before the first step of the log, which is always kept.
    pub(super) anchor: Option<Model>,
    tokens: u64,
    pub(super) now: SimTime,
}

impl<'a> Desk<'a> {
    pub(super) fn new(setup: &'a Setup, events: &[Event]) -> Desk<'a> {
        let cpus: usize = setup.hctxs.iter().map(|hctx| hctx.cpus.len()).sum();
        let mut replay = Replay::new(setup, events);
        let anchor = (cpus > 1).then(|| replay.model.clone());
        replay.logging = anchor.is_some();
        Desk {
            replay,
            decisions: Vec::new(),
            anchor,
            tokens: 0,
            now: SimTime::ZERO,
        }
    }

    /// The tick of an instant: the clock of blktrace and the tick start together.
    pub(super) fn tick(&self, now: SimTime) -> Jiffies {
        TICKS_BEFORE + now.jiffies(self.replay.setup.hz)
    }

    pub(super) fn call(&self) -> Call {
        Call::at(DispatchTime::at(self.tick(self.now)))
    }

    pub(super) fn new_token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// A request that only the model has (it merged otherwise) belongs to the first.
    pub(super) fn hctx_of_request(&self, rq: RequestId) -> usize {
        let ledger = &self.replay.ledger;
        if !ledger.is_live(rq) {
            return 0;
        }
        self.replay.setup.hctx_of(ledger.entry(rq).cpu)
    }

    pub(super) fn decision(&self, token: Token) -> &Decision {
        let found = self.decisions.iter().find(|d| d.token == token);
        found.expect("tokens of the layer are decisions that are not shown yet")
    }
}

impl Asked for Desk<'_> {
    fn has_work(&self) -> bool {
        self.replay.model.dd.has_work()
    }

    fn decide(&mut self) -> Option<Token> {
        let call = self.call();
        let before = self.replay.model.clone();
        let answer = self.replay.model.ask(call);
        let step = self.replay.log.len();
        if answer.is_some() || self.replay.logging {
            self.replay.log.push(Step::Dispatch {
                call,
                answer,
                forced: false,
            });
        }
        let rq = answer?;
        self.replay.logging = true;
        let token = self.new_token();
        self.decisions.push(Decision {
            token,
            rq,
            step,
            before,
            unseen: false,
            made: self.now,
        });
        Some(token)
    }

    fn hctx_of(&self, token: Token) -> usize {
        self.hctx_of_request(self.decision(token).rq)
    }
}

impl Desk<'_> {
    /// A record stands some microseconds before or after the scheduler's look at the tick: if the
    /// tick changed around it, the decision may have been made in the other one. True if it was
    /// `kernel` then; the step is changed, and nothing else.
    pub(super) fn move_tick(&mut self, token: Token, kernel: RequestId) -> bool {
        let Some(decision) = self.decisions.iter().find(|d| d.token == token) else {
            return false;
        };
        let before = SimTime(decision.made.0.saturating_sub(TICK_EDGE.0));
        let others = [self.tick(before), self.tick(decision.made + TICK_EDGE)];
        let Some(Step::Dispatch { call, .. }) = self.replay.log.get_mut(decision.step) else {
            return false;
        };
        let calls = others.map(|other| Call::at(DispatchTime::at(other)));
        let fits =
            |other: &Call| other != call && decision.before.would_choose(*other) == Some(kernel);
        let Some(other) = calls.into_iter().find(fits) else {
            return false;
        };
        *call = other;
        true
    }

    /// Puts the kernel's choice in the place of a decision and makes all that followed again.
    /// Decisions for which nothing is left are answered: they are none.
    pub(super) fn correct(&mut self, token: Token, kernel: RequestId) -> Vec<Token> {
        let desk = self;
        let at = desk.decisions.iter().position(|d| d.token == token);
        let at = at.expect("the layer's tokens are decisions");
        if desk.decisions[at].step == usize::MAX {
            return Vec::new();
        }
        let first = desk.decisions[at].step;
        // A request that came after the decision: that was none, then, and one is made now.
        let created = |step: &Step| matches!(step, Step::Create { rq, .. } if *rq == kernel);
        let late = !desk.decisions[at].before.holds(kernel)
            || desk.replay.log[first..].iter().any(created);
        let mut void: Vec<Token> = Vec::new();
        let shown = shown_after(desk, first);
        let mut model = desk.decisions[at].before.clone();
        for index in first..desk.replay.log.len() {
            let mut step = desk.replay.log[index].clone();
            if let Step::Dispatch {
                call,
                answer,
                forced,
            } = &mut step
            {
                let decision = desk.decisions.iter_mut().find(|d| d.step == index);
                if let Some(decision) = decision {
                    let wanted = if index == first { Some(kernel) } else { None };
                    decision.before = model.clone();
                    *forced = index == first;
                    *answer = if late && index == first {
                        None
                    } else {
                        choose(&mut model, *call, wanted, decision.rq, &shown)
                    };
                    match *answer {
                        Some(rq) => decision.rq = rq,
                        None if index > first => void.push(decision.token),
                        None => {}
                    }
                    desk.replay.log[index] = step;
                    continue;
                }
                // Shown already.
                if answer.is_some_and(|rq| !model.holds(rq)) {
                    continue;
                }
            }
            model.apply(&step);
        }
        let ledger = &desk.replay.ledger;
        model.keep_only(|rq| ledger.is_live(rq));
        desk.replay.model = model;
        if late && desk.replay.model.holds(kernel) {
            let call = desk.call();
            let answer = Some(kernel);
            desk.replay.apply(Step::Dispatch {
                call,
                answer,
                forced: true,
            });
        }
        desk.decisions.retain(|d| !void.contains(&d.token));
        void
    }

    /// Drops what no open decision needs.
    pub(super) fn forget(&mut self) {
        if self.anchor.is_some() {
            self.trim();
            return;
        }
        let desk = self;
        let steps = desk.decisions.iter().map(|d| d.step);
        let Some(first) = steps.filter(|&step| step != usize::MAX).min() else {
            desk.replay.logging = false;
            desk.replay.log.clear();
            return;
        };
        if first > LOG_SLACK {
            desk.replay.log.drain(..first);
            for decision in &mut desk.decisions {
                if decision.step != usize::MAX {
                    decision.step -= first;
                }
            }
        }
    }
}

/// Decides anew: what is wanted, else what the model says, else as before if that can be.
fn choose(
    model: &mut Model,
    call: Call,
    wanted: Option<RequestId>,
    before: RequestId,
    shown: &[RequestId],
) -> Option<RequestId> {
    let saved = model.clone();
    let free = model.ask(call).filter(|rq| !shown.contains(rq));
    if free.is_some() && (wanted.is_none() || wanted == free) {
        return free;
    }
    *model = saved;
    let rq = wanted.unwrap_or(before);
    model.holds(rq).then(|| {
        model.impose(rq);
        rq
    })
}

/// What the trace has shown of decisions from step `first` on: that stands.
fn shown_after(desk: &Desk, first: usize) -> Vec<RequestId> {
    let open = |step: usize| desk.decisions.iter().any(|d| d.step == step);
    let later = desk.replay.log.iter().enumerate().skip(first);
    later
        .filter(|&(index, _)| !open(index))
        .filter_map(|(_, step)| match step {
            Step::Dispatch { answer, .. } => *answer,
            _ => None,
        })
        .collect()
}
