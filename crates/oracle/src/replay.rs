//! A second keyspace, which is made of the records of the first: it must hold the same.

use std::collections::BTreeMap;

use tidewheel_keyspace::{
    Keyspace, LoadRules, Options, RecordReader, Saved, Seat, Session, Time, resolve,
};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::shell::Shell;

/// Databases of the replica, and the most of what it is compared with.
const DATABASES: u32 = 16;

/// What files say of themselves, and the library that they have.
pub(crate) const FIELDS: [(&str, &str); 2] = [("redis-ver", "7.4.0"), ("a field", "of text")];
pub(crate) const LIBRARY: &[u8] = b"a library";

/// Milliseconds after which the end of wall time is near.
const FAR: i64 = i64::MAX / 2;

/// What is stored under each key of each database, with all deadlines as wall time.
type Picture = BTreeMap<(u32, Vec<u8>), Vec<Reply>>;

/// A keyspace with another number of shards and other hashes, into which records are replayed.
#[derive(Debug)]
pub struct Replica {
    pub(crate) keyspace: Keyspace,
    seat: Seat,
    /// The last records, to be shown when something is wrong.
    shown: Vec<String>,
}

impl Replica {
    /// An empty keyspace that takes the records of one with that many shards.
    pub fn new(shards: usize) -> Self {
        let options = Options {
            shards: if shards == 1 { 8 } else { 1 },
            databases: DATABASES as usize,
            seed: 99,
        };
        let keyspace = Keyspace::new(options, Box::new(Shell::default()));
        let mut seat = keyspace.seat();
        keyspace.set_replays(&seat.exclusive(), true);
        Self {
            keyspace,
            seat,
            shown: Vec::new(),
        }
    }

    /// A keyspace that is loaded from a snapshot of another one, which was taken at a moment of
    /// engine time.
    pub(crate) fn of_snapshot(of: &Keyspace, seat: &mut Seat, clock: Time, shards: usize) -> Self {
        let mut file = Vec::new();
        let saved = of.save(
            &seat.exclusive(),
            clock,
            &FIELDS,
            [LIBRARY].into_iter(),
            &mut file,
        );
        let saved = saved.expect("memory takes it");
        Self::of_file(&file, saved, of.engine_time(clock), shards)
    }

    /// A keyspace that is loaded from a snapshot, whose deadlines are told by a clock that shows
    /// engine time.
    pub(crate) fn of_file(file: &[u8], saved: Saved, engine: Time, shards: usize) -> Self {
        assert_eq!(saved.bytes, file.len() as u64);
        let mut replica = Self::new(shards);
        let loaded = replica.keyspace.load(
            &replica.seat.exclusive(),
            engine,
            &|_| engine.wall_offset_ms,
            LoadRules::default(),
            &mut &*file,
        );
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.keys, saved.keys);
        assert_eq!(loaded.fields.len(), 2);
        assert_eq!(loaded.functions, [LIBRARY]);
        replica.keyspace.assert_counted();
        replica
    }

    /// Replays records, but not those of libraries and settings, which are no data.
    ///
    /// # Panics
    ///
    /// If one is damaged, or its command is refused.
    pub fn replay(&mut self, records: &[u8]) {
        for record in RecordReader::new(records) {
            let record = record.expect("it was just written");
            if matches!(record.words(), [b"FUNCTION" | b"CONFIG", ..]) {
                continue;
            }
            let words = record.words().join(&b' ');
            let (db, tick) = (record.db(), record.time().tick);
            let shown = format!("{tick} db{db} {}", words.escape_ascii());
            if let Err(error) = self.keyspace.replay(&mut self.seat, &record) {
                panic!("{shown}: {}", error.escape_ascii());
            }
            self.shown.push(shown);
        }
    }

    /// As [`compare`](Self::compare), of another replica, at a moment of engine time.
    pub(crate) fn compare_with(&mut self, other: &mut Self, engine: Time) {
        self.compare(&other.keyspace, &mut other.seat, (engine, engine));
    }

    /// Compares all keys, values and deadlines with those of another keyspace, at one moment: by
    /// its own clock, and by one of engine time.
    ///
    /// # Panics
    ///
    /// If they differ.
    pub fn compare(&mut self, with: &Keyspace, seat: &mut Seat, (clock, engine): (Time, Time)) {
        let theirs = picture(with, seat, clock);
        let ours = picture(&self.keyspace, &mut self.seat, engine);
        for ((db, key), there) in &theirs {
            let here = ours.get(&(*db, key.clone()));
            assert!(
                here == Some(there),
                "db{db} {}: replayed {here:?}, but it is {there:?}; the records: {:#?}",
                key.escape_ascii(),
                self.about(key)
            );
        }
        for (db, key) in ours.keys() {
            assert!(
                theirs.contains_key(&(*db, key.clone())),
                "db{db} {} is only where records were replayed: {:#?}",
                key.escape_ascii(),
                self.about(key)
            );
        }
    }

    /// The records that name a key.
    fn about(&self, key: &[u8]) -> Vec<&String> {
        let name = key.escape_ascii().to_string();
        let wide = ["flush", "swapdb"];
        let about = |shown: &&String| {
            let lower = shown.to_ascii_lowercase();
            shown.contains(&name) || wide.iter().any(|word| lower.contains(word))
        };
        self.shown.iter().filter(about).collect()
    }
}

fn picture(keyspace: &Keyspace, seat: &mut Seat, time: Time) -> Picture {
    let mut picture = Picture::new();
    for db in 0..keyspace.databases() as u32 {
        let mut session = Session {
            db,
            may_debug: true,
            ..Session::default()
        };
        let mut call = |words: &[&[u8]]| {
            let args = Args::from_slices(words);
            let mut out = Writer::new(Protocol::Resp2);
            let row = resolve(args).expect("a command");
            keyspace.execute(seat, row, &mut session, time, args, &mut out);
            let (reply, _) = Reply::read(out.as_bytes()).expect("valid").expect("whole");
            reply
        };
        for key in texts(call(&[b"KEYS", b"*"])) {
            let mut of_key = vec![
                call(&[b"DEBUG", b"DIGEST-VALUE", &key]),
                within_time(call(&[b"PEXPIRETIME", &key])),
            ];
            let Reply::Simple(kind) = call(&[b"TYPE", &key]) else {
                panic!("a type");
            };
            let (members, deadlines): (&[&[u8]], &[u8]) = match kind.as_str() {
                "hash" => (&[b"HKEYS", &key], b"HPEXPIRETIME"),
                "set" => (&[b"SMEMBERS", &key], b"SPEXPIRETIME"),
                "zset" => (&[b"ZRANGE", &key, b"0", b"-1"], b"ZPEXPIRETIME"),
                "stream" => {
                    let full = call(&[b"XINFO", b"STREAM", &key, b"FULL", b"COUNT", b"0"]);
                    of_key.push(Reply::Simple(recorded_part(&full)));
                    (&[], b"")
                }
                _ => (&[], b""),
            };
            if !members.is_empty() {
                let mut members = texts(call(members));
                members.sort();
                let n = members.len().to_string();
                let word: &[u8] = if kind == "hash" {
                    b"FIELDS"
                } else {
                    b"MEMBERS"
                };
                let mut words = vec![deadlines, &key, word, n.as_bytes()];
                words.extend(members.iter().map(Vec::as_slice));
                of_key.push(call(&words));
            }
            of_key.push(Reply::Simple(kind));
            picture.insert((db, key), of_key);
        }
    }
    picture
}

/// The last deadlines that can be expressed are cut where wall time ends, which a step of the wall
/// clock moves.
fn within_time(reply: Reply) -> Reply {
    match reply {
        Reply::Integer(FAR..) => Reply::Integer(FAR),
        reply => reply,
    }
}

/// What a full report on a stream says, without the times at which consumers were last seen and
/// active: a call that gives a consumer nothing changes only the first, and is not recorded; a
/// snapshot has no word for the second.
fn recorded_part(report: &Reply) -> String {
    let Reply::Array(items) = report else {
        return match report {
            Reply::Bulk(bytes) => bytes.escape_ascii().to_string(),
            other => format!("{other:?}"),
        };
    };
    let untold = [&b"seen-time"[..], b"active-time"].map(|name| Reply::Bulk(name.to_vec()));
    let seen = |at: usize| at > 0 && untold.contains(&items[at - 1]);
    let parts = (0..items.len()).filter(|at| !seen(*at));
    let parts: Vec<_> = parts.map(|at| recorded_part(&items[at])).collect();
    format!("[{}]", parts.join(" "))
}

fn texts(reply: Reply) -> Vec<Vec<u8>> {
    let Reply::Array(items) = reply else {
        panic!("{reply:?} is no list");
    };
    let text = |item| match item {
        Reply::Bulk(bytes) => bytes,
        other => panic!("{other:?} is no text"),
    };
    items.into_iter().map(text).collect()
}
