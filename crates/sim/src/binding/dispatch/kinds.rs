//! What each label is to `specs/Dispatch`.

use blkmq::path::Label;

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
    /// The side lists come into the scheduler.
    TakesSide,
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
        Kinds(Label::all().map(|label| kind(label.name())).collect())
    }

    pub(super) fn of(&self, label: Label) -> Kind {
        self.0[usize::from(label.0)]
    }
}

/// Labels that are steps, whatever they find.
const STEPS: [(&str, &str); 25] = [
    ("submit.elevator-merge", "Merge"),
    ("dd-insert.append", "AppendSide"),
    ("dd-insert.note", "Note"),
    ("dd-insert.busy", "Busy"),
    ("dd-insert.count", "Count"),
    ("dd-insert.marked", "Marked"),
    ("dd-insert.mark", "Mark"),
    ("dd-insert.fill", "Fill"),
    ("dd-insert.recount", "Recount"),
    ("dd-insert.still", "Still"),
    ("dd-insert.begin", "Begin"),
    ("dd-insert.filled", "Filled"),
    ("dd-insert.claim", "Claim"),
    ("dd-insert.look", "Look"),
    ("dd-insert.collect", "Collect"),
    ("dd-insert.end", "End"),
    ("dd-insert.again", "Again"),
    ("dd-insert.unlock", "Unlock"),
    ("dd-insert.late-end", "LateEnd"),
    ("run.has-elevator", "Glance"),
    ("run.has-side", "GlanceSide"),
    ("run.recheck", "Recheck"),
    ("pass.has-work", "HasWork"),
    ("pass.has-side", "HasSide"),
    ("pass.gate", "Gate"),
];

fn kind(name: &str) -> Kind {
    if let Some(&(_, action)) = STEPS.iter().find(|(label, _)| *label == name) {
        return Kind::Step(action);
    }
    match name {
        "pass.shut-gate" => Kind::Step("ShutGate"),
        "pass.leave" | "pass.open-gate" => Kind::Step("OpenGate"),
        "dd-insert.enter" => Kind::Enters,
        "dd-insert.insert" | "plug.elevator" | "insert.elevator" => Kind::Inserts,
        "pass.take-side" => Kind::TakesSide,
        "pass.pick" => Kind::Picks,
        "pass.delay-runs" => Kind::Delays,
        "complete.end" => Kind::Ends,
        "insert.dispatch" => {
            Kind::Refused("a request went past the scheduler; the specification has none")
        }
        "plug.ctx" | "insert.ctx" => {
            Kind::Refused("a request went past the scheduler to a software queue")
        }
        "list.tag-in-line" | "list.tag-line" | "list.tag-restart" => {
            Kind::Refused("the driver's tags ran out (device queue depth)")
        }
        "list.put-tag" | "list.put-ahead" | "list.put-back" => {
            Kind::Refused("the device refused a request; the specification's takes all")
        }
        "list.budget" | "pass.budget" => {
            Kind::Refused("the driver has budgets; the specification has none")
        }
        "submit.wait-run" | "submit.wait-retry" | "submit.wait-add" => {
            Kind::Refused("a task waited for a scheduler tag (queue.nr_requests)")
        }
        "run.take-dispatch" | "run.mark-restart" => {
            Kind::Refused("there were leftovers; the specification has none")
        }
        "complete.clear-restart" | "complete.visit" => {
            Kind::Refused("the end of a request ran the queue; the specification has none")
        }
        name if name.starts_with("requeue") => {
            Kind::Refused("the driver gave a request back; the specification has no requeueing")
        }
        _ => Kind::Others,
    }
}
