//! The next I/O of a fio thread: operation, place, length and earliest time.
//!
//! The pure part: no clock and no queue. Depth, and the price of submission, are the task's. Where
//! fio's own draws differ in kind, a comment says so. After fio's io_u.c (set_rw_ddir, rate_ddir)
//! and backend.c (handle_thinktime).

use crate::plan::{DiskId, Rounds, ThinktimeBlocks, ThreadPlan};
use crate::rng::Rng;
use blkmq::request::{IoPrio, Op, Sector, Sectors};
use blkmq::time::Duration;

mod choice;
mod cmdprio;
mod files;
mod length;
mod map;
mod pace;
mod permutation;
mod place;
pub mod power;
mod skew;
mod t_io_uring;
mod tail;
mod zones;

#[cfg(test)]
pub(crate) mod tests;

use cmdprio::Priorities;
use files::Files;
use length::Lengths;
use pace::Pace;
pub use permutation::Permutation;
pub use t_io_uring::Reads;
use tail::Tail;

/// One I/O of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextIo {
    /// Read, Write, Discard, or Flush for an fsync(2) or fdatasync(2).
    pub op: Op,
    pub disk: DiskId,
    /// Its own (cmdprio); class none: that of the thread.
    pub prio: IoPrio,
    /// First sector on the device; 0 of a flush.
    pub sector: Sector,
    /// Length; 0 of a flush.
    pub sectors: Sectors,
    /// Not to be issued earlier, counted from the first I/O of the stream (rate_iops).
    pub not_before: Duration,
}

const WRITE: usize = Kind::Write as usize;
const TRIM: usize = Kind::Trim as usize;

/// Reads, writes or trims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Read,
    Write,
    Trim,
}

/// The I/Os of one thread, in order.
#[derive(Clone, Debug)]
pub struct Stream {
    // Settings.
    read_percent: u64,
    trim_percent: u64,
    /// trimwrite: each block is trimmed, then written.
    trims_then_writes: bool,
    fsync: u32,
    fdatasync: u32,
    thinktime: Duration,
    thinktime_blocks: u64,
    thinktime_counts: ThinktimeBlocks,
    thinktime_iotime: Duration,
    rate_ignores_thinktime: bool,
    number_ios: u64,
    io_bytes: u64,
    rounds: Rounds,
    /// Largest I/O of any direction.
    block_bytes_max: u64,

    // State.
    files: Files,
    direction: Rng,
    /// `direction` of the first round.
    direction_first: Rng,
    lengths: Lengths,
    priorities: Option<Box<Priorities>>,
    /// What a round ends with.
    tail: Option<Box<Tail>>,
    pace: Pace,
    writes: u64,
    /// The last one was a flush: a second one would be empty.
    flushed: bool,
    ios: u64,
    /// Bytes that count towards io_bytes.
    counted_bytes: u64,
    /// All bytes, and those of this round.
    bytes: u64,
    round_bytes: u64,
    /// Its number, from 1.
    round: u32,
    /// This round is over, or the last one.
    is_over: bool,
    /// I/Os completed, flushes not counted.
    completed: u64,
    /// The count of `thinktime_counts` at the last pause.
    at_last_pause: u64,
    last_pause: Duration,
    /// Direction of the last I/O.
    last: Kind,
    /// An I/O was returned since the last check whether a pause is due.
    may_pause: bool,
}

impl Stream {
    /// The stream of a thread, from its beginning.
    ///
    /// Panics if the mix is not 100 percent, a region does not hold a block, or a block size is
    /// not whole blocks of a disk.
    pub fn new(plan: &ThreadPlan) -> Stream {
        let mix = plan.mix;
        let percents = [mix.read_percent, mix.write_percent, mix.trim_percent];
        let sum: u32 = percents.iter().map(|percent| u32::from(*percent)).sum();
        assert_eq!(sum, 100, "the mix of {}", plan.name);
        let blocks = [plan.block.read, plan.block.write, plan.block.trim];
        let used = blocks.iter().zip(percents).filter(|(_, p)| *p > 0);
        let least = used.map(|(block, _)| block.min_sectors).min();
        let least = least.expect("some kind has a share of the mix");
        for file in &plan.files {
            let whole = least.is_multiple_of(file.block_sectors.max(1));
            assert!(whole, "{least} sectors on a disk of {}", file.block_sectors);
        }
        let most = blocks.iter().map(|block| block.max_sectors).max();
        let stream = |purpose: &str| random(plan, purpose);
        let direction = stream("direction");
        Stream {
            read_percent: u64::from(mix.read_percent),
            trim_percent: u64::from(mix.trim_percent),
            trims_then_writes: mix.trims_then_writes(),
            fsync: plan.fsync,
            fdatasync: plan.fdatasync,
            thinktime: plan.thinktime,
            thinktime_blocks: u64::from(plan.thinktime_blocks.max(1)),
            thinktime_counts: plan.thinktime_counts,
            thinktime_iotime: plan.control.thinktime_iotime,
            rate_ignores_thinktime: plan.control.rate_ignores_thinktime,
            number_ios: plan.number_ios,
            io_bytes: plan.io_bytes,
            rounds: plan.rounds,
            block_bytes_max: u64::from(most.unwrap_or(0)) * 512,
            files: Files::new(plan),
            direction_first: direction.clone(),
            direction,
            lengths: Lengths::new(plan, stream("size")),
            priorities: Priorities::of(&plan.cmdprio, stream("prio")),
            tail: Tail::of(plan),
            pace: Pace::new(plan, stream("gap")),
            writes: 0,
            flushed: true,
            ios: 0,
            counted_bytes: 0,
            bytes: 0,
            round_bytes: 0,
            round: 1,
            is_over: false,
            completed: 0,
            at_last_pause: 0,
            last_pause: Duration::ZERO,
            last: Kind::Read,
            may_pause: false,
        }
    }

    /// The next I/O, or `None` at the end of a round. `elapsed` is the time since the first I/O: of
    /// two directions with a rate, one that may go now is chosen.
    ///
    /// Flushes count towards no limit, and none follows the last write, as in fio.
    pub fn next(&mut self, elapsed: Duration) -> Option<NextIo> {
        if self.tail.is_some()
            && let Some(next) = self.next_of_tail()
        {
            return next;
        }
        while !self.is_over() {
            let Some(disk) = self.files.turn() else {
                break;
            };
            if self.flush_is_due() {
                self.flushed = true;
                return Some(NextIo {
                    op: Op::Flush,
                    disk,
                    prio: IoPrio::default(),
                    sector: Sector(0),
                    sectors: Sectors(0),
                    not_before: Duration::ZERO,
                });
            }
            let kind = self.kind(elapsed);
            let not_before = self.pace.open_at(kind as usize);
            let place = self.files.next(kind as usize, &mut self.lengths);
            if let Some((disk, sector, sectors)) = place {
                self.count(kind, sectors);
                let io = NextIo {
                    op: kind.op(),
                    disk,
                    prio: match &mut self.priorities {
                        Some(priorities) => priorities.draw(kind as usize, sectors.0),
                        None => IoPrio::default(),
                    },
                    sector,
                    sectors,
                    not_before,
                };
                if kind == Kind::Write
                    && let Some(tail) = &mut self.tail
                {
                    tail.writes(&io);
                }
                return Some(io);
            }
        }
        self.is_over = true;
        None
    }

    /// An I/O of what the round ends with, or of a backlog to verify. `Some(None)`: nothing until
    /// all are complete.
    #[cold]
    fn next_of_tail(&mut self) -> Option<Option<NextIo>> {
        let over = self.is_over();
        let tail = self.tail.as_mut()?;
        if !tail.is_before() {
            let io = tail.next();
            if let Some(io) = io.filter(|io| io.op == Op::Read) {
                self.bytes += u64::from(io.sectors.0) * 512;
            }
            return Some(io);
        }
        if over {
            return None;
        }
        let io = tail.backlog()?;
        let bytes = u64::from(io.sectors.0) * 512;
        (self.bytes, self.round_bytes) = (self.bytes + bytes, self.round_bytes + bytes);
        self.ios += 1;
        self.may_pause = true;
        Some(Some(io))
    }

    /// At the end of a round, and of the run, when nothing is in flight: true if an fsync(2) or
    /// reads to verify follow.
    pub fn tail_goes_on(&mut self, over: bool) -> bool {
        let synced = self.flushed && self.writes > 0;
        let did = self.round_bytes > 0;
        let tail = self.tail.as_mut();
        tail.is_some_and(|tail| tail.advances(synced, did, over))
    }

    /// What follows a round is an fsync(2).
    pub fn closes(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.is_sync())
    }

    /// After the end of a round, when nothing is in flight: starts over, unless that was the last
    /// one (keep_running()).
    pub fn starts_over(&mut self) -> bool {
        let time_based = self.io_bytes == u64::MAX;
        let limit = self.io_bytes / u64::from(self.rounds.loops);
        let rest = limit.saturating_sub(self.bytes);
        let full = self.ios >= self.number_ios || rest == 0 || rest < self.block_bytes_max;
        // do_verify() opens the files again.
        let verified = self.tail.as_ref().is_some_and(|tail| tail.verifies());
        let at_end = self.files.are_done() && !self.rounds.after_end && !verified;
        // fio ends a job that did nothing in a round.
        let another = time_based || self.round < self.rounds.loops || !(full || at_end);
        if self.round_bytes == 0 || !another {
            return false;
        }
        self.round += 1;
        self.is_over = false;
        self.round_bytes = 0;
        self.flushed = self.writes == 0;
        self.files.start_over(self.rounds.alike);
        if self.rounds.alike {
            self.direction = self.direction_first.clone();
            self.lengths.start_over();
            self.pace.start_over();
        }
        true
    }

    /// The thread has reaped an I/O.
    pub fn completed(&mut self, io: &NextIo) {
        self.completed += u64::from(io.op != Op::Flush);
        if let Some(tail) = &mut self.tail {
            tail.completed(io);
        }
    }

    /// The pause that is due: one after every `thinktime_blocks` I/Os, flushes not counted. fio
    /// checks once after each I/O that it issued. Before the pause it lets all I/Os in flight
    /// complete; these completions count for the next pause. `elapsed` is the time since the first
    /// I/O.
    pub fn pause(&mut self, elapsed: Duration) -> Option<Duration> {
        if !self.may_pause || self.thinktime == Duration::ZERO {
            return None;
        }
        self.may_pause = false;
        let timed = self.thinktime_iotime > Duration::ZERO;
        let since = elapsed.0 - self.last_pause.0.min(elapsed.0);
        let due = timed && since >= self.thinktime_iotime.0 + self.thinktime.0;
        let count = match self.thinktime_counts {
            ThinktimeBlocks::Complete => self.completed,
            ThinktimeBlocks::Issue => self.ios,
        };
        if !due && count < self.at_last_pause.saturating_add(self.thinktime_blocks) {
            return None;
        }
        (self.at_last_pause, self.last_pause) = (count, elapsed);
        if self.rate_ignores_thinktime {
            self.pace.skips(self.last as usize, self.thinktime);
        }
        Some(self.thinktime)
    }

    fn flush_is_due(&self) -> bool {
        let due = |every: u32| every > 0 && self.writes.is_multiple_of(u64::from(every));
        !self.flushed && (due(self.fsync) || due(self.fdatasync))
    }

    fn is_over(&self) -> bool {
        self.is_over
            || self.ios >= self.number_ios
            || self.counted_bytes >= self.io_bytes
            || self.round_bytes >= self.rounds.bytes
    }

    /// Reads or writes; if a rate holds one back, the one that may go.
    ///
    /// Each is drawn by itself. fio stays with a direction until the shares demand the other, which
    /// gives the same shares with shorter runs.
    fn kind(&mut self, elapsed: Duration) -> Kind {
        if self.trims_then_writes {
            return if self.files.is_trimmed() {
                Kind::Write
            } else {
                Kind::Trim
            };
        }
        if self.trim_percent > 0 {
            return Kind::Trim;
        }
        let (drawn, other) = match self.read_percent {
            0 => return Kind::Write,
            100 => return Kind::Read,
            percent if self.direction.below(100) < percent => (Kind::Read, Kind::Write),
            _ => (Kind::Write, Kind::Read),
        };
        let drawn_at = self.pace.open_at(drawn as usize);
        if drawn_at > elapsed && self.pace.open_at(other as usize) < drawn_at {
            other
        } else {
            drawn
        }
    }

    fn count(&mut self, kind: Kind, sectors: Sectors) {
        self.ios += 1;
        self.may_pause = true;
        self.last = kind;
        let length = u64::from(sectors.0);
        self.pace.goes(kind as usize, length);
        let bytes = length * 512;
        self.bytes += bytes;
        self.round_bytes += bytes;
        if kind == Kind::Write {
            self.writes += 1;
            self.flushed = false;
        }
        // Of a trimmed and written block, fio counts the write.
        if !(self.trims_then_writes && kind == Kind::Trim) {
            self.counted_bytes += bytes;
        }
    }
}

/// Random numbers of a thread for one purpose.
fn random(plan: &ThreadPlan, purpose: &str) -> Rng {
    let name = format!("{purpose}/job{}.{}", plan.job, plan.clone);
    Rng::stream(plan.random_seed, &name)
}

impl Kind {
    fn op(self) -> Op {
        match self {
            Kind::Read => Op::Read,
            Kind::Write => Op::Write,
            Kind::Trim => Op::Discard,
        }
    }
}
