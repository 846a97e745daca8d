//! What a snapshot file says in front of its keys.

use std::sync::Arc;

use crate::scripts::libraries::Library;

/// What a file says of itself, and the libraries of functions.
#[derive(Debug)]
pub(crate) struct Preface {
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) libraries: Vec<Arc<Library>>,
}

impl Preface {
    pub(crate) fn codes(&self) -> impl Iterator<Item = &[u8]> {
        self.libraries.iter().map(|library| &*library.code)
    }

    pub(crate) fn fields(&self) -> Vec<(&str, &str)> {
        let fields = self.fields.iter();
        fields.map(|(name, text)| (*name, &**text)).collect()
    }
}
