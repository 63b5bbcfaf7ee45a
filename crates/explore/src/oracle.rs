//! What must hold in every state. An oracle watches and never helps.
//!
//! * exact accounting: the set bits of a tag map are the tags that requests hold, or that a path
//!   holds on the way back;
//! * one place: a request is in the container that its place names, once, and in no other;
//! * what is read without a lock agrees with what the lock guards;
//! * no stall: if nothing runs and nothing will, every bio that was submitted has ended;
//! * at the end nothing is left.

use crate::report::Verdict;
use crate::world::{Choice, Fixed, Phase, Role, World};
use blkmq::elevator::Scheduler;
use blkmq::env::{Bit, Count, Lock, Solo, Word};
use blkmq::queue::RequestQueue;
use blkmq::request::{HctxId, Place, Request, RequestId, RequestPool};
use blkmq::sbitmap::{Sbitmap, WaitState};
use blkmq::tags::Waiter;

/// Invariants of every state. Panics of the structures' own checks are left to the caller.
pub(crate) fn check(world: &World) -> Result<(), Verdict> {
    let broken = |text: String| Err(Verdict::Broken(text));
    let q = world.mq.queue(0);
    if let Some(text) = q.with_pool(|pool| {
        tags(world, pool)
            .or_else(|| words(q))
            .or_else(|| lines(&world.mq.sets[0].driver))
            .or_else(|| lines(&q.sched))
            .or_else(|| hctxs_in_line(world))
            .or_else(|| places(world, pool))
    }) {
        return broken(text);
    }
    if q.elevator.is_free() {
        q.with_pool(|pool| q.elevator.inspect(|elevator| elevator.check(pool)));
    }
    Ok(())
}

/// Set bits against holders, for each map.
fn tags(world: &World, pool: &RequestPool) -> Option<String> {
    let mut driver = vec![0_u64; world.mq.sets[0].driver.len()];
    let q = world.mq.queue(0);
    let mut sched = vec![0_u64; q.sched.len()];
    let mut claim = |kind: &str, map: usize, bit: u32, by: &str| {
        let held = match kind {
            "driver" => &mut driver[map],
            _ => &mut sched[map],
        };
        let mask = 1_u64 << bit;
        let twice = *held & mask != 0;
        *held |= mask;
        twice.then(|| format!("{kind} tag {bit} has two holders, the second is {by}"))
    };
    for (id, rq) in pool.iter().filter(|(_, rq)| rq.place != Place::Free) {
        let borrows = q.hctx(rq.hctx).flush_rq == id;
        let by = format!("request {}", id.0);
        if let Some(tag) = rq.tag
            && (!borrows || q.has_elevator())
        {
            let map = world.mq.sets[0].driver_index(rq.hctx);
            if let Some(text) = claim("driver", map, tag.0, &by) {
                return Some(text);
            }
        }
        if let Some(tag) = rq.internal_tag
            && !borrows
            && let Some(text) = claim("scheduler", q.sched_index(rq.hctx), tag.0, &by)
        {
            return Some(text);
        }
    }
    for context in &world.contexts {
        for hand in context
            .stack
            .iter()
            .filter_map(blkmq::path::Frame::tags_in_hand)
        {
            let by = context.name();
            let map = world.mq.sets[0].driver_index(hand.hctx);
            if let Some(text) = hand.driver.and_then(|bit| claim("driver", map, bit, &by)) {
                return Some(text);
            }
            let bit = hand.sched;
            if let Some(bit) = bit
                && let Some(text) = claim("scheduler", q.sched_index(hand.hctx), bit, &by)
            {
                return Some(text);
            }
        }
    }
    compare("driver", &world.mq.sets[0].driver, &driver)
        .or_else(|| compare("scheduler", &q.sched, &sched))
}

fn compare(kind: &str, maps: &[Sbitmap<Solo>], held: &[u64]) -> Option<String> {
    for (map, &held) in maps.iter().zip(held) {
        let busy = (0..map.depth).filter(|&bit| map.is_busy(bit));
        let busy = busy.fold(0_u64, |bits, bit| bits | 1 << bit);
        // Freed bits that are being merged back stand in `word` only, until the lock is dropped.
        let merging = !map.swap_lock || map.words.iter().any(|word| !word.swap.is_free());
        let agree = if merging {
            held & !busy == 0
        } else {
            held == busy
        };
        if !agree {
            let text = format!("{kind} tags {busy:#b} are taken, but {held:#b} have holders");
            return Some(text);
        }
    }
    None
}

/// Words that are read without a lock, while nobody holds the lock.
fn words(q: &RequestQueue<Solo>) -> Option<String> {
    for (number, hctx) in q.hctxs.iter().enumerate() {
        let pending = hctx.dispatch.inspect(|list| !list.is_empty());
        if hctx.dispatch.is_free() && pending != hctx.dispatch_pending.peek() {
            return Some(format!(
                "hctx {number}: the dispatch list and its word differ"
            ));
        }
        for (bit, &(cpu, kind)) in hctx.ctxs.iter().enumerate() {
            let ctx = &q.ctxs[usize::from(cpu.0)];
            let kind = usize::from(kind);
            let pending = ctx.lists.inspect(|lists| !lists[kind].is_empty());
            let marked = hctx.ctx_map[bit / 64].peek() >> (bit % 64) & 1 != 0;
            if ctx.lists.is_free() && (pending != marked || pending != ctx.pending[kind].peek()) {
                return Some(format!("ctx {}: the list and its bits differ", cpu.0));
            }
        }
    }
    if let Some(text) = side_words(q) {
        return Some(text);
    }
    let work = q.elevator.inspect(Scheduler::has_work);
    let differs = q.elevator.is_free() && work != q.elevator_work.peek();
    differs.then(|| "the scheduler and the word of has_work differ".to_owned())
}

/// The same for buckets and side lists.
fn side_words(q: &RequestQueue<Solo>) -> Option<String> {
    for (number, bucket) in q.dd.buckets.iter().enumerate() {
        let pending = bucket.list.inspect(|list| !list.is_empty());
        if bucket.list.is_free() && pending != bucket.pending.peek() {
            return Some(format!("bucket {number}: the list and its word differ"));
        }
    }
    let pending =
        q.dd.inserted
            .inspect(|lists| !lists.at_head.is_empty() || !lists.at_tail.is_empty());
    let differs = q.dd.inserted.is_free() && pending != q.dd.inserted_pending.peek();
    differs.then(|| "the side lists and their word differ".to_owned())
}

/// Lines of tasks at tag maps against what a waker reads of them, while nobody holds the lock.
fn lines(maps: &[Sbitmap<Solo>]) -> Option<String> {
    let mut all = maps.iter().flat_map(|map| &map.wait);
    let differs = all.any(|ws| {
        let anybody = ws.queue.inspect(|queue| !queue.entries.is_empty());
        ws.queue.is_free() && anybody != ws.active.peek()
    });
    differs.then(|| "a wait queue and its word differ".to_owned())
}

/// Hctxs in the lines of driver tags against the word of each, while nobody holds a line's lock.
fn hctxs_in_line(world: &World) -> Option<String> {
    let lines = || world.mq.sets[0].driver.iter().flat_map(|map| &map.wait);
    if !lines().all(|ws| ws.queue.is_free()) {
        return None;
    }
    let mut hctxs = (0..).zip(&world.mq.queue(0).hctxs);
    hctxs.find_map(|(number, hctx)| {
        let entry = Waiter::Hctx {
            queue: 0,
            hctx: HctxId(number),
            exclusive: false,
        };
        let in_line = |ws: &WaitState<Solo>| {
            ws.queue
                .inspect(|queue| queue.entries.iter().filter(|&&e| e == entry).count())
        };
        let count: usize = lines().map(in_line).sum();
        (count != usize::from(hctx.dispatch_wait.peek()))
            .then(|| format!("hctx {number} stands in {count} lines, its word says otherwise"))
    })
}

/// Where requests are, against where they say they are.
fn places(world: &World, pool: &RequestPool) -> Option<String> {
    let q = world.mq.queue(0);
    let mut found: Vec<(RequestId, Place)> = Vec::new();
    for hctx in &q.hctxs {
        hctx.dispatch.inspect(|list| {
            found.extend(list.iter(pool).map(|rq| (rq, Place::Dispatch)));
        });
        hctx.flush.inspect(|fq| {
            for list in &fq.pending {
                found.extend(list.iter(pool).map(|rq| (rq, Place::Flush)));
            }
        });
    }
    for ctx in &q.ctxs {
        ctx.lists.inspect(|lists| {
            for list in lists {
                found.extend(list.iter(pool).map(|rq| (rq, Place::Ctx)));
            }
        });
    }
    for bucket in &q.dd.buckets {
        bucket.list.inspect(|list| {
            found.extend(list.iter(pool).map(|rq| (rq, Place::Side)));
        });
    }
    q.dd.inserted.inspect(|lists| {
        for list in [&lists.at_head, &lists.at_tail] {
            found.extend(list.iter(pool).map(|rq| (rq, Place::Side)));
        }
    });
    q.requeue.inspect(|lists| {
        for list in [&lists.requeue, &lists.flush] {
            found.extend(list.iter(pool).map(|rq| (rq, Place::Requeue)));
        }
    });
    for context in &world.contexts {
        let plug = &context.cpu.plug;
        found.extend(plug.list.iter(pool).map(|rq| (rq, Place::Plug)));
        found.extend(plug.cached.iter(pool).map(|rq| (rq, Place::PlugCache)));
    }
    let device = &world.outside.in_device;
    found.extend(device.iter().map(|&rq| (rq, Place::Device)));
    found.sort_unstable_by_key(|&(rq, _)| rq);
    for pair in found.windows(2) {
        if pair[0].0 == pair[1].0 {
            return Some(format!(
                "request {} is in {:?} and in {:?}",
                pair[0].0.0, pair[0].1, pair[1].1
            ));
        }
    }
    for (id, rq) in pool.iter() {
        let there = found
            .iter()
            .find(|(other, _)| *other == id)
            .map(|&(_, place)| place);
        if let Some(text) = misplaced(world, id, rq, there) {
            return Some(text);
        }
    }
    None
}

/// A request whose place is not where it was found.
fn misplaced(world: &World, id: RequestId, rq: &Request, there: Option<Place>) -> Option<String> {
    let agrees = match rq.place {
        // In somebody's hands, which shows nowhere else; the scheduler checks its own.
        Place::Free | Place::Path | Place::Completing | Place::Elevator => there.is_none(),
        // Taken from the device by a completer that has not done its first label.
        Place::Device => there == Some(Place::Device) || ends(world, id),
        place => there == Some(place),
    };
    (!agrees).then(|| {
        let there = there.map_or("nowhere".to_owned(), |place| format!("in {place:?}"));
        format!("request {} says {:?} and is {there}", id.0, rq.place)
    })
}

/// A completer has taken this request and not done its first label.
fn ends(world: &World, id: RequestId) -> bool {
    let mut frames = world.contexts.iter().flat_map(|context| &context.stack);
    frames.any(|frame| frame.ends() == Some(id))
}

/// Invariants of a state at rest: `choices` is all that can happen in it.
pub(crate) fn rest(world: &World, fixed: &Fixed, choices: &[Choice]) -> Result<(), Verdict> {
    let overtakes = world.outside.driver.overtakes;
    if fixed
        .config
        .overtakes_max
        .is_some_and(|most| overtakes > most)
    {
        let text = format!("{overtakes} requests have overtaken a passthrough request");
        return Err(Verdict::Broken(text));
    }
    // A submission that may come is no hope for those that came.
    let submits = |choice: &Choice| {
        let context = &world.contexts[usize::from(choice.context)];
        matches!(context.role, Role::Task(_)) && context.is_idle() && !context.plug_to_flush()
    };
    if !choices.iter().all(submits) {
        return Ok(());
    }
    let outside = &world.outside;
    if outside.ended < outside.started {
        return Err(Verdict::Stall(stuck(world)));
    }
    if !choices.is_empty() && !fixed.draining {
        return Ok(());
    }
    let broken = |text: &str| Err(Verdict::Broken(text.to_owned()));
    if outside.ended > outside.started {
        return broken("more bios ended than were submitted");
    }
    if world.live() > 0 {
        return broken("requests are left though all bios have ended");
    }
    if world
        .contexts
        .iter()
        .any(|context| context.phase != Phase::Idle)
    {
        return broken("a context is left though all bios have ended");
    }
    let q = world.mq.queue(0);
    for map in world.mq.sets[0].driver.iter().chain(&q.sched) {
        let (mut tasks, mut hctxs) = (0, 0);
        for ws in &map.wait {
            ws.queue.inspect(|queue| {
                for entry in &queue.entries {
                    match entry {
                        Waiter::Task(_) => tasks += 1,
                        // It may stand there until the next tag comes back, and ask for none.
                        Waiter::Hctx { .. } => hctxs += 1,
                    }
                }
            });
        }
        if tasks > 0 || map.ws_active.peek() != hctxs {
            return broken("somebody is still said to wait for a tag");
        }
    }
    Ok(())
}

/// Where the bios are that will not end.
fn stuck(world: &World) -> String {
    let q = world.mq.queue(0);
    let mut parts = vec![format!(
        "{} of {} bios have ended",
        world.outside.ended, world.outside.started
    )];
    q.with_pool(|pool| {
        for (id, rq) in pool.iter().filter(|(_, rq)| rq.place != Place::Free) {
            parts.push(format!("request {} in {:?}", id.0, rq.place));
        }
    });
    for (number, hctx) in q.hctxs.iter().enumerate() {
        if hctx.restart.peek() {
            parts.push(format!("RESTART of hctx {number} set"));
        }
    }
    for context in world.contexts.iter().filter(|context| !context.is_idle()) {
        parts.push(format!("{} {:?}", context.name(), context.phase));
    }
    parts.join(", ")
}
