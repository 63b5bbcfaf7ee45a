//! The state of a block layer in the syntax of `specs/Restart`, as its schedules show it.
//!
//! Read from the words and lists of the model by a program that runs the paths: the explorer
//! between two actions, the simulator after a label. Not here: the number of a request, the runs
//! that will follow and the progress of a request, which only that program has.

use crate::queue::BlkMq;
use crate::request::{HctxId, QueueId, RequestId, RequestPool};
use crate::sbitmap::Sbitmap;
use crate::waiter::Waiter;

/// A block layer whose queues use one tag set.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub mq: &'a BlkMq,
    /// Numbers of hctxs of each queue and of tag maps that are shown: the first ones.
    pub hctxs: u16,
}

impl View<'_> {
    /// `tags`: free driver tags of each map.
    pub fn tags(&self) -> String {
        let maps = self.mq.sets[0].driver.iter().take(self.hctxs.into());
        tuple(maps.map(|map| (map.depth() - map.busy_count()).to_string()))
    }

    /// `mcount`: marks that each map counts.
    pub fn map_counts(&self) -> String {
        let counts = self.mq.sets[0].restarts.iter().take(self.hctxs.into());
        tuple(counts.map(|count| count.peek().to_string()))
    }

    /// `qcount`: marks that each queue counts.
    pub fn queue_counts(&self) -> String {
        let queues = self.mq.queues.iter();
        tuple(queues.map(|queue| queue.restarts.peek().to_string()))
    }

    /// `restart`: SCHED_RESTART of each hctx.
    pub fn restart(&self) -> String {
        self.of_hctx(|queue, hctx| flag(self.mq.queue(queue).hctx(hctx).restart.peek()))
    }

    /// `disp`: dispatch lists, of requests as `number` numbers them.
    pub fn dispatch(&self, number: impl Fn(QueueId, &RequestPool, RequestId) -> u32) -> String {
        self.of_hctx(|queue, hctx| {
            let q = self.mq.queue(queue);
            q.with_pool(|pool| {
                q.hctx(hctx).dispatch.inspect(|list| {
                    let requests = list.iter(pool).map(|rq| number(queue, pool, rq));
                    tuple(requests.map(|number| number.to_string()))
                })
            })
        })
    }

    /// A function of hctxs: `(<<1, 1>> :> value @@ ...)`.
    pub fn of_hctx(&self, value: impl Fn(QueueId, HctxId) -> String) -> String {
        let mut each = Vec::new();
        for queue in &self.mq.queues {
            for hctx in 0..self.hctxs {
                let name = hctx_name(queue.id, HctxId(hctx));
                each.push(format!("{name} :> {}", value(queue.id, HctxId(hctx))));
            }
        }
        format!("({})", each.join(" @@ "))
    }
}

/// Hctxs that wait for a tag of a map: queue by queue of its wait queues, in the order of entries.
/// Panics if a task waits for a driver tag.
pub fn waiting(map: &Sbitmap, mut each: impl FnMut(QueueId, HctxId)) {
    for state in &map.wait {
        state.queue.inspect(|queue| {
            for entry in &queue.entries {
                match *entry {
                    Waiter::Hctx { queue, hctx, .. } => each(queue, hctx),
                    Waiter::Task(_) => unreachable!("no task waits for a driver tag"),
                }
            }
        });
    }
}

/// `<<2, 1>>`: a queue and an hctx of it, counted from 1.
pub fn hctx_name(queue: QueueId, hctx: HctxId) -> String {
    format!("<<{}, {}>>", queue.0 + 1, hctx.0 + 1)
}

/// `<<a, b>>`
pub fn tuple(values: impl Iterator<Item = String>) -> String {
    format!("<<{}>>", values.collect::<Vec<_>>().join(", "))
}

/// `{a, b}`
pub fn set(values: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", values.collect::<Vec<_>>().join(", "))
}

/// `TRUE` or `FALSE`
pub fn flag(flag: bool) -> String {
    if flag { "TRUE" } else { "FALSE" }.to_owned()
}

/// States of requests by their numbers: `(1 :> "live" @@ 2 :> "device")`; of none `<<>>`.
pub fn states<'a>(requests: impl Iterator<Item = (u32, &'a str)>) -> String {
    let each: Vec<String> = requests
        .map(|(request, state)| format!("{request} :> \"{state}\""))
        .collect();
    match each.is_empty() {
        true => "<<>>".to_owned(),
        false => format!("({})", each.join(" @@ ")),
    }
}
