//! What must hold of a mapped queue: each request has at most one clone, which is its own, and in
//! the end neither the device nor a selector counts anything.

use crate::world::{ABOVE, World};
use blkmq::env::{Count, Solo};
use blkmq::path::Frame;
use blkmq::queue::{Mapped, RequestQueue};
use blkmq::request::{Place, QueueId, RequestId};

/// In every state.
pub(super) fn check(world: &World) -> Option<String> {
    let q = world.mq.queue(ABOVE);
    let mapped = q.mapped.as_ref()?;
    mapped.with_state(|state| state.target.check());
    let mut below = mapped.below.iter();
    let stray = below.find_map(|&queue| strays(world, mapped, queue));
    let lost = stray.or_else(|| lost(world, q, mapped));
    lost.or_else(|| awake(world, q, mapped))
}

/// The device is suspended, and something is in flight or on its way there.
fn awake(world: &World, q: &RequestQueue<Solo>, mapped: &Mapped<Solo>) -> Option<String> {
    if !mapped.with_state(|state| state.target.is_suspended()) {
        return None;
    }
    if mapped.with_state(|state| state.tios.iter().any(|tio| tio.clone.is_some())) {
        return Some("the device is suspended, and there is a clone".to_owned());
    }
    let mut frames = world.contexts.iter().flat_map(|c| c.stack.frames());
    if frames.any(|frame| matches!(frame, Frame::Map(_))) {
        return Some("the device is suspended, and a request is being mapped".to_owned());
    }
    let started = q.with_pool(|pool| pool.iter().any(|(_, rq)| rq.place == Place::Device));
    started.then(|| "the device is suspended, and has a request".to_owned())
}

/// A clone with its device, or on its way there, is that of a request that knows it.
fn strays(world: &World, mapped: &Mapped<Solo>, queue: QueueId) -> Option<String> {
    let q = world.mq.queue(queue);
    let clones = q.clones.as_ref().expect("it is that of a path");
    q.with_pool(|pool| {
        let issued = |place| matches!(place, Place::Device | Place::Ctx | Place::Dispatch);
        let mut issued = pool.iter().filter(|(_, rq)| issued(rq.place));
        issued.find_map(|(clone, rq)| {
            let of = clones.original(clone);
            let tio = mapped.with_state(|state| state.tios[of.0 as usize]);
            let path = tio.mapped.map(|way| mapped.queue_of(way.path));
            let own = tio.clone == Some(clone) && path == Some(queue);
            let (clone, of, place) = (clone.0, of.0, rq.place);
            (!own).then(|| {
                format!("clone {clone} of queue {queue} in {place:?} is not that of request {of}")
            })
        })
    })
}

/// A request that the device has: it is in somebody's hands, has a clone, or is about to end.
fn lost(world: &World, q: &RequestQueue<Solo>, mapped: &Mapped<Solo>) -> Option<String> {
    let with_device =
        |(id, rq): (RequestId, &blkmq::request::Request)| (rq.place == Place::Device).then_some(id);
    let started: Vec<RequestId> = q.with_pool(|pool| pool.iter().filter_map(with_device).collect());
    started.into_iter().find_map(|rq| {
        let has_clone = mapped.with_state(|state| state.tios[rq.0 as usize].clone.is_some());
        let frames = world.contexts.iter().flat_map(|c| c.stack.frames());
        let beside = |frame: &&Frame| {
            let around = matches!(frame, Frame::Target(_) | Frame::Suspend(_) | Frame::Wait(_));
            !around
        };
        let mut own = frames.filter(beside);
        let in_hand = own.any(|frame| frame.queue() == ABOVE);
        let ends = world.outside.paths.to_end.contains(&rq);
        let lost = !has_clone && !in_hand && !ends;
        lost.then(|| {
            format!(
                "request {} is with the device, which has no clone of it",
                rq.0
            )
        })
    })
}

/// When all bios have ended.
pub(super) fn rest(world: &World) -> Option<String> {
    let mapped = world.mq.queue(ABOVE).mapped.as_ref()?;
    let (pending, holders) = (mapped.pending.peek(), mapped.holders.peek());
    if (pending, holders) != (0, 0) {
        return Some(format!(
            "the device counts {pending} in flight, {holders} holders"
        ));
    }
    mapped.with_state(|state| {
        if state.tios.iter().any(|tio| tio.clone.is_some()) {
            return Some("a clone is left though all bios have ended".to_owned());
        }
        let empty = state.target.accounts_are_empty();
        (!empty).then(|| "a selector counts what is not in flight".to_owned())
    })
}
