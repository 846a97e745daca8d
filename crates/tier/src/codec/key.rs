//! Keys become bytes, and back: an invalidation message has the bytes alone.

use std::sync::Arc;

/// A key that can be written for the engine and read back.
pub trait TierKey: Sized {
    /// Appends the key. Different keys have different bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// The key of these bytes; `None` if there is none.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! text_keys {
    ($($key:ty),*) => {$(
        impl TierKey for $key {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_bytes());
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                std::str::from_utf8(bytes).ok().map(Into::into)
            }
        }
    )*};
}

text_keys!(String, Box<str>, Arc<str>);

macro_rules! byte_keys {
    ($($key:ty),*) => {$(
        impl TierKey for $key {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self);
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                Some(bytes.into())
            }
        }
    )*};
}

byte_keys!(Vec<u8>, Box<[u8]>, Arc<[u8]>);

/// Numbers are written as text, as people would write them with a client.
macro_rules! number_keys {
    ($($key:ty),*) => {$(
        impl TierKey for $key {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.to_string().as_bytes());
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                std::str::from_utf8(bytes).ok()?.parse().ok()
            }
        }
    )*};
}

number_keys!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);
