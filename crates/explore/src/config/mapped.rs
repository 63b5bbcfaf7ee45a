//! A mapped queue over those of its paths: the queues below, and the events of the paths.
//!
//! Queue 0 is the mapped one; the queues of paths follow, each on a tag set of its own and without
//! scheduler. Not here: the steps (`world/mapped.rs`).

use super::Config;
use blkmq::dm::multipath::{InitResult, Message};
use blkmq::dm::table::{QueueMode, Table};
use blkmq::elevator::{SchedulerKind, SchedulerSettings};
use blkmq::queue::{Above, MappedConfig, QueueConfig};
use blkmq::request::QueueId;

/// The target of a mapped queue, and the events that may happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paths {
    /// A line of dmsetup table; device names in it are ignored.
    pub table: String,
    /// Driver tags of each path's queue.
    pub tags: u32,
    /// Bios that the queue of a path has room for. With no room a clone cannot be set up, as when
    /// an allocation fails in the kernel.
    pub bios: usize,
    /// Messages to the target, in order, at any time.
    pub messages: Vec<Message>,
    /// multipathd reinstates failed paths, at any time.
    pub reinstates: bool,
    /// How often the device of a path may end a clone with a path error.
    pub errors: u8,
    /// Bad results of activations, each of them once.
    pub inits: Vec<InitResult>,
    /// The timer of held requests exists and may expire at any time.
    pub no_path_timer: bool,
    /// So often the device is suspended and resumed, at any time; true: without flush. No message
    /// comes while it is suspended.
    pub suspensions: Vec<bool>,
}

impl Paths {
    /// Two paths in one group, the queue-length selector, a tag for each of two requests, and no
    /// failures.
    pub fn two() -> Paths {
        Paths {
            table: "0 8 multipath 0 0 1 1 queue-length 0 2 1 a 1 b 1".to_owned(),
            tags: 2,
            bios: 2,
            messages: Vec::new(),
            reinstates: false,
            errors: 0,
            inits: Vec::new(),
            no_path_timer: false,
            suspensions: Vec::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.read().paths().count()
    }

    pub(crate) fn maps_bios(&self) -> bool {
        self.read().queue_mode == QueueMode::Bio
    }

    fn read(&self) -> Table {
        // All kernels count paths alike.
        let rules = &blkmq::rules::DeviceMapper::V6_12;
        let table = Table::parse(&self.table, rules, 1);
        table.expect("a line of a table")
    }

    /// The mapped queue, then the queues of its paths.
    pub(super) fn sets(&self, of: &Config, upper: QueueConfig) -> Vec<Vec<QueueConfig>> {
        assert_eq!((of.queues, of.hctxs), (1, 1), "one mapped queue, one hctx");
        let rules = &of.rules.device_mapper;
        let table = Table::parse(&self.table, rules, usize::from(of.cpus));
        let table = table.expect("a line of a table");
        let below: Vec<QueueId> = (1..).map(QueueId).take(table.paths().count()).collect();
        let mut lower = upper.clone();
        let settings = &mut lower.settings;
        settings.scheduler = SchedulerKind::None;
        settings.nr_requests = self.tags;
        settings.nr_requests_first = self.tags;
        settings.slots_per_map = self.tags;
        lower.tags.queue_depth = self.tags;
        lower.elevator = SchedulerSettings::None;
        lower.further.clear();
        lower.bios = self.bios;
        lower.above = Some(match table.queue_mode {
            QueueMode::Request => Above::Requests(QueueId(0)),
            QueueMode::Bio => Above::Bios(QueueId(0)),
        });
        let mut sets = vec![vec![lower]; 1 + below.len()];
        sets[0][0] = QueueConfig {
            mapped: Some(MappedConfig {
                table,
                below,
                nodes: vec![0; usize::from(of.cpus)],
                timeout_secs: u64::from(self.no_path_timer),
            }),
            ..upper
        };
        sets
    }
}
