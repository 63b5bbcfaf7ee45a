//! What each label is to `specs/Dispatch`.

use blkmq::path::Label;
use blkmq::schedule::labels::{REFUSED, Row};

use crate::dispatch::TABLE;

/// What a label is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The specification has nothing of the kind.
    Refused(&'static str),
    /// The step of this name.
    Step(&'static str),
    /// Requests are to be inserted by the series.
    Enters,
    /// Requests come into the scheduler, in the order of the list.
    Inserts,
    /// The side lists are taken.
    TakesSide,
    /// What they had comes into the scheduler.
    InsertsSide,
    /// The scheduler gives a request, or none.
    Picks,
    /// It touches nothing that the specification has; but at its end a run may be left to kblockd.
    Others,
    /// A run that was turned away asks for a run later, if the rules say so.
    Delays,
    /// The end of a request begins.
    Ends,
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
    let Some(shown) = row.shown else {
        return Kind::Others;
    };
    match shown {
        REFUSED => Kind::Refused(row.why.unwrap_or_default()),
        "step" => Kind::Step(row.step.unwrap_or_default()),
        "enters" => Kind::Enters,
        "inserts" => Kind::Inserts,
        "takes-side" => Kind::TakesSide,
        "inserts-side" => Kind::InsertsSide,
        "picks" => Kind::Picks,
        "leaves" => Kind::Others,
        "delays" => Kind::Delays,
        "ends" => Kind::Ends,
        _ => panic!("specs/Dispatch/labels.txt: nobody knows {shown}"),
    }
}
