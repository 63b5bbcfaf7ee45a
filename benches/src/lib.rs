//! Benchmarks of blksim: see `benches/`.
