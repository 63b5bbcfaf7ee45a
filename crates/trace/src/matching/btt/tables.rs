//! What `Btt` fills: spans, counts and activity, of all devices and of each.
//!
//! Read first: `btt`, for what a span is.

use super::super::activity::Activity;
use super::super::latency::Latency;
use crate::blktrace::Device;

/// btt's table of latencies, of all devices or of one. A span ending in `_dm` is of device-mapper
/// or md devices.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BttTable {
    pub q2q: Latency,
    pub q2q_dm: Latency,
    /// Q on the upper device to A that names it as origin.
    pub q2a: Latency,
    pub q2a_dm: Latency,
    pub q2g: Latency,
    pub s2g: Latency,
    pub g2i: Latency,
    pub q2m: Latency,
    pub i2d: Latency,
    pub m2d: Latency,
    /// Not in btt's table: Q to each D that contains it.
    pub q2d: Latency,
    pub d2c: Latency,
    pub q2c: Latency,
    pub q2c_dm: Latency,
    pub q_count: u64,
    /// Issued requests; their ratio to Q is btt's merge ratio.
    pub d_count: u64,
    /// Qs lost because another one started at the same sector before they completed.
    pub replaced: u64,
    /// Events not seen because of a cgroup id.
    pub with_cgroup: u64,
}

impl BttTable {
    /// Spans by btt's names, in its order, also those without a value; Q2D is not one of them.
    pub fn rows(&self) -> [(&'static str, &Latency); 13] {
        [
            ("Q2Qdm", &self.q2q_dm),
            ("Q2Adm", &self.q2a_dm),
            ("Q2Cdm", &self.q2c_dm),
            ("Q2Q", &self.q2q),
            ("Q2A", &self.q2a),
            ("Q2G", &self.q2g),
            ("S2G", &self.s2g),
            ("G2I", &self.g2i),
            ("Q2M", &self.q2m),
            ("I2D", &self.i2d),
            ("M2D", &self.m2d),
            ("D2C", &self.d2c),
            ("Q2C", &self.q2c),
        ]
    }

    /// Adds another device, but for the times between Qs.
    pub(super) fn merge(&mut self, other: &BttTable) {
        self.q2a.merge(&other.q2a);
        self.q2a_dm.merge(&other.q2a_dm);
        self.q2g.merge(&other.q2g);
        self.s2g.merge(&other.s2g);
        self.g2i.merge(&other.g2i);
        self.q2m.merge(&other.q2m);
        self.i2d.merge(&other.i2d);
        self.m2d.merge(&other.m2d);
        self.q2d.merge(&other.q2d);
        self.d2c.merge(&other.d2c);
        self.q2c.merge(&other.q2c);
        self.q2c_dm.merge(&other.q2c_dm);
        self.q_count += other.q_count;
        self.d_count += other.d_count;
        self.replaced += other.replaced;
        self.with_cgroup += other.with_cgroup;
    }
}

/// What btt says of one device.
#[derive(Clone, PartialEq, Debug)]
pub struct BttDevice {
    pub device: Device,
    /// Device-mapper or md: see btt's remapper_dev().
    pub remapper: bool,
    pub table: BttTable,
    pub activity: Activity,
}
