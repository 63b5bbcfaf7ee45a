//! Invariants of a mapped queue: a request has at most one clone and knows it; at the end neither
//! the device nor a path selector counts anything.

use std::collections::VecDeque;

use crate::world::{ABOVE, World};
use blkmq::path::Frame;
use blkmq::queue::{BioTio, Mapped, RequestQueue};
use blkmq::request::{Place, QueueId, RequestId};

pub(super) fn check(world: &World) -> Option<String> {
    let q = world.mq.queue(ABOVE);
    let mapped = q.mapped.as_ref()?;
    mapped.with_state(|state| state.target.check());
    let mut below = mapped.below.iter();
    let stray = below.find_map(|&queue| strays(world, mapped, queue));
    let lost = stray.or_else(|| lost(world, q, mapped));
    let lost = lost.or_else(|| lost_bios(world, mapped));
    lost.or_else(|| awake(world, q, mapped))
}

/// A suspended device has something in flight, or on its way there.
fn awake(world: &World, q: &RequestQueue, mapped: &Mapped) -> Option<String> {
    if !mapped.with_state(|state| state.target.is_suspended()) {
        return None;
    }
    if mapped.with_state(|state| state.tios.iter().any(|tio| tio.clone.is_some())) {
        return Some("the device is suspended, and there is a clone".to_owned());
    }
    if mapped.with_state(|state| state.bios.iter().any(|tio| tio.clone.is_some())) {
        return Some("the device is suspended, and there is a clone of a bio".to_owned());
    }
    let mut frames = world.contexts.iter().flat_map(|c| c.stack.frames());
    let maps = |frame: &Frame| match frame {
        Frame::Map(_) => true,
        Frame::MapBio(path) => path.is_mapping(),
        _ => false,
    };
    if frames.any(maps) {
        return Some("the device is suspended, and something is being mapped".to_owned());
    }
    let started = q.with_pool(|pool| pool.iter().any(|(_, rq)| rq.place == Place::Device));
    started.then(|| "the device is suspended, and has a request".to_owned())
}

/// A clone in or on its way to its device belongs to a request that knows it.
fn strays(world: &World, mapped: &Mapped, queue: QueueId) -> Option<String> {
    let q = world.mq.queue(queue);
    if q.bios_of.is_some() {
        return stray_bios(world, mapped, queue);
    }
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

/// A bio in the queue of a path belongs to a bio above that knows it, until its end is reported
/// upward; no other bio is there.
fn stray_bios(world: &World, mapped: &Mapped, queue: QueueId) -> Option<String> {
    let own = |tio: &BioTio| {
        let path = tio.mapped.map(|way| mapped.queue_of(way.path));
        tio.clone.filter(|_| path == Some(queue))
    };
    let known = mapped.with_state(|state| state.bios.iter().filter_map(own).count());
    let there = world.mq.queue(queue).with_pool(|pool| pool.bios_in_use());
    (known != there).then(|| format!("queue {queue} has {there} bios, of which {known} are known"))
}

/// A bio that has begun and not ended has a clone, is held, waits, or is on a path.
fn lost_bios(world: &World, mapped: &Mapped) -> Option<String> {
    let bios = mapped.bios.as_ref()?;
    let deferred = bios.deferred.inspect(VecDeque::len);
    let (clones, lists) = mapped.with_state(|state| {
        let clones = state.bios.iter().filter(|tio| tio.clone.is_some()).count();
        (clones, state.target.held().count() + state.taken.len())
    });
    let frames = world.contexts.iter().flat_map(|c| c.stack.frames());
    let owned = frames.filter(|frame| match frame {
        Frame::MapBio(path) => path.has_bio(),
        Frame::BioEnd(path) => path.has_bio(),
        _ => false,
    });
    let found = clones + lists + deferred + owned.count();
    let begun = (world.outside.started - world.outside.ended) as usize;
    (found != begun).then(|| format!("{begun} bios are under way, of which {found} are found"))
}

/// A request that the mapped device has is on a path, has a clone, or is about to end.
fn lost(world: &World, q: &RequestQueue, mapped: &Mapped) -> Option<String> {
    let with_device =
        |(id, rq): (RequestId, &blkmq::request::Request)| (rq.place == Place::Device).then_some(id);
    let started: Vec<RequestId> = q.with_pool(|pool| pool.iter().filter_map(with_device).collect());
    started.into_iter().find_map(|rq| {
        let has_clone = mapped.with_state(|state| state.tios[rq.0 as usize].clone.is_some());
        let frames = world.contexts.iter().flat_map(|c| c.stack.frames());
        let beside = |frame: &&Frame| {
            let waits = matches!(frame, Frame::Wait(_) | Frame::WakeUp(_));
            !(waits || matches!(frame, Frame::Target(_) | Frame::Suspend(_)))
        };
        let mut own = frames.filter(beside);
        let owned = own.any(|frame| frame.queue() == ABOVE);
        let ends = world.outside.paths.to_end.contains(&rq);
        let lost = !has_clone && !owned && !ends;
        lost.then(|| {
            format!(
                "request {} is with the device, which has no clone of it",
                rq.0
            )
        })
    })
}

/// Checks the state after all bios have ended.
pub(super) fn rest(world: &World) -> Option<String> {
    let mapped = world.mq.queue(ABOVE).mapped.as_ref()?;
    let (pending, holders) = (mapped.pending.peek(), mapped.holders.peek());
    if (pending, holders) != (0, 0) {
        return Some(format!(
            "the device counts {pending} in flight, {holders} holders"
        ));
    }
    mapped.with_state(|state| {
        if state.pending > 0 {
            return Some("the device counts bios though all have ended".to_owned());
        }
        if state.tios.iter().any(|tio| tio.clone.is_some()) {
            return Some("a clone is left though all bios have ended".to_owned());
        }
        let empty = state.target.accounts_are_empty();
        (!empty).then(|| "a selector counts what is not in flight".to_owned())
    })
}
