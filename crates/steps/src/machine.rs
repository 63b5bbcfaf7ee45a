//! A function as blocks of straight code: what the parts of the attribute pass on to each other.

use std::collections::BTreeSet;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{Lifetime, Type};

use crate::suspension::Label;

pub(crate) type BlockId = usize;
pub(crate) type VarId = usize;
pub(crate) type LocalId = usize;

/// A variable with a type: it may live over a label.
pub(crate) struct Var {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) argument: bool,
}

/// A jump out of a block.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) to: BlockId,
    /// It leaves a scope: what is local there ends.
    pub(crate) leaves: bool,
}

/// A statement without a label, and what flow analysis needs of it.
#[derive(Default)]
pub(crate) struct Item {
    pub(crate) tokens: TokenStream,
    /// Variables that it reads or changes.
    pub(crate) uses: BTreeSet<VarId>,
    /// Variables that it sets whatever they were.
    pub(crate) sets: BTreeSet<VarId>,
    /// It gives a variable its first value, and nothing else.
    pub(crate) is_initial: bool,
    pub(crate) declares: Vec<VarId>,
    /// Locals that it binds.
    pub(crate) binds: Vec<(Ident, LocalId)>,
    pub(crate) edges: Vec<Edge>,
    /// It may end after a release that no `return` follows.
    pub(crate) releases: bool,
    /// Loops that it leaves or continues after a release.
    pub(crate) released: Vec<BlockId>,
    /// A use of the CPU before a release of its own, which only the holder of a label has.
    pub(crate) touches: Option<Span>,
    pub(crate) reads_cx: bool,
    /// It may end the function.
    pub(crate) returns: bool,
    /// It begins another machine, with these arguments.
    pub(crate) begins: Option<(usize, TokenStream)>,
    /// It steps another machine, whose value is wanted.
    pub(crate) steps: Option<usize>,
    /// The mark of a mutant without those steps.
    pub(crate) mutant: Option<TokenStream>,
}

pub(crate) enum End {
    /// Not known yet; of a finished machine: never reached.
    Open,
    Goto(Edge),
    Suspend(Box<Suspend>),
}

/// The end of a label.
pub(crate) struct Suspend {
    pub(crate) next: Item,
    /// Nothing but a label: the path has asked for nothing.
    pub(crate) is_plain: bool,
    /// The driver's answer is wanted after it.
    pub(crate) has_answer: bool,
    /// The mark of a mutant without it.
    pub(crate) mutant: Option<TokenStream>,
    pub(crate) to: BlockId,
    /// Locals in scope.
    pub(crate) held: Vec<LocalId>,
}

/// Where a path goes on.
pub(crate) enum Resume {
    /// None: the caller's.
    Label(Option<Label>),
    /// Another machine runs; the label is for its steps that have none.
    Callee { callee: usize, label: Option<Label> },
}

pub(crate) struct Block {
    pub(crate) items: Vec<Item>,
    pub(crate) end: End,
    pub(crate) resume: Option<Resume>,
}

pub(crate) struct Loop {
    pub(crate) name: Option<Lifetime>,
    pub(crate) top: BlockId,
    pub(crate) end: BlockId,
}

/// A function as blocks; the first is its entry.
pub(crate) struct Machine {
    pub(crate) cx: Ident,
    pub(crate) cx_type: Type,
    pub(crate) vars: Vec<Var>,
    pub(crate) blocks: Vec<Block>,
    /// Functions that it runs to their ends.
    pub(crate) callees: Vec<syn::Path>,
    pub(crate) returns: Type,
    /// Labels with their texts, in order.
    pub(crate) labels: Vec<(Label, String)>,
    pub(crate) local_uses: Vec<LocalUse>,
}

impl Machine {
    /// Variables of these names are read at every label.
    pub(crate) fn keep(&mut self, names: &[Ident]) {
        let vars = self.vars.iter().enumerate();
        let kept = vars.filter(|(_, var)| names.contains(&var.name));
        let kept: Vec<VarId> = kept.map(|(var, _)| var).collect();
        for block in &mut self.blocks {
            if let End::Suspend(stop) = &mut block.end {
                stop.next.uses.extend(&kept);
            }
        }
    }
}

/// A local that is read, perhaps in another block than its own.
pub(crate) struct LocalUse {
    pub(crate) name: String,
    pub(crate) bound: BlockId,
    pub(crate) used: BlockId,
    pub(crate) span: Span,
}

/// The name of a variable of the machine until it is known whether it needs a field.
pub(crate) fn placeholder(var: VarId, span: Span) -> Ident {
    format_ident!("__steps_var_{var}", span = span)
}

pub(crate) fn placeholder_of(name: &Ident) -> Option<VarId> {
    name.to_string().strip_prefix("__steps_var_")?.parse().ok()
}

/// A jump to a block, until it is known how that is reached.
const GOTO: &str = "__steps_goto";

pub(crate) fn goto(block: BlockId) -> TokenStream {
    let name = format_ident!("{GOTO}");
    quote!(#name!(#block))
}

/// The same code with other jumps, and other tokens for some of its names.
pub(crate) fn replaced(
    tokens: TokenStream,
    jump: &dyn Fn(BlockId) -> TokenStream,
    variable: &dyn Fn(&Ident) -> Option<TokenStream>,
) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) if name == GOTO => {
                tokens.next();
                let Some(TokenTree::Group(block)) = tokens.next() else {
                    unreachable!("a jump has a block");
                };
                let block: syn::LitInt = syn::parse2(block.stream()).expect("a number");
                out.extend(jump(block.base10_parse().expect("a number")));
            }
            TokenTree::Ident(name) => match variable(&name) {
                Some(tokens) => out.extend(tokens),
                None => out.extend([TokenTree::Ident(name)]),
            },
            TokenTree::Group(group) => {
                let inner = replaced(group.stream(), jump, variable);
                let mut new = Group::new(group.delimiter(), inner);
                new.set_span(group.span());
                out.extend([TokenTree::Group(new)]);
            }
            other => out.extend([other]),
        }
    }
    out
}
