//! Keys and values of a program's own types become ids and payloads, and are read again.

use std::sync::Arc;

use crate::shape::error::StoreError;

/// A type that a task's payload can be written from and read as.
///
/// For types of your own: implement it, or wrap them in `Json` (feature `serde`).
pub trait Codec: Sized {
    /// Its bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`], if it could not be read again.
    fn to_bytes(&self) -> Result<Vec<u8>, StoreError>;

    /// Reads what `to_bytes` wrote; `None` for anything else.
    fn of_bytes(bytes: &[u8]) -> Option<Self>;
}

/// A type that a task's id can be written from and read as. An id has 1 to 200 bytes, none of them
/// 0.
pub trait Key: Sized {
    /// The id.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`], if it could not be read again.
    fn to_id(&self) -> Result<String, StoreError>;

    /// Reads what `to_id` wrote; `None` for anything else.
    fn of_id(id: &str) -> Option<Self>;
}

impl Codec for Vec<u8> {
    fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        Ok(self.clone())
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl Codec for () {
    fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        Ok(Vec::new())
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl<T: Codec> Codec for Arc<T> {
    fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        T::to_bytes(self)
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        T::of_bytes(bytes).map(Self::new)
    }
}

macro_rules! texts {
    ($($text:ty)*) => {$(
        impl Codec for $text {
            fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
                Ok(self.as_bytes().to_vec())
            }

            fn of_bytes(bytes: &[u8]) -> Option<Self> {
                str::from_utf8(bytes).ok().map(Self::from)
            }
        }

        impl Key for $text {
            fn to_id(&self) -> Result<String, StoreError> {
                Ok(self.to_string())
            }

            fn of_id(id: &str) -> Option<Self> {
                Some(Self::from(id))
            }
        }
    )*};
}

texts!(String Arc<str>);

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Codec for $number {
            fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
                Ok(self.to_le_bytes().to_vec())
            }

            fn of_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }

        /// In decimal digits.
        impl Key for $number {
            fn to_id(&self) -> Result<String, StoreError> {
                Ok(self.to_string())
            }

            fn of_id(id: &str) -> Option<Self> {
                // One number has one id: "+7" and "07" are none.
                id.parse::<Self>().ok().filter(|number| number.to_string() == id)
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<T: Codec + Key + PartialEq + std::fmt::Debug>(value: T) {
        let bytes = value.to_bytes().expect("bytes");
        assert_eq!(T::of_bytes(&bytes).as_ref(), Some(&value));
        let id = value.to_id().expect("an id");
        assert_eq!(T::of_id(&id), Some(value));
    }

    #[test]
    fn keys_and_payloads_come_back_and_others_are_not_read() {
        comes_back("ä\n".to_owned());
        comes_back(Arc::<str>::from("ä"));
        comes_back(u64::MAX);
        comes_back(i128::MIN);
        for id in ["+7", "07", "7 ", "", "256"] {
            assert_eq!(u8::of_id(id), None, "{id:?}");
        }
        assert_eq!(u32::of_bytes(b"123"), None);
        assert_eq!(String::of_bytes(&[0xff]), None);
        assert_eq!(<()>::of_bytes(b"x"), None);
    }
}
