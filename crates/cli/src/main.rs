//! The `blksim` binary.
fn main() {}
