//! One action: the calls of the merge code that the policy makes in one critical section. A call
//! that reports a fault has used a freed queue; only the fault is kept of that action.

use blkmq::elevator::cfq::merge::{Fault, QId, Ties};

use super::setting::Setting;
use super::world::{Action, Named, process};
use crate::merging;

type Side = merging::Side<Named>;

/// Takes an action of those that are possible.
pub(super) fn take(
    setting: &Setting,
    ties: &mut Ties,
    side: &mut Side,
    action: Action,
) -> Result<(), Fault> {
    match action {
        Action::Create(p) => request(setting, ties, side, Asks::sync(p)),
        Action::Fallback(p) => request(setting, ties, side, Asks::sync(p).without_memory()),
        Action::Submit(p) | Action::Redirect(p) => request(setting, ties, side, Asks::sync(p)),
        Action::Leave(p) => {
            let shared = ties
                .slot(process(p), true)
                .expect("the process has a queue");
            set_due(ties, shared, true);
            request(setting, ties, side, Asks::sync(p))?;
            set_due(ties, shared, false);
            Ok(())
        }
        Action::SubmitAsync(p) | Action::RedirectAsync(p) => {
            request(setting, ties, side, Asks::shared(p))
        }
        Action::FallbackAsync(p) => request(setting, ties, side, Asks::shared(p).without_memory()),
        Action::Complete(q) => {
            side.io[usize::from(q)] -= 1;
            let q = side.more.numbers[usize::from(q)].expect("it was created");
            ties.release(q, false)
        }
        Action::Exit(p) => {
            side.exits(p);
            ties.exit(process(p), false)?;
            ties.exit(process(p), true)
        }
        Action::Move(p) => ties.change_group(process(p)),
        Action::Merge(c, n) => {
            let of = |q: u8| side.more.numbers[usize::from(q)].expect("it was created");
            ties.set_up(of(c), of(n)).map(|_| ())
        }
    }
}

/// The requester of a queue.
#[derive(Clone, Copy)]
struct Asks {
    process: u8,
    sync: bool,
    memory: bool,
}

impl Asks {
    fn sync(process: u8) -> Asks {
        Asks {
            process,
            sync: true,
            memory: true,
        }
    }

    fn shared(process: u8) -> Asks {
        Asks {
            sync: false,
            ..Asks::sync(process)
        }
    }

    fn without_memory(self) -> Asks {
        Asks {
            memory: false,
            ..self
        }
    }
}

/// cfq_set_request(): an existing queue or a new one, and a request in it.
fn request(setting: &Setting, ties: &mut Ties, side: &mut Side, asks: Asks) -> Result<(), Fault> {
    let Asks {
        process: p,
        sync,
        memory,
    } = asks;
    side.todo[usize::from(p)] -= 1;
    let q = match ties.find(process(p), sync, |_| false)? {
        Some(q) => q,
        None => {
            let (q, fresh) = ties.give(process(p), (!sync).then_some(0), memory)?;
            if fresh {
                name(setting, side, asks, q);
            }
            q
        }
    };
    let at = side
        .more
        .numbers
        .iter()
        .position(|&number| number == Some(q));
    side.io[at.expect("it has a number")] += 1;
    ties.hold(q, false)
}

fn name(setting: &Setting, side: &mut Side, asks: Asks, q: QId) {
    let at = match asks.sync {
        true => side.born,
        false => setting
            .async_queue()
            .expect("there is an asynchronous queue"),
    };
    side.more.numbers[usize::from(at)] = Some(q);
    if asks.sync {
        side.born += 1;
        side.more.group[usize::from(at)] = asks.process % setting.groups + 1;
    }
}

/// Sets or clears the mark that the queue is to be split.
fn set_due(ties: &mut Ties, q: QId, due: bool) {
    if let Ok(tie) = ties.tie_mut(q) {
        tie.coop = due;
        tie.split_coop = due;
    }
}
