//! Stalls: a run that holds requests and makes no progress, and why.
//!
//! When a run has stalled: `machine.rs`, if no event is pending, and `progress.rs`.

mod levels;
mod single;
mod spin;
mod text;
mod tokens;

use std::collections::VecDeque;

use blkmq::env::Count;
use blkmq::path::Frame;
use blkmq::queue::RequestQueue;
use blkmq::request::{HctxId, Op, Place, RequestId};
use blkmq::rules::RestartRule;
use blkmq::time::{Duration, SimTime};

use super::bio_workers::BioWorkers;
use super::cpus::Cpus;
use super::devices::Devices;
use super::layer::Layer;
use super::mapper::Mappers;
use super::progress::is_live;
use super::replay::Replay;
use super::task::{Program, State};
use super::tasks::Tasks;
use super::work::KernelWork;

#[derive(Clone, Debug)]
pub struct StalledRequest {
    /// Its disk, if there are several.
    pub disk: Option<String>,
    pub slot: u32,
    pub op: Op,
    pub sector: u64,
    /// Length, sectors.
    pub sectors: u32,
    /// The list that it is on, or its holder.
    pub place: Place,
    pub hctx: u16,
    pub tag: Option<u32>,
    /// Since its allocation.
    pub age: Duration,
    /// Its state below, if its queue is that of a mapped device.
    pub below: Option<Below>,
    /// Bios of a bio-based device above, if it carries their clones.
    pub carries: Option<Carried>,
}

/// Bios of a bio-based device whose clones a request below carries, at least one.
#[derive(Clone, Debug)]
pub struct Carried {
    pub device: String,
    /// First sector and length of each, in the order of the request.
    pub bios: Vec<(u64, u32)>,
}

/// State of a request below a mapped device.
#[derive(Clone, Debug)]
pub enum Below {
    /// Its clone waits as well.
    Clone(Box<StalledRequest>),
    /// No clone, or it has ended: the device above has the request.
    Nothing,
    /// The device's thread has yet to map it (kdmwork).
    Unmapped,
}

/// The evidence that a run makes no progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// No event is pending.
    NothingLeft,
    /// All running tasks poll, no other event is pending, and each has polled without result.
    OnlyPolls,
    /// So many labels were executed since an I/O ended, and no device, timer or pause is pending.
    InVain(u64),
    /// Work goes on without time passing.
    NoTime,
    /// No I/O ended in this time, though events go on.
    TooLong(Duration),
}

#[derive(Clone, Debug)]
pub struct Stall {
    pub why: Why,
    /// When no event was left.
    pub at: SimTime,
    /// Last I/O that completed before.
    pub progress: SimTime,
    pub requests: Vec<StalledRequest>,
    /// I/Os that threads wait for, by thread.
    pub threads: Vec<(String, u32)>,
    /// Programs of the runnable tasks.
    pub busy: Vec<String>,
    /// Tasks that sleep until they get a tag or a request, and hctxs that wait for a token of their
    /// scheduler.
    pub tag_waits: Vec<String>,
    pub hctxs: Vec<String>,
    /// Schedulers with requests, and their state.
    pub schedulers: Vec<String>,
    /// State of each device that is not quiet; with names if there are several.
    pub devices: Vec<String>,
    /// The state that restarts hctxs at the end of a request, for queues that share tags.
    pub restarts: Vec<String>,
    pub work_pending: usize,
}

/// The parts of a machine that explain a stall, read-only.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) cpus: &'a Cpus,
    pub(super) tasks: &'a Tasks,
    pub(super) layer: &'a Layer,
    pub(super) devices: &'a Devices,
    pub(super) work: &'a KernelWork,
    pub(super) mappers: &'a Mappers,
    pub(super) bio_workers: &'a BioWorkers,
    pub(super) replay: Option<&'a Replay>,
}

impl View<'_> {
    /// The requests that wait, their places, and the events that would have to happen.
    ///
    /// `progress`: when an I/O last ended.
    pub(super) fn explain(&self, why: Why, progress: SimTime) -> Stall {
        let queues = self.layer.mq.queues.iter();
        let waiting = queues.clone().flat_map(|queue| self.waiting(queue));
        let mut requests: Vec<StalledRequest> = waiting.collect();
        requests.sort_by_key(StalledRequest::stands_back);
        let threads = self
            .tasks
            .iter()
            .filter_map(|(_, task)| match &task.program {
                Program::Fio(Some(fio)) if task.state != State::Dead && fio.in_flight() > 0 => {
                    Some((
                        format!(
                            "{}.{}{}",
                            fio.plan.name,
                            fio.plan.clone,
                            fio.asks_for_more()
                        ),
                        fio.in_flight(),
                    ))
                }
                Program::Replay(process) => self.replay?.waits(process),
                _ => None,
            });
        Stall {
            why,
            at: self.cpus.core.now,
            progress,
            requests,
            threads: threads.collect(),
            busy: self.busy_tasks(),
            tag_waits: queues
                .clone()
                .flat_map(|queue| self.tag_waits_of(queue))
                .chain(
                    queues
                        .clone()
                        .flat_map(|queue| self.request_waits_of(queue)),
                )
                .collect(),
            hctxs: queues
                .clone()
                .flat_map(|queue| self.hctxs_of(queue))
                .collect(),
            schedulers: queues
                .clone()
                .filter_map(|queue| self.scheduler_of(queue))
                .collect(),
            devices: queues
                .clone()
                .filter_map(|queue| self.device_of(queue))
                .collect(),
            restarts: queues.filter_map(|queue| self.restarts_of(queue)).collect(),
            work_pending: self.work.pending() + self.bio_workers.pending(),
        }
    }

    /// Requests of a queue that wait, except those reported as clones of others.
    fn waiting(&self, queue: &RequestQueue) -> Vec<StalledRequest> {
        let ids = live_requests(queue).into_iter();
        let own = ids.filter(|&id| !self.is_clone(queue, id));
        own.map(|id| self.request(queue, id)).collect()
    }

    fn request(&self, queue: &RequestQueue, id: RequestId) -> StalledRequest {
        let rq = queue.with_pool(|pool| pool[id].clone());
        StalledRequest {
            disk: self.layer.name(queue.id).map(str::to_owned),
            slot: id.0,
            op: rq.op,
            sector: rq.sector.0,
            sectors: rq.sectors.0,
            place: rq.place,
            hctx: rq.hctx.0,
            tag: rq.tag.map(|tag| tag.0),
            age: self.cpus.core.now.since(rq.start_time),
            below: self.below(queue.id, id, rq.place),
            carries: self.carries(queue, id),
        }
    }

    /// State of the hctxs of a queue that are not quiet.
    fn hctxs_of(&self, queue: &RequestQueue) -> Vec<String> {
        let disk = self
            .layer
            .name(queue.id)
            .map_or(String::new(), |name| format!("{name} "));
        let usage = queue.with_pool(|pool| pool.usage);
        let frozen = usage.is_frozen().then(|| {
            let waiting = queue.freeze_wq.inspect(Vec::len);
            let users = usage.users();
            format!("{disk}queue is frozen: {users} users are left, {waiting} tasks wait")
        });
        let hctxs = queue.hctxs.iter().enumerate().filter_map(|(index, hctx)| {
            let driver = self
                .layer
                .mq
                .set_of(queue.id)
                .driver_of(HctxId(index as u16));
            let busy = driver.busy_count();
            let pending = hctx.dispatch_pending.peek();
            let restart = hctx.restart.peek();
            let stopped = hctx.stopped.peek();
            let quiet = busy == 0 && !pending && !restart && !stopped;
            let depth = driver.depth();
            (!quiet).then(|| {
                format!(
                    "{disk}hctx {index}: dispatch list {}, SCHED_RESTART {}, {}driver tags {busy} \
                     of {depth} in use",
                    if pending { "not empty" } else { "empty" },
                    if restart { "set" } else { "clear" },
                    if stopped { "STOPPED, " } else { "" },
                )
            })
        });
        let single = single::state_of(queue, &disk);
        let suspended = self.suspension_of(queue, &disk);
        let bios = waiting_bios(queue, &disk);
        let before = frozen.into_iter().chain(suspended).chain(bios);
        before.chain(single).chain(hctxs).collect()
    }

    /// The suspension of a mapped device, and how far it is.
    fn suspension_of(&self, queue: &RequestQueue, disk: &str) -> Option<String> {
        let mapped = queue.mapped.as_ref()?;
        if mapped.with_state(|state| state.target.is_suspended()) {
            return Some(format!(
                "{disk}is suspended: nothing goes on until it is resumed"
            ));
        }
        let contexts = self
            .tasks
            .iter()
            .filter_map(|(_, task)| task.context.as_ref());
        let running = self.cpus.iter().flat_map(|cpu| &cpu.levels);
        let mut frames = contexts
            .chain(running)
            .flat_map(|level| level.stack.frames());
        frames.find_map(|frame| match frame {
            Frame::Suspend(path) if frame.queue() == queue.id && path.drains() => Some(format!(
                "{disk}is being suspended: dmsetup waits for what is in flight"
            )),
            _ => None,
        })
    }

    /// A scheduler that has requests, with the answer of has_work.
    fn scheduler_of(&self, queue: &RequestQueue) -> Option<String> {
        let queued = |place: Place| matches!(place, Place::Elevator | Place::Side);
        let count = queue.with_pool(|pool| pool.iter().filter(|(_, rq)| queued(rq.place)).count());
        if !queue.has_elevator() {
            return None;
        }
        let mut hctxs = (0..queue.hctxs.len() as u16).map(HctxId);
        let work = hctxs.any(|hctx| queue.elevator.has_queued(hctx));
        let says = if work { "yes" } else { "no" };
        let disk = self.layer.name(queue.id);
        let disk = disk.map_or(String::new(), |name| format!(" of {name}"));
        let name = queue.settings.scheduler.name();
        (count > 0).then(|| format!("{name}{disk}: {count} requests queued, has_work: {says}"))
    }

    /// The state that restarts hctxs of this queue's tag set at the end of a request; `None` if the
    /// queue does not share tags.
    fn restarts_of(&self, queue: &RequestQueue) -> Option<String> {
        let set = self.layer.mq.set_of(queue.id);
        if !set.queue_shared() {
            return None;
        }
        let rules = queue.settings.rules.restart;
        let rule = rules.rule.name();
        let name = self.layer.name(queue.id).unwrap_or_default();
        let marked = queue.hctxs.iter().filter(|hctx| hctx.restart.peek());
        let marked = marked.count();
        let finds = match rules.rule {
            RestartRule::QueueCount | RestartRule::SameQueue => match queue.restarts.peek() {
                0 => "its counter is 0: the end of its requests restarts no hctx, of other queues \
                      neither"
                    .to_owned(),
                count => format!("its counter is {count}"),
            },
            RestartRule::MapCount => {
                let counts = set.restarts.iter().map(Count::peek);
                format!("the tag maps count {}", counts.sum::<i32>())
            }
            RestartRule::RoundRobin | RestartRule::WholeSet | RestartRule::Own => {
                "nothing counts marks".to_owned()
            }
        };
        Some(format!(
            "{name} restart rule {rule}: {marked} hctxs marked; {finds}"
        ))
    }

    /// State of a queue's device; of several devices only those that have commands or waiting
    /// requests. A device of several queues is reported with the first.
    fn device_of(&self, queue: &RequestQueue) -> Option<String> {
        let numbers = &self.layer.numbers;
        let device = numbers.device_of(queue.id);
        let above = numbers.queues_above(device);
        if above[0] != queue.id {
            return None;
        }
        let device = &self.devices[device].device;
        let Some(name) = self.layer.name(queue.id) else {
            return Some(device.describe());
        };
        let mut queues = above.iter().map(|&queue| self.layer.mq.queue(queue));
        let concerned =
            device.in_flight() > 0 || queues.any(|queue| !live_requests(queue).is_empty());
        concerned.then(|| format!("{name}, {}", device.describe()))
    }
}

/// Requests of a queue that something waits for.
fn live_requests(queue: &RequestQueue) -> Vec<RequestId> {
    queue.with_pool(|pool| {
        let live = pool.iter().filter(|(_, rq)| is_live(rq.place));
        live.map(|(id, _)| id).collect()
    })
}

/// Bios that a bio-based device holds back.
fn waiting_bios(queue: &RequestQueue, disk: &str) -> Option<String> {
    let mapped = queue.mapped.as_ref()?;
    let deferred = mapped.bios.as_ref()?.deferred.inspect(VecDeque::len);
    let held = mapped.with_state(|state| state.target.held().count() + state.taken.len());
    (held + deferred > 0).then(|| {
        format!(
            "{disk}holds {held} bios until there is a path, and {deferred} until the device goes on"
        )
    })
}
