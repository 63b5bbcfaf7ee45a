//! Where sectors lie on the platters, and how long the arm and the platters take to bring one under
//! a head.
//!
//! Time is all there is: the platters stand at an angle that follows from the simulated clock, so a
//! run repeats itself. Angles are given as the time that the platters need for them.

use blkmq::request::Sector;
use blkmq::time::{Duration, SimTime};

use crate::plan::AhciPlan;

/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// The platters and the arm.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    /// Of one turn, ns.
    turn: u64,
    heads: u32,
    cylinders: u32,
    /// From one head to the next of a cylinder, ns: also how far the next track is turned.
    head_switch: u64,
    /// From the last head of a cylinder to the first of the next, ns: the same.
    cylinder_switch: u64,
    seek: SeekCurve,
    /// From the outside, which is sector 0, to the inside.
    zones: Vec<Zone>,
    sectors: u64,
}

/// Time of a movement of the arm: with the root of the way up to a third of all cylinders, then
/// with the way.
#[derive(Clone, Copy, Debug)]
struct SeekCurve {
    least: u64,
    third: u64,
    full: u64,
    cylinders: u64,
}

/// Cylinders whose tracks have equally many sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u32,
    per_track: u32,
}

/// A place on the platters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Spot {
    /// From the outside.
    pub(super) cylinder: u32,
    /// Which surface.
    pub(super) head: u32,
    /// Sector of the track.
    index: u32,
    /// Sectors of the track.
    per_track: u32,
}

impl SeekCurve {
    fn time(self, distance: u32) -> u64 {
        let (distance, knee) = (u64::from(distance), self.cylinders / 3);
        if distance == 0 {
            return 0;
        }
        if distance <= knee {
            // Roots of numbers times 2^20: a thousandth of a cylinder is enough.
            let (root, all) = ((distance << 20).isqrt(), (knee << 20).isqrt());
            return self.least + (self.third - self.least) * root / all;
        }
        let rest = self.cylinders - 1 - knee;
        self.third + (self.full - self.third) * (distance - knee) / rest
    }
}

impl Geometry {
    /// That of a plan. Panics if it has no zone, or zones without cylinders.
    pub(super) fn new(plan: &AhciPlan) -> Geometry {
        let seek = SeekCurve {
            least: plan.seek_track.0,
            third: plan.seek_third.0,
            full: plan.seek_full.0,
            cylinders: u64::from(plan.cylinders),
        };
        let head_switch = plan.head_switch.0;
        let mut geometry = Geometry {
            turn: plan.turn().0,
            heads: plan.heads,
            cylinders: plan.cylinders,
            head_switch,
            cylinder_switch: seek.time(1).max(head_switch),
            seek,
            zones: Vec::with_capacity(plan.zones as usize),
            sectors: 0,
        };
        for zone in 0..plan.zones {
            let first_cylinder = share(plan.cylinders, zone, plan.zones);
            let cylinders = share(plan.cylinders, zone + 1, plan.zones) - first_cylinder;
            assert!(cylinders > 0, "a zone has cylinders");
            let per_track = geometry.per_track(plan, zone);
            geometry.zones.push(Zone {
                first_sector: geometry.sectors,
                first_cylinder,
                per_track,
            });
            let tracks = u64::from(cylinders) * u64::from(plan.heads);
            geometry.sectors += tracks * u64::from(per_track);
        }
        geometry
    }

    /// Sectors of a track of this zone: with them a whole cylinder streams at the zone's rate, its
    /// switches included.
    fn per_track(&self, plan: &AhciPlan, zone: u32) -> u32 {
        let (outer, inner) = (plan.outer_bytes, plan.inner_bytes);
        let last = u64::from(plan.zones.max(2) - 1);
        let rate = outer - (outer - inner) * u64::from(zone) / last;
        let heads = u64::from(self.heads);
        let cylinder = heads * self.turn + (heads - 1) * self.head_switch + self.cylinder_switch;
        let bytes = u128::from(rate) * u128::from(cylinder) / 1_000_000_000;
        (bytes as u64 / SECTOR_BYTES / heads).max(1) as u32
    }

    /// Sectors of the disk.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// One turn.
    pub(super) fn turn(&self) -> Duration {
        Duration(self.turn)
    }

    /// Where a sector lies; that behind the last one lies on the last track.
    pub(super) fn locate(&self, sector: Sector) -> Spot {
        let at = sector.0.min(self.sectors - 1);
        let zone = self.zones.partition_point(|zone| zone.first_sector <= at) - 1;
        let zone = self.zones[zone];
        let within = at - zone.first_sector;
        let track = within / u64::from(zone.per_track);
        Spot {
            cylinder: zone.first_cylinder + (track / u64::from(self.heads)) as u32,
            head: (track % u64::from(self.heads)) as u32,
            index: (within % u64::from(zone.per_track)) as u32,
            per_track: zone.per_track,
        }
    }

    /// The angle at which the sector begins.
    fn angle(&self, spot: Spot) -> u64 {
        let cylinder = u64::from(spot.cylinder);
        let switches = cylinder * u64::from(self.heads - 1) + u64::from(spot.head);
        let skew = switches * self.head_switch + cylinder * self.cylinder_switch;
        (skew + self.within(spot, spot.index)) % self.turn
    }

    /// How far behind the beginning of its track a sector begins.
    fn within(&self, spot: Spot, index: u32) -> u64 {
        u64::from(index) * self.turn / u64::from(spot.per_track)
    }

    /// When the arm is there: it leaves `from` at `now`.
    fn moved(&self, from: Spot, to: Spot, now: SimTime) -> SimTime {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let takes = match distance {
            0 if from.head == to.head => 0,
            0 => self.head_switch,
            _ => self.seek.time(distance),
        };
        now + Duration(takes)
    }

    /// When the sector at `to` begins under its head, if the arm leaves `from` at `now`.
    pub(super) fn arrives(&self, from: Spot, to: Spot, now: SimTime) -> SimTime {
        let there = self.moved(from, to, now);
        let angle = there.0 % self.turn;
        let wait = (self.angle(to) + self.turn - angle) % self.turn;
        there + Duration(wait)
    }

    /// When `end` has passed under the head, which stands before `sector` at `start`.
    pub(super) fn passes(&self, sector: Sector, end: Sector, start: SimTime) -> SimTime {
        let mut walk = Walk::new(self, sector, start);
        while walk.sector < end {
            walk.track(end, SimTime(u64::MAX));
        }
        walk.at
    }

    /// How far the head has come by `by`, if it stands before `sector` at `start` and stops at
    /// `end`; and when it was there.
    pub(super) fn comes_to(
        &self,
        sector: Sector,
        end: Sector,
        start: SimTime,
        by: SimTime,
    ) -> (Sector, SimTime) {
        let mut walk = Walk::new(self, sector, start);
        while walk.sector < end && walk.track(end, by) {}
        (walk.sector, walk.at)
    }
}

/// The platters pass under the head, track by track.
struct Walk<'a> {
    geometry: &'a Geometry,
    sector: Sector,
    at: SimTime,
}

impl Walk<'_> {
    fn new(geometry: &Geometry, sector: Sector, at: SimTime) -> Walk<'_> {
        Walk {
            geometry,
            sector,
            at,
        }
    }

    /// To the end of the track, to `end` or as far as `by`, whatever comes first; at the end of the
    /// track the head goes on to the next one. False: the time is over.
    fn track(&mut self, end: Sector, by: SimTime) -> bool {
        let g = self.geometry;
        let spot = g.locate(self.sector);
        let rest = u64::from(spot.per_track - spot.index);
        let take = rest.min(end.0 - self.sector.0) as u32;
        let begun = g.within(spot, spot.index);
        let passes = self.at + Duration(g.within(spot, spot.index + take) - begun);
        if passes > by {
            let turned = begun + by.0.saturating_sub(self.at.0);
            let index = turned * u64::from(spot.per_track) / g.turn;
            let come = index.saturating_sub(u64::from(spot.index));
            self.at = self.at + Duration(g.within(spot, spot.index + come as u32) - begun);
            self.sector.0 += come;
            return false;
        }
        self.at = passes;
        self.sector.0 += u64::from(take);
        if u64::from(take) == rest && self.sector < end {
            let last_head = spot.head + 1 == g.heads;
            let switch = if last_head {
                g.cylinder_switch
            } else {
                g.head_switch
            };
            self.at = self.at + Duration(switch);
        }
        true
    }
}

/// The beginning of part `part` of `parts` of so many.
fn share(all: u32, part: u32, parts: u32) -> u32 {
    (u64::from(all) * u64::from(part) / u64::from(parts)) as u32
}

#[cfg(test)]
mod tests;
