//! Invariants that specifications of merging share, evaluated on the state of the merge code. The
//! holders of all references are counted here a second time.

use super::{MergeSpec, World};

pub(crate) fn bit_of<S: MergeSpec>(name: &str) -> Option<u16> {
    let at = S::INVARIANTS.iter().position(|(known, _)| *known == name)?;
    Some(1 << at)
}

/// Bits of all invariants but the one that must be violated.
pub(crate) fn all_but_last<S: MergeSpec>() -> u16 {
    (1 << (S::INVARIANTS.len() - 1)) - 1
}

/// The first checked invariant that does not hold, by the specification's name.
pub(super) fn broken<S: MergeSpec>(world: &World<S>, setting: &S) -> Option<&'static str> {
    let judged = (0..).zip(S::INVARIANTS);
    let mut judged = judged.filter(|(at, _)| setting.judged() >> at & 1 == 1);
    let broken = judged.find(|(_, (_, holds))| !holds(world, setting));
    broken.map(|(_, (name, _))| *name)
}

pub(crate) fn every<S: MergeSpec>(setting: &S, holds: impl Fn(u8) -> bool) -> bool {
    (0..setting.sizes().queues).all(holds)
}

/// A queue and those that it redirects to; a chain that leads back to its start ends as well.
fn chain<S: MergeSpec>(world: &World<S>, setting: &S, from: u8) -> impl Iterator<Item = u8> {
    let chain = core::iter::successors(Some(from), |&at| S::new_of(world, at));
    chain.take(usize::from(setting.sizes().queues) + 1)
}

/// LiveDeref (I1).
pub(crate) fn not_used<S: MergeSpec>(world: &World<S>, _setting: &S) -> bool {
    !world.side.used
}

/// RefExact (I2) of one queue: its references are those of slots, of processes still to come along
/// a chain, of requests, and `others`.
pub(crate) fn ref_exact<S: MergeSpec>(world: &World<S>, setting: &S, q: u8, others: i32) -> bool {
    let slots = (0..setting.sizes().processes).flat_map(|p| S::slots(world, p));
    let leads_here = |slot: &u8| chain(world, setting, *slot).any(|at| at == q);
    let holders = slots.flatten().filter(leads_here).count() as i32;
    let io = i32::from(world.side.io[usize::from(q)]);
    S::references(world, q) == holders + io + others
}

/// Acyclic (I4), of the queues given.
pub(crate) fn acyclic<S: MergeSpec>(
    world: &World<S>,
    setting: &S,
    of: impl Fn(u8) -> bool,
) -> bool {
    let most = usize::from(setting.sizes().queues);
    every(setting, |q| {
        !of(q) || chain(world, setting, q).count() <= most
    })
}

/// NoLeak (I5).
pub(crate) fn no_leak<S: MergeSpec>(world: &World<S>, setting: &S) -> bool {
    let sizes = setting.sizes();
    world.side.used || !world.is_quiet(sizes) || world.all_freed(sizes)
}

/// SameParent (I7).
pub(crate) fn same_parent<S: MergeSpec>(world: &World<S>, setting: &S) -> bool {
    every(setting, |q| {
        let new = S::new_of(world, q).filter(|_| S::process_references(world, q) > 0);
        let groups = new.and_then(|new| Some((S::group(world, new)?, S::group(world, q)?)));
        groups.is_none_or(|(of_new, own)| of_new == own)
    })
}

/// Must be violated: shows that two processes can end well.
pub(crate) fn never_all_done<S: MergeSpec>(world: &World<S>, setting: &S) -> bool {
    let sizes = setting.sizes();
    world.side.born < 2 || !world.is_quiet(sizes) || !world.all_freed(sizes)
}
