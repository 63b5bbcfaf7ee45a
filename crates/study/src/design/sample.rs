//! Samples of a range: independent ones, or a Latin hypercube (McKay, Beckman and Conover, 1979):
//! each key's range is cut into as many parts of equal probability as there are samples, and each
//! part has one sample.
//!
//! The numbers come from a stream of their own for each key, so that a further key changes no other
//! one's, and from additions and multiplications only, so that they are the same on every machine.

use sim::rng::Rng;
use sim::workload::power::pow;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Random,
    LatinHypercube,
}

/// What samples are drawn from.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Among {
    Values(Vec<String>),
    /// From and to are in it. Whole numbers, or six digits.
    Range {
        from: f64,
        to: f64,
        whole: bool,
        log: bool,
    },
}

/// So many values.
pub(super) fn samples(
    method: Method,
    among: &Among,
    count: usize,
    seed: u64,
    key: &str,
) -> Vec<String> {
    let mut draws = Rng::stream(seed, key);
    let mut order: Vec<usize> = (0..count).collect();
    if method == Method::LatinHypercube {
        let mut places = Rng::stream(seed, &format!("order of {key}"));
        for index in (1..count).rev() {
            order.swap(index, places.below(index as u64 + 1) as usize);
        }
    }
    let place = |part: usize| {
        let inside = (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        match method {
            Method::Random => inside,
            Method::LatinHypercube => (part as f64 + inside) / count as f64,
        }
    };
    order
        .into_iter()
        .map(place)
        .map(|place| among.at(place))
        .collect()
}

impl Among {
    /// The value at a place from 0 up to 1, without it.
    fn at(&self, place: f64) -> String {
        match self {
            Among::Values(values) => {
                let index = (place * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Among::Range {
                from,
                to,
                whole,
                log,
            } => {
                // Each whole number has the span up to the next one.
                let end = if *whole { to + 1.0 } else { *to };
                let value = match log {
                    true => from * pow(end / from, place),
                    false => from + place * (end - from),
                };
                match whole {
                    true => format!("{}", value.floor().clamp(*from, *to)),
                    false => six_digits(value.clamp(*from, *to)),
                }
            }
        }
    }
}

fn six_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}")
        .parse()
        .expect("a number as it is written");
    rounded.to_string()
}
