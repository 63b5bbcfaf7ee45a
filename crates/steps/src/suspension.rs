//! The words of a path: where it stops, and for what.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::visit::Visit;
use syn::{Expr, ExprCall, Ident, Macro, Token};

/// A word that stops a path.
pub(crate) enum Suspension {
    /// `at!`, `ask!`, `lock!`, `call!`: the label, and what the driver is to do before it. Written
    /// `_`, it is the label of the caller.
    Label { label: Option<Label>, next: Next },
    /// `sub!(f(..))`: another machine runs to its end; with a label if its own steps have none.
    Sub {
        label: Option<Label>,
        callee: syn::Path,
        args: Vec<Expr>,
    },
}

#[derive(Clone)]
pub(crate) struct Label {
    pub(crate) name: Ident,
}

pub(crate) enum Next {
    Step,
    /// An expression of type `Next`: without an answer, or with one.
    Do(Expr),
    Ask(Expr),
    Call(Expr),
}

const WORDS: [&str; 5] = ["at", "ask", "lock", "call", "sub"];

pub(crate) fn is_suspension(mac: &Macro) -> bool {
    WORDS.iter().any(|word| mac.path.is_ident(word))
}

pub(crate) fn parse(mac: &Macro) -> syn::Result<Suspension> {
    let span = mac.path.segments[0].ident.span();
    let word = mac.path.segments[0].ident.to_string();
    if word == "sub" {
        let Sub { label, call } = mac.parse_body()?;
        let Expr::Path(callee) = *call.func else {
            return Err(syn::Error::new_spanned(
                call.func,
                "the name of a function with #[steps]",
            ));
        };
        return Ok(Suspension::Sub {
            label,
            callee: callee.path,
            args: call.args.into_iter().collect(),
        });
    }
    let Words { label, ask } = mac.parse_body()?;
    let next = match (word.as_str(), ask) {
        ("at", None) => Next::Step,
        ("at" | "lock", Some(next)) => Next::Do(next),
        ("ask", Some(next)) => Next::Ask(next),
        ("call", Some(call)) => Next::Call(call),
        _ => {
            return Err(syn::Error::new(span, format!("{word}!(Label, ..)")));
        }
    };
    Ok(Suspension::Label { label, next })
}

/// `Label, expression`, the last optional.
struct Words {
    label: Option<Label>,
    ask: Option<Expr>,
}

impl Parse for Words {
    fn parse(input: ParseStream) -> syn::Result<Words> {
        let label = match input.parse::<Option<Token![_]>>()? {
            Some(_) => None,
            None if input.peek(Ident) => Some(Label {
                name: input.parse()?,
            }),
            None => return Err(input.error("a label, or `_`: at!(Label)")),
        };
        let mut words = Words { label, ask: None };
        while input.peek(Token![,]) {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if words.ask.is_some() {
                return Err(input.error("one expression; its text is a doc comment above"));
            }
            words.ask = Some(input.parse()?);
        }
        Ok(words)
    }
}

/// `f(..)`, or `Label, f(..)`.
struct Sub {
    label: Option<Label>,
    call: ExprCall,
}

impl Parse for Sub {
    fn parse(input: ParseStream) -> syn::Result<Sub> {
        if input.peek(Ident) && input.peek2(Token![,]) {
            let span = input.span();
            let Words { label, ask } = input.parse()?;
            let call = ask.ok_or_else(|| syn::Error::new(span, "sub!(Label, f(..))"))?;
            return Ok(Sub {
                label,
                call: as_call(call)?,
            });
        }
        let call: Expr = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Sub {
            label: None,
            call: as_call(call)?,
        })
    }
}

fn as_call(expr: Expr) -> syn::Result<ExprCall> {
    match expr {
        Expr::Call(call) => Ok(call),
        other => Err(syn::Error::new_spanned(
            other,
            "a call of a function with #[steps]",
        )),
    }
}

/// A word that stops in the arguments of another macro.
pub(crate) fn in_tokens(tokens: TokenStream) -> bool {
    let mut word = false;
    tokens.into_iter().any(|token| {
        let stops = match &token {
            TokenTree::Group(group) => in_tokens(group.stream()),
            TokenTree::Punct(punct) => word && punct.as_char() == '!',
            _ => false,
        };
        word = matches!(&token, TokenTree::Ident(name) if WORDS.iter().any(|word| name == word));
        stops
    })
}

/// Looks for a word that stops.
struct Finds(bool);

impl<'ast> Visit<'ast> for Finds {
    fn visit_macro(&mut self, mac: &'ast Macro) {
        self.0 |= is_suspension(mac) || in_tokens(mac.tokens.clone());
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

pub(crate) fn in_expr(expr: &Expr) -> bool {
    let mut finds = Finds(false);
    finds.visit_expr(expr);
    finds.0
}
