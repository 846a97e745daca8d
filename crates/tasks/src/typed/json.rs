//! `Json` writes payloads as JSON, by serde.

use std::ops::{Deref, DerefMut};

use serde::{Serialize, de::DeserializeOwned};

use super::codec::{Codec, Key};
use super::nulls;
use crate::shape::error::StoreError;

/// A key or value that serde writes, as JSON: names of fields are kept, so that a later version of
/// the program can read what an earlier one wrote (`#[serde(default)]` for fields that are new).
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tidewheel_tasks::{Codec, Json};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Mail {
///     to: String,
///     #[serde(default)]
///     urgent: bool,
/// }
///
/// let old = br#"{"to":"ada@example.org"}"#;
/// let mail = Json::<Mail>::of_bytes(old).expect("readable");
/// assert_eq!((mail.to.as_str(), mail.urgent), ("ada@example.org", false));
/// ```
///
/// A value that does not come back from JSON (a map with keys that are no strings, a number that is
/// none) is refused by the call that sets it, with [`StoreError::Refused`];
/// nothing is changed then. So is a `Some` that JSON writes as `null`, as it does `Some(f64::NAN)`,
/// `Some(())` and `Some(None)`: it would come back as `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned> Codec for Json<T> {
    fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        let lost =
            |error| StoreError::refused(format_args!("it does not come back from JSON: {error}"));
        let bytes = serde_json::to_vec(&self.0).map_err(StoreError::refused)?;
        nulls::check(&self.0).map_err(lost)?;
        let back: Result<T, _> = serde_json::from_slice(&bytes);
        back.map_err(lost)?;
        Ok(bytes)
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().map(Self)
    }
}

/// The id is the JSON text.
impl<T: Serialize + DeserializeOwned> Key for Json<T> {
    fn to_id(&self) -> Result<String, StoreError> {
        String::from_utf8(self.to_bytes()?).map_err(StoreError::refused)
    }

    fn of_id(id: &str) -> Option<Self> {
        Self::of_bytes(id.as_bytes())
    }
}

impl<T> From<T> for Json<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
