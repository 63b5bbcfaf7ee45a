//! Invariants that only the specification of BFQ's merge code has.

use super::setting::Setting;
use crate::merging::{self, MergeSpec, World, every};

/// I2 (RefExact): candidates of merges hold references, too.
pub(super) fn ref_exact(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        let waits = |p: &u8| world.candidate(*p) == Some(q);
        let waiting = (0..setting.processes).filter(waits).count() as i32;
        let stable = world.queue(q).map_or(0, |seen| seen.stable);
        merging::ref_exact(world, setting, q, waiting) && stable == waiting
    })
}

/// I4 (Acyclic).
pub(super) fn acyclic(world: &World<Setting>, setting: &Setting) -> bool {
    merging::acyclic(world, setting, |_| true)
}

pub(super) fn no_negative(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| Setting::process_references(world, q) >= 0)
}

fn is_owned(world: &World<Setting>, q: u8) -> bool {
    world.queue(q).is_some_and(|seen| seen.owner.is_some())
}

/// I6 (OwnerValid).
pub(super) fn owner_valid(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        let owner = world.queue(q).and_then(|seen| seen.owner);
        owner.is_none_or(|p| world.slot(p as u8) == Some(q))
    })
}

pub(super) fn owned_unplanned(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        !is_owned(world, q) || Setting::new_of(world, q).is_none()
    })
}

pub(super) fn planned_shared(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        let planned =
            Setting::new_of(world, q).is_some() && Setting::process_references(world, q) > 0;
        !planned || world.queue(q).is_some_and(|seen| seen.shared)
    })
}

pub(super) fn redirected_whole(world: &World<Setting>, _setting: &Setting) -> bool {
    !world.side.more.short
}

pub(super) fn created_live(world: &World<Setting>, setting: &Setting) -> bool {
    let mut last = (0..setting.groups).filter_map(|g| world.created(g));
    last.all(|q| world.queue(q).is_some())
}
