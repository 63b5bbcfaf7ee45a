//! Branches and loops with labels in them.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{BinOp, Block as Body, Expr, ExprBinary, UnOp};

use super::{Dest, Lower};
use crate::machine::{BlockId, Edge, End, Item, LocalId, Loop, goto};
use crate::suspension;

impl Lower {
    /// Goes to `then` or `other` by a condition, whose parts may be suspensions.
    fn condition(
        &mut self,
        block: BlockId,
        cond: &Expr,
        (then, other): (Edge, Edge),
    ) -> syn::Result<()> {
        if suspension::in_expr(cond) {
            match cond {
                Expr::Binary(both) if matches!(both.op, BinOp::And(_) | BinOp::Or(_)) => {
                    return self.both(block, both, (then, other));
                }
                Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                    return self.condition(block, &unary.expr, (other, then));
                }
                Expr::Paren(paren) => return self.condition(block, &paren.expr, (then, other)),
                _ => {}
            }
        }
        self.test(block, cond, (then, other))
    }

    /// `a && b`, `a || b`: where `a` does not decide, `b` does.
    fn both(
        &mut self,
        block: BlockId,
        both: &ExprBinary,
        (then, other): (Edge, Edge),
    ) -> syn::Result<()> {
        let middle = self.block();
        let edge = Edge {
            to: middle,
            leaves: false,
        };
        let leaving = |edge| Edge {
            leaves: true,
            ..edge
        };
        let (left, right) = match both.op {
            BinOp::And(_) => ((edge, leaving(other)), (then, leaving(other))),
            _ => ((leaving(then), edge), (leaving(then), other)),
        };
        self.condition(block, &both.left, left)?;
        self.condition(middle, &both.right, right)
    }

    /// A condition that is one piece.
    fn test(
        &mut self,
        block: BlockId,
        cond: &Expr,
        (then, other): (Edge, Edge),
    ) -> syn::Result<()> {
        let mut item = Item::default();
        let (block, cond) = match cond {
            Expr::Let(cond) => {
                let (block, value) = self.head(block, &cond.expr, &mut item)?;
                let value = alone(&cond.expr, value);
                let pat = &cond.pat;
                let binds = self.names.bind_held(pat, then.to);
                self.push(
                    then.to,
                    Item {
                        binds,
                        ..Item::default()
                    },
                );
                (block, quote!(let #pat = #value))
            }
            // A chain of `let`s without a label binds names in the block that follows.
            cond if !suspension::in_expr(cond) => {
                let mut cond = cond.clone();
                let known = self.names.uses.len();
                self.rewrite(then.to, &mut item, |rewrite| {
                    rewrite.visit_expr_mut(&mut cond);
                })?;
                let uses = self.names.uses[known..].iter_mut();
                uses.filter(|local| local.bound != then.to)
                    .for_each(|local| local.used = block);
                (block, cond.to_token_stream())
            }
            cond => self.head(block, cond, &mut item)?,
        };
        let jump = goto(then.to);
        item.edges.push(then);
        item.tokens = quote!(if #cond { #jump });
        self.push(block, item);
        self.machine.blocks[block].end = End::Goto(other);
        Ok(())
    }

    pub(super) fn branch(
        &mut self,
        block: BlockId,
        branch: &syn::ExprIf,
        dest: Dest,
    ) -> syn::Result<Option<BlockId>> {
        let (then, join) = (self.block(), self.block());
        let other = if branch.else_branch.is_some() {
            self.block()
        } else {
            join
        };
        self.names.open();
        let to = |to| Edge { to, leaves: false };
        self.condition(block, &branch.cond, (to(then), to(other)))?;
        let before = self.names.dropped.clone();
        let end = self.body(then, &branch.then_branch.stmts, dest)?;
        self.names.close();
        self.goto(end, join, true);
        let after_then = core::mem::replace(&mut self.names.dropped, before);
        let Some((_, expr)) = &branch.else_branch else {
            return Ok(self.give(join, &quote!(()), Item::default(), dest));
        };
        let other = match &**expr {
            Expr::Block(inner) => self.body(other, &inner.block.stmts, dest)?,
            expr => self.value(other, expr, dest)?,
        };
        self.goto(other, join, true);
        match (end, other) {
            (Some(_), None) => self.names.dropped = after_then,
            (Some(_), Some(_)) => self.names.dropped = &self.names.dropped & &after_then,
            (None, _) => {}
        }
        Ok(end.or(other).map(|_| join))
    }

    pub(super) fn choice(
        &mut self,
        block: BlockId,
        choice: &syn::ExprMatch,
        dest: Dest,
    ) -> syn::Result<Option<BlockId>> {
        let mut item = Item::default();
        let (block, on) = self.head(block, &choice.expr, &mut item)?;
        let on = alone(&choice.expr, on);
        let join = self.block();
        let mut arms = Vec::new();
        let before = self.names.dropped.clone();
        let mut after: Option<BTreeSet<LocalId>> = None;
        for arm in &choice.arms {
            let to = self.block();
            self.names.open();
            let binds = self.names.bind_held(&arm.pat, to);
            self.push(
                to,
                Item {
                    binds,
                    ..Item::default()
                },
            );
            let guard = match &arm.guard {
                None => quote!(),
                Some((_, guard)) => {
                    let guard = self.plain(to, &mut item, guard)?;
                    quote!(if #guard)
                }
            };
            let (pat, jump) = (&arm.pat, goto(to));
            arms.push(quote!(#pat #guard => { #jump }));
            item.edges.push(Edge { to, leaves: false });
            let end = match &*arm.body {
                Expr::Block(inner) if inner.label.is_none() => {
                    self.body(to, &inner.block.stmts, dest)?
                }
                expr => self.value(to, expr, dest)?,
            };
            self.names.close();
            let dropped = core::mem::replace(&mut self.names.dropped, before.clone());
            if end.is_some() {
                after = Some(after.map_or_else(|| dropped.clone(), |after| &after & &dropped));
            }
            self.goto(end, join, true);
        }
        item.tokens = quote!(match #on { #(#arms)* });
        self.push(block, item);
        Ok(after.map(|after| {
            self.names.dropped = after;
            join
        }))
    }

    pub(super) fn turns(
        &mut self,
        block: BlockId,
        cond: Option<&Expr>,
        label: Option<&syn::Label>,
        body: &Body,
    ) -> syn::Result<BlockId> {
        let (top, end) = (self.block(), self.block());
        self.goto(Some(block), top, true);
        let first = match cond {
            None => top,
            Some(_) => self.block(),
        };
        self.names.open();
        if let Some(cond) = cond {
            let to = |to| Edge { to, leaves: false };
            self.condition(top, cond, (to(first), to(end)))?;
        }
        self.loops.push(Loop {
            name: label.map(|label| label.name.clone()),
            top,
            end,
        });
        let last = self.body(first, &body.stmts, Dest::Nothing)?;
        self.loops.pop();
        self.names.close();
        self.goto(last, top, true);
        Ok(end)
    }
}

/// A value that decides, without what else would live as long as the code that it leads to: a guard
/// that it was read through.
fn alone(expr: &Expr, value: TokenStream) -> TokenStream {
    let mut of = expr;
    loop {
        of = match of {
            Expr::Call(_) | Expr::MethodCall(_) => {
                return quote!({ let __steps_on = #value; __steps_on });
            }
            Expr::Field(field) => &field.base,
            Expr::Index(index) => &index.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return value,
        };
    }
}
