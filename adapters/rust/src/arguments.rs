//! Reads the driver's option types from arguments of the format.
//! The driver's types implement `Deserialize` with the names of their fields. `Argument` receives these names from
//! serde, so the driver itself determines which options exist. Any other option is unsupported.

use crate::failures::Failure;
use bson::{Bson, Document};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Reads a value of the driver.
pub fn read<T: DeserializeOwned>(value: impl Into<Bson>) -> Result<T, Failure> {
    T::deserialize(Argument(value.into()))
}

/// Whether a name of the format is the name of a field, in which the driver omits the unit, or adds a prefix.
fn same(name: &str, field: &str) -> bool {
    let plain = |s: &str| s.replace('_', "").trim_end_matches("MS").to_lowercase();
    let (name, field) = (plain(name), plain(field));
    name == field || format!("api{name}") == field || (name == "readpreference" && field == "selectioncriteria")
}

struct Argument(Bson);

impl IntoDeserializer<'_, Failure> for Argument {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

fn fields<'de>(document: Document) -> MapDeserializer<'de, impl Iterator<Item = (String, Argument)>, Failure> {
    MapDeserializer::new(document.into_iter().map(|(name, value)| (name, Argument(value))))
}

impl<'de> Deserializer<'de> for Argument {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Bson::Document(document) => visitor.visit_map(fields(document)),
            Bson::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Argument))),
            other => bson::Deserializer::new(other).deserialize_any(visitor).map_err(Failure::invalid),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Bson::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let Bson::Document(document) = self.0 else {
            return match (name, bson_number(&self.0)) {
                ("Duration", Some(ms)) => {
                    visitor.visit_seq(SeqDeserializer::new([ms / 1000, ms % 1000 * 1_000_000].into_iter()))
                }
                _ => self.deserialize_any(visitor),
            };
        };
        let mut named = Document::new();
        for (option, value) in document {
            let exact = known.iter().find(|field| **field == option);
            match exact.or_else(|| known.iter().find(|field| same(&option, field))) {
                Some(field) => named.insert(*field, value),
                None => return Err(Failure::lacks(format!("{name}.{option}"))),
            };
        }
        visitor.visit_map(fields(named))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        if name.starts_with("$__") {
            return bson::Deserializer::new(self.0).deserialize_newtype_struct(name, visitor).map_err(Failure::invalid);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.0 {
            Bson::String(text) if variants.contains(&text.as_str()) => visitor.visit_enum(text.into_deserializer()),
            Bson::String(text) if variants.contains(&"other") => {
                let other = MapDeserializer::new([("other", text)].into_iter());
                visitor.visit_enum(MapAccessDeserializer::new(other))
            }
            other => Err(Failure::lacks(format!("the value {other} of {name}"))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// The value of a number that is not negative.
fn bson_number(value: &Bson) -> Option<u64> {
    match value {
        Bson::Int32(n) => u64::try_from(*n).ok(),
        Bson::Int64(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}
