use super::{ln, pow};
use proptest::prelude::*;

fn near(got: f64, want: f64, tolerance: f64) {
    let off = (got / want - 1.0).abs();
    assert!(off <= tolerance, "{got:e} for {want:e}: {off:e}");
}

proptest! {
    /// The C library's results, up to the last bits: those that the exponent of e loses.
    #[test]
    fn like_the_standard_library(base in 1e-6_f64..1e12, exponent in -12.0_f64..12.0) {
        let lost = 1.0 + (exponent * base.ln()).abs();
        near(pow(base, exponent), base.powf(exponent), 4e-16 * lost);
        // Next to 1 the logarithm has no digits to lose: the argument has them all.
        prop_assert!((ln(base) - base.ln()).abs() <= 1e-15 * base.ln().abs().max(1.0));
    }
}

#[test]
fn exact_where_it_is_easy() {
    let same = |got: f64, want: f64| assert_eq!(got.to_bits(), want.to_bits());
    same(pow(1.0, 3.7), 1.0);
    same(pow(5.0, 0.0), 1.0);
    same(pow(10.0, -1000.0), 0.0);
    same(pow(10.0, 1000.0), f64::INFINITY);
    near(pow(2.0, 10.0), 1024.0, 1e-14);
}

/// The same bits everywhere and in every build: it is made of exact operations.
#[test]
fn bits_do_not_move() {
    assert_eq!(ln(3.0).to_bits(), 0x3ff1_93ea_7aad_030b);
    assert_eq!(pow(0.3, 1.2).to_bits(), 0x3fce_2eb9_8814_31f8);
    assert_eq!(pow(1e9, -0.2).to_bits(), 0x3f90_3ab3_d12b_c2c6);
}

#[test]
#[should_panic(expected = "the logarithm of 0")]
fn zero_has_no_logarithm() {
    ln(0.0);
}
