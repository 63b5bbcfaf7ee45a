//! What each label is to the specification.

use blkmq::path::Label;

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
        Kinds(Label::all().map(|label| kind(label.name())).collect())
    }

    pub(super) fn of(&self, label: Label) -> Kind {
        self.0[usize::from(label.0)]
    }
}

fn kind(name: &str) -> Kind {
    match name {
        "insert.elevator" => Kind::Inserts { scheduled: true },
        "insert.dispatch" => Kind::Inserts { scheduled: false },
        "complete.end" => Kind::Ends,
        "run.has-dispatch" => Kind::LooksDispatch,
        "run.has-elevator" | "run.recheck" => Kind::LooksWork,
        "run.peek-dispatch" => Kind::PeeksDispatch,
        "run.take-dispatch" => Kind::TakesDispatch,
        "run.mark-restart" => Kind::Step("Mark"),
        "run.count-mark" => Kind::Step("Count"),
        "list.tag" => Kind::Tries("Issue"),
        "list.tag-retry" => Kind::Tries("Retry"),
        "list.tag-in-line" => Kind::Step("InLine"),
        "list.tag-line" => Kind::Step("Line"),
        "list.tag-stale" => Kind::Step("Stale"),
        "list.tag-leave" => Kind::Step("Leave"),
        "list.tag-ahead" => Kind::Ahead,
        "list.put-back" => Kind::Step("PutBack"),
        "list.restart" => Kind::Step("Recheck"),
        "list.still-in-line" => Kind::Step("StillInLine"),
        "pass.has-work" => Kind::HasWork,
        "pass.pick" => Kind::Picks,
        "complete.put-driver" | "complete.put-sequence" => Kind::PutsTag,
        "complete.restart" => Kind::Walk("Gate"),
        "complete.clear-restart" => Kind::Walk("Clear"),
        "complete.clear-flag" => Kind::Walk("ClearFlag"),
        "complete.visit" => Kind::Walk("Visit"),
        "complete.unmark" => Kind::Walk("Unmark"),
        "complete.uncount" => Kind::Walk("Uncount"),
        "complete.sees-dispatch" => Kind::Walk("SeesDispatch"),
        "complete.sees-work" => Kind::Walk("SeesWork"),
        "plug.elevator" | "plug.ctx" => {
            Kind::Refused("requests were inserted from a plug; the specification has none")
        }
        "list.put-tag" | "list.put-ahead" => {
            Kind::Refused("the device refused a request; traces have no device limit")
        }
        "list.budget" | "pass.budget" => {
            Kind::Refused("the driver has budgets; the specification has none")
        }
        "list.tag-restart" | "pass.tag" | "pass.gate" | "pass.delay-runs" | "insert.ctx" => {
            Kind::Refused("the setting is none of the specification's")
        }
        name if name.starts_with("requeue-request.") => {
            Kind::Refused("the driver gave a request back; the specification has no requeueing")
        }
        name if name.starts_with("ctx.") || name.starts_with("dd-insert.") => {
            Kind::Refused("the setting is none of the specification's")
        }
        _ => Kind::Nothing,
    }
}
