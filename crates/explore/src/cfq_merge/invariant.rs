//! Invariants that only the specification of CFQ's merge code has.

use super::setting::{Oom, Setting};
use crate::merging::{self, MergeSpec, World, every};

/// I2 (RefExact): the table and the pin hold references, too.
pub(super) fn ref_exact(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        let pins = i32::from(Some(q) == setting.oom_queue()) + i32::from(world.table() == Some(q));
        let born = q >= setting.queues || q < world.side.born;
        !born || merging::ref_exact(world, setting, q, pins)
    })
}

pub(super) fn no_negative(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        !world.is_live(q) || Setting::process_references(world, q) >= 0
    })
}

/// I4 (Acyclic), of queues that processes will still come to.
pub(super) fn acyclic(world: &World<Setting>, setting: &Setting) -> bool {
    let matters = |q: u8| world.is_live(q) && Setting::process_references(world, q) > 0;
    merging::acyclic(world, setting, matters)
}

pub(super) fn fallback_aside(world: &World<Setting>, setting: &Setting) -> bool {
    setting.oom == Oom::None || world.table() != setting.oom_queue()
}
