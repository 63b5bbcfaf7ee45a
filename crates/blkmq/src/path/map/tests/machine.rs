//! The machine around the queues of a bench: its answers, and the effects of labels.

use core::ops::ControlFlow;

use super::bench::TOP;
use crate::call::BioWork;
use crate::dm::PathId;
use crate::dm::multipath::Uevent;
use crate::drive::{Context, Driver, Flow, Kick, Machine, Offer, attempt, carry_out};
use crate::env::{Answer, CacheLine, Cpu, TraceAction};
use crate::names::Label;
use crate::queue::{BlkMq, LockId, Mapped};
use crate::request::{BioId, CpuId, QueueId, RequestId, Status};
use crate::step::Next;
use crate::time::Duration;
use crate::waiter::WaiterId;

#[derive(Default)]
pub(super) struct Machinery {
    /// Letters of blktrace, those of paths' queues small.
    pub(super) letters: Vec<String>,
    /// Labels since they were last taken.
    pub(super) labels: Vec<&'static str>,
    /// Another CPU writes to this line before each label.
    pub(super) contended: Option<fn(&Mapped) -> &CacheLine>,
    /// Labels that missed a cache line.
    pub(super) missed: Vec<&'static str>,
    /// The loop stops before the next label of this name, or after so many labels.
    pub(super) stop_at: Option<&'static str>,
    pub(super) steps: Option<u32>,
    /// Paths that are to be activated.
    pub(super) activations: Vec<PathId>,
    /// Requests that the thread will map.
    pub(super) to_map: Vec<RequestId>,
    /// Runs of queues by kblockd, with their delays.
    pub(super) kicks: Vec<(QueueId, Duration)>,
    /// Kicks of the requeue list, with their delays.
    pub(super) requeues: Vec<Duration>,
    pub(super) uevents: Vec<Uevent>,
    /// Answers of the devices; none: they take every request.
    pub(super) answers: Vec<Answer>,
    /// An answer that a context has left.
    pub(super) answer: Answer,
    /// Answers to get_budget; none: there is one.
    pub(super) budgets: Vec<Answer>,
    /// Budgets that were put.
    pub(super) put: Vec<u32>,
    pub(super) in_device: Vec<(QueueId, RequestId)>,
    pub(super) completed: Vec<RequestId>,
    pub(super) ended: Vec<Status>,
    /// Work of a bio-based device.
    pub(super) work: Vec<BioWork>,
    /// Tasks that wait for the thread, and those that were woken.
    pub(super) flushes: Vec<WaiterId>,
    pub(super) woken: Vec<WaiterId>,
    /// Tasks that sleep for a time.
    pub(super) later: Vec<WaiterId>,
    /// The context sleeps.
    pub(super) parked: bool,
}

pub(super) struct On<'a> {
    pub(super) mq: &'a BlkMq,
    pub(super) on: &'a mut Machinery,
}

fn letter(action: TraceAction) -> &'static str {
    match action {
        TraceAction::Queue => "Q",
        TraceAction::GetRq => "G",
        TraceAction::Insert => "I",
        TraceAction::Issue => "D",
        TraceAction::Remap => "A",
        TraceAction::Requeue => "R",
        TraceAction::Complete => "C",
        _ => "?",
    }
}

impl Driver for On<'_> {
    type Stop = ();

    fn turn(&mut self, at: Context<'_>) -> Flow<Self> {
        let next = at.stack.last().map(|frame| frame.label().name());
        if self.on.steps == Some(0) || next.is_some() && next == self.on.stop_at {
            return ControlFlow::Break(());
        }
        self.on.steps = self.on.steps.map(|steps| steps - 1);
        if let Some(line) = self.on.contended {
            line(self.mq.queue(TOP).own_mapped()).write(&mut Cpu::new(CpuId(1)));
        }
        ControlFlow::Continue(())
    }

    fn ends(&mut self, cpu: &mut Cpu) {
        assert_eq!(cpu.locks_held(), 0, "a context ends with a lock");
        self.on.answer = core::mem::take(&mut cpu.answer);
    }

    fn after(&mut self, label: Label, cpu: &mut Cpu) {
        self.on.labels.push(label.name());
        let (_, misses) = cpu.meter.take();
        if misses.alone() > 0 {
            self.on.missed.push(label.name());
        }
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        for point in cpu.trace.drain(..) {
            let letter = letter(point.action);
            self.on.letters.push(match point.queue {
                TOP => letter.to_owned(),
                _ => letter.to_lowercase(),
            });
        }
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        attempt(self.mq, lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        assert_ne!(offer.queue, TOP, "those of the mapped queue are mapped");
        self.mq.start_request(offer.queue, offer.rq, at.cpu);
        at.cpu.answer = self.on.answers.pop().unwrap_or(Answer::Ok);
        if at.cpu.answer == Answer::Ok {
            self.on.in_device.push((offer.queue, offer.rq));
        }
        ControlFlow::Continue(())
    }

    fn budget(&mut self, _queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        cpu.answer = self.on.budgets.pop().unwrap_or(Answer::Budget(0));
        ControlFlow::Continue(())
    }

    fn put_budget(&mut self, _queue: QueueId, token: u32, _cpu: &mut Cpu) -> Flow<Self> {
        self.on.put.push(token);
        ControlFlow::Continue(())
    }

    fn ask_busy(&mut self, _queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        cpu.answer = Answer::GoOn;
        ControlFlow::Continue(())
    }

    fn grace(&mut self, _queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        cpu.answer = Answer::GoOn;
        ControlFlow::Continue(())
    }

    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        self.on.parked = true;
        ControlFlow::Break(())
    }
}

impl Machine for On<'_> {
    fn kick(&mut self, kick: Kick) {
        self.on.kicks.push((kick.queue, kick.delay));
    }

    fn kick_requeue(&mut self, _queue: QueueId) {
        self.on.requeues.push(Duration::ZERO);
    }

    fn kick_requeue_later(&mut self, _queue: QueueId, after: Duration) {
        self.on.requeues.push(after);
    }

    fn bio_end(&mut self, queue: QueueId, bio: BioId, status: Status) {
        self.on.ended.push(status);
        self.mq.queue(queue).with_pool(|pool| pool.free_bio(bio));
    }

    fn wake(&mut self, waiter: WaiterId) {
        self.on.woken.push(waiter);
    }

    fn time_out(&mut self, _queue: QueueId, _after: Duration) {}

    fn arm(&mut self, _queue: QueueId, _timer: u8, _after: Duration) {}

    fn cancel(&mut self, _queue: QueueId, _timer: u8) {}

    fn complete(&mut self, queue: QueueId, rq: RequestId) {
        assert_eq!(queue, TOP);
        self.on.completed.push(rq);
    }

    fn map(&mut self, queue: QueueId, rq: RequestId) {
        assert_eq!(queue, TOP);
        self.on.to_map.push(rq);
    }

    fn flush_mapper(&mut self, queue: QueueId, waiter: WaiterId) {
        assert_eq!(queue, TOP);
        self.on.flushes.push(waiter);
    }

    fn run_queue(&mut self, queue: QueueId) {
        self.on.kicks.push((queue, Duration::ZERO));
    }

    fn bio_work(&mut self, queue: QueueId, what: BioWork) {
        assert_eq!(queue, TOP);
        self.on.work.push(what);
    }

    fn activate(&mut self, queue: QueueId, path: PathId, _after: Duration) {
        assert_eq!(queue, TOP);
        self.on.activations.push(path);
    }

    fn wake_later(&mut self, waiter: WaiterId, _after: Duration) {
        self.on.later.push(waiter);
    }

    fn uevent(&mut self, queue: QueueId, event: Uevent) {
        assert_eq!(queue, TOP);
        self.on.uevents.push(event);
    }
}
