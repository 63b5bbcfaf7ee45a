//! The state of mq-deadline, printed and checked.
//!
//! Not part of the algorithm. The words are those of debugfs and of the kernel's fields.

use super::{MqDeadline, Position, level_of};
use crate::elevator::completed_level;
use crate::list::QueueList;
use crate::request::{Direction, Place, RequestId, RequestPool};
use crate::rules::HeadInsert;
use core::fmt;

/// Highest first.
const LEVEL_NAMES: [&str; 3] = ["rt", "be", "idle"];
const DIRECTIONS: [Direction; 2] = [Direction::Read, Direction::Write];

/// The printed form of [`MqDeadline`]. Empty lists are left out.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    dd: &'a MqDeadline,
    pool: &'a RequestPool,
}

impl fmt::Display for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { dd, pool } = *self;
        let dir = match dd.last_dir {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        write!(
            f,
            "last_dir={dir} batching={} starved={}",
            dd.batching, dd.starved
        )?;
        if let Some(rq) = dd.index.last_merge() {
            write!(f, " last_merge={}", pool[rq])?;
        }
        writeln!(f)?;
        for (level, name) in LEVEL_NAMES.into_iter().enumerate() {
            let at_head = &dd.at_head[level];
            if !at_head.is_empty() {
                match dd.head_insert {
                    HeadInsert::Global => write!(f, "at_head:")?,
                    HeadInsert::PerPriority => write!(f, "{name} at_head:")?,
                }
                self.write_list(f, at_head.iter(pool))?;
            }
            for dir in DIRECTIONS {
                self.write_queue(f, level, dir)?;
            }
        }
        Ok(())
    }
}

impl State<'_> {
    /// One direction of one level: fifo with expiry, sector order, and its position.
    fn write_queue(&self, f: &mut fmt::Formatter<'_>, level: usize, dir: Direction) -> fmt::Result {
        let queue = &self.dd.levels[level];
        let name = format!("{} {dir:?}", LEVEL_NAMES[level]).to_lowercase();
        if !queue.fifo[dir as usize].is_empty() {
            write!(f, "{name} fifo:")?;
            for rq in queue.fifo[dir as usize].iter(self.pool) {
                write!(f, " {}@{}", self.pool[rq], self.pool[rq].fifo_time.0)?;
            }
            write!(f, "\n{name} sort:")?;
            self.write_list(f, queue.sort[dir as usize].iter(self.pool))?;
        }
        match queue.position[dir as usize] {
            Position::Next(Some(rq)) => writeln!(f, "{name} next_rq: {}", self.pool[rq]),
            Position::Latest(sector) if sector.0 > 0 => {
                writeln!(f, "{name} latest_pos: {}", sector.0)
            }
            _ => Ok(()),
        }
    }

    fn write_list(
        &self,
        f: &mut fmt::Formatter<'_>,
        requests: impl Iterator<Item = RequestId>,
    ) -> fmt::Result {
        for rq in requests {
            write!(f, " {}", self.pool[rq])?;
        }
        writeln!(f)
    }
}

impl MqDeadline {
    pub fn state<'a>(&'a self, pool: &'a RequestPool) -> State<'a> {
        State { dd: self, pool }
    }

    /// Requests of a level (0 to 2, highest first) and direction that wait, oldest first.
    pub fn fifo<'a>(
        &'a self,
        level: usize,
        direction: Direction,
        pool: &'a RequestPool,
    ) -> impl Iterator<Item = RequestId> + 'a {
        self.levels[level].fifo[direction as usize].iter(pool)
    }

    /// Direction decisions that reads won while writes waited, as debugfs shows them.
    pub fn starved(&self) -> u32 {
        self.starved
    }

    /// Inserted, merged and dispatched requests of each level, as debugfs counts them.
    pub fn counts(&self) -> [[u32; 3]; 3] {
        let counts = |level: &super::Level| {
            [
                level.stats.inserted,
                level.stats.merged,
                level.stats.dispatched,
            ]
        };
        [&self.levels[0], &self.levels[1], &self.levels[2]].map(counts)
    }

    /// Panics unless fifo, tree, hash, head lists, positions and the pool agree.
    pub(super) fn check_structures(&self, pool: &RequestPool) {
        let mut held = 0;
        for (level, list) in self.at_head.iter().enumerate() {
            list.check(pool);
            held += list.len();
            for rq in list.iter(pool) {
                assert!(
                    !pool.slots[rq.0 as usize].sort.is_linked(),
                    "{rq:?} in a tree, too"
                );
                assert_eq!(pool[rq].hashed, None, "{rq:?} at head is in the hash");
                match self.head_insert {
                    HeadInsert::Global => assert_eq!(level, 0, "global list {level}"),
                    HeadInsert::PerPriority => {
                        assert_eq!(level_of(pool[rq].ioprio), level, "level of {rq:?}");
                    }
                }
            }
        }
        for level in 0..self.levels.len() {
            for dir in DIRECTIONS {
                held += self.check_queue(pool, level, dir);
            }
        }
        let placed = pool
            .iter()
            .filter(|(_, rq)| rq.place == Place::Elevator)
            .count();
        assert_eq!(held, placed, "requests here and requests said to be here");
        self.index.check(pool);
        if let Some(rq) = self.index.last_merge() {
            assert_eq!(
                pool[rq].place,
                Place::Elevator,
                "last_merge {rq:?} is elsewhere"
            );
        }
    }

    /// Checks one direction of one level; returns the number of its requests.
    fn check_queue(&self, pool: &RequestPool, level: usize, dir: Direction) -> usize {
        let queue = &self.levels[level];
        let (fifo, sort): (&QueueList, _) = (&queue.fifo[dir as usize], &queue.sort[dir as usize]);
        fifo.check(pool);
        sort.check(pool);
        let mut by_arrival: Vec<RequestId> = fifo.iter(pool).collect();
        let mut by_sector: Vec<RequestId> = sort.iter(pool).collect();
        by_arrival.sort_unstable();
        by_sector.sort_unstable();
        assert_eq!(
            by_arrival, by_sector,
            "fifo and tree hold different requests"
        );
        for &rq in &by_arrival {
            let request = &pool[rq];
            assert_eq!(request.place, Place::Elevator, "place of {rq:?}");
            assert_eq!(request.op.direction(), dir, "direction of {rq:?}");
            assert_eq!(level_of(request.ioprio), level, "level of {rq:?}");
            let counted = completed_level(request.elv_priv);
            assert_eq!(counted, Some(level), "counted level of {rq:?}");
            if request.is_mergeable() {
                assert!(
                    request.hashed.is_some(),
                    "mergeable {rq:?} is not in the hash"
                );
            }
        }
        if let Position::Next(Some(next)) = queue.position[dir as usize] {
            assert!(
                by_sector.contains(&next),
                "next_rq {next:?} is not in the tree"
            );
        }
        by_arrival.len()
    }
}
