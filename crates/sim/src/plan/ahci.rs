//! A rotational disk's part of a plan: its data, and values derived from them.

use blkmq::time::Duration;

/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// The order in which a disk serves its commands (NCQ).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NcqOrder {
    /// The command that arm and platters reach first.
    Shortest,
    Arrival,
}

impl NcqOrder {
    pub const ALL: [NcqOrder; 2] = [NcqOrder::Shortest, NcqOrder::Arrival];

    pub fn name(self) -> &'static str {
        match self {
            NcqOrder::Shortest => "shortest",
            NcqOrder::Arrival => "arrival",
        }
    }
}

/// Cylinders whose tracks have equally many sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskZone {
    pub first_sector: u64,
    pub first_cylinder: u32,
    /// Sectors of each track.
    pub per_track: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AhciPlan {
    /// Commands that it has at a time (device/queue_depth), 1 to 32.
    pub queue_depth: u32,
    pub order: NcqOrder,
    /// Turns a minute.
    pub rpm: u32,
    /// Positions of the arm.
    pub cylinders: u32,
    /// Tracks of a cylinder.
    pub heads: u32,
    /// Groups of cylinders with equally many sectors a track.
    pub zones: u32,
    /// Sustained rate of the outermost zone, bytes a second.
    pub outer_bytes: u64,
    /// The same of the innermost zone.
    pub inner_bytes: u64,
    /// Time of the arm to the next cylinder.
    pub seek_track: Duration,
    /// The same over a third of all cylinders.
    pub seek_third: Duration,
    /// The same over all of them.
    pub seek_full: Duration,
    /// From one head to the next.
    pub head_switch: Duration,
    /// Time in which the drive decodes a command.
    pub overhead: Duration,
    /// Rate of the link, bytes a second.
    pub link_bytes: u64,
    /// Segments of the read cache; 0: the drive does not read ahead.
    pub segments: u32,
    /// Sectors of each.
    pub segment_sectors: u64,
    /// Sectors that the write cache holds; 0: it is off.
    pub write_cache_sectors: u64,
}

impl AhciPlan {
    /// Time of one turn of the platters.
    pub fn turn(&self) -> Duration {
        Duration(60_000_000_000 / u64::from(self.rpm))
    }

    /// Time of the arm over so many cylinders: up to a third of all it grows with the root of the
    /// distance, then with the distance.
    pub fn seek(&self, distance: u32) -> Duration {
        let (track, third, full) = (self.seek_track.0, self.seek_third.0, self.seek_full.0);
        let (distance, knee) = (u64::from(distance), u64::from(self.cylinders / 3));
        Duration(if distance == 0 {
            0
        } else if distance <= knee {
            // Roots of numbers times 2^20: a thousandth of a cylinder is enough.
            let (root, all) = ((distance << 20).isqrt(), (knee << 20).isqrt());
            track + (third - track) * root / all
        } else {
            let rest = u64::from(self.cylinders) - 1 - knee;
            third + (full - third) * (distance - knee) / rest
        })
    }

    /// From the last head of a cylinder to the first of the next: also how far that track is
    /// turned.
    pub fn cylinder_switch(&self) -> Duration {
        self.seek(1).max(self.head_switch)
    }

    /// The zones, from the outside, and the sectors of all of them. Panics if a zone has no
    /// cylinder.
    pub fn layout(&self) -> (Vec<DiskZone>, u64) {
        let (mut zones, mut sectors) = (Vec::with_capacity(self.zones as usize), 0);
        for zone in 0..self.zones {
            let first_cylinder = share(self.cylinders, zone, self.zones);
            let cylinders = share(self.cylinders, zone + 1, self.zones) - first_cylinder;
            assert!(cylinders > 0, "a zone has cylinders");
            let per_track = self.per_track(zone);
            zones.push(DiskZone {
                first_sector: sectors,
                first_cylinder,
                per_track,
            });
            sectors += u64::from(cylinders) * u64::from(self.heads) * u64::from(per_track);
        }
        (zones, sectors)
    }

    /// Sectors of a track of this zone: with them a whole cylinder streams at the zone's rate, its
    /// switches included.
    fn per_track(&self, zone: u32) -> u32 {
        let (outer, inner) = (self.outer_bytes, self.inner_bytes);
        let last = u64::from(self.zones.max(2) - 1);
        let rate = outer - (outer - inner) * u64::from(zone) / last;
        let heads = u64::from(self.heads);
        let switches = (heads - 1) * self.head_switch.0 + self.cylinder_switch().0;
        let cylinder = heads * self.turn().0 + switches;
        let bytes = u128::from(rate) * u128::from(cylinder) / 1_000_000_000;
        (bytes as u64 / SECTOR_BYTES / heads).max(1) as u32
    }
}

/// The beginning of part `part` of `parts` of so many.
fn share(all: u32, part: u32, parts: u32) -> u32 {
    (u64::from(all) * u64::from(part) / u64::from(parts)) as u32
}
