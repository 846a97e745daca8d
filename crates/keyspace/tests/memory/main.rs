//! What MEMORY USAGE says, beside what was allocated. A target of its own: the allocator counts for
//! all of it.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tidewheel_keyspace::{Garbage, Hooks, Keyspace, Options, Seat, Session, Time, resolve};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Members of all keys of one kind.
const MEMBERS: usize = 100_000;

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

struct Server {
    keyspace: Keyspace,
    seat: Seat,
}

impl Server {
    fn new() -> Self {
        let options = Options {
            shards: 1,
            databases: 1,
            seed: 7,
        };
        let keyspace = Keyspace::new(options, Box::new(Shell));
        let seat = keyspace.seat();
        Self { keyspace, seat }
    }

    fn run(&mut self, words: &[Vec<u8>]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let args = Args::from_slices(&words);
        let row = resolve(args).expect("a command");
        let time = Time {
            tick: 1 << 40,
            micros: 0,
            wall_offset_ms: 0,
        };
        let mut out = Writer::new(Protocol::Resp2);
        let session = &mut Session::default();
        self.keyspace
            .execute(&mut self.seat, row, session, time, args, &mut out);
        Reply::read(out.as_bytes())
            .expect("valid")
            .expect("whole")
            .0
    }

    fn usage(&mut self, key: &[u8]) -> usize {
        let words = ["MEMORY", "USAGE"].map(|word| word.as_bytes().to_vec());
        match self.run(&[&words[..], &[key.to_vec()]].concat()) {
            Reply::Integer(bytes) => bytes as usize,
            other => panic!("{other:?}"),
        }
    }
}

fn allocated() -> usize {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn member(i: usize) -> Vec<u8> {
    format!("m:{i:014}").into_bytes()
}

/// The words that add a member, behind the command and the key.
fn words(kind: &str, i: usize) -> Vec<Vec<u8>> {
    match kind {
        "HSET" => vec![member(i), member(i)],
        "ZADD" => vec![i.to_string().into_bytes(), member(i)],
        _ => vec![member(i)],
    }
}

fn fill(server: &mut Server, kind: &str, key: &[u8], members: usize) {
    let mut call = vec![kind.as_bytes().to_vec(), key.to_vec()];
    if kind == "SET" {
        call.push(vec![b'x'; members]);
    } else {
        call.extend((0..members).flat_map(|i| words(kind, i)));
    }
    server.run(&call);
}

/// What a key of the kind was said to take, and what it took.
fn measure(kind: &str, members: usize) -> (usize, usize) {
    let mut server = Server::new();
    let keys = (MEMBERS / members).max(20);
    let names: Vec<Vec<u8>> = (0..keys).map(member).collect();
    let before = allocated();
    for name in &names {
        fill(&mut server, kind, name, members);
    }
    let took = allocated() - before;
    let said: usize = names.iter().map(|name| server.usage(name)).sum();
    (said / keys, took / keys)
}

#[test]
fn memory_usage_is_within_a_tenth_of_what_was_allocated() {
    let mut wrong = Vec::new();
    for kind in ["HSET", "SADD", "ZADD", "RPUSH"] {
        for members in [10, 50, 100, 1_000, 20_000] {
            let (said, took) = measure(kind, members);
            println!("{kind} {members}: said {said}, took {took}");
            if said.abs_diff(took) * 10 > took {
                wrong.push(format!("{kind} of {members}: said {said}, took {took}"));
            }
        }
    }
    for bytes in [32, 1_000, 5_000, 80_000] {
        let (said, took) = measure("SET", bytes);
        println!("SET {bytes}: said {said}, took {took}");
        // Lengths that an allocator need not round up by much: that of the tests does not round.
        if said.abs_diff(took) * 10 > took {
            wrong.push(format!("SET of {bytes}: said {said}, took {took}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
