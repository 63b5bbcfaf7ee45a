//! The block layer as a capture describes it, idle.

use std::rc::Rc;

use blkmq::queue::{BlkMq, QueueConfig, QueueSettings};
use blkmq::request::HctxId;
use blkmq::tags::{CpuTopology, TagSetConfig};

use super::{Actor, Labels, Outside, Timers, World};
use crate::setup::Setup;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) actors: usize,
    pub(crate) bios: usize,
}

impl World {
    /// All devices of a capture; those that share tags are on one set.
    pub(crate) fn new(setups: &[Setup], calls: bool, size: Size) -> World {
        let configs = setups.iter().map(|setup| config(setup, size));
        let shared = setups.first().is_some_and(|setup| setup.queue_shared);
        let sets: Vec<Vec<QueueConfig>> = match shared {
            true => vec![configs.collect()],
            false => configs.map(|config| vec![config]).collect(),
        };
        let mq = BlkMq::with_sets(&sets, &mut || 0);
        World {
            outside: Outside {
                run_work: setups.iter().map(|s| vec![false; s.hctxs.len()]).collect(),
                run_due: setups.iter().map(|s| vec![None; s.hctxs.len()]).collect(),
                hz: setups.first().map_or(1, |s| s.hz),
                picks: u32::MAX,
                requeue_work: vec![false; setups.len()],
                budgets: vec![0; setups.len()],
                budgets_max: setups.iter().map(|setup| setup.budget).collect(),
                timers: Timers::default(),
                reported: Vec::new(),
                said: Vec::new(),
                said_unlocked: Vec::new(),
                unlocked: setups.iter().map(Setup::unlocked_lines).collect(),
                ahead: Vec::new(),
            },
            mq,
            actors: (0..size.actors).map(Actor::new).collect(),
            calls,
            labels: Rc::new(Labels::new()),
            ticks: None,
        }
    }
}

fn config(setup: &Setup, size: Size) -> QueueConfig {
    let elevator = setup.scheduler.clone();
    let scheduler = elevator.kind();
    let tags = setup.hctxs.iter().map(|hctx| hctx.tags).max().unwrap_or(1);
    let cpus = setup.hctxs.iter().flat_map(|hctx| &hctx.cpus).max();
    let cpus = cpus.map_or(1, |&cpu| cpu + 1).max(setup.cpus);
    let queues = (0..cpus).map(|cpu| HctxId(setup.hctx_of(cpu) as u16));
    let slots = if setup.has_scheduler() {
        setup.nr_requests
    } else {
        tags
    };
    QueueConfig {
        settings: QueueSettings {
            limits: setup.limits,
            nomerges: setup.nomerges,
            hz: setup.hz,
            io_timeout: setup.io_timeout,
            blocking: setup.blocking,
            driver_budget: setup.budget.is_some(),
            driver_queue_rqs: setup.driver.queue_rqs,
            driver_commit_rqs: setup.driver.commit_rqs,
            should_merge: true,
            slots_per_map: slots,
            nr_requests_first: setup.nr_requests_first(),
            rotational: setup.rotational,
            rotational_when_chosen: setup.rotational_when_chosen,
            access_ranges: Vec::new(),
            submitters: setup.submitters.clone(),
            log: setup.listens,
            ..QueueSettings::plain(setup.rules, scheduler, setup.nr_requests)
        },
        tags: TagSetConfig {
            hctx_shared: setup.hctx_shared,
            waiters: size.actors,
            tasks: size.actors,
            ..TagSetConfig::plain(setup.hctxs.len() as u16, tags.max(1))
        },
        topology: CpuTopology::given(queues.collect()),
        elevator,
        further: Vec::new(),
        bios: size.bios,
        mapped: None,
        above: None,
    }
}
