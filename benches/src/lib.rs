//! What several benchmarks share: variants timed side by side, so that a ratio means something.
//!
//! Bare times swing by 1.8x on a shared machine; the least of many interleaved rounds does not.
#![forbid(unsafe_code)]

use std::time::Instant;

/// One way to do the work: its name, and a function that does one round of it.
pub type Variant<'a> = (&'a str, Box<dyn FnMut() + 'a>);

/// Nanoseconds per operation of each variant, least of `rounds`, the variants taking turns.
///
/// Panics if there is no operation in a round.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
pub fn least_ns(variants: &mut [Variant<'_>], rounds: u32, operations: u32) -> Vec<f64> {
    assert!(operations > 0, "a round does something");
    let mut least = vec![f64::INFINITY; variants.len()];
    for _ in 0..rounds {
        for ((_, round), least) in variants.iter_mut().zip(&mut least) {
            let start = Instant::now();
            round();
            let ns = start.elapsed().as_nanos() as f64 / f64::from(operations);
            *least = least.min(ns);
        }
    }
    least
}

/// True if the program runs to see that it works, not to measure: cargo passes `--test`.
pub fn is_smoke() -> bool {
    std::env::args().any(|arg| arg == "--test")
}
