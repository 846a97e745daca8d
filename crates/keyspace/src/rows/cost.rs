//! The cost of a call, as far as its row can tell. The keyspace finds long calls by it.

/// The cost of a command, beyond the cost that all commands have: an estimate for a machine of
/// 2020.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// For each argument.
    pub(crate) argument_ns: u32,
    /// For each member of the keys' values that it visits, or for each 64 bytes of a string, or
    /// pairs of bytes.
    pub(crate) member_ns: u32,
    /// The members that it visits.
    pub(crate) visits: Visits,
}

/// The number of members that a call visits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Visits {
    /// All.
    All,
    /// As many as the argument at this place says, 1 if there is none. A negative one repeats
    /// members.
    Count(usize),
    /// As many as the word behind COUNT says, or so many.
    CountWord(usize),
    /// The entries that XREAD and XREADGROUP find in a stream.
    Entries { in_group: bool },
    /// All of one key's with all of the other's: bytes of strings.
    Pairs,
    /// Those between the places that this argument and the next one name.
    Places(usize),
    /// Those in the cells of the area that a geographic search names.
    Area(GeoSearch),
    /// Those of a sorted set between the two ends that begin at this argument.
    Range(usize, RangeForm),
    /// The entries of a stream between the two ids that it names.
    Ids { reverse: bool },
    /// Entries of a stream's group that are not acknowledged.
    Pending(PendingPart),
}

/// Which of a group's entries that are not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingPart {
    /// All.
    OfGroup,
    /// Those of a consumer.
    OfConsumer,
    /// Those that XPENDING looks at.
    Queried,
}

/// The range of a sorted set that a command means; what is `None` here, words say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeForm {
    pub(crate) by: Option<RangeBy>,
    pub(crate) reverse: Option<bool>,
}

impl RangeForm {
    pub(super) const SAID: Self = Self {
        by: None,
        reverse: None,
    };

    pub(super) const fn of(by: RangeBy) -> Self {
        Self {
            by: Some(by),
            reverse: Some(false),
        }
    }

    pub(super) const fn reverse(by: RangeBy) -> Self {
        Self {
            by: Some(by),
            reverse: Some(true),
        }
    }
}

/// The type of the two ends of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeBy {
    Rank,
    Score,
    Lex,
}

/// The form of a geospatial search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GeoSearch {
    /// A position and a radius stand first; the rest may name a key to store in.
    Around { stores: bool },
    /// A member and a radius stand first.
    AroundMember { stores: bool },
    /// Words say all of it.
    Words,
    /// Words say all of it, and the first key is the one to store in.
    WordsAndStore,
}

impl Cost {
    /// Does not grow.
    pub(crate) const NONE: Self = Self::all(0);

    /// A command that visits all members.
    pub(crate) const fn all(member_ns: u32) -> Self {
        Self::visiting(member_ns, Visits::All)
    }

    /// A command that visits some members.
    pub(crate) const fn visiting(member_ns: u32, visits: Visits) -> Self {
        Self {
            argument_ns: 0,
            member_ns,
            visits,
        }
    }

    /// A command that costs so much for each argument.
    pub(crate) const fn arguments(argument_ns: u32) -> Self {
        Self {
            argument_ns,
            ..Self::NONE
        }
    }

    /// True if the cost depends on the stored values.
    pub(crate) const fn depends_on_members(&self) -> bool {
        self.member_ns != 0
    }

    /// True if some calls take longer than others.
    #[inline]
    pub(crate) const fn grows(&self) -> bool {
        self.argument_ns | self.member_ns != 0
    }
}
