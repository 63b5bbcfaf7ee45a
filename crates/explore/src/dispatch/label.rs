//! Labels at which an action of the specification begins.

use std::sync::LazyLock;

use blkmq::path::Label;

use super::TABLE;
use super::setting::Setting;
use super::world::{ACTIONS, At};

/// Actions by number of the label.
#[derive(Debug)]
pub(super) struct Named {
    at: [Option<At>; Label::COUNT],
}

/// What may begin at a label.
const BEGIN: [At; 29] = [
    At::AppendSide,
    At::Note,
    At::TryLock,
    At::Busy,
    At::Count,
    At::Marked,
    At::Mark,
    At::Fill,
    At::Recount,
    At::Still,
    At::Begin,
    At::Insert,
    At::Filled,
    At::Claim,
    At::Look,
    At::Collect,
    At::End,
    At::Again,
    At::Unlock,
    At::LateEnd,
    At::HasWork,
    At::Gate,
    At::ShutGate,
    At::TakeSide,
    At::Pick,
    At::OpenGate,
    At::PickUnlock,
    At::Offer,
    At::DelayRuns,
];

fn named(action: &str) -> Option<At> {
    BEGIN.into_iter().find(|&at| ACTIONS[at as usize] == action)
}

/// If the process wants none of the two locks first. A run looks for work twice, at its beginning
/// and in each pass: the first look belongs to that of the first pass.
static NAMED: LazyLock<Named> = LazyLock::new(|| {
    let mut at = [None; Label::COUNT];
    for label in Label::all() {
        at[usize::from(label.0)] = TABLE.row(label).action.and_then(named);
    }
    Named { at }
});

impl Named {
    pub(super) fn get() -> &'static Named {
        &NAMED
    }

    /// The action that begins at this label. Without delayed runs nothing is armed by a run that
    /// got nothing: its label does nothing and belongs to the action before.
    pub(super) fn at(&self, label: Label, setting: &Setting) -> Option<At> {
        let at = self.at[usize::from(label.0)];
        at.filter(|&at| at != At::DelayRuns || setting.delayed)
    }
}
