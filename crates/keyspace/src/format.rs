//! The versions of the public format in which files are written.

/// The form of a snapshot: which servers load it, and what it has no word for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileFormat {
    /// Version 10: Redis from 7.0 on, and Valkey.
    #[default]
    Redis10,
    /// Version 11: Redis from 7.2 on, and Valkey. It has the times at which consumers of streams
    /// were active.
    Redis11,
    /// Version 12: Redis from 7.4 on. It has the deadlines of the fields of hashes too.
    Redis12,
    /// Version 80: Valkey from 9.0 on. It has both too.
    Valkey80,
}

impl FileFormat {
    /// All of them: (format, version, the first bytes of a file, the server that wrote it first).
    const TABLE: [(Self, u16, &'static [u8; 9], &'static str); 4] = [
        (Self::Redis10, 10, b"REDIS0010", "7.0.0"),
        (Self::Redis11, 11, b"REDIS0011", "7.2.0"),
        (Self::Redis12, 12, b"REDIS0012", "7.4.0"),
        (Self::Valkey80, 80, b"VALKEY080", "7.2.4"),
    ];

    /// All of them.
    #[must_use]
    pub fn all() -> [Self; 4] {
        Self::TABLE.map(|row| row.0)
    }

    /// The number of its version.
    #[must_use]
    pub fn version(self) -> u16 {
        Self::TABLE[self as usize].1
    }

    /// The version of the protocol's server that a file of it names: readers take their rules from
    /// that.
    #[must_use]
    pub fn named_server(self) -> &'static str {
        Self::TABLE[self as usize].3
    }

    /// The first bytes of a file.
    pub(crate) fn header(self) -> &'static [u8; 9] {
        Self::TABLE[self as usize].2
    }

    /// True if it has the times at which consumers of streams were active.
    pub(crate) fn has_active_times(self) -> bool {
        self != Self::Redis10
    }

    pub(crate) fn from_index(index: u8) -> Self {
        Self::TABLE
            .get(usize::from(index))
            .map_or(Self::default(), |row| row.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_row() {
        for format in FileFormat::all() {
            let row = FileFormat::TABLE[format as usize];
            assert_eq!(row.0, format);
            assert_eq!(FileFormat::from_index(format as u8), format);
            let digits = String::from_utf8_lossy(format.header()).into_owned();
            assert!(digits.ends_with(&format.version().to_string()));
        }
    }
}
