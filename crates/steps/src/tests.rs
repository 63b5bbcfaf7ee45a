//! What the attribute refuses, and where; its machines beside their functions.

mod mutants;
mod random;
mod refusals;

use proc_macro2::TokenStream;

fn expanded(args: &str, source: &str) -> syn::Result<TokenStream> {
    let tokens = |text: &str| text.parse().expect("tokens");
    crate::expand(tokens(args), tokens(source), false)
}
