//! Commands as the server runs them: bytes parsed, the row found, the command run, its reply
//! written.

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group};
use tidewheel_keyspace::{Garbage, Hooks, Keyspace, Options, Seat, Session, Time, resolve};
use tidewheel_resp::{Limits, Parsed, Parser, Protocol, Writer};

use crate::input::{LONGEST_TTL, START, order, ttls_ms};

/// What keys hold.
pub(crate) const VALUE: &[u8; 32] = b"a value of two and thirty bytes.";

/// Units of work that a pass of expiry may do.
const BUDGET: u32 = 128;

/// The key of a number, of 16 bytes.
pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

/// A command in the protocol's bytes.
pub(crate) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Writer::new(Protocol::Resp2);
    out.array(words.len());
    for word in words {
        out.bulk(word);
    }
    out.into_vec()
}

/// Nobody sleeps, and nothing large is dropped.
struct Shell;

impl Hooks for Shell {
    fn wake(&self, _shard: usize, _deadline: u64) {}

    fn reclaim(&self, garbage: Garbage) {
        drop(garbage);
    }

    fn stopwatch_ns(&self) -> u64 {
        0
    }
}

/// A keyspace, one connection to it, and what is to be sent.
struct Server {
    keyspace: Keyspace,
    seat: Seat,
    session: Session,
    time: Time,
    parser: Parser,
    out: Writer,
    input: Vec<u8>,
}

impl Server {
    fn new() -> Self {
        let options = Options {
            shards: 1,
            databases: 1,
            seed: 1,
        };
        let keyspace = Keyspace::new(options, Box::new(Shell));
        let mut seat = keyspace.seat();
        // A batch is entered once, whatever is in it.
        seat.enter();
        Self {
            keyspace,
            seat,
            session: Session::default(),
            time: Time {
                tick: START,
                micros: 0,
                wall_offset_ms: 0,
            },
            parser: Parser::new(),
            out: Writer::new(Protocol::Resp2),
            input: Vec::new(),
        }
    }

    /// With a key for each number, and a deadline on it.
    fn loaded() -> Self {
        let mut server = Self::new();
        server.prepare(|key, ttl| command(&[b"SET", key, VALUE, b"PX", ttl]));
        server.run();
        server
    }

    /// Draws up one command for each key, in random order.
    fn prepare(&mut self, command: impl Fn(&[u8], &[u8]) -> Vec<u8>) {
        self.input = order()
            .into_iter()
            .zip(ttls_ms())
            .flat_map(|(number, ttl)| command(&key(number), ttl.to_string().as_bytes()))
            .collect();
    }

    /// Runs what was drawn up.
    #[inline(always)]
    fn run(&mut self) {
        let mut at = 0;
        while at < self.input.len() {
            let rest = &self.input[at..];
            let Ok(Parsed::Complete { consumed }) = self.parser.parse(rest, &Limits::DEFAULT)
            else {
                panic!("the commands are whole and valid");
            };
            let args = self.parser.args(rest);
            let Ok(row) = resolve(args) else {
                panic!("the commands exist");
            };
            let (seat, session) = (&mut self.seat, &mut self.session);
            self.keyspace
                .execute(seat, row, session, self.time, args, &mut self.out);
            black_box(self.out.as_bytes());
            self.out.clear();
            at += consumed;
        }
    }
}

fn to_get() -> Server {
    let mut server = Server::loaded();
    server.prepare(|key, _| command(&[b"GET", key]));
    server
}

fn to_miss() -> Server {
    let mut server = Server::loaded();
    server.prepare(|key, _| command(&[b"GET", &[b"no", &key[2..]].concat()]));
    server
}

fn to_set_new() -> Server {
    let mut server = Server::new();
    server.prepare(|key, _| command(&[b"SET", key, VALUE]));
    server
}

fn to_set_again() -> Server {
    let mut server = to_set_new();
    server.run();
    server
}

/// Each change is recorded. Nobody takes the records: their memory is there already.
fn to_set_again_recorded() -> Server {
    let mut server = to_set_new();
    server.seat.leave();
    server.keyspace.start_recording(&server.seat.exclusive());
    server.seat.enter();
    server.run();
    let mut records = Vec::new();
    server.keyspace.take_records(&mut records);
    // The next ones are written where these were.
    server.keyspace.take_records(&mut records);
    server
}

fn to_set_px_new() -> Server {
    let mut server = Server::new();
    server.prepare(|key, ttl| command(&[b"SET", key, VALUE, b"PX", ttl]));
    server
}

/// The deadlines that are replaced are those of other keys: half of them move, one way or the
/// other.
fn to_set_px_again() -> Server {
    let mut server = Server::loaded();
    server.time.tick += 1_000;
    server.prepare(|key, ttl| command(&[b"SET", key, VALUE, b"PX", ttl]));
    server
}

fn to_expire() -> Server {
    let mut server = Server::loaded();
    server.prepare(|key, _| command(&[b"EXPIRE", key, b"90"]));
    server
}

fn to_delete() -> Server {
    let mut server = Server::loaded();
    server.prepare(|key, _| command(&[b"DEL", key]));
    server
}

#[library_benchmark]
#[bench::get_hit(setup = to_get)]
#[bench::get_miss(setup = to_miss)]
#[bench::set_new(setup = to_set_new)]
#[bench::set_again(setup = to_set_again)]
#[bench::set_again_recorded(setup = to_set_again_recorded)]
#[bench::set_px_new(setup = to_set_px_new)]
#[bench::set_px_again(setup = to_set_px_again)]
#[bench::expire_later(setup = to_expire)]
#[bench::del(setup = to_delete)]
fn runs(mut server: Server) -> Server {
    server.run();
    server
}

// Wakes for each deadline, as the server does.
#[library_benchmark]
#[bench::expiry(setup = Server::loaded)]
fn passes(mut server: Server) -> Server {
    loop {
        let next = server.keyspace.next_deadline(0);
        if next == u64::MAX {
            return server;
        }
        server.time.tick = next;
        while server
            .keyspace
            .expire(&mut server.seat, 0, server.time, BUDGET)
            .backlog
        {}
    }
}

// All are due before the first pass.
#[library_benchmark]
#[bench::expiry_at_once(setup = Server::loaded)]
fn floods(mut server: Server) -> Server {
    server.time.tick += LONGEST_TTL.as_millis() as u64;
    while server
        .keyspace
        .expire(&mut server.seat, 0, server.time, BUDGET)
        .backlog
    {}
    server
}

library_benchmark_group!(name = commands, benchmarks = [runs, passes, floods]);
