//! Invariants of every state. An oracle only reads the state.
//!
//! * exact accounting: the set bits of a tag map are the tags that requests hold, or that a path is
//!   about to put;
//! * one place: a request is in the container that its place names, once, and in no other;
//! * words that are read without a lock agree with what the lock guards;
//! * no stall: if nothing runs and nothing will, every submitted bio has ended;
//! * at the end nothing is left.

mod mapped;

use crate::config::Config;
use crate::report::Verdict;
use crate::world::{Choice, Context, Fixed, Phase, Role, Slot, World};
use blkmq::env::Count;
use blkmq::path::Label;
use blkmq::path::label::{Complete, Submit};
use blkmq::queue::RequestQueue;
use blkmq::request::{CpuId, HctxId, Place, QueueId, Request, RequestId, RequestPool};
use blkmq::sbitmap::{Sbitmap, WaitState};
use blkmq::tags::TagSet;
use blkmq::waiter::Waiter;

/// Checks the invariants of every state. The caller catches panics of the structures' own checks.
pub(crate) fn check(world: &World) -> Result<(), Verdict> {
    let broken = |text: String| Err(Verdict::Broken(text));
    for set in &world.mq.sets {
        let of_set = tags(world, set).or_else(|| lines(&set.driver));
        let of_set = of_set.or_else(|| countdowns(world, &set.driver));
        if let Some(text) = of_set {
            return broken(text);
        }
    }
    if let Some(text) = hctxs_in_line(world).or_else(|| tasks_in_line(world)) {
        return broken(text);
    }
    if let Some(text) = mapped::check(world) {
        return broken(text);
    }
    for q in &world.mq.queues {
        let wrong = words(q).or_else(|| lines(&q.sched));
        let wrong = wrong.or_else(|| lines(q.tokens.iter().map(|tokens| &tokens.map)));
        let wrong = wrong.or_else(|| hctxs_in_token_line(q));
        let plugged = plugged(world, q.id);
        let wrong = wrong.or_else(|| q.with_pool(|pool| places(world, q, pool, plugged)));
        let wrong = wrong.or_else(|| q.with_pool(|pool| ended_early(q, pool)));
        if let Some(text) = wrong {
            return broken(text);
        }
        q.with_pool(|pool| q.elevator.check(pool));
    }
    Ok(())
}

/// A request keeps its bio while its flush sequence is under way; the bio ends with the sequence.
fn ended_early(q: &RequestQueue, pool: &RequestPool) -> Option<String> {
    let in_sequence = |&(id, rq): &(RequestId, &Request)| {
        rq.place != Place::Free && rq.flush_seq && q.hctx(rq.hctx).flush_rq != id
    };
    let mut all = pool.iter().filter(in_sequence);
    let (id, _) = all.find(|(_, rq)| rq.bio_first.is_none())?;
    let text = "is in a flush sequence, and its bio has ended";
    Some(format!("request {} {text}", id.0))
}

/// Compares set bits with holders, for each map of a set.
fn tags(world: &World, set: &TagSet) -> Option<String> {
    let mut driver = vec![0_u64; set.driver.len()];
    for q in &world.mq.queues[set.queues.clone()] {
        if let Some(text) = q.with_pool(|pool| held_by_requests(world, q, pool, &mut driver)) {
            return Some(text);
        }
    }
    compare("driver", &set.driver, &driver)
}

/// Records a holder of a bit; an error if the bit already has one.
fn claim(held: &mut u64, kind: &str, bit: u32, by: &str) -> Option<String> {
    let mask = 1_u64 << bit;
    let twice = *held & mask != 0;
    *held |= mask;
    twice.then(|| format!("{kind} tag {bit} has two holders, the second is {by}"))
}

/// Tags of one queue: its own scheduler tags, and its part of the set's driver tags.
fn held_by_requests(
    world: &World,
    q: &RequestQueue,
    pool: &RequestPool,
    driver: &mut [u64],
) -> Option<String> {
    let set = world.mq.set_of(q.id);
    let mut sched = vec![0_u64; q.sched.len()];
    for (id, rq) in pool.iter().filter(|(_, rq)| rq.place != Place::Free) {
        let borrows = q.hctx(rq.hctx).flush_rq == id;
        let by = format!("request {}", id.0);
        if let Some(tag) = rq.tag
            && (!borrows || q.has_elevator())
        {
            let held = &mut driver[set.driver_index(rq.hctx)];
            if let Some(text) = claim(held, "driver", tag.0, &by) {
                return Some(text);
            }
        }
        if let Some(tag) = rq.internal_tag
            && !borrows
            && let Some(text) = claim(&mut sched[q.sched_index(rq.hctx)], "scheduler", tag.0, &by)
        {
            return Some(text);
        }
    }
    for context in &world.contexts {
        let frames = context.stack.frames().iter();
        let frames = frames.filter(|frame| frame.queue() == q.id);
        for hand in frames.filter_map(blkmq::path::Frame::owned_tags) {
            let by = context.name();
            let held = &mut driver[set.driver_index(hand.hctx)];
            let text = hand.driver.and_then(|bit| claim(held, "driver", bit, &by));
            let text = text.or_else(|| {
                let bit = hand.sched?;
                claim(&mut sched[q.sched_index(hand.hctx)], "scheduler", bit, &by)
            });
            if text.is_some() {
                return text;
            }
        }
    }
    compare("scheduler", &q.sched, &sched)
}

fn compare(kind: &str, maps: &[Sbitmap], held: &[u64]) -> Option<String> {
    for (map, &held) in maps.iter().zip(held) {
        let busy = (0..map.depth()).filter(|&bit| map.is_busy(bit));
        let busy = busy.fold(0_u64, |bits, bit| bits | 1 << bit);
        // Freed bits that are being merged back are in `word` only, until the lock is dropped.
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

/// Words that are read without a lock, checked while the lock is free.
fn words(q: &RequestQueue) -> Option<String> {
    for (number, hctx) in q.hctxs.iter().enumerate() {
        let pending = hctx.dispatch.inspect(|list| !list.is_empty());
        if hctx.dispatch.is_free() && pending != hctx.dispatch_pending.peek() {
            return Some(format!(
                "hctx {number}: the dispatch list and its word differ"
            ));
        }
        for (bit, &(cpu, kind)) in (0..).zip(&hctx.ctxs) {
            let ctx = &q.ctxs[usize::from(cpu.0)];
            let kind = usize::from(kind);
            let pending = ctx.lists.inspect(|lists| !lists[kind].is_empty());
            let (word, mask) = hctx.ctx_word(bit);
            let marked = word.peek() & mask != 0;
            if ctx.lists.is_free() && (pending != marked || pending != ctx.pending[kind].peek()) {
                return Some(format!("ctx {}: the list and its bits differ", cpu.0));
            }
        }
    }
    None
}

/// Task entries in wait queues of tag maps against the words that a waker reads, while the lock is
/// free.
fn lines<'a>(maps: impl IntoIterator<Item = &'a Sbitmap>) -> Option<String> {
    let mut all = maps.into_iter().flat_map(|map| &map.wait);
    let differs = all.any(|ws| {
        let anybody = ws.queue.inspect(|queue| !queue.entries.is_empty());
        ws.queue.is_free() && anybody != ws.active.peek()
    });
    differs.then(|| "a wait queue and its word differ".to_owned())
}

/// The countdown to a wake-up in each wait queue, checked while no path frees a tag.
fn countdowns(world: &World, maps: &[Sbitmap]) -> Option<String> {
    let frames = || world.contexts.iter().flat_map(|c| c.stack.frames());
    if frames().any(|frame| FREEING.contains(&frame.label())) {
        return None;
    }
    maps.iter().find_map(|map| {
        let batch = map.wake_batch.get() as i32;
        let mut counts = map.countdowns.iter().map(Count::peek);
        let wrong = counts.find(|count| !(1..=batch).contains(count))?;
        Some(format!(
            "no path frees a tag, and a wait queue counts down from {wrong} tags"
        ))
    })
}

/// Labels of a path that distributes wake-ups.
const FREEING: [Label; 4] = [
    Complete::PutDriver.label(),
    Complete::PutSched.label(),
    Complete::PutSequence.label(),
    Submit::WaitPassOn.label(),
];

/// Hctx entries in wait queues for driver tags against each hctx's word, while the lock is free.
fn hctxs_in_line(world: &World) -> Option<String> {
    world.mq.queues.iter().find_map(|q| {
        let driver = &world.mq.set_of(q.id).driver;
        let lines = || driver.iter().flat_map(|map| &map.wait);
        let words = q.hctxs.iter().map(|hctx| hctx.dispatch_wait.peek());
        hctxs_of_queue_in_line(q, "", &lines, words)
    })
}

/// Task entries in wait queues for tags against each task's word. A task that removes its entry
/// runs, so its word is checked then, too.
fn tasks_in_line(world: &World) -> Option<String> {
    let sched = world.mq.queues.iter().flat_map(|q| &q.sched);
    let driver = world.mq.sets.iter().flat_map(|set| &set.driver);
    let maps = driver.chain(sched);
    let lines: Vec<_> = maps.flat_map(|map| &map.wait).collect();
    if !lines.iter().all(|ws| ws.queue.is_free()) {
        return None;
    }
    let is_task = |context: &&Context| matches!(context.role, Role::Task(_));
    let mut tasks = world.contexts.iter().filter(is_task);
    tasks.find_map(|context| {
        let task = context.cpu.task;
        let entry = Waiter::Task(task);
        let stands = |ws: &&&WaitState| ws.queue.inspect(|q| q.entries.contains(&entry));
        let count = lines.iter().filter(stands).count();
        let mut frames = context.stack.frames().iter();
        let leaves = frames.any(|frame| frame.label() == Submit::WaitLeave.label());
        let sleeps = world.mq.task_waits(task).peek();
        let wrong = count != usize::from(sleeps || leaves) || sleeps && leaves;
        wrong.then(|| {
            format!(
                "task {} is in {count} wait queues, its word says otherwise",
                task.0
            )
        })
    })
}

/// Hctx entries in wait queues for the tokens of a queue's scheduler.
fn hctxs_in_token_line(q: &RequestQueue) -> Option<String> {
    q.tokens.iter().find_map(|tokens| {
        let words = tokens.waits.iter().map(|wait| wait.queued.peek());
        let whose = format!(" for a {}", tokens.info.name);
        hctxs_of_queue_in_line(q, &whose, &|| tokens.map.wait.iter(), words)
    })
}

/// Entries of a queue's hctxs in wait queues (`whose`, if not for tags) against each hctx's word.
fn hctxs_of_queue_in_line<'a, L: Iterator<Item = &'a WaitState>>(
    q: &RequestQueue,
    whose: &str,
    lines: &impl Fn() -> L,
    words: impl Iterator<Item = bool>,
) -> Option<String> {
    if !lines().all(|ws| ws.queue.is_free()) {
        return None;
    }
    (0..).zip(words).find_map(|(number, word)| {
        let entry = Waiter::Hctx {
            queue: q.id,
            hctx: HctxId(number),
            exclusive: false,
        };
        let queued = |ws: &WaitState| {
            ws.queue
                .inspect(|queue| queue.entries.iter().filter(|&&e| e == entry).count())
        };
        let count: usize = lines().map(queued).sum();
        (count != usize::from(word)).then(|| {
            format!("hctx {number} is in {count} wait queues{whose}, its word says otherwise")
        })
    })
}

/// Requests of a queue in the plugs of all tasks.
fn plugged(world: &World, queue: QueueId) -> Vec<(RequestId, Place)> {
    let contexts = world.contexts.iter();
    let all = contexts.flat_map(|context| context.cpu.plug.list.iter(&world.mq));
    let own = all.filter(|entry| entry.queue == queue);
    own.map(|entry| (entry.rq, Place::Plug)).collect()
}

/// Where requests are, against the place that each records; requests in plugs were found before.
fn places(
    world: &World,
    q: &RequestQueue,
    pool: &RequestPool,
    mut found: Vec<(RequestId, Place)>,
) -> Option<String> {
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
    if let Some(single) = &q.single {
        let state = single.state.held(CpuId(0));
        let list = state.driver_list.iter(pool);
        found.extend(list.map(|rq| (rq, Place::Dispatch)));
    }
    for list in q.elevator.beside() {
        found.extend(list.iter(pool).map(|rq| (rq, Place::Side)));
    }
    q.requeue.inspect(|lists| {
        for list in [&lists.requeue, &lists.flush] {
            found.extend(list.iter(pool).map(|rq| (rq, Place::Requeue)));
        }
    });
    for context in &world.contexts {
        let plug = &context.cpu.plug;
        if plug.cached_queue == q.id {
            found.extend(plug.cached.iter(pool).map(|rq| (rq, Place::PlugCache)));
        }
    }
    let device = world.outside.in_device.iter();
    let of_queue = device.filter(|slot| slot.queue == q.id);
    found.extend(of_queue.map(|slot| (slot.rq, Place::Device)));
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
        if let Some(text) = misplaced(world, q.id, (id, rq), there) {
            return Some(text);
        }
    }
    None
}

/// A request that was found in another place than it records.
fn misplaced(
    world: &World,
    queue: QueueId,
    (id, rq): (RequestId, &Request),
    there: Option<Place>,
) -> Option<String> {
    let agrees = match rq.place {
        // A path holds the request, which shows in no container; the scheduler checks its own.
        Place::Free | Place::Path | Place::Completing | Place::Elevator => there.is_none(),
        // A completer took the request from the device and has not run its first label.
        // A request of a mapped queue is with device-mapper; `mapped::check` finds it.
        Place::Device if world.mq.queue(queue).mapped.is_some() => there.is_none(),
        Place::Device => there == Some(Place::Device) || ends(world, Slot { queue, rq: id }),
        place => there == Some(place),
    };
    (!agrees).then(|| {
        let there = there.map_or("nowhere".to_owned(), |place| format!("in {place:?}"));
        format!("request {} says {:?} and is {there}", id.0, rq.place)
    })
}

/// A completer has taken this request and not run its first label.
fn ends(world: &World, slot: Slot) -> bool {
    let mut frames = world
        .contexts
        .iter()
        .flat_map(|context| context.stack.frames());
    frames.any(|frame| frame.queue() == slot.queue && frame.ends() == Some(slot.rq))
}

/// Invariants of a state at rest; `choices` are all choices that it has.
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
    if fixed.config.sleepers > 0 {
        return match choices.is_empty() {
            true => asleep(world, &fixed.config),
            false => Ok(()),
        };
    }
    // A submission to come does not excuse a stall of the bios already submitted.
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
    let tokens = || world.mq.queues.iter().flat_map(|q| &q.tokens);
    if tokens().any(|tokens| tokens.map.busy_count() > 0) {
        return broken("tokens are taken though all bios have ended");
    }
    if let Some(text) = mapped::rest(world) {
        return broken(&text);
    }
    match somebody_waits(world) {
        true => broken("a word still claims that a context waits for a tag"),
        false => Ok(()),
    }
}

/// A task is in a wait queue for tags, or a word claims that a waiter is.
fn somebody_waits(world: &World) -> bool {
    let sched = world.mq.queues.iter().flat_map(|q| &q.sched);
    let tokens = world.mq.queues.iter().flat_map(|q| &q.tokens);
    let tokens = tokens.map(|tokens| &tokens.map);
    let driver = world.mq.sets.iter().flat_map(|set| &set.driver);
    driver.chain(sched).chain(tokens).any(|map| {
        let (mut tasks, mut hctxs) = (0, 0);
        for ws in &map.wait {
            ws.queue.inspect(|queue| {
                for entry in &queue.entries {
                    match entry {
                        Waiter::Task(_) => tasks += 1,
                        // The entry may stay until the next tag is put, without a need for it.
                        Waiter::Hctx { .. } => hctxs += 1,
                    }
                }
            });
        }
        tasks > 0 || map.ws_active.peek() != hctxs
    })
}

/// Sleeping tasks: each batch of freed tags must have woken one.
fn asleep(world: &World, config: &Config) -> Result<(), Verdict> {
    let asleep = |context: &&Context| context.phase == Phase::Parked && !context.woken;
    let asleep = world.contexts.iter().filter(asleep).count() as u32;
    let maps = &world.mq.sets[0].driver;
    let batches: u32 = maps
        .iter()
        .map(|map| map.depth() / map.wake_batch.get())
        .sum();
    if asleep <= config.sleepers.saturating_sub(batches) {
        return Ok(());
    }
    let free: u32 = maps.iter().map(|map| map.depth() - map.busy_count()).sum();
    let text = format!("{asleep} sleep for a tag, {free} are free");
    Err(Verdict::Stall(text))
}

/// Lists the bios that will not end, and where they are.
fn stuck(world: &World) -> String {
    let mut parts = vec![format!(
        "{} of {} bios have ended",
        world.outside.ended, world.outside.started
    )];
    for q in &world.mq.queues {
        let of = match q.id {
            QueueId(0) => String::new(),
            id => format!(" of queue {id}"),
        };
        q.with_pool(|pool| {
            for (id, rq) in pool.iter().filter(|(_, rq)| rq.place != Place::Free) {
                parts.push(format!("request {}{of} in {:?}", id.0, rq.place));
            }
        });
        for (number, hctx) in q.hctxs.iter().enumerate() {
            if hctx.restart.peek() {
                parts.push(format!("RESTART of hctx {number}{of} set"));
            }
        }
    }
    for context in world.contexts.iter().filter(|context| !context.is_idle()) {
        parts.push(format!("{} {:?}", context.name(), context.phase));
    }
    parts.join(", ")
}
