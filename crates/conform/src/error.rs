//! Why a capture gets no verdict.

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use blkmq::time::SimTime;

use super::Place;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the capture is missing or damaged.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// The capture's scheduler has no reference here.
    #[error(
        "{device}: scheduler {scheduler} is not modelled yet; {} are",
        known_schedulers()
    )]
    NotModelled {
        device: String,
        /// queue/scheduler.
        scheduler: String,
    },
    /// The kernel of the capture has no blk-mq, or is recorded on its other path.
    #[error(
        "kernel {kernel} has the single-queue path, which conform does not follow; `blksim replay` \
         and `blksim compare` do"
    )]
    SingleQueue {
        /// First two numbers of its release.
        kernel: String,
    },
    /// A device that is recorded on the other path of its kernel.
    #[error(
        "{device}: scheduler {scheduler} is of the single-queue path, which conform does not \
         follow; of a multipath device expected use_blk_mq=1"
    )]
    SingleQueueDevice {
        device: String,
        /// queue/scheduler.
        scheduler: String,
    },
    /// No rules for the capture's kernel.
    #[error("no rules for kernel {kernel}; name the nearest of {}", known_rules())]
    Kernel {
        /// First two numbers of its release.
        kernel: String,
    },
    /// The requested mode needs data that this capture does not have.
    #[error("{capture}: {what}")]
    Unfit {
        capture: String,
        /// The missing data, and the expected form.
        what: String,
    },
    /// The events of the capture contradict each other.
    #[error("{capture}: {device}: {place} at {time}: {what}")]
    Contradiction {
        capture: String,
        device: String,
        /// Line of `ftrace.txt`, or which event of this device's blktrace, first 1.
        place: Place,
        /// When, seconds of the capture's clock.
        time: SimTime,
        what: String,
    },
}

fn known_schedulers() -> String {
    let names: Vec<&str> = SchedulerKind::of_path(false)
        .map(SchedulerKind::name)
        .collect();
    names.join(", ")
}

fn known_rules() -> String {
    Rules::names_of(false)
}
