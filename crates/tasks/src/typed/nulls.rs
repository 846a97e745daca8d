//! This serializer finds values that JSON cannot tell from `None`: a `Some` that is written as
//! `null`.

use serde::ser::{self, Error as _, Serialize, Serializer};
use serde_json::Error;

/// Fails if some `Some` in `value` is written as `null`: it would come back as `None`, and nobody
/// would notice.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), Error> {
    value.serialize(Nulls { in_some: false })
}

/// Writes nothing, and looks at what would be a `null`.
#[derive(Clone, Copy)]
struct Nulls {
    /// True if the next value is all that a `Some` contains.
    in_some: bool,
}

impl Nulls {
    fn null(self) -> Result<(), Error> {
        if self.in_some {
            return Err(Error::custom("a Some that is null comes back as None"));
        }
        Ok(())
    }

    fn float(self, is_finite: bool) -> Result<(), Error> {
        if is_finite { Ok(()) } else { self.null() }
    }
}

/// Methods for what is never written as `null`.
macro_rules! never_null {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(fn $name(self, _: $type) -> Result<(), Error> {
            Ok(())
        })*
    };
}

/// A value with parts is no `null`, but its parts may be.
macro_rules! has_parts {
    ($($name:ident($($argument:ty),*)),* $(,)?) => {
        $(fn $name(self, $(_: $argument),*) -> Result<Self, Error> {
            Ok(Self { in_some: false })
        })*
    };
}

impl Serializer for Nulls {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    never_null! {
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
    }

    has_parts! {
        serialize_seq(Option<usize>),
        serialize_tuple(usize),
        serialize_tuple_struct(&'static str, usize),
        serialize_tuple_variant(&'static str, u32, &'static str, usize),
        serialize_map(Option<usize>),
        serialize_struct(&'static str, usize),
        serialize_struct_variant(&'static str, u32, &'static str, usize),
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.float(value.is_finite())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.float(value.is_finite())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.null()
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.null()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.null()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(Self { in_some: true })
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        check(value)
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, _: &T) -> Result<(), Error> {
        Ok(())
    }
}

/// Each part for itself.
macro_rules! parts {
    ($($kind:ident::$name:ident($($key:ty)?)),* $(,)?) => {
        $(impl ser::$kind for Nulls {
            type Ok = ();
            type Error = Error;

            fn $name<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Error> {
                check(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str),
}

impl ser::SerializeMap for Nulls {
    type Ok = ();
    type Error = Error;

    /// Keys are strings.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        check(value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::check;

    #[derive(Serialize)]
    struct Part {
        score: Option<f64>,
        name: &'static str,
    }

    #[derive(Serialize)]
    struct Newtype(f32);

    #[derive(Serialize)]
    enum Shape {
        Nothing,
        Tuple(Option<i8>, Vec<Option<f32>>),
    }

    #[test]
    fn a_some_that_is_written_as_null_is_found_wherever_it_is() {
        let part = |score| Part { score, name: "a" };
        for score in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(check(&part(Some(score))).is_err());
            assert!(check(&vec![part(None), part(Some(score))]).is_err());
            assert!(check(&BTreeMap::from([(1, part(Some(score)))])).is_err());
        }
        assert!(check(&Some(Newtype(f32::NAN))).is_err());
        assert!(check(&Some(())).is_err());
        assert!(check(&Some(None::<u8>)).is_err());
        assert!(check(&Shape::Tuple(None, vec![Some(f32::NAN)])).is_err());
    }

    #[test]
    fn what_comes_back_passes() {
        let part = |score| Part { score, name: "a" };
        assert!(check(&(part(None), part(Some(-0.0)), Some(Shape::Nothing))).is_ok());
        assert!(check(&Shape::Tuple(Some(1), vec![None, Some(1.5)])).is_ok());
        assert!(check(&(Some("null"), Some(vec![()]), Some(u128::MAX), ())).is_ok());
    }
}
