//! Dispatch calls of which a log has the lines and no probe the request: the D that can show it.
//!
//! A run asks the scheduler several times, and then hands over the requests that it got: in another
//! order where that is for several hctxs, and without the last request if that found no tag, which
//! another task may then hand over. The model's choice decides which D is a call's.
//! Kernel: __blk_mq_do_dispatch_sched().

use blkmq::time::Duration;

use super::{Kind, Stream};

/// The address of a request that no probe shows.
pub(crate) const UNKNOWN: u64 = 0;

/// From a call to the D of its request, unless that waits for a tag.
const HANDED_OVER: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unprobed {
    /// D of its run after these calls, and before the next ones.
    pub(crate) own: Vec<usize>,
    /// Calls of the run from this one on.
    pub(crate) calls: usize,
}

impl Stream {
    pub(super) fn find_unprobed(&mut self) {
        // By CPU: the task, with the calls of its run and the D after them.
        let mut runs = vec![(usize::MAX, Vec::<usize>::new(), Vec::new()); self.cpus];
        for (index, event) in self.events.iter().enumerate() {
            let task = self.task[index];
            let run = &mut runs[usize::from(event.cpu)];
            let asks_again = matches!(event.kind, Kind::Answer { .. }) && !run.2.is_empty();
            let last = run.1.last().map(|&call| self.events[call].time);
            let over = last.is_some_and(|last| event.time.since(last) > HANDED_OVER);
            if run.0 != task || asks_again || over {
                let (_, calls, own) = core::mem::replace(run, (task, Vec::new(), Vec::new()));
                self.unprobed.extend(of_run(calls, own));
            }
            match event.kind {
                Kind::Issue => run.2.push(index),
                Kind::Answer { rq, .. } if rq == Some(UNKNOWN) => run.1.push(index),
                _ => {}
            }
        }
        for (_, calls, own) in runs {
            self.unprobed.extend(of_run(calls, own));
        }
    }
}

fn of_run(calls: Vec<usize>, own: Vec<usize>) -> impl Iterator<Item = (usize, Unprobed)> {
    let all = calls.len();
    let each = move |(number, call)| {
        let (own, calls) = (own.clone(), all - number);
        (call, Unprobed { own, calls })
    };
    calls.into_iter().enumerate().map(each)
}

#[cfg(test)]
mod tests;
