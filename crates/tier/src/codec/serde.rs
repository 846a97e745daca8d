//! Codecs of values by serde.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Codec, CodecError};

/// Values by serde, in postcard's compact format. Fields have no names in it: programs with
/// different versions of a type should use different namespaces.
#[cfg(feature = "postcard")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Postcard;

#[cfg(feature = "postcard")]
impl<V: Serialize + DeserializeOwned> Codec<V> for Postcard {
    fn write(&self, value: &V, out: &mut Vec<u8>) -> Result<(), CodecError> {
        Ok(postcard::to_io(value, out).map(|_| ())?)
    }

    fn read(&self, bytes: &[u8]) -> Result<V, CodecError> {
        Ok(postcard::from_bytes(bytes)?)
    }
}

/// Values by serde, as JSON.
#[cfg(feature = "json")]
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

#[cfg(feature = "json")]
impl<V: Serialize + DeserializeOwned> Codec<V> for Json {
    fn write(&self, value: &V, out: &mut Vec<u8>) -> Result<(), CodecError> {
        Ok(serde_json::to_writer(out, value)?)
    }

    fn read(&self, bytes: &[u8]) -> Result<V, CodecError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}
