//! Further questions of a choice for a bio: bios are held where they cannot be mapped.

use super::{Answer, Ask, At, Choice};
use crate::dm::Mapping;
use crate::dm::multipath::Flag;
use crate::request::Status;
use crate::rules::BioMap;

/// Further questions of a bio-based target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum AtBio {
    /// Does the group wait for its initialisation? Before the selector is asked.
    QueueIo,
    /// No path: are bios held?
    Queues,
    Hold,
    HoldIfQueues,
    /// It is held: must the group be initialised?
    Required,
    CallWorker,
    MustDefer,
}

impl AtBio {
    pub(super) fn ask(self) -> Ask {
        match self {
            AtBio::QueueIo => Ask::Flag(Flag::QueueIo),
            AtBio::Queues => Ask::Flag(Flag::QueueIfNoPath),
            AtBio::Hold => Ask::Hold,
            AtBio::HoldIfQueues => Ask::HoldIfQueues,
            AtBio::Required => Ask::Flag(Flag::InitRequired),
            AtBio::CallWorker => Ask::CallWorker,
            AtBio::MustDefer => Ask::MustDefer,
        }
    }
}

impl Choice {
    /// The bio is on the target's list, and something follows.
    pub fn has_held(&self) -> bool {
        let held = [
            At::Initialise,
            At::Bio(AtBio::Required),
            At::Bio(AtBio::CallWorker),
        ];
        self.bios.is_some() && held.contains(&self.at)
    }

    /// An answer that only a bio-based target gives.
    pub(super) fn bio(&mut self, at: AtBio, answer: Answer) -> At {
        match (at, answer) {
            (AtBio::QueueIo, Answer::Is(waits)) => {
                self.queue_io = waits;
                match self.path {
                    Some(_) if waits => self.chosen(),
                    _ => At::AnyValid,
                }
            }
            (AtBio::Queues, Answer::Is(true)) => At::Bio(AtBio::Hold),
            (AtBio::Queues | AtBio::HoldIfQueues, Answer::Is(false)) => At::Bio(AtBio::MustDefer),
            (AtBio::HoldIfQueues, Answer::Is(true)) | (AtBio::CallWorker, Answer::Done) => {
                At::Over(Mapping::Held)
            }
            (AtBio::Hold, Answer::Done) => match self.bios {
                Some(BioMap::ReadsOnce) if !self.queue_io => At::Bio(AtBio::Required),
                Some(BioMap::Stays) => At::Bio(AtBio::CallWorker),
                _ => At::Initialise,
            },
            (AtBio::Required, Answer::Is(true)) => At::Initialise,
            (AtBio::Required, Answer::Is(false)) => At::Bio(AtBio::CallWorker),
            (AtBio::MustDefer, Answer::Is(true)) => At::Over(Mapping::Requeue),
            (AtBio::MustDefer, Answer::Is(false)) => At::Over(Mapping::Kill(Status::IoError)),
            (at, answer) => unreachable!("{answer:?} at {at:?}"),
        }
    }
}
