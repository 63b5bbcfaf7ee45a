//! Rewrites code between two labels: names of variables, and the ways out of it.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Arm, Expr, Lifetime, Local, Member, Pat};

use crate::machine::{BlockId, Edge, Item, LocalUse, Loop, goto, placeholder};
use crate::names::{Binding, Names};
use crate::suspension;

pub(crate) const AFTER_RELEASE: &str =
    "after a release the label ends: another CPU may hold the lock by now";
const BREAK_WITH_A_VALUE: &str =
    "a `break` with a value out of a loop with a label in it: set a variable before it";
const INSIDE: &str = "a suspension inside an expression: it is a statement, the value of a `let`, \
                      or a condition";

/// Rewrites code between two labels: names of variables, and the ways out of it.
pub(crate) struct Rewrite<'a> {
    pub(crate) names: &'a mut Names,
    pub(crate) item: &'a mut Item,
    pub(crate) block: BlockId,
    pub(crate) cx: &'a Ident,
    /// Loops with labels around this code.
    pub(crate) loops: &'a [Loop],
    /// Loops of this code around the expression, with their names.
    inner: Vec<Option<Lifetime>>,
    /// Its blocks with names.
    blocks: Vec<Lifetime>,
    closures: u32,
    /// A release came before, in this code.
    released: bool,
    /// Or before a jump out of one of its own loops.
    left: bool,
    pub(crate) error: Option<syn::Error>,
}

impl<'a> Rewrite<'a> {
    pub(crate) fn new(
        names: &'a mut Names,
        item: &'a mut Item,
        block: BlockId,
        cx: &'a Ident,
        loops: &'a [Loop],
    ) -> Rewrite<'a> {
        let (inner, closures, error) = (Vec::new(), 0, None);
        let (released, left) = (false, false);
        Rewrite {
            names,
            item,
            block,
            cx,
            loops,
            inner,
            blocks: Vec::new(),
            closures,
            released,
            left,
            error,
        }
    }

    fn refuse(&mut self, span: Span, text: &str) {
        self.error
            .get_or_insert_with(|| syn::Error::new(span, text));
    }

    /// The name to write for a name, noted as used.
    fn resolve(&mut self, name: &Ident) -> Option<Ident> {
        match self.names.find(&name.to_string())?.clone() {
            Binding::State(var) => {
                self.item.uses.insert(var);
                Some(placeholder(var, name.span()))
            }
            Binding::Local { block, .. } => {
                let (span, name) = (name.span(), name.to_string());
                self.names.uses.push(LocalUse {
                    name,
                    bound: block,
                    used: self.block,
                    span,
                });
                None
            }
        }
    }

    fn is_cx(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Path(path) if path.path.is_ident(self.cx))
    }

    fn is_field_of_cx(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Field(field) if self.is_cx(&field.base))
    }

    /// All of the code was visited.
    pub(crate) fn ended(&mut self) {
        self.item.releases |= self.released;
    }

    fn touch(&mut self, span: Span) {
        if self.released {
            self.refuse(span, AFTER_RELEASE);
        }
        self.item.touches.get_or_insert(span);
    }

    /// One of several ways through the code: after it, what was released before.
    fn way(&mut self, visit: impl FnOnce(&mut Self)) -> bool {
        let before = self.released;
        visit(self);
        core::mem::replace(&mut self.released, before)
    }

    /// A loop of this code.
    fn turns(&mut self, label: Option<&syn::Label>, visit: impl FnOnce(&mut Self)) {
        self.inner.push(label.map(|label| label.name.clone()));
        let left = core::mem::take(&mut self.left);
        let released = self.way(visit);
        self.released |= released | core::mem::replace(&mut self.left, left);
        self.inner.pop();
    }

    /// A jump out of a loop with labels.
    fn jump(&mut self, expr: &Expr, name: Option<&Lifetime>, breaks: bool) -> Option<Expr> {
        let own = match name {
            None => !self.inner.is_empty(),
            Some(name) => {
                let mut own = self.inner.iter().flatten().chain(&self.blocks);
                own.any(|inner| inner == name)
            }
        };
        let released = core::mem::take(&mut self.released);
        if own || self.closures > 0 {
            self.left |= released;
            return None;
        }
        let target = match name {
            None => self.loops.last(),
            Some(name) => self
                .loops
                .iter()
                .rev()
                .find(|l| l.name.as_ref() == Some(name)),
        };
        let Some(target) = target else {
            self.refuse(expr.span(), "outside a loop");
            return None;
        };
        let to = if breaks { target.end } else { target.top };
        self.item.edges.push(Edge { to, leaves: true });
        self.item.released.extend(released.then_some(to));
        let goto = goto(to);
        Some(syn::parse_quote!(#goto))
    }

    /// Names in the arguments of a macro that are no expressions, by their tokens.
    fn tokens(&mut self, tokens: TokenStream) -> TokenStream {
        let mut after_dot = false;
        let mut out = TokenStream::new();
        for token in tokens {
            let dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
            // `..` comes before a name like any other.
            let dot = dot && !after_dot;
            let token = match token {
                TokenTree::Ident(name) if name == *self.cx => {
                    self.item.reads_cx = true;
                    self.touch(name.span());
                    TokenTree::Ident(name)
                }
                TokenTree::Ident(name) if !after_dot => match self.resolve(&name) {
                    Some(name) => TokenTree::Ident(name),
                    None => TokenTree::Ident(name),
                },
                TokenTree::Group(group) => {
                    let inner = self.tokens(group.stream());
                    let mut new = Group::new(group.delimiter(), inner);
                    new.set_span(group.span());
                    TokenTree::Group(new)
                }
                other => other,
            };
            after_dot = dot;
            out.extend([token]);
        }
        out
    }

    fn mac(&mut self, mac: &mut syn::Macro) {
        if suspension::is_suspension(mac) || suspension::in_tokens(mac.tokens.clone()) {
            self.refuse(mac.span(), INSIDE);
        }
        let parser = Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        mac.tokens = match parser.parse2(mac.tokens.clone()) {
            Ok(mut args) => {
                for arg in &mut args {
                    match arg {
                        // `name = value` of a format.
                        Expr::Assign(named) => self.visit_expr_mut(&mut named.right),
                        arg => self.visit_expr_mut(arg),
                    }
                }
                args.to_token_stream()
            }
            Err(_) => self.tokens(core::mem::take(&mut mac.tokens)),
        };
    }

    /// The value of a variable, or the CPU.
    fn path(&mut self, path: &mut syn::ExprPath) {
        if path.path.is_ident(self.cx) {
            self.item.reads_cx = true;
            self.touch(path.span());
        } else if let Some(name) = path.path.get_ident()
            && let Some(name) = self.resolve(&name.clone())
        {
            path.path = name.into();
        }
    }

    fn method(&mut self, call: &mut syn::ExprMethodCall) {
        if self.is_cx(&call.receiver) {
            self.item.reads_cx = true;
            if ["kick", "call", "run"]
                .iter()
                .any(|name| call.method == name)
            {
                self.touch(call.span());
            }
        } else {
            self.visit_expr_mut(&mut call.receiver);
        }
        for arg in &mut call.args {
            self.visit_expr_mut(arg);
        }
        self.released |= call.method == "release";
    }

    fn literal(&mut self, literal: &mut syn::ExprStruct) {
        for field in &mut literal.fields {
            self.visit_expr_mut(&mut field.expr);
            if field.colon_token.is_none() && !is_name(&field.expr, &field.member) {
                field.colon_token = Some(syn::Token![:](field.member.span()));
            }
        }
        if let Some(rest) = &mut literal.rest {
            self.visit_expr_mut(rest);
        }
    }

    fn closure(&mut self, closure: &mut syn::ExprClosure) {
        self.names.open();
        for input in &closure.inputs {
            self.names.bind_locals(input, self.block);
        }
        self.closures += 1;
        self.way(|this| this.visit_expr_mut(&mut closure.body));
        self.closures -= 1;
        self.names.close();
    }

    /// Of the function itself.
    fn value(&mut self, ret: &mut syn::ExprReturn) -> Expr {
        let mut value = match ret.expr.take() {
            Some(value) => *value,
            None => syn::parse_quote!(()),
        };
        self.visit_expr_mut(&mut value);
        self.released = false;
        self.item.returns = true;
        syn::parse_quote!(return crate::step::Sub::Done(#value))
    }

    fn branch(&mut self, branch: &mut syn::ExprIf) {
        self.names.open();
        self.visit_expr_mut(&mut branch.cond);
        let released = self.way(|this| this.visit_block_mut(&mut branch.then_branch));
        self.names.close();
        if let Some((_, other)) = &mut branch.else_branch {
            self.visit_expr_mut(other);
        }
        self.released |= released;
    }

    fn choice(&mut self, choice: &mut syn::ExprMatch) {
        self.visit_expr_mut(&mut choice.expr);
        let mut released = false;
        for arm in &mut choice.arms {
            released |= self.way(|this| this.visit_arm_mut(arm));
        }
        self.released = released;
    }

    /// `break 'name` leaves it; other jumps mean the loop around it.
    fn named(&mut self, named: &mut syn::ExprBlock) {
        let name = named.label.as_ref().map(|label| label.name.clone());
        self.blocks.extend(name);
        let left = core::mem::take(&mut self.left);
        self.visit_block_mut(&mut named.block);
        self.released |= core::mem::replace(&mut self.left, left);
        self.blocks.pop();
    }

    fn while_loop(&mut self, turn: &mut syn::ExprWhile) {
        self.names.open();
        self.visit_expr_mut(&mut turn.cond);
        self.turns(turn.label.as_ref(), |this| {
            this.visit_block_mut(&mut turn.body);
        });
        self.names.close();
    }

    fn for_loop(&mut self, turn: &mut syn::ExprForLoop) {
        self.visit_expr_mut(&mut turn.expr);
        self.names.open();
        self.names.bind_locals(&turn.pat, self.block);
        self.turns(turn.label.as_ref(), |this| {
            this.visit_block_mut(&mut turn.body);
        });
        self.names.close();
    }
}

impl VisitMut for Rewrite<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Path(path) => self.path(path),
            Expr::Field(field) if self.is_cx(&field.base) => {
                if matches!(&field.member, Member::Named(name) if name == "cpu") {
                    self.touch(field.span());
                }
                self.item.reads_cx = true;
            }
            // `cx.cpu.id` and the like say who runs, and touch nothing.
            Expr::Field(outer) if self.is_field_of_cx(&outer.base) => self.item.reads_cx = true,
            Expr::MethodCall(call) => self.method(call),
            Expr::Struct(literal) => self.literal(literal),
            Expr::Closure(closure) => self.closure(closure),
            Expr::Return(ret) if self.closures == 0 => *expr = self.value(ret),
            Expr::Break(jump)
                if jump.expr.is_some() && self.inner.is_empty() && self.closures == 0 =>
            {
                self.refuse(jump.span(), BREAK_WITH_A_VALUE);
            }
            Expr::Break(jump) if jump.expr.is_none() => {
                let name = jump.label.clone();
                if let Some(goto) = self.jump(&expr.clone(), name.as_ref(), true) {
                    *expr = goto;
                }
            }
            Expr::Continue(jump) => {
                let name = jump.label.clone();
                if let Some(goto) = self.jump(&expr.clone(), name.as_ref(), false) {
                    *expr = goto;
                }
            }
            Expr::Assign(assign) => {
                self.visit_expr_mut(&mut assign.right);
                self.visit_expr_mut(&mut assign.left);
            }
            Expr::Let(cond) => {
                self.visit_expr_mut(&mut cond.expr);
                self.names.bind_locals(&cond.pat, self.block);
            }
            Expr::If(branch) => self.branch(branch),
            Expr::Match(choice) => self.choice(choice),
            Expr::Block(named) if named.label.is_some() => self.named(named),
            Expr::While(turn) => self.while_loop(turn),
            Expr::Loop(turn) => self.turns(turn.label.as_ref(), |this| {
                this.visit_block_mut(&mut turn.body);
            }),
            Expr::ForLoop(turn) => self.for_loop(turn),
            Expr::Macro(mac) => self.mac(&mut mac.mac),
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        self.names.open();
        self.names.bind_locals(&arm.pat, self.block);
        if let Some((_, guard)) = &mut arm.guard {
            self.visit_expr_mut(guard);
        }
        self.visit_expr_mut(&mut arm.body);
        self.names.close();
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        self.names.open();
        visit_mut::visit_block_mut(self, block);
        self.names.close();
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            self.visit_expr_mut(&mut init.expr);
            if let Some((_, other)) = &mut init.diverge {
                self.way(|this| this.visit_expr_mut(other));
            }
        }
        self.names.bind_locals(&local.pat, self.block);
    }

    fn visit_stmt_macro_mut(&mut self, stmt: &mut syn::StmtMacro) {
        self.mac(&mut stmt.mac);
    }

    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// The field of a literal is still its own name.
fn is_name(expr: &Expr, member: &Member) -> bool {
    expr.to_token_stream().to_string() == member.to_token_stream().to_string()
}
