//! Several CPUs, and nothing but records: which order of decisions explains an issue?
//!
//! A decision lies anywhere between the run that a queue was due and the D, and a request that
//! waits for a tag was chosen at any time before. So the one that is looked for is put at every
//! place since its request was queued, and decisions that the trace has not shown yet are made
//! after it, none of them first, then the newest, then more. What the trace has shown must stay.

use blkmq::request::RequestId;

use super::desk::{Decision, Desk};
use super::layer::Token;
use super::model::{Call, Model, Step};

/// Open decisions that may turn out to have been made later, at most.
const MOVED_MOST: usize = 6;
/// Steps that are kept beyond those that open decisions need.
const KEPT: usize = 64;

/// An order that explains an issue: the new log, with the token of each open decision.
#[derive(Debug)]
pub(super) struct Order {
    steps: Vec<(Step, Made)>,
}

/// What a step of an order is.
#[derive(Clone, Copy, Debug)]
enum Made {
    /// In the trace, or no decision at all.
    Shown,
    /// A decision that the trace has not shown yet.
    Open(Token),
    /// One that nobody knew of before.
    Unseen,
}

/// How an order differs from the log.
#[derive(Clone, Copy, Debug)]
struct Change<'a> {
    /// Steps that are decisions made later, or not at all.
    left_out: &'a [usize],
    /// Those made later.
    moved: &'a [Token],
    /// Decisions of other CPUs just before the one that is looked for.
    unseen: usize,
}

impl Desk<'_> {
    /// Looks for an order in which the model chooses `kernel` with one more decision, or with
    /// that of `token`.
    pub(super) fn find(
        &self,
        token: Option<Token>,
        kernel: RequestId,
        call: Call,
    ) -> Option<Order> {
        let log = &self.replay.log;
        let arrived = |step: &Step| matches!(step, Step::Insert { rq, .. } if *rq == kernel);
        let from = log.iter().rposition(arrived).map_or(0, |at| at + 1);
        let mut open: Vec<(usize, Token)> = self
            .decisions
            .iter()
            .filter(|d| d.step != usize::MAX && Some(d.token) != token)
            .map(|d| (d.step, d.token))
            .collect();
        open.sort_unstable();
        open.reverse();
        let replaced = token.map(|token| self.decision(token).step);
        (0..=self.unseen_most()).find_map(|unseen| {
            (0..=open.len().min(MOVED_MOST)).find_map(|count| {
                let mut left_out: Vec<usize> =
                    open[..count].iter().map(|&(step, _)| step).collect();
                left_out.extend(replaced);
                let moved: Vec<Token> = open[..count].iter().rev().map(|&(_, t)| t).collect();
                let change = Change {
                    left_out: &left_out,
                    moved: &moved,
                    unseen,
                };
                self.place(kernel, call, from, &change)
            })
        })
    }

    /// Decisions that other CPUs can have made and not shown, besides those that are known: each
    /// of them one, and never more than that at once.
    fn unseen_most(&self) -> usize {
        let cpus: usize = self.replay.setup.hctxs.iter().map(|h| h.cpus.len()).sum();
        let open = self.decisions.iter().filter(|d| d.unseen).count();
        (cpus - 1).saturating_sub(open)
    }

    /// The latest place for the decision when some others are made after it.
    fn place(
        &self,
        kernel: RequestId,
        call: Call,
        from: usize,
        change: &Change<'_>,
    ) -> Option<Order> {
        let left_out = change.left_out;
        let log = &self.replay.log;
        let mut model = self.anchor.clone()?;
        let mut places = Vec::new();
        for index in 0..=log.len() {
            if index >= from && model.holds(kernel) {
                let mut chosen = model.clone();
                let before = (0..change.unseen).all(|_| {
                    let other = chosen.ask(call);
                    other.is_some() && other != Some(kernel)
                });
                if before && chosen.ask(call) == Some(kernel) {
                    places.push((index, chosen));
                }
            }
            if index < log.len() && !left_out.contains(&index) {
                self.step(&mut model, index)?;
            }
        }
        let (at, _) = places
            .into_iter()
            .rev()
            .find(|(at, model)| self.rest_agrees(model.clone(), *at, left_out))?;
        let mut steps: Vec<(Step, Made)> = Vec::new();
        for index in 0..=log.len() {
            if index == at {
                let unseen = (
                    Step::Dispatch {
                        call,
                        answer: None,
                        forced: false,
                    },
                    Made::Unseen,
                );
                steps.extend(vec![unseen; change.unseen]);
                let answer = Some(kernel);
                steps.push((
                    Step::Dispatch {
                        call,
                        answer,
                        forced: false,
                    },
                    Made::Shown,
                ));
            }
            if index < log.len() && !left_out.contains(&index) {
                let made = self.open_at(index).map_or(Made::Shown, Made::Open);
                steps.push((log[index].clone(), made));
            }
        }
        for &token in change.moved {
            let answer = None;
            steps.push((
                Step::Dispatch {
                    call,
                    answer,
                    forced: false,
                },
                Made::Open(token),
            ));
        }
        Some(Order { steps })
    }

    fn rest_agrees(&self, mut model: Model, at: usize, left_out: &[usize]) -> bool {
        (at..self.replay.log.len())
            .filter(|index| !left_out.contains(index))
            .all(|index| self.step(&mut model, index).is_some())
    }

    /// The open decision that a step of the log is.
    fn open_at(&self, step: usize) -> Option<Token> {
        let found = self.decisions.iter().find(|d| d.step == step);
        found.map(|d| d.token)
    }

    /// Takes a step of the log again. Nothing if the model now says otherwise than the trace.
    fn step(&self, model: &mut Model, index: usize) -> Option<()> {
        let step = &self.replay.log[index];
        match step {
            Step::Dispatch { answer: None, .. } => Some(()),
            Step::Dispatch {
                answer: Some(rq),
                forced: true,
                ..
            } => {
                let holds = model.holds(*rq);
                model.impose(*rq);
                holds.then_some(())
            }
            Step::Dispatch { call, answer, .. } => {
                let chosen = model.ask(*call);
                let open = self.open_at(index).is_some();
                (open || chosen == *answer).then_some(())
            }
            _ => {
                model.apply(step);
                Some(())
            }
        }
    }

    /// Goes on from an order. Decisions for which nothing is left are answered: they are none.
    pub(super) fn adopt(&mut self, order: Order) -> Vec<Token> {
        let mut model = self.anchor.clone().expect("an order was found with it");
        let mut void = Vec::new();
        let mut log = Vec::new();
        for (mut step, made) in order.steps {
            match (&mut step, made) {
                (Step::Dispatch { call, answer, .. }, Made::Unseen) => {
                    let before = model.clone();
                    *answer = model.ask(*call);
                    let rq = answer.expect("the search saw it choose");
                    let token = self.new_token();
                    self.decisions.push(Decision {
                        token,
                        rq,
                        step: log.len(),
                        before,
                        unseen: true,
                        made: self.now,
                    });
                }
                (
                    Step::Dispatch {
                        call,
                        answer,
                        forced,
                    },
                    Made::Open(token),
                ) => {
                    let before = model.clone();
                    *answer = model.ask(*call);
                    *forced = false;
                    let decision = self.decisions.iter_mut().find(|d| d.token == token);
                    let decision = decision.expect("open decisions are kept");
                    match *answer {
                        Some(rq) => {
                            decision.rq = rq;
                            decision.step = log.len();
                            decision.before = before;
                        }
                        None => void.push(token),
                    }
                }
                (Step::Dispatch { answer: None, .. }, Made::Shown) => {}
                _ => {
                    model.apply(&step);
                }
            }
            log.push(step);
        }
        self.replay.log = log;
        self.replay.model = model;
        self.decisions.retain(|d| !void.contains(&d.token));
        void
    }

    /// Moves the start of the log on, as far as no open decision needs it.
    pub(super) fn trim(&mut self) {
        let Some(anchor) = &mut self.anchor else {
            return;
        };
        let steps = self.decisions.iter().map(|d| d.step);
        let needed = steps.min().unwrap_or(usize::MAX);
        let log = &mut self.replay.log;
        if log.len() < 2 * KEPT || needed < KEPT {
            return;
        }
        for step in log.drain(..KEPT) {
            anchor.apply(&step);
        }
        for decision in &mut self.decisions {
            if decision.step != usize::MAX {
                decision.step -= KEPT;
            }
        }
    }
}
