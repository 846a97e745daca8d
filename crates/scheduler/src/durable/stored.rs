//! Keys and values become bytes in a journal, and are read again.

use std::sync::Arc;

use crate::api::serial::Serial;
use crate::ground::error::JournalError;

/// A type that can be written to a journal and read again.
///
/// For types of your own: implement it, or wrap them in `Json` (feature `serde`).
pub trait Stored: Sized {
    /// Appends its bytes.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads what `write` wrote; `None` for anything else.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Checks that it can be written and read again. It is called before it is set.
    ///
    /// # Errors
    ///
    /// When it cannot.
    fn check(&self) -> Result<(), JournalError> {
        Ok(())
    }
}

/// Checks that a key and a value can both be written, and names the one that cannot.
pub(super) fn check<K: Stored, V: Stored>(key: &K, value: &V) -> Result<(), JournalError> {
    let of = |what, error| JournalError::new(format_args!("its {what} is at fault: {error}"));
    key.check().map_err(|error| of("key", error))?;
    value.check().map_err(|error| of("value", error))
}

impl Stored for Vec<u8> {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl Stored for String {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_utf8(bytes.to_vec()).ok()
    }
}

impl Stored for Arc<str> {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(Self::from)
    }
}

impl<T: Stored> Stored for Arc<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        T::write(self, bytes);
    }

    fn check(&self) -> Result<(), JournalError> {
        T::check(self)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        T::read(bytes).map(Self::new)
    }
}

impl Stored for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl Stored for Serial {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        u64::read(bytes).map(Self)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Stored for $number {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
