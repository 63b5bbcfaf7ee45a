//! Runs functions, and machines made of them: the little Rust that both are written in.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{BinOp, Expr, Fields, ImplItem, Item, Lit, Member, Pat, Stmt, UnOp};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Int(i64),
    Unit,
    Tuple(Vec<Value>),
    Label(Option<String>),
    /// What a label asks for: `Step`, `Lock` or `Call`. An answer is asked for by a number.
    Next(String, i64),
    Wait(Box<Value>),
    Done(Box<Value>),
    Callee(Option<(String, Box<State>)>),
    State(Box<State>),
    /// `let x: T;`
    Unset,
}

/// The state of a machine: of which function, and its fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub(super) function: String,
    pub(super) fields: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Stop(Option<String>, Value),
    Say(i64),
}

/// A machine as it was written out.
pub(super) struct Code {
    pub(super) fields: Vec<String>,
    functions: BTreeMap<String, syn::ImplItemFn>,
}

impl Code {
    pub(super) fn parse(file: &syn::File) -> Code {
        let Some(Item::Mod(module)) = file.items.first() else {
            panic!("a module comes first");
        };
        let (mut fields, mut functions) = (Vec::new(), BTreeMap::new());
        for item in &module.content.as_ref().expect("its items").1 {
            match item {
                Item::Struct(state) => {
                    let Fields::Named(named) = &state.fields else {
                        continue;
                    };
                    let names = named.named.iter().filter_map(|field| field.ident.as_ref());
                    fields.extend(names.map(ToString::to_string));
                }
                Item::Impl(code) => {
                    functions.extend(code.items.iter().filter_map(|item| match item {
                        ImplItem::Fn(function) => {
                            Some((function.sig.ident.to_string(), function.clone()))
                        }
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
        Code { fields, functions }
    }

    pub(super) fn function(&self, name: &str) -> Option<&syn::ImplItemFn> {
        self.functions.get(name)
    }
}

enum Leave {
    Break(Option<String>, Value),
    Continue(Option<String>),
    Return(Value),
}

type Run = Result<Value, Leave>;

/// Functions and machines, and the world in which they run.
pub(super) struct World<'a> {
    pub(super) sources: &'a BTreeMap<String, syn::ItemFn>,
    pub(super) codes: &'a BTreeMap<String, Code>,
    pub(super) answers: &'a [i64],
    asked: usize,
    /// Turns of loops that are left.
    more: u32,
    answer: i64,
    /// Labels of the suspensions that run functions, from the outside.
    outer: Vec<Option<String>>,
    pub(super) log: Vec<Event>,
    turns: u32,
}

/// The code of one function: what it knows.
struct Frame<'w, 'a> {
    world: &'w mut World<'a>,
    locals: Vec<(String, Value)>,
    this: Option<State>,
}

impl<'a> World<'a> {
    pub(super) fn new(
        sources: &'a BTreeMap<String, syn::ItemFn>,
        codes: &'a BTreeMap<String, Code>,
        answers: &'a [i64],
    ) -> World<'a> {
        World {
            sources,
            codes,
            answers,
            asked: 0,
            more: 7,
            answer: 0,
            outer: Vec::new(),
            log: Vec::new(),
            turns: 0,
        }
    }

    fn frame(&mut self) -> Frame<'_, 'a> {
        Frame {
            world: self,
            locals: Vec::new(),
            this: None,
        }
    }

    pub(super) fn next_answer(&mut self) -> i64 {
        self.asked += 1;
        self.answers.get(self.asked - 1).copied().unwrap_or(0)
    }

    /// A function as it was written.
    pub(super) fn call(&mut self, name: &str, args: Vec<Value>) -> Value {
        let function = &self.sources[name];
        let mut frame = self.frame();
        frame.locals = names(&function.sig).skip(1).zip(args).collect();
        match frame.block(&function.block) {
            Ok(value) | Err(Leave::Return(value)) => value,
            Err(Leave::Break(..) | Leave::Continue(_)) => panic!("a jump out of a function"),
        }
    }

    /// A function of a machine without a state: `new`, `first`.
    pub(super) fn make(&mut self, function: &str, name: &str, args: Vec<Value>) -> Value {
        let code = self.codes[function].function(name).expect("it has it");
        let mut frame = self.frame();
        frame.locals = names(&code.sig).zip(args).collect();
        frame
            .locals
            .push(("State".to_owned(), Value::Label(Some(function.to_owned()))));
        match frame.block(&code.block) {
            Ok(value) | Err(Leave::Return(value)) => value,
            Err(Leave::Break(..) | Leave::Continue(_)) => panic!("a jump out of a function"),
        }
    }

    /// One of a machine's functions on its state: `step`, `label`, `begin`.
    pub(super) fn on(&mut self, state: &mut State, name: &str) -> Value {
        let code = self.codes[&state.function]
            .function(name)
            .expect("it has it");
        let mut frame = self.frame();
        frame.this = Some(state.clone());
        let value = frame.block(&code.block);
        *state = frame.this.expect("it keeps its state");
        match value {
            Ok(value) | Err(Leave::Return(value)) => value,
            Err(Leave::Break(..) | Leave::Continue(_)) => panic!("a jump out of a function"),
        }
    }

    pub(super) fn set_answer(&mut self, answer: i64) {
        self.answer = answer;
    }
}

fn names(sig: &syn::Signature) -> impl Iterator<Item = String> {
    sig.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(input) => Some(name_of(&input.pat)),
        syn::FnArg::Receiver(_) => None,
    })
}

fn name_of(pat: &Pat) -> String {
    match pat {
        Pat::Ident(pat) => pat.ident.to_string(),
        Pat::Type(pat) => name_of(&pat.pat),
        other => panic!("{} is no name", other.to_token_stream()),
    }
}

pub(super) fn last(path: &syn::Path) -> String {
    path.segments.last().expect("a path").ident.to_string()
}

impl Value {
    fn int(&self) -> i64 {
        match self {
            Value::Int(int) => *int,
            other => panic!("{other:?} is no number"),
        }
    }

    fn is_true(&self) -> bool {
        self.int() != 0
    }
}

impl Frame<'_, '_> {
    fn block(&mut self, block: &syn::Block) -> Run {
        let scope = self.locals.len();
        let value = self.stmts(&block.stmts);
        self.locals.truncate(scope);
        value
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> Run {
        let mut value = Value::Unit;
        for stmt in stmts {
            value = match stmt {
                Stmt::Local(local) => {
                    self.local(local)?;
                    Value::Unit
                }
                Stmt::Expr(expr, semi) => {
                    let value = self.eval(expr)?;
                    if semi.is_some() { Value::Unit } else { value }
                }
                Stmt::Macro(stmt) => self.suspension(&stmt.mac)?,
                Stmt::Item(_) => panic!("an item"),
            };
        }
        Ok(value)
    }

    fn local(&mut self, local: &syn::Local) -> Result<(), Leave> {
        let Some(init) = &local.init else {
            self.locals.push((name_of(&local.pat), Value::Unset));
            return Ok(());
        };
        let value = self.eval(&init.expr)?;
        let mut binds = Vec::new();
        if matches(&local.pat, &value, &mut binds) {
            self.locals.extend(binds);
            return Ok(());
        }
        let (_, other) = init.diverge.as_ref().expect("it matches");
        self.eval(other)?;
        panic!("the block of a let-else ends");
    }

    fn place(&mut self, expr: &Expr) -> &mut Value {
        match expr {
            Expr::Field(field) => {
                let Member::Named(name) = &field.member else {
                    panic!("a field")
                };
                let fields = &mut self.this.as_mut().expect("self").fields;
                fields
                    .get_mut(&name.to_string())
                    .unwrap_or_else(|| panic!("no field {name}"))
            }
            Expr::Path(path) => {
                let name = last(&path.path);
                let mut locals = self.locals.iter_mut().rev();
                let local = locals.find(|(known, _)| *known == name);
                &mut local
                    .unwrap_or_else(|| panic!("`{name}` is not known here"))
                    .1
            }
            other => panic!("{} is no place", other.to_token_stream()),
        }
    }

    fn eval(&mut self, expr: &Expr) -> Run {
        Ok(match expr {
            Expr::Lit(lit) => Value::Int(literal(&lit.lit)),
            Expr::Paren(paren) => self.eval(&paren.expr)?,
            Expr::Reference(reference) => self.eval(&reference.expr)?,
            Expr::Block(block) => self.labelled(block)?,
            Expr::Macro(mac) => self.suspension(&mac.mac)?,
            Expr::Tuple(tuple) if tuple.elems.is_empty() => Value::Unit,
            Expr::Tuple(tuple) => {
                let elems = tuple.elems.iter().map(|elem| self.eval(elem));
                Value::Tuple(elems.collect::<Result<_, _>>()?)
            }
            Expr::Path(path) if path.path.segments.len() > 1 => match last(&path.path).as_str() {
                "Step" => Value::Next("Step".to_owned(), 0),
                "None" => Value::Callee(None),
                name => Value::Label(Some(name.to_owned())),
            },
            Expr::Path(path) if path.path.is_ident("None") => Value::Label(None),
            Expr::Path(_) | Expr::Field(_) => match self.place(expr).clone() {
                Value::Unset => panic!("it was not set"),
                value => value,
            },
            Expr::Unary(unary) => {
                let value = self.eval(&unary.expr)?.int();
                Value::Int(match unary.op {
                    UnOp::Neg(_) => value.wrapping_neg(),
                    _ => i64::from(value == 0),
                })
            }
            Expr::Binary(both) => self.binary(both)?,
            Expr::Let(cond) => {
                let value = self.eval(&cond.expr)?;
                let mut binds = Vec::new();
                let matches = matches(&cond.pat, &value, &mut binds);
                self.locals.extend(binds);
                Value::Int(i64::from(matches))
            }
            Expr::Assign(assign) => self.assign(assign)?,
            Expr::If(branch) => self.branch(branch)?,
            Expr::Match(choice) => self.choice(choice)?,
            Expr::While(turn) => self.turns(turn.label.as_ref(), Some(&turn.cond), &turn.body)?,
            Expr::Loop(turn) => self.turns(turn.label.as_ref(), None, &turn.body)?,
            Expr::Break(jump) => {
                let name = jump.label.as_ref().map(|label| label.ident.to_string());
                return Err(Leave::Break(name, Value::Unit));
            }
            Expr::Continue(jump) => {
                let name = jump.label.as_ref().map(|label| label.ident.to_string());
                return Err(Leave::Continue(name));
            }
            Expr::Return(ret) => {
                let value = match &ret.expr {
                    Some(value) => self.eval(value)?,
                    None => Value::Unit,
                };
                return Err(Leave::Return(value));
            }
            Expr::Struct(literal) => self.literal(literal)?,
            Expr::Call(call) => self.function(call)?,
            Expr::MethodCall(call) => self.method(call)?,
            other => panic!("{}", other.to_token_stream()),
        })
    }

    fn labelled(&mut self, block: &syn::ExprBlock) -> Run {
        let scope = self.locals.len();
        let own = block.label.as_ref();
        let own = own.map(|label| label.name.ident.to_string());
        match self.block(&block.block) {
            Err(Leave::Break(name, value)) if own.is_some() && name == own => {
                self.locals.truncate(scope);
                Ok(value)
            }
            end => end,
        }
    }

    fn assign(&mut self, assign: &syn::ExprAssign) -> Run {
        let value = self.eval(&assign.right)?;
        match (&*assign.left, value) {
            (Expr::Tuple(places), Value::Tuple(values)) => {
                for (place, value) in places.elems.iter().zip(values) {
                    *self.place(place) = value;
                }
            }
            (place, value) => *self.place(place) = value,
        }
        Ok(Value::Unit)
    }

    fn branch(&mut self, branch: &syn::ExprIf) -> Run {
        let scope = self.locals.len();
        let cond = self.eval(&branch.cond)?.is_true();
        let value = match &branch.else_branch {
            _ if cond => self.block(&branch.then_branch)?,
            Some((_, other)) => {
                self.locals.truncate(scope);
                self.eval(other)?
            }
            None => Value::Unit,
        };
        self.locals.truncate(scope);
        Ok(value)
    }

    fn binary(&mut self, both: &syn::ExprBinary) -> Run {
        if let BinOp::AddAssign(_) = both.op {
            let value = self.eval(&both.right)?.int();
            let place = self.place(&both.left);
            *place = Value::Int(place.int().wrapping_add(value));
            return Ok(Value::Unit);
        }
        let left = self.eval(&both.left)?.int();
        match both.op {
            BinOp::And(_) if left == 0 => return Ok(Value::Int(0)),
            BinOp::Or(_) if left != 0 => return Ok(Value::Int(1)),
            _ => {}
        }
        let right = self.eval(&both.right)?.int();
        Ok(Value::Int(match both.op {
            BinOp::And(_) | BinOp::Or(_) => i64::from(right != 0),
            BinOp::Add(_) => left.wrapping_add(right),
            BinOp::Lt(_) => i64::from(left < right),
            BinOp::Eq(_) => i64::from(left == right),
            op => panic!("{}", op.to_token_stream()),
        }))
    }

    fn choice(&mut self, choice: &syn::ExprMatch) -> Run {
        let value = self.eval(&choice.expr)?;
        let scope = self.locals.len();
        for arm in &choice.arms {
            self.locals.truncate(scope);
            let mut binds = Vec::new();
            if !matches(&arm.pat, &value, &mut binds) {
                continue;
            }
            self.locals.extend(binds);
            if let Some((_, guard)) = &arm.guard
                && !self.eval(guard)?.is_true()
            {
                continue;
            }
            let value = self.eval(&arm.body);
            self.locals.truncate(scope);
            return value;
        }
        panic!("no arm for {value:?}");
    }

    fn turns(&mut self, label: Option<&syn::Label>, cond: Option<&Expr>, body: &syn::Block) -> Run {
        let own = label.map(|label| label.name.ident.to_string());
        let scope = self.locals.len();
        loop {
            self.world.turns += 1;
            assert!(self.world.turns < 20_000, "it does not end");
            self.locals.truncate(scope);
            if let Some(cond) = cond
                && !self.eval(cond)?.is_true()
            {
                self.locals.truncate(scope);
                return Ok(Value::Unit);
            }
            let end = self.block(body);
            self.locals.truncate(scope);
            match end {
                Ok(_) => {}
                Err(Leave::Continue(name)) if name.is_none() || name == own => {}
                Err(Leave::Break(name, value)) if name.is_none() || name == own => {
                    return Ok(value);
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// The function whose machine this is.
    fn own(&mut self) -> String {
        match self.place(&syn::parse_quote!(State)) {
            Value::Label(Some(function)) => function.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn literal(&mut self, literal: &syn::ExprStruct) -> Run {
        let function = self.own();
        let mut fields = BTreeMap::new();
        for field in &literal.fields {
            let Member::Named(name) = &field.member else {
                panic!("a field")
            };
            fields.insert(name.to_string(), self.eval(&field.expr)?);
        }
        let known: Vec<&String> = fields.keys().collect();
        let mut wanted: Vec<&String> = self.world.codes[&function].fields.iter().collect();
        wanted.sort();
        assert_eq!(known, wanted, "the fields of {function}");
        Ok(Value::State(Box::new(State { function, fields })))
    }

    fn function(&mut self, call: &syn::ExprCall) -> Run {
        let Expr::Path(path) = &*call.func else {
            panic!("a path")
        };
        let name = last(&path.path);
        if name == "take" {
            return Ok(Value::Int(core::mem::take(&mut self.world.answer)));
        }
        let args = call.args.iter().map(|arg| self.eval(arg));
        let mut args: Vec<Value> = args.collect::<Result<_, _>>()?;
        Ok(match name.as_str() {
            "default" => Value::Int(0),
            "may_end_here" => Value::Unit,
            "Some" => args.remove(0),
            "Wait" => Value::Wait(Box::new(args.remove(0))),
            "Done" => Value::Done(Box::new(args.remove(0))),
            "Lock" => Value::Next(name, args[0].int()),
            "new" | "first" => {
                let function = match path.path.segments.iter().rev().nth(2) {
                    Some(module) => module.ident.to_string(),
                    None => self.own(),
                };
                self.world.make(&function, &name, args)
            }
            _ => match args.remove(0) {
                Value::State(state) => Value::Callee(Some((name, state))),
                other => panic!("{name} of {other:?}"),
            },
        })
    }

    fn method(&mut self, call: &syn::ExprMethodCall) -> Run {
        let on = match &*call.receiver {
            Expr::Path(path) => last(&path.path),
            _ => String::new(),
        };
        let name = call.method.to_string();
        match (on.as_str(), name.as_str()) {
            ("callee", "step") => {
                let place = self.this.as_mut().expect("self").fields.get_mut("callee");
                let Some(Value::Callee(Some((variant, mut state)))) = place.cloned() else {
                    panic!("no callee");
                };
                let value = self.world.on(&mut state, "step");
                let this = self.this.as_mut().expect("self");
                this.fields
                    .insert("callee".to_owned(), Value::Callee(Some((variant, state))));
                return Ok(value);
            }
            ("callee", "label") => {
                let Value::State(mut state) = self.place(&call.receiver).clone() else {
                    panic!("no callee");
                };
                return Ok(self.world.on(&mut state, "label"));
            }
            _ => {}
        }
        if name == "stop_at" {
            // The label is asked for by `label()`.
            return Ok(Value::Unit);
        }
        let args = call.args.iter().map(|arg| self.eval(arg));
        let args: Vec<Value> = args.collect::<Result<_, _>>()?;
        Ok(match name.as_str() {
            "say" => {
                self.world.log.push(Event::Say(args[0].int()));
                args[0].clone()
            }
            "more" => {
                let more = self.world.more > 0;
                self.world.more -= u32::from(more);
                Value::Int(i64::from(more))
            }
            "call" => Value::Next("Call".to_owned(), args[0].int()),
            "label" => self.eval(&call.receiver)?,
            "or" => match self.eval(&call.receiver)? {
                Value::Label(None) => args[0].clone(),
                label => label,
            },
            "begin" => {
                let Value::State(mut state) = self.place(&call.receiver).clone() else {
                    panic!("no state");
                };
                self.world.on(&mut state, "begin");
                *self.place(&call.receiver) = Value::State(state);
                Value::Unit
            }
            other => panic!("{other}()"),
        })
    }

    /// A word of a function as it was written: what stops it, and what it is answered.
    fn suspension(&mut self, mac: &syn::Macro) -> Run {
        use syn::punctuated::Punctuated;
        let args = mac.parse_body_with(Punctuated::<Expr, syn::Token![,]>::parse_terminated);
        let args = args.expect("expressions");
        let label = match args.first() {
            Some(Expr::Path(path)) => Some(last(&path.path)),
            _ => None,
        };
        let word = last(&mac.path);
        if word == "sub" {
            let Some(Expr::Call(call)) = args.last() else {
                panic!("a call")
            };
            let Expr::Path(name) = &*call.func else {
                panic!("a name")
            };
            let given = call.args.iter().map(|arg| self.eval(arg));
            let given: Vec<Value> = given.collect::<Result<_, _>>()?;
            self.world.outer.push(label);
            let value = self.world.call(&last(&name.path), given);
            self.world.outer.pop();
            return Ok(value);
        }
        let next = match word.as_str() {
            "at" => Value::Next("Step".to_owned(), 0),
            "ask" | "lock" => self.eval(&args[1])?,
            _ => Value::Next("Call".to_owned(), self.eval(&args[1])?.int()),
        };
        let outer = || self.world.outer.iter().rev().flatten().next().cloned();
        let label = label.or_else(outer);
        self.world.log.push(Event::Stop(label, next));
        Ok(if word == "ask" {
            Value::Int(self.world.next_answer())
        } else {
            Value::Unit
        })
    }
}

fn literal(lit: &Lit) -> i64 {
    match lit {
        Lit::Int(int) => int.base10_parse().expect("a number"),
        other => panic!("{}", other.to_token_stream()),
    }
}

/// `Some(x)` is an odd number, `None` an even one.
fn matches(pat: &Pat, value: &Value, binds: &mut Vec<(String, Value)>) -> bool {
    match (pat, value) {
        (Pat::Wild(_), _) => true,
        (Pat::Type(pat), value) => matches(&pat.pat, value, binds),
        (Pat::Ident(pat), Value::Int(int)) if pat.ident == "None" => int % 2 == 0,
        (Pat::Ident(pat), value) => {
            binds.push((pat.ident.to_string(), value.clone()));
            true
        }
        (Pat::Path(path), Value::Label(Some(part))) => last(&path.path) == *part,
        (Pat::Lit(lit), Value::Int(int)) => literal(&lit.lit) == *int,
        (Pat::Or(or), value) => or.cases.iter().any(|pat| matches(pat, value, binds)),
        (Pat::Tuple(pats), Value::Tuple(values)) => {
            let mut both = pats.elems.iter().zip(values);
            both.all(|(pat, value)| matches(pat, value, binds))
        }
        (Pat::TupleStruct(pat), value) => match (last(&pat.path).as_str(), value) {
            ("Some", Value::Int(int)) => {
                int % 2 != 0 && matches(&pat.elems[0], &Value::Int(int / 2), binds)
            }
            ("Wait", Value::Wait(value)) | ("Done", Value::Done(value)) => {
                matches(&pat.elems[0], value, binds)
            }
            ("Wait", Value::Done(_)) | ("Done", Value::Wait(_)) => false,
            (variant, Value::Callee(Some((callee, state)))) => {
                variant == callee && matches(&pat.elems[0], &Value::State(state.clone()), binds)
            }
            (_, Value::Callee(None)) => false,
            (variant, value) => panic!("{variant} of {value:?}"),
        },
        (pat, value) => panic!("{} of {value:?}", pat.to_token_stream()),
    }
}
