//! What lives over a label, and what a path may not do between two of them.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::visit::Visit;
use syn::{Error, Type};

use crate::machine::{Block, BlockId, Edge, End, LocalId, Machine, Resume, VarId};
use crate::rewrite::AFTER_RELEASE;

pub(crate) type Vars = BTreeSet<VarId>;

/// How the blocks of a machine are reached, and what lives where.
pub(crate) struct Flow {
    /// Reached by a number: the entry, each label, and blocks with several ways to them. The others
    /// are where the one jump to them is.
    pub(crate) numbered: Vec<bool>,
    pub(crate) reached: Vec<bool>,
    /// The block with a number in whose code a block is.
    pub(crate) root: Vec<BlockId>,
    pub(crate) live_in: Vec<Vars>,
    /// Of a block that ends with a label: variables that are set to their defaults there, since
    /// nothing reads them after it.
    pub(crate) resets: Vec<Vars>,
    /// Of a block that ends with a label: a function that it ran may be there still.
    pub(crate) ran: Vec<bool>,
    /// Locals in scope at a label: they must be plain data.
    pub(crate) held: BTreeSet<LocalId>,
    /// The names of the fields; none of a variable that needs no field.
    pub(crate) fields: Vec<Option<Ident>>,
}

impl Flow {
    /// Entered by its number.
    pub(crate) fn is_entered(&self, block: BlockId) -> bool {
        self.numbered[block] && self.reached[block]
    }
}

/// A block and those in whose code it is, from the inside.
fn around(parents: &[Option<BlockId>], block: BlockId) -> impl Iterator<Item = BlockId> {
    core::iter::successors(Some(block), |&at| parents[at])
}

/// Every way out of a block.
pub(crate) fn edges(machine: &Machine, block: BlockId) -> Vec<Edge> {
    let block = &machine.blocks[block];
    let mut edges: Vec<Edge> = block
        .items
        .iter()
        .flat_map(|item| item.edges.clone())
        .collect();
    match &block.end {
        End::Open => {}
        End::Goto(edge) => edges.push(*edge),
        End::Suspend(stop) => edges.push(Edge {
            to: stop.to,
            leaves: true,
        }),
    }
    edges
}

pub(crate) fn analyse(machine: &Machine) -> syn::Result<Flow> {
    let count = machine.blocks.len();
    let mut reached = vec![false; count];
    let mut ways = vec![0; count];
    let mut numbered: Vec<bool> = machine
        .blocks
        .iter()
        .map(|block| block.resume.is_some())
        .collect();
    let mut parents = vec![None; count];
    numbered[0] = true;
    let mut todo = vec![0];
    while let Some(block) = todo.pop() {
        if core::mem::replace(&mut reached[block], true) {
            continue;
        }
        for edge in edges(machine, block) {
            ways[edge.to] += 1;
            numbered[edge.to] |= edge.leaves || ways[edge.to] > 1;
            parents[edge.to] = Some(block);
            todo.push(edge.to);
        }
    }
    for block in 0..count {
        if numbered[block] {
            parents[block] = None;
        }
    }
    let root = (0..count)
        .map(|block| around(&parents, block).last().expect("itself"))
        .collect();
    let live_in = liveness(machine);
    let (resets, ran) = (resets(machine, &live_in), ran(machine));
    let held = held(machine, &reached);
    let mut flow = Flow {
        numbered,
        reached,
        root,
        live_in,
        resets,
        ran,
        held,
        fields: Vec::new(),
    };
    if (0..count).filter(|&block| flow.is_entered(block)).count() > 256 {
        let text = "more than 256 parts: make functions of some of them";
        return Err(Error::new(machine.cx.span(), text));
    }
    flow.fields = fields(machine, &flow);
    refuse_locals_over_labels(machine, &parents)?;
    refuse_borrows(machine, &flow)?;
    refuse_after_release(machine)?;
    Ok(flow)
}

/// Jumps from the code of one part to another part: ways that no label interrupts, and the steps of
/// a function that was just begun.
pub(crate) fn jumps(machine: &Machine, flow: &Flow) -> impl Iterator<Item = (BlockId, BlockId)> {
    let reached = (0..machine.blocks.len()).filter(|&block| flow.reached[block]);
    let ways = reached.flat_map(|block| {
        let from = &machine.blocks[block];
        let begins = from.items.last().is_some_and(|item| item.begins.is_some());
        let stops = matches!(from.end, End::Suspend(_)) && !begins;
        let mut ways = edges(machine, block);
        if stops {
            ways.pop();
        }
        ways.into_iter().map(move |edge| (block, edge.to))
    });
    ways.filter(|&(_, to)| flow.numbered[to])
        .map(|(from, to)| (flow.root[from], to))
}

/// Places of parts in an order in which most jumps go forward: all but those that close a loop.
pub(crate) fn places(machine: &Machine, flow: &Flow) -> Vec<usize> {
    fn visit(block: BlockId, jumps: &[(BlockId, BlockId)], places: &mut [Option<usize>]) {
        if places[block].is_some() {
            return;
        }
        // Until those after it have their places.
        places[block] = Some(0);
        for &(_, to) in jumps.iter().filter(|(from, _)| *from == block) {
            visit(to, jumps, places);
        }
        let before = places.iter().flatten().filter(|&&place| place > 0).count();
        places[block] = Some(places.len() - before);
    }
    let jumps: Vec<_> = jumps(machine, flow).collect();
    let mut places = vec![None; machine.blocks.len()];
    for block in 0..places.len() {
        visit(block, &jumps, &mut places);
    }
    places.into_iter().flatten().collect()
}

/// Variables that something reads after a block has begun, before it sets them.
fn liveness(machine: &Machine) -> Vec<Vars> {
    let mut live_in = vec![Vars::new(); machine.blocks.len()];
    loop {
        let mut changed = false;
        for block in (0..machine.blocks.len()).rev() {
            let live = live_before(machine, block, &live_in);
            changed |= live != live_in[block];
            live_in[block] = live;
        }
        if !changed {
            return live_in;
        }
    }
}

fn live_before(machine: &Machine, block: BlockId, live_in: &[Vars]) -> Vars {
    let block = &machine.blocks[block];
    let mut live = match &block.end {
        End::Open => Vars::new(),
        End::Goto(edge) => live_in[edge.to].clone(),
        End::Suspend(stop) => &live_in[stop.to] | &stop.next.uses,
    };
    for item in block.items.iter().rev() {
        live = &(&live - &item.sets) | &item.uses;
        for edge in &item.edges {
            live.extend(&live_in[edge.to]);
        }
    }
    live
}

/// Variables that are not at their defaults where a block ends with a label, and that nothing
/// reads after it.
fn resets(machine: &Machine, live_in: &[Vars]) -> Vec<Vars> {
    let count = machine.blocks.len();
    let arguments = (0..machine.vars.len()).filter(|&var| machine.vars[var].argument);
    let mut set_in = vec![Vars::new(); count];
    set_in[0] = arguments.collect();
    let mut resets = vec![Vars::new(); count];
    let mut changed = true;
    while core::mem::take(&mut changed) {
        for (at, block) in machine.blocks.iter().enumerate() {
            let mut set = set_in[at].clone();
            let mut flows: Vec<(BlockId, Vars)> = Vec::new();
            for item in &block.items {
                set.extend(item.uses.iter().chain(&item.sets));
                flows.extend(item.edges.iter().map(|edge| (edge.to, set.clone())));
            }
            match &block.end {
                End::Open => {}
                End::Goto(edge) => flows.push((edge.to, set)),
                End::Suspend(stop) => {
                    set.extend(&stop.next.uses);
                    resets[at] = &set - &live_in[stop.to];
                    flows.push((stop.to, &set & &live_in[stop.to]));
                }
            }
            for (to, vars) in flows {
                let before = set_in[to].len();
                set_in[to].extend(vars);
                changed |= set_in[to].len() != before;
            }
        }
    }
    resets
}

/// Where a function that was run to its end has not been forgotten yet.
fn ran(machine: &Machine) -> Vec<bool> {
    let is_callee = |block: &Block| matches!(block.resume, Some(Resume::Callee { .. }));
    let mut ran: Vec<bool> = machine.blocks.iter().map(is_callee).collect();
    let mut changed = true;
    while core::mem::take(&mut changed) {
        for block in 0..machine.blocks.len() {
            let ends = matches!(machine.blocks[block].end, End::Suspend(_));
            for edge in edges(machine, block) {
                let is_label = ends && machine.blocks[edge.to].resume.is_some();
                if ran[block] && !is_label {
                    changed |= !core::mem::replace(&mut ran[edge.to], true);
                }
            }
        }
    }
    ran
}

/// A field for each variable that is alive where a block is entered by its number; variables of
/// one name and type share it unless they are alive together.
fn fields(machine: &Machine, flow: &Flow) -> Vec<Option<Ident>> {
    let mut fields: Vec<Option<Ident>> = Vec::new();
    // The blocks where each of them is alive or mentioned.
    let spread: Vec<BTreeSet<BlockId>> = (0..machine.vars.len())
        .map(|var| {
            let mentions = |block: &BlockId| {
                let items = &machine.blocks[*block].items;
                flow.live_in[*block].contains(&var)
                    || items
                        .iter()
                        .any(|item| item.uses.contains(&var) || item.sets.contains(&var))
            };
            (0..machine.blocks.len()).filter(mentions).collect()
        })
        .collect();
    for (var, this) in machine.vars.iter().enumerate() {
        let mut lives = (0..machine.blocks.len())
            .filter(|&block| flow.is_entered(block))
            .map(|block| &flow.live_in[block]);
        if !lives.any(|live| live.contains(&var)) {
            fields.push(None);
            continue;
        }
        let ty = this.ty.to_token_stream().to_string();
        let mut name = this.name.clone();
        let mut number = 1;
        loop {
            let taken = (0..var).any(|other| {
                let same = fields[other].as_ref() == Some(&name);
                let other_type = machine.vars[other].ty.to_token_stream().to_string();
                same && (other_type != ty || !spread[other].is_disjoint(&spread[var]))
            });
            if !taken {
                break;
            }
            number += 1;
            name = Ident::new(&format!("{}_{number}", this.name), this.name.span());
        }
        fields.push(Some(name));
    }
    fields
}

fn refuse_locals_over_labels(machine: &Machine, parents: &[Option<BlockId>]) -> syn::Result<()> {
    let over = |used: BlockId, bound| !around(parents, used).any(|block| block == bound);
    for local in &machine.local_uses {
        if over(local.used, local.bound) {
            let text = format!(
                "`{}` lives over a label: give it a type where it is declared (`let {0}: T = ..`)",
                local.name
            );
            return Err(Error::new(local.span, text));
        }
    }
    Ok(())
}

/// A reference or a guard is no part of a state.
fn refuse_borrows(machine: &Machine, flow: &Flow) -> syn::Result<()> {
    struct Borrows(bool);
    impl<'ast> Visit<'ast> for Borrows {
        fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
            self.0 |= lifetime.ident != "static";
        }
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            self.0 |= reference.lifetime.is_none();
            syn::visit::visit_type_reference(self, reference);
        }
    }
    let borrows = |ty: &Type| {
        let mut borrows = Borrows(false);
        borrows.visit_type(ty);
        borrows.0
    };
    for (var, field) in machine.vars.iter().zip(&flow.fields) {
        if field.is_some() && borrows(&var.ty) {
            let text = format!(
                "`{}` is held over a label, and borrows: take it again after it",
                var.name
            );
            return Err(Error::new_spanned(&var.ty, text));
        }
    }
    Ok(())
}

/// A release ends its label: from it on other CPUs run, so nothing is touched until the next.
fn refuse_after_release(machine: &Machine) -> syn::Result<()> {
    let mut released = vec![false; machine.blocks.len()];
    let mut changed = true;
    while core::mem::take(&mut changed) {
        for (at, block) in machine.blocks.iter().enumerate() {
            let mut open = released[at];
            for item in &block.items {
                if let (true, Some(span)) = (open, item.touches) {
                    return Err(Error::new(span, AFTER_RELEASE));
                }
                open |= item.releases;
                for edge in &item.edges {
                    if open || item.released.contains(&edge.to) {
                        changed |= !core::mem::replace(&mut released[edge.to], true);
                    }
                }
            }
            match &block.end {
                End::Goto(edge) if open => {
                    changed |= !core::mem::replace(&mut released[edge.to], true);
                }
                End::Suspend(stop) if open => {
                    if let Some(span) = stop.next.touches {
                        return Err(Error::new(span, AFTER_RELEASE));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Locals in scope at a label.
fn held(machine: &Machine, reached: &[bool]) -> BTreeSet<LocalId> {
    let blocks = machine.blocks.iter().zip(reached);
    let stops = blocks.filter_map(|(block, reached)| match &block.end {
        End::Suspend(stop) if *reached => Some(&stop.held),
        _ => None,
    });
    stops.flatten().copied().collect()
}
