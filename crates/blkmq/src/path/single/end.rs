//! The end of a request on the single-queue path, or its requeue by the driver.
//!
//! Kernel: blk_end_request_all(), __blk_put_request() in block/blk-core.c, scsi_end_request(),
//! scsi_queue_insert(), scsi_run_queue() in drivers/scsi/scsi_lib.c (2.6.32.2).

use super::{queue_lock, sq};
use crate::call::{Call, RunBy, SingleEndHow};
use crate::env::{Answer, TraceAction};
use crate::path::bio_end::end_bio;
use crate::queue::EndRuns;
use crate::request::{Place, RequestId, Status};
use crate::step::{Cx, Next, Steps as _, labels};
use steps::steps;

pub use leave_driver::State as SingleEnd;

/// The driver has a request no more.
///
/// This may be within the queue_rq of the path below: the device's answer, which that has not read
/// yet, is kept for it, since the run after the end asks the device itself.
#[steps(path)]
pub fn leave_driver(cx: &mut Cx<'_>, rq: RequestId, how: SingleEndHow) {
    let answer: Answer = match how {
        SingleEndHow::Completed(status) => sub!(end_request(rq, status, false)),
        SingleEndHow::Refused(status) => sub!(end_request(rq, status, true)),
        SingleEndHow::Requeued => sub!(queue_insert(rq)),
    };
    cx.cpu.answer = answer;
}

impl SingleEnd {
    pub(in crate::path) fn about_to_end(&self) -> Option<RequestId> {
        let end = self.find::<end_request::State>()?;
        (end.label() == Some(At::End.label())).then_some(end.rq)
    }
}

/// blk_end_request_all(), scsi_end_request(); `refused`: the driver's function is running and
/// continues by itself. Returns the answer that waited.
#[steps]
fn end_request(cx: &mut Cx<'_>, rq: RequestId, status: Status, refused: bool) -> Answer {
    /// Account and trace; its first bio ends. Trace C.
    at!(End);
    let answer: Answer = core::mem::take(&mut cx.cpu.answer);
    account_done(cx, rq, status);
    loop {
        let (above, more) = end_bio(cx, rq, status);
        if !more && above != Next::Call {
            break;
        }
        /// End one more bio.
        ask!(EndBio, above);
    }
    /// Under the queue's lock: the scheduler's completed hook, the free of the request, the
    /// wake-up of a task that waits for one.
    lock!(Put, queue_lock(cx));
    let sq = sq(cx);
    sq.put(rq, true, cx.cpu);
    let runs = sq.end_runs(cx.cpu);
    sq.unlock(cx.cpu);
    if runs && !refused {
        sub!(run_queue());
    }
    answer
}

/// scsi_run_queue().
#[steps]
fn run_queue(cx: &mut Cx<'_>) {
    /// Run the queue.
    at!(Run);
    let (queue, by) = (cx.q.id, RunBy::Run);
    call!(Done, Call::SingleRun { queue, by });
}

/// scsi_queue_insert(). Returns the answer that waited.
#[steps]
fn queue_insert(cx: &mut Cx<'_>, rq: RequestId) -> Answer {
    /// The driver requeues a request.
    at!(GivenBack);
    let answer: Answer = core::mem::take(&mut cx.cpu.answer);
    /// Under the queue's lock: put it back. Trace R.
    lock!(Requeue, queue_lock(cx));
    let sq = sq(cx);
    sq.requeue(rq, cx.cpu);
    let by_driver = sq.settings.end_runs == EndRuns::ByDriver;
    if by_driver {
        sq.run_later(cx.cpu);
    }
    sq.unlock(cx.cpu);
    if by_driver {
        /// The queue was run, or will be.
        at!(Done);
    } else {
        sub!(run_queue());
    }
    answer
}

labels! {
    pub enum At in "single-end" of end_request run_queue queue_insert
}

/// blk_account_io_done(). Trace C.
fn account_done(cx: &mut Cx<'_>, rq: RequestId, status: Status) {
    let mut pool = cx.pool();
    let r = &mut pool[rq];
    r.in_flight = false;
    r.place = Place::Completing;
    r.status = status;
    drop(pool);
    cx.trace_rq(TraceAction::Complete, rq);
}
