//! The state of a queue whose requests or bios are mapped to queues below, and of those.
//!
//! The target is plain data guarded by its locks; the lines of its words that paths read without a
//! lock are here. Not here: operations on it (`path/map.rs`), the policy (`dm/`). Kernel: struct
//! mapped_device, struct dm_rq_target_io in drivers/md/dm-rq.c, struct multipath in dm-mpath.c
//! (6.1.192).

use super::{Above, QueueConfig, RequestQueue};
use crate::call::WaitQueue;
use crate::dm::multipath::Multipath;
use crate::dm::selector::SelectorKind;
use crate::dm::table::{QueueMode, Table};
use crate::dm::{self, GroupId, PathId};
use crate::env::{Bit, CacheLine, Count, Lock, Slab, Toucher, value};
use crate::request::{BioId, CpuId, QueueId, RequestId, Status};
use crate::rules::DeviceMapper;
use crate::time::SimTime;
use crate::waiter::WaiterId;
use std::collections::VecDeque;

/// The configuration of a mapped queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedConfig {
    pub table: Table,
    /// The queue of each path, those of the first group first.
    pub below: Vec<QueueId>,
    pub nodes: Vec<u16>,
    /// Module parameter queue_if_no_path_timeout_secs; 0: never.
    pub timeout_secs: u64,
}

/// Further state of a queue whose requests are mapped.
#[derive(Debug)]
pub struct Mapped {
    pub below: Vec<QueueId>,
    kinds: Vec<SelectorKind>,
    /// m->lock.
    pub lock: Lock<()>,
    /// The lock of each group's selector.
    pub selectors: Vec<Lock<()>>,
    /// The line of the target's flags, current path and group.
    pub fields: CacheLine,
    /// The line of each path's account.
    pub accounts: Vec<CacheLine>,
    /// md->pending.
    pub pending: Count,
    /// md->holders.
    pub holders: Count,
    /// md->wait: waiters until nothing is in flight (4.20).
    pub wait: Lock<Vec<WaiterId>>,
    /// m->pg_init_wait: waiters until no path is being activated.
    pub init_wait: Lock<Vec<WaiterId>>,
    /// Further state for bios; none: it maps requests.
    pub bios: Option<BioBased>,
    /// The target, and its data of each request.
    pub state: Slab<MapState>,
}

value!(Mapped {
    below, kinds;
    lock, selectors, fields, accounts, pending, holders, wait, init_wait, bios, state
});

/// Further state of a bio-based device.
#[derive(Debug)]
pub struct BioBased {
    /// DMF_BLOCK_IO_FOR_SUSPEND: new bios wait for the resume.
    pub blocked: Bit,
    /// Bios that wait for the resume, and writes whose flush has ended (md->deferred), under
    /// md->deferred_lock.
    pub deferred: Lock<VecDeque<BioId>>,
}

value!(BioBased { ; blocked, deferred });

/// The target, and its data of each request of the mapped queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MapState {
    pub target: Multipath,
    /// By slot of the request (dm_rq_target_io); empty for a bio-based device.
    pub tios: Vec<Tio>,
    /// By slot of the bio (dm_target_io); empty where requests are mapped.
    pub bios: Vec<BioTio>,
    /// Bios in progress, where each CPU counts its own (md->pending_io).
    pub pending: u32,
    /// Held bios that the worker has taken off the list.
    pub taken: VecDeque<BioId>,
}

/// State of a bio (dm_io, dm_target_io, dm_mpath_io).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BioTio {
    /// Its clone, in the queue of the path.
    pub clone: Option<BioId>,
    /// The last chosen path, also when its clone has ended.
    pub mapped: Option<dm::Mapped>,
    pub started: SimTime,
}

/// State of a request (dm_rq_target_io).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tio {
    /// Its clone, in the queue of the path.
    pub clone: Option<RequestId>,
    /// The chosen path.
    pub mapped: Option<dm::Mapped>,
    /// Status of the clone, or that there was none.
    pub status: Status,
}

/// The state of the queue of a path: the requests that its own are clones of.
#[derive(Debug)]
pub struct Clones {
    pub above: QueueId,
    /// By slot of the clone.
    pub of: Slab<CloneOf>,
}

value!(Clones { above; of });

/// The request above of each clone, by the clone's slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CloneOf(pub Vec<RequestId>);

/// Its lines are those of [`Mapped`].
impl Toucher for MapState {
    fn touched_by(&mut self, _cpu: CpuId) {}
}

/// On the line of the request.
impl Toucher for CloneOf {
    fn touched_by(&mut self, _cpu: CpuId) {}
}

impl RequestQueue {
    /// Its waiters. Panics for an event that the queue does not have.
    pub fn wait_queue(&self, of: WaitQueue) -> &Lock<Vec<WaiterId>> {
        match of {
            WaitQueue::Freeze => &self.freeze_wq,
            WaitQueue::InFlight => &self.own_mapped().wait,
            WaitQueue::Activation => &self.own_mapped().init_wait,
        }
    }

    /// State of a mapped queue. Panics for any other.
    pub fn own_mapped(&self) -> &Mapped {
        self.mapped.as_ref().expect("it is a mapped queue")
    }
}

impl Mapped {
    /// State of the queue of a configuration, with so many requests.
    pub(super) fn of(config: &QueueConfig, requests: usize) -> Option<Box<Mapped>> {
        let rules = config.settings.rules.device_mapper;
        let mapped = config.mapped.as_ref()?;
        let mut of = Mapped::new(mapped, rules, requests);
        if mapped.table.queue_mode == QueueMode::Bio {
            of.map_bios(config.bios);
        }
        Some(Box::new(of))
    }

    /// It maps bios, of which there are so many at most.
    fn map_bios(&mut self, most: usize) {
        self.bios = Some(BioBased {
            blocked: Bit::new(false),
            deferred: Lock::new(VecDeque::with_capacity(most)),
        });
        let mut state = self.state.held(CpuId(0));
        state.target.reserve(most);
        state.tios = Vec::new();
        state.bios = vec![BioTio::default(); most];
        state.taken.reserve(most);
    }

    /// For so many requests. Panics unless each path has a queue.
    fn new(config: &MappedConfig, rules: DeviceMapper, requests: usize) -> Mapped {
        let MappedConfig {
            table,
            below,
            nodes,
            timeout_secs,
        } = config;
        assert_eq!(table.paths().count(), below.len(), "each path has a queue");
        let groups = table.groups.iter();
        Mapped {
            below: below.clone(),
            kinds: groups.map(|group| group.selector).collect(),
            lock: Lock::new(()),
            selectors: table.groups.iter().map(|_| Lock::new(())).collect(),
            fields: CacheLine::default(),
            accounts: below.iter().map(|_| CacheLine::default()).collect(),
            pending: Count::new(0),
            holders: Count::new(0),
            wait: Lock::new(Vec::new()),
            init_wait: Lock::new(Vec::new()),
            bios: None,
            state: Slab::new(MapState {
                target: Multipath::new(table, rules, nodes, *timeout_secs),
                tios: vec![Tio::default(); requests],
                bios: Vec::new(),
                pending: 0,
                taken: VecDeque::new(),
            }),
        }
    }

    pub fn queue_of(&self, path: PathId) -> QueueId {
        self.below[path.index()]
    }

    /// State of a bio-based device. Panics for one that maps requests.
    pub fn own_bios(&self) -> &BioBased {
        self.bios.as_ref().expect("the device maps bios")
    }

    /// The selector of a group has a lock.
    pub fn locks(&self, group: GroupId) -> bool {
        self.kinds[group.index()] != SelectorKind::IoAffinity
    }

    /// Inspects the target while nothing runs.
    pub fn with_state<R>(&self, look: impl FnOnce(&mut MapState) -> R) -> R {
        look(&mut self.state.held(CpuId(0)))
    }
}

/// The state of the queue of a path, with so many requests: clones of requests or of bios.
pub(super) fn of_above(
    above: Option<Above>,
    requests: usize,
) -> (Option<Box<Clones>>, Option<QueueId>) {
    match above {
        Some(Above::Requests(above)) => (Some(Box::new(Clones::new(above, requests))), None),
        Some(Above::Bios(above)) => (None, Some(above)),
        None => (None, None),
    }
}

impl Clones {
    /// For so many clones of requests of that queue.
    pub fn new(above: QueueId, requests: usize) -> Clones {
        Clones {
            above,
            of: Slab::new(CloneOf(vec![RequestId(0); requests])),
        }
    }

    /// The request that a clone belongs to.
    pub fn original(&self, clone: RequestId) -> RequestId {
        self.of.held(CpuId(0)).0[clone.0 as usize]
    }

    /// Sets the request that it belongs to.
    pub fn set_original(&self, clone: RequestId, of: RequestId) {
        self.of.held(CpuId(0)).0[clone.0 as usize] = of;
    }
}
