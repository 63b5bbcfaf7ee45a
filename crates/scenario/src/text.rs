//! Values written as text or as a number.

use serde::de::{self, Deserialize, Deserializer};

/// A value of one of fio's options: text, or a whole number, which is taken as text.
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
