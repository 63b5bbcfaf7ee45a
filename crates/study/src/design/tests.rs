use std::collections::BTreeSet;

use super::Design;

const HEAD: &str = "scenario = [\"a\", \"b\"]\n";

fn read(text: &str) -> Design {
    Design::read("s.toml", &format!("{HEAD}{text}")).expect("it is a sweep")
}

fn error(text: &str) -> String {
    let read = Design::read("s.toml", &format!("{HEAD}{text}"));
    read.expect_err("it is none").to_string()
}

fn values(design: &Design, index: usize) -> String {
    let (scenario, values) = design.point(index);
    let text = values.iter().map(|(key, value)| format!(" {key}={value}"));
    format!("{}{}", design.scenarios[scenario], text.collect::<String>())
}

#[test]
fn points_are_combinations_in_the_order_of_the_file() {
    let design = read(
        "[grid]\nz = [1, 2]\njob.bs = [\"4k\"]\n[[list]]\na = true\n[[list]]\na = false\nb = 1\n\
         [random]\nsamples = 2\nx = [\"u\"]\n",
    );
    assert_eq!(design.len(), 16);
    assert_eq!(values(&design, 0), "a a=true z=1 job.bs=4k x=u");
    assert_eq!(values(&design, 2), "a a=true z=2 job.bs=4k x=u");
    assert_eq!(values(&design, 4), "a a=false b=1 z=1 job.bs=4k x=u");
    assert_eq!(values(&design, 15), "b a=false b=1 z=2 job.bs=4k x=u");
    let keys: Vec<&str> = design.varied().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, ["scenario", "a", "b", "z", "job.bs", "x"]);
}

#[test]
fn a_point_that_a_skip_describes_is_left_out() {
    let design = read(
        "[grid]\ns = [\"x\", \"y\"]\nd = \"1..4\"\n[[skip]]\ns = \"y\"\nd = { from = 3 }\n[[skip]]\n\
         d = [2.0]\n",
    );
    let left: Vec<String> = (0..design.len()).map(|at| values(&design, at)).collect();
    let of = |name: &str| [1, 3, 4].map(|d| format!("{name} s=x d={d}"));
    let expected: Vec<String> = ["a", "b"]
        .iter()
        .flat_map(|name| of(name).into_iter().chain([format!("{name} s=y d=1")]))
        .collect();
    assert_eq!(left, expected);
}

#[test]
fn a_skip_may_be_of_a_scenario() {
    let design = read("[grid]\nd = [1, 2]\n[[skip]]\nscenario = \"a\"\nd = 1\n");
    let left: Vec<String> = (0..design.len()).map(|at| values(&design, at)).collect();
    assert_eq!(left, ["a d=2", "b d=1", "b d=2"]);
}

#[test]
fn shards_have_every_point_once() {
    let design = read("[grid]\nd = \"1..50\"\n");
    for count in 1..=7 {
        let mut all: Vec<usize> = (0..count).flat_map(|at| design.shard(at, count)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}

/// Values of the one key of samples, a range from 1 to 100.
fn sampled(method: &str, more: &str, count: usize) -> Vec<f64> {
    let text = format!(
        "[{method}]\nsamples = {count}\nx = {{ from = 1, to = 100{more} }}\ny = {{ from = 1, to = 9 }}\n"
    );
    let design = read(&text);
    let x = |at: usize| design.point(at).1[0].1.parse().expect("a number");
    (0..count).map(x).collect()
}

#[test]
fn a_latin_hypercube_has_one_sample_in_each_part_of_a_range() {
    let whole: BTreeSet<u64> = sampled("latin_hypercube", "", 100)
        .iter()
        .map(|x| *x as u64)
        .collect();
    assert_eq!(whole, (1..=100).collect());
    // Parts of a logarithmic range from 1 up to 101.
    let parts = sampled("latin_hypercube", ", scale = \"log\"", 10);
    let mut parts: Vec<u64> = parts
        .iter()
        .map(|x| ((x + 0.5).ln() / 101_f64.ln() * 10.0) as u64)
        .collect();
    parts.sort_unstable();
    assert!(
        parts
            .iter()
            .zip(0..10)
            .all(|(part, own)| part.abs_diff(own) <= 1),
        "{parts:?}"
    );
    // Independent samples do not fill all parts.
    let random: BTreeSet<u64> = sampled("random", "", 100)
        .iter()
        .map(|x| *x as u64)
        .collect();
    assert!(random.len() < 80);
}

#[test]
fn samples_of_a_key_do_not_depend_on_others() {
    let alone = read("[random]\nsamples = 5\nx = { from = 0.0, to = 1.0 }\n");
    let beside = read("[random]\nsamples = 5\na = [1, 2]\nx = { from = 0.0, to = 1.0 }\n");
    let other = read("[random]\nsamples = 5\nseed = 2\nx = { from = 0.0, to = 1.0 }\n");
    let x = |design: &Design, place: usize| {
        let one = |at: usize| design.point(at).1[place].1.to_owned();
        (0..5).map(one).collect::<Vec<_>>()
    };
    assert_eq!(x(&alone, 0), x(&beside, 1));
    assert_ne!(x(&alone, 0), x(&other, 0));
    // The numbers themselves are a promise: another machine makes the same points.
    assert_eq!(x(&alone, 0)[..2], ["0.817639", "0.205563"]);
}

#[test]
fn errors_name_line_and_key() {
    let text = |text: &str| error(text);
    assert_eq!(
        text("grid = 1\n"),
        "s.toml:2: grid: expected a table: [grid]"
    );
    assert_eq!(
        text("[grid]\n\nd = []\n"),
        "s.toml:4: d: expected at least one value"
    );
    assert_eq!(
        text("[grid]\nd = [1, 1]\n"),
        "s.toml:3: d: 1 is there twice"
    );
    assert_eq!(
        text("[grid]\nd = [{ a = 1 }]\n"),
        "s.toml:3: d: expected a number, a text, true or false"
    );
    assert_eq!(
        text("[grid]\nd = \"8..1\"\n"),
        "s.toml:3: d: expected a range such as 1..8, of at most 1000000 numbers"
    );
    assert_eq!(
        text("[set]\nd = 1\n[grid]\nd = 1\n"),
        "s.toml:5: d: is there twice"
    );
    assert_eq!(
        text("[[skip]]\nd = 1\n"),
        "s.toml:3: d: is not varied; expected in [[skip]] a key that is"
    );
    assert_eq!(
        text("[grid]\nd = 1\n[[skip]]\nd = 1\n"),
        "s.toml: [[skip]] leaves no point"
    );
    assert_eq!(
        text("[[list]]\nscenario = \"b\"\n"),
        "s.toml:3: scenario: expected at the top of the file, before the tables"
    );
    let unused = text("[grid]\nd = [\"4k\"]\n[[skip]]\nd = 4096\n");
    assert!(
        unused.starts_with("s.toml: [[skip]] number 1 leaves out no point"),
        "{unused}"
    );
    assert_eq!(
        text("[grid]\nd = [1, 2]\n[[skip]]\nd = { from = 2, to = 1 }\n"),
        "s.toml:5: d: expected from to be at most to"
    );
    assert_eq!(
        text("[grid]\nd = { from = 1, to = 8 }\n"),
        "s.toml:3: d: expected values, or a range as a text: \"1..8\""
    );
    assert_eq!(
        text("[random]\nx = [1, 2]\n"),
        "s.toml:2: random: expected `samples = NUMBER` and keys with their ranges or values"
    );
    assert_eq!(
        text("[random]\nsamples = 1\nx = { from = 2, to = 1 }\n"),
        "s.toml:4: x: expected from and to, from below to"
    );
}

#[test]
fn errors_of_seeds_and_the_whole_file() {
    let text = |text: &str| error(text);
    assert_eq!(
        text("seeds = { from = 2 }\n"),
        "s.toml:1: seeds: expected `precision` with a range of seeds, or one number of seeds"
    );
    assert_eq!(
        text("precision = \"1\"\n"),
        "s.toml:2: precision: expected percent of the mean, e.g. \"1%\""
    );
    assert!(
        text("precision = { iopss = \"1%\" }\n")
            .starts_with("s.toml:2: iopss: unknown; expected some of iops, bw_bytes,")
    );
    assert!(text("sets = 1\n").starts_with("s.toml:2: sets: unknown; expected scenario, seed,"));
    assert!(text("a = \n").starts_with("s.toml:2: "));
    let many = "[grid]\na = \"1..10000\"\nb = \"1..10000\"\n";
    assert_eq!(
        text(many),
        "s.toml: more than 10000000 combinations of values"
    );
    let none = Design::read("s.toml", "seeds = 2\n").expect_err("no scenario");
    assert!(
        none.to_string()
            .starts_with("s.toml:1: scenario: is missing")
    );
}

#[test]
fn seeds_and_precision() {
    assert_eq!(read("seeds = 4\n").runs(), (8, 8));
    let design = read("precision = \"2 %\"\n");
    assert_eq!((design.runs(), design.precision[0].1), ((6, 60), 0.02));
    let two =
        read("precision = { iops = \"1%\", clat_p99_ns = \"5%\" }\nseeds = { from = 2, to = 9 }\n");
    assert_eq!((two.seeds, two.precision.len()), ((2, 9), 2));
}
