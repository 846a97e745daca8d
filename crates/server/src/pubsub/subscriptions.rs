//! One client's subscriptions, and the memory that they take.

use std::collections::BTreeSet;

/// The memory that one client's subscriptions may take.
const BYTES_MAX: usize = 256 << 20;

/// Patterns of one client: each message is compared with all of them while nobody else can publish.
const PATTERNS_MAX: usize = 10_000;

/// The memory that a subscription takes beyond its name, here and in the hub. It was measured with
/// names that nobody else has subscribed to, which cost most.
const EACH: usize = 200;

/// The kind of name that a subscription has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscriptionKind {
    Channel,
    Pattern,
    /// A channel of SSUBSCRIBE: messages of SPUBLISH reach it, and no others.
    Shard,
}

impl SubscriptionKind {
    /// All kinds, in the order in which subscriptions end.
    pub(crate) const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];
}

/// The channels and patterns to which a client has subscribed.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    names: [BTreeSet<Box<[u8]>>; SubscriptionKind::ALL.len()],
    bytes: usize,
}

/// The result of a request to subscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subscribing {
    Now,
    Already,
    /// The client has no room for it.
    Refused,
}

impl Subscriptions {
    pub(crate) fn join(&mut self, kind: SubscriptionKind, name: &[u8]) -> Subscribing {
        if self.of(kind).contains(name) {
            return Subscribing::Already;
        }
        let bytes = self.bytes + cost(name);
        let crowded = kind == SubscriptionKind::Pattern && self.of(kind).len() >= PATTERNS_MAX;
        if bytes > BYTES_MAX || crowded {
            return Subscribing::Refused;
        }
        self.bytes = bytes;
        self.of_mut(kind).insert(name.into());
        Subscribing::Now
    }

    /// Ends a subscription. Returns true if there was one.
    pub(crate) fn leave(&mut self, kind: SubscriptionKind, name: &[u8]) -> bool {
        let was = self.of_mut(kind).remove(name);
        if was {
            self.bytes -= cost(name);
        }
        was
    }

    /// Ends any one of them.
    pub(crate) fn pop(&mut self) -> Option<(SubscriptionKind, Box<[u8]>)> {
        let (kind, name) = SubscriptionKind::ALL
            .into_iter()
            .find_map(|kind| Some((kind, self.of_mut(kind).pop_last()?)))?;
        self.bytes -= cost(&name);
        Some((kind, name))
    }

    /// Ends the first of one kind.
    pub(crate) fn pop_first(&mut self, kind: SubscriptionKind) -> Option<Box<[u8]>> {
        let name = self.of_mut(kind).pop_first()?;
        self.bytes -= cost(&name);
        Some(name)
    }

    /// Returns the names of one kind, in order.
    pub(crate) fn of(&self, kind: SubscriptionKind) -> &BTreeSet<Box<[u8]>> {
        &self.names[kind as usize]
    }

    fn of_mut(&mut self, kind: SubscriptionKind) -> &mut BTreeSet<Box<[u8]>> {
        &mut self.names[kind as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.names.iter().map(BTreeSet::len).sum()
    }

    /// Returns the number that confirms a subscription: channels and patterns count together,
    /// channels of shards by themselves.
    pub(crate) fn counted_with(&self, kind: SubscriptionKind) -> usize {
        match kind {
            SubscriptionKind::Shard => self.of(kind).len(),
            _ => self.len() - self.of(SubscriptionKind::Shard).len(),
        }
    }

    /// Returns all of them.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = (SubscriptionKind, &[u8])> {
        SubscriptionKind::ALL
            .into_iter()
            .flat_map(|kind| self.of(kind).iter().map(move |name| (kind, &**name)))
    }

    /// Returns the memory that they take, here and in the hub, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns the memory of a subscription. The name is kept here and in the hub.
fn cost(name: &[u8]) -> usize {
    EACH + 2 * name.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_subscriptions_no_bytes_are_counted() {
        let mut subscriptions = Subscriptions::default();
        for kind in SubscriptionKind::ALL {
            for name in [&b"a"[..], b"bb"] {
                assert_eq!(subscriptions.join(kind, name), Subscribing::Now);
                assert_eq!(subscriptions.join(kind, name), Subscribing::Already);
            }
        }
        assert_eq!(subscriptions.bytes(), 6 * EACH + 2 * 9);
        let all: Vec<(SubscriptionKind, Vec<u8>)> = subscriptions
            .iter()
            .map(|(kind, name)| (kind, name.to_vec()))
            .collect();
        assert_eq!(all.len(), subscriptions.len());
        for (kind, name) in all {
            assert!(subscriptions.leave(kind, &name));
            assert!(!subscriptions.leave(kind, &name));
        }
        assert_eq!((subscriptions.bytes(), subscriptions.len()), (0, 0));
        for kind in SubscriptionKind::ALL {
            subscriptions.join(kind, b"a");
        }
        assert_eq!(subscriptions.counted_with(SubscriptionKind::Pattern), 2);
        assert_eq!(subscriptions.counted_with(SubscriptionKind::Shard), 1);
        for kind in SubscriptionKind::ALL {
            assert_eq!(subscriptions.pop(), Some((kind, (*b"a").into())));
        }
        assert_eq!((subscriptions.bytes(), subscriptions.pop()), (0, None));
    }

    #[test]
    fn a_client_may_have_fewer_patterns_than_channels() {
        let mut subscriptions = Subscriptions::default();
        for i in 0..PATTERNS_MAX {
            let name = i.to_string();
            for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern] {
                assert_eq!(subscriptions.join(kind, name.as_bytes()), Subscribing::Now);
            }
        }
        assert_eq!(
            subscriptions.join(SubscriptionKind::Channel, b"more"),
            Subscribing::Now
        );
        assert_eq!(
            subscriptions.join(SubscriptionKind::Pattern, b"more"),
            Subscribing::Refused
        );
        assert_eq!(
            subscriptions.join(SubscriptionKind::Pattern, b"7"),
            Subscribing::Already
        );
    }

    #[test]
    fn the_bytes_of_one_clients_subscriptions_are_bounded() {
        let mut subscriptions = Subscriptions::default();
        let name = |i: usize| format!("{i}:{}", "x".repeat(1 << 20)).into_bytes();
        let joined = (0..).take_while(|i| {
            subscriptions.join(SubscriptionKind::Channel, &name(*i)) == Subscribing::Now
        });
        let joined = joined.count();
        assert!((100..128).contains(&joined), "{joined}");
        assert_eq!(
            subscriptions.join(SubscriptionKind::Channel, &name(0)),
            Subscribing::Already
        );
        assert!(subscriptions.leave(SubscriptionKind::Channel, &name(0)));
        assert_eq!(
            subscriptions.join(SubscriptionKind::Channel, &name(joined)),
            Subscribing::Now
        );
    }
}
