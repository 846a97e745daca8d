//! A naive keyspace: one map, walked whole whenever time passes. Each type of value has a file.

mod apart;
mod bits;
mod deaths;
mod expect;
mod geo;
mod hash;
mod keys;
mod list;
mod log;
mod members;
mod random;
mod reload;
mod script;
mod set;
mod sort;
mod stream;
mod text;
mod wait;
mod zset;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidewheel_resp::{Reply, parse_i64};

use self::deaths::Deaths;
pub use self::expect::Expect;
use self::expect::{Answered, bulk, error, flat, int, integer, invalid_time, ok, wrong_type};
use self::stream::Stream;
pub(crate) use self::text::STRING_MAX;
pub(crate) use self::wait::Waiter;

type Bytes = Vec<u8>;
/// A database's number, and the name of a key.
pub type Place = (u32, Bytes);
/// What happened to which key.
pub type Event = (u32, Bytes, &'static str);

/// The unit and origin of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Millis,
    /// A wall time in seconds.
    AtSeconds,
    /// A wall time in milliseconds.
    AtMillis,
}

impl Unit {
    /// That of a command or an option: EXPIRE, PTTL, EXAT, PSETEX.
    pub(crate) fn of(name: &str) -> Self {
        let is_wall = name.ends_with("AT") || name.ends_with("TIME");
        match (name.starts_with('P') && name != "PERSIST", is_wall) {
            (false, false) => Self::Seconds,
            (true, false) => Self::Millis,
            (false, true) => Self::AtSeconds,
            (true, true) => Self::AtMillis,
        }
    }
}

/// What belongs to a member of a collection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member<V> {
    value: V,
    deadline: Option<i128>,
}

type Members<V> = BTreeMap<Bytes, Member<V>>;

/// What a key holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A string.
    Text(Bytes),
    /// A hash.
    Hash(Members<Bytes>),
    /// A list.
    List(VecDeque<Bytes>),
    /// A set.
    Set(Members<()>),
    /// A sorted set.
    ZSet(Members<f64>),
    /// A stream.
    Stream(Stream),
}

/// A value and when it dies, in ticks; a deadline beyond the ticks is kept as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    kind: Kind,
    deadline: Option<i128>,
    /// Differs for each value that was ever put under a key.
    generation: u64,
}

/// All databases, one client that is served at once, those who wait, and the time.
#[derive(Debug, Default)]
pub struct Model {
    entries: BTreeMap<Place, Entry>,
    db: u32,
    tick: i128,
    /// Whether the tick has begun already: times to live are rounded up to whole ticks.
    begun: bool,
    wall_offset: i128,
    generations: u64,
    /// What has happened since somebody asked.
    events: Vec<Event>,
    /// What deadlines have done.
    deaths: Deaths,
    touched: BTreeSet<Place>,
    /// Scripts may add nothing.
    is_full: bool,
    /// What was added to each HyperLogLog that there has been, by its bytes.
    logs: BTreeMap<Bytes, BTreeSet<Bytes>>,
    waiters: VecDeque<Waiter>,
}

impl Kind {
    /// What TYPE says, and whose members may die.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::ZSet(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }

    /// A collection without members is no key.
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) | Self::Stream(_) => false,
            Self::Hash(of) => of.is_empty(),
            Self::List(of) => of.is_empty(),
            Self::Set(of) => of.is_empty(),
            Self::ZSet(of) => of.is_empty(),
        }
    }

    /// The members that a scan shows.
    fn names(&self) -> BTreeSet<Bytes> {
        match self {
            Self::Text(_) | Self::List(_) | Self::Stream(_) => BTreeSet::new(),
            Self::Hash(of) => of.keys().cloned().collect(),
            Self::Set(of) => of.keys().cloned().collect(),
            Self::ZSet(of) => of.keys().cloned().collect(),
        }
    }

    /// The deadlines of the members.
    fn deadlines(&self) -> Vec<i128> {
        fn of<V>(members: &Members<V>) -> Vec<i128> {
            members.values().filter_map(|one| one.deadline).collect()
        }
        match self {
            Self::Text(_) | Self::List(_) | Self::Stream(_) => Vec::new(),
            Self::Hash(members) => of(members),
            Self::Set(members) => of(members),
            Self::ZSet(members) => of(members),
        }
    }

    /// Removes the members that are due: how many, and the event.
    fn bury(&mut self, tick: i128) -> (usize, &'static str) {
        fn of<V>(members: &mut Members<V>, tick: i128) -> usize {
            let before = members.len();
            members.retain(|_, one| one.deadline.is_none_or(|deadline| deadline > tick));
            before - members.len()
        }
        match self {
            Self::Text(_) | Self::List(_) | Self::Stream(_) => (0, ""),
            Self::Hash(members) => (of(members, tick), "hexpired"),
            Self::Set(members) => (of(members, tick), "sexpired"),
            Self::ZSet(members) => (of(members, tick), "zexpired"),
        }
    }
}

impl Model {
    /// Sets engine time and wall time, and removes what is dead by then. `begun`: the clock is
    /// beyond the start of the tick.
    pub fn at(&mut self, tick: u64, begun: bool, wall_ms: i64) {
        self.tick = tick.into();
        self.begun = begun;
        self.wall_offset = i128::from(wall_ms) - self.tick;
        self.bury();
    }

    /// Live keys in all databases.
    pub fn places(&self) -> Vec<Place> {
        self.entries.keys().cloned().collect()
    }

    /// What a key holds, and its generation.
    pub fn look(&self, place: &Place) -> Option<(&'static str, u64)> {
        let entry = self.entries.get(place)?;
        Some((entry.kind.name(), entry.generation))
    }

    /// The members of a collection that a scan shows.
    pub fn names_of(&self, place: &Place) -> BTreeSet<Bytes> {
        let entry = self.entries.get(place);
        entry.map_or_else(BTreeSet::new, |entry| entry.kind.names())
    }

    /// The database of the client.
    pub fn db(&self) -> u32 {
        self.db
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Option<i128> {
        let of = |entry: &Entry| {
            let members = entry.kind.deadlines().into_iter();
            members.chain(entry.deadline).min()
        };
        self.entries.values().filter_map(of).min()
    }

    /// What has happened since the last call, deaths aside.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What deadlines have done.
    pub fn deaths(&mut self) -> &mut Deaths {
        &mut self.deaths
    }

    /// Whether nobody knows what a command must answer.
    pub fn is_vague(&mut self, words: &[Bytes]) -> bool {
        let words: Vec<_> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word))
            .collect();
        match &*words[0] {
            name if name.starts_with("PF") => words.iter().any(|key| self.is_vague_log(key)),
            name if name.starts_with("ZUNION") || name.starts_with("ZINTER") => {
                let words = &words[1 + usize::from(name.ends_with("STORE"))..];
                let n: usize = words[0].parse().expect("a number of keys");
                let keys: Vec<_> = words[1..=n].iter().map(AsRef::as_ref).collect();
                self.has_vague_sum(&keys)
            }
            // Of a string that is very long the model would make a very long list of bits.
            name if ["BIT", "SETBIT", "GETBIT"]
                .iter()
                .any(|bits| name.starts_with(bits)) =>
            {
                words[1..].iter().any(|key| self.is_very_long(key))
            }
            _ => false,
        }
    }

    fn is_very_long(&mut self, key: &str) -> bool {
        let text = self.text_at(key).ok().flatten();
        text.is_some_and(|text| text.len() > 100_000)
    }

    /// Runs a command, and says what the answer must be. What is left to chance it takes from the
    /// answer.
    ///
    /// # Panics
    ///
    /// If the model does not know the command.
    pub fn run<W: AsRef<[u8]>>(&mut self, words: &[W], answer: &Reply) -> Expect {
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        let name = upper(words[0]);
        let told = self
            .any(&name, &words)
            .or_else(|| self.script(&name, &words))
            .or_else(|| self.text(&name, &words))
            .or_else(|| self.collection(&name, &words, answer))
            .unwrap_or_else(|| panic!("the model does not know {name}"));
        self.entries.retain(|_, entry| !entry.kind.is_empty());
        // A deadline that has passed already kills at once.
        self.bury();
        told.unwrap_or_else(Expect::Reply)
    }

    /// What is drawn for collections is text.
    fn collection(&mut self, name: &str, words: &[&[u8]], answer: &Reply) -> Answered {
        let text = |word: &&[u8]| std::str::from_utf8(word).ok().map(str::to_owned);
        let words: Option<Vec<_>> = words[1..].iter().map(text).collect();
        let words = words?;
        let words: Vec<_> = std::iter::once(name)
            .chain(words.iter().map(String::as_str))
            .collect();
        let w = words.as_slice();
        None.or_else(|| self.hash(w, answer))
            .or_else(|| self.list(w))
            .or_else(|| self.set(w, answer))
            .or_else(|| self.zset(w, answer))
            .or_else(|| self.geo(w, answer))
            .or_else(|| self.member_deadline(w))
            .or_else(|| self.bits(w))
            .or_else(|| self.log(w, answer))
            .or_else(|| self.sort(w))
            .or_else(|| self.stream(w))
    }

    fn bury(&mut self) {
        let (tick, deaths, touched) = (self.tick, &mut self.deaths, &mut self.touched);
        self.entries.retain(|place, entry| {
            let (members, event) = entry.kind.bury(tick);
            let dead = entry.deadline.is_some_and(|deadline| deadline <= tick);
            let emptied = members > 0 && entry.kind.is_empty();
            if dead || members > 0 {
                touched.insert(place.clone());
            }
            match dead {
                true => deaths.key(&place.1),
                false => {
                    deaths.members(&place.1, event, members, emptied.then_some(entry.deadline));
                }
            }
            !dead && !emptied
        });
    }

    /// Something has happened to a key of the client's database. A collection without members
    /// leaves.
    fn note(&mut self, key: &[u8], event: &'static str) {
        self.note_in(self.db, key, event);
        let place = (self.db, key.to_vec());
        if self
            .entries
            .get(&place)
            .is_some_and(|entry| entry.kind.is_empty())
        {
            self.entries.remove(&place);
            self.note_in(self.db, key, "del");
        }
    }

    fn note_in(&mut self, db: u32, key: &[u8], event: &'static str) {
        self.touched.insert((db, key.to_vec()));
        self.events.push((db, key.to_vec(), event));
    }

    /// From now on it is remembered which keys change.
    pub fn watch(&mut self) {
        self.touched.clear();
    }

    /// Whether a key has changed since then.
    pub fn is_touched(&self, place: &Place) -> bool {
        self.touched.contains(place)
    }

    fn entry(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.entries.get_mut(&(self.db, key.to_vec()))
    }

    /// Puts a value in the place of what was there.
    fn put(&mut self, key: &[u8], kind: Kind, deadline: Option<i128>) {
        self.generations += 1;
        let generation = self.generations;
        let entry = Entry {
            kind,
            deadline,
            generation,
        };
        self.entries.insert((self.db, key.to_vec()), entry);
    }

    /// Puts the result of a command under a key: one without members removes it.
    fn store(&mut self, key: &str, kind: Kind, event: &'static str) {
        let key = key.as_bytes();
        if !kind.is_empty() {
            self.put(key, kind, None);
            self.note(key, event);
        } else if self.entries.remove(&(self.db, key.to_vec())).is_some() {
            self.note(key, "del");
        }
    }

    /// A key's value; if there is none, `empty` is put there.
    fn or_insert(&mut self, key: &[u8], empty: Kind) -> &mut Kind {
        if self.entry(key).is_none() {
            self.put(key, empty, None);
        }
        let entry = self.entry(key);
        &mut entry.expect("just put there").kind
    }

    fn wall(&self) -> i128 {
        self.tick + self.wall_offset
    }

    /// A deadline in ticks, unless its wall time overflows.
    fn wall_deadline(&self, unit: Unit, number: i64) -> Option<i128> {
        let scaled = match unit {
            Unit::Seconds | Unit::AtSeconds => number.checked_mul(1000)?,
            Unit::Millis | Unit::AtMillis => number,
        };
        let wall = match unit {
            Unit::Seconds | Unit::Millis => scaled.checked_add(self.wall() as i64)?,
            Unit::AtSeconds | Unit::AtMillis => scaled,
        };
        let relative = matches!(unit, Unit::Seconds | Unit::Millis);
        let rounded_up = relative && number > 0 && self.begun;
        Some(i128::from(wall) - self.wall_offset + i128::from(rounded_up))
    }

    /// What commands tell of a deadline: a wall time or the time left, in one of two units.
    fn told(&self, deadline: i128, unit: Unit) -> i64 {
        let now = self.tick + i128::from(self.begun);
        // Steps of the wall clock may carry it beyond what a client can be told.
        let ms = match unit {
            Unit::AtSeconds | Unit::AtMillis => deadline + self.wall_offset,
            Unit::Seconds | Unit::Millis => deadline - now,
        };
        let ms = ms.clamp(0, i64::MAX.into());
        match unit {
            Unit::Seconds | Unit::AtSeconds => ((ms + 500) / 1000) as i64,
            Unit::Millis | Unit::AtMillis => ms as i64,
        }
    }
}

fn number(word: &[u8]) -> i64 {
    parse_i64(word).expect("a number")
}

fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// Calls by key of one type: its value if it is there, or an error for another type.
macro_rules! typed {
    ($($at:ident, $or_new:ident, $kind:ident, $of:ty;)*) => {
        #[allow(dead_code, reason = "not every type needs both")]
        impl Model {
            $(
                fn $at(&mut self, key: &str) -> Result<Option<&mut $of>, Reply> {
                    match self.entry(key.as_bytes()).map(|entry| &mut entry.kind) {
                        None => Ok(None),
                        Some(Kind::$kind(of)) => Ok(Some(of)),
                        Some(_) => Err(wrong_type()),
                    }
                }

                fn $or_new(&mut self, key: &str) -> Result<&mut $of, Reply> {
                    match self.or_insert(key.as_bytes(), Kind::$kind(Default::default())) {
                        Kind::$kind(of) => Ok(of),
                        _ => Err(wrong_type()),
                    }
                }
            )*
        }
    };
}

typed! {
    text_at, text_or_new, Text, Bytes;
    hash_at, hash_or_new, Hash, Members<Bytes>;
    list_at, list_or_new, List, VecDeque<Bytes>;
    set_at, set_or_new, Set, Members<()>;
    zset_at, zset_or_new, ZSet, Members<f64>;
    stream_at, stream_or_new, Stream, Stream;
}
