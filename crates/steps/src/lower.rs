//! Control flow around the labels of a function, as blocks of straight code.

mod ways;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Block as Body, Expr, FnArg, ItemFn, Local, Pat, ReturnType, Stmt, Type};

use crate::machine::{
    Block, BlockId, Edge, End, Item, Loop, Machine, Resume, Suspend, Var, VarId, goto, placeholder,
};
use crate::names::{Binding, Names};
use crate::rewrite::Rewrite;
use crate::suspension::{self, Label, Next, Suspension};

/// What becomes of a value.
#[derive(Clone, Copy)]
enum Dest {
    Nothing,
    Return,
    Var(VarId),
}

struct Lower {
    machine: Machine,
    names: Names,
    loops: Vec<Loop>,
    /// The text of the statement's label, until that is met.
    doc: Option<String>,
    /// Fields of each state, whatever its variables are.
    own_fields: &'static [&'static str],
}

const FIRST: &str = "the first parameter is `cx: &mut Cx<'_>`";

pub(crate) fn lower(function: &ItemFn, path: bool) -> syn::Result<Machine> {
    let mut inputs = function.sig.inputs.iter();
    let (cx, cx_type) = match inputs.next() {
        Some(FnArg::Typed(first)) => (name_of(&first.pat, FIRST)?, (*first.ty).clone()),
        _ => {
            return Err(syn::Error::new(function.sig.ident.span(), FIRST));
        }
    };
    let returns = match &function.sig.output {
        ReturnType::Default => syn::parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    let machine = Machine {
        cx,
        cx_type,
        vars: Vec::new(),
        blocks: Vec::new(),
        callees: Vec::new(),
        returns,
        labels: Vec::new(),
        local_uses: Vec::new(),
    };
    let mut lower = Lower {
        machine,
        names: Names::default(),
        loops: Vec::new(),
        doc: None,
        own_fields: if path {
            &["pc", "callee", "queue"]
        } else {
            &["pc", "callee"]
        },
    };
    lower.names.open();
    for input in inputs {
        let FnArg::Typed(input) = input else { continue };
        let name = name_of(&input.pat, "a parameter is a name with its type")?;
        lower.variable(&name, (*input.ty).clone(), true)?;
    }
    let entry = lower.block();
    lower.body(entry, &function.block.stmts, Dest::Return)?;
    lower.machine.local_uses = core::mem::take(&mut lower.names.uses);
    Ok(lower.machine)
}

fn name_of(pat: &Pat, text: &str) -> syn::Result<Ident> {
    match pat {
        Pat::Ident(pat) if pat.subpat.is_none() && pat.by_ref.is_none() => Ok(pat.ident.clone()),
        other => Err(syn::Error::new_spanned(other, text)),
    }
}

impl Lower {
    fn block(&mut self) -> BlockId {
        self.machine.blocks.push(Block {
            items: Vec::new(),
            end: End::Open,
            resume: None,
        });
        self.machine.blocks.len() - 1
    }

    fn push(&mut self, block: BlockId, item: Item) {
        self.machine.blocks[block].items.push(item);
    }

    fn goto(&mut self, from: Option<BlockId>, to: BlockId, leaves: bool) {
        if let Some(from) = from {
            self.machine.blocks[from].end = End::Goto(Edge { to, leaves });
        }
    }

    fn variable(&mut self, name: &Ident, ty: Type, argument: bool) -> syn::Result<VarId> {
        let var = self.new_variable(name, ty, argument)?;
        self.names.bind(name, Binding::State(var));
        Ok(var)
    }

    /// A variable that nothing can name yet.
    fn new_variable(&mut self, name: &Ident, ty: Type, argument: bool) -> syn::Result<VarId> {
        let is_taken = self.own_fields.iter().any(|field| name == field);
        if is_taken {
            let text = format!("every state has a field `{name}`: another name");
            return Err(syn::Error::new(name.span(), text));
        }
        self.machine.vars.push(Var {
            name: name.clone(),
            ty,
            argument,
        });
        Ok(self.machine.vars.len() - 1)
    }

    /// Code without a label, as it is but for names and jumps.
    fn rewrite(
        &mut self,
        block: BlockId,
        item: &mut Item,
        visit: impl FnOnce(&mut Rewrite<'_>),
    ) -> syn::Result<()> {
        let mut rewrite = Rewrite::new(&mut self.names, item, block, &self.machine.cx, &self.loops);
        visit(&mut rewrite);
        rewrite.ended();
        rewrite.error.map_or(Ok(()), Err)
    }

    fn plain(&mut self, block: BlockId, item: &mut Item, expr: &Expr) -> syn::Result<TokenStream> {
        let mut expr = expr.clone();
        self.rewrite(block, item, |rewrite| rewrite.visit_expr_mut(&mut expr))?;
        Ok(expr.to_token_stream())
    }

    /// The statements of a scope. `None`: its end is not reached.
    fn body(&mut self, block: BlockId, stmts: &[Stmt], dest: Dest) -> syn::Result<Option<BlockId>> {
        self.names.open();
        let end = self.stmts(block, stmts, dest);
        self.names.close();
        end
    }

    fn stmts(
        &mut self,
        mut block: BlockId,
        stmts: &[Stmt],
        dest: Dest,
    ) -> syn::Result<Option<BlockId>> {
        for (at, stmt) in stmts.iter().enumerate() {
            let last = at + 1 == stmts.len();
            self.doc = doc_of(stmt);
            let end = match stmt {
                Stmt::Local(local) => self.local(block, local)?,
                Stmt::Expr(expr, semi) => {
                    let is_value = last && semi.is_none();
                    if is_value {
                        return self.value(block, expr, dest);
                    }
                    self.value(block, expr, Dest::Nothing)?
                }
                Stmt::Macro(stmt) => {
                    let expr = Expr::Macro(syn::ExprMacro {
                        attrs: stmt.attrs.clone(),
                        mac: stmt.mac.clone(),
                    });
                    if last && stmt.semi_token.is_none() {
                        return self.value(block, &expr, dest);
                    }
                    self.value(block, &expr, Dest::Nothing)?
                }
                Stmt::Item(item) => {
                    self.push(
                        block,
                        Item {
                            tokens: item.to_token_stream(),
                            ..Item::default()
                        },
                    );
                    Some(block)
                }
            };
            match end {
                Some(end) => block = end,
                None => return Ok(None),
            }
        }
        Ok(self.give(block, &quote!(()), Item::default(), dest))
    }

    /// What becomes of a value that was found.
    fn give(
        &mut self,
        block: BlockId,
        value: &TokenStream,
        mut item: Item,
        dest: Dest,
    ) -> Option<BlockId> {
        let is_unit = value.to_string() == "()";
        match dest {
            Dest::Nothing => {
                if !is_unit {
                    item.tokens = quote!(#value;);
                    self.push(block, item);
                }
                Some(block)
            }
            Dest::Return => {
                item.tokens = quote!(return crate::step::Sub::Done(#value););
                item.returns = true;
                self.push(block, item);
                None
            }
            Dest::Var(var) => {
                let name = self.machine.vars[var].name.clone();
                // Nothing can name it before that.
                item.is_initial = self.names.state(&name) != Some(var);
                let name = placeholder(var, name.span());
                item.tokens = quote!(#name = #value;);
                item.sets.insert(var);
                self.push(block, item);
                Some(block)
            }
        }
    }

    fn local(&mut self, block: BlockId, local: &Local) -> syn::Result<Option<BlockId>> {
        if let Pat::Type(pat) = &local.pat {
            return self.typed(block, local, pat);
        }
        let Some(init) = &local.init else {
            return Err(syn::Error::new(
                local.span(),
                "a variable without a value needs a type",
            ));
        };
        let mut item = Item::default();
        let (block, value) = self.head(block, &init.expr, &mut item)?;
        let pat = &local.pat;
        let Some((_, other)) = &init.diverge else {
            item.tokens = quote!(let #pat = #value;);
            item.binds = self.names.bind_held(pat, block);
            self.push(block, item);
            return Ok(Some(block));
        };
        let to = self.block();
        item.edges.push(Edge { to, leaves: false });
        let jump = goto(to);
        item.tokens = quote!(let #pat = #value else { #jump };);
        let dropped = self.names.dropped.clone();
        self.value(to, other, Dest::Nothing)?;
        self.names.dropped = dropped;
        item.binds = self.names.bind_held(pat, block);
        self.push(block, item);
        Ok(Some(block))
    }

    /// A variable with a type: `let x: T = ..`, `let (x, y): (T, U) = ..`.
    fn typed(
        &mut self,
        block: BlockId,
        local: &Local,
        pat: &syn::PatType,
    ) -> syn::Result<Option<BlockId>> {
        const TYPED: &str = "with a type: a name, or a tuple of names";
        let parts: Vec<(Ident, Type)> = match (&*pat.pat, &*pat.ty) {
            (Pat::Tuple(names), Type::Tuple(types)) if names.elems.len() == types.elems.len() => {
                let pairs = names.elems.iter().zip(&types.elems);
                pairs
                    .map(|(pat, ty)| Ok((name_of(pat, TYPED)?, ty.clone())))
                    .collect::<syn::Result<_>>()?
            }
            (pat, ty) => vec![(name_of(pat, TYPED)?, ty.clone())],
        };
        let value = local.init.as_ref().map(|init| &*init.expr);
        if let [(name, ty)] = &parts[..] {
            let Some(value) = value else {
                let var = self.variable(name, ty.clone(), false)?;
                self.push(
                    block,
                    Item {
                        declares: vec![var],
                        ..Item::default()
                    },
                );
                return Ok(Some(block));
            };
            // The value does not see the new variable of this name.
            let hidden = self.new_variable(name, ty.clone(), false)?;
            self.push(
                block,
                Item {
                    declares: vec![hidden],
                    ..Item::default()
                },
            );
            let end = self.value(block, value, Dest::Var(hidden))?;
            self.names.bind(name, Binding::State(hidden));
            return Ok(end);
        }
        let Some(value) = value else {
            return Err(syn::Error::new(local.span(), "one variable a `let`"));
        };
        let mut item = Item::default();
        let (block, value) = self.head(block, value, &mut item)?;
        let mut left = Vec::new();
        for (name, ty) in &parts {
            let var = self.variable(name, ty.clone(), false)?;
            left.push(placeholder(var, name.span()));
            item.sets.insert(var);
            item.declares.push(var);
        }
        item.is_initial = true;
        item.tokens = quote!((#(#left),*) = #value;);
        self.push(block, item);
        Ok(Some(block))
    }

    /// An expression whose value is used at once: code without a label, or one suspension.
    fn head(
        &mut self,
        block: BlockId,
        expr: &Expr,
        item: &mut Item,
    ) -> syn::Result<(BlockId, TokenStream)> {
        match expr {
            Expr::Macro(mac) if suspension::is_suspension(&mac.mac) => {
                self.suspend(block, &mac.mac)
            }
            Expr::Unary(unary) if suspension::in_expr(expr) => {
                let (block, value) = self.head(block, &unary.expr, item)?;
                let op = unary.op;
                Ok((block, quote!(#op #value)))
            }
            Expr::Paren(paren) => self.head(block, &paren.expr, item),
            other => {
                let value = self.plain(block, item, other)?;
                Ok((block, value))
            }
        }
    }

    /// Ends `block` with a suspension: the block where the path goes on, and the value there.
    fn suspend(&mut self, block: BlockId, mac: &syn::Macro) -> syn::Result<(BlockId, TokenStream)> {
        let to = self.block();
        match suspension::parse(mac)? {
            Suspension::Label { label, next } => {
                self.declare(label.as_ref());
                let (mut ask, cx) = (Item::default(), self.machine.cx.clone());
                let (is_plain, has_answer) =
                    (matches!(next, Next::Step), matches!(next, Next::Ask(_)));
                ask.tokens = match next {
                    Next::Step => quote!(crate::step::Next::Step),
                    Next::Do(next) | Next::Ask(next) => self.plain(block, &mut ask, &next)?,
                    Next::Call(call) => {
                        let call = self.plain(block, &mut ask, &call)?;
                        quote!(#cx.call(#call))
                    }
                };
                if !ask.edges.is_empty() {
                    let text = "a jump in the arguments of a suspension";
                    return Err(syn::Error::new(mac.span(), text));
                }
                let held = self.names.held();
                self.machine.blocks[block].end = End::Suspend(Box::new(Suspend {
                    next: ask,
                    is_plain,
                    has_answer,
                    mutant: None,
                    to,
                    held,
                }));
                self.machine.blocks[to].resume = Some(Resume::Label(label));
                let answer = quote!(::core::mem::take(&mut #cx.cpu.answer));
                Ok((to, if has_answer { answer } else { quote!(()) }))
            }
            Suspension::Sub {
                label,
                callee,
                args,
            } => {
                self.declare(label.as_ref());
                let mut begins = Item::default();
                let args: Vec<TokenStream> = args
                    .iter()
                    .map(|arg| self.plain(block, &mut begins, arg))
                    .collect::<syn::Result<_>>()?;
                let callee = self.callee(callee);
                begins.begins = Some((callee, quote!(#(#args),*)));
                self.push(block, begins);
                let held = self.names.held();
                let next = Item::default();
                self.machine.blocks[block].end = End::Suspend(Box::new(Suspend {
                    next,
                    is_plain: false,
                    has_answer: false,
                    mutant: None,
                    to,
                    held,
                }));
                self.machine.blocks[to].resume = Some(Resume::Callee { callee, label });
                self.push(
                    to,
                    Item {
                        steps: Some(callee),
                        ..Item::default()
                    },
                );
                Ok((to, quote!(__steps_value)))
            }
        }
    }

    /// A label whose statement has a text is declared there.
    fn declare(&mut self, label: Option<&Label>) {
        if let (Some(label), Some(doc)) = (label, self.doc.take()) {
            self.machine.labels.push((label.clone(), doc));
        }
    }

    /// The number of a function that this one runs.
    fn callee(&mut self, path: syn::Path) -> usize {
        let text = path.to_token_stream().to_string();
        let known = &mut self.machine.callees;
        let mut others = known
            .iter()
            .map(|known| known.to_token_stream().to_string());
        let at = others.position(|known| known == text);
        at.unwrap_or_else(|| {
            known.push(path);
            known.len() - 1
        })
    }

    /// An expression as a statement, or in place of a value.
    fn value(&mut self, block: BlockId, expr: &Expr, dest: Dest) -> syn::Result<Option<BlockId>> {
        if !suspension::in_expr(expr) {
            return self.without_label(block, expr, dest);
        }
        match expr {
            Expr::Macro(_) | Expr::Unary(_) => {
                let mut item = Item::default();
                let (block, value) = self.head(block, expr, &mut item)?;
                Ok(self.give(block, &value, item, dest))
            }
            Expr::Paren(paren) => self.value(block, &paren.expr, dest),
            Expr::Block(inner) if inner.label.is_none() => {
                let end = self.body(block, &inner.block.stmts, dest)?;
                let out = self.block();
                self.goto(end, out, true);
                Ok(end.map(|_| out))
            }
            Expr::If(branch) => self.branch(block, branch, dest),
            Expr::Match(choice) => self.choice(block, choice, dest),
            Expr::While(turn) => {
                let end = self.turns(block, Some(&turn.cond), turn.label.as_ref(), &turn.body)?;
                Ok(self.give(end, &quote!(()), Item::default(), dest))
            }
            Expr::Loop(turn) => {
                let end = self.turns(block, None, turn.label.as_ref(), &turn.body)?;
                Ok(self.give(end, &quote!(()), Item::default(), dest))
            }
            Expr::Return(ret) => {
                let value = ret.expr.as_ref().expect("it has a suspension");
                self.value(block, value, Dest::Return)
            }
            Expr::Assign(assign) => {
                let name = match &*assign.left {
                    Expr::Path(path) => path.path.get_ident(),
                    _ => None,
                };
                let Some(var) = name.and_then(|name| self.names.state(name)) else {
                    let text =
                        "it takes the value of a suspension: give it a type where it is declared";
                    return Err(syn::Error::new_spanned(&assign.left, text));
                };
                self.value(block, &assign.right, Dest::Var(var))
            }
            Expr::ForLoop(turn) => Err(syn::Error::new(
                turn.for_token.span,
                "a `for` with a label in it: write a `while`, its variable lives over the label",
            )),
            Expr::Block(named) => {
                let text = "a block with a name and a label in it: write it as a `loop`";
                Err(syn::Error::new_spanned(&named.label, text))
            }
            other => {
                let mut item = Item::default();
                self.plain(block, &mut item, other)?;
                Err(syn::Error::new_spanned(
                    other,
                    "a suspension inside an expression",
                ))
            }
        }
    }

    fn without_label(
        &mut self,
        block: BlockId,
        expr: &Expr,
        dest: Dest,
    ) -> syn::Result<Option<BlockId>> {
        let mut item = Item::default();
        let drops = dropped(expr);
        // `x = ..` sets a variable whatever it was.
        if let (Expr::Assign(assign), Dest::Nothing) = (expr, dest)
            && let Expr::Path(left) = &*assign.left
            && let Some(var) = left
                .path
                .get_ident()
                .and_then(|name| self.names.state(name))
        {
            let value = self.plain(block, &mut item, &assign.right)?;
            return Ok(self.give(block, &value, item, Dest::Var(var)));
        }
        let over = never_ends(expr);
        let value = self.plain(block, &mut item, expr)?;
        if let Some(name) = drops {
            self.names.forget(&name);
        }
        if over {
            item.tokens = quote!(#value;);
            self.push(block, item);
            return Ok(None);
        }
        Ok(self.give(block, &value, item, dest))
    }
}

/// Nothing comes after it: each way through it jumps.
fn never_ends(expr: &Expr) -> bool {
    let block = |block: &Body| {
        let mut stmts = block.stmts.iter();
        stmts.any(|stmt| matches!(stmt, Stmt::Expr(expr, _) if never_ends(expr)))
    };
    match expr {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Block(inner) => inner.label.is_none() && block(&inner.block),
        Expr::If(branch) => {
            let other = branch.else_branch.as_ref();
            block(&branch.then_branch) && other.is_some_and(|(_, other)| never_ends(other))
        }
        Expr::Match(choice) => choice.arms.iter().all(|arm| never_ends(&arm.body)),
        _ => false,
    }
}

/// The name in `drop(name)`.
fn dropped(expr: &Expr) -> Option<Ident> {
    let Expr::Call(call) = expr else { return None };
    let is_drop = matches!(&*call.func, Expr::Path(path) if path.path.is_ident("drop"));
    match call.args.first() {
        Some(Expr::Path(path)) if is_drop => path.path.get_ident().cloned(),
        _ => None,
    }
}

/// The doc comment of a statement.
fn doc_of(stmt: &Stmt) -> Option<String> {
    let attrs = match stmt {
        Stmt::Local(local) => &local.attrs,
        Stmt::Macro(stmt) => &stmt.attrs,
        Stmt::Expr(Expr::If(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::Match(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::While(expr), _) => &expr.attrs,
        Stmt::Expr(Expr::Return(expr), _) => &expr.attrs,
        // That of an assignment is its left side's.
        Stmt::Expr(Expr::Assign(expr), _) => match &*expr.left {
            Expr::Path(left) => &left.attrs,
            _ => return None,
        },
        Stmt::Expr(Expr::Macro(expr), _) => &expr.attrs,
        _ => return None,
    };
    let line = |attr: &syn::Attribute| match &attr.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attrs.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
