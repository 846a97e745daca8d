//! Operations on a keyspace, as the fuzzer draws them and as clients spell them.

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::draw::Draw;

/// Takes elements until the bytes are used up: every byte counts, and runs are long.
pub fn all<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    while !u.is_empty() {
        elements.push(u.arbitrary()?);
    }
    Ok(elements)
}

/// One step of a run.
#[derive(Clone, Debug)]
pub enum Step {
    /// A client's command.
    Call(Call),
    /// A client's command, in words.
    Line(String),
    /// DUMP of a key, and RESTORE under another one, with a time to live or none.
    Reload(Name, Name, u8),
    /// WATCH, what happens then, and EXEC.
    Exec {
        /// The keys that are watched.
        watched: Vec<Name>,
        /// What happens between WATCH and EXEC.
        between: Vec<Step>,
        /// The transaction's commands.
        commands: Vec<Step>,
    },
    /// Another client calls a command that may wait.
    Wait(String),
    /// One of those who wait goes away.
    Leave(u8),
    /// One more page of a scan, while other steps change what it sees.
    Page(Name, u8),
    /// How many members, and how long ones, a packed collection may have.
    Limits(u8),
    /// Microseconds pass.
    Moment(u16),
    /// Milliseconds pass.
    Advance(u16),
    /// A long sleep, in seconds.
    Sleep(u32),
    /// The wall clock is set forward or back by milliseconds.
    StepWall(i32),
    /// Every shard expires at most this many keys.
    Expire(u8),
    /// Every shard is maintained with this budget.
    Maintain(u8),
    /// EXPIRY FREEZE.
    Freeze,
    /// EXPIRY RESUME.
    Resume,
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        // Mostly commands; and rarely a sleep, since few deadlines are left after one.
        Ok(match u.arbitrary::<u8>()? {
            200..206 => Self::Reload(u.arbitrary()?, u.arbitrary()?, u.arbitrary()?),
            206..209 => Self::Exec {
                watched: few(u, 2, Name::arbitrary)?,
                between: few(u, 2, |u| Self::inner(u, true))?,
                commands: few(u, 4, |u| Self::inner(u, false))?,
            },
            209..214 => {
                let mut draw = Draw(u);
                Self::Wait(match draw.once_in(3) {
                    true => draw.waiting_for_zset(),
                    false => draw.waiting_for_list(),
                })
            }
            214 => Self::Leave(u.arbitrary()?),
            215..219 => Self::Page(u.arbitrary()?, u.arbitrary()?),
            219 => Self::Limits(u.arbitrary()?),
            byte => Self::plain(byte, u)?,
        })
    }
}

/// At most so many elements.
fn few<'a, T>(
    u: &mut Unstructured<'a>,
    most: u8,
    one: impl Fn(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let n = u.arbitrary::<u8>()? % (most + 1);
    (0..n).map(|_| one(u)).collect()
}

impl Step {
    /// A command, or something that happens to the clocks or to the shards.
    fn plain(byte: u8, u: &mut Unstructured<'_>) -> Result<Self> {
        Ok(match byte {
            0..70 => Self::Call(u.arbitrary()?),
            70..200 => Self::Line(Draw(u).line()),
            220..224 => Self::Moment(u.arbitrary()?),
            224..226 => Self::Advance(u.arbitrary()?),
            226..235 => Self::Advance(u.arbitrary::<u8>()?.into()),
            235 => Self::Sleep(u.arbitrary()?),
            236..239 => Self::StepWall(u.arbitrary()?),
            239..246 => Self::Expire(u.arbitrary()?),
            246..250 => Self::Maintain(u.arbitrary()?),
            250..252 => Self::Freeze,
            _ => Self::Resume,
        })
    }

    /// A part of a transaction: a command, or between WATCH and EXEC anything plain.
    fn inner(u: &mut Unstructured<'_>, between: bool) -> Result<Self> {
        let byte = u.arbitrary::<u8>()?;
        Self::plain(if between { byte } else { byte % 200 }, u)
    }
}

/// One of a few keys, so that commands meet: mostly a string.
#[derive(Clone, Copy, Debug)]
pub struct Key(u8);

/// One of the same keys, mostly a collection: for commands that take keys of any type.
#[derive(Clone, Copy, Debug)]
pub struct Name(pub Key);

/// Keys that hold strings.
const STRINGS: u8 = 12;
/// The first letters of the others, which have three names each.
const LETTERS: &[u8] = b"hlszbp";

impl<'a> Arbitrary<'a> for Key {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self::new(u.arbitrary()?, 250))
    }
}

impl<'a> Arbitrary<'a> for Name {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(Key::new(u.arbitrary()?, 100)))
    }
}

impl Key {
    /// From a byte: a collection if it is not below `strings`.
    fn new(byte: u8, strings: u8) -> Self {
        Self(match byte < strings {
            true => byte % STRINGS,
            false => STRINGS + byte % (3 * LETTERS.len() as u8),
        })
    }

    /// The key's bytes: of strings empty, short, binary and long ones.
    pub fn bytes(self) -> Vec<u8> {
        match self.0 {
            0 => Vec::new(),
            1 => b"\0\r\n*".to_vec(),
            2 => vec![b'k'; 300],
            3 => vec![b'l'; 5000],
            n @ 4..STRINGS => format!("key:{n}").into_bytes(),
            n => vec![
                LETTERS[usize::from(n - STRINGS) / 3],
                b'0' + (n - STRINGS) % 3,
            ],
        }
    }
}

/// One of a few databases.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Db(u8);

impl Db {
    /// Its number.
    pub fn index(self) -> u32 {
        u32::from(self.0 % 3)
    }
}

/// What a string holds.
#[derive(Arbitrary, Clone, Debug)]
pub enum Value {
    /// A number as text.
    Integer(i64),
    /// Few bytes.
    Bytes(Vec<u8>),
    /// Many bytes, beside and beyond what is stored inline.
    Long(u16),
}

impl Value {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Integer(value) => value.to_string().into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Long(len) => vec![*len as u8; usize::from(*len) % 5000],
        }
    }
}

/// The unit and origin of a time.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Millis,
    /// A wall time in seconds.
    AtSeconds,
    /// A wall time in milliseconds.
    AtMillis,
}

/// How long, in a call's own unit.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Span {
    /// Little, or less than nothing.
    Short(i16),
    /// Much.
    Long(i32),
    /// Exactly this number, whatever the unit.
    Exactly(i64),
    /// A number at which arithmetic overflows.
    Edge(u8),
}

impl Span {
    /// The number to send when the wall clock shows `wall_ms`.
    pub fn number(self, unit: Unit, wall_ms: i64) -> i64 {
        let from = match unit {
            Unit::Seconds | Unit::Millis => 0,
            Unit::AtSeconds => wall_ms / 1000,
            Unit::AtMillis => wall_ms,
        };
        match self {
            Self::Short(n) => from + i64::from(n),
            Self::Long(n) => from + i64::from(n),
            Self::Exactly(n) => n,
            Self::Edge(n) => [
                0,
                i64::MAX,
                i64::MIN,
                i64::MAX / 1000,
                i64::MIN / 1000,
                i64::MAX / 1000 + 1,
                i64::MIN / 1000 - 1,
                i64::MAX - wall_ms,
                (i64::MAX - wall_ms) / 1000,
            ][usize::from(n) % 9],
        }
    }
}

/// SET's condition.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Only if the key does not exist.
    IfAbsent,
    /// Only if it does.
    IfPresent,
}

/// What SET and GETEX do with the deadline.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Deadline {
    /// Set it.
    In(Unit, Span),
    /// SET KEEPTTL, GETEX PERSIST.
    Other,
}

/// EXPIRE's conditions.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// NX.
    None,
    /// XX.
    Some,
    /// GT.
    Greater,
    /// LT.
    Less,
}

/// A command that the model knows.
#[derive(Arbitrary, Clone, Debug)]
#[allow(missing_docs, reason = "each is the command of its name")]
pub enum Call {
    Get(Key),
    Set {
        key: Key,
        value: Value,
        only: Option<Only>,
        get: bool,
        deadline: Option<Deadline>,
    },
    GetEx(Key, Option<Deadline>),
    GetDel(Key),
    GetSet(Key, Value),
    SetEx(Key, Span, Value),
    PSetEx(Key, Span, Value),
    SetNx(Key, Value),
    MGet(Key, Vec<Key>),
    MSet(Key, Value, Vec<(Key, Value)>),
    MSetNx(Key, Value, Vec<(Key, Value)>),
    Append(Key, Value),
    StrLen(Key),
    GetRange(Key, i16, i16),
    SubStr(Key, i64, i64),
    SetRange(Key, u16, Value),
    SetRangeAt(Key, i64),
    Incr(Key),
    Decr(Key),
    IncrBy(Key, i64),
    DecrBy(Key, i64),
    Del(Name, Vec<Name>),
    Unlink(Name, Vec<Name>),
    Exists(Name, Vec<Name>),
    Touch(Name, Vec<Name>),
    Type(Name),
    Rename(Name, Name),
    RenameNx(Name, Name),
    Copy {
        from: Name,
        to: Name,
        db: Option<Db>,
        replace: bool,
    },
    Move(Name, Db),
    DbSize,
    FlushDb,
    FlushAll,
    SwapDb(Db, Db),
    Select(Db),
    SelectBeyond,
    Expire(Name, Unit, Span, Vec<When>),
    Ttl(Name),
    PTtl(Name),
    ExpireTime(Name),
    PExpireTime(Name),
    Persist(Name),
    Keys,
    Scan(u8),
    RandomKey,
}

impl Call {
    /// The command as a client sends it when the wall clock shows `wall_ms`.
    pub fn words(&self, wall_ms: i64) -> Vec<Vec<u8>> {
        let mut w = Words(Vec::new());
        match self {
            Self::Get(key) => w.text("GET").key(*key),
            Self::Set {
                key,
                value,
                only,
                get,
                deadline,
            } => {
                w.text("SET").key(*key).value(value);
                match only {
                    Some(Only::IfAbsent) => w.text("NX"),
                    Some(Only::IfPresent) => w.text("xx"),
                    None => &mut w,
                };
                if *get {
                    w.text("GET");
                }
                w.deadline(*deadline, "KEEPTTL", wall_ms)
            }
            Self::GetEx(key, deadline) => w
                .text("GETEX")
                .key(*key)
                .deadline(*deadline, "PERSIST", wall_ms),
            Self::GetDel(key) => w.text("GETDEL").key(*key),
            Self::GetSet(key, value) => w.text("GETSET").key(*key).value(value),
            Self::SetEx(key, span, value) => w
                .text("SETEX")
                .key(*key)
                .number(span.number(Unit::Seconds, wall_ms))
                .value(value),
            Self::PSetEx(key, span, value) => w
                .text("PSETEX")
                .key(*key)
                .number(span.number(Unit::Millis, wall_ms))
                .value(value),
            Self::SetNx(key, value) => w.text("SETNX").key(*key).value(value),
            Self::MGet(key, keys) => w.text("MGET").keys(*key, keys),
            Self::MSet(key, value, more) => w.text("MSET").pairs(*key, value, more),
            Self::MSetNx(key, value, more) => w.text("MSETNX").pairs(*key, value, more),
            Self::Append(key, value) => w.text("APPEND").key(*key).value(value),
            Self::StrLen(key) => w.text("STRLEN").key(*key),
            Self::GetRange(key, start, end) => w
                .text("GETRANGE")
                .key(*key)
                .number((*start).into())
                .number((*end).into()),
            Self::SubStr(key, start, end) => w.text("SUBSTR").key(*key).number(*start).number(*end),
            Self::SetRange(key, offset, value) => w
                .text("SETRANGE")
                .key(*key)
                .number((*offset).into())
                .value(value),
            Self::SetRangeAt(key, offset) => w.text("SETRANGE").key(*key).number(*offset).text("x"),
            Self::Incr(key) => w.text("incr").key(*key),
            Self::Decr(key) => w.text("Decr").key(*key),
            Self::IncrBy(key, by) => w.text("INCRBY").key(*key).number(*by),
            Self::DecrBy(key, by) => w.text("DECRBY").key(*key).number(*by),
            Self::Del(key, keys) => w.text("DEL").names(*key, keys),
            Self::Unlink(key, keys) => w.text("UNLINK").names(*key, keys),
            Self::Exists(key, keys) => w.text("EXISTS").names(*key, keys),
            Self::Touch(key, keys) => w.text("TOUCH").names(*key, keys),
            Self::Type(key) => w.text("TYPE").key(key.0),
            Self::Rename(from, to) => w.text("RENAME").key(from.0).key(to.0),
            Self::RenameNx(from, to) => w.text("RENAMENX").key(from.0).key(to.0),
            Self::Copy {
                from,
                to,
                db,
                replace,
            } => {
                w.text("COPY").key(from.0).key(to.0);
                if let Some(db) = db {
                    w.text("DB").number(db.index().into());
                }
                if *replace { w.text("REPLACE") } else { &mut w }
            }
            Self::Move(key, db) => w.text("MOVE").key(key.0).number(db.index().into()),
            Self::DbSize => w.text("DBSIZE"),
            Self::FlushDb => w.text("FLUSHDB"),
            Self::FlushAll => w.text("FLUSHALL"),
            Self::SwapDb(a, b) => w
                .text("SWAPDB")
                .number(a.index().into())
                .number(b.index().into()),
            Self::Select(db) => w.text("SELECT").number(db.index().into()),
            Self::SelectBeyond => w.text("SELECT").number(16),
            Self::Expire(key, unit, span, conditions) => {
                w.text(self.expire_name(*unit))
                    .key(key.0)
                    .number(span.number(*unit, wall_ms));
                for when in conditions {
                    w.text(match when {
                        When::None => "NX",
                        When::Some => "XX",
                        When::Greater => "gt",
                        When::Less => "LT",
                    });
                }
                &mut w
            }
            Self::Ttl(key) => w.text("TTL").key(key.0),
            Self::PTtl(key) => w.text("PTTL").key(key.0),
            Self::ExpireTime(key) => w.text("EXPIRETIME").key(key.0),
            Self::PExpireTime(key) => w.text("PEXPIRETIME").key(key.0),
            Self::Persist(key) => w.text("PERSIST").key(key.0),
            Self::Keys => w.text("KEYS").text("*"),
            Self::Scan(count) => w
                .text("SCAN")
                .text("0")
                .text("COUNT")
                .number(i64::from(*count) + 1),
            Self::RandomKey => w.text("RANDOMKEY"),
        };
        w.0
    }

    /// The spelling of EXPIRE for this unit.
    pub fn expire_name(&self, unit: Unit) -> &'static str {
        match unit {
            Unit::Seconds => "expire",
            Unit::Millis => "pexpire",
            Unit::AtSeconds => "expireat",
            Unit::AtMillis => "pexpireat",
        }
    }
}

/// A command being spelt.
struct Words(Vec<Vec<u8>>);

impl Words {
    fn text(&mut self, word: &str) -> &mut Self {
        self.0.push(word.as_bytes().to_vec());
        self
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.text(&number.to_string())
    }

    fn key(&mut self, key: Key) -> &mut Self {
        self.0.push(key.bytes());
        self
    }

    fn value(&mut self, value: &Value) -> &mut Self {
        self.0.push(value.bytes());
        self
    }

    fn keys(&mut self, first: Key, more: &[Key]) -> &mut Self {
        more.iter()
            .fold(self.key(first), |words, key| words.key(*key))
    }

    fn names(&mut self, first: Name, more: &[Name]) -> &mut Self {
        more.iter()
            .fold(self.key(first.0), |words, name| words.key(name.0))
    }

    fn pairs(&mut self, key: Key, value: &Value, more: &[(Key, Value)]) -> &mut Self {
        let words = self.key(key).value(value);
        more.iter()
            .fold(words, |words, (key, value)| words.key(*key).value(value))
    }

    fn deadline(&mut self, deadline: Option<Deadline>, other: &str, wall_ms: i64) -> &mut Self {
        match deadline {
            None => self,
            Some(Deadline::Other) => self.text(other),
            Some(Deadline::In(unit, span)) => self
                .text(match unit {
                    Unit::Seconds => "EX",
                    Unit::Millis => "PX",
                    Unit::AtSeconds => "exat",
                    Unit::AtMillis => "PXAT",
                })
                .number(span.number(unit, wall_ms)),
        }
    }
}
