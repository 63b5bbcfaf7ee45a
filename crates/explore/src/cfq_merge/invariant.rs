//! What the specification's invariants say of CFQ's merge code alone.

use super::setting::{Oom, Setting};
use crate::merging::{self, World, every};

/// I2: also the table's reference, and the pin.
pub(super) fn ref_exact(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        let pins = i32::from(Some(q) == setting.oom_queue()) + i32::from(world.table() == Some(q));
        let born = q >= setting.queues || q < world.side.born;
        !born || merging::ref_exact(world, setting, q, pins)
    })
}

pub(super) fn no_negative(world: &World<Setting>, setting: &Setting) -> bool {
    every(setting, |q| {
        !world.is_live(q) || world.process_references(q) >= 0
    })
}

/// I4: where processes are still to come.
pub(super) fn acyclic(world: &World<Setting>, setting: &Setting) -> bool {
    let matters = |q: u8| world.is_live(q) && world.process_references(q) > 0;
    merging::acyclic(world, setting, matters)
}

pub(super) fn fallback_aside(world: &World<Setting>, setting: &Setting) -> bool {
    setting.oom == Oom::None || world.table() != setting.oom_queue()
}
