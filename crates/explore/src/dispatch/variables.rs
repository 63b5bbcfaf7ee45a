//! The variables of the specification that schedules show, and how each is read off the block
//! layer: by the explorer between two actions, of a run after a label.

use blkmq::elevator::series::shared::{BUCKETS, DISPATCHING, INSERTING};
use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{Place, QueueId, RequestId, RequestPool};
use blkmq::schedule::view::{flag, set, tuple};

use super::world::deadline;

/// A state, and what the block layer does not know of it.
pub(crate) struct View<'a> {
    pub(crate) mq: &'a BlkMq,
    pub(crate) cpus: u32,
    /// The process that has dd->lock, from 1.
    pub(crate) owner: u32,
    /// A run of the queue is asked for.
    pub(crate) armed: bool,
    /// The number of a request, from 1.
    pub(crate) number: &'a dyn Fn(&RequestPool, RequestId) -> u32,
    /// Requests in the scheduler, in dispatch order.
    pub(crate) queued: Vec<u32>,
    pub(crate) done: Vec<u32>,
}

/// A variable: its name, and its value as TLC prints it.
pub(crate) type Variable = (&'static str, fn(&View<'_>) -> String);

pub(crate) const VARIABLES: [Variable; 11] = [
    ("owner", |v| v.owner.to_string()),
    ("queued", |v| tuple(texts(&v.queued))),
    ("bucket", |v| {
        let each = (0..v.cpus).map(|cpu| bucket(v.queue(), cpu, v.number));
        tuple(each.map(|requests| tuple(texts(&requests))))
    }),
    ("side", |v| tuple(texts(&side_list(v.queue(), v.number)))),
    ("seq", |v| {
        deadline(v.queue()).series().insert_seq.peek().to_string()
    }),
    ("dispatching", |v| v.bit(DISPATCHING)),
    ("inserting", |v| v.bit(INSERTING)),
    ("buckets", |v| v.bit(BUCKETS)),
    ("armed", |v| flag(v.armed)),
    ("device", |v| set(texts(&v.device()))),
    ("done", |v| set(texts(&v.done))),
];

fn texts(numbers: &[u32]) -> impl Iterator<Item = String> {
    numbers.iter().map(u32::to_string)
}

impl View<'_> {
    fn queue(&self) -> &RequestQueue {
        self.mq.queue(QueueId(0))
    }

    /// One of the series' bits.
    fn bit(&self, mask: u64) -> String {
        flag(deadline(self.queue()).series().run_state.peek() & mask != 0)
    }

    fn device(&self) -> Vec<u32> {
        let mut device = self.queue().with_pool(|pool| {
            let there = pool.iter().filter(|(_, rq)| rq.place == Place::Device);
            there
                .map(|(rq, _)| (self.number)(pool, rq))
                .collect::<Vec<u32>>()
        });
        device.sort_unstable();
        device
    }
}

/// Requests in the bucket of a CPU, as `number` numbers them.
pub(super) fn bucket<T>(
    q: &RequestQueue,
    cpu: u32,
    number: impl Fn(&RequestPool, RequestId) -> T,
) -> Vec<T> {
    let Some(bucket) = deadline(q).series().buckets.get(cpu as usize) else {
        return Vec::new();
    };
    q.with_pool(|pool| {
        let list = &bucket.list;
        list.inspect(|list| list.iter(pool).map(|rq| number(pool, rq)).collect())
    })
}

/// Requests inserted at the tail that wait on the side.
pub(super) fn side_list<T>(
    q: &RequestQueue,
    number: impl Fn(&RequestPool, RequestId) -> T,
) -> Vec<T> {
    q.with_pool(|pool| {
        deadline(q).series().inserted.inspect(|lists| {
            let requests = lists.at_tail.iter(pool);
            requests.map(|rq| number(pool, rq)).collect()
        })
    })
}
