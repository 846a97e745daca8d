//! What a snapshot file says in front of its keys.

use std::sync::Arc;

use crate::scripts::libraries::Library;

/// The field with the number of the segment that follows.
pub(crate) const SEGMENT: &str = "tidewheel-segment";

/// The field with the folder of the log that has all of the file too.
pub(crate) const LOG: &str = "tidewheel-log";

/// The field with the streams of expired keys.
pub(crate) const EXPIRED_STREAMS: &str = "tidewheel-expired-stream";

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

    /// The same, of a file that is the base of a segment of the log.
    pub(crate) fn fields_of_base<'a>(&'a self, segment: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut fields = self.fields();
        fields.push((SEGMENT, segment));
        fields
    }

    pub(crate) fn fields(&self) -> Vec<(&str, &str)> {
        let fields = self.fields.iter();
        fields.map(|(name, text)| (*name, &**text)).collect()
    }
}
