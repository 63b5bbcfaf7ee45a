//! What each label is to the specification.

use blkmq::path::Label;
use blkmq::schedule::labels::{REFUSED, Row};

use crate::restart::TABLE;

/// What a label is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// It touches nothing that the specification has.
    Nothing,
    /// The specification has nothing of the kind.
    Refused(&'static str),
    /// A request comes into the scheduler or into the dispatch list.
    Inserts { scheduled: bool },
    /// The end of a request begins.
    Ends,
    /// A run looks for leftovers before it begins.
    LooksDispatch,
    /// And for requests in the scheduler.
    LooksWork,
    /// A run begins, if there are no leftovers.
    PeeksDispatch,
    /// A run begins with leftovers.
    TakesDispatch,
    /// The action of this name, each time.
    Step(&'static str),
    /// An attempt to get a tag, in several labels.
    Tries(&'static str),
    /// An attempt for the request behind the head.
    Ahead,
    /// Has the scheduler anything?
    HasWork,
    /// The scheduler gives a request.
    Picks,
    /// A driver tag goes back, in several labels.
    PutsTag,
    /// Whom the end of a request runs.
    Walk(&'static str),
}

/// All labels.
#[derive(Debug)]
pub(super) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(super) fn new() -> Kinds {
        Kinds(Label::all().map(|label| kind(TABLE.row(label))).collect())
    }

    pub(super) fn of(&self, label: Label) -> Kind {
        self.0[usize::from(label.0)]
    }
}

fn kind(row: &Row) -> Kind {
    let step = row.step.unwrap_or_default();
    let Some(shown) = row.shown else {
        return Kind::Nothing;
    };
    match shown {
        REFUSED => Kind::Refused(row.why.unwrap_or_default()),
        "inserts" => Kind::Inserts {
            scheduled: step == "InsertSched",
        },
        "ends" => Kind::Ends,
        "looks-dispatch" => Kind::LooksDispatch,
        "looks-work" => Kind::LooksWork,
        "peeks-dispatch" => Kind::PeeksDispatch,
        "takes-dispatch" => Kind::TakesDispatch,
        "step" => Kind::Step(step),
        "tries" => Kind::Tries(step),
        "ahead" => Kind::Ahead,
        "has-work" => Kind::HasWork,
        "picks" => Kind::Picks,
        "puts-tag" => Kind::PutsTag,
        "walk" => Kind::Walk(step),
        _ => panic!("specs/Restart/labels.txt: nobody knows {shown}"),
    }
}
