//! The specification's invariants, evaluated on the state of the paths.

use blkmq::rules::RestartRule;

use super::setting::{REQUESTS_MAX, Setting};
use super::world::{At, Hctx, Life, World};
use crate::spec::owner;

/// An invariant by the specification's name.
type Invariant = (&'static str, fn(&World, &Setting) -> bool);

pub(super) const ALL: [Invariant; 4] = [
    ("NoStall", no_stall),
    ("TagsExact", tags_exact),
    ("CountersExact", counters_exact),
    ("NothingLost", nothing_lost),
];

/// No request waits when nothing runs and nothing will.
fn no_stall(world: &World, _setting: &Setting) -> bool {
    let waits = |r: &super::world::Request| r.life == Life::Live;
    !world.is_quiet() || !world.side.requests.iter().any(waits)
}

/// A tag is free or its request is in the device; exactly the requests in the device count against
/// an hctx's fair share.
fn tags_exact(world: &World, setting: &Setting) -> bool {
    let all = (0..setting.all_hctxs()).map(Hctx);
    let counted = all.map(|hctx| {
        let held = world.side.requests.iter();
        let held = held.filter(|r| r.life == Life::Device && r.home == hctx);
        let hctx = world
            .mq
            .queue(setting.queue_of(hctx))
            .hctx(setting.index_of(hctx));
        hctx.nr_active.peek() as usize == held.count()
    });
    if !counted.into_iter().all(|exact| exact) {
        return false;
    }
    let mut maps = (0u8..).zip(&world.mq.sets[0].driver);
    maps.all(|(number, map)| {
        let requests = world.side.requests.iter();
        let of_map = requests
            .filter(|r| r.life == Life::Device && setting.index_of(r.home).0 == u16::from(number));
        map.busy_count() as usize == of_map.count()
    })
}

/// Counters equal the number of marked hctxs, except while a mark is half set.
fn counters_exact(world: &World, setting: &Setting) -> bool {
    let all = || (0..setting.all_hctxs()).map(Hctx);
    let half = |h: Hctx| (0..setting.contexts).any(|c| world.at(setting, h, c) == At::Count);
    if !setting.restart.rule.counts() || all().any(half) {
        return true;
    }
    let marked = |h: Hctx| {
        let q = world.mq.queue(setting.queue_of(h));
        q.hctx(setting.index_of(h)).restart.peek()
    };
    if setting.restart.rule == RestartRule::MapCount {
        let mut maps = (0u16..).zip(&world.mq.sets[0].restarts);
        return maps.all(|(map, count)| {
            let here = all().filter(|&h| setting.index_of(h).0 == map && marked(h));
            count.peek() as usize == here.count()
        });
    }
    let flag = setting.restart.rule == RestartRule::SameQueue;
    world.mq.queues.iter().all(|q| {
        let here = all().filter(|&h| setting.queue_of(h) == q.id && marked(h));
        let count = here.count();
        let expected = if flag { count.min(1) } else { count };
        q.restarts.peek() as usize == expected
    })
}

/// A live request is in exactly one list, and lists hold nothing else.
fn nothing_lost(world: &World, setting: &Setting) -> bool {
    let mut held = [0_u8; REQUESTS_MAX];
    for h in (0..setting.all_hctxs()).map(Hctx) {
        let q = world.mq.queue(setting.queue_of(h));
        let dispatch = &q.hctx(setting.index_of(h)).dispatch;
        q.with_pool(|pool| {
            let owner = |rq| usize::from(owner(pool, rq));
            dispatch.inspect(|list| list.iter(pool).for_each(|rq| held[owner(rq)] += 1));
            for context in 0..setting.contexts {
                if let Some(running) = world.running(setting, h, context) {
                    let list = running.path.owned().list;
                    list.iter(pool).for_each(|rq| held[owner(rq)] += 1);
                }
            }
        });
    }
    for q in &world.mq.queues {
        q.with_pool(|pool| {
            for (id, rq) in pool.iter() {
                if rq.place == blkmq::request::Place::Elevator {
                    held[usize::from(owner(pool, id))] += 1;
                }
            }
        });
    }
    (0..setting.requests).all(|request| {
        let live = world.life(request) == Life::Live;
        held[usize::from(request)] == u8::from(live)
    })
}
