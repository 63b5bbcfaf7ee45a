//! What the code of a machine may still read, found out from its `step` alone.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::visit::Visit;
use syn::{Expr, Member, Pat, Stmt};

use super::run::{Value, last};

type Names = BTreeSet<String>;

/// By the name of a part.
pub(super) struct Lives {
    reads: BTreeMap<String, Names>,
    /// Parts that begin within a function that this one runs.
    runs: Names,
}

/// Fields that code mentions, and the parts that it goes to.
#[derive(Default)]
struct Mentions {
    fields: Names,
    parts: Names,
}

impl<'ast> Visit<'ast> for Mentions {
    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        self.fields.extend(own_field(field));
        syn::visit::visit_expr_field(self, field);
    }

    fn visit_expr_assign(&mut self, assign: &'ast syn::ExprAssign) {
        self.parts.extend(part(assign));
        syn::visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_break(&mut self, jump: &'ast syn::ExprBreak) {
        self.parts.extend(jump.label.as_ref().and_then(part_behind));
    }
}

fn own_field(field: &syn::ExprField) -> Option<String> {
    let is_own = matches!(&*field.base, Expr::Path(path) if path.path.is_ident("self"));
    match &field.member {
        Member::Named(name) if is_own => Some(name.to_string()),
        _ => None,
    }
}

/// `'__steps_P3`.
fn part_behind(end: &syn::Lifetime) -> Option<String> {
    let name = end.ident.to_string();
    name.strip_prefix("__steps_").map(ToOwned::to_owned)
}

/// `self.pc = Pc::P3`, `__steps_pc = Pc::P3`.
fn part(assign: &syn::ExprAssign) -> Option<String> {
    let is_pc = match &*assign.left {
        Expr::Path(path) => path.path.is_ident("__steps_pc"),
        Expr::Field(field) => own_field(field).is_some_and(|name| name == "pc"),
        _ => false,
    };
    match &*assign.right {
        Expr::Path(path) if is_pc => Some(last(&path.path)),
        _ => None,
    }
}

fn mentions(expr: &Expr) -> Mentions {
    let mut mentions = Mentions::default();
    mentions.visit_expr(expr);
    mentions
}

impl Lives {
    pub(super) fn of(step: &syn::ImplItemFn) -> Lives {
        let arms = arms(step);
        let begins = |body: &&Expr| {
            let Expr::Block(body) = body else {
                return false;
            };
            let first = body.block.stmts.iter().find(|stmt| match stmt {
                Stmt::Local(local) => local.init.is_some(),
                // It notes its label before.
                stmt => !stmt.to_token_stream().to_string().contains("stop_at"),
            });
            matches!(first, Some(Stmt::Local(local)) if matches!(&local.pat,
                Pat::Ident(pat) if pat.ident == "__steps_value"))
        };
        let runs = arms
            .iter()
            .filter(|(_, body)| begins(body))
            .map(|(part, _)| part.clone());
        let mut lives = Lives {
            runs: runs.collect(),
            reads: arms
                .iter()
                .map(|(part, _)| (part.clone(), Names::new()))
                .collect(),
        };
        loop {
            let mut changed = false;
            for (part, body) in &arms {
                let reads = lives.expr(body, Names::new());
                changed |= reads != lives.reads[part];
                lives.reads.insert(part.clone(), reads);
            }
            if !changed {
                return lives;
            }
        }
    }

    pub(super) fn is_read(&self, part: &Value, field: &str) -> bool {
        matches!(part, Value::Label(Some(part)) if self.reads[part].contains(field))
    }

    pub(super) fn runs(&self, part: &Value) -> bool {
        matches!(part, Value::Label(Some(part)) if self.runs.contains(part))
    }

    fn stmts(&self, stmts: &[Stmt], after: Names) -> Names {
        stmts.iter().rev().fold(after, |after, stmt| match stmt {
            Stmt::Local(local) => match &local.init {
                None => after,
                Some(init) => {
                    let other = init.diverge.as_ref();
                    let other = other.map(|(_, other)| self.expr(other, Names::new()));
                    let reads = mentions(&init.expr).fields;
                    &(&after | &reads) | &other.unwrap_or_default()
                }
            },
            Stmt::Expr(expr, _) => self.expr(expr, after),
            _ => after,
        })
    }

    /// What is read from the beginning of this code on, if `after` is read from its end on.
    fn expr(&self, expr: &Expr, after: Names) -> Names {
        let has_parts = !mentions(expr).parts.is_empty();
        match expr {
            Expr::Block(block) => self.stmts(&block.block.stmts, after),
            Expr::Assign(assign) => {
                if let Some(part) = part(assign) {
                    return self.reads[&part].clone();
                }
                let set = match &*assign.left {
                    Expr::Tuple(_) | Expr::Field(_) => mentions(&assign.left).fields,
                    _ => Names::new(),
                };
                &(&after - &set) | &mentions(&assign.right).fields
            }
            Expr::Return(_) => mentions(expr).fields,
            Expr::Continue(_) => Names::new(),
            Expr::Break(jump) => {
                let behind = jump.label.as_ref().and_then(part_behind);
                behind.map_or(after, |part| self.reads[&part].clone())
            }
            Expr::If(branch) if has_parts => {
                let other = match &branch.else_branch {
                    Some((_, other)) => self.expr(other, after.clone()),
                    None => after.clone(),
                };
                let then = self.stmts(&branch.then_branch.stmts, after);
                &(&other | &then) | &mentions(&branch.cond).fields
            }
            Expr::Match(choice) if has_parts => {
                let mut reads = mentions(&choice.expr).fields;
                for arm in &choice.arms {
                    if let Some((_, guard)) = &arm.guard {
                        reads.extend(mentions(guard).fields);
                    }
                    reads.extend(self.expr(&arm.body, after.clone()));
                }
                reads
            }
            other => {
                let found = mentions(other);
                let parts = found.parts.iter().flat_map(|part| self.reads[part].clone());
                parts.chain(found.fields).chain(after).collect()
            }
        }
    }
}

/// The code of each part: in an arm, or after the block that jumps to it leave.
fn arms(step: &syn::ImplItemFn) -> Vec<(String, &Expr)> {
    let Some(Stmt::Expr(Expr::Loop(run), _)) = step.block.stmts.last() else {
        panic!("a loop over the parts");
    };
    let mut found = Vec::new();
    let mut stmts = &run.body.stmts;
    loop {
        match &stmts[..] {
            [Stmt::Expr(Expr::Match(parts), _)] => {
                found.extend(parts.arms.iter().filter_map(|arm| match &arm.pat {
                    Pat::Path(path) if !matches!(&*arm.body, Expr::Break(_)) => {
                        Some((last(&path.path), &*arm.body))
                    }
                    _ => None,
                }));
                return found;
            }
            [Stmt::Expr(Expr::Block(before), _), Stmt::Expr(code, _)] => {
                let end = before.label.as_ref().expect("jumps leave it");
                found.push((part_behind(&end.name).expect("a part"), code));
                stmts = &before.block.stmts;
            }
            _ => panic!("a match on the part"),
        }
    }
}
