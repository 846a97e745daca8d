//! Flags of a command: its effects, and the places where it may run.

use super::text;

/// A set of flags of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// Changes data.
    pub const WRITE: Self = Self(1);
    /// Reads data only.
    pub const READONLY: Self = Self(1 << 1);
    /// Refused while more than `maxmemory` is used.
    pub const DENYOOM: Self = Self(1 << 2);
    /// Administers the server.
    pub const ADMIN: Self = Self(1 << 3);
    /// Publish and subscribe.
    pub const PUBSUB: Self = Self(1 << 4);
    /// Not for scripts.
    pub const NOSCRIPT: Self = Self(1 << 5);
    /// Allowed while a data set is being loaded.
    pub const LOADING: Self = Self(1 << 6);
    /// Allowed on a replica with stale data.
    pub const STALE: Self = Self(1 << 7);
    /// Cost independent of the data's size.
    pub const FAST: Self = Self(1 << 8);
    /// Allowed before authentication.
    pub const NO_AUTH: Self = Self(1 << 9);
    /// Not for transactions.
    pub const NO_MULTI: Self = Self(1 << 10);
    /// Allowed while the server is busy with a script.
    pub const ALLOW_BUSY: Self = Self(1 << 11);
    /// Never shown to MONITOR.
    pub const SKIP_MONITOR: Self = Self(1 << 12);
    /// Never in the slow log: what it runs is logged by itself.
    pub const SKIP_SLOWLOG: Self = Self(1 << 13);

    /// Held back with the commands that change data (CLIENT PAUSE WRITE): replicas would be told of
    /// it.
    pub const MAY_REPLICATE: Self = Self(1 << 16);

    /// The positions of its keys depend on its arguments.
    pub const MOVABLE_KEYS: Self = Self(1 << 14);

    /// May wait until a key holds something.
    pub const BLOCKING: Self = Self(1 << 15);

    /// A call may have no key, where others have some.
    pub const NO_MANDATORY_KEYS: Self = Self(1 << 17);

    const NAMES: [(Self, &'static str); 17] = [
        (Self::WRITE, "write"),
        (Self::READONLY, "readonly"),
        (Self::DENYOOM, "denyoom"),
        (Self::ADMIN, "admin"),
        (Self::PUBSUB, "pubsub"),
        (Self::NOSCRIPT, "noscript"),
        (Self::BLOCKING, "blocking"),
        (Self::LOADING, "loading"),
        (Self::STALE, "stale"),
        (Self::SKIP_MONITOR, "skip_monitor"),
        (Self::SKIP_SLOWLOG, "skip_slowlog"),
        (Self::FAST, "fast"),
        (Self::NO_AUTH, "no_auth"),
        (Self::NO_MULTI, "no_multi"),
        (Self::ALLOW_BUSY, "allow_busy"),
        (Self::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Self::MOVABLE_KEYS, "movablekeys"),
    ];

    /// The flags of these names, with spaces between them. `may_replicate` counts as one.
    pub(super) const fn of(names: &str) -> Self {
        let (mut flags, mut rest) = (Self::NONE, names.as_bytes());
        while !rest.is_empty() {
            let (name, behind) = text::split(rest, b' ');
            rest = behind;
            let mut i = 0;
            while i < Self::NAMES.len() && !text::is(name, Self::NAMES[i].1) {
                i += 1;
            }
            flags = flags.or(match i < Self::NAMES.len() {
                true => Self::NAMES[i].0,
                false if text::is(name, "may_replicate") => Self::MAY_REPLICATE,
                false => panic!("no such flag"),
            });
        }
        flags
    }

    /// The flags of both.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if all of `other`'s flags are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of those that are set, as COMMAND INFO prints them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |(flag, _)| self.has(*flag))
            .map(|(_, name)| name)
    }
}
