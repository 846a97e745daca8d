//! A keyspace in virtual time, driven by lines of text.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tidewheel_keyspace::{
    Event, Garbage, Hooks, Keyspace, NotifyFlags, Options, ResolvedCalls, Seat, Served, Session,
    Ticket, Time, Unfinished, Waiter, resolve,
};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

pub(crate) const START: u64 = 1 << 40;
pub(crate) const WALL_START_MS: i64 = 1_700_000_000_000;

/// What the keyspace told its shell.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) wakes: Mutex<Vec<(usize, u64)>>,
    /// What has become of those who waited.
    pub(crate) served: Mutex<Vec<Served>>,
    /// Long commands that may begin.
    pub(crate) long: Mutex<VecDeque<Arc<Ticket>>>,
    /// Who was told that which keys are invalid: `1:a,b`.
    pub(crate) invalid: Mutex<Vec<String>>,
    /// Clients that were parked and may go on.
    pub(crate) going_on: Mutex<Vec<u64>>,
    pub(crate) reclaimed_bytes: AtomicU64,
    pub(crate) reclaimed_parts: AtomicU64,
    stopwatch: AtomicU64,
    /// How much slower than ever the machine is: nanoseconds between two looks at the stopwatch.
    pub(crate) slowness_ns: AtomicU64,
}

impl Told {
    /// What the stopwatch will say next.
    pub(crate) fn now_ns(&self) -> u64 {
        self.stopwatch.load(Relaxed)
    }
}

struct Shell(Arc<Told>);

impl Hooks for Shell {
    fn wake(&self, shard: usize, deadline: u64) {
        self.0.wakes.lock().unwrap().push((shard, deadline));
    }

    fn reclaim(&self, garbage: Garbage) {
        self.0
            .reclaimed_bytes
            .fetch_add(garbage.bytes() as u64, Relaxed);
        self.0
            .reclaimed_parts
            .fetch_add(garbage.parts() as u64, Relaxed);
    }

    fn served(&self, served: Served) {
        self.0.served.lock().unwrap().push(served);
    }

    fn run_long(&self, ticket: Arc<Ticket>) {
        self.0.long.lock().unwrap().push_back(ticket);
    }

    fn go_on(&self, waiter: Waiter) {
        self.0.going_on.lock().unwrap().push(waiter.id);
    }

    fn invalidate(&self, clients: &[Waiter], keys: Option<&[&[u8]]>) {
        let keys = keys.map_or_else(
            || "*".to_owned(),
            |keys| String::from_utf8_lossy(&keys.join(&b","[..])).into_owned(),
        );
        let told = clients.iter().map(|client| format!("{}:{keys}", client.id));
        self.0.invalid.lock().unwrap().extend(told);
    }

    fn stopwatch_ns(&self) -> u64 {
        let passed = 7 + self.0.slowness_ns.load(Relaxed);
        self.0.stopwatch.fetch_add(passed, Relaxed)
    }
}

pub(crate) struct Rig {
    pub(crate) keyspace: Keyspace,
    pub(crate) seat: Seat,
    pub(crate) session: Session,
    pub(crate) time: Time,
    pub(crate) told: Arc<Told>,
    pub(crate) protocol: Protocol,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Options {
            shards: 8,
            databases: 16,
            seed: 42,
        })
    }

    pub(crate) fn with(options: Options) -> Self {
        let told = Arc::new(Told::default());
        let wall_offset_ms = WALL_START_MS - START as i64;
        let keyspace = Keyspace::new(options, Box::new(Shell(Arc::clone(&told))));
        Self {
            seat: keyspace.seat(),
            keyspace,
            session: Session::default(),
            time: Time {
                tick: START,
                micros: 0,
                wall_offset_ms,
            },
            told,
            protocol: Protocol::Resp2,
        }
    }

    /// Lets milliseconds pass.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.time.tick += ms;
    }

    pub(crate) fn words(&mut self, words: &[&[u8]]) -> Reply {
        let args = Args::from_slices(words);
        let mut out = Writer::new(self.protocol);
        match resolve(args) {
            Ok(row) => self.keyspace.execute(
                &mut self.seat,
                row,
                &mut self.session,
                self.time,
                args,
                &mut out,
            ),
            Err(error) => error.write(&mut out),
        }
        let (reply, len) = Reply::read(out.as_bytes()).expect("valid").expect("whole");
        assert_eq!(len, out.len(), "exactly one reply to {args:?}");
        reply
    }

    /// As [`run`](Self::run), for a call that was looked at ahead of it.
    pub(crate) fn ahead(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let args = Args::from_slices(&words);
        let mut resolved = ResolvedCalls::default();
        self.keyspace.resolve_ahead(args, &mut resolved);
        self.seat.enter();
        self.keyspace
            .prefetch(&self.seat, self.session.db, &resolved);
        self.seat.leave();
        let call = resolved.call(0).expect("a command");
        let (seat, session, mut out) = (
            &mut self.seat,
            &mut self.session,
            Writer::new(self.protocol),
        );
        let keyspace = &self.keyspace;
        let mut unfinished = keyspace.begin(seat, call, session, self.time, args, &mut out);
        while let Some(Unfinished::Incremental(walk)) = unfinished {
            let walk = keyspace.go_on(seat, walk, self.time, &mut out);
            unfinished = walk.map(Unfinished::Incremental);
        }
        let (reply, _) = Reply::read(out.as_bytes()).expect("valid").expect("whole");
        show(&reply)
    }

    /// Runs a line of words (`""` is the empty one) and shows the reply.
    pub(crate) fn run(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line
            .split_whitespace()
            .map(|word| {
                if word == "\"\"" {
                    &b""[..]
                } else {
                    word.as_bytes()
                }
            })
            .collect();
        show(&self.words(&words))
    }

    /// Runs lines of `command -> reply`.
    #[track_caller]
    pub(crate) fn script(&mut self, script: &str) {
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            if let Some(ms) = line.strip_prefix("pass ") {
                self.pass(ms.parse().expect("milliseconds"));
                continue;
            }
            let (command, expected) = line.split_once("->").expect("command -> reply");
            assert_eq!(self.run(command).trim_end(), expected.trim(), "{command}");
        }
    }

    pub(crate) fn notify(&self, letters: &str) {
        let flags = NotifyFlags::parse(letters.as_bytes()).expect("valid letters");
        self.keyspace.set_notify_flags(flags);
    }

    /// The events so far, as `db:event:key`.
    pub(crate) fn events(&self) -> Vec<String> {
        let mut events = Vec::new();
        self.keyspace.drain_events(&mut |event: Event| {
            let key = String::from_utf8_lossy(&event.key).into_owned();
            events.push(format!("{}:{}:{key}", event.db, event.name));
        });
        assert!(!self.keyspace.events_pending());
        events
    }

    /// Runs every shard's expiry until nothing is due; returns the number of keys removed.
    pub(crate) fn expire_all(&mut self) -> u32 {
        let mut fired = 0;
        for shard in 0..self.keyspace.shards() {
            loop {
                let progress = self.keyspace.expire(&mut self.seat, shard, self.time, 16);
                fired += progress.fired;
                if !progress.backlog {
                    break;
                }
            }
        }
        fired
    }

    /// The earliest published deadline.
    pub(crate) fn next_deadline(&self) -> u64 {
        let shards = 0..self.keyspace.shards();
        shards
            .map(|shard| self.keyspace.next_deadline(shard))
            .min()
            .expect("shards")
    }
}

pub(crate) fn show(reply: &Reply) -> String {
    let list = |items: &[Reply]| items.iter().map(show).collect::<Vec<_>>().join(" ");
    match reply {
        Reply::Simple(text) => text.clone(),
        Reply::Error(text) => format!("-{text}"),
        Reply::Integer(n) => format!(":{n}"),
        Reply::Bulk(bytes) => format!("'{}'", String::from_utf8_lossy(bytes)),
        Reply::Null => "nil".to_owned(),
        Reply::Array(items) => format!("[{}]", list(items)),
        Reply::Set(items) => format!("~[{}]", list(items)),
        Reply::Map(pairs) => {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(k, v)| format!("{}: {}", show(k), show(v)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// Runs a line of words on a connection and a seat of its own, in database `db`.
pub(crate) fn call_at(keyspace: &Keyspace, tick: u64, db: u32, line: &str) -> Reply {
    call_with(keyspace, &mut keyspace.seat(), tick, db, line)
}

/// As [`call_at`], on a seat.
pub(crate) fn call_with(
    keyspace: &Keyspace,
    seat: &mut Seat,
    tick: u64,
    db: u32,
    line: &str,
) -> Reply {
    let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
    let args = Args::from_slices(&words);
    let mut out = Writer::new(Protocol::Resp2);
    let row = resolve(args).expect("a command");
    let mut session = Session {
        db,
        ..Session::default()
    };
    keyspace.execute(seat, row, &mut session, time(tick), args, &mut out);
    let (reply, _) = Reply::read(out.as_bytes()).expect("valid").expect("whole");
    reply
}

/// A point in time without a wall clock.
pub(crate) fn time(tick: u64) -> Time {
    Time {
        tick,
        micros: 0,
        wall_offset_ms: 0,
    }
}

pub(crate) const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.";

/// Keys of a hundred bytes.
pub(crate) fn fill(rig: &mut Rig, from: u32, to: u32, lifetime: &str) {
    for i in from..to {
        rig.run(&format!("SET key:{i} {} {lifetime}", "v".repeat(100)));
    }
}

/// Lets the data become no larger than it is. Returns the limit.
pub(crate) fn limit_to_what_is_used(rig: &Rig) -> u64 {
    let limit = rig.keyspace.used_memory();
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    limit
}
