//! Priorities of single I/Os: a part of the reads and writes, or of those of a size.
//!
//! After fio 3.33 engines/cmdprio.c.

use crate::plan::{CmdPrio, PerDirection, SizePrio};
use crate::rng::Rng;
use blkmq::request::IoPrio;

#[derive(Clone, Debug)]
pub(super) struct Priorities {
    plan: PerDirection<Vec<SizePrio>>,
    rng: Rng,
}

impl Priorities {
    pub(super) fn of(plan: &CmdPrio, rng: Rng) -> Option<Box<Priorities>> {
        let plan = plan.shares.clone();
        let any = !plan.read.is_empty() || !plan.write.is_empty();
        any.then(|| Box::new(Priorities { plan, rng }))
    }

    /// fio_cmdprio_set_ioprio(): of a read (0) or write (1) of so many sectors; class none: that
    /// of the thread.
    pub(super) fn draw(&mut self, direction: usize, sectors: u32) -> IoPrio {
        let shares = match direction {
            0 => &self.plan.read,
            1 => &self.plan.write,
            _ => return IoPrio::default(),
        };
        let fits = |share: &&SizePrio| share.sectors == 0 || share.sectors == sectors;
        let percent = |share: &SizePrio| u64::from(share.percent);
        if shares.iter().filter(fits).map(percent).sum::<u64>() == 0 {
            return IoPrio::default();
        }
        let mut left = self.rng.below(100);
        for share in shares.iter().filter(fits) {
            if left < percent(share) {
                return share.prio;
            }
            left -= percent(share);
        }
        IoPrio::default()
    }
}
