use super::*;
use crate::{flow, lower};

/// How many numbers the labels of this name have, or the runs of functions.
#[track_caller]
fn numbers(wanted: &str, body: &str) -> usize {
    let source = format!("fn f(cx: &mut Cx<'_>, a: u32) -> u32 {{ {body} }}");
    let function = syn::parse_str(&source).expect("a function");
    let mut machine = lower::lower(&function, false).expect("it is accepted");
    merge(&mut machine);
    let flow = flow::analyse(&machine).expect("it is accepted");
    let blocks = machine.blocks.iter().enumerate();
    let entered = blocks.filter(|(id, _)| flow.is_entered(*id));
    let resumes = entered.filter_map(|(_, block)| block.resume.as_ref());
    let is_wanted = |resume: &&Resume| match resume {
        Resume::Label(label) => name(label.as_ref()) == wanted,
        Resume::Callee { .. } => wanted == "sub",
    };
    resumes.filter(is_wanted).count()
}

#[test]
fn labels_that_the_same_follows_are_one() {
    let both = "if a > 1 { at!(B); } else { cx.say(1); at!(B); } cx.say(a); a";
    assert_eq!(numbers("B", both), 1);
    let turns = "at!(B); while cx.more() { cx.say(a); at!(B); } a";
    assert_eq!(numbers("B", turns), 1);
    let sub = "if a > 1 { sub!(g(1)); } else { sub!(g(2)); } a";
    assert_eq!(numbers("sub", sub), 1);
    // They are one as soon as the labels after them are.
    let later = "if a > 1 { at!(B); at!(C); } else { at!(B); at!(C); } a";
    assert_eq!((numbers("B", later), numbers("C", later)), (1, 1));
}

#[test]
fn other_labels_are_not() {
    let code = "if a > 1 { at!(B); cx.say(1); } else { at!(B); cx.say(2); } a";
    assert_eq!(numbers("B", code), 2);
    let names = "if a > 1 { at!(B); } else { at!(C); } a";
    assert_eq!((numbers("B", names), numbers("C", names)), (1, 1));
    let asked = "if a > 1 { at!(B); ask!(C, 1); } else { at!(B); ask!(C, 2); } a";
    assert_eq!((numbers("B", asked), numbers("C", asked)), (2, 1));
    let sub = "if a > 1 { sub!(g(a)); } else { sub!(h(a)); } a";
    assert_eq!(numbers("sub", sub), 2);
    let answer = "if a > 1 { let b: u32 = sub!(g(a)); cx.say(b); } else { sub!(g(a)); } a";
    assert_eq!(numbers("sub", answer), 2);
}
