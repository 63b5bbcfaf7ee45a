//! Powers and logarithms with the same bits everywhere: additions and multiplications only.
//!
//! The standard library calls the C library, whose last bits differ from one to the next; those of
//! a run must not. Good to some 1e-14 of the result, which fio's draws of 32 bits never see.

/// ln 2 in two parts, the first of which ends in zeroes: a multiple of it is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
const LN_2: f64 = std::f64::consts::LN_2;

/// `base` to the power of `exponent`. Panics unless the base is positive and finite.
pub fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

/// Natural logarithm. Panics unless the number is positive, finite and not subnormal.
pub fn ln(number: f64) -> f64 {
    assert!(number.is_normal(), "the logarithm of {number}");
    assert!(number > 0.0, "the logarithm of {number}");
    let bits = number.to_bits();
    let mut twos = (bits >> 52) as i64 - 1023;
    // 1 to 2.
    let mut rest = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if rest > std::f64::consts::SQRT_2 {
        rest /= 2.0;
        twos += 1;
    }
    // ln x = 2 (s + s^3/3 + s^5/5 ...) with s = (x - 1) / (x + 1), here below 0.172.
    let s = (rest - 1.0) / (rest + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for odd in [23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        sum = (sum + 1.0 / odd) * square;
    }
    let twos = twos as f64;
    twos * LN_2_HIGH + (2.0 * s * (1.0 + sum) + twos * LN_2_LOW)
}

/// e to the power of `number`; 0 or infinity where that is out of range.
fn exp(number: f64) -> f64 {
    if number < -700.0 {
        return 0.0;
    }
    if number > 700.0 {
        return f64::INFINITY;
    }
    let twos = (number / LN_2 + 0.5).floor();
    let rest = (number - twos * LN_2_HIGH) - twos * LN_2_LOW;
    // Taylor's series, |rest| below 0.35.
    let mut sum = 1.0;
    for term in (1..=14).rev() {
        sum = 1.0 + sum * rest / f64::from(term);
    }
    sum * f64::from_bits(((twos as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests;
