//! What a profile may say of a machine's size.

use super::{BUILT_IN, MachineProfile};

#[test]
fn a_machine_has_one_to_128_cpus() {
    let (name, text) = BUILT_IN[0];
    let with = |sockets: &str| {
        assert!(text.contains("sockets = 1"), "{name}");
        MachineProfile::parse(&text.replacen("sockets = 1", sockets, 1))
    };
    assert_eq!(with("sockets = 4").map(|profile| profile.cpus()), Ok(128));
    // The last one would be 0 in 16 bits.
    for (sockets, cpus) in [
        ("sockets = 5", 160),
        ("sockets = 0", 0),
        ("sockets = 2048", 65536),
    ] {
        let error = with(sockets).expect_err(sockets);
        assert!(error.contains(&format!("{cpus} CPUs")), "{error}");
        assert!(error.contains("1 to 128"), "{error}");
    }
}

#[test]
fn caches_have_bounds() {
    let (_, good) = BUILT_IN
        .iter()
        .find(|(name, _)| *name == "pserver16")
        .unwrap();
    assert!(MachineProfile::parse(good).unwrap().caches.is_some());
    for (from, to, name) in [
        ("own_kib = 256", "own_kib = 0", "caches.own_kib"),
        (
            "last_level_ps = 15000",
            "last_level_ps = 0",
            "caches.last_level_ps",
        ),
        (
            "last_level_ps = 15000",
            "last_level_ps = 10000001",
            "caches.last_level_ps",
        ),
    ] {
        assert!(good.contains(from));
        let error = MachineProfile::parse(&good.replace(from, to)).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
}

/// A profile that says no more than what is different.
const FASTER: &str = "extends = \"ryzen-7950x\"\nname = \"faster\"\nclock_mhz = 6000\n\
                      [cycles]\nsyscall = 1\n[labels]\ndefault = 7\n";

fn no_files(file: &str) -> Result<(String, String), String> {
    Err(format!("{file} is not there"))
}

#[test]
fn a_profile_takes_from_its_base_what_it_does_not_say() {
    let base = MachineProfile::built_in("ryzen-7950x").unwrap();
    let faster = MachineProfile::parse(FASTER).unwrap();
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
    let other = MachineProfile::parse(&FASTER.replace("ryzen-7950x", "dell-r7525")).unwrap();
    assert_ne!(other.hash, faster.hash);
    // As written out, it stands for itself.
    let whole = MachineProfile::parse(&faster.to_toml()).unwrap();
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
    let profile = MachineProfile::parse_at("a.toml", text, read).unwrap();
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
            "extends = \"xeon-10c\"\nname = \"a\"\n[topology]\nsockets = 99\n",
            "topology: 990 CPUs".to_owned(),
        ),
    ] {
        let got = MachineProfile::parse_at("a.toml", text, read).unwrap_err();
        assert!(got.starts_with(&want), "{text}\n  {got}");
    }
    let itself = MachineProfile::parse_at("a.toml", "extends = \"a.toml\"\nname = \"a\"", read);
    assert!(itself.unwrap_err().contains("a.toml extends a.toml"));
}
