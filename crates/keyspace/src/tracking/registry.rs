//! The clients that track, and the prefixes of those that are told of every change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Included, Unbounded};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{Invalid, TrackingMode};
use crate::order::{Rank, Ranked};
use crate::session::Waiter;

/// Prefixes of one client.
pub const PREFIXES_MAX: usize = 1_000;

/// Bytes of the prefixes of one client.
pub const PREFIX_BYTES_MAX: usize = 1 << 20;

/// Bytes of a prefix beside its name, which is kept twice.
const PREFIX_BYTES: usize = 150;

/// The reason why prefixes are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixError {
    /// The first one overlaps with one that the client has already.
    Existing(Box<[u8]>, Box<[u8]>),
    /// Two of those that were given overlap.
    Provided(Box<[u8]>, Box<[u8]>),
    /// They would be more than [`PREFIXES_MAX`], or have more than [`PREFIX_BYTES_MAX`] bytes.
    TooMany,
}

/// All tracking clients.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Clients of the tables, for those who need not know more.
    readers: AtomicUsize,
    broadcasters: AtomicUsize,
    state: Ranked<RegistryState>,
}

#[derive(Debug, Default)]
struct RegistryState {
    clients: HashMap<u64, TrackingClient>,
    prefixes: BTreeMap<Box<[u8]>, BTreeSet<Waiter>>,
    prefix_bytes: usize,
}

#[derive(Debug)]
struct TrackingClient {
    who: Waiter,
    no_loop: bool,
    /// `None`: it is told of what it has read.
    prefixes: Option<BTreeSet<Box<[u8]>>>,
}

/// What nobody needs any more after a client has left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) ends_tables: bool,
    pub(crate) ends_prefixes: bool,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            readers: AtomicUsize::new(0),
            broadcasters: AtomicUsize::new(0),
            state: Ranked::new(Rank::Trackers, RegistryState::default()),
        }
    }
}

impl Registry {
    /// Adds a client, or changes what it wants.
    pub(crate) fn add(&self, who: Waiter, mode: TrackingMode) -> Result<(), PrefixError> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let existing = state.clients.get(&who.id);
        let known = existing.and_then(|client| client.prefixes.as_ref());
        if let Some(wanted) = &mode.prefixes {
            check(known.unwrap_or(&BTreeSet::new()), wanted)?;
        }
        self.forget_kind(existing);
        let mut prefixes = existing.and_then(|client| client.prefixes.clone());
        if let Some(wanted) = mode.prefixes {
            let prefixes = prefixes.get_or_insert_default();
            for prefix in wanted {
                state.prefix_bytes += PREFIX_BYTES + 2 * prefix.len();
                let clients = state.prefixes.entry(prefix.clone()).or_default();
                clients.insert(who);
                prefixes.insert(prefix);
            }
        }
        let client = TrackingClient {
            who,
            no_loop: mode.no_loop,
            prefixes,
        };
        self.of(&client).fetch_add(1, Relaxed);
        state.clients.insert(who.id, client);
        Ok(())
    }

    fn of(&self, client: &TrackingClient) -> &AtomicUsize {
        match client.prefixes {
            None => &self.readers,
            Some(_) => &self.broadcasters,
        }
    }

    fn forget_kind(&self, client: Option<&TrackingClient>) {
        if let Some(client) = client {
            self.of(client).fetch_sub(1, Relaxed);
        }
    }

    pub(crate) fn remove(&self, who: Waiter) -> Left {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(client) = state.clients.remove(&who.id) else {
            return Left::default();
        };
        self.forget_kind(Some(&client));
        let broadcasts = client.prefixes.is_some();
        for prefix in client.prefixes.into_iter().flatten() {
            state.prefix_bytes -= PREFIX_BYTES + 2 * prefix.len();
            if let Some(clients) = state.prefixes.get_mut(&prefix) {
                clients.remove(&who);
                if clients.is_empty() {
                    state.prefixes.remove(&prefix);
                }
            }
        }
        Left {
            ends_tables: !broadcasts && !self.has_readers(),
            ends_prefixes: broadcasts && !self.has_broadcasters(),
        }
    }

    /// True if a client is told of what it reads.
    pub(crate) fn has_readers(&self) -> bool {
        self.readers.load(Relaxed) > 0
    }

    /// True if a client is told of every change.
    pub(crate) fn has_broadcasters(&self) -> bool {
        self.broadcasters.load(Relaxed) > 0
    }

    /// True if a client is not told of what it has read any more.
    pub(crate) fn is_gone(&self, who: &Waiter) -> bool {
        let state = self.state.lock();
        let client = state.clients.get(&who.id);
        client.is_none_or(|client| client.prefixes.is_some())
    }

    pub(crate) fn prefixes_of(&self, who: Waiter) -> Vec<Box<[u8]>> {
        let state = self.state.lock();
        let client = state.clients.get(&who.id);
        let prefixes = client.and_then(|client| client.prefixes.as_ref());
        prefixes.into_iter().flatten().cloned().collect()
    }

    /// Clients, prefixes, and the bytes of these.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let state = self.state.lock();
        (
            state.clients.len(),
            state.prefixes.len(),
            state.prefix_bytes,
        )
    }

    /// All clients.
    pub(crate) fn all(&self) -> Vec<Waiter> {
        let state = self.state.lock();
        let mut all: Vec<_> = state.clients.values().map(|client| client.who).collect();
        all.sort_unstable();
        all
    }

    /// Those among the readers of a key who want to know that `author` has changed it.
    pub(crate) fn told(
        &self,
        readers: impl Iterator<Item = Waiter>,
        author: Option<Waiter>,
    ) -> Vec<Waiter> {
        let mut readers = readers.peekable();
        if readers.peek().is_none() {
            return Vec::new();
        }
        let state = self.state.lock();
        let wants = |reader: &Waiter| {
            let client = state.clients.get(&reader.id);
            client.is_some_and(|client| client.prefixes.is_none() && client.wants(author))
        };
        readers.filter(wants).collect()
    }

    /// The keys that have a prefix of some clients, with those clients.
    pub(crate) fn broadcasts<'k>(
        &self,
        invalid: &'k [Invalid],
        author: Option<Waiter>,
    ) -> Vec<(Vec<Waiter>, Vec<&'k [u8]>)> {
        if !self.has_broadcasters() {
            return Vec::new();
        }
        let state = self.state.lock();
        // By prefix, and by whether the author has caused it.
        let mut found: BTreeMap<(&[u8], bool), Vec<&[u8]>> = BTreeMap::new();
        for invalid in invalid {
            state.each_prefix_of(&invalid.key, |prefix| {
                let of = found.entry((prefix, invalid.by_itself)).or_default();
                of.push(&invalid.key);
            });
        }
        let told = found.into_iter().map(|((prefix, by_itself), keys)| {
            let author = author.filter(|_| !by_itself);
            let clients = state.prefixes[prefix].iter();
            let wants = |who: &&Waiter| {
                let client = state.clients.get(&who.id);
                client.is_some_and(|client| client.wants(author))
            };
            (clients.filter(wants).copied().collect(), keys)
        });
        told.filter(|(told, _): &(Vec<_>, _)| !told.is_empty())
            .collect()
    }
}

impl TrackingClient {
    fn wants(&self, author: Option<Waiter>) -> bool {
        !self.no_loop || author != Some(self.who)
    }
}

impl RegistryState {
    /// Calls `visit` with each prefix of a key.
    ///
    /// The greatest of all prefixes that is not greater than the key either is a prefix of it, or
    /// differs from it somewhere. Others can only be prefixes of what is equal before that place.
    /// An example: for `bird`, the greatest is `bee`, which agrees with it in `b`. So only `b` and
    /// the empty prefix are left.
    fn each_prefix_of<'s>(&'s self, key: &[u8], mut visit: impl FnMut(&'s [u8])) {
        let mut rest = key;
        loop {
            let range = (Unbounded, Included(rest));
            let Some((prefix, _)) = self.prefixes.range::<[u8], _>(range).next_back() else {
                return;
            };
            let common = prefix.iter().zip(rest).take_while(|(a, b)| a == b).count();
            if common < prefix.len() {
                rest = &rest[..common];
                continue;
            }
            visit(prefix);
            let Some(shorter) = common.checked_sub(1) else {
                return;
            };
            rest = &rest[..shorter];
        }
    }
}

/// Checks that no two of a client's prefixes overlap.
fn check(known: &BTreeSet<Box<[u8]>>, wanted: &[Box<[u8]>]) -> Result<(), PrefixError> {
    let bytes: usize = known.iter().chain(wanted).map(|prefix| prefix.len()).sum();
    if known.len() + wanted.len() > PREFIXES_MAX || bytes > PREFIX_BYTES_MAX {
        return Err(PrefixError::TooMany);
    }
    let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
    // What overlaps stands side by side, in order.
    let mut all: Vec<&[u8]> = known.iter().chain(wanted).map(|prefix| &**prefix).collect();
    all.sort_unstable();
    if !all.windows(2).any(|two| overlap(two[0], two[1])) {
        return Ok(());
    }
    for (i, prefix) in wanted.iter().enumerate() {
        if let Some(other) = known.iter().find(|other| overlap(prefix, other)) {
            return Err(PrefixError::Existing(prefix.clone(), other.clone()));
        }
        if let Some(other) = wanted[i + 1..].iter().find(|other| overlap(prefix, other)) {
            return Err(PrefixError::Provided(prefix.clone(), other.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: u64) -> Waiter {
        Waiter {
            owner: 0,
            slot: 0,
            id,
        }
    }

    fn mode(prefixes: &[&str]) -> TrackingMode {
        TrackingMode {
            no_loop: false,
            prefixes: Some(prefixes.iter().map(|text| text.as_bytes().into()).collect()),
        }
    }

    #[test]
    fn a_key_finds_all_its_prefixes_and_no_others() {
        let registry = Registry::default();
        let words = [
            "", "b", "be", "bee", "bir", "birds", "c", "a", "bip", "\u{ff}",
        ];
        for (id, word) in (1..).zip(words) {
            registry.add(client(id), mode(&[word])).expect("one each");
        }
        let state = registry.state.lock();
        for key in ["bird", "birds", "bee", "", "b", "zzz", "bi", "beer", "abc"] {
            let mut found = Vec::new();
            state.each_prefix_of(key.as_bytes(), |prefix| found.push(prefix.to_vec()));
            let mut all: Vec<_> = words
                .iter()
                .filter(|word| key.starts_with(**word))
                .collect();
            all.sort_by_key(|word| std::cmp::Reverse(word.len()));
            let all: Vec<_> = all.iter().map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(found, all, "{key}");
        }
    }

    #[test]
    fn a_client_that_has_left_leaves_nothing() {
        let registry = Registry::default();
        registry.add(client(1), mode(&["a", "b"])).expect("apart");
        registry.add(client(1), mode(&["c"])).expect("apart");
        registry
            .add(client(2), TrackingMode::default())
            .expect("none");
        assert_eq!(registry.sizes().0, 2);
        let overlaps = registry.add(client(1), mode(&["d", "ab"]));
        assert_eq!(
            overlaps,
            Err(PrefixError::Existing((*b"ab").into(), (*b"a").into()))
        );
        let overlaps = registry.add(client(3), mode(&["x", "xy"]));
        assert_eq!(
            overlaps,
            Err(PrefixError::Provided((*b"x").into(), (*b"xy").into()))
        );
        assert!(registry.remove(client(1)).ends_prefixes);
        assert!(registry.remove(client(2)).ends_tables);
        assert_eq!(registry.remove(client(2)), Left::default());
        assert_eq!(registry.sizes(), (0, 0, 0));
    }
}
