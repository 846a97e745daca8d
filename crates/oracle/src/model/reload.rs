//! DUMP and RESTORE: the copy is as the original.

use super::{Model, Place};

impl Model {
    /// A key was restored from another one's payload, with a time to live, or with none.
    pub fn reload(&mut self, from: &Place, to: &[u8], deadline: Option<i128>) {
        if let Some(entry) = self.entries.get(from).cloned() {
            self.put(to, entry.kind, deadline);
            self.note(to, "restore");
        }
    }

    /// The client's database is another one.
    pub fn select(&mut self, db: u32) {
        self.db = db;
    }

    /// A deadline so many milliseconds from now.
    pub fn in_ms(&self, ms: u8) -> Option<i128> {
        let after = i128::from(ms) + i128::from(self.begun);
        (ms > 0).then(|| self.tick + after)
    }
}
