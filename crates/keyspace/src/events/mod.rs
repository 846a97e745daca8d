//! Keyspace notifications: their classes, and one event.

mod cause;
mod queue;

pub(crate) use self::cause::Cause;
pub(crate) use self::queue::EventQueue;

/// The class of an event; one letter of `notify-keyspace-events` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum NotifyClass {
    /// `g`: commands that work on any type.
    Generic = 1 << 2,
    /// `$`: strings.
    String = 1 << 3,
    /// `l`: lists.
    List = 1 << 4,
    /// `s`: sets.
    Set = 1 << 5,
    /// `h`: hashes.
    Hash = 1 << 6,
    /// `z`: sorted sets.
    SortedSet = 1 << 7,
    /// `x`: keys that reached their deadline.
    Expired = 1 << 8,
    /// `e`: keys that `maxmemory` removed.
    Evicted = 1 << 9,
    /// `t`: streams.
    Stream = 1 << 10,
    /// `m`: reads of keys that do not exist.
    KeyMiss = 1 << 11,
    /// `d`: module types.
    Module = 1 << 13,
    /// `n`: keys that did not exist before.
    New = 1 << 14,
}

/// A set of notification classes and channels, as in `notify-keyspace-events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NotifyFlags(u32);

impl NotifyFlags {
    /// Nothing is published.
    pub const NONE: Self = Self(0);
    /// `K`: publish to `__keyspace@<db>__:<key>`.
    pub const KEYSPACE: Self = Self(1);
    /// `E`: publish to `__keyevent@<db>__:<event>`.
    pub const KEYEVENT: Self = Self(1 << 1);

    /// `A`: every class but `m` and `n`.
    const ALL: u32 = {
        let mut all = 0;
        let mut i = 0;
        while i < LETTERS_OF_ALL {
            all |= LETTERS[i].1;
            i += 1;
        }
        all
    };

    /// Reads the letters; `None` if there is an unknown one.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut flags = 0;
        for &letter in text {
            flags |= match letter {
                b'A' => Self::ALL,
                b'K' => Self::KEYSPACE.0,
                b'E' => Self::KEYEVENT.0,
                _ => LETTERS.iter().find(|(name, _)| *name as u8 == letter)?.1,
            };
        }
        Some(Self(flags))
    }

    /// The bits, for an atomic.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The flags that [`bits`](Self::bits) returned.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// True if all of `other`'s flags are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if events of the class are published: the class and at least one of `K` and `E` are
    /// set.
    #[must_use]
    pub const fn wants(self, class: NotifyClass) -> bool {
        self.0 & class as u32 != 0 && self.0 & (Self::KEYSPACE.0 | Self::KEYEVENT.0) != 0
    }
}

/// `A` stands for the first ones, in the order in which they are printed.
const LETTERS: [(char, u32); 12] = [
    ('g', NotifyClass::Generic as u32),
    ('$', NotifyClass::String as u32),
    ('l', NotifyClass::List as u32),
    ('s', NotifyClass::Set as u32),
    ('h', NotifyClass::Hash as u32),
    ('z', NotifyClass::SortedSet as u32),
    ('x', NotifyClass::Expired as u32),
    ('e', NotifyClass::Evicted as u32),
    ('t', NotifyClass::Stream as u32),
    ('d', NotifyClass::Module as u32),
    ('n', NotifyClass::New as u32),
    ('m', NotifyClass::KeyMiss as u32),
];
const LETTERS_OF_ALL: usize = 10;

impl std::fmt::Display for NotifyFlags {
    /// The letters in the order in which CONFIG GET prints them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        let (all, rest) = LETTERS.split_at(LETTERS_OF_ALL);
        let (new, miss) = (rest[0], rest[1]);
        if self.0 & Self::ALL == Self::ALL {
            f.write_char('A')?;
        } else {
            for (letter, _) in all.iter().filter(|(_, bit)| self.0 & bit != 0) {
                f.write_char(*letter)?;
            }
        }
        let channels = [new, ('K', Self::KEYSPACE.0), ('E', Self::KEYEVENT.0), miss];
        for (letter, _) in channels.iter().filter(|(_, bit)| self.0 & bit != 0) {
            f.write_char(*letter)?;
        }
        Ok(())
    }
}

/// One keyspace event, to be published on the channels that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The database's index.
    pub db: u32,
    /// Its class.
    pub class: NotifyClass,
    /// Its name, e.g. `expired`.
    pub name: &'static str,
    /// The key.
    pub key: Box<[u8]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_letters_are_parsed_and_printed() {
        let cases = [
            ("", ""),
            ("KEA", "AKE"),
            ("g$lshzxetdKE", "AKE"),
            ("Kx", "xK"),
            ("Ex", "xE"),
            ("mKE$", "$KEm"),
            ("nEA", "AnE"),
            ("KEg$lshzxet", "g$lshzxetKE"),
            ("AKEmn", "AnKEm"),
        ];
        for (text, printed) in cases {
            let flags = NotifyFlags::parse(text.as_bytes()).expect(text);
            assert_eq!(flags.to_string(), printed);
            assert_eq!(NotifyFlags::parse(printed.as_bytes()), Some(flags));
        }
        assert_eq!(NotifyFlags::parse(b"KEq"), None);
        assert_eq!(NotifyFlags::parse(b"KE\xff"), None);
    }

    #[test]
    fn a_class_of_events_is_sent_only_if_keyspace_or_keyevent_is_chosen() {
        let flags = NotifyFlags::parse(b"x").expect("valid");
        assert!(!flags.wants(NotifyClass::Expired));
        let flags = NotifyFlags::parse(b"xE").expect("valid");
        assert!(flags.wants(NotifyClass::Expired));
        assert!(!flags.wants(NotifyClass::String));
        let all = NotifyFlags::parse(b"KEA").expect("valid");
        assert!(!all.wants(NotifyClass::KeyMiss) && !all.wants(NotifyClass::New));
    }
}
