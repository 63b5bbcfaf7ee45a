//! Runs of CFQ as steps of `specs/CfqMerge`.

use blkmq::elevator::Elevator;
use blkmq::elevator::cfq::merge::{CallEvent as CfqEvent, MergeCall, QId, Tie};
use blkmq::queue::BlkMq;
use blkmq::request::IoContextId;
use blkmq::rules::{QueueMerge, RedirectedSlot};

use super::merging::{MergeEvents, QUEUE, SHARED, Steps};
use super::step_log::{Of, Value};
use crate::cfq_merge::{RUNS, Setting};

/// The stage of a request that has its queue, and no reference on it yet.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    process: IoContextId,
    sync: bool,
    before: Option<QId>,
    found: Option<QId>,
}

/// CFQ's queues as the recorder sees them.
#[derive(Debug)]
pub(crate) struct CfqMerges {
    rules: QueueMerge,
    /// The code's number of each queue, by the recorder's; if that slot has another queue by now,
    /// the queue is freed.
    queues: Vec<Option<QId>>,
    /// The queue of asynchronous requests, once there is one.
    shared: Option<QId>,
    arriving: Option<Arriving>,
}

impl MergeEvents for CfqMerges {
    type Event = CfqEvent;
    const SPEC: (&'static str, &'static str) = ("CfqMerge", RUNS);

    fn is_there(mq: &BlkMq) -> bool {
        matches!(mq.queue(QUEUE).elevator, Elevator::Cfq(_))
    }

    fn start(mq: &BlkMq) -> Result<CfqMerges, String> {
        let Elevator::Cfq(shared) = &mq.queue(QUEUE).elevator else {
            return Err("cfq as the scheduler (queue.scheduler)".to_owned());
        };
        if mq.queues.len() > 1 {
            return Err("one disk (device.nr_devices)".to_owned());
        }
        let rules = shared.policy.adjust(|cfq| {
            cfq.ties.events.enable();
            cfq.ties.rules
        });
        Ok(CfqMerges {
            rules,
            queues: Vec::new(),
            shared: None,
            arriving: None,
        })
    }

    fn take(mq: &BlkMq) -> Option<Vec<CfqEvent>> {
        let Elevator::Cfq(shared) = &mq.queue(QUEUE).elevator else {
            return None;
        };
        shared.policy.adjust(|cfq| cfq.ties.events.take())
    }

    fn note(&mut self, event: &CfqEvent, out: &mut Steps) -> Result<(), &'static str> {
        match event.call {
            MergeCall::Find {
                process,
                sync,
                before,
                found,
            } => {
                self.arriving = Some(Arriving {
                    process,
                    sync,
                    before,
                    found,
                });
            }
            MergeCall::Hold(q) => {
                let arriving = self
                    .arriving
                    .take()
                    .expect("the queue was found before the request took its reference");
                return self.arrives(arriving, q, event, out);
            }
            MergeCall::Release(q) => {
                let queue = self.number(Some(q));
                self.push("Complete", &[("queue", queue)], event, out);
            }
            // The exit of both queues of a process is one step.
            MergeCall::Exit { sync: false, .. } => {}
            MergeCall::Exit { process, .. } => {
                if let Some(process) = out.exits(process) {
                    self.push("Exit", &[("process", process)], event, out);
                }
            }
            MergeCall::ChangeGroup(process) => return self.regroups(process, event, out),
            MergeCall::ChangeIoprio(_) => {
                return Err(
                    "a process got another asynchronous queue, as its priority changed; \
                            the specification has one such queue",
                );
            }
            MergeCall::SetUp { cur, candidate } => {
                let of = |q| self.number(Some(q));
                let arguments = &[("current", of(cur)), ("close", of(candidate))];
                self.push("Merge", arguments, event, out);
            }
        }
        Ok(())
    }

    fn constants(&self) -> Vec<(String, String)> {
        let setting = Setting::of_rules(&self.rules, self.shared.is_some());
        setting.rule_constants()
    }
}

impl CfqMerges {
    /// A request has got its queue.
    fn arrives(
        &mut self,
        arriving: Arriving,
        q: QId,
        event: &CfqEvent,
        out: &mut Steps,
    ) -> Result<(), &'static str> {
        let Arriving {
            process,
            sync,
            before,
            found,
        } = arriving;
        let moved = found.is_some() && found != before;
        if moved && !sync && self.rules.redirected_slot == RedirectedSlot::Sync {
            return Err(
                "an asynchronous queue was redirected in a synchronous slot; the \
                        specification has no such rule",
            );
        }
        if !sync && found.is_none() {
            self.shared = Some(q);
            out.has_shared = true;
        }
        if sync && found.is_none() {
            self.queues.push(Some(q));
            out.born += 1;
        }
        let number = out.number_of(process);
        out.submits(number);
        let action = match (sync, found, before) {
            (true, None, None) => "Create",
            (true, None, Some(_)) => "Leave",
            (true, Some(_), _) if moved => "Redirect",
            (true, Some(_), _) => "Submit",
            (false, _, _) if moved => "RedirectAsync",
            (false, _, _) => "SubmitAsync",
        };
        self.push(action, &[("process", number)], event, out);
        let tables = event.table.iter().flatten().count();
        match tables {
            0 | 1 => Ok(()),
            _ => Err(
                "there are several asynchronous queues, by priority or group; the \
                      specification has one",
            ),
        }
    }

    fn regroups(
        &mut self,
        process: IoContextId,
        event: &CfqEvent,
        out: &mut Steps,
    ) -> Result<(), &'static str> {
        let Some(number) = out.known(process) else {
            return Ok(());
        };
        let held = |name| out.last_seen(name, number) != 0;
        if self.rules.group_change_drops_async && held("slotAsync") {
            return Err(
                "a process that changed its group lost its asynchronous queue; the \
                        specification has no such rule",
            );
        }
        if held("slot") {
            self.push("Move", &[("process", number)], event, out);
        }
        Ok(())
    }

    /// The specification's number of the last queue with this number in the code.
    fn number(&self, q: Option<QId>) -> i32 {
        if q.is_some() && q == self.shared {
            return SHARED;
        }
        let at = q.and_then(|_| self.queues.iter().rposition(|&known| known == q));
        at.map_or(0, |at| at as i32 + 1)
    }

    fn push(
        &self,
        action: &'static str,
        arguments: &[(&'static str, i32)],
        event: &CfqEvent,
        out: &mut Steps,
    ) {
        let slot = |sync: bool| {
            out.of_processes(|process| {
                let slots = event.slots.get(process.0 as usize);
                self.number(slots.and_then(|slots| slots[usize::from(sync)]))
            })
        };
        let tie = |q: QId| event.ties.get(q.0 as usize).filter(|tie| tie.live);
        let of_queues = |value: &dyn Fn(&Tie) -> i32| {
            let own = self.queues.iter().enumerate().map(|(at, &q)| {
                // A reused number belongs to another queue.
                let own = q.filter(|_| self.number(q) == at as i32 + 1);
                own.and_then(tie).map_or(0, value)
            });
            let shared = self.shared.and_then(tie).map_or(0, value);
            Value::Numbers(Of::Queue, own.collect(), shared)
        };
        let table = event.table.iter().flatten().next();
        let all = |value| Value::Numbers(Of::All, vec![value], 0);
        let seen = vec![
            ("slot", Value::Numbers(Of::Process, slot(true), 0)),
            ("slotAsync", Value::Numbers(Of::Process, slot(false), 0)),
            ("born", all(self.queues.len() as i32)),
            ("ref", of_queues(&|tie| tie.references)),
            ("new", of_queues(&|tie| self.number(tie.new))),
            ("io", of_queues(&|tie| tie.allocated[0] + tie.allocated[1])),
            ("table", all(self.number(table.copied()))),
        ];
        out.push(action, arguments, seen);
    }
}
