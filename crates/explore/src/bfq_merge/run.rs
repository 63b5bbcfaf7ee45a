//! One action: a call of the merge protocol. A call that panics has used a freed queue.

use blkmq::elevator::bfq::protocol::{CreationOutcome, MergeProtocol};

use super::setting::Setting;
use super::world::{ACTIONS, Action};
use crate::guard::guarded;
use crate::merging::{Act, MergeSpec, Used, World};

/// A miscount that a check must find: one kind of action puts the reference of its queue once too
/// rarely, or once too often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wrong {
    pub action: &'static str,
    /// A put is left out; otherwise there is one more.
    pub drops: bool,
}

/// Takes an action that the setting has listed.
pub(super) fn act(
    setting: &Setting,
    world: &mut World<Setting>,
    action: Action,
) -> Result<(), Used> {
    let put = put_by(world, action);
    let wrong = setting.wrong.filter(|w| w.action == ACTIONS[action.kind()]);
    let protocol = &mut world.code;
    let taken = guarded(|| {
        if let (Some(Wrong { drops: true, .. }), Some(q)) = (wrong, put) {
            protocol.miscount(q, 1);
        }
        call(protocol, action);
        if let (Some(Wrong { drops: false, .. }), Some(q)) = (wrong, put) {
            protocol.miscount(q, -1);
        }
    });
    taken.map_err(|_| Used)?;
    if let Action::Carry(p, q) = action {
        let to = world.slot(p).expect("it has gone there");
        world.side.io[usize::from(q)] -= 1;
        world.side.io[usize::from(to)] += 1;
    }
    if let Action::Redirect(p) = action
        && setting.notes_short
    {
        let slot = world.slot(p).expect("it was redirected there");
        world.side.more.short |= Setting::new_of(world, slot).is_some();
    }
    Ok(())
}

/// The queue whose reference an action puts.
fn put_by(world: &World<Setting>, action: Action) -> Option<u32> {
    let put = match action {
        Action::Complete(q) | Action::Carry(_, q) => Some(q),
        Action::MergeLater(p) | Action::Abort(p) => world.candidate(p),
        Action::Redirect(p)
        | Action::Merge(p, _)
        | Action::Leave(p)
        | Action::Exit(p)
        | Action::Move(p, _) => world.slot(p),
        _ => None,
    };
    put.map(u32::from)
}

/// Updates what is recorded outside the merge code, even if the action uses a freed queue.
pub(super) fn note(world: &mut World<Setting>, action: Action) {
    let side = &mut world.side;
    match action {
        Action::Create(_)
        | Action::CreateLast(_)
        | Action::CreateLater(_)
        | Action::CreateMerged(_)
        | Action::Leave(_) => side.born += 1,
        Action::Submit(p) => {
            side.todo[usize::from(p)] -= 1;
            let slot = world.slot(p).expect("the process has a queue");
            world.side.io[usize::from(slot)] += 1;
        }
        Action::Complete(q) => side.io[usize::from(q)] -= 1,
        Action::Exit(p) => side.exits(p),
        Action::Move(p, g) => side.more.group[usize::from(p)] = g,
        _ => {}
    }
}

fn call(protocol: &mut MergeProtocol, action: Action) {
    match action {
        Action::CreateLast(p) => protocol.create(p.into(), CreationOutcome::Last),
        Action::Create(p) => protocol.create(p.into(), CreationOutcome::Alone),
        Action::CreateLater(p) => protocol.create(p.into(), CreationOutcome::Later),
        Action::CreateMerged(p) => protocol.create(p.into(), CreationOutcome::Merged),
        Action::Submit(p) => protocol.submit(p.into()),
        Action::Complete(q) => protocol.complete(q.into()),
        Action::Redirect(p) => protocol.redirect(p.into()),
        Action::Carry(p, q) => protocol.carry(p.into(), q.into()),
        Action::Merge(p, close) => protocol.merge(p.into(), close.into()),
        Action::MergeLater(p) => protocol.merge_later(p.into(), false),
        Action::Abort(p) => protocol.merge_later(p.into(), true),
        Action::Leave(p) | Action::Keep(p) => protocol.split(p.into()),
        Action::Exit(p) => protocol.exit(p.into()),
        Action::Move(p, group) => protocol.change_group(p.into(), group.into()),
    }
}
