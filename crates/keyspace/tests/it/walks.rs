//! Commands that walk over everything give way to others, and answer all the same.

use std::collections::BTreeSet;

use crate::common::{Rig, START, call_at, time};
use tidewheel_keyspace::{
    IncrementalCommand, Keyspace, Options, RAISED, Seat, Session, Unfinished, resolve,
};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

const KEYS: usize = 20_000;

/// A walk, and what has been answered.
pub(crate) struct Walker<'a> {
    keyspace: &'a Keyspace,
    seat: Seat,
    walk: Option<Box<IncrementalCommand>>,
    out: Writer,
}

impl<'a> Walker<'a> {
    pub(crate) fn begin(keyspace: &'a Keyspace, tick: u64, line: &str) -> Self {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let args = Args::from_slices(&words);
        let row = resolve(args).expect("a command");
        let mut walker = Self {
            keyspace,
            seat: keyspace.seat(),
            walk: None,
            out: Writer::new(Protocol::Resp2),
        };
        let (session, now) = (&mut Session::default(), time(tick));
        let begun = keyspace.begin(&mut walker.seat, row, session, now, args, &mut walker.out);
        if let Some(Unfinished::Incremental(walk)) = begun {
            walker.walk = Some(walk);
        }
        walker
    }

    /// One step at that time; the reply after the last.
    fn step(&mut self, tick: u64) -> Option<Reply> {
        if let Some(walk) = self.walk.take() {
            assert!(self.out.is_empty(), "nothing is answered before the end");
            let (seat, out) = (&mut self.seat, &mut self.out);
            self.walk = self.keyspace.go_on(seat, walk, time(tick), out);
        }
        let done = self.walk.is_none();
        done.then(|| {
            let (reply, len) = Reply::read(self.out.as_bytes()).unwrap().expect("whole");
            assert_eq!(len, self.out.len(), "one reply");
            reply
        })
    }

    /// Goes on to the end, doing something between the steps. Returns the steps and the reply.
    pub(crate) fn run(mut self, tick: u64, mut between: impl FnMut()) -> (usize, Reply) {
        let mut steps = 1;
        loop {
            between();
            steps += 1;
            if let Some(reply) = self.step(tick) {
                return (steps, reply);
            }
        }
    }
}

fn filled(shards: usize, options: &str) -> Rig {
    let rig = Rig::with(Options {
        shards,
        databases: 2,
        seed: 5,
    });
    for i in 0..KEYS {
        call_at(&rig.keyspace, START, 0, &format!("SET k{i} v {options}"));
    }
    rig
}

fn strings(reply: Reply) -> Vec<Vec<u8>> {
    let Reply::Array(items) = reply else {
        panic!("{reply:?}")
    };
    let bytes = |item| match item {
        Reply::Bulk(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    items.into_iter().map(bytes).collect()
}

#[test]
fn a_walk_gives_way_within_a_shard_and_meets_each_key_that_stays_once() {
    for shards in [1, 64] {
        let rig = filled(shards, "");
        let keyspace = &rig.keyspace;
        let mut others = 0;
        let walker = Walker::begin(keyspace, START, "KEYS k*");
        let (steps, reply) = walker.run(START, || {
            call_at(keyspace, START, 0, &format!("SET other{others} v"));
            call_at(keyspace, START, 0, &format!("DEL other{}", others / 2));
            others += 1;
        });
        assert!((10..200).contains(&steps), "{steps}");
        let met = strings(reply);
        assert_eq!(met.len(), KEYS);
        assert_eq!(met.into_iter().collect::<BTreeSet<_>>().len(), KEYS);
    }
}

#[test]
fn exclusive_work_runs_between_two_steps_of_a_walk() {
    let rig = filled(64, "");
    let keyspace = &rig.keyspace;
    let mut walker = Walker::begin(keyspace, START, "KEYS *");
    // A loop that stays inside, as in a batch.
    walker.seat.enter();
    let other = std::thread::scope(|scope| {
        let swap = scope.spawn(|| call_at(keyspace, START, 0, "SWAPDB 0 1"));
        while walker.seat.bits() & RAISED == 0 {
            std::thread::yield_now();
        }
        walker.step(START);
        swap.join().expect("it goes through")
    });
    assert_eq!(other, Reply::Simple("OK".to_owned()));
    let (_, reply) = walker.run(START, || {});
    assert!(strings(reply).len() < KEYS, "the rest of it is elsewhere");
}

#[test]
fn a_scan_with_a_huge_count_gives_way_and_answers_one_page() {
    let rig = filled(8, "");
    let walker = Walker::begin(&rig.keyspace, START, "SCAN 0 COUNT 1000000");
    let (steps, reply) = walker.run(START, || {});
    assert!(steps >= 10, "{steps}");
    let Reply::Array(mut parts) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(parts[0], Reply::Bulk(b"0".to_vec()));
    assert_eq!(strings(parts.remove(1)).len(), KEYS);
}

/// Some hundred such keys held a shard's lock, and the turns of all other connections, for seconds.
#[test]
fn a_walk_gives_way_after_each_key_that_takes_long_to_match() {
    const LONG: usize = 200;
    for (line, part) in [("KEYS", 1), ("SCAN 0 COUNT 1000000 MATCH", 2)] {
        let mut rig = filled(1, "");
        for i in 0..LONG {
            rig.run(&format!("SET {}{i} v", "a".repeat(4_000)));
        }
        let pattern = format!("*{}1*", "a".repeat(2_000));
        let walker = Walker::begin(&rig.keyspace, START, &format!("{line} {pattern}"));
        let (steps, reply) = walker.run(START, || {});
        assert!(steps > LONG, "{steps}");
        let Reply::Array(mut parts) = reply else {
            panic!("{reply:?}")
        };
        let keys = if part == 1 {
            Reply::Array(parts)
        } else {
            parts.remove(1)
        };
        let expected = (0..LONG).filter(|i| i.to_string().starts_with('1')).count();
        assert_eq!(strings(keys).len(), expected, "{line}");
    }
}

#[test]
fn a_walk_counts_what_it_has_kept_of_its_command() {
    let rig = filled(1, "");
    for line in ["KEYS", "SCAN 0 COUNT 1000000 MATCH"] {
        let line = format!("{line} {}", "x".repeat(100_000));
        let walker = Walker::begin(&rig.keyspace, START, &line);
        let held = walker.walk.expect("it is long").bytes();
        assert!(held >= 100_000, "{held}");
    }
}

#[test]
fn a_walk_sees_the_time_of_each_step() {
    let rig = filled(8, "PX 5");
    let walker = Walker::begin(&rig.keyspace, START, "KEYS *");
    let (_, reply) = walker.run(START + 5, || {});
    assert!(
        strings(reply).len() < KEYS / 5,
        "only the first step met living keys"
    );
}

#[test]
fn a_search_among_the_dead_in_very_many_shards_gives_way() {
    let rig = filled(1024, "PX 5");
    let dead = START + 5;
    let walker = Walker::begin(&rig.keyspace, dead, "RANDOMKEY");
    let (steps, reply) = walker.run(dead, || {});
    assert!(steps > 100, "{steps}");
    assert_eq!(reply, Reply::Null);
    let walker = Walker::begin(&rig.keyspace, dead, "DBSIZE");
    let (steps, reply) = walker.run(dead, || {});
    assert!(steps >= 8, "{steps}");
    assert!(matches!(reply, Reply::Integer(_)), "{reply:?}");
}
