//! A dispatch call: the policy picks under the scheduler's lock.
//!
//! Kernel: dd_dispatch_request() in block/mq-deadline.c and its counterparts in other schedulers
//! (6.1.192, 6.12.117); with tokens kyber_dispatch_cur_domain() in block/kyber-iosched.c.

use super::{Locked, Scheduler, lock, set_timer};
use crate::call::{Call, Token};
use crate::elevator::scheduler::{CalledOn, DispatchTime};
use crate::elevator::token::TOKEN_MAPS_MAX;
use crate::env::Answer;
use crate::request::{HctxId, Place, RequestId};
use crate::step::Cx;
use crate::time::Jiffies;
use steps::steps;

/// dd_dispatch_request() of a scheduler with one lock: its caller names the label.
#[steps]
pub(crate) fn dispatch_request(cx: &mut Cx<'_>, hctx: HctxId) -> Option<RequestId> {
    // dd_dispatch_request() reads the clock before the lock.
    let entered: Jiffies = cx.jiffies();
    lock!(_, lock(cx));
    let mut token: Option<Token> = None;
    if cx.q.elevator.has_tokens() {
        token = sub!(get_token(hctx));
    }
    let picked = cx.q.elevator.pick(cx, hctx, entered, token);
    cx.q.elevator.unlock(cx.cpu);
    picked
}

/// The token that the next request needs, if it needs one: the policy selects it, and is informed
/// of each map without one. The lock is held meanwhile, as Kyber holds khd->lock.
#[steps]
fn get_token(cx: &mut Cx<'_>, hctx: HctxId) -> Option<Token> {
    let mut refused: u8 = 0;
    while let Some(wanted) = cx.q.elevator.wants_token(refused, cx) {
        let map: u8 = wanted;
        assert!(usize::from(map) < TOKEN_MAPS_MAX, "there is no map {}", map);
        assert_eq!(refused >> map & 1, 0, "map {} had none just now", map);
        let queue = cx.q.id;
        if let Answer::Token(number) = ask!(_, cx.call(Call::GetToken { queue, hctx, map })) {
            return Some(Token { map, number });
        }
        refused |= 1 << map;
    }
    None
}

impl<P: Scheduler + 'static> Locked<P> {
    /// Under the lock, which is kept: the next request.
    pub(super) fn dispatch_section(
        &self,
        cx: &mut Cx<'_>,
        hctx: HctxId,
        entered: Jiffies,
        token: Option<Token>,
    ) -> Option<RequestId> {
        let (q, cpu) = (cx.q, &mut *cx.cpu);
        let now = self.now_of_task(q, cpu);
        let time = DispatchTime {
            entered,
            locked: now.tick,
            time: now.time,
            kept: now.kept,
        };
        let completed = core::array::from_fn(|level| self.completed[level].read(cpu) as u32);
        let mut pool = q.pool.held(cpu.id);
        let on = CalledOn {
            hctx,
            ..CalledOn::by(cpu.id)
        };
        let mut policy = self.policy.held(cpu);
        policy.called_on(on);
        let picked = match token {
            None => policy.dispatch(&mut pool, time, completed),
            Some(token) => Some(policy.dispatch_with(&mut pool, time, token)),
        };
        let (more, charge) = (policy.has_work(), policy.take_charge());
        let ask = policy.take_timer();
        drop(policy);
        if let Some(rq) = picked {
            assert_eq!(pool[rq].place, Place::Path, "{rq:?} was not let go");
        }
        drop(pool);
        self.emit_log(q, cpu);
        self.read(q, cpu);
        self.charge(charge, cpu);
        if !more && self.work.peek() {
            self.work.mirror(cpu, false);
        }
        set_timer(ask, q, cpu);
        picked
    }
}

#[cfg(test)]
mod tests;
