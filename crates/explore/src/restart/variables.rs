//! The variables of the specification that schedules show, and how each is read off the block
//! layer: by the explorer between two actions, of a run after a label.

use blkmq::queue::RequestQueue;
use blkmq::request::{HctxId, QueueId, RequestId, RequestPool};
use blkmq::sbitmap::Sbitmap;
use blkmq::schedule::view::{self, View};

/// What the block layer does not know of a state.
pub(crate) trait Beside {
    /// The number of a request, from 1.
    fn number(&self, queue: QueueId, pool: &RequestPool, rq: RequestId) -> u32;
    /// A run of the hctx will begin.
    fn pending(&self, queue: QueueId, hctx: HctxId) -> bool;
    /// The wait queue of a map.
    fn waiters(&self, map: &Sbitmap) -> String;
    /// Requests in the scheduler, in dispatch order.
    fn scheduled(&self, q: &RequestQueue) -> Vec<u32>;
    fn states(&self) -> Vec<(u32, &'static str)>;
}

/// A variable: its name, that in a schedule of a run, and its value as TLC prints it.
type Variable = (
    &'static str,
    &'static str,
    fn(&View<'_>, &dyn Beside) -> String,
);

pub(crate) const VARIABLES: [Variable; 9] = [
    ("tags", "tags", |v, _| v.tags()),
    ("restart", "restart", |v, _| v.restart()),
    ("pending", "pending", |v, beside| {
        v.of_hctx(|queue, hctx| view::flag(beside.pending(queue, hctx)))
    }),
    // Of a run it is a set: the order is not followed.
    ("waiters", "line", |v, beside| {
        let maps = v.mq.sets[0].driver.iter().take(v.hctxs.into());
        view::tuple(maps.map(|map| beside.waiters(map)))
    }),
    ("sched", "sched", |v, beside| {
        let queues = v.mq.queues.iter().map(|q| beside.scheduled(q));
        view::tuple(queues.map(|all| view::tuple(all.iter().map(u32::to_string))))
    }),
    ("disp", "disp", |v, beside| {
        v.dispatch(|queue, pool, rq| beside.number(queue, pool, rq))
    }),
    ("qcount", "qcount", |v, _| v.queue_counts()),
    ("mcount", "mcount", |v, _| v.map_counts()),
    ("state", "under", |_, beside| {
        view::states(beside.states().into_iter())
    }),
];
