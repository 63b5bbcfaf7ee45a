//! The end of a request on the single-queue path, or its requeue by the driver.
//!
//! Kernel: blk_end_request_all(), __blk_put_request() in block/blk-core.c, scsi_end_request(),
//! scsi_queue_insert(), scsi_run_queue() in drivers/scsi/scsi_lib.c (2.6.32.2).

use super::SqQueue;
use crate::call::{Call, RunBy, SingleEndHow};
use crate::elevator::queue_lock;
use crate::env::{Answer, Cpu, TraceAction};
use crate::names::labels;
use crate::path::bio_end::ended;
use crate::queue::{BlkMq, EndRuns};
use crate::request::{Place, QueueId, RequestId, Status};
use crate::step::{Cx, Next};

labels! {
    pub enum At in "single-end" {
        /// Account and trace; its first bio ends. Trace C.
        End,
        /// End one more bio.
        EndBio,
        /// Under the queue's lock: the scheduler's completed hook, the free of the request, the
        /// wake-up of a task that waits for one.
        Put,
        /// Run the queue.
        Run,
        /// The driver requeues a request.
        GivenBack,
        /// Under the queue's lock: put it back. Trace R.
        Requeue,
        /// The queue was run, or will be.
        Done,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SingleEnd {
    pub(in crate::path) at: At,
    pub(in crate::path) queue: QueueId,
    rq: RequestId,
    status: Status,
    /// The driver's function is running and continues by itself.
    refused: bool,
    /// The device's answer that the path below has not read yet: this end is within its queue_rq,
    /// and the run after it asks the device itself.
    answer: Answer,
}

impl SingleEnd {
    pub fn new(queue: QueueId, rq: RequestId, how: SingleEndHow) -> SingleEnd {
        let (at, status, refused) = match how {
            SingleEndHow::Completed(status) => (At::End, status, false),
            SingleEndHow::Refused(status) => (At::End, status, true),
            SingleEndHow::Requeued => (At::GivenBack, Status::Ok, false),
        };
        SingleEnd {
            at,
            queue,
            rq,
            status,
            refused,
            answer: Answer::None,
        }
    }

    pub(in crate::path) fn about_to_end(&self) -> Option<RequestId> {
        (self.at == At::End).then_some(self.rq)
    }

    pub(in crate::path) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let sq = &SqQueue::of(cx.mq, self.queue);
        match self.at {
            At::End => {
                self.answer = core::mem::take(&mut cx.cpu.answer);
                let mut pool = sq.q.pool.held(cx.cpu.id);
                let rq = &mut pool[self.rq];
                rq.in_flight = false;
                rq.place = Place::Completing;
                rq.status = self.status;
                drop(pool);
                cx.trace_rq(TraceAction::Complete, self.rq);
                self.end_bio(sq, cx.cpu)
            }
            At::EndBio => self.end_bio(sq, cx.cpu),
            At::Put => self.put(sq, cx.cpu),
            At::Run => {
                self.at = At::Done;
                let queue = self.queue;
                let by = RunBy::Run;
                cx.call(Call::SingleRun { queue, by })
            }
            At::Requeue => {
                sq.requeue(self.rq, cx.cpu);
                let by_driver = sq.settings.end_runs == EndRuns::ByDriver;
                if by_driver {
                    sq.run_later(cx.cpu);
                }
                sq.unlock(cx.cpu);
                self.at = if by_driver { At::Done } else { At::Run };
                Next::Step
            }
            At::GivenBack => {
                self.answer = core::mem::take(&mut cx.cpu.answer);
                self.lock(At::Requeue)
            }
            At::Done => self.over(cx.cpu),
        }
    }

    fn lock(&mut self, at: At) -> Next {
        self.at = at;
        Next::Lock(queue_lock(self.queue))
    }

    fn end_bio(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        let mut pool = sq.q.pool.held(cpu.id);
        let Some(bio) = pool[self.rq].bio_first else {
            drop(pool);
            return self.lock(At::Put);
        };
        let next = pool.bio(bio).next;
        let rq = &mut pool[self.rq];
        rq.bio_first = next;
        rq.bio_count -= 1;
        if next.is_none() {
            rq.bio_last = None;
        }
        let whole = pool.end_piece(bio, self.status);
        drop(pool);
        let more = next.is_some();
        match ended(sq.q, whole, cpu) {
            // The end of a bio of a bio-based device comes first.
            Next::Call => {
                self.at = At::EndBio;
                Next::Call
            }
            _ if more => {
                self.at = At::EndBio;
                Next::Step
            }
            _ => self.lock(At::Put),
        }
    }

    fn put(&mut self, sq: &SqQueue<'_>, cpu: &mut Cpu) -> Next {
        sq.put(self.rq, true, cpu);
        (self.rq, self.status) = (RequestId(0), Status::Ok);
        let runs = sq.end_runs(cpu);
        sq.unlock(cpu);
        if self.refused || !runs {
            return self.over(cpu);
        }
        self.at = At::Run;
        Next::Step
    }

    fn over(&mut self, cpu: &mut Cpu) -> Next {
        cpu.answer = core::mem::take(&mut self.answer);
        Next::Done
    }

    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        if matches!(self.at, At::EndBio | At::Put) {
            let place = mq.queue(self.queue).pool.held(cpu.id)[self.rq].place;
            assert_eq!(place, Place::Completing, "{:?}: {:?}", self.at, self.rq);
        }
    }

    pub(in crate::path) fn check_over(&self) {
        let early = matches!(self.at, At::End | At::GivenBack);
        assert!(!early, "{:?}: nothing was done", self.at);
        assert_eq!(self.answer, Answer::None, "an answer that nobody gets");
    }
}
