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
