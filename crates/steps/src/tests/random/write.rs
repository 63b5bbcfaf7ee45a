//! Writes functions by the bytes that it is given: the fewer and the smaller, the simpler.

use std::fmt::Write as _;

#[derive(Clone)]
struct Var {
    name: String,
    /// It has a type: it may be used after a label.
    is_typed: bool,
    /// It has a value, and no label came after it unless it has a type.
    is_known: bool,
}

pub(super) struct Writer<'a> {
    bytes: &'a [u8],
    scopes: Vec<Vec<Var>>,
    loops: usize,
    function: usize,
    labels: usize,
    depth: u32,
    stops: u32,
    assigns: u32,
    /// Nothing follows what was written last: each way through it jumps.
    ends: bool,
    /// Statements without a label set a variable only as a whole: then liveness is exact.
    pub(super) is_exact: bool,
}

pub(super) const FUNCTIONS: usize = 3;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Writer<'a> {
        Writer {
            bytes,
            scopes: Vec::new(),
            loops: 0,
            function: 0,
            labels: 0,
            depth: 0,
            stops: 0,
            assigns: 0,
            ends: false,
            is_exact: true,
        }
    }

    /// Functions of which each runs only later ones.
    pub(super) fn functions(&mut self) -> Vec<String> {
        let all = self.bytes;
        let share = all.len() / (FUNCTIONS + 1);
        let functions = (0..FUNCTIONS).map(|function| {
            // The first one has half of the bytes.
            let to = if function == 0 { 2 * share } else { share };
            let from = if function == 0 {
                0
            } else {
                (function + 1) * share
            };
            self.bytes = &all[from..from + to];
            self.function = function;
            let scope = ["p", "q"].map(|name| Var {
                name: name.to_owned(),
                is_typed: true,
                is_known: true,
            });
            self.scopes = vec![scope.to_vec()];
            let mut body = self.block(Kind::Rich, 6);
            let value = self.number();
            body.insert_str(body.len() - 1, &value);
            format!("fn f{function}(cx: &mut Cx<'_>, mut p: i64, mut q: u32) -> i64 {body}")
        });
        functions.collect()
    }

    fn pick(&mut self, of: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        usize::from(*first) % of
    }

    fn find(&self, name: &str) -> Option<&Var> {
        self.scopes
            .iter()
            .rev()
            .flat_map(|scope| scope.iter().rev())
            .find(|var| var.name == name)
    }

    fn visible(&self, typed: bool) -> Vec<Var> {
        let names = NAMES.iter().chain(&["p", "q"]);
        let vars = names.filter_map(|name| self.find(name));
        vars.filter(|var| var.is_typed || !typed).cloned().collect()
    }

    fn bind(&mut self, name: &str, is_typed: bool, is_known: bool) {
        let name = name.to_owned();
        self.scopes.last_mut().expect("a scope").push(Var {
            name,
            is_typed,
            is_known,
        });
    }

    fn set_known(&mut self, name: &str) {
        let vars = self
            .scopes
            .iter_mut()
            .rev()
            .flat_map(|scope| scope.iter_mut().rev());
        vars.filter(|var| var.name == name)
            .take(1)
            .for_each(|var| var.is_known = true);
    }

    /// A label ends what has no type.
    fn stop(&mut self) {
        self.stops += 1;
        self.forget();
    }

    fn forget(&mut self) {
        for var in self.scopes.iter_mut().flatten() {
            var.is_known &= var.is_typed;
        }
    }

    fn number(&mut self) -> String {
        let vars: Vec<Var> = self
            .visible(false)
            .into_iter()
            .filter(|var| var.is_known)
            .collect();
        self.depth += 1;
        let text = match self.pick(if self.depth > 3 { 3 } else { 7 }) {
            0 => self.pick(4).to_string(),
            1 | 2 => match vars.get(self.pick(vars.len().max(1))) {
                Some(var) => var.name.clone(),
                None => "1".to_owned(),
            },
            3 => format!("({} + {})", self.number(), self.number()),
            4 => format!("({} < {})", self.number(), self.number()),
            5 => format!("cx.say({})", self.number()),
            _ => format!("(-{})", self.number()),
        };
        self.depth -= 1;
        text
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        match self.pick(6) {
            5 => "_".to_owned(),
            _ => format!("L{}", self.labels),
        }
    }

    /// A suspension with a value.
    fn asked(&mut self) -> String {
        let more = self.function + 1 < FUNCTIONS;
        let text = match self.pick(if more { 4 } else { 2 }) {
            0 | 1 => {
                let (value, label) = (self.number(), self.label());
                format!("ask!({label}, {value})")
            }
            kind => {
                let callee = self.function + 1 + self.pick(FUNCTIONS - self.function - 1);
                let call = format!("f{callee}({}, {})", self.number(), self.number());
                match kind {
                    2 => format!("sub!({call})"),
                    _ => {
                        self.labels += 1;
                        format!("sub!(L{}, {call})", self.labels)
                    }
                }
            }
        };
        self.stop();
        text
    }

    fn condition(&mut self) -> String {
        self.depth += 1;
        let text = match self.pick(if self.depth > 3 { 2 } else { 6 }) {
            0 => self.number(),
            1 => self.asked(),
            2 => format!("!({})", self.condition()),
            3 => format!("({} && {})", self.condition(), self.condition()),
            4 => format!("({} || {})", self.condition(), self.condition()),
            _ => format!("({} == {})", self.number(), self.number()),
        };
        self.depth -= 1;
        text
    }

    /// A statement in parts: exact only if it has a label or sets nothing.
    fn compound(&mut self, write: impl FnOnce(&mut Self) -> String) -> String {
        let (stops, assigns) = (self.stops, self.assigns);
        let known: Vec<Vec<bool>> = self
            .scopes
            .iter()
            .map(|scope| scope.iter().map(|var| var.is_known).collect())
            .collect();
        self.depth += 1;
        let text = write(self);
        self.depth -= 1;
        for (scope, known) in self.scopes.iter_mut().zip(known) {
            for (var, known) in scope.iter_mut().zip(known) {
                var.is_known = known;
            }
        }
        if stops == self.stops {
            self.is_exact &= assigns == self.assigns;
        } else {
            self.forget();
        }
        text
    }

    fn block(&mut self, kind: Kind, most: usize) -> String {
        self.block_with(kind, most, &[], "")
    }

    fn block_with(&mut self, kind: Kind, most: usize, binds: &[&str], head: &str) -> String {
        let known = self.scopes.clone();
        self.scopes.push(Vec::new());
        for name in binds {
            self.bind(name, false, true);
        }
        let mut text = format!("{{ {head}");
        let mut ends = false;
        for _ in 0..self.pick(most + 1) {
            if ends {
                break;
            }
            let stmt;
            (stmt, ends) = self.stmt(kind);
            text += &stmt;
            text += "\n";
        }
        self.ends = ends;
        text += "}";
        // What a branch sets is not known after it.
        self.scopes = known;
        text
    }

    /// A branch with a value.
    fn value_block(&mut self, kind: Kind, binds: &[&str]) -> String {
        let known = self.scopes.clone();
        self.scopes.push(Vec::new());
        for name in binds {
            self.bind(name, false, true);
        }
        self.ends = false;
        let mut text = "{ ".to_owned();
        for _ in 0..self.pick(3) {
            let (stmt, ends) = self.stmt(kind);
            if ends {
                break;
            }
            text += &stmt;
        }
        let value = self.number();
        self.scopes = known;
        text + &value + " }"
    }

    fn value(&mut self, kind: Kind) -> String {
        let deep = self.depth > 3;
        match (kind, self.pick(if deep { 2 } else { 5 })) {
            (Kind::Rich, 1) => self.asked(),
            (_, 3) => self.compound(|this| {
                let cond = this.condition_of(kind);
                let (then, other) = (this.value_block(kind, &[]), this.value_block(kind, &[]));
                format!("if {cond} {then} else {other}")
            }),
            (_, 4) => self.compound(|this| this.matched(kind, true)),
            _ => self.number(),
        }
    }

    fn matched(&mut self, kind: Kind, has_value: bool) -> String {
        let on = match (kind, self.pick(2)) {
            (Kind::Rich, 1) => self.asked(),
            _ => self.number(),
        };
        let mut text = format!("match {on} {{ ");
        let before = self.scopes.clone();
        let mut ends = true;
        for _ in 0..=self.pick(2) {
            let name = self.name();
            self.scopes = before.clone();
            self.scopes.push(Vec::new());
            let (pattern, binds): (String, &[&str]) = match self.pick(5) {
                0 => (self.pick(3).to_string(), &[]),
                1 => ("None".to_owned(), &[]),
                2 => (format!("Some({name})"), &[name]),
                3 => (format!("0 | {}", self.pick(3)), &[]),
                _ => (name.to_owned(), &[name]),
            };
            for name in binds {
                self.bind(name, false, true);
            }
            let guard = match self.pick(2) {
                0 => String::new(),
                _ => format!(" if {}", self.number()),
            };
            let body = if has_value {
                self.value_block(kind, binds)
            } else {
                self.block(kind, 3)
            };
            ends &= self.ends;
            let _ = write!(text, "{pattern}{guard} => {body} ");
        }
        self.scopes = before;
        let body = if has_value {
            self.value_block(kind, &[])
        } else {
            self.block(kind, 2)
        };
        self.ends &= ends;
        text + "_ => " + &body + " }"
    }

    fn jump(&mut self) -> String {
        match self.pick(3) {
            0 if self.loops > 0 => format!("break 'l{};", self.pick(self.loops)),
            1 if self.loops > 0 => format!("continue 'l{};", self.pick(self.loops)),
            2 if self.loops > 0 => ["break;", "continue;"][self.pick(2)].to_owned(),
            _ => format!("return {};", self.number()),
        }
    }

    /// A statement, and whether nothing follows it.
    fn stmt(&mut self, kind: Kind) -> (String, bool) {
        let name = self.name();
        let deep = self.depth > 4;
        let all = if deep { 7 } else { 18 };
        self.ends = false;
        let which = self.pick(all);
        let text = match (which, kind) {
            (1, Kind::Rich) => self.word(),
            (1, Kind::Plain) => format!("{{ let b = {}; cx.say(b); }}", self.number()),
            (2, _) => {
                let value = self.value(kind);
                // In code without a label it is a local like any other; to use it there is no harm.
                self.bind(name, kind == Kind::Rich, true);
                format!("let mut {name}: {} = {value};", self.ty())
            }
            (3, _) => {
                let value = match (kind, self.pick(3)) {
                    (Kind::Rich, 1) => self.asked(),
                    (Kind::Rich, 2) => format!("-({})", self.asked()),
                    _ => self.number(),
                };
                self.bind(name, false, true);
                format!("let mut {name} = {value};")
            }
            (4, _) => self.assign(kind),
            (5, _) => self.add(),
            (6, Kind::Rich) => format!("{};", self.asked()),
            (7, _) => self.compound(|this| this.branch(kind, name)),
            (8, _) => self.compound(Writer::branch_out),
            (9, _) => self.compound(|this| this.matched(kind, false)),
            (10 | 11, _) => self.compound(|this| this.turns(kind, name)),
            (12, _) => return (self.jump(), true),
            (13, Kind::Rich) => {
                self.bind(name, true, false);
                format!("let mut {name}: {};", self.ty())
            }
            (13, Kind::Plain) => return (format!("return {};", self.number()), true),
            (14, _) => self.let_else(kind, name),
            (15, Kind::Rich) => match self.pick(3) {
                0 => format!("return {};", self.asked()),
                1 => self.pair(),
                _ => self.compound(|this| this.block(kind, 3)),
            },
            (16.., Kind::Rich) => self.compound(|this| this.hide(name)),
            (15.., Kind::Plain) => self.compound(|this| this.block(kind, 3)),
            _ => format!("cx.say({});", self.number()),
        };
        let has_blocks = matches!(which, 7 | 9 | 15) && !text.starts_with("let");
        let ends = text.starts_with("return") || has_blocks && self.ends;
        (text, ends)
    }

    /// Often one that is in scope already.
    fn name(&mut self) -> &'static str {
        NAMES[[0, 0, 0, 1, 1, 2, 3][self.pick(7)]]
    }

    fn ty(&mut self) -> &'static str {
        ["i64", "i64", "i64", "u32"][self.pick(4)]
    }

    /// A suspension without a value.
    fn word(&mut self) -> String {
        let value = self.number();
        let label = self.label();
        self.stop();
        match self.pick(3) {
            0 => format!("at!({label});"),
            1 => format!("lock!({label}, Lock({value}));"),
            _ => format!("call!({label}, {value});"),
        }
    }

    fn assign(&mut self, kind: Kind) -> String {
        let Some(name) = self.target() else {
            return String::new();
        };
        let value = self.value(kind);
        // It was a local, and a label came.
        if self
            .find(&name)
            .is_none_or(|var| !var.is_typed && !var.is_known)
        {
            self.is_exact = false;
            return format!("cx.say({});", self.number());
        }
        self.assigns += 1;
        self.set_known(&name);
        format!("{name} = {value};")
    }

    fn add(&mut self) -> String {
        let value = self.number();
        let vars = self.visible(false).into_iter().filter(|var| var.is_known);
        let vars: Vec<Var> = vars.collect();
        match vars.get(self.pick(vars.len().max(1))) {
            Some(var) => format!("{} += {value};", var.name),
            None => format!("cx.say({value});"),
        }
    }

    fn branch(&mut self, kind: Kind, name: &str) -> String {
        let (cond, binds): (String, &[&str]) = match (kind, self.pick(4)) {
            (Kind::Rich, 0 | 1) => (self.condition(), &[]),
            (Kind::Rich, 2) => (format!("let Some({name}) = {}", self.asked()), &[name]),
            (_, 3) => (format!("let Some({name}) = {}", self.number()), &[name]),
            _ => (self.number(), &[]),
        };
        let mut text = format!("if {cond} {}", self.block_with(kind, 3, binds, ""));
        let mut ends = self.ends;
        let more = self.pick(4);
        if more == 1 || more == 2 {
            let cond = self.condition_of(kind);
            let _ = write!(text, " else if {cond} {}", self.block(kind, 3));
            ends &= self.ends;
        }
        if more == 1 || more == 3 {
            let _ = write!(text, " else {}", self.block(kind, 3));
            ends &= self.ends;
        } else {
            ends = false;
        }
        self.ends = ends;
        text
    }

    /// A branch that ends with a jump, without a label.
    fn branch_out(&mut self) -> String {
        let cond = self.number();
        let jump = match self.pick(3) {
            0 => String::new(),
            _ => self.jump(),
        };
        let body = self.block(Kind::Plain, 3);
        let jump = if self.ends { "" } else { &jump };
        self.ends = false;
        format!("if {cond} {{ {body} {jump} }}")
    }

    fn let_else(&mut self, kind: Kind, name: &str) -> String {
        let value = match (kind, self.pick(2)) {
            (Kind::Rich, 1) => self.asked(),
            _ => self.number(),
        };
        let other = self.compound(|this| {
            let stops = this.stops;
            let body = this.block(kind, 2);
            if stops != this.stops {
                this.forget();
            }
            let jump = if this.ends {
                String::new()
            } else {
                this.jump()
            };
            format!("{{ {body} {jump} }}")
        });
        self.bind(name, false, true);
        format!("let Some({name}) = {value} else {other};")
    }

    /// A variable that hides one of its name and type over a label; then that is read.
    fn hide(&mut self, name: &str) -> String {
        let mut text = String::new();
        if self
            .find(name)
            .is_none_or(|var| !var.is_typed || !var.is_known)
        {
            let value = self.number();
            text = format!("let mut {name}: i64 = {value};");
            self.bind(name, true, true);
        }
        let value = self.number();
        self.scopes.push(Vec::new());
        self.bind(name, true, true);
        let cond = self.number();
        let word = self.word();
        let last = self.number();
        let last = match self.pick(2) {
            0 => format!("{word} cx.say({name} + {last});"),
            // It is read on one way only, the hidden one on the other.
            _ => format!("if {cond} {{ {word} return {name} + {last}; }}"),
        };
        self.scopes.pop();
        self.ends = false;
        let after = self.word();
        let _ = write!(
            text,
            "{{ let mut {name}: i64 = {value}; {last} }} {after} cx.say({name});"
        );
        text
    }

    /// Two variables at once.
    fn pair(&mut self) -> String {
        let value = format!("({}, {})", self.number(), self.number());
        let (first, second) = (NAMES[self.pick(2)], NAMES[2 + self.pick(2)]);
        self.bind(first, true, true);
        self.bind(second, true, true);
        format!("let (mut {first}, mut {second}): (i64, u32) = {value};")
    }

    fn condition_of(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Rich => self.condition(),
            Kind::Plain => self.number(),
        }
    }

    fn target(&mut self) -> Option<String> {
        let vars = self
            .visible(false)
            .into_iter()
            .filter(|var| var.is_typed || var.is_known);
        let vars: Vec<Var> = vars.collect();
        let at = self.pick(vars.len().max(1));
        vars.get(at).map(|var| var.name.clone())
    }

    fn turns(&mut self, kind: Kind, name: &str) -> String {
        // Its top is reached again after any label in it.
        let stops = self.stops;
        let before = self.scopes.clone();
        if kind == Kind::Rich {
            self.forget();
        }
        let label = self.loops;
        let text = match self.pick(4) {
            0 => {
                let cond = self.condition_of(kind);
                self.loops += 1;
                let body = self.block(kind, 4);
                format!("'l{label}: while cx.more() && {cond} {body}")
            }
            1 => {
                self.loops += 1;
                let body = self.block(kind, 4);
                format!("'l{label}: while cx.more() {body}")
            }
            2 if kind == Kind::Rich => {
                let value = self.asked();
                self.loops += 1;
                let head = "if !cx.more() { break; }\n";
                let body = self.block_with(kind, 4, &[name], head);
                format!("'l{label}: while let Some({name}) = {value} {body}")
            }
            _ => {
                self.loops += 1;
                let head = "if !cx.more() { break; }\n";
                let body = self.block_with(kind, 4, &[], head);
                format!("'l{label}: loop {body}")
            }
        };
        self.loops = label;
        if stops == self.stops {
            self.scopes = before;
        }
        text
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// With labels.
    Rich,
    Plain,
}
