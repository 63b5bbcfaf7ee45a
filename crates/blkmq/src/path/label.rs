//! The labels of all paths: each has a type, a number and a name.
//!
//! A path declares its labels with `labels!` in its own file, as an enum `At` under the name of
//! its group: `pub enum At in "list" { Restart, .. }` gives `At::Restart`, its name `list.restart`,
//! and `At::Restart.label()`, a constant. The list of groups at the end of this file numbers them
//! densely, in its order.
//!
//! A new group: declare it in the file of its path with `crate::names::labels!`, and add one
//! line to the list, `Name = crate::place::At`; that of a scheduler to the list of schedulers
//! (`elevator.rs`), whose groups follow. Without the line `.label()` does not compile. Other
//! crates write a label as `label::List::Restart.label()`, so that a wrong one does not compile;
//! names read from files are looked up with [`Label::by_name`].
//!
//! A label that takes one of many steps of a part, as a search for a tag, has stages (`names.rs`):
//! they have names and types and no number, since the label has the price.

pub use crate::names::Label;

use crate::elevator::labels as labels_of_schedulers;
use crate::names::groups;

impl Label {
    pub const COUNT: usize = COUNT;
    /// Length of a table with one place for each label: a power of two, so that [`Label::place`]
    /// needs no check of its length.
    pub const PLACES: usize = 512;

    /// Its index in such a table.
    #[inline]
    pub const fn place(self) -> usize {
        self.0 as usize % Label::PLACES
    }

    /// Path and label, as in docs, traces and profiles: `run.stopped`.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    pub fn by_name(name: &str) -> Option<Label> {
        Label::all().find(|label| label.name() == name)
    }

    /// It belongs to one or several schedulers, not to the block layer.
    pub fn is_of_scheduler(self) -> bool {
        usize::from(self.0) >= OWN
    }

    /// The group of its path, and its name in the group.
    ///
    /// # Panics
    /// Never: each name has a dot.
    pub fn parts(self) -> (&'static str, &'static str) {
        let parts = self.name().split_once('.');
        parts.expect("labels! puts a dot between group and variant")
    }

    pub fn all() -> impl Iterator<Item = Label> {
        (0..Label::COUNT).map(|label| Label(label as u16))
    }
}

/// Labels of the block layer and those common to all schedulers; schedulers' own follow.
pub(crate) const OWN: usize = END;
const COUNT: usize = of_schedulers::END;

/// Indexed by number.
static NAMES: [&str; COUNT] = {
    assert!(COUNT <= Label::PLACES, "tables have a place for each label");
    let mut names = [""; COUNT];
    let lists = [GROUPS, labels_of_schedulers::GROUPS];
    let (mut list, mut group, mut to) = (0, 0, 0);
    while list < lists.len() {
        while group < lists[list].len() {
            let mut at = 0;
            while at < lists[list][group].len() {
                names[to] = lists[list][group][at];
                to += 1;
                at += 1;
            }
            group += 1;
        }
        (list, group) = (list + 1, 0);
    }
    names
};

groups! {
    from 0;
    /// A bio from submit_bio() on.
    Submit = super::submit::At,
    /// Flush of a plug, and direct issue.
    Plug = super::plug::At,
    /// Insertion of one request.
    Insert = super::insert::At,
    /// A run of a hardware queue.
    Run = super::run::At,
    /// A run of all hardware queues.
    RunQueues = super::run_queues::At,
    /// A pass over the scheduler.
    Pass = super::pass::At,
    /// A list of requests being dispatched.
    List = super::list::At,
    /// Emptying the software queues.
    Ctx = super::ctx::At,
    /// End of a request.
    Complete = super::complete::At,
    /// End of requests that were collected.
    EndBatch = super::end_batch::At,
    /// Entry of the flush machine.
    Flush = super::flush::At,
    /// requeue_work.
    Requeue = super::requeue::At,
    /// A request that its driver gives back.
    RequeueRequest = super::requeue::RequestAt,
    /// A hook of a scheduler.
    Hook = super::hook::At,
    /// The search for a merge in a scheduler with one lock.
    ElevatorMerge = crate::elevator::MergeAt,
    /// Insertion into the same.
    ElevatorInsert = crate::elevator::InsertionAt,
    /// queue_rq of a mapped queue.
    MapRq = super::map::At,
    /// A clone of a request of such a queue.
    CloneRq = super::clone::At,
    /// End of a clone.
    CloneEnd = super::clone_end::At,
    /// Second completion, of the request of the mapped queue.
    MapEnd = super::map_end::At,
    /// Mapping of a bio of a bio-based device.
    MapBio = super::bio::At,
    /// The end of a bio of a bio-based device, or of its clone.
    BioEnd = super::bio_end::At,
    /// A worker of such a device.
    BioWork = super::bio_work::At,
    /// A call of the target.
    Target = super::target::At,
    /// A token of a scheduler.
    Token = super::token::At,
    /// A wait for an event.
    Wait = super::wait::At,
    /// A suspension of a mapped device.
    Suspend = super::suspend::At,
    /// A change of the scheduler.
    Switch = super::switch::At,
    /// timeout_work.
    Timeout = super::timeout::At,
    /// A bio to a single-queue one.
    SingleSubmit = super::single::SubmitAt,
    /// A run of a single-queue one.
    SingleRun = super::single::RunAt,
    /// End of a request of such a queue.
    SingleEnd = super::single::EndAt,
}

/// Numbers the groups of schedulers, in the order of `elevator::labels`.
mod of_schedulers {
    use super::OWN;
    use crate::names::number;

    macro_rules! numbers {
        ($(
            $(#[$doc:meta])*
            $Kind:ident => $module:ident
            $([$($(#[doc = $said:literal])+ $Group:ident = $($at:ident)::+,)+])?,
        )*) => {
            use crate::elevator::labels::{SeriesDispatch, SeriesInsert, $($($($Group,)+)?)*};

            number!(from OWN; SeriesInsert SeriesDispatch $($($($Group)+)?)*);
        };
    }
    crate::elevator::schedulers!(numbers);
}

/// Steps of the free of a tag, within the labels of its path.
pub use super::sbitmap::PutAt as TagPut;
pub use labels_of_schedulers::*;

#[cfg(test)]
mod tests;
