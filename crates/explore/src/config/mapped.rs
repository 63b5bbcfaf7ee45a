//! A mapped queue over those of its paths: what is below, and what happens to the paths.
//!
//! Queue 0 is the mapped one; each path has a queue of its own behind it, on a tag set of its own
//! and without scheduler. Not here: how it moves (`world/mapped.rs`).

use super::Config;
use blkmq::dm::multipath::{InitResult, Message};
use blkmq::dm::table::{QueueMode, Table};
use blkmq::elevator::{SchedulerKind, SchedulerSettings};
use blkmq::queue::{Above, MappedConfig, QueueConfig};
use blkmq::request::QueueId;

/// What a mapped queue is mapped to, and what may happen to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paths {
    /// A line of dmsetup table; names of devices mean nothing.
    pub table: String,
    /// Driver tags of each path's queue.
    pub tags: u32,
    /// Bios that the queue of a path has room for. A clone that finds none cannot be set up, as
    /// where the kernel finds no memory.
    pub bios: usize,
    /// What the target is told, one after another, at any time.
    pub messages: Vec<Message>,
    /// multipathd reinstates whatever path is out of use, at any time.
    pub reinstates: bool,
    /// How often the device of a path may end a clone with an error of the path.
    pub errors: u8,
    /// How activations may end that do not end well, each of them once.
    pub inits: Vec<InitResult>,
    /// The timer of held requests exists and may expire at any time.
    pub no_path_timer: bool,
    /// The device is suspended at any time and goes on at any time, so often: without flush if so.
    /// No message is told meanwhile.
    pub suspensions: Vec<bool>,
}

impl Paths {
    /// Two paths in one group, counted by queue-length, with a tag for each of two requests and
    /// nothing that fails.
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

    /// Bios are mapped, not requests.
    pub(crate) fn maps_bios(&self) -> bool {
        self.read().queue_mode == QueueMode::Bio
    }

    fn read(&self) -> Table {
        // Any kernel counts them alike.
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
