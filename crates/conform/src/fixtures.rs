//! Test fixtures of several modules: an event, and a device of one hctx.

use blkmq::elevator::{Custom, CustomScheduler, SchedulerSettings, Submitters};
use blkmq::request::{Op, Sector, Sectors};
use blkmq::rules::{NoMerges, QueueLimits, Rules};
use blkmq::time::{Jiffies, SimTime};

use super::decision_time::Decided;
use super::event::{Event, Events, Kind, Place};
use super::hypothesis::Search;
use super::judge::Judge;
use super::setup::{Driver, Hctx, Setup};
use super::submitters::Processes;
use super::{Mode, Verdict};

pub(super) const TASK: u32 = 100;
/// The worker that runs the hardware queue.
pub(super) const KWORKER: u32 = 50;

/// An event of 8 sectors on CPU 0.
pub(super) fn event(place: Place, (ns, pid): (u64, u32), kind: Kind, op: Op, sector: u64) -> Event {
    Event {
        op,
        sector: Sector(sector),
        sectors: Sectors(8),
        ..Event::bare(place, (SimTime(ns), 0, pid), kind)
    }
}

/// A device under this scheduler.
pub(super) fn setup(scheduler: impl CustomScheduler + 'static, hz: u32) -> Setup {
    setup_of(SchedulerSettings::Custom(Custom::new(scheduler)), hz)
}

/// A device with this scheduler or none.
pub(super) fn setup_of(scheduler: SchedulerSettings, hz: u32) -> Setup {
    Setup {
        device: "by hand".to_owned(),
        hz,
        rules: Rules::v6_12(),
        scheduler,
        rotational_when_chosen: false,
        times_of_labels: false,
        decided: Decided::default(),
        rotational_taken: false,
        rotational: false,
        submitters: Submitters::default(),
        listens: false,
        limits: QueueLimits::PLAIN,
        odd_max_sectors: None,
        nomerges: NoMerges::Never,
        nr_requests: 8,
        io_timeout: Jiffies(1000),
        hctxs: vec![Hctx {
            tags: 4,
            cpus: vec![0],
        }],
        hctx_shared: false,
        queue_shared: false,
        blocking: false,
        cpus: 1,
        driver: Driver {
            queue_rqs: false,
            commit_rqs: false,
        },
        budget: None,
    }
}

/// The verdict on one device's events.
pub(super) fn verdict(mode: Mode, setup: Setup, events: Events) -> Verdict {
    let mut judge = Judge::new("by hand", &setup, mode);
    let (stream, setups) = mode.join(vec![events], &[setup], &Processes::default());
    Search::new(&stream, &setups)
        .run("by hand", &mut judge)
        .expect("its numbers can be reckoned with");
    judge.verdict()
}
