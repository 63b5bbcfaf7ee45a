//! The specification's invariants, evaluated on the state of the paths.

use blkmq::rules::DispatchGate;

use super::setting::{Judged, REQUESTS_MAX, Setting};
use super::world::{At, Life, World};

/// The first invariant that does not hold, by the specification's name.
pub(super) fn broken(world: &World, setting: &Setting) -> Option<&'static str> {
    if world.is_quiet(setting)
        && let Some(name) = broken_at_rest(world, setting)
    {
        return Some(name);
    }
    if setting.judged == Judged::AllDone {
        return None;
    }
    if !nothing_lost(world, setting) {
        return Some("NothingLost");
    }
    (!lock_exact(world, setting)).then_some("LockExact")
}

/// The invariant of quiet states that does not hold.
fn broken_at_rest(world: &World, setting: &Setting) -> Option<&'static str> {
    let waits = (0..setting.requests()).any(|request| world.life(request) == Life::Live);
    match setting.judged {
        Judged::Stall => waits.then_some("NoStall"),
        Judged::Left => (waits && all_submitted(world, setting)).then_some("NoneLeft"),
        Judged::AllDone => (!waits && all_submitted(world, setting)).then_some("NeverAllDone"),
    }
}

/// No CPU will submit any more.
pub(super) fn all_submitted(world: &World, setting: &Setting) -> bool {
    let submitted = &world.side.submitted[..usize::from(setting.cpus)];
    submitted.iter().all(|&count| count == setting.per_cpu)
}

/// A submitted request is in exactly one place, and no other is in any.
fn nothing_lost(world: &World, setting: &Setting) -> bool {
    let mut held = [0_u8; REQUESTS_MAX];
    let mut hold = |requests: Vec<u8>| {
        for request in requests {
            held[usize::from(request)] += 1;
        }
    };
    hold(world.queued());
    hold(world.side_list());
    for cpu in 0..setting.cpus {
        hold(world.bucket(cpu));
    }
    for process in 0..setting.processes() {
        let owned = world.held(setting, process);
        hold(owned.list);
        hold(owned.got.into_iter().collect());
    }
    (0..setting.requests()).all(|request| {
        let live = world.life(request) == Life::Live;
        held[usize::from(request)] == u8::from(live)
    })
}

/// Only the owner of dd->lock is in its section.
fn lock_exact(world: &World, setting: &Setting) -> bool {
    (0..setting.processes()).all(|process| {
        let owns = world.side.owner == Some(process);
        owns == in_section(world.at(setting, process), setting)
    })
}

/// Between the grant of dd->lock and its release.
fn in_section(at: At, setting: &Setting) -> bool {
    match at {
        At::Begin
        | At::Insert
        | At::Filled
        | At::Claim
        | At::Look
        | At::Collect
        | At::End
        | At::Again
        | At::Unlock
        | At::TakeSide
        | At::Pick
        | At::PickUnlock => true,
        At::OpenGate => setting.gate == DispatchGate::OneAtATime,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
