//! All variables of the specification, as bytes.
//!
//! Two states with the same projection have the same future; `spec/search.rs` tests that.

use blkmq::list::QueueList;
use blkmq::path::Frame;
use blkmq::queue::RequestQueue;
use blkmq::request::{Direction, Place, QueueId, RequestId, RequestPool};

use super::setting::Setting;
use super::variables::{self, VARIABLES, View};
use super::world::{At, Life, World, deadline};
use crate::spec::owner;

/// Levels of mq-deadline; all requests are of one.
const LEVELS: usize = 3;

/// Marks the end of a list.
const END: u8 = 0xff;

/// The state of a process between two actions, in terms of the specification.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Requests that it will insert.
    pub(super) list: Vec<u8>,
    /// The request that it picked.
    pub(super) got: Option<u8>,
    /// The value of insert_seq that it read last.
    seen: u8,
    /// The bucket that it looks at, from 1.
    look: u8,
    filled: bool,
}

impl World {
    fn queue(&self) -> &RequestQueue {
        self.mq.queue(QueueId(0))
    }

    pub(super) fn held(&self, setting: &Setting, number: u8) -> Held {
        let mut held = Held::default();
        let Some(frame) = self.process(number).frame() else {
            return held;
        };
        self.queue().with_pool(|pool| {
            if let Frame::Run(run) = frame {
                held.got = run.owned_pick().map(|rq| owner(pool, rq));
            } else if let Some(hand) = frame.owned_by_insert() {
                held.list = owners(pool, hand.list);
                held.seen = u8::try_from(hand.seq).expect("small spaces count little");
                held.filled = hand.filled;
                if matches!(self.at(setting, number), At::Look | At::Collect) {
                    held.look = hand.bucket as u8 + 1;
                }
            }
        });
        held
    }

    /// Requests in the scheduler, in dispatch order (FIFO).
    pub(super) fn queued(&self) -> Vec<u8> {
        let q = self.queue();
        let in_order = deadline(q).policy.inspect(|policy| {
            q.with_pool(|pool| {
                let levels = 0..LEVELS;
                let requests = levels.flat_map(|level| policy.fifo(level, Direction::Read, pool));
                requests.map(|rq| owner(pool, rq)).collect::<Vec<u8>>()
            })
        });
        let all = q.with_pool(|pool| {
            let in_scheduler = pool.iter().filter(|(_, rq)| rq.place == Place::Elevator);
            in_scheduler.count()
        });
        assert_eq!(in_order.len(), all, "a read is in the fifo of its level");
        in_order
    }

    pub(super) fn bucket(&self, cpu: u8) -> Vec<u8> {
        variables::bucket(self.queue(), cpu.into(), owner)
    }

    pub(super) fn side_list(&self) -> Vec<u8> {
        let q = self.queue();
        let inserted = &deadline(q).series().inserted;
        let at_head = inserted.inspect(|lists| !lists.at_head.is_empty());
        assert!(!at_head, "nothing is inserted at head");
        variables::side_list(q, owner)
    }

    /// The variables of the specification, in a fixed order: lists with an end mark.
    pub(super) fn project(&self, setting: &Setting, bytes: &mut Vec<u8>) {
        let number = |owner: Option<u8>| owner.map_or(0, |number| number + 1);
        let series = deadline(self.queue()).series();
        bytes.extend([
            number(self.side.owner),
            number(self.side.insert_owner),
            series.run_state.peek() as u8,
            u8::try_from(series.insert_seq.peek()).expect("small spaces count little"),
            u8::from(self.side.armed),
        ]);
        let list = |bytes: &mut Vec<u8>, requests: Vec<u8>| {
            bytes.extend(requests);
            bytes.push(END);
        };
        list(bytes, self.queued());
        list(bytes, self.side_list());
        for cpu in 0..setting.cpus {
            bytes.push(self.side.submitted[usize::from(cpu)]);
            list(bytes, self.bucket(cpu));
        }
        for life in [Life::Device, Life::Done] {
            list(bytes, self.all(setting, life));
        }
        for process in 0..setting.processes() {
            let held = self.held(setting, process);
            bytes.extend([
                self.at(setting, process) as u8,
                held.got.map_or(END, |request| request),
                held.seen,
                held.look,
                u8::from(held.filled),
            ]);
            list(bytes, held.list);
        }
    }

    fn all(&self, setting: &Setting, life: Life) -> Vec<u8> {
        let requests = 0..setting.requests();
        requests.filter(|&r| self.life(r) == life).collect()
    }

    /// The variables that schedules show.
    pub(super) fn observed(&self, setting: &Setting) -> Vec<(&'static str, String)> {
        let numbers = |requests: Vec<u8>| requests.iter().map(|&r| u32::from(r) + 1).collect();
        let view = View {
            mq: &self.mq,
            cpus: setting.cpus.into(),
            owner: self.side.owner.map_or(0, |process| u32::from(process) + 1),
            armed: self.side.armed,
            number: &|pool, rq| u32::from(owner(pool, rq)) + 1,
            queued: numbers(self.queued()),
            done: numbers(self.all(setting, Life::Done)),
        };
        let each = VARIABLES.iter();
        each.map(|(name, read)| (*name, read(&view))).collect()
    }
}

fn owners(pool: &RequestPool, list: QueueList) -> Vec<u8> {
    let requests = list.iter(pool);
    requests.map(|rq: RequestId| owner(pool, rq)).collect()
}
