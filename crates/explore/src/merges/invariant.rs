//! The specification's invariants, on the state as the merge code has it. Each reference is
//! somebody's: who that is, is counted anew here.

use super::setting::Setting;
use super::world::World;

/// By the specification's names; a bit each.
pub(super) const NAMES: &[&str] = &[
    "LiveDeref",
    "RefExact",
    "Acyclic",
    "NoNegative",
    "NoLeak",
    "OwnerValid",
    "OwnedUnplanned",
    "PlannedShared",
    "RedirectedWhole",
    "SameParent",
    "CreatedLive",
    "NeverAllDone",
];

/// All but the one that is to be violated.
pub(super) const ALL: u16 = (1 << 11) - 1;

/// The bit of an invariant.
pub(super) fn bit(name: &str) -> Option<u16> {
    let at = NAMES.iter().position(|known| *known == name)?;
    Some(1 << at)
}

/// The first invariant that is judged and does not hold, by the specification's name.
pub(super) fn broken(world: &World, setting: &Setting) -> Option<&'static str> {
    const HOLDS: [fn(&World, &Setting) -> bool; 12] = [
        |world, _| !world.side.used,
        ref_exact,
        acyclic,
        |world, setting| every(setting, |q| world.process_references(q) >= 0),
        |world, setting| world.side.used || !world.is_quiet(setting) || world.all_freed(setting),
        owner_valid,
        |world, setting| {
            every(setting, |q| {
                !is_owned(world, q) || world.new_of(q).is_none()
            })
        },
        planned_shared,
        |world, _| !world.side.short,
        same_parent,
        created_live,
        |world, setting| {
            world.side.born < 2 || !world.is_quiet(setting) || !world.all_freed(setting)
        },
    ];
    let judged = (0..HOLDS.len()).filter(|at| setting.judged >> at & 1 == 1);
    let mut broken = judged.filter(|&at| !HOLDS[at](world, setting));
    broken.next().map(|at| NAMES[at])
}

fn every(setting: &Setting, holds: impl Fn(u8) -> bool) -> bool {
    (0..setting.queues).all(holds)
}

/// Whether a queue is in the chain that begins with another.
fn leads_to(world: &World, setting: &Setting, from: u8, to: u8) -> bool {
    let chain = core::iter::successors(Some(from), |&at| world.new_of(at));
    chain
        .take(usize::from(setting.queues) + 1)
        .any(|at| at == to)
}

/// I2: slots, processes still to come along a chain, requests, candidates.
fn ref_exact(world: &World, setting: &Setting) -> bool {
    every(setting, |q| {
        let processes = || 0..setting.processes;
        let holds = |p: &u8| {
            let slot = world.slot(*p);
            slot.is_some_and(|slot| leads_to(world, setting, slot, q))
        };
        let holders = processes().filter(holds).count() as i32;
        let waiting = processes()
            .filter(|&p| world.candidate(p) == Some(q))
            .count() as i32;
        let io = i32::from(world.side.io[usize::from(q)]);
        let (references, stable) = match world.queue(q) {
            Some(seen) => (seen.references, seen.stable),
            None => (0, 0),
        };
        references == holders + io + waiting && stable == waiting
    })
}

/// I4.
fn acyclic(world: &World, setting: &Setting) -> bool {
    every(setting, |q| {
        let chain = core::iter::successors(Some(q), |&at| world.new_of(at));
        chain.take(usize::from(setting.queues) + 2).count() <= usize::from(setting.queues) + 1
    })
}

fn is_owned(world: &World, q: u8) -> bool {
    world.queue(q).is_some_and(|seen| seen.owner.is_some())
}

/// I6.
fn owner_valid(world: &World, setting: &Setting) -> bool {
    every(setting, |q| {
        let owner = world.queue(q).and_then(|seen| seen.owner);
        owner.is_none_or(|p| world.slot(p as u8) == Some(q))
    })
}

fn planned_shared(world: &World, setting: &Setting) -> bool {
    every(setting, |q| {
        let planned = world.new_of(q).is_some() && world.process_references(q) > 0;
        !planned || world.queue(q).is_some_and(|seen| seen.shared)
    })
}

/// I7.
fn same_parent(world: &World, setting: &Setting) -> bool {
    let group = |q: u8| world.queue(q).map(|seen| seen.group);
    every(setting, |q| {
        let new = world.new_of(q).filter(|_| world.process_references(q) > 0);
        new.is_none_or(|new| group(new) == group(q))
    })
}

fn created_live(world: &World, setting: &Setting) -> bool {
    let mut last = (0..setting.groups).filter_map(|g| world.created(g));
    last.all(|q| world.queue(q).is_some())
}
