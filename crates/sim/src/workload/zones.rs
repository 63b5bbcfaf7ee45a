//! Strided zones: the I/Os of a file stay in a zone until it had its share, then go to the next.
//!
//! After fio 3.33 io_u.c setup_strided_zone_mode(). The share is counted for the thread, the zone
//! is the file's.

use super::place::Places;
use crate::plan::ZonesPlan;

#[derive(Clone, Debug)]
pub(super) struct Zones {
    // Settings.
    plan: ZonesPlan,

    // State.
    /// Sectors of I/O since the last change of a zone.
    pub(super) done_sectors: u64,
}

impl Zones {
    pub(super) fn of(plan: ZonesPlan) -> Zones {
        Zones {
            plan,
            done_sectors: 0,
        }
    }

    /// Before an I/O of this direction in a file.
    pub(super) fn enter(&mut self, places: &mut Places, direction: usize) {
        let plan = self.plan;
        if self.done_sectors >= plan.size_sectors {
            self.done_sectors = 0;
            places.next_zone(plan.range_sectors + plan.skip_sectors, direction);
        }
        places.stay_in_zone(direction);
        if self.done_sectors.is_multiple_of(plan.range_sectors) {
            places.reset_all();
        }
    }
}
