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
pub(crate) enum Kind {
    Channel,
    Pattern,
}

/// The names that a client listens to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Box<[u8]>>,
    patterns: BTreeSet<Box<[u8]>>,
    bytes: usize,
}

/// The result of a request to subscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    Now,
    Already,
    /// The client has no room for it.
    Refused,
}

impl Subscriptions {
    pub(crate) fn join(&mut self, kind: Kind, name: &[u8]) -> Joined {
        if self.of(kind).contains(name) {
            return Joined::Already;
        }
        let bytes = self.bytes + cost(name);
        let crowded = kind == Kind::Pattern && self.patterns.len() >= PATTERNS_MAX;
        if bytes > BYTES_MAX || crowded {
            return Joined::Refused;
        }
        self.bytes = bytes;
        self.of_mut(kind).insert(name.into());
        Joined::Now
    }

    /// Ends a subscription. Returns true if there was one.
    pub(crate) fn leave(&mut self, kind: Kind, name: &[u8]) -> bool {
        let was = self.of_mut(kind).remove(name);
        if was {
            self.bytes -= cost(name);
        }
        was
    }

    /// Ends any one of them.
    pub(crate) fn pop(&mut self) -> Option<(Kind, Box<[u8]>)> {
        let channel = self.channels.pop_last().map(|name| (Kind::Channel, name));
        let any = channel.or_else(|| Some((Kind::Pattern, self.patterns.pop_last()?)))?;
        self.bytes -= cost(&any.1);
        Some(any)
    }

    /// Ends the first of one kind.
    pub(crate) fn pop_first(&mut self, kind: Kind) -> Option<Box<[u8]>> {
        let name = self.of_mut(kind).pop_first()?;
        self.bytes -= cost(&name);
        Some(name)
    }

    /// The names of one kind, in order.
    pub(crate) fn of(&self, kind: Kind) -> &BTreeSet<Box<[u8]>> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut BTreeSet<Box<[u8]>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// All of them.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = (Kind, &[u8])> {
        [Kind::Channel, Kind::Pattern]
            .into_iter()
            .flat_map(|kind| self.of(kind).iter().map(move |name| (kind, &**name)))
    }

    /// Returns the memory that they take, here and in the hub, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The name is kept here and in the hub.
fn cost(name: &[u8]) -> usize {
    EACH + 2 * name.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_subscriptions_no_bytes_are_counted() {
        let mut subscriptions = Subscriptions::default();
        for kind in [Kind::Channel, Kind::Pattern] {
            for name in [&b"a"[..], b"bb"] {
                assert_eq!(subscriptions.join(kind, name), Joined::Now);
                assert_eq!(subscriptions.join(kind, name), Joined::Already);
            }
        }
        assert_eq!(subscriptions.bytes(), 4 * EACH + 2 * 6);
        let all: Vec<(Kind, Vec<u8>)> = subscriptions
            .iter()
            .map(|(kind, name)| (kind, name.to_vec()))
            .collect();
        assert_eq!(all.len(), subscriptions.len());
        for (kind, name) in all {
            assert!(subscriptions.leave(kind, &name));
            assert!(!subscriptions.leave(kind, &name));
        }
        assert_eq!((subscriptions.bytes(), subscriptions.len()), (0, 0));
        subscriptions.join(Kind::Pattern, b"a");
        subscriptions.join(Kind::Channel, b"a");
        assert_eq!(subscriptions.pop(), Some((Kind::Channel, (*b"a").into())));
        assert_eq!(subscriptions.pop(), Some((Kind::Pattern, (*b"a").into())));
        assert_eq!((subscriptions.bytes(), subscriptions.pop()), (0, None));
    }

    #[test]
    fn a_client_may_have_fewer_patterns_than_channels() {
        let mut subscriptions = Subscriptions::default();
        for i in 0..PATTERNS_MAX {
            let name = i.to_string();
            for kind in [Kind::Channel, Kind::Pattern] {
                assert_eq!(subscriptions.join(kind, name.as_bytes()), Joined::Now);
            }
        }
        assert_eq!(subscriptions.join(Kind::Channel, b"more"), Joined::Now);
        assert_eq!(subscriptions.join(Kind::Pattern, b"more"), Joined::Refused);
        assert_eq!(subscriptions.join(Kind::Pattern, b"7"), Joined::Already);
    }

    #[test]
    fn the_bytes_of_one_clients_subscriptions_are_bounded() {
        let mut subscriptions = Subscriptions::default();
        let name = |i: usize| format!("{i}:{}", "x".repeat(1 << 20)).into_bytes();
        let joined =
            (0..).take_while(|i| subscriptions.join(Kind::Channel, &name(*i)) == Joined::Now);
        let joined = joined.count();
        assert!((100..128).contains(&joined), "{joined}");
        assert_eq!(subscriptions.join(Kind::Channel, &name(0)), Joined::Already);
        assert!(subscriptions.leave(Kind::Channel, &name(0)));
        assert_eq!(
            subscriptions.join(Kind::Channel, &name(joined)),
            Joined::Now
        );
    }
}
