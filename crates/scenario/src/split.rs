//! Tables with keys that are not fields: attributes of schedulers, parameters of devices.
//!
//! They are put aside while the table is read, where errors still know the line of a key.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};

/// A table with fields and other keys.
pub(super) trait Split<'de>: Sized {
    /// A value of another key.
    type Other: Deserialize<'de>;
    /// Name of the table, for errors.
    const EXPECTED: &'static str;
    /// What the other keys are, after the list of fields in an error.
    const OTHERS: &'static str;

    fn others() -> impl Iterator<Item = &'static str>;

    fn fields<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Adds the other written keys.
    fn with(self, others: BTreeMap<String, Self::Other>) -> Self;
}

/// Reads fields and other keys.
pub(super) fn read<'de, T: Split<'de>, D: Deserializer<'de>>(source: D) -> Result<T, D::Error> {
    source.deserialize_map(Both(PhantomData))
}

struct Both<T>(PhantomData<T>);

impl<'de, T: Split<'de>> Visitor<'de> for Both<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let mut others = BTreeMap::new();
        let fields = Fields::<A, T> {
            map,
            others: &mut others,
        };
        let table = T::fields(MapAccessDeserializer::new(fields))?;
        Ok(table.with(others))
    }
}

/// The table without the other keys, which it puts aside.
struct Fields<'a, 'de, A, T: Split<'de>> {
    map: A,
    others: &'a mut BTreeMap<String, T::Other>,
}

impl<'de, A: MapAccess<'de>, T: Split<'de>> MapAccess<'de> for Fields<'_, 'de, A, T> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        mut seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            match self.map.next_key_seed(Key::<K, T>(seed, PhantomData))? {
                None => return Ok(None),
                Some(Found::Field(field)) => return Ok(Some(field)),
                Some(Found::Other(name, unused)) => {
                    let value = self.map.next_value()?;
                    self.others.insert(name, value);
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

struct Key<K, T>(K, PhantomData<T>);

enum Found<K, V> {
    Field(V),
    Other(String, K),
}

impl<'de, K: DeserializeSeed<'de>, T: Split<'de>> DeserializeSeed<'de> for Key<K, T> {
    type Value = Found<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if T::others().any(|other| other == name) {
            return Ok(Found::Other(name, self.0));
        }
        let field = self.0.deserialize(name.as_str().into_deserializer());
        // An unknown field may be a misspelt other key, which is then part of the message.
        let more = |e: serde::de::value::Error| match trace::fio::nearest(&name, T::others()) {
            Some(near) => D::Error::custom(format!("{e}, `{near}`")),
            None => D::Error::custom(format!("{e} and {}", T::OTHERS)),
        };
        field.map(Found::Field).map_err(more)
    }
}
