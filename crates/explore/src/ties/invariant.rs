//! The specification's invariants, on the state as the merge code has it. Each reference is
//! somebody's: who that is, is counted anew here.

use super::setting::{Oom, Setting};
use super::world::World;

/// By the specification's names; a bit each.
pub(super) const NAMES: &[&str] = &[
    "LiveDeref",
    "RefExact",
    "NoNegative",
    "Acyclic",
    "NoLeak",
    "SameParent",
    "FallbackAside",
    "NeverAllDone",
];

/// All but the one that is to be violated.
pub(super) const ALL: u16 = (1 << 7) - 1;

/// The bit of an invariant.
pub(super) fn bit(name: &str) -> Option<u16> {
    let at = NAMES.iter().position(|known| *known == name)?;
    Some(1 << at)
}

/// The first invariant that is judged and does not hold, by the specification's name.
pub(super) fn broken(world: &World, setting: &Setting) -> Option<&'static str> {
    const HOLDS: [fn(&World, &Setting) -> bool; 8] = [
        |world, _| !world.side.used,
        ref_exact,
        |world, setting| {
            every(setting, |q| {
                !world.is_live(q) || world.process_references(q) >= 0
            })
        },
        acyclic,
        |world, setting| world.side.used || !world.is_quiet(setting) || world.all_freed(setting),
        same_parent,
        |world, setting| setting.oom == Oom::None || world.table() != setting.oom_queue(),
        |world, setting| {
            world.side.born < 2 || !world.is_quiet(setting) || !world.all_freed(setting)
        },
    ];
    let judged = (0..HOLDS.len()).filter(|at| setting.judged >> at & 1 == 1);
    let mut broken = judged.filter(|&at| !HOLDS[at](world, setting));
    broken.next().map(|at| NAMES[at])
}

fn every(setting: &Setting, holds: impl Fn(u8) -> bool) -> bool {
    (0..setting.all_queues()).all(holds)
}

/// Whether a queue is in the chain that begins with another.
fn leads_to(world: &World, setting: &Setting, from: u8, to: u8) -> bool {
    let chain = core::iter::successors(Some(from), |&at| world.new_of(at));
    let most = usize::from(setting.all_queues()) + 1;
    chain.take(most).any(|at| at == to)
}

/// I2: slots, processes still to come along a chain, requests, the table, the pin.
fn ref_exact(world: &World, setting: &Setting) -> bool {
    every(setting, |q| {
        let slots = (0..setting.processes).flat_map(|p| [(p, false), (p, true)]);
        let holds = |&(p, sync): &(u8, bool)| {
            let slot = world.slot(p, sync);
            slot.is_some_and(|slot| leads_to(world, setting, slot, q))
        };
        let holders = slots.filter(holds).count() as i32;
        let pins = i32::from(Some(q) == setting.oom_queue()) + i32::from(world.table() == Some(q));
        let io = i32::from(world.side.io[usize::from(q)]);
        let born = q >= setting.queues || q < world.side.born;
        !born || world.references(q) == holders + io + pins
    })
}

/// I4.
fn acyclic(world: &World, setting: &Setting) -> bool {
    every(setting, |q| {
        let matters = world.is_live(q) && world.process_references(q) > 0;
        let chain = core::iter::successors(Some(q), |&at| world.new_of(at));
        let most = usize::from(setting.queues) + 2;
        !matters || chain.take(most + 1).count() <= most
    })
}

/// I7.
fn same_parent(world: &World, setting: &Setting) -> bool {
    let group = |q: u8| world.side.group[usize::from(q)];
    (0..setting.queues).all(|q| {
        let new = world.new_of(q).filter(|&new| new < setting.queues);
        let new = new.filter(|_| world.process_references(q) > 0);
        new.is_none_or(|new| group(new) == group(q))
    })
}
