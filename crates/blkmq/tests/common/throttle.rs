//! A scheduler whose requests need tokens: reads and writes in order of arrival, with a limit in
//! flight for each direction. For the simulator, the explorer and loom alike.

use std::hash::{Hash, Hasher};

use blkmq::elevator::{
    After, Custom, CustomScheduler, DispatchTime, ElevatorLock, ElevatorTokens, Hooks, InsertAt,
    Insertion, LEVELS, Now, Scheduler, SchedulerInfo, Token,
};
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{Op, Place, Request, RequestId, RequestPool};

const LOCKS: &[ElevatorLock] = &[ElevatorLock::irq_save("throttle->lock")];

/// Properties of a throttle with so many tokens.
pub(crate) const fn info(tokens: &'static [ElevatorTokens]) -> SchedulerInfo {
    SchedulerInfo {
        hooks: Hooks {
            finished: true,
            requeued: true,
            ..Hooks::NONE
        },
        tokens,
        ..SchedulerInfo::plain("throttle", LOCKS)
    }
}

/// So many tokens for reads and for writes.
pub(crate) const fn tokens(reads: u32, writes: u32) -> [ElevatorTokens; 2] {
    [
        ElevatorTokens {
            name: "read token",
            group: "reads",
            depth: reads,
            given_twice: false,
        },
        ElevatorTokens {
            name: "write token",
            group: "writes",
            depth: writes,
            given_twice: false,
        },
    ]
}

#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    info: &'static SchedulerInfo,
    /// A defect: a request that ends keeps its token.
    leaks: bool,
    /// Reads and writes that wait.
    queued: [QueueList; 2],
}

impl Throttle {
    pub(crate) fn custom(info: &'static SchedulerInfo, leaks: bool) -> Custom {
        Custom::new(Throttle {
            info,
            leaks,
            queued: [QueueList::new(); 2],
        })
    }

    /// The token of a request; none before it is dispatched.
    fn take_token(rq: &mut Request) -> Option<Token> {
        let number = core::mem::take(&mut rq.elv_priv[1]).checked_sub(1)?;
        let map = direction(rq) as u8;
        Some(Token { map, number })
    }
}

fn direction(rq: &Request) -> usize {
    usize::from(rq.op != Op::Read)
}

impl Scheduler for Throttle {
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        _now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        assert_eq!(pool[rq].elv_priv[1], 0, "what is queued has no token");
        pool[rq].place = Place::Elevator;
        let queued = &mut self.queued[direction(&pool[rq])];
        match at {
            InsertAt::Head => queued.push_front(pool, rq),
            InsertAt::Sorted => queued.push_back(pool, rq),
        }
        Insertion::Inserted
    }

    fn wants_token(&mut self, _pool: &RequestPool, refused: u8) -> Option<u8> {
        let mut all = self.queued.iter().zip(0..);
        all.find(|(queued, map)| !queued.is_empty() && refused >> map & 1 == 0)
            .map(|(_, map)| map)
    }

    fn dispatch_with(
        &mut self,
        pool: &mut RequestPool,
        _now: DispatchTime,
        token: Token,
    ) -> RequestId {
        let rq = self.queued[usize::from(token.map)].first();
        let rq = rq.expect("there was one when the token was asked for");
        self.force_dispatch(pool, rq);
        pool[rq].elv_priv[1] = token.number + 1;
        rq
    }

    /// Without a token no request is dispatched.
    fn dispatch(
        &mut self,
        _pool: &mut RequestPool,
        _now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        None
    }

    fn has_work(&self) -> bool {
        self.queued.iter().any(|queued| !queued.is_empty())
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        let of = direction(&pool[rq]);
        self.queued[of].remove(pool, rq);
        pool[rq].place = Place::Path;
    }

    fn finished(&mut self, pool: &mut RequestPool, rq: RequestId, _now: Now) -> After {
        match Throttle::take_token(&mut pool[rq]) {
            Some(token) if !self.leaks => After::PutToken(token),
            _ => After::Nothing,
        }
    }

    fn requeued(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.finished(pool, rq, now)
    }
}

impl CustomScheduler for Throttle {
    fn info(&self) -> &'static SchedulerInfo {
        self.info
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.queued.hash(&mut state);
    }
}
