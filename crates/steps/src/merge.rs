//! Labels after which the same code follows are one: whether a path has come to a label from above
//! or around a loop is no difference between two states.

use std::collections::BTreeMap;

use crate::machine::{BlockId, End, Item, Machine, Resume, goto, replaced};
use crate::mutants::unmarked;
use crate::suspension::Label;

/// Directs every way to a label to the first of those that are alike.
pub(crate) fn merge(machine: &mut Machine) {
    loop {
        let mut first: BTreeMap<String, BlockId> = BTreeMap::new();
        let mut to: Vec<BlockId> = (0..machine.blocks.len()).collect();
        for (block, to) in to.iter_mut().enumerate() {
            if let Some(key) = key(machine, block) {
                *to = *first.entry(key).or_insert(block);
            }
        }
        if !direct(machine, &to) {
            return;
        }
    }
}

/// A label, and all that follows up to the next; none of code that is no label's.
fn key(machine: &Machine, block: BlockId) -> Option<String> {
    let mut at = &machine.blocks[block];
    let mut key = match at.resume.as_ref()? {
        Resume::Label(label) => format!("label {} ", name(label.as_ref())),
        Resume::Callee { callee, label } => format!("callee {callee} {} ", name(label.as_ref())),
    };
    let item = |item: &Item| {
        let begins = item
            .begins
            .as_ref()
            .map(|(callee, args)| (callee, args.to_string()));
        let (tokens, declares) = (unmarked(item.tokens.clone()).to_string(), &item.declares);
        format!("{tokens} {:?} {begins:?} {declares:?} ", item.steps)
    };
    let mut seen = vec![block];
    loop {
        key.extend(at.items.iter().map(item));
        match &at.end {
            End::Open => return Some(key),
            End::Suspend(stop) => {
                key += &format!("{} then {}", item(&stop.next), stop.to);
                return Some(key);
            }
            End::Goto(edge) if seen.contains(&edge.to) => {
                key += &format!("goto {}", edge.to);
                return Some(key);
            }
            End::Goto(edge) => {
                seen.push(edge.to);
                at = &machine.blocks[edge.to];
            }
        }
    }
}

fn name(label: Option<&Label>) -> String {
    label.map_or(String::new(), |label| label.name.to_string())
}

/// True if a way changed.
fn direct(machine: &mut Machine, to: &[BlockId]) -> bool {
    let mut changed = false;
    let mut change = |at: &mut BlockId| {
        changed |= to[*at] != *at;
        *at = to[*at];
    };
    for block in &mut machine.blocks {
        for item in &mut block.items {
            for edge in &mut item.edges {
                change(&mut edge.to);
            }
            let tokens = core::mem::take(&mut item.tokens);
            item.tokens = replaced(tokens, &|block| goto(to[block]), &|_| None);
        }
        match &mut block.end {
            End::Open => {}
            End::Goto(edge) => change(&mut edge.to),
            End::Suspend(stop) => change(&mut stop.to),
        }
    }
    changed
}

#[cfg(test)]
mod tests;
