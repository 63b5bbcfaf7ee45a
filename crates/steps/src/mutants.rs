//! Under `--cfg mutants`: wrong changes of a function, all in one build. A mark in the code asks
//! whether its change is the one that this process runs with; `cargo xtask mutants` runs the tests
//! with each.

use std::collections::BTreeMap;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Expr, ItemFn, Stmt, UnOp};

use crate::flow::Flow;
use crate::machine::{BlockId, End, Item, Machine, Resume, VarId, placeholder_of, replaced};
use crate::suspension;

const MARK: &str = "__steps_mutant";

/// Macros whose statements are no effects.
const CHECKS: [&str; 8] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "unreachable",
];

struct Mutant {
    /// What is done to the text.
    kind: &'static str,
    text: String,
    line: usize,
}

/// The changes of a function, by the numbers of their marks.
#[derive(Default)]
pub(crate) struct Mutants(Vec<Mutant>);

impl Mutants {
    /// The mark of one more change of this code.
    fn mark(&mut self, kind: &'static str, text: &str, line: usize) -> TokenStream {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = text.replace(" :: ", "::");
        self.0.push(Mutant { kind, text, line });
        let (name, number) = (format_ident!("{MARK}"), self.0.len() - 1);
        quote!(#name!(#number))
    }

    /// A statement that this change leaves out.
    fn dropped(&mut self, stmt: &impl ToTokens, text: &str) -> TokenStream {
        let mark = self.mark("drop", text, line_of(&stmt.to_token_stream()));
        quote!(if !#mark { #stmt })
    }

    /// The changes of statements and conditions between two labels.
    pub(crate) fn of_source(function: &mut ItemFn) -> Mutants {
        let mut mutants = Mutants::default();
        let mut source = Source {
            mutants: &mut mutants,
            has_labels: true,
        };
        source.visit_block_mut(&mut function.block);
        mutants
    }

    /// The changes of words, of what is decided by them, of variables that live over labels, and
    /// the moves of statements over a label.
    pub(crate) fn of_machine(&mut self, machine: &mut Machine, flow: &Flow) {
        let (ways, first) = (ways(machine, flow), before_labels(machine));
        for id in (0..machine.blocks.len()).filter(|&id| flow.reached[id]) {
            self.items(machine, flow, id);
            let End::Suspend(stop) = &machine.blocks[id].end else {
                continue;
            };
            let to = stop.to;
            if let Some(Resume::Label(label)) = &machine.blocks[to].resume {
                let name = label.as_ref().map(|label| label.name.clone());
                let name = name.unwrap_or_else(|| Ident::new("_", Span::call_site()));
                if ways[to] == 1 {
                    self.moves(machine, flow, (id, to), first[id], &name);
                }
                self.word(machine, id, &name);
            }
        }
    }

    /// What a word asks of the driver is left out; its label alone is no statement.
    fn word(&mut self, machine: &mut Machine, id: BlockId, name: &Ident) {
        let End::Suspend(stop) = &machine.blocks[id].end else {
            return;
        };
        if !stop.has_answer && !stop.is_plain {
            let text = format!("at {name} {}", shown(machine, &stop.next.tokens));
            let mark = self.mark("drop", &text, line_of(&name.to_token_stream()));
            if let End::Suspend(stop) = &mut machine.blocks[id].end {
                stop.mutant = Some(mark);
            }
        }
    }

    fn items(&mut self, machine: &mut Machine, flow: &Flow, id: BlockId) {
        for at in 0..machine.blocks[id].items.len() {
            let item = &machine.blocks[id].items[at];
            let text = shown(machine, &item.tokens);
            let mut tokens = item.tokens.clone().into_iter();
            let is_test = !item.edges.is_empty() && !has_mark(&item.tokens);
            let is_set = !item.sets.is_empty()
                && !item.is_initial
                && item.edges.is_empty()
                && item.sets.iter().all(|&var| flow.fields[var].is_some());
            let changed = if let Some(callee) = item.steps {
                let value = machine.blocks[id].items.get(at + 1);
                if value.is_some_and(|item| item.tokens.to_string() == "__steps_value ;") {
                    let name = machine.callees[callee].to_token_stream();
                    let mark = self.mark("drop", &format!("sub {name}"), line_of(&name));
                    let items = &mut machine.blocks[id].items;
                    items[at].mutant = Some(mark);
                    items[at + 1].tokens = quote!();
                }
                continue;
            } else if is_test && tokens.next().is_some_and(|token| token.to_string() == "if") {
                let mut cond: Vec<TokenTree> = tokens.collect();
                let then = cond.pop();
                let cond: TokenStream = cond.into_iter().collect();
                let (text, line) = (shown(machine, &cond), line_of(&cond));
                let mark = self.mark("negate", &text, line);
                match text.starts_with("let ") {
                    true => quote!(if !#mark && #cond #then),
                    false => quote!(if #mark != (#cond) #then),
                }
            } else if is_set {
                self.dropped(&item.tokens, &text)
            } else {
                continue;
            };
            machine.blocks[id].items[at].tokens = changed;
        }
    }

    /// The last statement before a label after it, or the first after it before.
    fn moves(
        &mut self,
        machine: &mut Machine,
        flow: &Flow,
        (from, to): (BlockId, BlockId),
        is_first: bool,
        name: &Ident,
    ) {
        let live = &flow.live_in[to];
        let is_plain = matches!(&machine.blocks[from].end, End::Suspend(stop) if stop.is_plain);
        // A barrier before a label that asks for nothing is one after it.
        let moves = |item: &Item| {
            is_movable(machine, item)
                && !(is_plain && shown(machine, &item.tokens).replace(' ', "") == "cx.mb();")
        };
        let before = machine.blocks[from].items.last();
        let before = before
            .filter(|item| moves(item) && item.uses.is_subset(live) && item.sets.is_subset(live));
        let before = before.map(|item| item.tokens.clone());
        let after = machine.blocks[to]
            .items
            .first()
            .filter(|item| moves(item) && item.sets.is_empty() && !is_first);
        let after = after.map(|item| item.tokens.clone());
        let last = machine.blocks[from].items.len().wrapping_sub(1);
        let mut moved = |tokens: TokenStream, where_to: &str| {
            let text = format!("{} {where_to} {name}", shown(machine, &tokens));
            let mark = self.mark("move", &text, line_of(&tokens));
            let stays = quote!(if !#mark { #tokens });
            let tokens = quote!(if #mark { #tokens });
            (
                stays,
                Item {
                    tokens,
                    ..Item::default()
                },
            )
        };
        let before = before.map(|tokens| moved(tokens, "after"));
        let after = after.map(|tokens| moved(tokens, "before"));
        if let Some((stays, comes)) = after {
            machine.blocks[to].items[0].tokens = stays;
            machine.blocks[from].items.push(comes);
        }
        if let Some((stays, comes)) = before {
            machine.blocks[from].items[last].tokens = stays;
            machine.blocks[to].items.insert(0, comes);
        }
    }

    /// The machine with a question for each mark, and a test that prints the list of its changes.
    pub(crate) fn written(&self, function: &ItemFn, tokens: TokenStream) -> TokenStream {
        let (mut marks, mut times) = (BTreeMap::new(), BTreeMap::new());
        let texts: Vec<String> = self
            .0
            .iter()
            .map(|mutant| {
                let times = times.entry((mutant.kind, &mutant.text)).or_insert(0);
                *times += 1;
                match *times {
                    1 => mutant.text.clone(),
                    times => format!("{} ({times})", mutant.text),
                }
            })
            .collect();
        let name = function.sig.ident.to_string();
        let tokens = with_marks(tokens, &mut |mark| {
            let (kind, text) = (self.0[mark].kind, &texts[mark]);
            let new = quote!(crate::step::Mutant::new(file!(), #name, #kind, #text));
            marks.insert(mark, quote!(#new));
            quote!(({ static SITE: crate::step::Mutant = #new; SITE.is_on() }))
        });
        let test = format_ident!("mutants_of_{name}");
        let lines = marks.iter().map(|(&mark, new)| {
            let (line, of) = (self.0[mark].line, [&name, self.0[mark].kind, &texts[mark]]);
            let of = quote!([#(#of),*].join("\t"));
            quote!(println!("mutant\t{}\t{}:{}\t{}", #new.number, file!(), #line, #of);)
        });
        quote! {
            #tokens
            #[cfg(test)]
            #[test]
            fn #test() { #(#lines)* }
        }
    }
}

/// How many ways there are to each block.
fn ways(machine: &Machine, flow: &Flow) -> Vec<u32> {
    let mut ways = vec![0; machine.blocks.len()];
    for id in (0..machine.blocks.len()).filter(|&id| flow.reached[id]) {
        for edge in crate::flow::edges(machine, id) {
            ways[edge.to] += 1;
        }
    }
    ways
}

/// Blocks that may run before the first label.
fn before_labels(machine: &Machine) -> Vec<bool> {
    let mut before = vec![false; machine.blocks.len()];
    let mut todo = vec![0];
    while let Some(id) = todo.pop() {
        if !core::mem::replace(&mut before[id], true) {
            let edges = crate::flow::edges(machine, id)
                .into_iter()
                .map(|edge| edge.to);
            todo.extend(edges.filter(|&to| machine.blocks[to].resume.is_none()));
        }
    }
    before
}

fn is_movable(machine: &Machine, item: &Item) -> bool {
    let local = |name: &str| machine.local_uses.iter().any(|local| local.name == name);
    // What only works on its own variables can be anywhere.
    item.reads_cx
        && item.edges.is_empty()
        && item.binds.is_empty()
        && item.declares.is_empty()
        && item.begins.is_none()
        && item.steps.is_none()
        && !item.returns
        && !item.tokens.is_empty()
        && !any_ident(&item.tokens, &|name| {
            name == "answer" || name == "__steps_value" || local(name)
        })
}

/// It is left out by a mutant, or comes here in one.
fn starts_marked(tokens: &TokenStream) -> bool {
    let text = tokens.to_string();
    ["if ! ", "if "].iter().any(|word| {
        text.strip_prefix(word)
            .is_some_and(|rest| rest.starts_with(MARK))
    })
}

fn any_ident(tokens: &TokenStream, is_it: &dyn Fn(&str) -> bool) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(name) => is_it(&name.to_string()),
        TokenTree::Group(group) => any_ident(&group.stream(), is_it),
        _ => false,
    })
}

fn has_mark(tokens: &TokenStream) -> bool {
    any_ident(tokens, &|name| name == MARK)
}

/// The code as its author wrote it.
fn shown(machine: &Machine, tokens: &TokenStream) -> String {
    let mut parts: Vec<TokenTree> = tokens.clone().into_iter().collect();
    parts.pop_if(|part| part.to_string() == ";");
    if let (true, Some(TokenTree::Group(then))) = (starts_marked(tokens), parts.last()) {
        return shown(machine, &then.stream());
    }
    let name = |var: VarId| machine.vars[var].name.to_token_stream();
    let tokens = replaced(unmarked(tokens.clone()), &|_| quote!(), &|name_of| {
        placeholder_of(name_of).map(name)
    });
    tokens.to_string()
}

/// The same code with something else for each mark.
fn with_marks(tokens: TokenStream, mark: &mut dyn FnMut(usize) -> TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) if name == MARK => {
                tokens.next();
                let number = tokens.next().expect("a mark has a number");
                let TokenTree::Group(number) = number else {
                    unreachable!("in brackets");
                };
                let number: syn::LitInt = syn::parse2(number.stream()).expect("a number");
                out.extend(mark(number.base10_parse().expect("a number")));
            }
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), with_marks(group.stream(), mark));
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            other => out.extend([other]),
        }
    }
    out
}

/// The same code whatever the numbers of its marks: two labels are one if they differ in those
/// alone.
pub(crate) fn unmarked(tokens: TokenStream) -> TokenStream {
    with_marks(tokens, &mut |_| quote!())
}

/// The line of its first token that was written in the function.
fn line_of(tokens: &TokenStream) -> usize {
    let here = Span::call_site().start().line;
    let line = |token: TokenTree| match token {
        TokenTree::Group(group) => line_of(&group.stream()),
        token => token.span().start().line,
    };
    let mut lines = tokens.clone().into_iter().map(line);
    lines.find(|&line| line > here).unwrap_or(here)
}

/// Marks statements and conditions of a function.
struct Source<'a> {
    mutants: &'a mut Mutants,
    /// In code with labels, whose variables are the machine's.
    has_labels: bool,
}

impl Source<'_> {
    /// An expression that is true or false.
    fn condition(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Binary(both) if matches!(both.op, BinOp::And(_)) => {
                let mut parts = Vec::new();
                conjuncts(expr.clone(), &mut parts);
                let parts = parts.into_iter().flat_map(|part| self.conjunct(part));
                *expr = parts
                    .reduce(|left, right| syn::parse_quote!(#left && #right))
                    .expect("parts");
            }
            Expr::Binary(both) if matches!(both.op, BinOp::Or(_)) => {
                self.condition(&mut both.left);
                self.condition(&mut both.right);
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                self.condition(&mut unary.expr);
            }
            Expr::Paren(paren) => self.condition(&mut paren.expr),
            Expr::Let(cond) if self.has_labels => self.visit_expr_mut(&mut cond.expr),
            Expr::Let(_) => {
                let parts = self.conjunct(expr.clone()).into_iter();
                *expr = parts
                    .reduce(|left, right| syn::parse_quote!(#left && #right))
                    .expect("parts");
            }
            // It stops, or is decided at compile time.
            _ if suspension::in_expr(expr) => {}
            _ => {
                let text = expr.to_token_stream();
                let mark = self
                    .mutants
                    .mark("negate", &text.to_string(), line_of(&text));
                if let Expr::Binary(both) = expr {
                    self.visit_expr_mut(&mut both.left);
                    self.visit_expr_mut(&mut both.right);
                } else {
                    self.visit_expr_mut(expr);
                }
                *expr = syn::parse_quote!((#mark != (#expr)));
            }
        }
    }

    /// A part of `a && b`; a `let` that does not match.
    fn conjunct(&mut self, mut part: Expr) -> Vec<Expr> {
        if !matches!(part, Expr::Let(_)) {
            self.condition(&mut part);
            return vec![part];
        }
        if suspension::in_expr(&part) {
            return vec![part];
        }
        let text = part.to_token_stream();
        let mark = self
            .mutants
            .mark("negate", &text.to_string(), line_of(&text));
        visit_mut::visit_expr_mut(self, &mut part);
        vec![syn::parse_quote!(!#mark), part]
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        let text = stmt.to_token_stream().to_string();
        let drops = match stmt {
            Stmt::Expr(expr, Some(_)) => self.is_effect(expr),
            Stmt::Macro(stmt) => is_effect_macro(&stmt.mac),
            _ => false,
        };
        visit_mut::visit_stmt_mut(self, stmt);
        if drops {
            let dropped = self.mutants.dropped(stmt, &text);
            *stmt = Stmt::Expr(syn::parse_quote!(#dropped), None);
        }
    }

    /// A statement that can be left out.
    fn is_effect(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Call(call) => {
                !matches!(&*call.func, Expr::Path(path) if path.path.is_ident("drop"))
                    && !suspension::in_expr(expr)
            }
            // Of a variable of the machine: when it is known where that lives.
            Expr::Assign(assign) => {
                let is_name = matches!(&*assign.left, Expr::Path(_));
                !(self.has_labels && is_name || suspension::in_expr(expr))
            }
            Expr::MethodCall(_) | Expr::Binary(_) => !suspension::in_expr(expr),
            Expr::Macro(mac) => is_effect_macro(&mac.mac),
            _ => false,
        }
    }
}

fn is_effect_macro(mac: &syn::Macro) -> bool {
    let is_check = CHECKS.iter().any(|check| mac.path.is_ident(check));
    !is_check && !suspension::is_suspension(mac)
}

/// The parts of `a && b && c`.
fn conjuncts(expr: Expr, parts: &mut Vec<Expr>) {
    match expr {
        Expr::Binary(both) if matches!(both.op, BinOp::And(_)) => {
            conjuncts(*both.left, parts);
            conjuncts(*both.right, parts);
        }
        other => parts.push(other),
    }
}

impl VisitMut for Source<'_> {
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.iter_mut().for_each(|stmt| self.stmt(stmt));
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let has_labels = self.has_labels;
        self.has_labels &= suspension::in_expr(expr);
        match expr {
            Expr::If(branch) => {
                self.condition(&mut branch.cond);
                self.visit_block_mut(&mut branch.then_branch);
                if let Some((_, other)) = &mut branch.else_branch {
                    self.visit_expr_mut(other);
                }
            }
            Expr::While(turn) => {
                self.condition(&mut turn.cond);
                self.visit_block_mut(&mut turn.body);
            }
            Expr::Binary(both) if is_boolean(both.op) => self.condition(expr),
            other => visit_mut::visit_expr_mut(self, other),
        }
        self.has_labels = has_labels;
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        if let Some((_, guard)) = &mut arm.guard {
            self.condition(guard);
        }
        self.visit_expr_mut(&mut arm.body);
    }

    fn visit_macro_mut(&mut self, _: &mut syn::Macro) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

fn is_boolean(op: BinOp) -> bool {
    use BinOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    matches!(
        op,
        And(_) | Or(_) | Eq(_) | Ne(_) | Lt(_) | Le(_) | Gt(_) | Ge(_)
    )
}
