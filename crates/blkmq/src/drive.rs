//! The loop that steps paths and carries out their requests.
//!
//! A context is a stack of frames and the CPU that runs it. [`drive`] steps the innermost frame,
//! label by label, and handles each [`Next`] and each effect; a [`Driver`] decides what the block
//! layer does not know: whether a lock is granted, the device's answer, whether the context
//! continues. Which of several contexts runs next is also decided by the driver: by virtual time,
//! every possibility, real threads, a recorded run. Read next: `drive/effects.rs`.

mod effects;
mod follower;
mod stack;

use crate::names::Label;
use crate::step::{Cx, Next};
use core::ops::ControlFlow;

pub use effects::{Kick, Machine, carry_out, one};
pub use follower::{Follower, Ran, Who};
pub use stack::{DEPTH, Stack};

use crate::env::{Answer, Cpu};
use crate::path::{Frame, MapPath, Path, of_path};
use crate::queue::{BlkMq, LockId};
use crate::request::{HctxId, QueueId, RequestId};

/// Whether a context continues, or why it stops.
pub type Flow<D> = ControlFlow<<D as Driver>::Stop>;

/// A running context: paths, and the CPU that runs them.
#[derive(Debug)]
pub struct Context<'a> {
    pub cpu: &'a mut Cpu,
    /// A path with its callers.
    pub stack: &'a mut Stack,
}

impl Context<'_> {
    /// The same for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> Context<'_> {
        Context {
            cpu: self.cpu,
            stack: self.stack,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    pub queue: QueueId,
    /// It holds a driver tag.
    pub rq: RequestId,
    /// `bd.last`.
    pub last: bool,
}

/// The decisions of a driver of paths, and its answers to their requests.
///
/// A method that returns [`Flow`] may stop the loop. The path's request is then still open: the
/// next call of [`drive`] gets the same [`Next`].
pub trait Driver {
    /// Why the loop stops.
    type Stop;

    /// Called between two labels, when the path's request is carried out: does the context
    /// continue? The stack may be empty. Default: it does.
    fn turn(&mut self, _at: Context<'_>) -> Flow<Self> {
        ControlFlow::Continue(())
    }

    /// The stack is empty.
    fn ends(&mut self, cpu: &mut Cpu) -> Self::Stop;

    /// The innermost path has ended, and is still on the stack.
    #[inline]
    fn over(&mut self, _frame: &Frame, _cpu: &Cpu) {}

    /// Runs labels of a path until it has a request for its driver, or the driver stops it.
    #[inline]
    fn labels(&mut self, frame: &mut Frame, mq: &BlkMq, cpu: &mut Cpu) -> Next
    where
        Self: Sized,
    {
        labels(frame, mq, cpu, self)
    }

    /// Accounts for a label that was executed; its results are still in the CPU.
    fn after(&mut self, label: Label, cpu: &mut Cpu);

    /// Another label of the same path may follow at once. Otherwise `turn` comes first.
    fn goes_on(&mut self, _cpu: &mut Cpu) -> bool {
        false
    }

    /// The label left trace points or effects, which must be taken now (see [`carry_out`]). `next`:
    /// the path's next request.
    fn left(&mut self, next: Next, cpu: &mut Cpu) -> Flow<Self>;

    /// The next label needs this lock, and directly follows the last label of its path. True if the
    /// lock was acquired: the loop continues without `lock`. For drivers that run many labels at a
    /// time.
    fn grants(&mut self, _lock: LockId, _cpu: &mut Cpu) -> bool {
        false
    }

    /// The same for a try-lock. True if the answer is in the CPU.
    fn tries(&mut self, _lock: LockId, _cpu: &mut Cpu) -> bool {
        false
    }

    /// The same for the order of time. True if the next label is in time.
    fn in_time(&mut self, _cpu: &Cpu) -> bool {
        true
    }

    /// `grants` has granted a lock while a follower is attached.
    fn granted(&mut self, _lock: LockId, _cpu: &Cpu) {}

    /// The next label needs this lock: acquires it, or stops.
    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self>;

    /// The path tries this lock: puts the answer into the CPU (see [`attempt`]), or stops.
    ///
    /// # Panics
    /// In a driver of paths that try no lock: this is the default.
    fn try_lock(&mut self, lock: LockId, _at: Context<'_>) -> Flow<Self> {
        unreachable!("{lock:?} is tried")
    }

    /// The next label accesses a word on which other CPUs decide now. A driver without a clock
    /// continues.
    fn due(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Continue(())
    }

    /// The path in `cpu.call` is called. False: it is dropped, or left for later.
    fn calls(&mut self, _cpu: &mut Cpu) -> bool {
        true
    }

    /// The path on top of the stack offers a request to a mapped queue; its map follows.
    fn maps(&mut self, _at: &Context<'_>) {}

    /// queue_rq: puts the device's answer into the CPU, or stops. A driver that gives the request
    /// back before it answers pushes that path.
    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self>;

    /// get_budget: puts `Answer::Budget` or `Answer::NoBudget` into the CPU, or stops.
    ///
    /// # Panics
    /// In a driver of queues without budgets: this is the default.
    fn budget(&mut self, queue: QueueId, _cpu: &mut Cpu) -> Flow<Self> {
        unreachable!("queue {queue} has no budgets")
    }

    /// put_budget of a request that was never offered.
    ///
    /// # Panics
    /// As `budget`.
    fn put_budget(&mut self, queue: QueueId, token: u32, _cpu: &mut Cpu) -> Flow<Self> {
        unreachable!("queue {queue} has no budgets, and no token {token}")
    }

    /// blk_lld_busy(): see [`Next::AskBusy`].
    ///
    /// # Panics
    /// In a driver that maps no requests to queues with budgets: this is the default.
    fn ask_busy(&mut self, queue: QueueId, _cpu: &mut Cpu) -> Flow<Self> {
        unreachable!("nobody asks whether queue {queue} is busy")
    }

    /// commit_rqs. Default: for a device that needs none.
    fn commit(&mut self, _queue: QueueId, _hctx: HctxId, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Continue(())
    }

    /// io_schedule() until this context is woken. After it the path continues.
    ///
    /// # Panics
    /// In a driver of contexts that never sleep: this is the default.
    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        unreachable!("no context sleeps here")
    }

    /// synchronize_rcu() of a change of a queue's scheduler: see [`Next::Grace`].
    ///
    /// # Panics
    /// In a driver of queues that keep their schedulers: this is the default.
    fn grace(&mut self, queue: QueueId, _cpu: &mut Cpu) -> Flow<Self> {
        unreachable!("the scheduler of queue {queue} stays what it is")
    }

    /// The scheduler of a queue is exchanged: see [`Next::Exchange`]. Stops, since the loop only
    /// borrows the block layer.
    ///
    /// # Panics
    /// As `grace`.
    fn exchange(&mut self, queue: QueueId, _to: usize, _cpu: &mut Cpu) -> Flow<Self> {
        unreachable!("the scheduler of queue {queue} stays what it is")
    }

    #[inline]
    fn follower(&mut self) -> Option<&mut (dyn Follower + 'static)> {
        None
    }

    /// Number of the running context, for followers.
    fn context(&self, _cpu: &Cpu) -> usize {
        0
    }

    /// The label left something in the CPU. Takes what the loop can go on without, if the driver
    /// does that; true if `left` must take the rest.
    fn leaves(&mut self, _cpu: &mut Cpu) -> bool {
        true
    }

    /// While a follower is attached, `goes_on` returns false (true) or its own answer (false):
    /// labels run one at a time.
    fn one_by_one(&mut self, _only: bool) {}
}

/// Runs a context from its request (`Next::Step`: none) until the driver stops it.
#[inline]
pub fn drive<D: Driver>(driver: &mut D, mq: &BlkMq, mut at: Context<'_>, wanted: Next) -> D::Stop {
    let mut next = wanted;
    loop {
        if let ControlFlow::Break(stop) = follow(driver, mq, at.reborrow(), next) {
            return stop;
        }
        if let ControlFlow::Break(stop) = driver.turn(at.reborrow()) {
            return stop;
        }
        let Some(frame) = at.stack.top() else {
            return driver.ends(at.cpu);
        };
        at.cpu.begin_label();
        next = match driver.follower().is_some() {
            false => driver.labels(frame, mq, at.cpu),
            true => followed(driver, mq, at.reborrow()),
        };
        if !at.cpu.is_quiet()
            && let ControlFlow::Break(stop) = driver.left(next, at.cpu)
        {
            return stop;
        }
    }
}

/// Carries out the path's request.
#[inline]
fn follow<D: Driver>(driver: &mut D, mq: &BlkMq, at: Context<'_>, next: Next) -> Flow<D> {
    match next {
        Next::Step => {}
        Next::Lock(lock) => driver.lock(lock, at)?,
        Next::TryLock(lock) => driver.try_lock(lock, at)?,
        Next::InTime => driver.due(at.cpu)?,
        Next::Call => {
            if driver.calls(at.cpu) {
                at.stack.push_called(at.cpu);
            } else {
                at.cpu.call = None;
            }
        }
        Next::Budget => driver.budget(at.stack.asking(), at.cpu)?,
        Next::Submit(rq) => offer(driver, mq, at, rq, false)?,
        Next::SubmitLast(rq) => offer(driver, mq, at, rq, true)?,
        Next::PutBudget(token) => driver.put_budget(at.stack.asking(), token, at.cpu)?,
        Next::AskBusy(queue) => driver.ask_busy(queue, at.cpu)?,
        Next::Commit(hctx) => {
            driver.commit(at.stack.asking(), HctxId(hctx as u16), at.cpu)?;
        }
        Next::Park => driver.park(at.cpu)?,
        Next::Grace => driver.grace(at.stack.asking(), at.cpu)?,
        Next::Exchange(to) => driver.exchange(at.stack.asking(), to as usize, at.cpu)?,
        Next::Done => {
            if let Some(frame) = at.stack.last() {
                driver.over(frame, at.cpu);
            }
            at.stack.pop();
        }
    }
    ControlFlow::Continue(())
}

#[inline]
fn offer<D: Driver>(
    driver: &mut D,
    mq: &BlkMq,
    at: Context<'_>,
    rq: RequestId,
    last: bool,
) -> Flow<D> {
    let queue = at.stack.asking();
    if mq.queue(queue).mapped.is_some() {
        driver.maps(&at);
        at.stack.push(Frame::Map(MapPath::new(queue, rq)));
        return ControlFlow::Continue(());
    }
    driver.offer(Offer { queue, rq, last }, at)
}

/// Labels of one path while a follower is attached.
#[cold]
fn followed<D: Driver>(driver: &mut D, mq: &BlkMq, at: Context<'_>) -> Next {
    let who = Who {
        context: driver.context(at.cpu),
        depth: at.stack.depth() - 1,
    };
    let cpu = at.cpu;
    let frame = at.stack.top().expect("a frame is to be driven");
    loop {
        let was = *frame;
        if let Some(follower) = driver.follower() {
            follower.before(mq, frame);
        }
        driver.one_by_one(true);
        let next = driver.labels(frame, mq, cpu);
        driver.one_by_one(false);
        if let Some(follower) = driver.follower() {
            let is = &*frame;
            let was = &was;
            follower.after(mq, Ran { who, was, is, next }, cpu);
        }
        if !cpu.is_quiet() && driver.leaves(cpu) || !driver.goes_on(cpu) {
            return next;
        }
        cpu.begin_label();
        if !at_once(driver, cpu, next) {
            return next;
        }
        if let Next::Lock(lock) = next {
            driver.granted(lock, cpu);
        }
    }
}

/// True if the path's request can be carried out between two of its labels.
#[inline]
fn at_once<D: Driver>(driver: &mut D, cpu: &mut Cpu, next: Next) -> bool {
    // Most labels: by a comparison, not through a table.
    if next == Next::Step {
        return true;
    }
    match next {
        Next::Step => true,
        Next::Lock(lock) => driver.grants(lock, cpu),
        Next::TryLock(lock) => driver.tries(lock, cpu),
        Next::InTime => driver.in_time(cpu),
        Next::Call
        | Next::Budget
        | Next::Submit(_)
        | Next::SubmitLast(_)
        | Next::PutBudget(_)
        | Next::AskBusy(_)
        | Next::Commit(_)
        | Next::Park
        | Next::Grace
        | Next::Exchange(_)
        | Next::Done => false,
    }
}

/// [`Driver::labels`] with a loop for each path, so that the state machine is chosen once and not
/// for every label: for a driver that runs many labels at a time.
#[expect(clippy::inline_always, reason = "in the simulator's loop, measured")]
#[inline(always)]
pub fn path_by_path<D: Driver>(
    driver: &mut D,
    frame: &mut Frame,
    mq: &BlkMq,
    cpu: &mut Cpu,
) -> Next {
    of_path!(frame, path => labels(path, mq, cpu, driver))
}

#[inline(never)]
fn labels<D: Driver>(path: &mut impl Path, mq: &BlkMq, cpu: &mut Cpu, driver: &mut D) -> Next {
    let mut cx = Cx::of(mq, path.queue(), cpu);
    loop {
        let label = path.label();
        let next = path.step(&mut cx);
        debug_assert_eq!(path.queue(), cx.queue(), "a path goes on with its queue");
        driver.after(label, cx.cpu);
        if !cx.cpu.is_quiet() && driver.leaves(cx.cpu) || !driver.goes_on(cx.cpu) {
            return next;
        }
        cx.cpu.begin_label();
        if !at_once(driver, cx.cpu, next) {
            return next;
        }
    }
}

/// spin_trylock() by a driver whose contexts own the locks of the block layer: puts the answer into
/// the CPU. An access to shared memory of its own.
pub fn attempt(mq: &BlkMq, lock: LockId, cpu: &mut Cpu) {
    cpu.begin_label();
    cpu.answer = match mq.try_acquire(lock, cpu) {
        true => Answer::Locked,
        false => Answer::Contended,
    };
    cpu.begin_label();
}

#[cfg(test)]
mod tests;
