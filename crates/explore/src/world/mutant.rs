//! Defects made on purpose in the machine around the paths, and the labels they hang on.

use super::{Fixed, World};
use crate::config::{Mutant, Stops};
use blkmq::env::{Bit, Cpu, Solo, Word};
use blkmq::path::Label;
use blkmq::queue::RequestQueue;
use blkmq::request::{HctxId, Place};

/// Labels that the explorer knows by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels {
    wait_add: Label,
    tag_line: Label,
    put_back: Label,
    recheck: Label,
    clear_restart: Label,
    tags: Label,
    /// Labels that read only bits which nobody changes, unless the driver stops queues.
    constant: [Label; 5],
}

impl Labels {
    pub(crate) fn new() -> Labels {
        let named = |name: &str| {
            let mut all = Label::all();
            all.find(|label| label.name() == name)
                .unwrap_or_else(|| panic!("there is no label {name}"))
        };
        Labels {
            wait_add: named("submit.wait-add"),
            tag_line: named("list.tag-line"),
            put_back: named("list.put-back"),
            recheck: named("list.restart"),
            clear_restart: named("complete.clear-restart"),
            tags: named("complete.tags"),
            constant: [
                named("run.quiesced"),
                named("run.stopped"),
                named("run.still-quiesced"),
                named("plug.stopped"),
                named("plug.quiesced"),
            ],
        }
    }

    /// set_current_state() of prepare_to_wait(): wake-ups before it are forgotten.
    pub(crate) fn prepares_to_wait(&self, label: Label) -> bool {
        label == self.wait_add
    }
}

impl Fixed {
    /// The label that has just run touched something that others may change or see.
    pub(super) fn sees_others(&self, label: Label, cpu: &Cpu) -> bool {
        let changes = self.config.stops != Stops::Never;
        cpu.shared_accesses() > 0 && (changes || !self.labels.constant.contains(&label))
    }

    fn has(&self, mutant: Mutant) -> bool {
        self.config.mutant == Some(mutant)
    }

    /// The call that this label asks for does not happen.
    pub(super) fn drops_call(&self, label: Label) -> bool {
        (self.has(Mutant::NoRecheck) && label == self.labels.recheck)
            || (self.has(Mutant::NoRestartRun) && label == self.labels.clear_restart)
    }

    pub(super) fn loses_wakes(&self) -> bool {
        self.has(Mutant::NoWake)
    }

    pub(super) fn completes_twice(&self) -> bool {
        self.has(Mutant::CompletedTwice)
    }
}

impl World {
    /// After a label: undoes what the mutant lacks.
    pub(super) fn break_something(&mut self, fixed: &Fixed, label: Label, index: usize) {
        let Some(mutant) = fixed.config.mutant else {
            return;
        };
        let cpu = &mut self.contexts[index].cpu;
        match mutant {
            Mutant::LateMark if label == fixed.labels.put_back => {
                cpu.begin_label();
                self.mq.queue(0).hctxs[0].restart.set(cpu);
            }
            Mutant::LeakedTag if label == fixed.labels.tags => {
                let word = &self.mq.sets[0].driver_of(HctxId(0)).words[0];
                cpu.begin_label();
                word.cleared.fetch_and(cpu, 0);
            }
            Mutant::UnseenLine if label == fixed.labels.wait_add => {
                for ws in &self.mq.sets[0].driver_of(HctxId(0)).wait {
                    cpu.begin_label();
                    ws.active.clear(cpu);
                }
            }
            Mutant::ForgottenLine if label == fixed.labels.tag_line => {
                for hctx in &self.mq.queue(0).hctxs {
                    cpu.begin_label();
                    hctx.dispatch_wait.clear(cpu);
                }
            }
            _ => {}
        }
    }

    /// Requests that are somewhere between allocation and end.
    pub(crate) fn live(&self) -> usize {
        let of_queue = |queue: &RequestQueue<Solo>| {
            queue.with_pool(|pool| {
                let live = pool.iter().filter(|(_, rq)| rq.place != Place::Free);
                live.count()
            })
        };
        self.mq.queues.iter().map(of_queue).sum()
    }
}
