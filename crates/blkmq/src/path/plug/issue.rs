//! Direct issue: requests of a queue without scheduler go to the driver at once.
//!
//! Kernel: blk_mq_try_issue_directly(), blk_mq_try_issue_list_directly(),
//! blk_mq_plug_issue_direct() (6.1.192, 6.12.117).

use super::{At, Mode, Outcome, PlugPath};
use crate::call::{Call, Inserts, ThenRun};
use crate::env::{Answer, Cpu, TraceAction};
use crate::path::driver::is_stopped;
use crate::path::list::{busy_after, requeue_bookkeeping};
use crate::path::tag;
use crate::queue::RequestQueue;
use crate::request::RequestId;
use crate::rules::{Fix, LastHint, PlugRun, StarvedIssue, StoppedIssue};
use crate::step::{Cx, Next, Sub};

impl PlugPath {
    pub(super) fn issue(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Next => self.next_request(cx),
            At::Stopped => match is_stopped(cx.q, cx.hctx(self.hctx), cx.cpu) {
                true if cx.rules().stopped_issue != StoppedIssue::Unseen => self.insert_stopped(cx),
                _ => self.to(At::Quiesced),
            },
            At::Quiesced => match cx.q.quiesced.test(cx.cpu) {
                true => self.insert_stopped(cx),
                false if cx.q.settings.driver_budget => {
                    self.at = At::Budget;
                    Next::Budget
                }
                false => self.want_tag(cx.q, cx.cpu),
            },
            At::Budget => match core::mem::take(&mut cx.cpu.answer) {
                Answer::Budget(token) => {
                    let rq = self.rq.expect("one is being issued");
                    cx.pool()[rq].budget = Some(token);
                    self.want_tag(cx.q, cx.cpu)
                }
                _ => self.no_resource(cx),
            },
            At::Tag => self.tag(cx),
            At::NoTag => self.no_resource(cx),
            At::Answer => self.answer(cx),
            At::Refused => {
                // The refused request is on the dispatch list: run the hctx for it. If more of the
                // group is left, the run after their insertion does that.
                let any = cx.rules().fixes.has(Fix::RefusedRun) && self.mode != Mode::Group;
                let only_last = !any && self.has_more();
                self.at = At::Issued;
                if only_last {
                    Next::Step
                } else {
                    cx.run(self.hctx, false)
                }
            }
            At::Issued => self.issued(cx),
            At::BusyWrite => {
                let busy = core::mem::take(&mut self.busy);
                cx.hctx(self.hctx).dispatch_busy.write(cx.cpu, busy);
                self.settle(cx)
            }
            at => unreachable!("{at:?} is a label of the plug"),
        }
    }

    /// It has seen that the hctx is not stopped, and relies on it.
    pub(in crate::path) fn in_section(&self) -> bool {
        matches!(
            self.at,
            At::Quiesced | At::Budget | At::Tag | At::NoTag | At::Answer
        )
    }

    /// More directly issued requests follow the current one.
    fn has_more(&self) -> bool {
        match self.mode {
            Mode::Plug => !self.rest.is_empty(),
            Mode::Single | Mode::Group => !self.group.is_empty(),
        }
    }

    pub(super) fn next_request(&mut self, cx: &mut Cx<'_>) -> Next {
        let next = match self.mode {
            Mode::Single => self.only.take(),
            Mode::Plug => self.rest.first().map(|entry| entry.rq),
            Mode::Group => self.group.first(),
        };
        let Some(rq) = next else {
            return self.to(At::Issued);
        };
        let mut pool = cx.pool();
        let elsewhere = pool[rq].hctx != self.hctx;
        if self.mode == Mode::Plug
            && elsewhere
            && self.queued > 0
            && cx.q.settings.driver_commit_rqs
        {
            // The next hctx: the driver of the last one was notified that more will come.
            drop(pool);
            let queued = core::mem::take(&mut self.queued);
            cx.trace_count(TraceAction::Unplug, u64::from(queued));
            return Next::commit(self.hctx);
        }
        self.rq = Some(rq);
        self.hctx = pool[rq].hctx;
        self.ctx = pool[rq].ctx.0;
        if self.mode == Mode::Group {
            self.group.pop_front(&mut pool);
        }
        drop(pool);
        if self.mode == Mode::Plug {
            self.rest.pop_front(cx.mq, cx.cpu.id);
        }
        self.to(At::Stopped)
    }

    fn want_tag(&mut self, q: &RequestQueue, cpu: &Cpu) -> Next {
        let rq = self.rq.expect("one is being issued");
        if tag::wants_driver_tag(&q.pool.held(cpu.id)[rq]) {
            return self.to(At::Tag);
        }
        self.offer(rq)
    }

    fn offer(&mut self, rq: RequestId) -> Next {
        self.at = At::Answer;
        Next::offer(rq, !self.has_more())
    }

    fn tag(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.expect("one is being issued");
        let step = tag::search_driver(cx, &mut self.get, rq, self.hctx);
        if let Sub::Wait(next) = step {
            return next;
        }
        if step == Sub::Done(true) {
            return self.offer(rq);
        }
        self.at = At::NoTag;
        match cx.pool()[rq].budget.take() {
            Some(token) => Next::PutBudget(token),
            None => Next::Step,
        }
    }

    /// The hctx is stopped or the queue quiesced.
    fn insert_stopped(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.take().expect("one is being issued");
        self.queued += 1;
        self.at = At::Next;
        cx.call(Call::Insert(Inserts::insert_stopped(cx.q, rq)))
    }

    /// No budget or no tag: a single request is inserted; in a list this ends direct issue.
    fn no_resource(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.take().expect("one is being issued");
        if self.mode == Mode::Single {
            self.at = At::Next;
            let nowait = cx.q.with_pool(|pool| pool[rq].flags.nowait);
            let run = match cx.rules().starved_issue {
                StarvedIssue::NowaitInBackground if nowait => ThenRun::Background,
                _ => ThenRun::Here,
            };
            let path = Inserts::new(self.queue, rq, false, run);
            return cx.call(Call::Insert(path));
        }
        self.refuse(rq, cx.cpu)
    }

    /// The device's answer first changes the moving average, request by request.
    fn answer(&mut self, cx: &mut Cx<'_>) -> Next {
        self.outcome = match core::mem::take(&mut cx.cpu.answer) {
            Answer::Ok => Outcome::Taken,
            Answer::Error(status) => Outcome::Failed(status),
            _ => Outcome::Refused,
        };
        let value = cx.hctx(self.hctx).dispatch_busy.read(cx.cpu);
        let refused = self.outcome == Outcome::Refused;
        let Some(busy) = busy_after(value, refused) else {
            return self.settle(cx);
        };
        self.busy = busy;
        self.to(At::BusyWrite)
    }

    /// Acts on the driver's answer.
    fn settle(&mut self, cx: &mut Cx<'_>) -> Next {
        let rq = self.rq.take().expect("one was offered");
        match core::mem::take(&mut self.outcome) {
            Outcome::Taken => {
                self.queued += 1;
                self.failed &= cx.rules().last_hint == LastHint::TagAhead;
                self.next_request(cx)
            }
            Outcome::Failed(status) => {
                self.failed = true;
                self.at = At::Next;
                cx.call(Call::End {
                    queue: self.queue,
                    rq,
                    status,
                })
            }
            Outcome::Refused => {
                let mut pool = cx.pool();
                pool[rq].budget = None;
                requeue_bookkeeping(&mut pool, rq);
                drop(pool);
                cx.trace_rq(TraceAction::Requeue, rq);
                self.refuse(rq, cx.cpu)
            }
        }
    }

    /// The refused request keeps its driver tag and waits on the dispatch list.
    fn refuse(&mut self, rq: RequestId, cpu: &mut Cpu) -> Next {
        self.failed = true;
        self.at = At::Refused;
        let path = Inserts::bypass(self.queue, rq, false, ThenRun::No);
        Next::call(cpu, Call::Insert(path))
    }

    /// A list that ended early: commit_rqs. v6.1 calls it for a plug even if no request was queued,
    /// and traces nothing for a group.
    fn issued(&mut self, cx: &mut Cx<'_>) -> Next {
        let queued = core::mem::take(&mut self.queued);
        let early = core::mem::take(&mut self.failed) && self.mode != Mode::Single;
        let old = cx.rules().last_hint == LastHint::TagAhead;
        let speaks = queued > 0 || (old && self.mode == Mode::Plug);
        if !early || !speaks || !cx.q.settings.driver_commit_rqs {
            return self.after_issue(cx.q);
        }
        if !old || self.mode == Mode::Plug {
            cx.trace_count(TraceAction::Unplug, u64::from(queued));
        }
        Next::commit(self.hctx)
    }

    /// Requests that could not be issued are inserted as any others.
    fn after_issue(&mut self, q: &RequestQueue) -> Next {
        match self.mode {
            Mode::Single => Next::Done,
            Mode::Plug => {
                self.at = At::Group;
                Next::Step
            }
            Mode::Group if self.group.is_empty() => self.to(match q.settings.rules.plug_run {
                PlugRun::IfInserted => At::Group,
                PlugRun::Always => At::Run,
            }),
            Mode::Group => self.want_ctx(),
        }
    }
}
