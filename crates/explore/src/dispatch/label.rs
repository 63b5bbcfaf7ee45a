//! Labels at which an action of the specification begins.

use std::sync::LazyLock;

use blkmq::path::Label;

use super::setting::Setting;
use super::world::At;

/// Actions by the label at which they begin, if the process wants none of the two locks first.
const FIRST: &[(&str, At)] = &[
    ("dd-insert.append", At::AppendSide),
    ("dd-insert.note", At::Note),
    ("dd-insert.tried", At::TryLock),
    ("dd-insert.busy", At::Busy),
    ("dd-insert.count", At::Count),
    ("dd-insert.marked", At::Marked),
    ("dd-insert.mark", At::Mark),
    ("dd-insert.fill", At::Fill),
    ("dd-insert.recount", At::Recount),
    ("dd-insert.still", At::Still),
    ("dd-insert.begin", At::Begin),
    ("dd-insert.insert", At::Insert),
    ("plug.elevator", At::Insert),
    ("dd-insert.filled", At::Filled),
    ("dd-insert.claim", At::Claim),
    ("dd-insert.look", At::Look),
    ("dd-insert.collect", At::Collect),
    ("dd-insert.end", At::End),
    ("dd-insert.again", At::Again),
    ("dd-insert.unlock", At::Unlock),
    ("dd-insert.late-end", At::LateEnd),
    // A run looks for work twice, at its beginning and in each pass: the first look belongs to
    // that of the first pass.
    ("run.quiesced", At::HasWork),
    ("run.stopped", At::HasWork),
    ("pass.busy", At::HasWork),
    ("pass.gate", At::Gate),
    ("pass.shut-gate", At::ShutGate),
    ("pass.drain", At::TakeSide),
    ("pass.pick", At::Pick),
    ("pass.leave", At::OpenGate),
    ("pass.open-gate", At::OpenGate),
    ("pass.tag", At::Offer),
    ("pass.delay-runs", At::DelayRuns),
];

/// The same by number of the label.
#[derive(Debug)]
pub(super) struct Named {
    at: [Option<At>; Label::COUNT],
    /// The label that is nothing but the release of dd->lock.
    pub(super) unlock: Label,
}

static NAMED: LazyLock<Named> = LazyLock::new(|| {
    let find = |name: &str| Label::by_name(name).unwrap_or_else(|| panic!("no label {name}"));
    let mut at = [None; Label::COUNT];
    for &(name, action) in FIRST {
        at[usize::from(find(name).0)] = Some(action);
    }
    Named {
        at,
        unlock: find("dd-insert.unlock"),
    }
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
