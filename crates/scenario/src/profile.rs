//! Machine profiles as text: built-in ones, and files that extend them.
//!
//! Not here: the meaning of a profile and its checks (`sim/src/profile.rs`), nor any price: the
//! files are `crates/sim/profiles/*.toml`.

use std::sync::OnceLock;

use blkmq::env::CPUS_MAX;
use sim::profile::MachineProfile;

mod extends;

const BUILT_IN: [(&str, &str); 7] = [
    (
        "ryzen-7950x",
        include_str!("../../sim/profiles/ryzen-7950x.toml"),
    ),
    (
        "dell-r7525",
        include_str!("../../sim/profiles/dell-r7525.toml"),
    ),
    ("xeon-10c", include_str!("../../sim/profiles/xeon-10c.toml")),
    ("quadcore", include_str!("../../sim/profiles/quadcore.toml")),
    ("null12", include_str!("../../sim/profiles/null12.toml")),
    (
        "pserver16",
        include_str!("../../sim/profiles/pserver16.toml"),
    ),
    (
        "qemu-icount",
        include_str!("../../sim/profiles/qemu-icount.toml"),
    ),
];

/// The built-in profile of this name.
pub fn built_in(name: &str) -> Result<MachineProfile, String> {
    static READ: [OnceLock<Result<MachineProfile, String>>; BUILT_IN.len()] =
        [const { OnceLock::new() }; _];
    let Some(index) = BUILT_IN.iter().position(|(known, _)| *known == name) else {
        let known = names().join(", ");
        return Err(format!(
            "no machine profile is named `{name}`; there are: {known}"
        ));
    };
    READ[index].get_or_init(|| parse(BUILT_IN[index].1)).clone()
}

/// Names of the built-in profiles and their files.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.into_iter()
}

pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// Reads a profile. It may extend a built-in one.
pub fn parse(text: &str) -> Result<MachineProfile, String> {
    parse_at("", text, |file| {
        Err(format!("extends = \"{file}\": there are no files here"))
    })
}

/// Reads a profile that may extend (`extends = "NAME"`) a built-in one or a file. `own` identifies
/// the text; `read` returns, for a file's name, its identity, the same for each of its names, and
/// its text.
pub fn parse_at(
    own: &str,
    text: &str,
    read: impl FnMut(&str) -> Result<(String, String), String>,
) -> Result<MachineProfile, String> {
    let (mut profile, hash) = extends::layered(own, text, read)?;
    profile.hash = hash;
    profile.label_cycles()?;
    profile.check_cpus()?;
    profile.check_steal()?;
    profile
        .check_clock()
        .map_err(|what| extends::with_line(text, "clock_mhz", &what))?;
    if let Some(caches) = profile.caches {
        caches
            .check()
            .map_err(|(key, what)| extends::with_line(text, key, &what))?;
    }
    Ok(profile)
}

/// Between the name of a profile and another number of sockets.
pub const SOCKETS: &str = ":sockets=";

/// The profile with another number of sockets, each like those that it has. An error has the range.
pub fn of_sockets(mut profile: MachineProfile, count: &str) -> Result<MachineProfile, String> {
    let per_socket = profile.cpus() / profile.topology.sockets;
    let most = CPUS_MAX / per_socket;
    let name = format!("{}{SOCKETS}{count}", profile.name);
    match count.parse() {
        Ok(count) if (1..=most).contains(&count) => profile.topology.sockets = count,
        _ => {
            return Err(format!(
                "sockets: {count} is not 1 to {most}: a socket of {} has {per_socket} CPUs, a \
                 machine at most {CPUS_MAX}",
                profile.name
            ));
        }
    }
    profile.name = name;
    Ok(profile)
}

/// The profile as text; reading the text gives the same profile.
pub fn to_toml(profile: &MachineProfile) -> String {
    toml::to_string(profile).expect("a profile is plain data")
}
