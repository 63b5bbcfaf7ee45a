//! Defects in the machine around the paths, and the labels at which they act.

use super::{ABOVE, Fixed, World};
use crate::config::{Mutant, Stops};
use blkmq::env::Cpu;
use blkmq::path::Label;
use blkmq::path::label::{
    CloneEnd, Complete, Hook, List, Plug, Run, SingleEnd, Submit, Suspend, Switch, Token,
};
use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{HctxId, Place, QueueId, RequestId, RequestPool};

/// Labels that read only bits which nothing changes, unless the driver stops queues.
const CONSTANT: [Label; 5] = [
    Run::Quiesced.label(),
    Run::Stopped.label(),
    Run::StillQuiesced.label(),
    Plug::Stopped.label(),
    Plug::Quiesced.label(),
];

/// Labels that wait until the queue has no users, or until nothing is in flight.
const DRAINS: [Label; 2] = [Switch::Drain.label(), Suspend::Drain.label()];

/// Labels that run the queue of a resumed device.
const RESUMES: [Label; 2] = [Suspend::Start.label(), Suspend::Run.label()];

/// Labels that keep runs of the queue away.
const QUIESCES: [Label; 2] = [Switch::Quiesce.label(), Suspend::Quiesce.label()];

/// Labels after the end of a request that run the queue.
const RESTARTS: [Label; 2] = [Complete::ClearRestart.label(), SingleEnd::Run.label()];

/// Labels that read only bits which nothing changes if only tags are explored.
const CONSTANT_ALONE: [Label; 3] = [
    Submit::CtxPending.label(),
    Submit::Busy.label(),
    Complete::Restart.label(),
];

impl Fixed {
    /// The last label touched a word that other contexts may change or see. `accessed`: a shared
    /// word.
    pub(super) fn sees_others(&self, label: Label, accessed: bool) -> bool {
        let stops =
            self.config.stops != Stops::Never || !self.config.changes.is_empty() || self.suspends();
        let constant = !stops && CONSTANT.contains(&label)
            || self.config.tags_alone && CONSTANT_ALONE.contains(&label);
        let constant = constant || self.only_counts(label);
        accessed && !constant || self.is_of_usage(label) || self.is_of_target(label)
    }

    fn has(&self, mutant: Mutant) -> bool {
        self.config.mutant == Some(mutant)
    }

    /// The mutant suppresses the call that this label asks for.
    pub(super) fn drops_call(&self, label: Label) -> bool {
        (self.has(Mutant::NoRecheck) && label == List::Restart.label())
            || (self.has(Mutant::NoRestartRun) && RESTARTS.contains(&label))
            || (self.has(Mutant::LostToken) && label == Hook::Enter.label())
            || (self.has(Mutant::NoHookRun) && label == Hook::Section.label())
            || (self.has(Mutant::NoDrain) && DRAINS.contains(&label))
            || (self.has(Mutant::NoResumeRun) && RESUMES.contains(&label))
            || (self.has(Mutant::NoThawWake) && label == Switch::Unfreeze.label())
    }

    pub(super) fn loses_wakes(&self) -> bool {
        self.has(Mutant::NoWake)
    }

    /// The mutant suppresses the run that this label leaves to kblockd.
    pub(super) fn drops_kick(&self, label: Label) -> bool {
        self.has(Mutant::NoTokenWake) && label == Token::Put.label()
    }

    /// The mutant ends the path without success before this label.
    pub(super) fn gives_up_at(&self, label: Label) -> bool {
        self.has(Mutant::NoTokenRetry) && label == Token::Retry.label()
    }

    pub(super) fn loses_timers(&self) -> bool {
        self.has(Mutant::LostTimer)
    }

    pub(super) fn completes_twice(&self) -> bool {
        self.has(Mutant::CompletedTwice)
    }
}

impl Fixed {
    /// After a label: undoes what the mutant leaves out.
    pub(super) fn break_something(&self, mq: &BlkMq, label: Label, cpu: &mut Cpu) {
        let Some(mutant) = self.config.mutant else {
            return;
        };
        self.break_target(mq, label);
        match mutant {
            Mutant::LateMark if label == List::PutBack.label() => {
                cpu.begin_label();
                mq.queue(QueueId(0)).hctxs[0].restart.set(cpu);
            }
            Mutant::LeakedTag if label == Complete::Tags.label() => {
                let word = &mq.sets[0].driver_of(HctxId(0)).words[0];
                cpu.begin_label();
                word.cleared.fetch_and(cpu, 0);
            }
            Mutant::LeakedClone if label == Complete::Tags.label() => {
                for set in &mq.sets[1..] {
                    let word = &set.driver_of(HctxId(0)).words[0];
                    cpu.begin_label();
                    word.cleared.fetch_and(cpu, 0);
                }
            }
            Mutant::UnseenLine if label == Submit::WaitAdd.label() => {
                for ws in &mq.sets[0].driver_of(HctxId(0)).wait {
                    cpu.begin_label();
                    ws.active.clear(cpu);
                }
            }
            Mutant::ForgottenEntry if label == Submit::WaitAdd.label() => {
                cpu.begin_label();
                mq.task_waits(cpu.task).clear(cpu);
            }
            Mutant::ForgottenLine if label == List::TagLine.label() => {
                for hctx in &mq.queue(QueueId(0)).hctxs {
                    cpu.begin_label();
                    hctx.dispatch_wait.clear(cpu);
                }
            }
            Mutant::NoQuiesce if QUIESCES.contains(&label) => {
                cpu.begin_label();
                mq.queue(QueueId(0)).quiesced.clear(cpu);
            }
            Mutant::NoTagsLook if label == Suspend::Settled.label() => {
                mq.queue(ABOVE).with_pool(|pool| {
                    for slot in (0..pool.len() as u32).map(RequestId) {
                        pool[slot].in_flight = false;
                    }
                });
            }
            Mutant::NotBlocked if label == Suspend::Stop.label() => {
                cpu.begin_label();
                mq.queue(ABOVE).own_mapped().own_bios().blocked.clear(cpu);
            }
            Mutant::EarlyBioEnd if label == CloneEnd::EndBio.label() => {
                mq.queue(QueueId(0)).with_pool(ends_bios_of_sequences);
            }
            Mutant::DoubledToken if label == Token::Get.label() => {
                for tokens in &mq.queue(QueueId(0)).tokens {
                    for word in &tokens.map.words {
                        cpu.begin_label();
                        word.word.fetch_and(cpu, 0);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Removes the bio of the first request with a flush sequence.
fn ends_bios_of_sequences(pool: &mut RequestPool) {
    let mut all = pool.iter().filter(|(_, rq)| rq.flush_seq);
    let found = all.find_map(|(id, rq)| Some((id, rq.bio_first?)));
    drop(all);
    if let Some((id, bio)) = found {
        let rq = &mut pool[id];
        (rq.bio_first, rq.bio_last, rq.bio_count) = (None, None, 0);
        pool.free_bio(bio);
    }
}

impl World {
    /// Requests between allocation and end.
    pub(crate) fn live(&self) -> usize {
        let of_queue = |queue: &RequestQueue| {
            queue.with_pool(|pool| {
                let live = pool.iter().filter(|(_, rq)| rq.place != Place::Free);
                live.count()
            })
        };
        self.mq.queues.iter().map(of_queue).sum()
    }
}
