//! Samples by component: whose time it is.

use std::collections::BTreeMap;

use sim::cost::Component;

use super::samples::{Samples, Space, Stack};
use super::symbols::{Class, Symbols};

/// Weights of samples, in the samples' unit.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shares {
    work: [f64; Component::ALL.len()],
    pub waiting: f64,
    pub idle: f64,
    /// Part of the others that a caller of the running function decided.
    pub by_caller: f64,
    /// By the symbol of the running function.
    pub unknown: BTreeMap<String, f64>,
}

impl Shares {
    /// The innermost function of a stack that the table knows decides.
    pub fn of(samples: &Samples, symbols: &Symbols) -> Shares {
        let mut shares = Shares::default();
        for stack in &samples.stacks {
            let weight = stack.weight;
            let Some((depth, class)) = decides(stack, symbols) else {
                let leaf = stack
                    .frames
                    .first()
                    .map_or("(no symbol)", |leaf| leaf.symbol);
                *shares.unknown.entry(leaf.to_owned()).or_default() += weight;
                continue;
            };
            match class {
                Class::Work(component) => shares.work[component as usize] += weight,
                Class::Waiting => shares.waiting += weight,
                Class::Idle => shares.idle += weight,
            }
            if depth > 0 && class != Class::Idle {
                shares.by_caller += weight;
            }
        }
        shares
    }

    /// All but idle time.
    pub fn busy(&self) -> f64 {
        let unknown = self.unknown.values().sum::<f64>();
        self.work.iter().sum::<f64>() + self.waiting + unknown
    }

    /// Cycles per I/O of the components that have samples, from the cycles of all busy time.
    pub fn cycles_per_io(&self, cycles: f64) -> BTreeMap<String, f64> {
        let part = |component: Component| self.work[component as usize] / self.busy();
        let sampled = Component::ALL.into_iter().filter(|&c| part(c) > 0.0);
        let cycles = sampled.map(|c| (c.name().to_owned(), part(c) * cycles));
        cycles.collect()
    }
}

/// The frame that decides, and its class. Code of user space is `user`, and no caller there
/// decides about a function of the kernel.
fn decides(stack: &Stack, symbols: &Symbols) -> Option<(usize, Class)> {
    if stack.frames.first()?.space == Space::User {
        return Some((0, Class::Work(Component::User)));
    }
    let ours = stack
        .frames
        .iter()
        .take_while(|frame| frame.space != Space::User);
    let mut classes = ours.enumerate().filter_map(|(depth, frame)| {
        let class = symbols.class(frame.symbol)?;
        Some((depth, class))
    });
    classes.next()
}
