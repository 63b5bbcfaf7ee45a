//! The choice of a path for a request or a bio, under the locks of the kernel.

use crate::call::BioWork;
use crate::dm::multipath::{Access, Ask, Choice, Multipath};
use crate::dm::{Incoming, Mapping};
use crate::env::{Cpu, Effect};
use crate::queue::{LockKind, Mapped, Tio};
use crate::request::{BioId, QueueId, RequestId};
use crate::rules::TargetLock;
use crate::step::{Cx, Next};
use crate::time::Duration;
use steps::steps;

/// What is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::path) enum Io {
    Rq(RequestId),
    /// Its length was noted: a held bio is not read any more, since it may have ended.
    Bio(BioId, u32),
}

/// multipath_map(): up to 4.6 one label of the caller's under m->lock, later one for each question.
#[steps]
pub(in crate::path) fn choose_path(cx: &mut Cx<'_>, io: Io) -> Mapping {
    if cx.rules().device_mapper.target_lock == TargetLock::Whole {
        lock!(_, cx.lock(LockKind::Target, 0));
        let mapping = choose_at_once(cx, io);
        cx.q.own_mapped().lock.release(cx.cpu);
        return mapping;
    }
    let mut choice: Option<Choice> = Some(begin(cx, io));
    loop {
        ask!(_, wants(cx, choice));
        let (access, mapping) = answer(cx, io, &mut choice);
        release(cx, access);
        if let Some(mapping) = mapping {
            return mapping;
        }
    }
}

impl choose_path::State {
    /// The next question.
    pub(in crate::path) fn asks(&self) -> Option<Ask> {
        self.choice?.ask().ok()
    }

    /// The target holds the bio, and the choice has a step after that.
    pub(in crate::path) fn has_held(&self) -> bool {
        self.choice.is_some_and(|choice| choice.has_held())
    }
}

fn incoming(cx: &Cx<'_>, io: Io) -> Incoming {
    let (bytes, bio) = match io {
        Io::Rq(rq) => (cx.pool()[rq].sectors.0 * 512, None),
        Io::Bio(bio, bytes) => (bytes, Some(bio)),
    };
    Incoming {
        bytes,
        cpu: cx.cpu.id,
        now: cx.cpu.now(),
        bio,
    }
}

fn begin(cx: &Cx<'_>, io: Io) -> Choice {
    let incoming = incoming(cx, io);
    let state = cx.q.own_mapped().state.held(cx.cpu.id);
    state.target.choice(incoming)
}

/// Under m->lock.
fn choose_at_once(cx: &mut Cx<'_>, io: Io) -> Mapping {
    let (m, incoming) = (cx.q.own_mapped(), incoming(cx, io));
    m.fields.write(cx.cpu);
    for account in &m.accounts {
        account.read_among(1, cx.cpu);
    }
    let mut state = m.state.held(cx.cpu.id);
    let mapping = state.target.map(incoming);
    leave(cx.q.id, &mut state.target, cx.cpu);
    drop(state);
    note(cx, io, mapping);
    mapping
}

/// The locks that the next question of a choice needs.
fn wants(cx: &Cx<'_>, choice: Option<Choice>) -> Next {
    let choice = choice.expect("it has begun");
    let ask = choice.ask().expect("it is not over");
    match choice.access(ask) {
        Access::TargetLock => cx.lock(LockKind::Target, 0),
        Access::Selector(group) if cx.q.own_mapped().locks(group) => {
            cx.lock(LockKind::Selector, u32::from(group.0))
        }
        Access::Word | Access::Selector(_) => Next::Step,
    }
}

/// One question of a choice, answered by the target. Its locks are still held: see [`release`].
/// Returns the result of the choice, too, if that was the last question.
fn answer(cx: &mut Cx<'_>, io: Io, choice: &mut Option<Choice>) -> (Access, Option<Mapping>) {
    let (m, incoming) = (cx.q.own_mapped(), incoming(cx, io));
    let choice = choice.as_mut().expect("it has begun");
    let ask = choice.ask().expect("it was not over");
    let access = choice.access(ask);
    touch(m, ask, access, cx.cpu);
    let mut state = m.state.held(cx.cpu.id);
    let answer = state.target.answer(ask, incoming);
    choice.answer(answer);
    if access == Access::TargetLock || ask == Ask::CallWorker {
        leave(cx.q.id, &mut state.target, cx.cpu);
    }
    drop(state);
    let mapping = choice.ask().err();
    if let Some(mapping) = mapping {
        note(cx, io, mapping);
    }
    (access, mapping)
}

/// The result of the choice is recorded in the same label.
fn note(cx: &mut Cx<'_>, io: Io, mapping: Mapping) {
    let mut state = cx.q.own_mapped().state.held(cx.cpu.id);
    match (io, mapping) {
        (Io::Bio(bio, _), Mapping::To(to)) => {
            let tio = &mut state.bios[bio.0 as usize];
            (tio.mapped, tio.started) = (Some(to), cx.cpu.now());
        }
        (Io::Bio(..), _) => {}
        (Io::Rq(rq), mapping) => {
            let tio = &mut state.tios[rq.0 as usize];
            *tio = Tio::default();
            match mapping {
                Mapping::To(to) => tio.mapped = Some(to),
                Mapping::Kill(status) => {
                    tio.status = status;
                    drop(state);
                    // dm_kill_unmapped_request(): its end runs before the next label.
                    let queue = cx.q.id;
                    cx.cpu.outbox.push(Effect::Complete { queue, rq });
                }
                Mapping::Requeue | Mapping::DelayRequeue => {}
                Mapping::Held => unreachable!("a request is not held by its target"),
            }
        }
    }
}

/// Releases the locks of an answer.
fn release(cx: &mut Cx<'_>, access: Access) {
    let m = cx.q.own_mapped();
    match access {
        Access::TargetLock => m.lock.release(cx.cpu),
        Access::Selector(group) if m.locks(group) => m.selectors[group.index()].release(cx.cpu),
        Access::Word | Access::Selector(_) => {}
    }
}

/// The cache lines of an answer.
fn touch(m: &Mapped, ask: Ask, access: Access, cpu: &mut Cpu) {
    match access {
        Access::Selector(group) => {
            let state = m.state.held(cpu.id);
            let paths = state.target.paths_of(group);
            drop(state);
            for account in &m.accounts[paths] {
                account.read_among(1, cpu);
            }
        }
        Access::TargetLock if !matches!(ask, Ask::FlagLocked(_) | Ask::MustPushBack) => {
            m.fields.write(cpu);
        }
        Access::Word if matches!(ask, Ask::Set(_) | Ask::Clear(_)) => m.fields.write(cpu),
        Access::Word | Access::TargetLock => m.fields.read_among(1, cpu),
    }
}

/// Queues the work that the target asks for. True: the waiters for its activations must be woken.
pub(in crate::path) fn leave(queue: QueueId, target: &mut Multipath, cpu: &mut Cpu) -> bool {
    if !target.wants_anything() {
        return false;
    }
    let todo = target.take_todo();
    if todo.run_queue {
        cpu.outbox.push(Effect::RunQueue { queue });
    }
    if todo.kick_list {
        cpu.outbox.push(Effect::KickRequeue { queue });
    }
    if todo.call_worker {
        let what = BioWork::Held;
        cpu.outbox.push(Effect::BioWork { queue, what });
    }
    if let Some(secs) = todo.arm_timer {
        let after = Some(Duration::from_secs(secs));
        cpu.outbox.push(Effect::PathTimer { queue, after });
    }
    if todo.cancel_timer {
        let after = None;
        cpu.outbox.push(Effect::PathTimer { queue, after });
    }
    if let Some(event) = todo.uevent {
        cpu.outbox.push(Effect::Uevent { queue, event });
    }
    while !cpu.outbox.is_full()
        && let Some((path, ms)) = target.take_activation()
    {
        cpu.outbox.push(Effect::Activate {
            queue,
            path,
            after: Duration::from_millis(u64::from(ms)),
        });
    }
    todo.wake
}
