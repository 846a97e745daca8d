//! A keyspace, one client, and clocks that the fuzzer turns.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::op::Step;
use tidewheel_keyspace::{
    Garbage, Handler, Hooks, Keyspace, NotifyFlags, Options, Seat, Session, Time, resolve,
};
use tidewheel_resp::{Args, Limits, Parsed, Parser, Protocol, Reply, Writer};

/// The wall clock stays within these, in milliseconds.
const WALL_MIN: i64 = 1_000_000_000;
const WALL_MAX: i64 = 100_000_000_000_000;
const WALL_START: i64 = 1_700_000_000_000;

/// What the keyspace asks of its shell: garbage is dropped, and the stopwatch always moves.
#[derive(Debug)]
struct Shell(AtomicU64);

impl Hooks for Shell {
    fn wake(&self, _shard: usize, _deadline: u64) {}

    fn reclaim(&self, garbage: Garbage) {
        drop(garbage);
    }

    fn stopwatch_ns(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}

/// A keyspace under test.
pub struct Rig {
    /// The keyspace.
    pub keyspace: Keyspace,
    seat: Seat,
    session: Session,
    parser: Parser,
    protocol: Protocol,
    micros: u64,
    wall_ms: i64,
    frozen_at: Option<u64>,
    /// Ticks that engine time is behind the clock.
    behind: u64,
}

impl Rig {
    /// An empty keyspace that announces everything, with a client that speaks `protocol`.
    pub fn new(protocol: Protocol) -> Self {
        let options = Options {
            shards: 4,
            databases: 16,
            seed: 7,
        };
        let keyspace = Keyspace::new(options, Box::new(Shell(AtomicU64::new(0))));
        keyspace.set_notify_flags(NotifyFlags::from_bits(u32::MAX));
        Self {
            seat: keyspace.seat(),
            keyspace,
            session: Session::default(),
            parser: Parser::new(),
            protocol,
            micros: 1000 << 40,
            wall_ms: WALL_START,
            frozen_at: None,
            behind: 0,
        }
    }

    /// Lets the clocks run.
    pub fn pass(&mut self, micros: u64) {
        let before = self.tick();
        self.micros += micros;
        let ms = i64::try_from(self.tick() - before).unwrap_or(0);
        self.wall_ms = (self.wall_ms + ms).min(WALL_MAX);
    }

    /// Sets the wall clock forward or back.
    pub fn step_wall(&mut self, ms: i64) {
        self.wall_ms = (self.wall_ms + ms).clamp(WALL_MIN, WALL_MAX);
    }

    /// The clock's tick.
    pub fn tick(&self) -> u64 {
        self.micros / 1000
    }

    /// The tick that deadlines are compared with, and whether the clock is beyond its start.
    pub fn engine(&self) -> (u64, bool) {
        match self.frozen_at {
            Some(tick) => (tick, false),
            None => (self.tick() - self.behind, self.micros % 1000 > 0),
        }
    }

    /// Ticks that engine time is behind the clock; `None` while it stands still.
    pub fn behind(&self) -> Option<u64> {
        self.frozen_at.is_none().then_some(self.behind)
    }

    /// Wall time in milliseconds.
    pub fn wall_ms(&self) -> i64 {
        self.wall_ms
    }

    /// Stops engine time.
    pub fn freeze(&mut self) {
        if self.frozen_at.is_none() {
            self.command(&[b"EXPIRY".to_vec(), b"FREEZE".to_vec()]);
            self.frozen_at = Some(self.tick() - self.behind);
        }
    }

    /// Lets engine time go on.
    pub fn resume(&mut self) {
        if let Some(tick) = self.frozen_at.take() {
            self.command(&[b"EXPIRY".to_vec(), b"RESUME".to_vec()]);
            self.behind = self.tick() - tick;
        }
    }

    /// Every shard expires at most `budget` keys; true when none has any left that are due.
    pub fn expire(&mut self, budget: u32) -> bool {
        let mut done = true;
        for shard in 0..self.keyspace.shards() {
            let time = self.time();
            let progress = self.keyspace.expire(&mut self.seat, shard, time, budget);
            done &= !progress.backlog;
        }
        done
    }

    /// Expires all that is due.
    pub fn expire_all(&mut self) {
        for _ in 0..10_000 {
            if self.expire(64) {
                return;
            }
        }
        panic!("expiry never ends");
    }

    /// Maintains every shard.
    pub fn maintain(&mut self, budget: u32) {
        for shard in 0..self.keyspace.shards() {
            self.keyspace.maintain(&mut self.seat, shard, budget);
        }
    }

    /// Takes a step, whatever a call answers.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Call(call) => {
                self.command(&call.words(self.wall_ms));
            }
            Step::Moment(us) => self.pass((*us).into()),
            Step::Advance(ms) => self.pass(u64::from(*ms) * 1000),
            Step::Sleep(s) => self.pass(u64::from(*s) * 1_000_000),
            Step::StepWall(ms) => self.step_wall((*ms).into()),
            Step::Expire(budget) => {
                self.expire(u32::from(*budget) + 1);
            }
            Step::Maintain(budget) => self.maintain((*budget).into()),
            Step::Freeze => self.freeze(),
            Step::Resume => self.resume(),
        }
    }

    /// Events published since the last call.
    pub fn events(&self) -> Vec<tidewheel_keyspace::Event> {
        let mut events = Vec::new();
        self.keyspace.drain_events(&mut |event| events.push(event));
        assert!(!self.keyspace.events_pending());
        events
    }

    /// Sends a command and reads its reply.
    pub fn command(&mut self, words: &[Vec<u8>]) -> Reply {
        let mut bytes = Writer::new(Protocol::Resp2);
        bytes.array(words.len());
        for word in words {
            bytes.bulk(word);
        }
        let mut replies = self.bytes(bytes.as_bytes());
        assert_eq!(replies.len(), 1, "one command, one reply: {replies:?}");
        replies.remove(0)
    }

    /// Sends bytes, whatever they are, and reads the replies of the commands in them.
    ///
    /// A command that only a server can run is answered by nobody.
    pub fn bytes(&mut self, mut bytes: &[u8]) -> Vec<Reply> {
        let mut replies = Vec::new();
        loop {
            match self.parser.parse(bytes, &Limits::DEFAULT) {
                Ok(Parsed::Incomplete { .. }) => break,
                Err(error) => {
                    replies.push(Reply::Error(error.to_string()));
                    break;
                }
                Ok(Parsed::Complete { consumed }) => {
                    let args = self.parser.args(bytes);
                    if !args.is_empty() {
                        let time = self.time();
                        let mut out = Writer::new(self.protocol);
                        let (seat, session) = (&mut self.seat, &mut self.session);
                        run(&self.keyspace, seat, session, time, args, &mut out);
                        if !out.is_empty() {
                            replies.push(only_reply(&out, args));
                        }
                    }
                    bytes = &bytes[consumed..];
                }
            }
        }
        // The bytes after an error or an unfinished command are gone, as the connection would be.
        self.parser = Parser::new();
        replies
    }

    fn time(&self) -> Time {
        let tick = self.tick();
        let wall_offset_ms = self.wall_ms - i64::try_from(tick).unwrap_or(i64::MAX);
        Time {
            tick,
            micros: (self.micros % 1000) as u32,
            wall_offset_ms,
        }
    }
}

fn run(
    keyspace: &Keyspace,
    seat: &mut Seat,
    session: &mut Session,
    time: Time,
    args: Args<'_>,
    out: &mut Writer,
) {
    match resolve(args) {
        Err(error) => error.write(out),
        Ok(row) => match row.handler {
            Handler::Host => {}
            _ => keyspace.execute(seat, row, session, time, args, out),
        },
    }
}

/// The reply in `out`, which must hold exactly one.
fn only_reply(out: &Writer, args: Args<'_>) -> Reply {
    match Reply::read(out.as_bytes()) {
        Ok(Some((reply, used))) if used == out.len() => reply,
        other => panic!(
            "{args:?} answered {other:?}: {}",
            out.as_bytes().escape_ascii()
        ),
    }
}
