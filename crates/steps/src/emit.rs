//! The machine, written out.

use core::cell::Cell;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{ItemFn, Lifetime, Type, Visibility};

use crate::flow::{self, Flow, Vars};
use crate::machine::{self, Block, BlockId, End, Item, Machine, Resume, Suspend, Var, VarId};

/// The words in the brackets of `#[steps(..)]`.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// Drivers start it, with the number of its queue.
    pub(crate) path: bool,
    /// It goes on with other queues.
    pub(crate) turns: bool,
    /// Its caller steps it often: no call of its own.
    pub(crate) inline: bool,
    /// Its labels are stages within its caller's label.
    pub(crate) stages: bool,
    /// Variables that are never reset.
    pub(crate) keep: Vec<Ident>,
}

struct Emit<'a> {
    function: &'a ItemFn,
    options: Options,
    machine: &'a Machine,
    flow: &'a Flow,
    /// The function's visibility, as its module writes it.
    inner: Visibility,
    /// The place of each part in the code: jumps to a later one are known to the compiler.
    places: Vec<usize>,
    /// What is before the first label is being written, to run before a machine's first step.
    begins: Cell<bool>,
}

pub(crate) fn emit(
    function: &ItemFn,
    options: Options,
    machine: &Machine,
    flow: &Flow,
) -> TokenStream {
    let (name, vis, attrs) = (&function.sig.ident, &function.vis, &function.attrs);
    let emit = Emit {
        function,
        options,
        machine,
        flow,
        inner: inner(vis),
        places: flow::places(machine, flow),
        begins: Cell::new(false),
    };
    let (state, constructors, steps) = (emit.state(), emit.constructors(), emit.steps());
    let labels = emit.labels();
    quote! {
        #(#attrs)*
        #[allow(
            unused, unreachable_pub, private_interfaces, clippy::all, clippy::pedantic,
            reason = "written by #[steps]"
        )]
        #vis mod #name {
            use super::*;
            use crate::step::Steps as _;

            #state

            impl State {
                #constructors
            }

            #steps
        }
        #labels
    }
}

impl Emit<'_> {
    /// The state of the machine, and the function that it runs.
    fn state(&self) -> TokenStream {
        let inner = &self.inner;
        let (fields, types) = self.fields();
        let queue = self.options.path.then(|| {
            quote! {
                #inner queue: crate::request::QueueId,
                /// The label that the next step executes.
                #inner label: crate::step::Label,
            }
        });
        let (callee, callee_enum) = self.callee();
        let parts = self.parts().map(|block| self.part(block));
        quote! {
            /// Where it is, and what lives there.
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            #inner struct State {
                pc: Pc,
                #queue
                #callee
                #(#inner #fields: #types,)*
            }

            /// The part that runs next.
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            #[repr(u8)]
            #inner enum Pc { #(#parts,)* }

            #callee_enum
        }
    }

    /// Blocks that are entered by their numbers.
    fn parts(&self) -> impl Iterator<Item = BlockId> {
        (0..self.machine.blocks.len()).filter(|&block| self.flow.is_entered(block))
    }

    /// The arguments that are variables.
    fn arguments(&self) -> impl Iterator<Item = (VarId, &Var)> {
        let vars = self.machine.vars.iter().enumerate();
        vars.filter(|(_, var)| var.argument)
    }

    /// The parameters of functions that make a state.
    fn parameters(&self) -> TokenStream {
        let parameters = self.arguments().map(|(_, var)| {
            let (name, ty) = (&var.name, &var.ty);
            quote!(#name: #ty)
        });
        match self.options.path {
            true => quote!(queue: crate::request::QueueId #(, #parameters)*),
            false => quote!(#(#parameters),*),
        }
    }

    /// Their names.
    fn given(&self) -> TokenStream {
        let given = self.arguments().map(|(_, var)| &var.name);
        match self.options.path {
            true => quote!(queue #(, #given)*),
            false => quote!(#(#given),*),
        }
    }

    fn constructors(&self) -> TokenStream {
        let (inner, parameters, [enter, _]) = (&self.inner, self.parameters(), self.names());
        let queue = self
            .options
            .path
            .then(|| quote!(queue, label: crate::step::Label(0),));
        let has_callee = !self.machine.callees.is_empty();
        let callee = has_callee.then(|| quote!(callee: Callee::None,));
        let (fields, _) = self.fields();
        let inits = fields.iter().map(|&field| {
            let is_its = |(var, _): &(VarId, &Var)| self.flow.fields[*var].as_ref() == Some(field);
            match self.arguments().find(is_its) {
                Some((_, Var { name, .. })) => quote!(#field: #name),
                None => quote!(#field: Default::default()),
            }
        });
        let first = self.first();
        let inside = self.options.path.then(|| self.inside());
        quote! {
            /// At its beginning: what is before the first label runs with the first step.
            #inner fn #enter(#parameters) -> State {
                State { pc: Pc::P0, #queue #callee #(#inits,)* }
            }

            #first
            #inside
        }
    }

    /// Names of the functions that make a state at the function's beginning, and at its first
    /// label: a path has begun when its label comes.
    fn names(&self) -> [Ident; 2] {
        let names = match self.options.path {
            true => ["entered", "new"],
            false => ["new", "first"],
        };
        names.map(|name| Ident::new(name, Span::call_site()))
    }

    fn steps(&self) -> TokenStream {
        let (cx, cx_type) = (&self.machine.cx, &self.machine.cx_type);
        let returns = &self.machine.returns;
        let parts = self.part_code(self.parts().collect(), &quote!());
        let (label, stage, find) = (self.label(), self.stage(), self.find());
        let inline = self.options.inline || self.options.path;
        let inline = inline.then(|| quote!(#[inline(always)]));
        let (path, label) = match self.options.path {
            true => (self.path(&label), quote!(Some(self.label))),
            false => (quote!(), label),
        };
        quote! {
            #path

            impl crate::step::Steps for State {
                type Done = #returns;

                #inline
                fn step(&mut self, #cx: #cx_type) -> crate::step::Sub<#returns> {
                    let mut __steps_pc = self.pc;
                    '__steps_run: loop { #parts }
                }

                #[inline]
                fn label(&self) -> Option<crate::step::Label> {
                    #label
                }

                #stage
                #find
            }
        }
    }

    /// A path keeps its queue, and the number of its label: drivers ask for it often.
    fn path(&self, label: &TokenStream) -> TokenStream {
        let (inner, cx, cx_type) = (&self.inner, &self.machine.cx, &self.machine.cx_type);
        let turns = self
            .options
            .turns
            .then(|| quote!(self.queue = #cx.queue();));
        quote! {
            impl State {
                /// The label by the state alone: the one that it keeps.
                #inner fn found_label(&self) -> crate::step::Label {
                    let label: Option<crate::step::Label> = #label;
                    label.expect("a path is at a label")
                }
            }

            impl crate::path::Path for State {
                #[inline]
                fn label(&self) -> crate::step::Label {
                    self.label
                }

                #[inline]
                fn queue(&self) -> crate::request::QueueId {
                    self.queue
                }

                fn stage(&self) -> Option<&'static str> {
                    crate::step::Steps::stage(self)
                }

                fn step(&mut self, #cx: #cx_type) -> crate::step::Next {
                    let step = crate::step::Steps::step(self, #cx);
                    #turns
                    match step {
                        crate::step::Sub::Wait(next) => {
                            self.label = #cx.label;
                            debug_assert_eq!(self.label, self.found_label(), "the label is noted");
                            next
                        }
                        crate::step::Sub::Done(()) => crate::step::Next::Done,
                    }
                }
            }
        }
    }

    /// These parts: code that a part jumps to follows it, after a block that the jump leaves.
    fn part_code(&self, mut parts: Vec<BlockId>, others: &TokenStream) -> TokenStream {
        parts.sort_by_key(|&block| self.places[block]);
        let code = |block| {
            let (strays, body) = (self.strays(block), self.block(block));
            quote!({ #strays #body })
        };
        let is_behind = |block: BlockId| {
            let mut jumps = flow::jumps(self.machine, self.flow);
            jumps.any(|(from, to)| to == block && self.places[from] < self.places[to])
        };
        let (behind, alone): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|&block| is_behind(block));
        let arms = alone.iter().map(|&block| (block, code(block)));
        let jumps = behind.iter().map(|&block| {
            let end = self.end(block);
            (block, quote!(break #end))
        });
        let arms = arms.chain(jumps).map(|(block, code)| {
            let number = self.number(block);
            quote!(#number => #code,)
        });
        let all = quote!(match __steps_pc { #(#arms)* #others });
        behind.iter().fold(all, |before, &block| {
            let (end, code) = (self.end(block), code(block));
            quote!(#end: { #before } #code)
        })
    }

    /// The end of the block after which a part is.
    fn end(&self, block: BlockId) -> Lifetime {
        Lifetime::new(&format!("'__steps_{}", self.part(block)), Span::call_site())
    }

    fn part(&self, block: BlockId) -> Ident {
        format_ident!("P{}", self.parts().take_while(|&part| part < block).count())
    }

    fn number(&self, block: BlockId) -> TokenStream {
        let part = self.part(block);
        quote!(Pc::#part)
    }

    /// Names and types of the fields, each once.
    fn fields(&self) -> (Vec<&Ident>, Vec<&Type>) {
        let mut names: Vec<&Ident> = Vec::new();
        let mut types = Vec::new();
        for (var, field) in self.flow.fields.iter().enumerate() {
            if let Some(field) = field
                && !names.contains(&field)
            {
                names.push(field);
                types.push(&self.machine.vars[var].ty);
            }
        }
        (names, types)
    }

    /// The field of the machine that this one runs, and its type.
    fn callee(&self) -> (TokenStream, TokenStream) {
        if self.machine.callees.is_empty() {
            return (quote!(), quote!());
        }
        let inner = &self.inner;
        let variants = self.machine.callees.iter().map(|path| {
            let variant = variant(path);
            quote!(#variant(#path::State))
        });
        let callee_enum = quote! {
            /// The function that runs now.
            #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
            #inner enum Callee { None, #(#variants,)* }
        };
        (quote!(callee: Callee,), callee_enum)
    }

    /// A machine that is at its first label already, as a call leaves it: if nothing before that
    /// label needs a CPU.
    fn first(&self) -> TokenStream {
        let Some(before) = self.before_labels() else {
            return quote!();
        };
        self.begins.set(true);
        let before = before
            .into_iter()
            .filter(|&block| self.flow.is_entered(block));
        let parts = self.part_code(
            before.collect(),
            &quote!(_ => unreachable!("before a label"),),
        );
        self.begins.set(false);
        let (inner, [enter, name]) = (&self.inner, self.names());
        let (parameters, given) = (self.parameters(), self.given());
        let label = self
            .options
            .path
            .then(|| quote!(state.label = state.found_label();));
        quote! {
            /// At its first label, as a call leaves it.
            #inner fn #name(#parameters) -> State {
                let mut state = State::#enter(#given);
                state.begin();
                #label
                state
            }

            fn begin(&mut self) {
                let mut __steps_pc = Pc::P0;
                '__steps_run: loop { #parts }
            }
        }
    }

    /// The blocks before the first label on each way, if all can run without a CPU.
    fn before_labels(&self) -> Option<Vec<BlockId>> {
        let mut blocks = vec![0];
        let mut at = 0;
        while let Some(&id) = blocks.get(at) {
            let block = &self.machine.blocks[id];
            for item in &block.items {
                if item.returns || item.reads_cx || item.touches.is_some() {
                    return None;
                }
            }
            if let End::Suspend(stop) = &block.end {
                let last = block.items.last();
                let begins = last.is_some_and(|item| item.begins.is_some());
                if !(stop.is_plain || begins && self.options.path) {
                    return None;
                }
            }
            let jumps = block.items.iter().flat_map(|item| &item.edges);
            let goes = match &block.end {
                End::Goto(edge) => Some(edge),
                _ => None,
            };
            for edge in jumps.chain(goes) {
                if !blocks.contains(&edge.to) {
                    blocks.push(edge.to);
                }
            }
            at += 1;
        }
        Some(blocks)
    }

    /// Machines that begin inside a function that this one runs.
    fn inside(&self) -> TokenStream {
        let (inner, parameters, given) = (&self.inner, self.parameters(), self.given());
        let blocks = self.machine.blocks.iter().enumerate();
        let waits = blocks.filter_map(|(id, block)| match &block.resume {
            Some(Resume::Callee { callee, .. }) => Some((*callee, id)),
            _ => None,
        });
        let mut seen = std::collections::BTreeSet::new();
        let all = waits.filter(|(callee, _)| seen.insert(*callee));
        all.map(|(callee, id)| {
            let path = &self.machine.callees[callee];
            let last = &path.segments.last().expect("a path has a name").ident;
            let (name, variant) = (format_ident!("inside_{last}"), variant(path));
            let number = self.number(id);
            quote! {
                /// As if the function that it runs had been called with nothing else to be kept.
                #inner fn #name(#parameters, callee: #path::State) -> State {
                    let callee = Callee::#variant(callee);
                    let mut state = State { pc: #number, callee, ..State::entered(#given) };
                    state.label = state.found_label();
                    state
                }
            }
        })
        .collect()
    }

    fn block(&self, id: BlockId) -> TokenStream {
        let block: &Block = &self.machine.blocks[id];
        let items = block.items.iter().map(|item| self.item(id, item));
        let end = match &block.end {
            End::Open => quote!(unreachable!("it has ended")),
            End::Goto(edge) => self.goto(id, edge.to),
            End::Suspend(stop) => self.suspend(id, stop),
        };
        // A callee that has labels of its own notes those.
        let label = match &block.resume {
            Some(Resume::Callee { .. }) => self.stop_at(id),
            _ => quote!(),
        };
        quote!(#label #(#items)* #end)
    }

    fn declare<'a>(&self, vars: impl IntoIterator<Item = &'a VarId>) -> TokenStream {
        let vars = vars.into_iter();
        let declares = vars
            .filter(|&&var| self.flow.fields[var].is_none())
            .map(|&var| {
                let (name, ty) = (
                    self.name(var, Span::call_site()),
                    &self.machine.vars[var].ty,
                );
                quote!(let mut #name: #ty;)
            });
        quote!(#(#declares)*)
    }

    /// Variables that the code of a block with a number sets and reads, declared before a label:
    /// what they were is not read, so they need no field.
    fn strays(&self, block: BlockId) -> TokenStream {
        let blocks = self.machine.blocks.iter().enumerate();
        let here = blocks.filter(|&(id, _)| self.flow.root[id] == block);
        let items = || here.clone().flat_map(|(_, block)| &block.items);
        let mentioned: Vars = items()
            .flat_map(|item| item.uses.iter().chain(&item.sets))
            .copied()
            .collect();
        let declared: Vars = items().flat_map(|item| &item.declares).copied().collect();
        self.declare(&(&mentioned - &declared))
    }

    fn item(&self, block: BlockId, item: &Item) -> TokenStream {
        let begin = if self.begins.get() { "first" } else { "new" };
        let mut tokens = self.declare(&item.declares);
        if let Some((callee, args)) = &item.begins {
            let path = &self.machine.callees[*callee];
            let (variant, begin) = (variant(path), format_ident!("{begin}"));
            let begins = quote!(self.callee = Callee::#variant(#path::State::#begin(#args)););
            tokens.extend(self.finish(block, begins));
        }
        if let Some(callee) = item.steps {
            let variant = variant(&self.machine.callees[callee]);
            let cx = &self.machine.cx;
            let value = quote! {
                match &mut self.callee {
                    Callee::#variant(callee) => match callee.step(#cx) {
                        crate::step::Sub::Wait(next) => return crate::step::Sub::Wait(next),
                        crate::step::Sub::Done(value) => value,
                    },
                    _ => unreachable!("the function that was called"),
                }
            };
            tokens.extend(match &item.mutant {
                None => quote!(let __steps_value = #value;),
                Some(mark) => quote!(if !#mark { let _ = #value; }),
            });
        }
        tokens.extend(self.finish(block, item.tokens.clone()));
        let binds = item.binds.iter();
        let held = binds.filter(|(_, local)| self.flow.held.contains(local));
        let held = held.map(|(name, _)| name);
        tokens.extend(quote!(#(crate::step::may_end_here(&#held);)*));
        tokens
    }

    fn suspend(&self, block: BlockId, stop: &Suspend) -> TokenStream {
        let (resets, to) = (self.resets(block, stop), self.number(stop.to));
        if self.begins.get() {
            return quote!(#resets self.pc = #to; return;);
        }
        let begins = self.machine.blocks[block]
            .items
            .last()
            .is_some_and(|item| item.begins.is_some());
        if begins && stop.next.tokens.is_empty() {
            let jump = self.jump(block, stop.to);
            return quote!(#resets self.pc = #to; #jump);
        }
        let next = self.finish(block, stop.next.tokens.clone());
        let label = self.stop_at(stop.to);
        let forget = match self.flow.ran[block] {
            true => quote!(self.callee = Callee::None;),
            false => quote!(),
        };
        let without = stop.mutant.as_ref().map(|mark| {
            let number = self.number(stop.to);
            let jump = quote!(__steps_pc = #number; continue '__steps_run;);
            quote!(if #mark { #forget #resets self.pc = #to; #jump })
        });
        quote! {
            #without
            let __steps_next = #next;
            #forget
            #resets
            self.pc = #to;
            #label
            return crate::step::Sub::Wait(__steps_next);
        }
    }

    /// Notes the label of a block where the path goes on, if that is known here.
    fn stop_at(&self, block: BlockId) -> TokenStream {
        let label = match &self.machine.blocks[block].resume {
            Some(Resume::Label(label) | Resume::Callee { label, .. }) => label.as_ref(),
            None => None,
        };
        label
            .filter(|_| !self.options.stages)
            .map_or(quote!(), |label| {
                let (cx, name) = (&self.machine.cx, &label.name);
                quote!(#cx.stop_at(At::#name.label());)
            })
    }

    fn resets(&self, block: BlockId, stop: &Suspend) -> TokenStream {
        let field = |var: &VarId| self.flow.fields[*var].as_ref();
        let live: Vec<_> = self.flow.live_in[stop.to]
            .iter()
            .filter_map(field)
            .collect();
        let dead = self.flow.resets[block].iter().filter_map(field);
        let dead = dead.filter(|field| !live.contains(field) && !self.options.keep.contains(field));
        quote!(#(self.#dead = Default::default();)*)
    }

    fn goto(&self, from: BlockId, to: BlockId) -> TokenStream {
        if self.flow.numbered[to] {
            return self.jump(from, to);
        }
        let block = self.block(to);
        quote!({ #block })
    }

    /// To a part: one below this, or any, by its number.
    fn jump(&self, from: BlockId, to: BlockId) -> TokenStream {
        if self.places[self.flow.root[from]] < self.places[to] {
            let end = self.end(to);
            return quote!({ break #end; });
        }
        let number = self.number(to);
        quote!({ __steps_pc = #number; continue '__steps_run; })
    }

    /// What a variable is called in the machine.
    fn name(&self, var: VarId, span: Span) -> TokenStream {
        match &self.flow.fields[var] {
            Some(field) => {
                let this = Ident::new("self", Span::call_site());
                let field = Ident::new(&field.to_string(), span);
                quote!(#this.#field)
            }
            None => {
                let name =
                    format_ident!("__steps_{}_{var}", self.machine.vars[var].name, span = span);
                quote!(#name)
            }
        }
    }

    /// Puts names and jumps in their places.
    fn finish(&self, from: BlockId, tokens: TokenStream) -> TokenStream {
        let variable = |name: &Ident| {
            let var = machine::placeholder_of(name)?;
            Some(self.name(var, name.span()))
        };
        machine::replaced(tokens, &|to| self.goto(from, to), &variable)
    }

    fn label(&self) -> TokenStream {
        match self.options.stages {
            true => quote!(None),
            false => self.asked("label", "label", true),
        }
    }

    /// Where it is within its caller's label: its own stages, and those of functions that it runs.
    fn stage(&self) -> TokenStream {
        let own = self.options.stages;
        if !own && self.machine.callees.is_empty() {
            return quote!();
        }
        let stage = self.asked("stage", "name", own);
        quote! {
            fn stage(&self) -> Option<&'static str> {
                #stage
            }
        }
    }

    /// What it would be asked where it stops: by the function that it runs, or its `own` label.
    fn asked(&self, of_callee: &str, of_label: &str, own: bool) -> TokenStream {
        let (of_callee, of_label) = (format_ident!("{of_callee}"), format_ident!("{of_label}"));
        let mut arms = Vec::new();
        for (id, block) in self.machine.blocks.iter().enumerate() {
            let Some(resume) = block.resume.as_ref().filter(|_| self.flow.reached[id]) else {
                continue;
            };
            let number = self.number(id);
            let (Resume::Label(label) | Resume::Callee { label, .. }) = resume;
            let label = label.as_ref().filter(|_| own).map(|label| {
                let name = &label.name;
                quote!(Some(At::#name.#of_label()))
            });
            arms.push(match (resume, label) {
                (Resume::Label(_), None) => continue,
                (Resume::Label(_), Some(label)) => quote!(#number => #label),
                (Resume::Callee { callee, .. }, label) => {
                    let variant = variant(&self.machine.callees[*callee]);
                    let or = label.map_or(quote!(), |label| quote!(.or(#label)));
                    quote!(#number => match &self.callee {
                        Callee::#variant(callee) => callee.#of_callee()#or,
                        _ => None,
                    })
                }
            });
        }
        quote!(match self.pc { #(#arms,)* _ => None })
    }

    fn find(&self) -> TokenStream {
        if self.machine.callees.is_empty() {
            return quote!();
        }
        let arms = self.machine.callees.iter().map(|path| {
            let variant = variant(path);
            quote!(Callee::#variant(callee) => callee.find())
        });
        quote! {
            fn find<S: 'static>(&self) -> Option<&S> {
                let this = (self as &dyn core::any::Any).downcast_ref();
                this.or_else(|| match &self.callee {
                    #(#arms,)*
                    Callee::None => None,
                })
            }
        }
    }

    /// A macro of the function's name that hands its labels with their texts on.
    fn labels(&self) -> TokenStream {
        let name = &self.function.sig.ident;
        let labels = self.machine.labels.iter().map(|(label, doc)| {
            let name = &label.name;
            quote!(#[doc = #doc] #name,)
        });
        let dollar = TokenTree::Punct(proc_macro2::Punct::new('$', proc_macro2::Spacing::Alone));
        let rest = |name: &str| {
            let name = format_ident!("{name}");
            (
                quote!(#dollar(#dollar #name:tt)*),
                quote!(#dollar(#dollar #name)*),
            )
        };
        let ((head, head_given), (before, before_given)) = (rest("head"), rest("before"));
        let (rest, rest_given) = rest("rest");
        quote! {
            #[allow(unused_macros, reason = "labels may be listed elsewhere, or nowhere")]
            macro_rules! #name {
                ([#head] [#before] #rest) => {
                    crate::step::labels! {
                        @ [#head_given] [#before_given #(#labels)*] #rest_given
                    }
                };
            }
        }
    }
}

/// The function's visibility, as its module writes it.
fn inner(vis: &Visibility) -> Visibility {
    match vis {
        Visibility::Inherited => syn::parse_quote!(pub(super)),
        Visibility::Restricted(to) if to.path.is_ident("super") => {
            syn::parse_quote!(pub(in super::super))
        }
        other => other.clone(),
    }
}

/// The variant of a function among those that a machine runs: `TagSearchDriver` for
/// `tag::search_driver`.
fn variant(path: &syn::Path) -> Ident {
    let mut name = String::new();
    for segment in &path.segments {
        for word in segment.ident.to_string().split('_') {
            let mut letters = word.chars();
            name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            name.extend(letters);
        }
    }
    let last = path.segments.last().expect("a path has a name");
    Ident::new(&name, last.ident.span())
}
