//! Published vectors, then the distributions.

use super::{Rng, Runs, SplitMix, fnv1a};

#[test]
fn xoshiro_follows_the_published_vector() {
    let mut rng = Rng {
        state: [1, 2, 3, 4],
    };
    let expected = [
        11520,
        0,
        1_509_978_240,
        1_215_971_899_390_074_240,
        1_216_172_134_540_287_360,
        607_988_272_756_665_600,
        16_172_922_978_634_559_625,
        8_476_171_486_693_032_832,
        10_595_114_339_597_558_777,
        2_904_607_092_377_533_576,
    ];
    for value in expected {
        assert_eq!(rng.next_u64(), value);
    }
}

#[test]
fn splitmix_follows_the_published_vector() {
    let mut mix = SplitMix(1_234_567);
    let expected = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];
    for value in expected {
        assert_eq!(mix.next(), value);
    }
}

#[test]
fn fnv1a_follows_the_published_vectors() {
    assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
}

/// Reports depend on these numbers: if one changes, every seed in every document means another run.
#[test]
fn streams_stay_what_they_are() {
    let mut rng = Rng::stream(42, "arrivals/job0");
    let words: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
    let below: Vec<u64> = (0..8).map(|_| rng.below(100)).collect();
    let gaps: Vec<u64> = (0..8).map(|_| rng.exponential(1_000)).collect();
    assert_eq!(words, WORDS);
    assert_eq!(below, BELOW);
    assert_eq!(gaps, GAPS);
}

const WORDS: [u64; 3] = [
    2_785_711_282_391_298_286,
    14_259_147_820_687_506_460,
    13_590_230_177_664_605_607,
];
const BELOW: [u64; 8] = [38, 43, 28, 11, 87, 88, 25, 5];
const GAPS: [u64; 8] = [2764, 963, 2479, 1169, 542, 2899, 3476, 138];

#[test]
fn a_stream_depends_on_seed_and_name_alone() {
    let draw = |seed, name| Rng::stream(seed, name).next_u64();
    assert_eq!(draw(1, "a"), draw(1, "a"));
    assert_ne!(draw(1, "a"), draw(2, "a"));
    assert_ne!(draw(1, "a"), draw(1, "b"));
    assert_ne!(draw(1, ""), draw(0, ""));
    // Seed and name do not run together.
    assert_ne!(draw(1, "job12"), draw(12, "job1"));
}

#[test]
fn neighbouring_streams_do_not_agree_bit_by_bit() {
    let mut a = Rng::stream(7, "arrivals/job0");
    let mut b = Rng::stream(7, "arrivals/job1");
    let differing: u32 = (0..10_000)
        .map(|_| (a.next_u64() ^ b.next_u64()).count_ones())
        .sum();
    // 640,000 fair coins: standard deviation 400.
    assert!(
        differing.abs_diff(320_000) < 2_400,
        "{differing} of 640000 bits differ"
    );
}

#[test]
fn below_is_uniform() {
    let mut rng = Rng::stream(3, "uniform");
    let mut counts = [0u32; 7];
    for _ in 0..70_000 {
        counts[rng.below(7) as usize] += 1;
    }
    for count in counts {
        // Standard deviation 93.
        assert!(count.abs_diff(10_000) < 560, "{counts:?}");
    }
    assert_eq!(rng.below(1), 0);
}

#[test]
fn below_rejects_what_would_be_uneven() {
    // At two thirds of the range a plain product would make every third number twice as likely.
    let n = (u64::MAX / 3) * 2;
    let mut rng = Rng::stream(4, "uneven");
    let even = (0..30_000)
        .filter(|_| rng.below(n).is_multiple_of(2))
        .count();
    let low = (0..30_000).filter(|_| rng.below(n) < n / 2).count();
    assert!(even.abs_diff(15_000) < 520, "{even}");
    assert!(low.abs_diff(15_000) < 520, "{low}");
}

#[test]
fn chance_keeps_its_ratio() {
    let mut rng = Rng::stream(5, "chance");
    let hits = (0..100_000).filter(|_| rng.chance(3, 10)).count();
    assert!(hits.abs_diff(30_000) < 870, "{hits}");
    assert!(!(0..1_000).any(|_| rng.chance(0, 10)));
    assert!((0..1_000).all(|_| rng.chance(10, 10)));
}

#[test]
fn exponential_has_its_mean_its_spread_and_its_tail() {
    const DRAWS: u64 = 200_000;
    const MEAN: u64 = 1_000_000;
    let mut rng = Rng::stream(6, "exponential");
    let draws: Vec<u64> = (0..DRAWS).map(|_| rng.exponential(MEAN)).collect();
    let mean = draws.iter().sum::<u64>() / DRAWS;
    let square = draws
        .iter()
        .map(|x| u128::from(*x) * u128::from(*x))
        .sum::<u128>();
    let variance = square / u128::from(DRAWS) - u128::from(mean) * u128::from(mean);
    // Standard deviations: of the mean 0.22 %, of the variance 0.63 %.
    assert!(mean.abs_diff(MEAN) < MEAN / 77, "mean {mean}");
    assert!(
        variance.abs_diff(u128::from(MEAN * MEAN)) < u128::from(MEAN * MEAN / 26),
        "{variance}"
    );
    // exp(-1), exp(-3), exp(-0.1) of the draws lie above these.
    for (above, share) in [(MEAN, 367_879), (3 * MEAN, 49_787), (MEAN / 10, 904_837)] {
        let count = draws.iter().filter(|x| **x > above).count() as u64;
        let expected = DRAWS * share / 1_000_000;
        assert!(
            count.abs_diff(expected) < 1_350,
            "{count} above {above}, not {expected}"
        );
    }
    assert_eq!(rng.exponential(0), 0);
}

#[test]
#[should_panic(expected = "no number is below zero")]
fn below_zero_is_a_mistake() {
    Rng::stream(1, "").below(0);
}

#[test]
#[should_panic(expected = "a chance of 3 in 2")]
fn a_chance_above_one_is_a_mistake() {
    Rng::stream(1, "").chance(3, 2);
}

#[test]
fn runs_have_all_of_a_list_before_an_entry_comes_again() {
    for (count, length) in [(1, 4), (4, 4), (10, 4), (33, 16), (400, 16)] {
        let mut runs = Runs::new(count, length, Rng::stream(1, "runs"));
        let mut parity = vec![0; count as usize];
        let mut drawn = 0_u32;
        for round in 1..=length {
            let mut seen = vec![false; count as usize];
            while seen.contains(&false) {
                let (start, of) = runs.draw().unwrap();
                assert!((1..=length).contains(&of), "{count} {length}: {of}");
                for entry in start as usize..(start + of) as usize {
                    assert!(!seen[entry], "{count} {length}: {entry} in round {round}");
                    seen[entry] = true;
                    parity[entry] |= 1 << (drawn % 2);
                    drawn += 1;
                }
            }
        }
        // Of two that draw in turn each gets every entry.
        assert!(parity.iter().all(|&both| both == 3), "{count} {length}");
    }
    assert_eq!(Runs::new(0, 4, Rng::stream(1, "runs")).draw(), None);
}
