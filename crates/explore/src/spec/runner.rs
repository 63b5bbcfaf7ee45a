//! The stack and the CPU on which actions run; no state contains them.

use blkmq::drive::Stack;
use blkmq::elevator::SchedulerSettings;
use blkmq::env::Cpu;
use blkmq::path::Label;
use blkmq::queue::{BlkMq, QueueConfig, QueueSettings};
use blkmq::request::{Bio, BioId, CpuId, Op, QueueId, Sector, Sectors};
use blkmq::tags::{CpuTopology, HctxCounts, TagSetConfig};

/// Takes actions, label by label.
#[derive(Debug)]
pub struct Runner {
    pub(crate) cpu: Cpu,
    pub(crate) stack: Stack,
    /// Labels that ran in the last action, if a log is wanted.
    pub(crate) log: Option<Vec<Label>>,
}

impl Runner {
    /// With `log` it records the labels that ran.
    pub fn new(log: bool) -> Runner {
        let mut cpu = Cpu::new(CpuId(0));
        cpu.owner = 1;
        Runner {
            cpu,
            stack: Stack::default(),
            log: log.then(Vec::new),
        }
    }

    /// Forgets the labels of the last action.
    pub(super) fn clear(&mut self) {
        self.log.iter_mut().for_each(Vec::clear);
    }

    /// The labels of the last action.
    pub(super) fn labels(&self) -> &[Label] {
        self.log.as_deref().unwrap_or_default()
    }
}

/// A read of one request of the specification; no other one is next to it.
pub(crate) fn add_read(mq: &BlkMq, queue: QueueId, request: u8, place: u32) -> BioId {
    let mut bio = Bio::default();
    bio.op = Op::Read;
    bio.sector = Sector(u64::from(place) * 100);
    bio.sectors = Sectors(8);
    bio.segments = 1;
    bio.owner = u32::from(request);
    let bio = mq.queue(queue).with_pool(|pool| pool.add_bio(bio));
    bio.expect("there is a slot for every bio")
}

/// So many idle queues of one tag set; all requests of a queue have scheduler tags.
pub(crate) fn queues_of_one_set(
    (queues, hctxs, cpus): (u8, u8, u8),
    settings: QueueSettings,
    elevator: SchedulerSettings,
    tags: u32,
) -> BlkMq {
    let bios = settings.nr_requests as usize;
    let queue = QueueConfig {
        settings,
        tags: TagSetConfig {
            queue_depth: tags,
            counts: HctxCounts {
                default: u16::from(hctxs),
                read: 0,
                poll: 0,
            },
            hctx_shared: false,
            vectors: false,
            waiters: 0,
            tasks: 0,
            wait_queues: 1,
        },
        topology: CpuTopology::flat(u16::from(cpus)),
        elevator,
        further: Vec::new(),
        bios,
        mapped: None,
        above: None,
    };
    let mut mq = BlkMq::with_sets(&[vec![queue; usize::from(queues)]], &mut || 0);
    for map in mq.queues.iter_mut().flat_map(|queue| &mut queue.sched) {
        // Tasks never wait for a scheduler tag: every request has one.
        map.keep_wait_queues(1);
    }
    mq
}
