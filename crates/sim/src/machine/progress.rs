//! Progress of the run: checked now and then, not at every event.
//!
//! A run in which work goes on may be stalled as well: pollers look where nothing will ever
//! complete, work repeats without effect, the clock does not advance. The report of a stall:
//! `stall.rs`.

use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{Place, QueueId, RequestId};
use blkmq::time::{Duration, SimTime};

use super::cpus::Cpus;
use super::devices::Devices;
use super::layer::Layer;
use super::stall::Why;
use super::tasks::Tasks;

use super::event::Event;
use super::task::TaskId;
use super::tasks::SLICE;
use crate::plan::Plan;

/// From one check to the next.
const LOOK: Duration = Duration::from_millis(10);

/// Without any I/O ended for so long, the run has stalled even if events go on.
const NO_PROGRESS: Duration = Duration::from_secs(300);

/// Labels without any I/O ended, and without a device, timer or pause that could change that: this
/// many, and a thousand for each bio that can be alive, which takes below a hundred to its end.
const IN_VAIN: u64 = 1 << 20;
const IN_VAIN_A_BIO: u64 = 1000;

/// The same for work below pollers, where labels are rare: no request has moved for this long. More
/// than three hundred delayed runs.
const UNMOVED: Duration = Duration::from_secs(1);

/// Turns at one instant: 256 for each of a thousand CPUs.
const AT_ONCE: u64 = 1 << 18;

#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// More labels than this without an ended I/O are a stall.
    in_vain: u64,

    /// When the last bio ended.
    pub(super) ended: SimTime,
    pub(super) look_at: SimTime,
    /// Labels executed at the last check that found a bio ended since the one before.
    base: u64,
    /// `ended` at the last check.
    seen: SimTime,
    /// Labels executed at the last check, and the number of the check at which they were fewer.
    labels: u64,
    quiet_from: SimTime,
    /// Where the requests were at a check, and since when.
    places: Vec<(QueueId, RequestId, Place)>,
    placed_at: SimTime,
    /// An instant, and the turns before it.
    instant: SimTime,
    turns: u64,
}

impl Progress {
    pub(super) fn new(plan: &Plan) -> Progress {
        let bios = plan.queues().map(|disk| u64::from(disk.capacity.bios));
        Progress {
            in_vain: IN_VAIN + IN_VAIN_A_BIO * bios.sum::<u64>(),
            ended: SimTime::ZERO,
            look_at: SimTime::ZERO + LOOK,
            base: 0,
            seen: SimTime::ZERO,
            labels: 0,
            quiet_from: SimTime::ZERO,
            places: Vec::new(),
            placed_at: SimTime::ZERO,
            instant: SimTime::ZERO,
            turns: 0,
        }
    }

    /// A check at `now`, after so many labels.
    fn note(&mut self, now: SimTime, labels: u64) {
        if self.ended > self.seen {
            self.seen = self.ended;
            self.base = labels;
        }
        if labels > self.labels {
            self.labels = labels;
            self.quiet_from = now;
        }
        self.look_at = now + LOOK;
    }

    /// Whether the run has stalled, and the evidence. Called when a check is due.
    #[cold]
    pub(super) fn look(
        &mut self,
        cpus: &Cpus,
        tasks: &Tasks,
        layer: &Layer,
        devices: &Devices,
    ) -> Option<Why> {
        let now = cpus.core.now;
        self.note(now, cpus.core.spent.labels_executed());
        let Progress {
            ended, quiet_from, ..
        } = *self;
        if now.since(ended) > NO_PROGRESS && oldest(layer, now) > NO_PROGRESS {
            return Some(Why::TooLong(NO_PROGRESS));
        }
        let round = round(cpus);
        let polls = tasks.only_poll();
        let quiet = polls && now.since(quiet_from) >= round;
        if quiet && pending(cpus, tasks, layer, devices, round) == Pending::Nothing {
            return Some(Why::OnlyPolls);
        }
        let unmoved = polls && self.unmoved(layer, now);
        let labels = self.labels - self.base;
        let in_vain = unmoved || labels > self.in_vain && layer.anything_waits();
        let stuck = in_vain
            && !devices.fickle()
            && pending(cpus, tasks, layer, devices, round) < Pending::Time;
        stuck.then_some(Why::InVain(labels))
    }

    /// No request has moved for long enough. To be called if no request is on its way.
    fn unmoved(&mut self, layer: &Layer, now: SimTime) -> bool {
        let places: Vec<_> = places(&layer.mq).collect();
        if self.placed_at < self.ended || places != self.places {
            (self.places, self.placed_at) = (places, now);
        }
        now.since(self.placed_at) >= UNMOVED
    }

    /// After so many turns the time is `now`: whether too many turns had this time.
    pub(super) fn stands_still(&mut self, now: SimTime, turns: u64) -> bool {
        if now > self.instant {
            (self.instant, self.turns) = (now, turns);
        }
        turns - self.turns > AT_ONCE
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Pending {
    Nothing,
    /// A CPU or a worker will do something.
    Work,
    /// A device, a timer or a pause.
    Time,
}

/// How long the oldest request has been alive; of bios without any, for ever.
fn oldest(layer: &Layer, now: SimTime) -> Duration {
    let age = |queue: &RequestQueue| {
        queue.with_pool(|pool| {
            let requests = pool.iter().filter(|(_, rq)| is_live(rq.place));
            let oldest = requests.map(|(_, rq)| now.since(rq.start_time)).max();
            oldest.or((pool.bios_in_use() > 0).then_some(Duration(u64::MAX)))
        })
    };
    let oldest = layer.mq.queues.iter().filter_map(age).max();
    oldest.unwrap_or(Duration::ZERO)
}

/// In this time each runnable task has had its turn.
fn round(cpus: &Cpus) -> Duration {
    let longest = cpus.iter().map(|cpu| cpu.runqueue.len()).max();
    Duration(SLICE.0 * (longest.unwrap_or(0) as u64 + 2))
}

/// The pending events. Polled commands that were due within the last `round` count, too.
fn pending(
    cpus: &Cpus,
    tasks: &Tasks,
    layer: &Layer,
    devices: &Devices,
    round: Duration,
) -> Pending {
    let since = SimTime(cpus.core.now.0.saturating_sub(round.0));
    if devices.anything_due_after(since) {
        return Pending::Time;
    }
    let events = cpus.core.events.iter();
    let of_event = |(_, event)| match event {
        Event::Step(_) | Event::Measure | Event::Ended | Event::Second | Event::Look => {
            Pending::Nothing
        }
        Event::Grant(_) | Event::Ipi(_) | Event::Work(_) | Event::Requeue(_) => Pending::Work,
        Event::Resume(of) if tasks.is_void(TaskId(of.whom()), of.detail()) => Pending::Nothing,
        Event::Timeout(of) if !layer.timeout_helps(of.queue()) => Pending::Nothing,
        Event::Timer(_)
        | Event::Interrupt(_)
        | Event::Elevator(_)
        | Event::Timeout(_)
        | Event::Call(_)
        | Event::Happens(_)
        | Event::Resume(_) => Pending::Time,
    };
    events.map(of_event).max().unwrap_or(Pending::Nothing)
}

/// Only timeout timers are pending, of queues whose requests are with the device: they would be set
/// again for ever.
pub(super) fn only_timeouts(cpus: &Cpus, layer: &Layer, devices: &Devices) -> bool {
    let in_vain = |event| match event {
        Event::Timeout(of) => layer.has_in_flight(of.queue()),
        _ => false,
    };
    let mut events = cpus.core.events.iter();
    events.all(|(_, event)| in_vain(event)) && !devices.anything_due_after(cpus.core.now)
}

/// Where each live request is.
fn places(mq: &BlkMq) -> impl Iterator<Item = (QueueId, RequestId, Place)> + '_ {
    let of_queue = |queue: &RequestQueue| {
        queue.with_pool(|pool| {
            let live = pool.iter().filter(|(_, rq)| is_live(rq.place));
            let places = live.map(|(id, rq)| (queue.id, id, rq.place));
            places.collect::<Vec<_>>()
        })
    };
    mq.queues.iter().flat_map(of_queue)
}

/// The place is that of a request that something waits for.
pub(super) fn is_live(place: Place) -> bool {
    !matches!(place, Place::Free | Place::PlugCache)
}
