//! Operations on a keyspace, as the fuzzer draws them and as clients spell them.

use arbitrary::{Arbitrary, Result, Unstructured};

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
        // Mostly calls; and rarely a sleep, since few deadlines are left after one.
        Ok(match u.arbitrary::<u8>()? {
            0..200 => Self::Call(u.arbitrary()?),
            200..210 => Self::Moment(u.arbitrary()?),
            210..225 => Self::Advance(u.arbitrary()?),
            225..228 => Self::Sleep(u.arbitrary()?),
            228..232 => Self::StepWall(u.arbitrary()?),
            232..246 => Self::Expire(u.arbitrary()?),
            246..250 => Self::Maintain(u.arbitrary()?),
            250..252 => Self::Freeze,
            252..=255 => Self::Resume,
        })
    }
}

/// One of a few keys, so that commands meet.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Key(u8);

impl Key {
    /// The key's bytes: empty, short, binary and long ones.
    pub fn bytes(self) -> Vec<u8> {
        match self.0 % 12 {
            0 => Vec::new(),
            1 => b"\0\r\n*".to_vec(),
            2 => vec![b'k'; 300],
            3 => vec![b'l'; 5000],
            n => format!("key:{n}").into_bytes(),
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
    Del(Key, Vec<Key>),
    Unlink(Key, Vec<Key>),
    Exists(Key, Vec<Key>),
    Touch(Key, Vec<Key>),
    Type(Key),
    Rename(Key, Key),
    RenameNx(Key, Key),
    Copy {
        from: Key,
        to: Key,
        db: Option<Db>,
        replace: bool,
    },
    Move(Key, Db),
    DbSize,
    FlushDb,
    FlushAll,
    SwapDb(Db, Db),
    Select(Db),
    SelectBeyond,
    Expire(Key, Unit, Span, Vec<When>),
    Ttl(Key),
    PTtl(Key),
    ExpireTime(Key),
    PExpireTime(Key),
    Persist(Key),
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
            Self::Del(key, keys) => w.text("DEL").keys(*key, keys),
            Self::Unlink(key, keys) => w.text("UNLINK").keys(*key, keys),
            Self::Exists(key, keys) => w.text("EXISTS").keys(*key, keys),
            Self::Touch(key, keys) => w.text("TOUCH").keys(*key, keys),
            Self::Type(key) => w.text("TYPE").key(*key),
            Self::Rename(from, to) => w.text("RENAME").key(*from).key(*to),
            Self::RenameNx(from, to) => w.text("RENAMENX").key(*from).key(*to),
            Self::Copy {
                from,
                to,
                db,
                replace,
            } => {
                w.text("COPY").key(*from).key(*to);
                if let Some(db) = db {
                    w.text("DB").number(db.index().into());
                }
                if *replace { w.text("REPLACE") } else { &mut w }
            }
            Self::Move(key, db) => w.text("MOVE").key(*key).number(db.index().into()),
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
                    .key(*key)
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
            Self::Ttl(key) => w.text("TTL").key(*key),
            Self::PTtl(key) => w.text("PTTL").key(*key),
            Self::ExpireTime(key) => w.text("EXPIRETIME").key(*key),
            Self::PExpireTime(key) => w.text("PEXPIRETIME").key(*key),
            Self::Persist(key) => w.text("PERSIST").key(*key),
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
