//! What a step shows of the block layer, in the syntax of `specs/Dispatch`.

use blkmq::elevator::series::shared::{BUCKETS, DISPATCHING, INSERTING};
use blkmq::list::QueueList;
use blkmq::queue::BlkMq;
use blkmq::request::{Place, RequestPool};
use blkmq::schedule::view::{self, DISPATCH as OBSERVED};

use super::{Binding, QUEUE};
use crate::dispatch::deadline;

/// Values of [`OBSERVED`].
pub(super) type Seen = [String; OBSERVED.len()];

/// What the specification's first state shows, with so many CPUs.
pub(super) fn first(cpus: u32) -> Seen {
    let none = || "<<>>".to_owned();
    let off = || view::flag(false);
    [
        "0".to_owned(),
        none(),
        view::tuple((0..cpus).map(|_| none())),
        none(),
        "0".to_owned(),
        off(),
        off(),
        off(),
        off(),
        view::set(core::iter::empty()),
    ]
}

impl Binding {
    /// What the block layer shows now; whether a work item is to run and who has the lock are the
    /// machine's to say.
    pub(super) fn look(&mut self, mq: &BlkMq) {
        let q = mq.queue(QUEUE);
        let dd = deadline(q);
        let bits = dd.run_state.peek();
        let of_cpu = |cpu: u32| {
            let bucket = dd.buckets.get(cpu as usize);
            bucket.map_or("<<>>".to_owned(), |bucket| {
                q.with_pool(|pool| bucket.list.inspect(|list| self.numbers(pool, list)))
            })
        };
        let mut device = q.with_pool(|pool| {
            let there = pool.iter().filter(|(_, rq)| rq.place == Place::Device);
            there
                .map(|(rq, _)| self.names.of(QUEUE, rq).unwrap_or(0))
                .collect::<Vec<u32>>()
        });
        device.sort_unstable();
        let at_head = dd.inserted.inspect(|lists| !lists.at_head.is_empty());
        let seen = [
            self.owner.map_or(0, |(_, process)| process).to_string(),
            self.names.scheduled(q),
            view::tuple((0..self.cpus).map(of_cpu)),
            q.with_pool(|pool| {
                dd.inserted
                    .inspect(|lists| self.numbers(pool, &lists.at_tail))
            }),
            dd.insert_seq.peek().to_string(),
            view::flag(bits & DISPATCHING != 0),
            view::flag(bits & INSERTING != 0),
            view::flag(bits & BUCKETS != 0),
            view::flag(self.armed),
            view::set(device.into_iter().map(|number| number.to_string())),
        ];
        if at_head {
            self.refuse("a request was inserted at the head; the specification has none");
        }
        if self.names.unknown(mq) {
            self.refuse("a request waits that no step submitted");
        }
        self.seen = seen;
    }

    fn numbers(&self, pool: &RequestPool, list: &QueueList) -> String {
        let numbers = list
            .iter(pool)
            .map(|rq| self.names.of(QUEUE, rq).unwrap_or(0));
        view::tuple(numbers.map(|number| number.to_string()))
    }
}
