//! A dispatch call of a scheduler with one lock and tokens: the policy selects the token that the
//! next request needs, and is informed of each map without one.
//!
//! The lock is held meanwhile, as Kyber holds khd->lock. Kernel: kyber_dispatch_cur_domain() in
//! block/kyber-iosched.c (6.1.192, 6.12.117).

use super::{DispatchPath, Locked, Scheduler};
use crate::call::{Call, Token};
use crate::elevator::info::SchedulerInfo;
use crate::elevator::token::TOKEN_MAPS_MAX;
use crate::env::{Answer, Cpu};
use crate::queue::RequestQueue;
use crate::request::{HctxId, RequestId};
use crate::step::{Next, Sub};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Tokens {
    /// The hctx whose entry is in the wait queue.
    hctx: HctxId,
    /// The map to get a token from.
    asked: Option<u8>,
    /// Maps without a token in this call, one bit each.
    refused: u8,
}

impl Tokens {
    /// For a run of this hctx, if the scheduler has tokens.
    pub(super) fn of(info: &SchedulerInfo, hctx: HctxId) -> Tokens {
        match info.tokens.is_empty() {
            true => Tokens::default(),
            false => Tokens {
                hctx,
                ..Tokens::default()
            },
        }
    }
}

impl<P: Scheduler + 'static> Locked<P> {
    /// Gets tokens until one is free or none is needed, and picks. Out of line, for schedulers
    /// without tokens.
    #[cold]
    #[inline(never)]
    pub(super) fn dispatch_by_token(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        let picked = match self.token(&mut path.tokens, q, cpu) {
            Sub::Wait(next) => return Sub::Wait(next),
            Sub::Done(None) => self.pick(&mut path.asked, q, cpu),
            Sub::Done(Some(token)) => {
                self.picks(&mut path.asked, q, cpu, |policy, pool, time, _| {
                    Some(policy.dispatch_with(pool, time, token))
                })
            }
        };
        self.policy.release(cpu);
        Sub::Done(picked)
    }

    /// Under the lock, which is kept: the next token to get.
    fn token(&self, tokens: &mut Tokens, q: &RequestQueue, cpu: &mut Cpu) -> Sub<Option<Token>> {
        if let Some(map) = tokens.asked.take() {
            match core::mem::take(&mut cpu.answer) {
                Answer::Token(number) => {
                    *tokens = Tokens::default();
                    return Sub::Done(Some(Token { map, number }));
                }
                _ => tokens.refused |= 1 << map,
            }
        }
        let pool = q.pool.held(cpu.id);
        let wanted = self.policy.held(cpu).wants_token(&pool, tokens.refused);
        drop(pool);
        let Some(map) = wanted else {
            *tokens = Tokens::default();
            return Sub::Done(None);
        };
        assert!(usize::from(map) < TOKEN_MAPS_MAX, "there is no map {map}");
        assert_eq!(tokens.refused >> map & 1, 0, "map {map} had none just now");
        tokens.asked = Some(map);
        let (queue, hctx) = (q.id, tokens.hctx);
        Sub::Wait(Next::call(cpu, Call::GetToken { queue, hctx, map }))
    }
}
