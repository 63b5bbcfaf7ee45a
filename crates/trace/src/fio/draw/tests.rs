use super::{Decimal, Distribution, Shape, SizeShare, Skew, Zone, distribution, sizes};
use crate::fio::{Extent, PerDirection, parse_command_line};

/// Bytes and percent of each size, in fio's order.
fn shares(sizes: &[SizeShare]) -> Vec<(u64, u8)> {
    sizes.iter().map(|s| (s.bytes, s.percent)).collect()
}

fn split(text: &str) -> [Vec<(u64, u8)>; 3] {
    let PerDirection { read, write, trim } = sizes(text, 1024).unwrap();
    [shares(&read), shares(&write), shares(&trim)]
}

#[test]
fn sizes_are_sorted_by_share() {
    let [read, write, trim] = split("512/20:1k/16:2k/9:4k/12:8k/19:16k/10:32k/8:64k/4");
    let want = [
        (65536, 4),
        (32768, 8),
        (2048, 9),
        (16384, 10),
        (4096, 12),
        (1024, 16),
        (8192, 19),
        (512, 20),
    ];
    assert_eq!(read, want);
    assert_eq!((&write, &trim), (&read, &read));
    // Of equal shares the first stays the first.
    assert_eq!(split("8k/50:4k/50")[0], [(8192, 50), (4096, 50)]);
}

#[test]
fn shares_left_out_divide_the_rest() {
    assert_eq!(
        split("4k/10:64k/50:32k/40")[0],
        [(4096, 10), (32768, 40), (65536, 50)]
    );
    assert_eq!(
        split("4k/50:1k/:32k/")[0],
        [(1024, 25), (32768, 25), (4096, 50)]
    );
    assert_eq!(
        split("4k/50:1k:32k/0")[0],
        [(1024, 25), (32768, 25), (4096, 50)]
    );
    assert_eq!(split("8k")[0], [(8192, 100)]);
    // 33 each: fio gives the last one percent more.
    assert_eq!(split("4k:8k:16k")[0], [(4096, 33), (8192, 33), (16384, 33)]);
}

#[test]
fn sides_are_those_of_bs() {
    let [read, write, trim] = split("2k/50:4k/50,4k/90:8k/10");
    assert_eq!(read, [(2048, 50), (4096, 50)]);
    assert_eq!(write, [(8192, 10), (4096, 90)]);
    assert_eq!(trim, write);
    let [read, write, trim] = split("2k/50:4k/50,4k/90:8k/10,512/100");
    assert_eq!((read.len(), write.len(), trim), (2, 2, vec![(512, 100)]));
    let [read, write, _] = split(",4k/90:8k/10");
    assert_eq!((read.len(), write.len()), (0, 2));
}

#[test]
fn bad_sizes() {
    let many = vec!["4k/1"; 65].join(":");
    for (text, want) in [
        (
            "4k/60:8k/50",
            "the shares of `4k/60:8k/50` add up to 110 percent",
        ),
        ("4k/101", "101 is more than 100 percent"),
        ("4k/:64k/100", "nothing is left for 4096 bytes"),
        (
            "4k/50:6k/50",
            "6144 bytes are no multiple of the smallest, 4096",
        ),
        ("4k/50:", "`4k/50:` has an empty part"),
        ("4x/50", "`4x` has an unknown unit"),
        ("4k/half", "`half` is not a number"),
        ("4k/1.5", "`1.5` is not a whole number"),
        (
            "4k/1,4k/1,4k/1,4k/1",
            "`4k/1,4k/1,4k/1,4k/1` has more than three",
        ),
        (many.as_str(), "65 sizes; at most 64"),
    ] {
        let got = sizes(text, 1024).unwrap_err();
        assert!(got.starts_with(want), "{text}: {got}");
    }
}

fn good(text: &str) -> Distribution {
    distribution(text, 1024).unwrap()
}

fn skewed(shape: Shape, center: Option<u64>) -> Distribution {
    let center = center.map(Decimal::hundredths);
    Distribution::Skewed(Skew { shape, center })
}

#[test]
fn distributions_and_their_defaults() {
    let decimal = Decimal::hundredths;
    assert_eq!(good("random"), Distribution::Uniform);
    assert_eq!(good("zipf"), skewed(Shape::Zipf(decimal(110)), None));
    assert_eq!(good("zipf:1.2"), skewed(Shape::Zipf(decimal(120)), None));
    assert_eq!(
        good("zipf:.9:0.25"),
        skewed(Shape::Zipf(decimal(90)), Some(25))
    );
    assert_eq!(good("pareto"), skewed(Shape::Pareto(decimal(20)), None));
    assert_eq!(
        good("pareto:0.9:1"),
        skewed(Shape::Pareto(decimal(90)), Some(100))
    );
    assert_eq!(good("normal"), skewed(Shape::Normal(decimal(0)), None));
    assert_eq!(
        good("normal:12.5"),
        skewed(Shape::Normal(decimal(1250)), None)
    );
}

/// The number that fio's strtod() would read.
#[test]
fn decimals_are_the_nearest_numbers() {
    for text in ["1.2", "0.1", "1.000000001", "99.999999999", "3"] {
        let want: f64 = text.parse().unwrap();
        let Distribution::Skewed(skew) = good(&format!("normal:{text}")) else {
            panic!("{text}");
        };
        let Shape::Normal(got) = skew.shape else {
            panic!("{text}");
        };
        assert_eq!(got.to_f64().to_bits(), want.to_bits(), "{text}");
    }
}

#[test]
fn zones_by_share_and_by_size() {
    let zone = |percent, size| Zone { percent, size };
    let Distribution::Zoned(zones) = good("zoned:60/10:30/20:8/30:2/40") else {
        panic!();
    };
    let want = [(60, 10), (30, 20), (8, 30), (2, 40)];
    let want: Vec<Zone> = want
        .iter()
        .map(|&(access, size)| zone(access, Extent::Percent(size)))
        .collect();
    assert_eq!(
        (&zones.read, &zones.write, &zones.trim),
        (&want, &want, &want)
    );
    let Distribution::Zoned(zones) = good("zoned_abs:60/20g:40/100g,100/1m") else {
        panic!();
    };
    let gib = |count: u64| Extent::Bytes(count << 30);
    assert_eq!(zones.read, [zone(60, gib(20)), zone(40, gib(100))]);
    assert_eq!(zones.write, [zone(100, Extent::Bytes(1 << 20))]);
    assert_eq!(zones.trim, zones.write);
    // A size that is left out is the remainder.
    let Distribution::Zoned(zones) = good("zoned:50/10:50/,") else {
        panic!();
    };
    assert_eq!(zones.read[1], zone(50, Extent::Percent(90)));
    assert!(zones.write.is_empty());
}

#[test]
fn bad_distributions() {
    for (text, want) in [
        ("uniform", "`uniform` is none of random, zipf:THETA"),
        ("random:2", "`random:2` is none of random"),
        ("zipf:1", "fio's zipf has no theta of exactly 1"),
        ("zipf:1.0", "fio's zipf has no theta of exactly 1"),
        ("zipf:-1", "`-1` is no number such as 1.2"),
        ("zipf:1.2/0.5", "`1.2/0.5` is no number"),
        ("zipf:101", "theta is at most 100"),
        ("zipf:1.2:1.5", "the centre is 0 to 1"),
        ("zipf:", "`` is no number"),
        ("pareto:0", "pareto's number lies between 0 and 1"),
        ("pareto:1", "pareto's number lies between 0 and 1"),
        ("normal:100", "the deviation is 0 to below 100 percent"),
        ("zoned", "needs a value"),
        (
            "zoned:60/10",
            "the accesses of `60/10` add up to 60 percent, not 100",
        ),
        (
            "zoned:60/10:60/10",
            "the accesses of `60/10:60/10` add up to 120",
        ),
        (
            "zoned:60/60:40/60",
            "the shares of `60/60:40/60` add up to 120 percent",
        ),
        ("zoned:60/100:40/", "a zone of `60/100:40/` has no size"),
        ("zoned:0/10:100/90", "`0/10` names no share"),
        (
            "zoned_abs=60/20G:40/1G",
            "`zoned_abs=60/20G:40/1G` is none of",
        ),
        ("zoned_abs:60/1g:40", "a zone of `60/1g:40` has no size"),
        ("zoned_abs:100/0", "a zone of `100/0` has no size"),
    ] {
        let got = distribution(text, 1024).unwrap_err();
        assert!(got.starts_with(want), "{text}: {got}");
    }
}

/// Sizes of a direction that is not named stay those of bs; silent decisions of fio are reported.
#[test]
fn split_and_bs_together() {
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        parse_command_line(&words).unwrap()
    };
    let all = parse("--name=j --rw=randrw --bs=16k --bssplit=,4k/90:8k/10");
    let bs = &all.jobs[0].bs;
    assert_eq!((bs.read.min, bs.read.max), (16384, 16384));
    assert_eq!((bs.write.min, bs.write.max), (4096, 8192));
    assert_eq!(all.ignored, []);
    let all = parse("--bs=16k --name=j --bssplit=512/50:4k/48");
    let ignored: Vec<(&str, &str)> = all
        .ignored
        .iter()
        .map(|note| (note.option.as_str(), note.why.as_str()))
        .collect();
    let rest = "the shares add up to 98 percent; 512 bytes get the other 2, as in fio";
    assert_eq!(
        ignored,
        [("bs", "bssplit has the sizes"), ("bssplit", rest)]
    );
}
