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
use crate::queue::{BlkMq, RequestQueue};
use crate::request::RequestId;
use crate::rules::{Fix, LastHint, PlugRun, StarvedIssue, StoppedIssue};
use crate::step::{Next, Sub, Traced, call_run, trace_count, trace_rq};

impl PlugPath {
    pub(super) fn issue(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        match self.at {
            At::Next => self.next_request(mq, cpu),
            At::Stopped => match is_stopped(q, q.hctx(self.hctx), cpu) {
                true if q.settings.rules.stopped_issue != StoppedIssue::Unseen => {
                    self.insert_stopped(q, cpu)
                }
                _ => self.to(At::Quiesced),
            },
            At::Quiesced => match q.quiesced.test(cpu) {
                true => self.insert_stopped(q, cpu),
                false if q.settings.driver_budget => {
                    self.at = At::Budget;
                    Next::Budget
                }
                false => self.want_tag(q, cpu),
            },
            At::Budget => match core::mem::take(&mut cpu.answer) {
                Answer::Budget(token) => {
                    let rq = self.rq.expect("one is being issued");
                    q.pool.held(cpu.id)[rq].budget = Some(token);
                    self.want_tag(q, cpu)
                }
                _ => self.no_resource(q, cpu),
            },
            At::Tag => self.tag(mq, cpu),
            At::NoTag => self.no_resource(q, cpu),
            At::Answer => self.answer(mq, cpu),
            At::Refused => {
                // The refused request is on the dispatch list: run the hctx for it. If more of the
                // group is left, the run after their insertion does that.
                let any = q.settings.rules.fixes.has(Fix::RefusedRun) && self.mode != Mode::Group;
                let only_last = !any && self.has_more();
                self.at = At::Issued;
                if only_last {
                    Next::Step
                } else {
                    call_run(cpu, self.queue, self.hctx, false)
                }
            }
            At::Issued => self.issued(mq, cpu),
            At::BusyWrite => {
                let busy = core::mem::take(&mut self.busy);
                q.hctx(self.hctx).dispatch_busy.write(cpu, busy);
                self.settle(mq, cpu)
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

    pub(super) fn next_request(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let next = match self.mode {
            Mode::Single => self.only.take(),
            Mode::Plug => self.rest.first().map(|entry| entry.rq),
            Mode::Group => self.group.first(),
        };
        let Some(rq) = next else {
            return self.to(At::Issued);
        };
        let q = mq.queue(self.queue);
        let mut pool = q.pool.held(cpu.id);
        let elsewhere = pool[rq].hctx != self.hctx;
        if self.mode == Mode::Plug && elsewhere && self.queued > 0 && q.settings.driver_commit_rqs {
            // The next hctx: the driver of the last one was notified that more will come.
            drop(pool);
            let queued = core::mem::take(&mut self.queued);
            trace_count(cpu, self.queue, TraceAction::Unplug, u64::from(queued));
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
            self.rest.pop_front(mq, cpu.id);
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

    fn tag(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let rq = self.rq.expect("one is being issued");
        let step = tag::search_driver(&mut self.get, mq, self.queue, rq, self.hctx, cpu);
        if let Sub::Wait(next) = step {
            return next;
        }
        if step == Sub::Done(true) {
            return self.offer(rq);
        }
        self.at = At::NoTag;
        match mq.queue(self.queue).pool.held(cpu.id)[rq].budget.take() {
            Some(token) => Next::PutBudget(token),
            None => Next::Step,
        }
    }

    /// The hctx is stopped or the queue quiesced.
    fn insert_stopped(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let rq = self.rq.take().expect("one is being issued");
        self.queued += 1;
        self.at = At::Next;
        Next::call(cpu, Call::Insert(Inserts::insert_stopped(q, rq)))
    }

    /// No budget or no tag: a single request is inserted; in a list this ends direct issue.
    fn no_resource(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let rq = self.rq.take().expect("one is being issued");
        if self.mode == Mode::Single {
            self.at = At::Next;
            let nowait = q.with_pool(|pool| pool[rq].flags.nowait);
            let run = match q.settings.rules.starved_issue {
                StarvedIssue::NowaitInBackground if nowait => ThenRun::Background,
                _ => ThenRun::Here,
            };
            let path = Inserts::new(self.queue, rq, false, run);
            return Next::call(cpu, Call::Insert(path));
        }
        self.refuse(rq, cpu)
    }

    /// The device's answer first changes the moving average, request by request.
    fn answer(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        self.outcome = match core::mem::take(&mut cpu.answer) {
            Answer::Ok => Outcome::Taken,
            Answer::Error(status) => Outcome::Failed(status),
            _ => Outcome::Refused,
        };
        let value = mq.queue(self.queue).hctx(self.hctx).dispatch_busy.read(cpu);
        let refused = self.outcome == Outcome::Refused;
        let Some(busy) = busy_after(value, refused) else {
            return self.settle(mq, cpu);
        };
        self.busy = busy;
        self.to(At::BusyWrite)
    }

    /// Acts on the driver's answer.
    fn settle(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        let rq = self.rq.take().expect("one was offered");
        match core::mem::take(&mut self.outcome) {
            Outcome::Taken => {
                self.queued += 1;
                self.failed &= q.settings.rules.last_hint == LastHint::TagAhead;
                self.next_request(mq, cpu)
            }
            Outcome::Failed(status) => {
                self.failed = true;
                self.at = At::Next;
                Next::call(
                    cpu,
                    Call::End {
                        queue: self.queue,
                        rq,
                        status,
                    },
                )
            }
            Outcome::Refused => {
                let mut pool = q.pool.held(cpu.id);
                pool[rq].budget = None;
                requeue_bookkeeping(&mut pool, rq);
                let traced = Traced::rq(cpu.tracing, &pool, rq);
                drop(pool);
                trace_rq(cpu, self.queue, TraceAction::Requeue, traced);
                self.refuse(rq, cpu)
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
    fn issued(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        let queued = core::mem::take(&mut self.queued);
        let early = core::mem::take(&mut self.failed) && self.mode != Mode::Single;
        let old = q.settings.rules.last_hint == LastHint::TagAhead;
        let speaks = queued > 0 || (old && self.mode == Mode::Plug);
        if !early || !speaks || !q.settings.driver_commit_rqs {
            return self.after_issue(q);
        }
        if !old || self.mode == Mode::Plug {
            trace_count(cpu, self.queue, TraceAction::Unplug, u64::from(queued));
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
