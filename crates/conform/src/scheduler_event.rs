//! Events of a scheduler with tokens: percentiles of latency, depths, and requests without a token.
//! The kernel's events are compared with those of the model, one by one.
//!
//! Names come from both sides as text; nothing here depends on a scheduler.

use std::fmt;

use blkmq::env::Probe;
use trace::ftrace;

/// A name in such an event: READ, total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word([u8; 12]);

impl Word {
    pub(super) fn new(text: &str) -> Word {
        let mut word = [0; 12];
        for (to, from) in word.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Word(word)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = self.0.iter().take_while(|&&letter| letter != 0);
        f.write_str(&String::from_utf8_lossy(
            &letters.copied().collect::<Vec<u8>>(),
        ))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SchedulerEvent {
    Percentile {
        group: Word,
        kind: Word,
        percentile: u8,
        numerator: u8,
        denominator: u8,
        samples: u32,
    },
    /// There are so many tokens now.
    Depth { group: Word, depth: u32 },
    /// There was no token for a request.
    Throttled { group: Word },
}

impl SchedulerEvent {
    pub(super) fn of_kernel(
        event: &ftrace::Event,
    ) -> Option<(ftrace::DeviceNumber, SchedulerEvent)> {
        use ftrace::Event as E;
        Some(match event {
            E::KyberLatency(found) => {
                let reported = SchedulerEvent::Percentile {
                    group: Word::new(&found.domain),
                    kind: Word::new(&found.kind),
                    percentile: found.percentile,
                    numerator: found.numerator,
                    denominator: found.denominator,
                    samples: found.samples,
                };
                (found.device, reported)
            }
            E::KyberAdjust {
                device,
                domain,
                depth,
            } => {
                let group = Word::new(domain);
                let depth = *depth;
                (*device, SchedulerEvent::Depth { group, depth })
            }
            E::KyberThrottled { device, domain } => {
                let group = Word::new(domain);
                (*device, SchedulerEvent::Throttled { group })
            }
            _ => return None,
        })
    }

    pub(super) fn of_model(probe: Probe) -> Option<SchedulerEvent> {
        Some(match probe {
            Probe::Percentile(found) => SchedulerEvent::Percentile {
                group: Word::new(found.group),
                kind: Word::new(found.kind),
                percentile: found.percentile,
                numerator: found.numerator,
                denominator: found.denominator,
                samples: found.samples,
            },
            Probe::Depth { group, depth } => {
                let group = Word::new(group);
                SchedulerEvent::Depth { group, depth }
            }
            Probe::Throttled { group } => {
                let group = Word::new(group);
                SchedulerEvent::Throttled { group }
            }
            _ => return None,
        })
    }

    /// Both are of one place in the scheduler, with any values.
    pub(super) fn is_like(self, other: SchedulerEvent) -> bool {
        match (self, other) {
            (
                SchedulerEvent::Percentile { group, kind, .. },
                SchedulerEvent::Percentile {
                    group: of, kind: k, ..
                },
            ) => (group, kind) == (of, k),
            (SchedulerEvent::Depth { group, .. }, SchedulerEvent::Depth { group: of, .. }) => {
                group == of
            }
            (SchedulerEvent::Throttled { group }, SchedulerEvent::Throttled { group: of }) => {
                group == of
            }
            _ => false,
        }
    }

    /// An event of a timer's function; the others come with a dispatch call.
    pub(super) fn is_of_timer(self) -> bool {
        !matches!(self, SchedulerEvent::Throttled { .. })
    }
}

impl fmt::Display for SchedulerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchedulerEvent::Percentile {
                group,
                kind,
                percentile,
                numerator,
                denominator,
                samples,
            } => write!(
                f,
                "{group} {kind} p{percentile} {numerator}/{denominator} samples={samples}"
            ),
            SchedulerEvent::Depth { group, depth } => write!(f, "{group} depth {depth}"),
            SchedulerEvent::Throttled { group } => write!(f, "{group} throttled"),
        }
    }
}
