//! Finds an order of a target's events in which all its choices are those of the kernel.
//!
//! Two events without an order between their records are tried both ways: only the records limit
//! the order. Of events with the same effect (`Apart`) only the one that ends first is tried: any
//! order has an equivalent one with these in sequence. Each level of the search has applied one
//! more event; states that chose otherwise than the kernel are dropped, and if none is left the
//! choice was a wrong one, and the kernel's is imposed on all of them. Not here: tags (`tags.rs`).

use blkmq::dm::multipath::Multipath;
use blkmq::dm::selector::SelectorKind;
use blkmq::dm::table::Table;
use blkmq::dm::{Ending, Incoming, Mapped, Mapping, PathId};
use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::held::Window;
use super::silent::{Changes, Choices};
use super::tags::Tags;
use super::{Atom, What};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Explanation {
    /// Paths that were chosen.
    pub(crate) choices: Judged,
    /// Clones that found a tag or none, and failed ones that were tried again or not.
    pub(crate) clones: Judged,
    /// Changes of the target without a record.
    pub(super) silent: Changes,
}

/// Decisions of one kind that show in the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) total: u64,
    /// Those that the model made as well, but not in another order that the records allow.
    pub(crate) open: u64,
    /// Those that it did not make, in their order.
    pub(crate) wrong: Vec<Wrong>,
}

/// A decision that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Its number among its kind, first 1.
    pub(crate) index: u64,
    /// The record after it.
    pub(crate) time: SimTime,
    pub(crate) kernel: Did,
    /// The model's result.
    pub(crate) model: Did,
    pub(crate) target: Multipath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    /// It was mapped to a path.
    Goes(PathId),
    /// Its clone has a tag of the path.
    Tag(PathId),
    /// Its clone has none.
    NoTag(PathId),
    Back,
    Over,
}

struct Known<'a> {
    tags: &'a Tags,
    choices: &'a Choices,
    atoms: &'a [Atom],
}

impl Known<'_> {
    fn window(&self, index: usize) -> Window {
        (self.atoms[index].after, self.atoms[index].before)
    }
}

/// A target in which some of the atoms have happened.
#[derive(Clone, PartialEq, Eq)]
struct Hypothesis {
    // The field that distinguishes most states comes first.
    /// All before this one have happened.
    next: usize,
    /// Later ones that have, in order.
    ahead: Vec<usize>,
    /// Tags in use, as `Tags` counts them.
    in_use: Vec<u32>,
    silent: Changes,
    target: Multipath,
}

/// Properties that distinguish requests of one length on one path for selectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Apart {
    /// On which CPU they are mapped.
    cpu: bool,
    time: bool,
    /// No choice depends on the requests in flight of a path.
    uncounted: bool,
}

impl Apart {
    /// That of the selectors of a table.
    pub(super) fn of(table: &Table) -> Apart {
        let mut apart = Apart {
            uncounted: true,
            ..Apart::default()
        };
        for group in &table.groups {
            let counts = !matches!(
                group.selector,
                SelectorKind::RoundRobin | SelectorKind::IoAffinity
            );
            apart.uncounted &= !counts || group.paths.len() < 2;
            match group.selector {
                // Up to 4.6 it counts repetitions by CPU.
                SelectorKind::RoundRobin | SelectorKind::IoAffinity => apart.cpu = true,
                SelectorKind::HistoricalServiceTime => apart.time = true,
                SelectorKind::QueueLength | SelectorKind::ServiceTime => {}
            }
        }
        apart
    }

    /// It makes no difference which of both happens first.
    fn alike(self, tags: &Tags, one: What, other: What) -> bool {
        let time = |one: SimTime, other: SimTime| !self.time || one == other;
        let cpu =
            |one: CpuId, other: CpuId| one == other || !self.cpu && tags.of_one_queue(one, other);
        match (one, other) {
            (What::Map { io: a, path: p }, What::Map { io: b, path: q }) => {
                (p, a.bytes) == (q, b.bytes) && cpu(a.cpu, b.cpu) && time(a.now, b.now)
            }
            (What::Start { mapped: a }, What::Start { mapped: b }) => a == b,
            (What::Tag { path: p, cpu: a }, What::Tag { path: q, cpu: b }) => p == q && cpu(a, b),
            (
                What::Undo {
                    started,
                    over,
                    cpu: on,
                    ..
                }
                | What::End {
                    started,
                    over,
                    cpu: on,
                    ..
                },
                What::Undo {
                    started: began,
                    over: ended,
                    cpu: at,
                    ..
                }
                | What::End {
                    started: began,
                    over: ended,
                    cpu: at,
                    ..
                },
            ) => {
                let same = one == other.ended((started, over, on));
                same && cpu(on, at) && time(started, began) && time(over, ended)
            }
            _ => false,
        }
    }
}

/// A difference from the kernel: its kind, and both results.
#[derive(Clone, Copy, Debug)]
struct Otherwise {
    of_clone: bool,
    kernel: Did,
    model: Did,
}

/// States that one level keeps. A right order may be among those that are dropped: with 64 of them
/// 11 of 1558 clones of `dm-null` (v4.5, 1 ms) were taken for wrong ones, with 128 and with 1024
/// none.
const STATES: usize = 128;

/// The states with the fewest changes that no record shows.
fn least_silent(mut states: Vec<Hypothesis>) -> Vec<Hypothesis> {
    let least = states.iter().map(|state| state.silent.total()).min();
    states.retain(|state| Some(state.silent.total()) == least);
    states
}

/// Goes through all atoms, in any order.
pub(super) fn explain(target: Multipath, apart: Apart, tags: &Tags, atoms: &[Atom]) -> Explanation {
    let mut atoms = atoms.to_vec();
    atoms.sort_by_key(|atom| (atom.after, atom.before));
    let known = Known {
        tags,
        choices: &Choices::of(&atoms),
        atoms: &atoms,
    };
    let mut found = Explanation::default();
    // By atom: a state chose otherwise, of the path or of the clone.
    let mut doubted = [vec![false; atoms.len()], vec![false; atoms.len()]];
    let first = Hypothesis {
        target,
        in_use: tags.none(),
        next: 0,
        ahead: Vec::new(),
        silent: Changes::default(),
    };
    let mut states = vec![first];
    for _ in 0..atoms.len() {
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        for state in &states {
            for index in state.possible(&atoms, apart, tags) {
                let mut state = state.clone();
                match state.take(index, &known) {
                    Ok(()) => add(&mut right, state),
                    Err(otherwise) => {
                        doubted[usize::from(otherwise.of_clone)][index] = true;
                        wrong.push((index, otherwise, state));
                    }
                }
            }
        }
        if !right.is_empty() {
            states = least_silent(right);
            continue;
        }
        // The one that had to come first; the others stay possible.
        let index = wrong.iter().map(|(index, ..)| *index).min();
        let index = index.expect("something is left");
        states.clear();
        let mut first = None;
        for (_, otherwise, mut state) in wrong.into_iter().filter(|(of, ..)| *of == index) {
            first.get_or_insert_with(|| (otherwise, state.target.clone()));
            state.force(tags, &atoms[index]);
            add(&mut states, state);
        }
        let (otherwise, target) = first.expect("a choice was wrong");
        let judged = match otherwise.of_clone {
            true => &mut found.clones,
            false => &mut found.choices,
        };
        judged.wrong.push(Wrong {
            index: index as u64,
            time: atoms[index].before,
            kernel: otherwise.kernel,
            model: otherwise.model,
            target,
        });
    }
    found.silent = states.first().map_or(Changes::default(), |of| of.silent);
    let [choices, clones] = &doubted;
    count(&mut found.choices, &atoms, choices, |what| {
        matches!(what, What::Map { path: Some(_), .. })
    });
    count(&mut found.clones, &atoms, clones, |what| tags.judge(what));
    found
}

fn count(judged: &mut Judged, atoms: &[Atom], doubted: &[bool], counts: impl Fn(What) -> bool) {
    let chosen = |&index: &usize| counts(atoms[index].what);
    let numbers: Vec<usize> = (0..atoms.len()).filter(chosen).collect();
    judged.total = numbers.len() as u64;
    judged.wrong.sort_by_key(|wrong| wrong.index);
    let is_wrong = |index: usize| judged.wrong.iter().any(|of| of.index == index as u64);
    let open = |&&index: &&usize| doubted[index] && !is_wrong(index);
    judged.open = numbers.iter().filter(open).count() as u64;
    for wrong in &mut judged.wrong {
        let before = |&&index: &&usize| (index as u64) < wrong.index;
        wrong.index = numbers.iter().filter(before).count() as u64 + 1;
    }
}

fn add(states: &mut Vec<Hypothesis>, state: Hypothesis) {
    if states.len() < STATES && !states.contains(&state) {
        states.push(state);
    }
}

impl Hypothesis {
    /// Atoms that may come next: no other one was over when they began, and what they go on from
    /// has happened. If none of them decides anything, the one that is over first.
    fn possible(&self, atoms: &[Atom], apart: Apart, tags: &Tags) -> Vec<usize> {
        let left = |index: &usize| !self.happened(*index);
        let left = (self.next..atoms.len()).filter(left);
        let mut possible: Vec<usize> = Vec::new();
        let mut over = None;
        for index in left {
            if over.is_some_and(|over| atoms[index].after >= over) {
                break;
            }
            let before = atoms[index].before;
            over = Some(over.map_or(before, |over: SimTime| over.min(before)));
            // start_io() comes after the choice, which is the atom before it.
            let begun = match atoms[index].what {
                What::Start { .. } => self.happened(index - 1),
                _ => true,
            };
            if !begun {
                continue;
            }
            let what = atoms[index].what;
            if apart.uncounted && matches!(what, What::Start { .. }) {
                return vec![index];
            }
            let same = |other: &&mut usize| apart.alike(tags, what, atoms[**other].what);
            match possible.iter_mut().find(same) {
                Some(other) if atoms[*other].before > before => *other = index,
                Some(_) => {}
                None => possible.push(index),
            }
        }
        let decides = |&index: &usize| atoms[index].what.decides();
        if !possible.iter().any(decides) {
            // An atom that decides comes after the one that is over first.
            let first = possible
                .iter()
                .copied()
                .min_by_key(|&index| atoms[index].before);
            possible = first.into_iter().collect();
        }
        possible
    }

    fn happened(&self, index: usize) -> bool {
        index < self.next || self.ahead.contains(&index)
    }

    /// It happens. An error if what came of it is not what the kernel came to.
    fn take(&mut self, index: usize, known: &Known<'_>) -> Result<(), Otherwise> {
        let result = self.happens(index, known);
        // Queues are run elsewhere, and path events have no receiver: equal states must compare
        // equal.
        self.target.take_todo();
        result
    }

    fn happens(&mut self, index: usize, known: &Known<'_>) -> Result<(), Otherwise> {
        self.ahead.push(index);
        self.ahead.sort_unstable();
        while self.ahead.first() == Some(&self.next) {
            self.ahead.remove(0);
            self.next += 1;
        }
        let (tags, atom) = (known.tags, &known.atoms[index]);
        let while_ = (atom.after, atom.before);
        match atom.what {
            What::Map {
                io,
                path: Some(path),
            } => self.map(known, io, (path, index)),
            What::Map { io, path: None } => self.comes_back(known, io, index),
            What::Start { mapped } => {
                self.target.start(mapped);
                Ok(())
            }
            What::Tag { path, cpu } => self.take_tag(tags, (path, cpu), while_),
            What::Undo {
                mapped,
                started,
                over,
                cpu,
                no_tag,
            } => {
                self.target.undo(mapped, started, over);
                if no_tag {
                    return self.finds_none(tags, (mapped.path, cpu), while_);
                }
                tags.give(&mut self.in_use, mapped.path, cpu);
                Ok(())
            }
            What::End {
                mapped,
                started,
                over,
                cpu,
                status,
                again,
            } => {
                tags.give(&mut self.in_use, mapped.path, cpu);
                let ending = self.target.end(mapped, status, started, over);
                let back = |again| if again { Did::Back } else { Did::Over };
                let model = !matches!(ending, Ending::Done(_));
                match model == again {
                    true => Ok(()),
                    false => otherwise(true, back(again), back(model)),
                }
            }
        }
    }

    /// A path is chosen; without a scheduler there its clone finds a tag or none at once.
    fn map(
        &mut self,
        known: &Known<'_>,
        io: Incoming,
        (path, index): (PathId, usize),
    ) -> Result<(), Otherwise> {
        let choices = (known.choices, index);
        let mapping = self.silent.map(&mut self.target, io, path, choices);
        if !matches!(mapping, Mapping::To(mapped) if mapped.path == path) {
            return otherwise(false, Did::Goes(path), did(mapping));
        }
        match known.tags.with_request(path) {
            true => self.take_tag(known.tags, (path, io.cpu), known.window(index)),
            false => Ok(()),
        }
    }

    /// A request has no clone: no path was there for it, or no tag on its path.
    fn comes_back(
        &mut self,
        known: &Known<'_>,
        io: Incoming,
        index: usize,
    ) -> Result<(), Otherwise> {
        let Mapping::To(mapped) = self.target.map(io) else {
            return Ok(());
        };
        self.target.no_clone(mapped.path, false);
        if !known.tags.with_request(mapped.path) {
            return Ok(());
        }
        let place = (mapped.path, io.cpu);
        let found = self.finds_none(known.tags, place, known.window(index));
        if found.is_err() && known.choices.none_follows(index) {
            self.silent.fail_all(&mut self.target);
            return Ok(());
        }
        found
    }

    fn take_tag(
        &mut self,
        tags: &Tags,
        (path, cpu): (PathId, CpuId),
        while_: Window,
    ) -> Result<(), Otherwise> {
        let free = tags.is_free(&self.in_use, (path, cpu), while_);
        tags.take(&mut self.in_use, path, cpu);
        match free {
            true => Ok(()),
            false => otherwise(true, Did::Tag(path), Did::NoTag(path)),
        }
    }

    fn finds_none(
        &self,
        tags: &Tags,
        (path, cpu): (PathId, CpuId),
        while_: Window,
    ) -> Result<(), Otherwise> {
        match tags.may_lack(&self.in_use, (path, cpu), while_) {
            true => Ok(()),
            false => otherwise(true, Did::NoTag(path), Did::Tag(path)),
        }
    }

    /// The kernel's choice, after the model's. Tags follow the kernel anyway.
    fn force(&mut self, tags: &Tags, atom: &Atom) {
        if let What::Map {
            io,
            path: Some(path),
        } = atom.what
        {
            self.target.force(path);
            if tags.with_request(path) {
                tags.take(&mut self.in_use, path, io.cpu);
            }
        }
    }
}

/// The model came to another result.
fn otherwise(of_clone: bool, kernel: Did, model: Did) -> Result<(), Otherwise> {
    Err(Otherwise {
        of_clone,
        kernel,
        model,
    })
}

fn did(mapping: Mapping) -> Did {
    match mapping {
        Mapping::To(Mapped { path, .. }) => Did::Goes(path),
        Mapping::Requeue | Mapping::DelayRequeue | Mapping::Held => Did::Back,
        Mapping::Kill(_) => Did::Over,
    }
}
