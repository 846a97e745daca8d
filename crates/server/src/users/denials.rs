//! What was denied to whom (ACL LOG), and how often.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

/// Denials within so many milliseconds of each other are one entry.
const SAME_MS: i64 = 60_000;

/// The newest entries that are compared with another denial.
const COMPARED: usize = 10;

/// The most bytes of a key, a channel or a name that are kept.
const OBJECT_MAX: usize = 1 << 10;

/// What was missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Auth,
    Command,
    Key,
    Channel,
    Database,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        ["auth", "command", "key", "channel", "database"][self as usize]
    }
}

/// Where the call stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DenialContext {
    TopLevel,
    Transaction,
    Script,
}

impl DenialContext {
    pub(crate) fn name(self) -> &'static str {
        ["toplevel", "multi", "lua"][self as usize]
    }
}

/// What was denied, once or several times.
#[derive(Debug, Clone)]
pub(crate) struct Denial {
    pub(crate) reason: Reason,
    pub(crate) context: DenialContext,
    /// The command, the key, the channel or the database.
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
    /// The client, as CLIENT LIST shows it.
    pub(crate) client: Vec<u8>,
    /// The last time, in wall milliseconds.
    pub(crate) at_ms: i64,
    pub(crate) first_ms: i64,
    pub(crate) count: u64,
    pub(crate) id: u64,
}

impl Denial {
    /// One denial, of this moment.
    pub(crate) fn new(
        (reason, context): (Reason, DenialContext),
        object: &[u8],
        user: &[u8],
        client: Vec<u8>,
        now_ms: i64,
    ) -> Self {
        let cut = |text: &[u8]| text[..text.len().min(OBJECT_MAX)].to_vec();
        Self {
            reason,
            context,
            object: cut(object),
            user: cut(user),
            client,
            at_ms: now_ms,
            first_ms: now_ms,
            count: 1,
            id: 0,
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.object == other.object
            && self.user == other.user
            && self.at_ms.abs_diff(other.at_ms) <= SAME_MS.unsigned_abs()
    }
}

/// What was denied lately.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    /// How often, by the reason.
    counts: [AtomicU64; 5],
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// The newest first.
    newest: VecDeque<Denial>,
    next_id: u64,
}

impl Denials {
    /// Adds a denial; at most `max` are kept.
    pub(crate) fn add(&self, denial: Denial, max: usize) {
        self.counts[denial.reason as usize].fetch_add(1, Relaxed);
        let mut entries = self.entries.lock();
        let known = entries.newest.iter().take(COMPARED);
        let at = known.enumerate().find(|(_, known)| known.is_like(&denial));
        let at = at.map(|(at, _)| at);
        let entry = match at.and_then(|at| entries.newest.remove(at)) {
            Some(known) => Denial {
                count: known.count + 1,
                id: known.id,
                first_ms: known.first_ms,
                ..denial
            },
            None => {
                entries.next_id += 1;
                let id = entries.next_id - 1;
                Denial { id, ..denial }
            }
        };
        entries.newest.push_front(entry);
        entries.newest.truncate(max);
    }

    /// How often something was denied for that reason.
    pub(crate) fn count(&self, reason: Reason) -> u64 {
        self.counts[reason as usize].load(Relaxed)
    }

    /// The newest entries.
    pub(crate) fn newest(&self, count: usize) -> Vec<Denial> {
        let entries = self.entries.lock();
        entries.newest.iter().take(count).cloned().collect()
    }

    /// Forgets all entries.
    pub(crate) fn forget(&self) {
        self.entries.lock().newest.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_denials_are_counted_together_for_a_minute() {
        let denials = Denials::default();
        let deny = |object: &[u8], at| {
            let what = (Reason::Key, DenialContext::TopLevel);
            denials.add(Denial::new(what, object, b"bob", Vec::new(), at), 2);
        };
        deny(b"a", 0);
        deny(b"b", 1);
        deny(b"a", 60_000);
        let seen = |denials: &Denials| {
            let newest = denials.newest(10).into_iter();
            newest
                .map(|entry| (entry.object, entry.count, entry.id))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            seen(&denials),
            [(b"a".to_vec(), 2, 0), (b"b".to_vec(), 1, 1)]
        );
        deny(b"a", 120_001);
        assert_eq!(
            seen(&denials),
            [(b"a".to_vec(), 1, 2), (b"a".to_vec(), 2, 0)]
        );
        assert_eq!(denials.count(Reason::Key), 4);
        denials.forget();
        assert!(denials.newest(10).is_empty());
    }
}
