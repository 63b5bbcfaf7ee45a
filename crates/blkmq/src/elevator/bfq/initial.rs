//! The initial state of BFQ: idle, for a device of this shape.
//!
//! Kernel: bfq_init_queue(), bfq_init_root_group() in block/bfq-iosched.c (6.1.192, 6.12.117).

use super::budget::BUDGET_MAX_DEFAULT;
use super::entity::{Entities, Entity};
use super::explained::Explained;
use super::fixed::Fixed;
use super::group::{AsyncQueues, Group};
use super::idling::HwTag;
use super::ids::GroupId;
use super::queue::Queues;
use super::rate::{REFERENCE, REFERENCE_WR_MS, Rate};
use super::settings::BfqSettings;
use super::{Bfq, INFO, ZERO};
use crate::elevator::event_log::EventLog;
use crate::elevator::messages::Messages;
use crate::elevator::submitters::SubmitterGroup;
use crate::list::QueueList;
use crate::merge::MergeIndex;
use crate::not_state::NotState;
use crate::queue::{ACCESS_RANGES_MAX, QueueSettings};
use crate::time::{Jiffies, SimTime};

impl Bfq {
    pub fn new(settings: &BfqSettings, queue: &QueueSettings) -> Bfq {
        let rules = queue.rules.fair_queueing;
        let kind = usize::from(!queue.rotational_when_chosen);
        let fixed = Fixed::new(settings.hz, &rules);
        let groups = &queue.submitters.groups;
        let actuators = match rules.actuators {
            true if queue.access_ranges.len() <= ACCESS_RANGES_MAX => {
                queue.access_ranges.len().max(1)
            }
            _ => 1,
        };
        let ranges = match actuators {
            1 => Vec::new(),
            _ => queue.access_ranges.clone(),
        };
        let raise = Jiffies::from_millis(REFERENCE_WR_MS[kind], settings.hz);
        let mut bfq = Bfq {
            ranges,
            rate_dur_product: u64::from(REFERENCE[kind]) * raise.0,
            entities: Entities {
                list: groups.iter().map(entity_of_group).collect(),
                groups: groups.len() as u32,
            },
            groups: groups.iter().map(|_| fresh_group(actuators)).collect(),
            active_lists: vec![Vec::new(); actuators],
            in_driver: vec![0; actuators],
            peak_rate: REFERENCE[kind] * 2 / 3,
            fixed,
            ..Bfq::idle(settings, queue)
        };
        if settings.max_budget != 0 {
            bfq.max_budget = settings.max_budget.cast_signed();
        } else if settings.timeout_sync != i64::from(settings.hz / 8) {
            // The write to the attribute has measured the budget again.
            bfq.max_budget = bfq.calc_max_budget();
        }
        bfq
    }

    /// The state without the parts that depend on the device's shape.
    fn idle(settings: &BfqSettings, queue: &QueueSettings) -> Bfq {
        Bfq {
            settings: *settings,
            rules: queue.rules.fair_queueing,
            depth_hook: queue.rules.depth_hook,
            fixed: Fixed::new(settings.hz, &queue.rules.fair_queueing),
            submitters: queue.submitters.clone(),
            kworker: 0,
            rotational: queue.rotational,
            ranges: Vec::new(),
            rate_dur_product: 0,
            now: SimTime::ZERO,
            clock_kept: false,
            tick: 0,
            queues: Queues::default(),
            entities: Entities::default(),
            groups: Vec::new(),
            processes: Vec::new(),
            dispatch_list: QueueList::new(),
            index: MergeIndex::default(),
            in_service: None,
            active_lists: Vec::new(),
            idle_list: Vec::new(),
            busy_queues: [0; 3],
            wr_busy_queues: 0,
            explained: NotState(Explained::default()),
            queued: 0,
            elevator_queued: 0,
            weights: Vec::new(),
            pending_groups: 0,
            in_driver: Vec::new(),
            in_driver_total: 0,
            max_in_driver: 0,
            hw_tag: HwTag::Unknown,
            hw_tag_samples: 0,
            nonrot_with_queueing: !queue.rotational_when_chosen,
            budgets_assigned: 0,
            max_budget: BUDGET_MAX_DEFAULT,
            peak_rate: 0,
            rate: Rate::default(),
            last_position: 0,
            in_serv_last_pos: 0,
            last_completion_ns: 0,
            last_completed: None,
            last_created: None,
            last_budget_start_ns: 0,
            last_idling_start_ns: 0,
            last_idling_start: 0,
            last_empty_occupied_ns: 0,
            wait_dispatch: false,
            waited_rq: None,
            rqs_injected: false,
            burst_list: Vec::new(),
            burst_size: 0,
            burst_group: None,
            large_burst: false,
            last_in_burst: ZERO,
            bio_queue: None,
            bio_traced: true,
            timer: None,
            timer_armed: false,
            runs: false,
            log: Messages::new(INFO.name, queue.log),
            merge_events: EventLog::default(),
            carrying: None,
            shown: None,
            operations: 0,
            touched: 0,
        }
    }
}

fn entity_of_group(group: &SubmitterGroup) -> Entity {
    let weight = u32::from(group.weight);
    Entity {
        weight,
        new_weight: weight,
        orig_weight: weight,
        group: GroupId(group.parent),
        ..Entity::default()
    }
}

fn fresh_group(actuators: usize) -> Group {
    Group {
        async_queues: vec![AsyncQueues::default(); actuators],
        idle_class_served: ZERO,
        ..Group::default()
    }
}
