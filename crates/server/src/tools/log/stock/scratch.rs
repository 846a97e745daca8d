//! The keyspace into which a log is replayed, to know what its records have done.

use std::io::Read;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_keyspace::{
    Dead, Fields, Garbage, Hooks, Keyspace, LoadRules, LookedAt, Options, PortableKey, Record,
    Seat, Session, SnapshotError, Time, resolve,
};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::persistence::log::{beginning, moment_of_base};

/// The most databases that a server has. They take memory when they are used.
const DATABASES_MAX: usize = 4096;

struct Alone;

impl Hooks for Alone {
    fn wake(&self, _: usize, _: u64) {}

    fn reclaim(&self, garbage: Garbage) {
        drop(garbage);
    }

    fn stopwatch_ns(&self) -> u64 {
        0
    }
}

/// A keyspace that nobody else sees.
#[derive(Debug)]
pub(super) struct Scratch {
    keyspace: Keyspace,
    seat: Seat,
}

impl Scratch {
    pub(super) fn new() -> Self {
        let options = Options {
            databases: DATABASES_MAX,
            seed: super::super::super::seed(),
            ..Options::default()
        };
        let keyspace = Keyspace::new(options, Box::new(Alone));
        keyspace.rules().proto_max_bulk_len.store(u64::MAX, Relaxed);
        let seat = keyspace.seat();
        Self { keyspace, seat }
    }

    /// Loads a base.
    pub(super) fn load(&mut self, file: &mut dyn Read) -> Result<(), SnapshotError> {
        let offset = |fields: &Fields| moment_of_base(fields).map_or(0, |of| of.wall_offset_ms);
        let rules = LoadRules {
            replaces: false,
            skips_unknown: false,
        };
        let alone = self.seat.exclusive();
        (self.keyspace).load(&alone, beginning(), &offset, rules, file)?;
        Ok(())
    }

    /// From here on nothing is removed because time passes.
    pub(super) fn begin_replaying(&mut self) {
        self.keyspace.set_replays(&self.seat.exclusive(), true);
    }

    /// Runs a record. Returns the reply, if it is an error.
    pub(super) fn replay(&mut self, record: &Record<'_>) -> Result<(), Vec<u8>> {
        self.keyspace.replay(&mut self.seat, record)
    }

    pub(super) fn portable(&mut self, time: Time, db: u32, key: &[u8]) -> Option<PortableKey> {
        let alone = self.seat.exclusive();
        self.keyspace.portable(&alone, time, db, key)
    }

    pub(super) fn dead(&mut self, time: Time, db: u32, key: &[u8]) -> Option<(&'static str, Dead)> {
        self.keyspace.dead(&self.seat.exclusive(), time, db, key)
    }

    pub(super) fn look_at_all(&mut self, time: Time, visit: &mut dyn FnMut(LookedAt<'_>)) {
        let alone = self.seat.exclusive();
        self.keyspace.look_at_all(&alone, time, visit);
    }

    /// Asks as a client would.
    pub(super) fn ask(&mut self, time: Time, db: u32, words: &[&[u8]]) -> Reply {
        let args = Args::from_slices(words);
        let mut out = Writer::new(Protocol::Resp2);
        let mut session = Session {
            db,
            ..Session::default()
        };
        if let Ok(row) = resolve(args) {
            let (keyspace, seat) = (&self.keyspace, &mut self.seat);
            keyspace.execute(seat, row, &mut session, time, args, &mut out);
        }
        match Reply::read(out.as_bytes()) {
            Ok(Some((reply, _))) => reply,
            _ => Reply::Null,
        }
    }

    /// A key's own deadline as PEXPIRETIME says it: −2 without a key, −1 without a deadline.
    pub(super) fn deadline(&mut self, time: Time, db: u32, key: &[u8]) -> i64 {
        match self.ask(time, db, &[b"PEXPIRETIME", key]) {
            Reply::Integer(wall_ms) => wall_ms,
            _ => -2,
        }
    }

    /// The name of a key's type.
    pub(super) fn type_name(&mut self, time: Time, db: u32, key: &[u8]) -> String {
        match self.ask(time, db, &[b"TYPE", key]) {
            Reply::Simple(name) => name,
            _ => String::new(),
        }
    }

    /// The deadlines of members, each as in [`deadline`](Self::deadline).
    pub(super) fn member_deadlines(
        &mut self,
        time: Time,
        db: u32,
        (key, of): (&[u8], &str),
        members: &[&[u8]],
    ) -> Vec<i64> {
        let (command, word): (&[u8], &[u8]) = match of {
            "hash" => (b"HPEXPIRETIME", b"FIELDS"),
            "set" => (b"SPEXPIRETIME", b"MEMBERS"),
            _ => (b"ZPEXPIRETIME", b"MEMBERS"),
        };
        let number = members.len().to_string();
        let words = [&[command, key, word, number.as_bytes()], members].concat();
        let Reply::Array(found) = self.ask(time, db, &words) else {
            return vec![-2; members.len()];
        };
        let deadline = |reply| match reply {
            Reply::Integer(wall_ms) => wall_ms,
            _ => -2,
        };
        found.into_iter().map(deadline).collect()
    }

    /// The id that a stream has given out last.
    pub(super) fn last_id(&mut self, time: Time, db: u32, key: &[u8]) -> Option<Vec<u8>> {
        let Reply::Array(fields) = self.ask(time, db, &[b"XINFO", b"STREAM", key]) else {
            return None;
        };
        let name = Reply::Bulk(b"last-generated-id".to_vec());
        let (fields, _) = fields.as_chunks::<2>();
        fields.iter().find_map(|[of, value]| match value {
            Reply::Bulk(id) if *of == name => Some(id.clone()),
            _ => None,
        })
    }

    /// True if a stream has groups.
    pub(super) fn has_groups(&mut self, time: Time, db: u32, key: &[u8]) -> bool {
        let groups = self.ask(time, db, &[b"XINFO", b"GROUPS", key]);
        matches!(groups, Reply::Array(groups) if !groups.is_empty())
    }
}
