//! Finds an order of what happened to a target in which all its choices are those of the kernel.
//!
//! Two things between whose records there is no other order are tried in both: what is left open
//! is only what the records leave open. Each level of the search has done one more of them; states
//! that chose otherwise than the kernel are dropped, and if none is left the choice was a wrong
//! one, and the kernel's is imposed on all of them.

use blkmq::dm::multipath::Multipath;
use blkmq::dm::{Mapped, Mapping, PathId};
use blkmq::time::SimTime;

use super::{Atom, What};

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Choices that show in the records.
    pub(crate) total: u64,
    /// Those that the model made as well, but not in another order that the records allow.
    pub(crate) open: u64,
    /// Choices that it did not make, in their order.
    pub(crate) wrong: Vec<Wrong>,
}

/// A choice that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Which choice, first 1.
    pub(crate) index: u64,
    /// The A of its clone.
    pub(crate) time: SimTime,
    /// The path it went to.
    pub(crate) kernel: PathId,
    /// What the model came to.
    pub(crate) model: Mapping,
    /// The target then.
    pub(crate) target: Multipath,
}

/// A target in which some of the atoms have happened.
#[derive(Clone, PartialEq, Eq)]
struct State {
    target: Multipath,
    /// All before this one have happened.
    next: usize,
    /// Later ones that have, in order.
    ahead: Vec<usize>,
}

/// States that one level keeps; more are as good as these.
const STATES: usize = 32;

/// Atoms that are tried as the next one; more than so many overlap in no capture of a few CPUs.
const ABREAST: usize = 16;

/// Goes through all atoms, in any order.
pub(super) fn explain(target: Multipath, atoms: &[Atom]) -> Told {
    let mut atoms = atoms.to_vec();
    atoms.sort_by_key(|atom| (atom.after, atom.before));
    let mut told = Told::default();
    let mut doubted = vec![false; atoms.len()];
    let first = State {
        target,
        next: 0,
        ahead: Vec::new(),
    };
    let mut states = vec![first];
    for _ in 0..atoms.len() {
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        for state in &states {
            for index in state.possible(&atoms) {
                let mut state = state.clone();
                match state.take(index, &atoms[index]) {
                    None => add(&mut right, state),
                    Some(mapping) => {
                        doubted[index] = true;
                        wrong.push((index, mapping, state));
                    }
                }
            }
        }
        if !right.is_empty() {
            states = right;
            continue;
        }
        // The one that had to come first; the others stay possible.
        let index = wrong.iter().map(|(index, ..)| *index).min();
        let index = index.expect("something is left");
        states.clear();
        let mut model = None;
        for (_, mapping, mut state) in wrong.into_iter().filter(|(of, ..)| *of == index) {
            model.get_or_insert_with(|| (mapping, state.target.clone()));
            state.impose(&atoms[index]);
            add(&mut states, state);
        }
        let path = path_of(atoms[index].what);
        let (kernel, (model, target)) = path.zip(model).expect("a choice was wrong");
        told.wrong.push(Wrong {
            index: index as u64,
            time: atoms[index].before,
            kernel,
            model,
            target,
        });
    }
    count(&mut told, &atoms, &doubted);
    told
}

fn count(told: &mut Told, atoms: &[Atom], doubted: &[bool]) {
    let chosen = |&index: &usize| path_of(atoms[index].what).is_some();
    let numbers: Vec<usize> = (0..atoms.len()).filter(chosen).collect();
    told.total = numbers.len() as u64;
    told.wrong.sort_by_key(|wrong| wrong.index);
    let is_wrong = |index: usize| told.wrong.iter().any(|wrong| wrong.index == index as u64);
    let open = |&&index: &&usize| doubted[index] && !is_wrong(index);
    told.open = numbers.iter().filter(open).count() as u64;
    for wrong in &mut told.wrong {
        let before = |&&index: &&usize| (index as u64) < wrong.index;
        wrong.index = numbers.iter().filter(before).count() as u64 + 1;
    }
}

/// The path that was chosen, if one was.
fn path_of(what: What) -> Option<PathId> {
    match what {
        What::Map { path, .. } => path,
        What::Undo { .. } | What::End { .. } => None,
    }
}

fn add(states: &mut Vec<State>, state: State) {
    if states.len() < STATES && !states.contains(&state) {
        states.push(state);
    }
}

impl State {
    /// Atoms that may come next: no other one was over when they began.
    fn possible(&self, atoms: &[Atom]) -> Vec<usize> {
        let left = |index: &usize| !self.ahead.contains(index);
        let left = (self.next..atoms.len()).filter(left);
        let mut possible = Vec::new();
        let mut over = None;
        for index in left.take(ABREAST) {
            if over.is_some_and(|over| atoms[index].after >= over) {
                break;
            }
            let before = atoms[index].before;
            over = Some(over.map_or(before, |over: SimTime| over.min(before)));
            possible.push(index);
        }
        possible
    }

    /// It happens. A choice that is not the kernel's is what the target came to instead.
    fn take(&mut self, index: usize, atom: &Atom) -> Option<Mapping> {
        self.ahead.push(index);
        self.ahead.sort_unstable();
        while self.ahead.first() == Some(&self.next) {
            self.ahead.remove(0);
            self.next += 1;
        }
        let target = &mut self.target;
        match atom.what {
            What::Map { io, path } => {
                let mapping = target.map(io);
                return match (mapping, path) {
                    (Mapping::To(mapped), Some(path)) if mapped.path == path => {
                        target.start(mapped);
                        None
                    }
                    (mapping, Some(_)) => Some(mapping),
                    (Mapping::To(mapped), None) => {
                        target.no_clone(mapped.path, false);
                        None
                    }
                    (_, None) => None,
                };
            }
            What::Undo { mapped, started } => target.undo(mapped, started, atom.before),
            What::End {
                mapped,
                started,
                status,
            } => {
                target.end(mapped, status, started, atom.before);
            }
        }
        None
    }

    /// The kernel's choice, after the model's.
    fn impose(&mut self, atom: &Atom) {
        if let What::Map {
            io,
            path: Some(path),
        } = atom.what
        {
            self.target.impose(path);
            self.target.start(Mapped {
                path,
                bytes: io.bytes,
            });
        }
    }
}
