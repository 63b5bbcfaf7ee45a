//! The choice of a path, under the locks of the kernel.

use super::{
    Answer, At, BioWork, Call, Choice, Cpu, Effect, Incoming, IoData, LockKind, MapPath, Mapped,
    Mapping, Next, RequestQueue, TargetLock, Then, lock, rules,
};
use crate::dm::multipath::{Access, Ask, Multipath};
use crate::queue::Tio;
use crate::request::QueueId;
use crate::step::Cx;
use crate::time::Duration;

impl MapPath {
    /// Up to 4.6 one label under m->lock, later one for each question.
    pub(super) fn begin_choice(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        if cx.rules().device_mapper.target_lock == TargetLock::Whole {
            return self.locked(At::Choose);
        }
        let io = self.incoming(cx.q, cx.cpu);
        let choice = m.state.held(cx.cpu.id).target.choice(io);
        self.at = At::Choose;
        self.choice = Some(choice);
        wants(self.queue, m, choice)
    }

    pub(super) fn choose(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let io = self.incoming(cx.q, cx.cpu);
        let Some(mut choice) = self.choice else {
            m.fields.write(cx.cpu);
            for account in &m.accounts {
                account.read_among(1, cx.cpu);
            }
            let mapping = {
                let mut state = m.state.held(cx.cpu.id);
                let mapping = state.target.map(io);
                leave(self.queue, &mut state.target, cx.cpu);
                mapping
            };
            self.note(m, mapping, cx.cpu);
            m.lock.release(cx.cpu);
            return self.mapped(cx, mapping);
        };
        let (access, over) = answer(self.queue, m, &mut choice, io, cx.cpu);
        match over {
            Some(mapping) => {
                self.choice = None;
                self.note(m, mapping, cx.cpu);
            }
            None => self.choice = Some(choice),
        }
        release(m, access, cx.cpu);
        match over {
            Some(mapping) => self.mapped(cx, mapping),
            None => wants(self.queue, m, choice),
        }
    }

    fn incoming(&self, q: &RequestQueue, cpu: &Cpu) -> Incoming {
        let sectors = q.pool.held(cpu.id)[self.rq].sectors;
        Incoming {
            bytes: sectors.0 * 512,
            cpu: cpu.id,
            now: cpu.now(),
            bio: None,
        }
    }

    /// The result of the choice is recorded in the same label.
    fn note(&mut self, m: &Mapped, mapping: Mapping, cpu: &mut Cpu) {
        let mut state = m.state.held(cpu.id);
        let tio = &mut state.tios[self.rq.0 as usize];
        *tio = Tio::default();
        match mapping {
            Mapping::To(mapped) => {
                self.mapped = Some(mapped);
                tio.mapped = Some(mapped);
            }
            Mapping::Kill(status) => {
                tio.status = status;
                drop(state);
                // dm_kill_unmapped_request(): its end runs before the next label.
                cpu.outbox.push(Effect::Complete {
                    queue: self.queue,
                    rq: self.rq,
                });
            }
            Mapping::Requeue | Mapping::DelayRequeue => {}
            Mapping::Held => unreachable!("a request is not held by its target"),
        }
    }

    fn mapped(&mut self, cx: &mut Cx<'_>, mapping: Mapping) -> Next {
        match mapping {
            Mapping::To(_) => match rules(cx.q).io_data {
                IoData::Mempool => self.to(At::Data),
                IoData::InRequest => self.want_clone(cx.q.own_mapped(), cx.cpu),
            },
            Mapping::Requeue => self.without_clone(cx),
            Mapping::DelayRequeue => {
                self.then = Then::GiveBack;
                self.without_clone(cx)
            }
            Mapping::Kill(_) => {
                self.answer = Answer::Ok;
                self.to(At::Tell)
            }
            Mapping::Held => unreachable!("a request is not held by its target"),
        }
    }

    /// blk_mq_alloc_request() in the queue of the path.
    pub(super) fn want_clone(&mut self, m: &Mapped, cpu: &mut Cpu) -> Next {
        let mapped = self.mapped.expect("a path was chosen");
        let (queue, above) = (m.queue_of(mapped.path), self.rq);
        self.at = At::Clone;
        Next::call(cpu, Call::AllocateClone { queue, above })
    }
}

/// The locks that the next question of a choice needs.
pub(in crate::path) fn wants(queue: QueueId, m: &Mapped, choice: Choice) -> Next {
    let ask = choice.ask().expect("it is not over");
    match choice.access(ask) {
        Access::TargetLock => lock(queue, LockKind::Target, 0),
        Access::Selector(group) if m.locks(group) => {
            lock(queue, LockKind::Selector, u32::from(group.0))
        }
        Access::Word | Access::Selector(_) => Next::Step,
    }
}

/// One question of a choice, answered by the target. Its locks are still held: see [`release`].
/// Returns the result of the choice, too, if that was the last question.
pub(in crate::path) fn answer(
    queue: QueueId,
    m: &Mapped,
    choice: &mut Choice,
    io: Incoming,
    cpu: &mut Cpu,
) -> (Access, Option<Mapping>) {
    let ask = choice.ask().expect("it was not over");
    let access = choice.access(ask);
    touch(m, ask, access, cpu);
    let mut state = m.state.held(cpu.id);
    let answer = state.target.answer(ask, io);
    choice.answer(answer);
    if access == Access::TargetLock || ask == Ask::CallWorker {
        leave(queue, &mut state.target, cpu);
    }
    (access, choice.ask().err())
}

/// Releases the locks of an answer.
pub(in crate::path) fn release(m: &Mapped, access: Access, cpu: &mut Cpu) {
    match access {
        Access::TargetLock => m.lock.release(cpu),
        Access::Selector(group) if m.locks(group) => m.selectors[group.index()].release(cpu),
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
