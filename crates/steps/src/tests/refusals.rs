//! Functions that are refused: the line with `//~` is the error's, and what follows is its text.

use super::expanded;

/// The body of a function, `a` and `lock` its arguments.
fn function(body: &str) -> String {
    format!("fn f(cx: &mut Cx<'_>, a: u32, w: Word) -> u32 {{\n{body}\n}}")
}

#[track_caller]
fn refused(body: &str) {
    let source = function(body);
    let marked = source.lines().enumerate().find_map(|(at, line)| {
        let (_, text) = line.split_once("//~")?;
        Some((at + 1, text.trim().to_owned()))
    });
    let error = expanded("", &source).expect_err("it is refused");
    let found = (error.span().start().line, error.to_string());
    assert_eq!(Some(found), marked, "{body}");
}

/// The code of the machine, with single blanks.
#[track_caller]
fn accepted(body: &str) -> String {
    match expanded("", &function(body)) {
        Ok(tokens) => tokens.to_string(),
        Err(error) => panic!("line {}: {error}\n{body}", error.span().start().line),
    }
}

/// The locals whose types are checked to be plain data, in the order of their code.
#[track_caller]
fn checked(body: &str) -> Vec<String> {
    let code = accepted(body);
    let (_, step) = code.split_once("fn step").expect("a machine");
    let checks = step.split("may_end_here (& ").skip(1);
    let names = checks.map(|rest| rest.split(')').next().expect("a name"));
    names.map(|name| name.trim().to_owned()).collect()
}

#[test]
fn a_variable_over_a_label_has_a_type() {
    refused(
        "let b = a + 1;
        at!(A);
        cx.say(b); //~ `b` lives over a label: give it a type where it is declared (`let b: T = ..`)
        b",
    );
    refused(
        "let b = ask!(A, a);
        while b < 3 { //~ `b` lives over a label: give it a type where it is declared (`let b: T = ..`)
            at!(B);
        }
        0",
    );
    refused(
        "if let Some(b) = first(a) {
            at!(A);
            return b; //~ `b` lives over a label: give it a type where it is declared (`let b: T = ..`)
        }
        0",
    );
    refused(
        "match a {
            b => {
                at!(A);
                cx.say(b); //~ `b` lives over a label: give it a type where it is declared (`let b: T = ..`)
            }
        }
        0",
    );
    refused(
        "let Some(b) = first(a) else { return 0 };
        at!(A);
        assert!(b > 2); //~ `b` lives over a label: give it a type where it is declared (`let b: T = ..`)
        0",
    );
    // One way leads to what follows the `match`: its own `b` ends with its arm.
    refused(
        "let b = 5;
        match a {
            1 => { at!(A); return 1; }
            c => { let b = c; cx.say(b); }
        }
        b //~ `b` lives over a label: give it a type where it is declared (`let b: T = ..`)",
    );
}

#[test]
fn types_of_variables() {
    refused(
        "let b;  //~ a variable without a value needs a type
        at!(A);
        b = 3;
        b",
    );
    refused(
        "let b = 3;
        b = ask!(A, a); //~ it takes the value of a suspension: give it a type where it is declared
        b",
    );
    refused(
        "let (b, (c, d)): (u32, (u32, u32)) = pair(a); //~ with a type: a name, or a tuple of names
        at!(A);
        b",
    );
    refused(
        "let b: &u32 = &a; //~ `b` is held over a label, and borrows: take it again after it
        at!(A);
        *b",
    );
    refused(
        "let b: Held<'_> = w.lock(); //~ `b` is held over a label, and borrows: take it again after it
        at!(A);
        b.get()",
    );
}

#[test]
fn between_two_labels_a_variable_needs_no_type() {
    accepted("at!(A); let b = a; cx.say(b); if b > 1 { return b; } at!(B); a");
    accepted("let b = ask!(A, a); if b == 1 || sub!(g(a)) { return 2; } a");
    accepted("let b = ask!(A, a); if !(b == 1 || b == 2 || sub!(g(a))) { return 2; } a");
    accepted("match first(a) { None => { at!(A); last(None) } Some(b) => b }");
    accepted("let b: &'static str = name(a); at!(A); len(b)");
    accepted("let b: &u32 = &a; cx.say(*b); at!(A); a");
    accepted("let b: Held<'_> = w.lock(); b.set(1); drop(b); at!(A); a");
}

#[test]
fn locals_in_scope_at_a_label_are_plain_data() {
    let none: [&str; 0] = [];
    assert_eq!(checked("let g = w.lock(); at!(A); a"), ["g"]);
    assert_eq!(
        checked("let (g, _) = w.lock(); let h = 1; at!(A); a"),
        ["g", "h"]
    );
    assert_eq!(
        checked("let g = w.lock(); drop(g); let h = 1; at!(A); a"),
        ["h"]
    );
    assert_eq!(
        checked("{ let g = w.lock(); } at!(A); let h = w.lock(); a"),
        none
    );
    assert_eq!(checked("let g: Held = w.lock(); at!(A); a"), none);
    // Nothing can name it at the label.
    assert_eq!(
        checked("let g = w.lock(); let g = g.0; at!(A); a"),
        ["g", "g"]
    );
    assert_eq!(
        checked("let g = w.lock(); { let g = 1; drop(g); at!(A); } a"),
        ["g"]
    );
    assert_eq!(
        checked("let g = w.lock(); while cx.more() { at!(A); } a"),
        ["g"]
    );
    // On one way it is held.
    assert_eq!(
        checked("let g = w.lock(); if a > 1 { drop(g); at!(A); return 2; } at!(B); a"),
        ["g"]
    );
    assert_eq!(
        checked("let g = w.lock(); if a > 1 { drop(g); at!(A); } else { drop(g); } at!(B); a"),
        none
    );
    assert_eq!(
        checked("let g = w.lock(); match a { 1 => { drop(g); at!(A); } _ => {} } at!(B); a"),
        ["g"]
    );
    assert_eq!(
        checked("let g = w.lock(); if a > 1 { drop(g); at!(A); } else { cx.kick(); } at!(B); a"),
        ["g"]
    );
    // Patterns hold too; constants in them do not.
    assert_eq!(
        checked("let Some(g) = w.try_lock() else { return 0 }; at!(A); a"),
        ["g"]
    );
    assert_eq!(
        checked("if let Some(g) = w.try_lock() { at!(A); } at!(B); a"),
        ["g"]
    );
    assert_eq!(
        checked("match w.try_lock() { None => { at!(A); } Some(g) => drop(g) } a"),
        none
    );
}

#[test]
fn after_a_release_nothing_is_touched() {
    refused(
        "w.release(cx);
        cx.kick(); //~ after a release the label ends: another CPU may hold the lock by now
        at!(A);
        a",
    );
    refused(
        "at!(A);
        w.release(cx.cpu);
        if a > 1 {
            at!(B);
        } else {
            other(cx); //~ after a release the label ends: another CPU may hold the lock by now
        }
        a",
    );
    refused(
        "at!(A);
        while a > 1 {
            w.set(cx.cpu); //~ after a release the label ends: another CPU may hold the lock by now
            if a > 2 { at!(B); }
            w.release(cx.cpu);
        }
        a",
    );
    refused(
        "at!(A);
        if a > 1 {
            w.release(cx);
            cx.kick(); //~ after a release the label ends: another CPU may hold the lock by now
        }
        a",
    );
    refused(
        "loop {
            if a > 1 { w.release(cx); break; }
            at!(A);
        }
        assert!(w.idle(cx)); //~ after a release the label ends: another CPU may hold the lock by now
        a",
    );
    refused(
        "match a {
            1 => w.release(cx),
            _ => {}
        }
        w.set(cx.cpu); //~ after a release the label ends: another CPU may hold the lock by now
        at!(A);
        a",
    );
    refused(
        "w.release(cx);
        ask!(A, next(cx)); //~ after a release the label ends: another CPU may hold the lock by now
        a",
    );
    refused(
        "w.release(cx);
        sub!(g(cx.cpu)); //~ after a release the label ends: another CPU may hold the lock by now
        a",
    );
    refused(
        "for b in 0..a {
            if b > 1 { w.release(cx); break; }
        }
        cx.kick(); //~ after a release the label ends: another CPU may hold the lock by now
        at!(A);
        a",
    );
}

#[test]
fn after_a_release_what_is_known_is_read() {
    accepted("w.release(cx); at!(A); cx.kick(); a");
    accepted("w.release(cx); let b = cx.cpu.id; at!(A); cx.kick(); a");
    accepted("w.release(cx); assert!(cx.cpu.id == 1); return a; at!(A); cx.kick(); a");
    accepted("at!(A); if a > 1 { w.release(cx); return a; } cx.kick(); a");
    accepted("at!(A); if a > 1 { w.release(cx); at!(B); } cx.kick(); a");
    accepted("at!(A); match a { 1 => { w.release(cx); return 1; } _ => cx.kick() } cx.kick(); a");
    accepted("at!(A); let Some(b) = first(a) else { w.release(cx); return 1; }; w.set(cx.cpu); a");
    accepted(
        "loop { at!(A); if a > 1 { cx.kick(); w.release(cx); continue; } cx.kick(); break; } a",
    );
}

#[test]
fn a_suspension_is_no_part_of_an_expression() {
    const TEXT: &str = "//~ a suspension inside an expression: it is a statement, the value of a `let`, or a condition";
    for line in [
        "let b: u32 = 1 + ask!(A, a);",
        "let b = if a > 1 { ask!(A, a) } else { 2 };",
        "let b = { at!(A); 2 };",
        "cx.say(ask!(A, a));",
        "let b = Some(sub!(g(a)));",
        "return a + ask!(A, a);",
        "if ask!(A, a) == 3 {}",
        "match (ask!(A, a), 1) { _ => {} }",
        "match a { b if sub!(g(b)) => {} _ => {} }",
        "assert!(sub!(g(a)));",
        "assert!(matches!(ask!(A, a), Some(1..)));",
        "let b = || at!(A);",
        "let mut b: u32 = 1; b += ask!(A, a);",
        "ask!(A, sub!(g(a)));",
        "sub!(g(ask!(A, a)));",
    ] {
        refused(&format!("a;\n{line} {TEXT}\na"));
    }
    refused(
        "'b: { //~ a block with a name and a label in it: write it as a `loop`
            at!(A);
            break 'b;
        }
        a",
    );
    accepted("let b: u32 = ask!(A, a); b");
    accepted("let b: u32 = if a > 1 { ask!(A, a) } else { 2 }; b");
    accepted("let b: u32 = match a { 1 => { at!(A); 3 } 2 => sub!(g(a)), _ => return 2 }; b");
    accepted("let b = -ask!(A, a); let c = !(sub!(g(a))); a");
    accepted("if a > 1 && (ask!(A, a) || !sub!(g(a))) { return 1; } return ask!(B, a);");
    accepted("while let Some(b) = ask!(A, a) { cx.say(b); } a");
    accepted("match ask!(A, a) { b if b > 1 => cx.say(b), _ => {} } a");
    accepted("let (b, c): (u32, u32) = ask!(A, a); at!(B); b + c");
}

#[test]
fn loops_with_labels() {
    refused(
        "at!(A);
        for b in 0..a { //~ a `for` with a label in it: write a `while`, its variable lives over the label
            at!(B);
        }
        a",
    );
    refused("at!(A);\nbreak; //~ outside a loop\na");
    refused("at!(A);\nif a > 1 { continue; } //~ outside a loop\na");
    refused("loop {\nat!(A);\nbreak 'b; //~ outside a loop\n}");
    refused(
        "let b: u32 = loop {
            at!(A);
            break 3; //~ a `break` with a value out of a loop with a label in it: set a variable before it
        };
        b",
    );
    refused(
        "loop {
            ask!(A, match a { 1 => break, b => b }); //~ a jump in the arguments of a suspension
        }",
    );
    accepted("at!(A); for b in 0..a { if b > 1 { break; } cx.say(b); } a");
    accepted("at!(A); let b = loop { if a > 1 { break 3; } }; b");
    accepted("at!(A); 'b: { if a > 1 { break 'b; } cx.kick(); } a");
    accepted("'b: loop { loop { at!(A); if a > 1 { break 'b; } continue 'b; } } a");
    accepted("'b: loop { at!(A); for c in 0..a { if c > 1 { continue 'b; } } break; } a");
}

#[test]
fn the_words() {
    accepted("at!(A, a); at!(_, a); a");
    refused("ask!(A); //~ ask!(Label, ..)\na");
    refused("lock!(_); //~ lock!(Label, ..)\na");
    refused("call!(A); //~ call!(Label, ..)\na");
    refused("lock!(A, a, a); //~ one expression; its text is a doc comment above\na");
    refused("at!(3); //~ a label, or `_`: at!(Label)\na");
    refused("at!(); //~ unexpected end of input, a label, or `_`: at!(Label)\na");
    refused("sub!(g); //~ a call of a function with #[steps]\na");
    refused("sub!(a.g()); //~ a call of a function with #[steps]\na");
    refused("sub!((g)(a)); //~ the name of a function with #[steps]\na");
    refused("sub!(A,); //~ sub!(Label, f(..))\na");
    for body in [
        "at!(A); a",
        "at!(A); at!(_); a",
        "at!(A,); a",
        "ask!(_, a); ask!(A, a); ask!(A, a)",
        "lock!(A, a); lock!(_, a); call!(A, a); a",
        "sub!(g(a)); sub!(A, g(a)); sub!(A, x::h(a)); sub!(g(),)",
    ] {
        accepted(body);
    }
}

#[test]
fn the_function() {
    const FIRST: &str = "the first parameter is `cx: &mut Cx<'_>`";
    let line = |args: &str, source: &str| {
        let error = expanded(args, source).expect_err("it is refused");
        error.to_string()
    };
    assert_eq!(line("", "fn f() {}"), FIRST);
    assert_eq!(line("", "fn f(&self, cx: &mut Cx<'_>) {}"), FIRST);
    assert_eq!(
        line("paths", "fn f(cx: &mut Cx<'_>) {}"),
        "`path`, `turns`, `inline`, `stages`, `keep(variable)`, or nothing"
    );
    assert_eq!(
        line("keep(b)", "fn f(cx: &mut Cx<'_>, a: u32) {}"),
        "no variable with a type has this name"
    );
    assert_eq!(
        line("", "fn f(cx: &mut Cx<'_>, (a, b): (u32, u32)) {}"),
        "a parameter is a name with its type"
    );
    let many = format!("fn f(cx: &mut Cx<'_>) {{ {} }}", "at!(A);".repeat(300));
    assert_eq!(
        line("", &many),
        "more than 256 parts: make functions of some of them"
    );
}

#[test]
fn names_do_not_collide() {
    refused("let pc: u32 = 1; //~ every state has a field `pc`: another name\nat!(A);\npc");
    refused("let callee: u32; //~ every state has a field `callee`: another name\na");
    refused(
        "let (b, pc): (u32, u32) = pair(a); //~ every state has a field `pc`: another name
        b",
    );
    accepted("let pc = 1; cx.say(pc); at!(A); let queue: u32 = 2; at!(B); queue");
    let path = "fn f(cx: &mut Cx<'_>, queue: u32) { at!(A); }";
    let error = expanded("path", path).expect_err("it is refused");
    let text = "every state has a field `queue`: another name";
    assert_eq!(error.to_string(), text);
    accepted("sub!(x::g(a)); sub!(x::h(a)); sub!(y::g(a)); sub!(x::g(a)); a");
}

/// Variables that no label needs are no part of the state.
#[test]
fn what_needs_no_field_has_none() {
    let fields = |body: &str| {
        let code = accepted(body);
        let (_, fields) = code.split_once("struct State {").expect("a machine");
        let (fields, _) = fields.split_once('}').expect("its end");
        let fields = fields.split(" :").map(|field| field.split(' ').next_back());
        let fields = fields.map(|name| name.expect("a name").to_owned());
        let fields = fields.filter(|name| !["pc", "Pc", "callee", ""].contains(&&**name));
        fields.collect::<Vec<_>>()
    };
    assert_eq!(
        fields("at!(A); let b: u32 = 1; cx.say(b); 3"),
        [] as [&str; 0]
    );
    assert_eq!(
        fields("let b: u32; at!(A); b = 1; cx.say(b); 3"),
        [] as [&str; 0]
    );
    assert_eq!(fields("let b: u32 = a; at!(A); b"), ["a", "b"]);
    // Of one name and type, never alive together; alive together; of two types.
    assert_eq!(
        fields("{ let b: u32 = 1; at!(A); cx.say(b); } let b: u32 = 2; at!(B); b"),
        ["b"]
    );
    assert_eq!(
        fields("let b: u32 = 1; { let b: u32 = 2; at!(A); cx.say(b); } b"),
        ["b", "b_2"]
    );
    assert_eq!(
        fields("{ let b: u32 = 1; at!(A); cx.say(b); } let b: u8 = 2; at!(B); b"),
        ["b", "b_2"]
    );
}
