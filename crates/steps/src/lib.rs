//! `#[steps]`: a function of the kernel, written straight, becomes a machine that stops at labels.
//!
//! A path of the block layer is a function with a label wherever another CPU can get in. The
//! attribute makes of `fn f(cx: &mut Cx<'_>, ..) -> T` a module `f` with a `State` that is plain
//! data (`Copy`, `Eq`, `Hash`, `Debug`) and whose `step` runs from one label to the next. The words
//! that it understands, what it refuses and why: docs/internals/steps.md.
//!
//! Read in this order: `suspension.rs` (the words), `machine.rs` (blocks), `lower.rs` (control flow
//! to blocks), `names.rs` and `rewrite.rs` (which variable a name means), `merge.rs` (labels that
//! are one), `flow.rs` (what lives over a label), `emit.rs` (the machine, written out). Apart from
//! them: `mutants.rs` (changes that a test must catch).

#![forbid(unsafe_code)]

mod emit;
mod flow;
mod lower;
mod machine;
mod merge;
mod mutants;
mod names;
mod rewrite;
mod suspension;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{ItemFn, Meta};

/// Makes a machine of the function below. `path`: drivers start it, with the number of its queue.
/// `turns`: it goes on with other queues. `inline`: its caller steps it often. `stages`: its labels
/// are stages within its caller's. `keep(variable)`: methods of the state read that at every label
/// and after the end.
#[proc_macro_attribute]
pub fn steps(args: TokenStream, item: TokenStream) -> TokenStream {
    expand(args.into(), item.into(), cfg!(mutants))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

fn expand(args: Tokens, item: Tokens, with_mutants: bool) -> syn::Result<Tokens> {
    let words = Punctuated::<Meta, syn::Token![,]>::parse_terminated.parse2(args)?;
    let mut options = emit::Options::default();
    for word in words {
        match &word {
            Meta::Path(path) if path.is_ident("path") => options.path = true,
            Meta::Path(path) if path.is_ident("turns") => options.turns = true,
            Meta::Path(path) if path.is_ident("inline") => options.inline = true,
            Meta::Path(path) if path.is_ident("stages") => options.stages = true,
            Meta::List(list) if list.path.is_ident("keep") => {
                let names = Punctuated::<syn::Ident, syn::Token![,]>::parse_terminated;
                options.keep.extend(list.parse_args_with(names)?);
            }
            other => {
                let text = "`path`, `turns`, `inline`, `stages`, `keep(variable)`, or nothing";
                return Err(syn::Error::new_spanned(other, text));
            }
        }
    }
    let mut function: ItemFn = syn::parse2(item)?;
    let mut mutants = with_mutants.then(|| mutants::Mutants::of_source(&mut function));
    let mut machine = lower::lower(&function, options.path)?;
    let known = |name: &syn::Ident| machine.vars.iter().any(|var| var.name == *name);
    if let Some(name) = options.keep.iter().find(|name| !known(name)) {
        return Err(syn::Error::new(
            name.span(),
            "no variable with a type has this name",
        ));
    }
    machine.keep(&options.keep);
    merge::merge(&mut machine);
    let flow = flow::analyse(&machine)?;
    if let Some(mutants) = &mut mutants {
        mutants.of_machine(&mut machine, &flow);
    }
    let written = emit::emit(&function, options, &machine, &flow);
    Ok(match mutants {
        Some(mutants) => mutants.written(&function, written),
        None => written,
    })
}

#[cfg(test)]
mod tests;
