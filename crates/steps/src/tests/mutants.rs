//! Which wrong changes a function gets.

use super::expanded;

const SOURCE: &str = "fn f(cx: &mut Cx<'_>, hctx: u32, list: u32) -> u32 {
    let mut count: u32 = 0;
    /// Wait for the lock.
    lock!(Lock, lock(hctx));
    count = cx.held(hctx);
    assert!(count > 0);
    debug_assert!(count > 0);
    cx.release(hctx);
    /// It is free.
    at!(Free);
    cx.mark(hctx);
    cx.mb();
    /// A barrier before it.
    at!(Marked);
    while count > 1 && !cx.is_busy() {
        if let Some(other) = cx.next() {
            cx.add(other);
        }
        /// Ask.
        let answer: u32 = ask!(Ask, offer(list));
        if ask!(Again, offer(answer)) {
            sub!(g(hctx, answer));
        }
        count -= 1;
    }
    count
}";

fn changes(source: &str) -> Vec<String> {
    let tokens = crate::expand(
        "".parse().expect("none"),
        source.parse().expect("tokens"),
        true,
    );
    let text = tokens.expect("it is accepted").to_string();
    let (_, list) = text.split_once("fn mutants_of_f").expect("the list");
    let new = list.split("Mutant :: new (file ! () , \"f\" , \"").skip(1);
    let change = |rest: &str| {
        let mut words = rest.split('"');
        let (kind, _, text) = (words.next()?, words.next(), words.next()?);
        Some(format!("{kind}:{text}").replace(' ', ""))
    };
    new.filter_map(change).collect()
}

#[test]
fn each_kind_of_change_is_made() {
    let expected = [
        "drop: cx.release(hctx);",
        "drop: cx.mark(hctx);",
        "drop: cx.mb();",
        "negate: count > 1",
        "negate: cx.is_busy()",
        "negate: let Some(other) = cx.next()",
        "drop: cx.add(other);",
        "drop: count -= 1;",
        "drop: at Lock lock(hctx)",
        "drop: count = cx.held(hctx);",
        "move: cx.release(hctx); after Free",
        "move: cx.mark(hctx); before Free",
        "negate: ::core::mem::take(&mut cx.cpu.answer)",
        "drop: sub g",
    ];
    let expected = expected.map(|change| change.replace(' ', ""));
    assert_eq!(changes(SOURCE), expected);
}

/// A function of users has nothing of it.
#[test]
fn without_mutants_there_is_no_mark() {
    let text = expanded("", SOURCE).expect("it is accepted").to_string();
    assert!(
        !text.contains("Mutant") && !text.contains("__steps_mutant"),
        "{text}"
    );
}
