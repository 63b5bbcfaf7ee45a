use super::{Ranks, zeta};
use crate::plan::{Decimal, Shape, Skew};
use crate::rng::Rng;

const MILLIONTH: u64 = 1000;

fn decimal(millionths: u64) -> Decimal {
    Decimal {
        billionths: millionths * MILLIONTH,
    }
}

fn skew(shape: Shape, center: Option<u64>) -> Skew {
    let center = center.map(decimal);
    Skew { shape, center }
}

/// The same words that fio's functions were given (Numerical Recipes' generator).
struct Words(u32);

impl Words {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }
}

/// The first places, and a checksum of 100,000.
fn drawn(skew: Skew, n: u64) -> ([u64; 5], u64) {
    let mut words = Words(12345);
    // fio draws the place of the first rank also if a centre is given.
    let anywhere = match skew.shape {
        Shape::Zipf(_) | Shape::Pareto(_) => words.next(),
        Shape::Normal(_) => 0,
    };
    let ranks = Ranks::new(skew, n, true, anywhere);
    let places: Vec<u64> = (0..100_000)
        .map(|_| ranks.place(&mut || words.next()))
        .collect();
    let sum = |sum: u64, place: &u64| sum.wrapping_mul(31).wrapping_add(*place);
    let head = places[..5].try_into().expect("there are more");
    (head, places.iter().fold(0, sum))
}

/// What lib/zipf.c and lib/gauss.c of fio 3.33 answer to the same words: each place of each
/// hundred thousand.
#[test]
fn places_are_those_of_fio() {
    let zipf = |millionths| Shape::Zipf(decimal(millionths));
    let pareto = |millionths| Shape::Pareto(decimal(millionths));
    let normal = |millionths| Shape::Normal(decimal(millionths));
    let million = 1_000_000;
    #[rustfmt::skip]
    let cases = [
        (zipf(1_200_000), None, million,
            [628_868, 969_268, 340_776, 49_908, 628_868], 584_420_067_723_950_752),
        (zipf(1_200_000), Some(250_000), million,
            [250_000, 590_400, 961_908, 671_040, 250_000], 8_554_074_063_663_026_464),
        // More ranks than zeta is summed over.
        (zipf(1_200_000), Some(0), 50_000_000,
            [0, 23_848_177, 48_838_269, 9_712_324, 0], 2_570_262_966_491_448_953),
        (zipf(600_000), Some(0), 1000, [0, 476, 76, 274, 200], 18_010_913_143_562_133_705),
        (zipf(1_200_000), Some(0), 2, [0, 0, 0, 1, 0], 11_621_507_273_805_415_631),
        (zipf(900_000), Some(0), 4_000_000_000,
            [0, 3_133_899_929, 1_358_799_043, 3_281_248_917, 281_548_738],
            11_485_330_184_558_771_920),
        (pareto(200_000), Some(0), million,
            [0, 41_971, 114_346, 618_090, 0], 13_603_128_804_509_566_269),
        (pareto(900_000), Some(500_000), million,
            [398_993, 854_616, 775_894, 769_178, 305_552], 12_943_188_314_051_537_539),
        (normal(0), None, million,
            [348_537, 483_028, 919_572, 282_132, 574_543], 10_828_202_342_344_388_296),
        (normal(25_000_000), None, million,
            [728_453, 169_838, 761_141, 690_884, 818_038], 2_758_631_025_673_123_352),
        (normal(3_500_000), Some(750_000), million,
            [228_782, 920_844, 838_028, 661_772, 288_047], 5_593_189_553_132_945_245),
        (normal(3_500_000), Some(250_000), million,
            [696_078, 388_140, 305_324, 129_068, 755_343], 12_959_495_486_181_458_717),
        (normal(99_000_000), None, 100, [77, 69, 85, 69, 0], 10_346_386_802_855_477_035),
    ];
    for (shape, center, n, head, sum) in cases {
        let got = drawn(skew(shape, center), n);
        assert_eq!(got, (head, sum), "{shape:?} {center:?} of {n}");
    }
}

/// The formula for the tail against the sum itself.
#[test]
fn zeta_is_the_sum() {
    for theta in [0.0, 0.5, 0.99, 1.000_001, 1.2, 3.0] {
        for n in [1, 2, 999, 1000, 1001, 200_000] {
            let sum: f64 = (1..=n).rev().map(|k| (1.0 / k as f64).powf(theta)).sum();
            let off = (zeta(n, theta) - sum).abs() / sum;
            assert!(off < 1e-10, "theta {theta}, n {n}: {off:e}");
        }
    }
}

/// Shares of the two most frequent ranks and of the hundred first, without their hash.
#[test]
fn ranks_have_the_shares_that_theta_says() {
    let n = 10_000;
    let mut rng = Rng::stream(1, "test");
    for theta in [800_000, 1_200_000] {
        let shape = Shape::Zipf(decimal(theta));
        let ranks = Ranks::new(skew(shape, Some(0)), n, false, 0);
        let mut hits = vec![0u32; n as usize];
        for _ in 0..200_000 {
            hits[ranks.next(&mut rng) as usize] += 1;
        }
        let power = |k: usize| (1.0 / k as f64).powf(theta as f64 / 1e6);
        let all: f64 = (1..=n as usize).map(power).sum();
        let share = |ranks: std::ops::Range<usize>| {
            let hits: u32 = hits[ranks.clone()].iter().sum();
            let want: f64 = ranks.map(|rank| power(rank + 1)).sum::<f64>() / all;
            (f64::from(hits) / 200_000.0 - want).abs()
        };
        // Three standard deviations are 0.003; the method is exact for the first two ranks.
        assert!(share(0..1) < 0.003, "theta {theta}: {}", share(0..1));
        assert!(share(1..2) < 0.003, "theta {theta}: {}", share(1..2));
        // A theta that is off by 0.02 is seen here.
        assert!(share(0..100) < 0.02, "theta {theta}: {}", share(0..100));
    }
}

/// Outside of the random part, pareto's h of the ranks have the rest of the draws.
#[test]
fn a_fifth_of_the_ranks_have_four_fifths_of_the_draws() {
    let n = 10_000;
    let ranks = Ranks::new(skew(Shape::Pareto(decimal(200_000)), Some(0)), n, false, 0);
    let mut rng = Rng::stream(1, "test");
    let few = (0..100_000)
        .filter(|_| ranks.next(&mut rng) < n / 5)
        .count();
    assert!((79_500..80_500).contains(&few), "{few}");
}

/// Twelve draws: a standard deviation of a twelfth of the range; nearly all within a quarter.
#[test]
fn a_normal_choice_stays_around_the_middle() {
    let n = 12_000;
    let ranks = Ranks::new(skew(Shape::Normal(decimal(0)), None), n, false, 0);
    let mut rng = Rng::stream(1, "test");
    let drawn: Vec<f64> = (0..50_000).map(|_| ranks.next(&mut rng) as f64).collect();
    let mean = drawn.iter().sum::<f64>() / 50_000.0;
    let square = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 50_000.0;
    assert!((mean - 6000.0).abs() < 20.0, "{mean}");
    assert!((square.sqrt() - 1000.0).abs() < 20.0, "{}", square.sqrt());
}

/// For any words, no place lies outside and no draw hangs.
#[test]
fn extreme_words_stay_inside() {
    let shapes = [
        Shape::Zipf(decimal(0)),
        Shape::Zipf(decimal(999_999)),
        Shape::Zipf(decimal(1_000_001)),
        Shape::Zipf(decimal(100_000_000)),
        Shape::Pareto(decimal(1)),
        Shape::Pareto(decimal(999_999)),
        Shape::Normal(decimal(0)),
        Shape::Normal(decimal(99_999_999)),
    ];
    for shape in shapes {
        for n in [1, 2, 3, 12, 1 << 20, 1 << 53] {
            let ranks = Ranks::new(skew(shape, None), n, false, 0);
            for word in [0, 1, 1 << 31, u32::MAX - 1, u32::MAX] {
                assert!(ranks.place(&mut || word) < n, "{shape:?} of {n} by {word}");
            }
        }
    }
}
