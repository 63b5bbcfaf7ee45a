//! I/Os over the measured time, by job and direction: how many, their bytes, their mean latency.

use blkmq::env::CounterForm;
use blkmq::time::{Duration, SimTime};

use super::IoRecord;
use super::curve::Curve;

/// Pairs of a job and a direction at most: later ones are left out.
pub const RATES_MAX: usize = 64;

/// One direction of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Index in [`super::Recorder::jobs`], and in [`super::DIRECTIONS`].
    pub job: usize,
    pub direction: usize,
    /// Its samples are latencies, ns.
    pub latency: Curve,
    pub bytes: Curve,
}

/// At the end by job and direction. The first I/O of each allocates its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    from: SimTime,
    pub all: Vec<Rate>,
}

impl Rates {
    /// Measuring begins.
    pub(super) fn begin(&mut self, now: SimTime) {
        *self = Rates {
            from: now,
            all: Vec::new(),
        };
    }

    pub(super) fn add(&mut self, (job, direction): (usize, usize), io: &IoRecord) {
        let at = SimTime(io.at.since(self.from).0);
        let same = |of: &Rate| (of.job, of.direction) == (job, direction);
        let place = self.all.iter().position(same).unwrap_or(self.all.len());
        if place == RATES_MAX {
            return;
        }
        if place == self.all.len() {
            self.all.push(Rate {
                job,
                direction,
                latency: Curve::new(CounterForm::Sample),
                bytes: Curve::new(CounterForm::Count),
            });
        }
        let rate = &mut self.all[place];
        rate.latency.add(at, io.latency.0);
        rate.bytes.add(at, u64::from(io.sectors.0) * 512);
    }

    /// Measuring ends: all curves have the steps up to there.
    pub(super) fn finish(&mut self, now: SimTime) {
        self.all.sort_by_key(|of| (of.job, of.direction));
        let end = SimTime(now.since(self.from).0);
        let curves = self.all.iter_mut();
        let mut curves: Vec<&mut Curve> = curves
            .flat_map(|rate| [&mut rate.latency, &mut rate.bytes])
            .collect();
        let step = curves.iter_mut().map(|curve| {
            curve.until(end);
            curve.step()
        });
        let step = step.max().unwrap_or(Duration::ZERO);
        for curve in curves {
            curve.end(end, step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::DiskId;
    use blkmq::request::{Op, Sector, Sectors, Status};

    fn io(at: u64, latency: u64) -> IoRecord {
        IoRecord {
            thread: 0,
            disk: DiskId(0),
            op: Op::Read,
            sector: Sector(0),
            sectors: Sectors(8),
            at: SimTime(at),
            latency: Duration(latency),
            prepared: Duration::ZERO,
            slat: None,
            status: Status::Ok,
            counts: true,
            closes: false,
        }
    }

    #[test]
    fn ios_count_from_the_beginning_to_the_end() {
        let mut rates = Rates::default();
        rates.add((0, 0), &io(400, 90));
        rates.begin(SimTime(500));
        rates.add((1, 0), &io(600, 10));
        rates.add((0, 1), &io(1700, 40));
        rates.add((1, 0), &io(1400, 30));
        rates.finish(SimTime(2600));
        let [second, first] = &rates.all[..] else {
            panic!("{rates:?}");
        };
        assert_eq!((first.job, first.direction), (1, 0));
        assert_eq!(first.latency.counts().collect::<Vec<_>>(), [2, 0, 0]);
        let values = |curve: &Curve| curve.values().collect::<Vec<_>>();
        assert_eq!(values(&first.latency), [Some(20.0), None, None]);
        assert_eq!(values(&first.bytes), [Some(8192.0), None, None]);
        assert_eq!(values(&second.latency), [None, Some(40.0), None]);
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let mut rates = Rates::default();
        (0..=RATES_MAX).for_each(|job| rates.add((job, 0), &io(0, 1)));
        rates.add((0, 0), &io(1, 1));
        assert_eq!(rates.all.len(), RATES_MAX);
        assert_eq!(rates.all[0].latency.counts().collect::<Vec<_>>(), [2]);
    }
}
