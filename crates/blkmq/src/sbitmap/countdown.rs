//! Waking before v6.2: a free counts down the next wait queue that has waiters, which is woken at
//! zero. In the successive forms of the mainline, defects included.
//!
//! Kernel: sbq_wake_ptr(), __sbq_wake_up() of lib/sbitmap.c, v4.8 to v6.1, at the commits that
//! [`Countdown`] names; the forms were read from those commits, no such tree was run.

use super::Sbitmap;
use super::put::{At, Put, PutStep, Woken};
use crate::env::Cpu;
use crate::rules::Countdown;
use crate::waiter::Waiter;

impl Put {
    /// A queue with waiters was found.
    pub(super) fn found(&mut self, form: Countdown) -> PutStep {
        match form {
            Countdown::PassesOver => self.to(At::Above),
            _ => self.point(form),
        }
    }

    fn point(&mut self, form: Countdown) -> PutStep {
        if self.looked > 0 {
            return self.to(At::Point);
        }
        self.down(form)
    }

    fn down(&mut self, form: Countdown) -> PutStep {
        self.to(match form {
            Countdown::Spins | Countdown::PassesOver => At::Read,
            _ => At::Down,
        })
    }

    /// Continues with the choice of a queue.
    fn again(&mut self) -> PutStep {
        (self.promised, self.looked) = (0, 0);
        self.to(At::Index)
    }

    pub(super) fn count_down(
        &mut self,
        at: At,
        form: Countdown,
        map: &Sbitmap,
        cpu: &mut Cpu,
        out: impl FnMut(&mut Cpu, Waiter) -> Woken,
    ) -> PutStep {
        let count = &map.countdowns[self.queue as usize];
        let batch = map.wake_batch.get() as i32;
        match at {
            At::Above => match count.read(cpu) {
                0 => self.pass_over(map),
                _ => self.point(form),
            },
            At::Point => {
                map.wake_index.write(cpu, self.queue as i32);
                self.looked = 0;
                self.down(form)
            }
            At::Down => {
                self.promised = count.add_return(cpu, -1);
                match form {
                    Countdown::LeavesZero if self.promised < 0 => self.again(),
                    Countdown::LeavesZero => self.to(At::Left),
                    _ if self.promised > 0 => PutStep::Done,
                    _ => self.to(At::Reset),
                }
            }
            At::Left if !map.wait[self.queue as usize].active.test(cpu) => self.again(),
            At::Left => self.taken(),
            At::Read => {
                self.promised = count.read(cpu);
                match self.promised {
                    0 => self.again(),
                    _ => self.to(At::Take),
                }
            }
            At::Take if count.compare_exchange(cpu, self.promised, self.promised - 1) => {
                self.promised -= 1;
                self.taken()
            }
            At::Take => self.to(At::Read),
            At::Reset => {
                let next = match form {
                    Countdown::Adds => self.promised + batch,
                    _ => batch,
                };
                let won = count.compare_exchange(cpu, self.promised, next);
                match won || form == Countdown::Adds {
                    true => self.to(At::Ahead),
                    false => self.again(),
                }
            }
            At::WakeCounted | At::Ahead | At::Advance | At::Refill => {
                self.move_on(at, form, map, cpu, out)
            }
            at => unreachable!("{at:?} counts nothing down"),
        }
    }

    /// Waking, and the updates before or after it.
    fn move_on(
        &mut self,
        at: At,
        form: Countdown,
        map: &Sbitmap,
        cpu: &mut Cpu,
        out: impl FnMut(&mut Cpu, Waiter) -> Woken,
    ) -> PutStep {
        match at {
            At::WakeCounted => {
                if self.wake_queue(map, cpu, out).is_none() {
                    return PutStep::Step;
                }
                match resets_first(form) {
                    true => PutStep::Done,
                    false => self.to(At::Ahead),
                }
            }
            At::Ahead => {
                self.looked = map.wake_index.read(cpu) as u32;
                self.to(At::Advance)
            }
            At::Advance => {
                let (old, queues) = (self.looked, map.wait.len() as u32);
                let next = (old + 1) % queues;
                map.wake_index
                    .compare_exchange(cpu, old as i32, next as i32);
                self.looked = 0;
                match resets_first(form) {
                    true => self.wake_up(),
                    false => self.to(At::Refill),
                }
            }
            _ => {
                let batch = map.wake_batch.get() as i32;
                map.countdowns[self.queue as usize].write(cpu, batch);
                PutStep::Done
            }
        }
    }

    /// The queue was counted down: at zero it is woken.
    fn taken(&mut self) -> PutStep {
        match self.promised {
            0 => self.wake_up(),
            _ => PutStep::Done,
        }
    }

    fn wake_up(&mut self) -> PutStep {
        self.promised = 0;
        self.to(At::WakeCounted);
        PutStep::Lock(self.queue)
    }

    fn pass_over(&mut self, map: &Sbitmap) -> PutStep {
        let queues = map.wait.len() as u32;
        self.looked += 1;
        self.queue = (self.queue + 1) % queues;
        match self.looked < queues {
            true => self.to(At::Peek),
            false => PutStep::Done,
        }
    }
}

/// The count is reset before the queue is woken, not after it.
fn resets_first(form: Countdown) -> bool {
    matches!(form, Countdown::Adds | Countdown::Resets)
}

#[cfg(test)]
mod tests;
