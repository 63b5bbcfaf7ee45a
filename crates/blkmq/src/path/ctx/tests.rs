//! What a script cannot bring about: a software queue that is empty though its bit was set.

use super::{At, BUDGET_DELAY, CtxPath};

use crate::elevator::SchedulerKind;
use crate::env::{Cpu, Effect, Solo};
use crate::path::PullStep;
use crate::path::list::ListPath;
use crate::queue::{BlkMq, QueueConfig, QueueSettings};
use crate::request::{CpuId, HctxId, QueueId};
use crate::rules::{NoMerges, QueueLimits, Rules};
use crate::tags::{CpuTopology, HctxCounts, TagSetConfig};

fn config(hctxs: u16) -> QueueConfig {
    QueueConfig {
        settings: QueueSettings {
            limits: QueueLimits {
                max_sectors: 255,
                ..QueueLimits::PLAIN
            },
            nomerges: NoMerges::All,
            driver_budget: true,
            should_merge: true,
            ..QueueSettings::plain(Rules::v6_12(), SchedulerKind::None, 4)
        },
        tags: TagSetConfig {
            queue_depth: 4,
            counts: HctxCounts {
                default: hctxs,
                read: 0,
                poll: 0,
            },
            hctx_shared: false,
            vectors: false,
            waiters: 1,
            wait_queues: 8,
        },
        topology: CpuTopology::flat(hctxs),
        elevator: SchedulerKind::None.defaults(250, 1),
        further: Vec::new(),
        bios: 1,
    }
}

/// blk_mq_delay_run_hw_queues(): the budget that goes back may have held any hctx up.
#[test]
fn a_budget_taken_for_nothing_lets_every_hctx_run_again() {
    let mq: BlkMq<Solo> = BlkMq::new(&config(20), &mut || 0);
    let mut path = CtxPath::new(false);
    path.at = At::Withheld;
    let (mut list, mut cpu) = (ListPath::idle(), Cpu::new(CpuId(3)));
    let mut kicked = Vec::new();
    loop {
        cpu.begin_label();
        let step = path.step(&mut list, &mq, QueueId(0), HctxId(3), &mut cpu);
        let mut index = 0;
        while let Some(effect) = cpu.outbox.take(index) {
            index += 1;
            let Effect::KickUnlessPending { hctx, delay, .. } = effect else {
                panic!("{effect:?}");
            };
            assert_eq!(delay, BUDGET_DELAY);
            kicked.push(hctx.0);
        }
        if matches!(step, PullStep::End { again: false }) {
            break;
        }
    }
    assert_eq!(kicked, (0..20).collect::<Vec<u16>>());
    assert_eq!(path.bit, 0, "as it began");
}
