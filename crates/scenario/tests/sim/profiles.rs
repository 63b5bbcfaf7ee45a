//! Limits of a machine's size in a profile.

use sim::profile::Cache;

use scenario::profile::{built_in, parse, parse_at, to_toml};

const RYZEN: &str = include_str!("../../../sim/profiles/ryzen-7950x.toml");

#[test]
fn a_machine_has_one_to_1024_cpus() {
    let with = |sockets: &str| {
        assert!(RYZEN.contains("sockets = 1"));
        parse(&RYZEN.replacen("sockets = 1", sockets, 1))
    };
    assert_eq!(with("sockets = 32").map(|profile| profile.cpus()), Ok(1024));
    // The last one would be 0 in 16 bits.
    for (sockets, cpus) in [
        ("sockets = 33", 1056),
        ("sockets = 0", 0),
        ("sockets = 2048", 65536),
    ] {
        let error = with(sockets).expect_err(sockets);
        assert!(error.contains(&format!("{cpus} CPUs")), "{error}");
        assert!(error.contains("1 to 1024"), "{error}");
    }
}

#[test]
fn caches_have_bounds() {
    let good = "extends = \"xeon-10c\"\nname = \"a\"\n[caches]\n\
                own = { kib = 2048, ways = 16 }\nlast_level = { kib = 6144, ways = 48 }\n\
                last_level_ps = 19000\nmemory_ps = 116000\n";
    assert!(parse(good).unwrap().caches.is_some());
    let sets = "expected whole sets of lines of 64 bytes";
    for (from, to, line, want) in [
        (
            "kib = 2048",
            "kib = 0",
            4,
            format!("caches.own: kib = 0, ways = 16: {sets}"),
        ),
        (
            "ways = 16",
            "ways = 0",
            4,
            format!("caches.own: kib = 2048, ways = 0: {sets}"),
        ),
        (
            "ways = 48",
            "ways = 47",
            5,
            format!("caches.last_level: kib = 6144, ways = 47: {sets}"),
        ),
        (
            "19000",
            "0",
            6,
            "caches.last_level_ps = 0: expected 1 to 10000000".to_owned(),
        ),
        (
            "19000",
            "10000001",
            6,
            "caches.last_level_ps = 10000001: expected".to_owned(),
        ),
        (
            "116000",
            "18999",
            7,
            "caches.memory_ps = 18999: expected 19000 (last_level_ps) to 10000000".to_owned(),
        ),
        (
            "116000",
            "10000001",
            7,
            "caches.memory_ps = 10000001: expected".to_owned(),
        ),
        (
            "kib = 2048",
            "size = 2048",
            4,
            "unknown field `size`".to_owned(),
        ),
    ] {
        assert!(good.contains(from));
        let error = parse(&good.replace(from, to)).unwrap_err();
        let place = match to.starts_with("size") {
            // The table is joined with its base's: the reader does not know the line.
            true => String::new(),
            false => format!("TOML parse error at line {line}, column 1\n"),
        };
        assert!(error.starts_with(&format!("{place}{want}")), "{error}");
    }
}

#[test]
fn what_is_left_out_of_caches_is_reported_and_where_a_bad_value_stands() {
    let text = "extends = \"xeon-10c\"\nname = \"a\"\n[caches]\n\
                own = { kib = 2048, ways = 16 }\nlast_level = { kib = 6144, ways = 48 }\n\
                last_level_ps = 19000\n";
    let missing = parse(text).unwrap_err();
    assert!(missing.contains("missing field `memory_ps`"), "{missing}");
    // An error about a value in an extending profile names its own line, not the base's.
    let own = "extends = \"pserver16\"\nname = \"a\"\n\n[caches]\nmemory_ps = 1\n";
    let error = parse(own).unwrap_err();
    assert!(error.starts_with("TOML parse error at line 5"), "{error}");
}

#[test]
fn lines_that_lie_far_apart_share_sets() {
    let cache = Cache {
        kib: 2048,
        ways: 16,
    };
    assert_eq!(cache.lines(64), 2048 * 16, "all of it");
    assert_eq!(cache.lines(1024), 2048, "every sixteenth set");
    assert_eq!(
        cache.lines(1088),
        2048 * 16,
        "17 lines apart: every set in turn"
    );
    assert_eq!(cache.lines(1 << 30), 16, "one set");
}

/// A profile with the differing keys only.
const FASTER: &str = "extends = \"ryzen-7950x\"\nname = \"faster\"\nclock_mhz = 6000\n\
                      [cycles]\nsyscall = 1\n[labels]\ndefault = 7\n";

fn no_files(file: &str) -> Result<(String, String), String> {
    Err(format!("{file} is not there"))
}

#[test]
fn a_profile_takes_from_its_base_what_it_does_not_say() {
    let base = built_in("ryzen-7950x").unwrap();
    let faster = parse(FASTER).unwrap();
    assert_eq!((faster.name.as_str(), faster.clock_mhz), ("faster", 6000));
    assert_eq!(
        (faster.cycles.syscall, faster.cycles.irq),
        (1, base.cycles.irq)
    );
    assert_eq!(faster.labels["default"], 7);
    assert_eq!(faster.labels.len(), base.labels.len());
    assert_eq!(
        (faster.cpus(), &faster.description),
        (base.cpus(), &base.description)
    );
    // The digest is of both texts.
    assert_ne!(faster.hash, base.hash);
    let other = parse(&FASTER.replace("ryzen-7950x", "dell-r7525")).unwrap();
    assert_ne!(other.hash, faster.hash);
    // Written out, it needs no base.
    let whole = parse(&to_toml(&faster)).unwrap();
    assert_eq!((whole.clock_mhz, whole.labels), (6000, faster.labels));
}

#[test]
fn a_base_may_extend_another() {
    let read = |file: &str| match file {
        "b.toml" | "./b.toml" => Ok((
            "b.toml".to_owned(),
            "extends = \"xeon-10c\"\nname = \"b\"\nclock_mhz = 1234\n[cycles]\nirq = 5\n"
                .to_owned(),
        )),
        other => no_files(other),
    };
    let text = "extends = \"b.toml\"\nname = \"a\"\n[cycles]\nirq = 6\n";
    let profile = parse_at("a.toml", text, read).unwrap();
    assert_eq!(
        (profile.clock_mhz, profile.cycles.irq, profile.cpus()),
        (1234, 6, 10)
    );
}

#[test]
fn what_may_be_wrong_with_a_base() {
    let read = |file: &str| match file {
        "a.toml" => Ok((
            "a.toml".to_owned(),
            "extends = \"b.toml\"\nname = \"a\"\n".to_owned(),
        )),
        "b.toml" => Ok((
            "b.toml".to_owned(),
            "extends = \"a.toml\"\nname = \"b\"\n".to_owned(),
        )),
        "bad.toml" => Ok(("bad.toml".to_owned(), "[cycles\n".to_owned())),
        other => no_files(other),
    };
    let own = "a.toml extends b.toml extends a.toml";
    for (text, want) in [
        (
            "extends = \"b.toml\"\nname = \"a\"",
            format!("extends goes round in a circle: {own}"),
        ),
        (
            "extends = \"ryzen-7951x\"\nname = \"a\"",
            "extends: no machine profile `ryzen-7951x`; did you mean `ryzen-7950x`?".to_owned(),
        ),
        (
            "extends = \"vax\"\nname = \"a\"",
            "extends: no machine profile `vax`; there are ryzen-7950x, ".to_owned(),
        ),
        (
            "extends = \"c.toml\"\nname = \"a\"",
            "c.toml is not there".to_owned(),
        ),
        (
            "extends = \"bad.toml\"\nname = \"a\"",
            "bad.toml, which it extends: ".to_owned(),
        ),
        (
            "extends = 3\nname = \"a\"",
            "extends: expected the name".to_owned(),
        ),
        (
            "extends = \"xeon-10c\"",
            "a profile that extends another needs a name".to_owned(),
        ),
        (
            "extends = \"xeon-10c\"\nname = \"a\"\n[cycles]\natomc = 1\n",
            "TOML parse error at line 4, column 1\nunknown field `atomc`".to_owned(),
        ),
        (
            "extends = \"xeon-10c\"\nname = \"a\"\n[topology]\nsockets = 999\n",
            "topology: 9990 CPUs".to_owned(),
        ),
    ] {
        let got = parse_at("a.toml", text, read).unwrap_err();
        assert!(got.starts_with(&want), "{text}\n  {got}");
    }
    let itself = parse_at("a.toml", "extends = \"a.toml\"\nname = \"a\"", read);
    assert!(itself.unwrap_err().contains("a.toml extends a.toml"));
}
