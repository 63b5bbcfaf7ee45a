//! Every state of a configuration, breadth or depth first, counted as TLC counts.
//!
//! Distinct states are different projections, compared whole. Generated states are the first state
//! and every action of every distinct state. Whether projections decide the future is tested: a
//! state whose projection is known but which differs otherwise is expanded as well, uncounted, and
//! both must have the same successors.

use std::collections::VecDeque;

use blkmq::schedule::{Schedule, Step};

use super::Specification;
use super::table::{Id, Table};
use crate::fingerprint::{Seen, fingerprint};
use crate::tlc::Verdict;

/// The most twins that only other twins lead to: ever-growing counters would make any number of
/// them.
const FOLLOWED_MAX: usize = 5_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Continue after a violation, so that counts are exact.
    pub whole: bool,
    pub depth_first: bool,
    /// One in so many states with a known projection is expanded for the test of projections; 0:
    /// none.
    pub test_one_in: u64,
}

impl Default for Options {
    /// Breadth first to the first violation, all projections tested.
    fn default() -> Options {
        Options {
            whole: false,
            depth_first: false,
            test_one_in: 1,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explored {
    pub spec: &'static str,
    /// Whether all invariants hold.
    pub verdict: Verdict,
    /// The first state and every action of every distinct state.
    pub generated: u64,
    /// Different projections.
    pub distinct: u64,
    /// States on the longest of the shortest paths; meaningless depth first.
    pub depth: u64,
    /// How often each action was taken, by name.
    pub taken: Vec<(&'static str, u64)>,
    /// States expanded for the test of projections.
    pub tested: u64,
    /// The search saw a state that ends well: quiet, with every request done.
    pub ends: bool,
    /// A shortest path to the first violation (breadth first), or a path to it.
    pub schedule: Vec<Step>,
}

impl Explored {
    pub fn schedule_file(
        &self,
        variant: &str,
        constants: &[(String, String)],
        observed: &[String],
    ) -> Schedule {
        Schedule {
            spec: self.spec.to_owned(),
            variant: variant.to_owned(),
            shows: self.verdict.to_string(),
            settings: constants.to_vec(),
            steps: showing(&self.schedule, observed),
            repeats_from: None,
        }
    }
}

/// Steps with these variables only.
pub(super) fn showing(steps: &[Step], observed: &[String]) -> Vec<Step> {
    let mut steps = steps.to_vec();
    for step in &mut steps {
        step.observed.retain(|(name, _)| observed.contains(name));
    }
    steps
}

/// How a state was first reached.
#[derive(Clone, Copy, Debug)]
struct Origin<A> {
    parent: Id,
    action: A,
}

pub fn explore<S: Specification>(setting: &S, options: Options) -> Explored {
    let mut search = Search::new(setting, options);
    search.run();
    search.report()
}

#[derive(Debug)]
struct Search<'a, S: Specification> {
    setting: &'a S,
    options: Options,
    runner: S::Runner,
    table: Table,
    /// None: the first state.
    origins: Vec<Option<Origin<S::Action>>>,
    /// Hash of the concrete state that was expanded, for each distinct one.
    concrete: Vec<u128>,
    /// Digest of the successors of each expanded state.
    digests: Vec<u128>,
    /// States that differ from the expanded one with the same projection.
    variants: VecDeque<(Id, S::World)>,
    /// Hashes of all states that ever were among `variants`.
    twins: Seen,
    /// The number of twins that only other twins lead to.
    followed: usize,
    spare: Vec<S::World>,
    generated: u64,
    depth: u64,
    tested: u64,
    taken: Vec<u64>,
    ends: bool,
    violated: Option<(Id, &'static str)>,
    /// A projection that does not decide the future.
    torn: Option<String>,
    actions: Vec<S::Action>,
    projection: Vec<u8>,
}

impl<'a, S: Specification> Search<'a, S> {
    fn new(setting: &'a S, options: Options) -> Search<'a, S> {
        Search {
            setting,
            options,
            runner: setting.runner(false),
            table: Table::new(),
            origins: Vec::new(),
            concrete: Vec::new(),
            digests: Vec::new(),
            variants: VecDeque::new(),
            twins: Seen::new(),
            followed: 0,
            spare: Vec::new(),
            generated: 1,
            depth: 0,
            tested: 0,
            taken: vec![0; S::ACTIONS.len()],
            ends: false,
            violated: None,
            torn: None,
            actions: Vec::new(),
            projection: Vec::new(),
        }
    }

    fn run(&mut self) {
        self.visit();
        // Also after a violation: expanded states have twins.
        self.test_variants();
    }

    /// Visits all states, or those up to the first violation.
    fn visit(&mut self) {
        let first = self.setting.first();
        self.meet(&first, None);
        let mut open = vec![(0, first)];
        if self.options.depth_first {
            while let Some((id, world)) = open.pop() {
                self.expand(id, world, &mut open);
                if self.stops() {
                    return;
                }
            }
            return;
        }
        while !open.is_empty() {
            self.depth += 1;
            let mut next = Vec::with_capacity(open.len() * 2);
            for (id, world) in open.drain(..) {
                self.expand(id, world, &mut next);
                if self.stops() {
                    return;
                }
            }
            open = next;
            // The twins of these states are expanded by now, or will be with the next level.
            if self.depth.is_multiple_of(2) {
                self.test_variants();
            }
            if self.stops() {
                return;
            }
        }
    }

    fn stops(&self) -> bool {
        self.torn.is_some() || (self.violated.is_some() && !self.options.whole)
    }

    /// Records a state. Returns its number, and whether its projection is new.
    fn meet(&mut self, world: &S::World, origin: Option<Origin<S::Action>>) -> (Id, bool) {
        self.projection.clear();
        self.setting.project(world, &mut self.projection);
        let (id, new) = self.table.insert(&self.projection);
        if !new {
            return (id, false);
        }
        self.origins.push(origin);
        if self.options.test_one_in > 0 {
            self.concrete.push(self.setting.concrete(world));
            self.digests.push(0);
        }
        if self.violated.is_none()
            && let Some(name) = self.setting.broken(world)
        {
            self.violated = Some((id, name));
        }
        self.ends |= self.setting.ends_well(world);
        (id, true)
    }

    fn expand(&mut self, id: Id, world: S::World, next: &mut Vec<(Id, S::World)>) {
        let mut actions = core::mem::take(&mut self.actions);
        self.setting.actions(&world, &mut actions);
        let mut digest = 0;
        let last = actions.len();
        let mut source = Some(world);
        for (index, &action) in actions.iter().enumerate() {
            let world = source.as_ref().expect("the last action takes it");
            self.count(world, action);
            // The last action may reuse the state itself.
            let mut successor = match index + 1 == last {
                true => source.take().expect("it was there"),
                false => self.copy(world),
            };
            self.setting.take(&mut self.runner, &mut successor, action);
            let (met, new) = self.meet(&successor, Some(Origin { parent: id, action }));
            digest = self.digest(digest, action);
            if new {
                next.push((met, successor));
            } else {
                self.known(met, successor);
            }
            if self.stops() {
                break;
            }
        }
        self.spare.extend(source);
        if self.options.test_one_in > 0 {
            self.digests[id as usize] = digest | 1;
        }
        self.actions = actions;
    }

    fn copy(&mut self, world: &S::World) -> S::World {
        match self.spare.pop() {
            Some(mut spare) => {
                spare.clone_from(world);
                spare
            }
            None => world.clone(),
        }
    }

    fn count(&mut self, world: &S::World, action: S::Action) {
        self.generated += 1;
        self.taken[self.setting.kind(world, action)] += 1;
    }

    /// Adds one successor, whose projection is in the buffer, to a digest of all.
    fn digest(&self, digest: u128, action: S::Action) -> u128 {
        if self.options.test_one_in == 0 {
            return 0;
        }
        let action = self.setting.blurred(action);
        digest.wrapping_add(fingerprint(&(action, &self.projection)))
    }

    /// A state whose projection is known: if it differs otherwise, its successors are compared.
    fn known(&mut self, id: Id, world: S::World) {
        if self.options.test_one_in == 0 {
            return self.spare.push(world);
        }
        let concrete = self.setting.concrete(&world);
        let differs = concrete != self.concrete[id as usize];
        let sampled = (concrete as u64).is_multiple_of(self.options.test_one_in);
        if differs && sampled && self.twins.insert(concrete).is_some() {
            self.variants.push_back((id, world));
        } else {
            self.spare.push(world);
        }
    }

    /// Expands states that differ from others with the same projection, without counting; also, up
    /// to a bound, their successors.
    fn test_variants(&mut self) {
        let mut later = VecDeque::new();
        while let Some((id, world)) = self.variants.pop_front() {
            if self.torn.is_some() {
                break;
            }
            let expected = self.digests[id as usize];
            if expected == 0 {
                later.push_back((id, world));
                continue;
            }
            self.tested += 1;
            self.test_variant(id, expected, &world);
            self.spare.push(world);
        }
        self.variants = later;
    }

    /// Compares the successors of a state with the digest recorded for its projection.
    fn test_variant(&mut self, id: Id, expected: u128, world: &S::World) {
        let mut actions = core::mem::take(&mut self.actions);
        self.setting.actions(world, &mut actions);
        let mut digest = 0;
        for &action in &actions {
            let mut successor = self.copy(world);
            self.setting.take(&mut self.runner, &mut successor, action);
            self.projection.clear();
            self.setting.project(&successor, &mut self.projection);
            digest = self.digest(digest, action);
            match self.table.find(&self.projection) {
                Some(met) if self.followed < FOLLOWED_MAX => {
                    let before = self.variants.len();
                    self.known(met, successor);
                    self.followed += self.variants.len() - before;
                }
                // Without this successor the digests differ.
                _ => self.spare.push(successor),
            }
        }
        self.actions = actions;
        if digest | 1 != expected {
            self.torn = Some(format!(
                "two states with projection {:?} have different successors",
                self.table.get(id)
            ));
        }
    }

    fn report(mut self) -> Explored {
        let verdict = match (&self.torn, self.violated) {
            (Some(text), _) => Verdict::Failed(text.clone()),
            (None, Some((_, name))) => Verdict::Violated(name.to_owned()),
            (None, None) => Verdict::Holds,
        };
        let schedule = match self.violated {
            Some((id, _)) => self.path(id),
            None => Vec::new(),
        };
        let taken = S::ACTIONS.iter().copied().zip(self.taken);
        Explored {
            spec: S::NAME,
            verdict,
            generated: self.generated,
            distinct: self.table.len() as u64,
            depth: self.depth,
            taken: taken.filter(|&(_, count)| count > 0).collect(),
            tested: self.tested,
            ends: self.ends,
            schedule,
        }
    }

    /// The steps to a state, with what each one changed.
    fn path(&mut self, to: Id) -> Vec<Step> {
        let mut actions = Vec::new();
        let mut at = to;
        while let Some(Origin { parent, action }) = self.origins[at as usize] {
            actions.push(action);
            at = parent;
        }
        actions.reverse();
        super::replay::steps(self.setting, &actions)
    }
}

#[cfg(test)]
mod tests;
