//! `Raw` keeps values that are bytes or text already.

use std::sync::Arc;

use super::{Codec, CodecError};

/// Values that are bytes or text: they are kept as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raw;

macro_rules! raw {
    ($($value:ty, $bytes:ident, $read:expr;)*) => {$(
        impl Codec<$value> for Raw {
            fn write(&self, value: &$value, out: &mut Vec<u8>) -> Result<(), CodecError> {
                out.extend_from_slice(value.$bytes());
                Ok(())
            }

            fn read(&self, bytes: &[u8]) -> Result<$value, CodecError> {
                Ok($read(bytes)?.into())
            }
        }
    )*};
}

raw! {
    Vec<u8>, as_ref, Ok::<&[u8], CodecError>;
    Box<[u8]>, as_ref, Ok::<&[u8], CodecError>;
    Arc<[u8]>, as_ref, Ok::<&[u8], CodecError>;
    String, as_bytes, std::str::from_utf8;
    Box<str>, as_bytes, std::str::from_utf8;
    Arc<str>, as_bytes, std::str::from_utf8;
}

impl Codec<u64> for Raw {
    fn write(&self, value: &u64, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(&value.to_be_bytes());
        Ok(())
    }

    fn read(&self, bytes: &[u8]) -> Result<u64, CodecError> {
        Ok(u64::from_be_bytes(bytes.try_into()?))
    }
}
