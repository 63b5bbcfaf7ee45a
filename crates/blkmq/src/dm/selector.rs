//! Path selectors: the choice of a path within a group for the next request.
//!
//! A selector names its paths by their index in the group. [`Selector`] is the data under its lock;
//! the [`Account`] of each path counts requests in flight, without that lock. Not here: groups, and
//! when a selector is asked (`multipath/choose.rs`). Kernel: drivers/md/dm-path-selector.h.

mod historical_service_time;
mod io_affinity;
mod paths;
mod queue_length;
mod round_robin;
mod service_time;

pub use historical_service_time::{HistoricalServiceTime, History};
pub use io_affinity::IoAffinity;
pub use paths::Paths;
pub use queue_length::QueueLength;
pub use round_robin::RoundRobin;
pub use service_time::ServiceTime;

use super::Incoming;
use super::table::GroupTable;
use crate::rules::{DeviceMapper, Selectors};
use crate::time::SimTime;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SelectorKind {
    RoundRobin,
    QueueLength,
    ServiceTime,
    HistoricalServiceTime,
    IoAffinity,
}

impl SelectorKind {
    pub const ALL: [SelectorKind; 5] = [
        SelectorKind::RoundRobin,
        SelectorKind::QueueLength,
        SelectorKind::ServiceTime,
        SelectorKind::HistoricalServiceTime,
        SelectorKind::IoAffinity,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            SelectorKind::RoundRobin => "round-robin",
            SelectorKind::QueueLength => "queue-length",
            SelectorKind::ServiceTime => "service-time",
            SelectorKind::HistoricalServiceTime => "historical-service-time",
            SelectorKind::IoAffinity => "io-affinity",
        }
    }

    pub fn of(rules: &DeviceMapper) -> &'static [SelectorKind] {
        match rules.selectors {
            Selectors::Three => &SelectorKind::ALL[..3],
            Selectors::Five => &SelectorKind::ALL,
        }
    }

    /// Numbers in the status of a path (info_args).
    pub const fn info_args(self) -> u32 {
        match self {
            SelectorKind::RoundRobin => 0,
            SelectorKind::QueueLength | SelectorKind::IoAffinity => 1,
            SelectorKind::ServiceTime => 2,
            SelectorKind::HistoricalServiceTime => 3,
        }
    }
}

/// The selector of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Selector {
    /// One path after the other.
    RoundRobin(RoundRobin),
    /// The one with the fewest requests.
    QueueLength(QueueLength),
    /// The one with the least to do for its throughput.
    ServiceTime(ServiceTime),
    /// The one that was the fastest so far.
    HistoricalServiceTime(HistoricalServiceTime),
    IoAffinity(IoAffinity),
}

/// I/O in flight on a path, as its selector counts it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Account {
    Nothing,
    /// Requests (qlen).
    Requests(i32),
    /// Bytes (in_flight_size).
    Bytes(i32),
    /// Requests, and how long they took.
    History(History),
}

/// The end of I/O on a path, as passed to its selector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndOfIo {
    /// Length at mapping.
    pub bytes: u32,
    /// When the clone was issued (io_start_time_ns); zero if it was not.
    pub started: SimTime,
    pub now: SimTime,
}

impl Selector {
    /// The selector of a group, all of whose paths are in use. `nodes`: NUMA node of each CPU.
    pub fn new(table: &GroupTable, rules: &DeviceMapper, nodes: &[u16]) -> Selector {
        match table.selector {
            SelectorKind::RoundRobin => {
                Selector::RoundRobin(RoundRobin::new(table, rules, nodes.len()))
            }
            SelectorKind::QueueLength => {
                Selector::QueueLength(QueueLength::new(table, rules.rotation))
            }
            SelectorKind::ServiceTime => {
                Selector::ServiceTime(ServiceTime::new(table, rules.rotation))
            }
            SelectorKind::HistoricalServiceTime => {
                Selector::HistoricalServiceTime(HistoricalServiceTime::new(table))
            }
            SelectorKind::IoAffinity => Selector::IoAffinity(IoAffinity::new(table, nodes)),
        }
    }

    pub fn kind(&self) -> SelectorKind {
        match self {
            Selector::RoundRobin(_) => SelectorKind::RoundRobin,
            Selector::QueueLength(_) => SelectorKind::QueueLength,
            Selector::ServiceTime(_) => SelectorKind::ServiceTime,
            Selector::HistoricalServiceTime(_) => SelectorKind::HistoricalServiceTime,
            Selector::IoAffinity(_) => SelectorKind::IoAffinity,
        }
    }

    /// select_path(): none if no path of the group is in use.
    pub fn select(&mut self, accounts: &[Account], io: Incoming) -> Option<usize> {
        match self {
            Selector::RoundRobin(of) => of.select(io.cpu),
            Selector::QueueLength(of) => of.select(accounts),
            Selector::ServiceTime(of) => of.select(accounts, io.bytes),
            Selector::HistoricalServiceTime(of) => of.select(accounts, io.now),
            Selector::IoAffinity(of) => of.select(io.cpu),
        }
    }

    /// A kernel chose this path, which is in use.
    pub fn force(&mut self, path: usize) {
        match self {
            Selector::RoundRobin(of) => of.paths.to_end(path),
            Selector::QueueLength(of) => of.paths.to_end(path),
            Selector::ServiceTime(of) => of.paths.to_end(path),
            Selector::HistoricalServiceTime(of) => of.paths.to_end(path),
            Selector::IoAffinity(_) => {}
        }
    }

    /// fail_path().
    pub fn fail(&mut self, path: usize) {
        match self {
            Selector::RoundRobin(of) => of.fail(path),
            Selector::QueueLength(of) => of.paths.fail(path),
            Selector::ServiceTime(of) => of.paths.fail(path),
            Selector::HistoricalServiceTime(of) => of.paths.fail(path),
            Selector::IoAffinity(of) => of.set_failed(path, true),
        }
    }

    /// reinstate_path(): to the end of the list, with round-robin to its head.
    pub fn reinstate(&mut self, path: usize) {
        match self {
            Selector::RoundRobin(of) => of.paths.reinstate_first(path),
            Selector::QueueLength(of) => of.paths.reinstate_last(path),
            Selector::ServiceTime(of) => of.paths.reinstate_last(path),
            Selector::HistoricalServiceTime(of) => of.paths.reinstate_last(path),
            Selector::IoAffinity(of) => of.set_failed(path, false),
        }
    }

    /// A path's account when it has nothing in flight.
    pub fn empty_account(&self) -> Account {
        match self {
            Selector::RoundRobin(_) | Selector::IoAffinity(_) => Account::Nothing,
            Selector::QueueLength(_) => Account::Requests(0),
            Selector::ServiceTime(_) => Account::Bytes(0),
            Selector::HistoricalServiceTime(_) => Account::History(History::NEW),
        }
    }

    /// end_io().
    pub fn end(&self, account: &mut Account, end: EndOfIo) {
        match account {
            Account::Nothing => {}
            Account::Requests(count) => *count -= 1,
            Account::Bytes(bytes) => *bytes = bytes.wrapping_sub(end.bytes as i32),
            Account::History(history) => {
                let Selector::HistoricalServiceTime(of) = self else {
                    unreachable!("a history belongs to historical-service-time")
                };
                of.end(history, end);
            }
        }
    }

    /// I/Os in a row that the table sets for a path (repeat_count).
    pub fn repeat_count(&self, path: usize) -> u32 {
        match self {
            Selector::RoundRobin(of) => of.repeat_count(path),
            Selector::QueueLength(of) => of.repeat_count(path),
            Selector::ServiceTime(of) => of.repeat_count(path),
            Selector::HistoricalServiceTime(_) | Selector::IoAffinity(_) => 1,
        }
    }

    /// The selector's own part of a status line (STATUSTYPE_INFO).
    pub fn status(&self) -> String {
        match self {
            Selector::HistoricalServiceTime(of) => of.status(),
            _ => "0".to_owned(),
        }
    }

    /// The part of a path, with a blank before each number.
    pub fn path_status(&self, path: usize, account: &Account) -> String {
        match (self, account) {
            (Selector::RoundRobin(_), _) => String::new(),
            (Selector::IoAffinity(of), _) => format!(" {}", of.misses()),
            (Selector::ServiceTime(of), Account::Bytes(bytes)) => {
                format!(" {bytes} {}", of.throughput(path))
            }
            (_, Account::Requests(count)) => format!(" {count}"),
            (_, Account::History(history)) => format!(" {history}"),
            (of, account) => unreachable!("{account:?} with {}", of.kind().name()),
        }
    }

    /// Panics unless each path is on one list, on that of the valid ones if `active` says so.
    pub fn check(&self, active: impl Fn(usize) -> bool) {
        match self {
            Selector::RoundRobin(of) => of.paths.check(active),
            Selector::QueueLength(of) => of.paths.check(active),
            Selector::ServiceTime(of) => of.paths.check(active),
            Selector::HistoricalServiceTime(of) => of.paths.check(active),
            Selector::IoAffinity(of) => of.check(active),
        }
    }
}

impl Account {
    /// start_io().
    pub fn start(&mut self, bytes: u32) {
        match self {
            Account::Nothing => {}
            Account::Requests(count) => *count += 1,
            Account::Bytes(of) => *of = of.wrapping_add(bytes as i32),
            Account::History(history) => history.start(),
        }
    }

    /// Nothing is in flight, as far as it knows.
    pub fn is_empty(&self) -> bool {
        match self {
            Account::Nothing => true,
            Account::Requests(count) => *count == 0,
            Account::Bytes(bytes) => *bytes == 0,
            Account::History(history) => history.outstanding() == 0,
        }
    }
}
