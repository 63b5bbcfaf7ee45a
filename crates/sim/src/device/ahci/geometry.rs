//! Where sectors lie on the platters, and how long the arm and the platters take to bring one under
//! a head.
//!
//! The angle of the platters follows from the simulated clock, so a run repeats itself. Angles are
//! given as the time that the platters need for them.

use blkmq::request::Sector;
use blkmq::time::{Duration, SimTime};

use crate::plan::{AhciPlan, DiskZone};

/// The platters and the arm.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    plan: AhciPlan,
    /// Of one turn, ns.
    turn: u64,
    heads: u32,
    /// From one head to the next of a cylinder, ns: also how far the next track is turned.
    head_switch: u64,
    /// From the last head of a cylinder to the first of the next, ns: the same.
    cylinder_switch: u64,
    /// From the outside, which is sector 0, to the inside.
    zones: Vec<DiskZone>,
    sectors: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Spot {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    index: u32,
    per_track: u32,
}

impl Geometry {
    /// Panics if the plan has zones without cylinders.
    pub(super) fn new(plan: &AhciPlan) -> Geometry {
        let (zones, sectors) = plan.layout();
        Geometry {
            plan: *plan,
            turn: plan.turn().0,
            heads: plan.heads,
            head_switch: plan.head_switch.0,
            cylinder_switch: plan.cylinder_switch().0,
            zones,
            sectors,
        }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn turn(&self) -> Duration {
        Duration(self.turn)
    }

    /// Where a sector lies; the sector after the last one lies on the last track.
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

    /// Angle from the beginning of its track to that of a sector.
    fn within(&self, spot: Spot, index: u32) -> u64 {
        u64::from(index) * self.turn / u64::from(spot.per_track)
    }

    /// When the arm arrives: it leaves `from` at `now`.
    fn moved(&self, from: Spot, to: Spot, now: SimTime) -> SimTime {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let takes = match distance {
            0 if from.head == to.head => 0,
            0 => self.head_switch,
            _ => self.plan.seek(distance).0,
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

    /// From one track to the next, which may be the next cylinder's.
    fn switch(&self, next_cylinder: bool) -> Duration {
        Duration(match next_cylinder {
            true => self.cylinder_switch,
            false => self.head_switch,
        })
    }

    /// When the head is before `sector`, if the sector in front of it has passed at `at`: the first
    /// sector of a track is reached from the track before.
    pub(super) fn goes_on(&self, sector: Sector, at: SimTime) -> SimTime {
        let spot = self.locate(sector);
        if spot.index > 0 || sector.0 >= self.sectors {
            return at;
        }
        at + self.switch(spot.head == 0)
    }

    /// When `end` has passed under the head, which is before `sector` at `start`.
    pub(super) fn passes(&self, sector: Sector, end: Sector, start: SimTime) -> SimTime {
        let mut walk = Walk::new(self, sector, start);
        while walk.sector < end {
            walk.track(end, SimTime(u64::MAX));
        }
        walk.at
    }

    /// How far the head has come at `by`, if it is before `sector` at `start` and stops at `end`;
    /// and when it arrived there.
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

    /// To the end of the track, to `end` or until `by`, whichever comes first; at the end of the
    /// track the head moves to the next one. False: the time is over.
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
            self.at = self.at + g.switch(spot.head + 1 == g.heads);
        }
        true
    }
}

#[cfg(test)]
mod tests;
