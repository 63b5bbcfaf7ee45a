//! Statistics over finished bios, by the honest definitions.
//!
//! Where they differ from btt's (`BttTable`): every bio counts once and by its own events, also
//! with a cgroup id, without data, overlapping another, split or requeued; nothing is rounded up
//! to 1 ns; a bio merged before the insertion of its request has both Q2M and I2D, and M2D is
//! only for those that no insertion came after.

use super::io::Io;
use super::latency::Latency;

/// One statistic for each pair of stages.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Latencies {
    /// Submission to a request of its own.
    pub q2g: Latency,
    /// A request of its own to its insertion.
    pub g2i: Latency,
    /// Submission to joining a request.
    pub q2m: Latency,
    /// Last insertion to issue.
    pub i2d: Latency,
    /// Joining a request that was inserted before, or never, to issue.
    pub m2d: Latency,
    /// Submission to issue.
    pub q2d: Latency,
    /// Issue to completion.
    pub d2c: Latency,
    /// Submission to completion.
    pub q2c: Latency,
}

impl Latencies {
    /// Adds the bios of another one.
    pub(crate) fn merge(&mut self, other: &Latencies) {
        self.q2g.merge(&other.q2g);
        self.g2i.merge(&other.g2i);
        self.q2m.merge(&other.q2m);
        self.i2d.merge(&other.i2d);
        self.m2d.merge(&other.m2d);
        self.q2d.merge(&other.q2d);
        self.d2c.merge(&other.d2c);
        self.q2c.merge(&other.q2c);
    }

    /// Counts a bio that completed; unfinished ones are skipped.
    #[inline]
    pub fn add(&mut self, io: &Io) {
        if io.completed.is_none() {
            return;
        }
        self.q2g.between(io.queued, io.got_request);
        self.g2i.between(io.got_request, io.inserted);
        self.q2m.between(io.queued, io.merged);
        self.i2d.between(io.inserted, io.issued);
        if io.inserted.is_none() {
            self.m2d.between(io.merged, io.issued);
        }
        self.q2d.between(io.queued, io.issued);
        self.d2c.between(io.issued, io.completed);
        self.q2c.between(io.queued, io.completed);
    }
}
