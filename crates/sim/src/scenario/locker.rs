//! `[[locker]]`: threads that do nothing but take one spin lock, as the kernel's locktorture and
//! will-it-scale's lock tests do.

use serde::de::{self, Deserialize, Deserializer};

/// Threads of one kind. All lockers of a scenario take the same lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Locker {
    /// Default `locker0` and so on.
    pub name: Option<String>,
    /// How many; locktorture's nwriters_stress. Default 1.
    pub threads: Option<u16>,
    /// CPUs they may use, as fio's. Default all.
    pub cpus_allowed: Option<FioText>,
    /// Time from the grant to the unlock, ns, on top of what the lock costs. Default 0.
    pub hold_ns: Option<u64>,
    /// Time from the unlock until it is asked for again, ns. Default 0.
    pub think_ns: Option<u64>,
    /// Time of a long hold, ns. Default 0.
    pub long_hold_ns: Option<u64>,
    /// One hold of so many, drawn, is a long one; 0: none. Default 0.
    pub long_hold_every: Option<u64>,
    /// Measured time, with fio's units. Default 1 s.
    pub runtime: Option<FioText>,
    /// Time before that which does not count. Default none.
    pub ramp_time: Option<FioText>,
}

/// A value of one of fio's options: text, or a whole number, which is text all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FioText(pub String);

impl<'de> Deserialize<'de> for FioText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FioText, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = FioText;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a whole number")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<FioText, E> {
                Ok(FioText(number.to_string()))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<FioText, E> {
                Ok(FioText(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
