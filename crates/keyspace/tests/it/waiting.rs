//! Commands that wait for keys, in virtual time: who is served, in which order, and that each is
//! served once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tidewheel_keyspace::{
    Begun, PAUSED, Served, Session, Ticket, Unfinished, Waiter, Watching, resolve,
};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::common::{Rig, call_with, show};
use tidewheel_oracle::Dice;

/// Clients that wait, by id.
struct Crowd {
    rig: Rig,
    tickets: BTreeMap<u64, Arc<Ticket>>,
}

impl Crowd {
    fn new() -> Self {
        let (rig, tickets) = (Rig::new(), BTreeMap::new());
        Self { rig, tickets }
    }

    /// A client calls a command. `None` if it waits.
    fn call(&mut self, id: u64, line: &str) -> Option<String> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let args = Args::from_slices(&words);
        let row = resolve(args).expect("a command");
        let (owner, slot) = (id as usize, 0);
        let mut session = Session {
            waiter: Some(Waiter { owner, slot, id }),
            ..Session::default()
        };
        let (rig, mut out) = (&mut self.rig, Writer::new(Protocol::Resp2));
        let begun = rig
            .keyspace
            .begin(&mut rig.seat, row, &mut session, rig.time, args, &mut out);
        match begun {
            None => Some(shown(out.as_bytes())),
            Some(Unfinished::Waits(ticket)) => {
                self.tickets.insert(id, ticket);
                None
            }
            Some(other) => panic!("{other:?}"),
        }
    }

    /// Who was served since the last call, and with what. Those that were handed back run first.
    fn served(&mut self) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        loop {
            let served = std::mem::take(&mut *self.rig.told.served.lock().unwrap());
            if served.is_empty() {
                return all;
            }
            for one in served {
                all.extend(self.take(one));
            }
        }
    }

    fn take(&mut self, served: Served) -> Option<(u64, String)> {
        let rig = &mut self.rig;
        let (ticket, reply) = match served {
            Served::Reply { ticket, reply, .. } => (ticket, reply),
            Served::Retry(ticket) => {
                let mut out = ticket.writer();
                let (seat, time) = (&mut rig.seat, rig.time);
                rig.keyspace.retry(seat, time, &ticket, &mut out)?;
                (ticket, out)
            }
        };
        assert!(!ticket.end(), "it is claimed");
        let id = ticket.waiter.id;
        self.tickets.remove(&id).expect("served once");
        rig.keyspace.leave(&mut rig.seat, rig.time, &ticket);
        Some((id, shown(reply.as_bytes())))
    }

    /// Runs lines as one transaction that takes so many milliseconds.
    fn transact(&mut self, lines: &[&str], ms: u64) {
        let words: Vec<Vec<&[u8]>> = lines
            .iter()
            .map(|line| line.split_whitespace().map(str::as_bytes).collect())
            .collect();
        let calls = words
            .iter()
            .map(|words| Args::from_slices(words))
            .map(|args| (resolve(args).expect("a command"), args));
        let (mut session, mut out) = (Session::default(), Writer::default());
        let (nothing, rig) = (Watching::default(), &mut self.rig);
        rig.seat.enter();
        let begun =
            rig.keyspace
                .transaction(&mut rig.seat, rig.time, 0, calls.clone(), &nothing, false);
        let Begun::Runs(mut transaction) = begun.expect("there is room") else {
            panic!("nothing is watched");
        };
        for (row, args) in calls {
            transaction.run(row, &mut session, args, &mut out);
        }
        rig.time.tick += ms;
        transaction.end(&mut rig.seat, rig.time, &mut out);
        rig.seat.leave();
    }

    /// A client goes away. False if it was served.
    fn leave(&mut self, id: u64) -> bool {
        let Some(ticket) = self.tickets.get(&id) else {
            return false;
        };
        if !ticket.end() {
            return false;
        }
        let (ticket, rig) = (self.tickets.remove(&id).expect("it waits"), &mut self.rig);
        rig.keyspace.leave(&mut rig.seat, rig.time, &ticket);
        true
    }
}

fn shown(reply: &[u8]) -> String {
    let whole = reply.len();
    let (reply, len) = Reply::read(reply).expect("valid").expect("whole");
    assert_eq!(len, whole, "one reply");
    show(&reply)
}

fn one(id: u64, reply: &str) -> Vec<(u64, String)> {
    vec![(id, reply.to_owned())]
}

#[test]
fn who_came_first_is_served_first() {
    let mut crowd = Crowd::new();
    for id in 1..=3 {
        assert_eq!(crowd.call(id, "BLPOP l other 0"), None);
    }
    assert_eq!(crowd.rig.keyspace.waiting(), 3);
    crowd.rig.run("RPUSH l a");
    assert_eq!(crowd.served(), one(1, "['l' 'a']"));
    crowd.rig.run("RPUSH other b");
    assert_eq!(crowd.served(), one(2, "['other' 'b']"));
    crowd.rig.run("RPUSH l c d");
    assert_eq!(crowd.served(), one(3, "['l' 'c']"));
    assert_eq!(crowd.rig.run("LRANGE l 0 -1"), "['d']");
    assert_eq!(crowd.rig.keyspace.waiting(), 0);
    assert_eq!(
        crowd.call(1, "BLPOP other l 0").as_deref(),
        Some("['l' 'd']")
    );
}

/// A positive time-out that an `f64` cannot tell from 0 was taken for none.
#[test]
fn only_a_time_out_of_zero_is_for_ever() {
    let mut crowd = Crowd::new();
    for (id, (text, ms)) in [
        ("1e-400", Some(1)),
        ("0x1p-1080", Some(1)),
        ("0.0001", Some(1)),
        ("0.0011", Some(2)),
        ("0", None),
        ("0e-400", None),
        ("-1e-400", None),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id as u64;
        assert_eq!(crowd.call(id, &format!("BLPOP k {text}")), None, "{text}");
        assert_eq!(crowd.tickets[&id].ms, ms, "{text}");
        crowd.leave(id);
    }
    for (text, error) in [
        ("1e400", "-ERR timeout is out of range"),
        ("-1e400", "-ERR timeout is negative"),
        ("1e5000", "-ERR timeout is not a float or out of range"),
        ("1e-5000", "-ERR timeout is not a float or out of range"),
    ] {
        let reply = crowd.call(9, &format!("BLPOP k {text}"));
        assert_eq!(reply.as_deref(), Some(error), "{text}");
    }
}

/// A wait for 500,000 keys held an event loop for two seconds.
#[test]
fn a_command_waits_for_so_many_keys_at_most() {
    let mut crowd = Crowd::new();
    let names: Vec<String> = (0..10_001).map(|i| format!("l{i}")).collect();
    let too_many = format!("BLPOP {} 0", names.join(" "));
    let refused = "-ERR too many keys to wait for: at most 10000 for one command";
    assert_eq!(crowd.call(1, &too_many).as_deref(), Some(refused));
    assert_eq!(
        crowd.call(1, &format!("BLPOP {} 0", names[1..].join(" "))),
        None
    );
    // Whoever need not wait is served.
    crowd.call(2, "RPUSH l0 v");
    assert_eq!(crowd.call(2, &too_many).as_deref(), Some("['l0' 'v']"));
}

#[test]
fn one_push_serves_a_thousand_in_their_order() {
    let mut crowd = Crowd::new();
    for id in 0..1_000 {
        let line = if id % 2 == 0 {
            "BLPOP k 0"
        } else {
            "BLMPOP 0 2 other k LEFT"
        };
        crowd.call(id, line);
    }
    let elements: Vec<String> = (0..1_200).map(|n| n.to_string()).collect();
    crowd.rig.run(&format!("RPUSH k {}", elements.join(" ")));
    let served: Vec<u64> = crowd.served().into_iter().map(|(id, _)| id).collect();
    assert_eq!(served, Vec::from_iter(0..1_000));
    assert_eq!(crowd.rig.run("LLEN k"), ":200");
}

#[test]
fn who_has_left_takes_nothing() {
    let mut crowd = Crowd::new();
    crowd.call(1, "BLPOP l 0");
    crowd.call(2, "BLPOP l 0");
    assert!(crowd.leave(1));
    crowd.rig.run("RPUSH l a b");
    assert!(!crowd.leave(2), "it is served already");
    assert_eq!(crowd.served(), one(2, "['l' 'a']"));
    assert_eq!(crowd.rig.run("LLEN l"), ":1");
}

#[test]
fn a_served_command_tells_its_events_in_their_order() {
    let mut crowd = Crowd::new();
    crowd.rig.notify("KEA");
    crowd.call(1, "BRPOP l 0");
    crowd.rig.run("RPUSH l a");
    assert_eq!(crowd.rig.events(), ["0:rpush:l", "0:rpop:l", "0:del:l"]);
}

/// The shard of a key.
fn shard_of(key: &str) -> usize {
    let mut rig = Rig::new();
    rig.run(&format!("SET {key} v PX 1000"));
    let mut shards = 0..rig.keyspace.shards();
    let shard = shards.find(|shard| rig.keyspace.next_deadline(*shard) != u64::MAX);
    shard.expect("it has a deadline")
}

/// A key of a shard that is locked before that of `from`.
fn key_before(from: &str) -> String {
    let mut keys = (0..1_000).map(|i| format!("to{i}"));
    let key = keys.find(|key| shard_of(key) < shard_of(from));
    key.expect("there are several shards")
}

/// Runs a line while somebody else has the shard of `busy`.
fn run_beside(crowd: &mut Crowd, busy: &str, line: &str) {
    let keyspace = &crowd.rig.keyspace;
    let (words, time) = ([b"EXISTS", busy.as_bytes()], crowd.rig.time);
    let args = Args::from_slices(&words);
    let calls = [(resolve(args).expect("a command"), args)].into_iter();
    let (mut seat, mut own) = (keyspace.seat(), keyspace.seat());
    let nothing = Watching::default();
    seat.enter();
    own.enter();
    let begun = keyspace.transaction(&mut seat, time, 0, calls, &nothing, false);
    let Begun::Runs(other) = begun.expect("there is room") else {
        panic!("nothing is watched");
    };
    call_with(keyspace, &mut own, time.tick, 0, line);
    other.end(&mut seat, time, &mut Writer::default());
}

#[test]
fn a_move_to_another_shard_is_served_at_once_if_nobody_has_it() {
    let mut crowd = Crowd::new();
    let to = key_before("from");
    for (from, to) in [("from", &*to), (&*to, "from")] {
        crowd.call(1, &format!("BLMOVE {from} {to} LEFT RIGHT 0"));
        crowd.call(2, &format!("BLPOP {to} 0"));
        crowd.rig.run(&format!("RPUSH {from} a"));
        let served = crowd.rig.told.served.lock().unwrap().len();
        assert_eq!(served, 2, "both are served by the push");
        let expected = [one(1, "'a'"), one(2, &format!("['{to}' 'a']"))].concat();
        assert_eq!(crowd.served(), expected);
    }
}

#[test]
fn a_move_to_a_busy_shard_keeps_its_place_until_it_has_run() {
    let mut crowd = Crowd::new();
    let to = key_before("from");
    crowd.call(1, &format!("BLMOVE from {to} LEFT RIGHT 0"));
    crowd.call(2, "BLPOP from 0");
    run_beside(&mut crowd, &to, "RPUSH from a");
    // Somebody else is quicker than its own thread.
    assert_eq!(crowd.rig.run("LPOP from"), "'a'");
    assert_eq!(crowd.served(), []);
    run_beside(&mut crowd, &to, "RPUSH from b c");
    let served = crowd.served();
    assert_eq!(served, [one(1, "'b'"), one(2, "['from' 'c']")].concat());
    assert_eq!(crowd.rig.run(&format!("LRANGE {to} 0 -1")), "['b']");
}

#[test]
fn those_behind_a_move_are_served_if_its_client_leaves() {
    let mut crowd = Crowd::new();
    let to = key_before("from");
    crowd.call(1, &format!("BLMOVE from {to} LEFT RIGHT 0"));
    crowd.call(2, "BLPOP from 0");
    run_beside(&mut crowd, &to, "RPUSH from a");
    assert!(crowd.leave(1), "it was handed back, and has not run");
    assert_eq!(crowd.served(), one(2, "['from' 'a']"));
}

#[test]
fn nobody_is_served_within_a_transaction_that_walks_over_all_keys() {
    for walk in ["DBSIZE", "KEYS *", "RANDOMKEY", "SCAN 0"] {
        let mut crowd = Crowd::new();
        crowd.call(1, "BLPOP l 0");
        crowd.transact(&["RPUSH l a", walk, "DEL l"], 0);
        assert_eq!(crowd.served(), [], "{walk}");
        crowd.rig.run("RPUSH l b");
        assert_eq!(crowd.served(), one(1, "['l' 'b']"), "{walk}");
    }
}

#[test]
fn a_pause_holds_back_who_would_be_served() {
    let mut crowd = Crowd::new();
    let to = key_before("from");
    for id in 1..=3 {
        crowd.call(id, "BLPOP k 0");
    }
    crowd.call(4, &format!("BLMOVE from {to} LEFT RIGHT 0"));
    crowd.call(5, "BLPOP other 0");
    run_beside(&mut crowd, &to, "RPUSH from a");
    crowd.rig.keyspace.gate().set(PAUSED);
    crowd.transact(&["RPUSH k 1 2"], 0);
    assert_eq!(crowd.served(), []);
    assert_eq!(crowd.rig.run("LLEN k"), ":2");
    assert!(crowd.leave(1));
    let held = |crowd: &mut Crowd, id| {
        let rig = &mut crowd.rig;
        rig.keyspace.holds_back(&mut rig.seat, &crowd.tickets[&id])
    };
    assert!(held(&mut crowd, 2) && held(&mut crowd, 3) && held(&mut crowd, 4));
    assert!(!held(&mut crowd, 5), "its key holds nothing");
    let rig = &mut crowd.rig;
    let alone = rig.seat.exclusive();
    rig.keyspace.serve_held_back(&alone, rig.time);
    rig.keyspace.gate().clear(PAUSED);
    drop(alone);
    let served = crowd.served();
    let first_two = [one(2, "['k' '1']"), one(3, "['k' '2']")].concat();
    // Its own thread has looked at the move during the pause: after the others were pushed.
    assert_eq!(served, [first_two, one(4, "'a'")].concat());
}

#[test]
fn dead_keys_serve_nobody() {
    let mut crowd = Crowd::new();
    crowd.rig.run("RPUSH other a");
    crowd.rig.run("PEXPIRE other 5");
    crowd.call(1, "BLPOP l 0");
    crowd.rig.pass(5);
    crowd.rig.run("RENAME other l");
    crowd.rig.run("COPY other l");
    assert_eq!(crowd.served(), []);
    crowd.rig.run("RPUSH l b");
    assert_eq!(crowd.served(), one(1, "['l' 'b']"));
}

/// The elements of a list, after moves into it were served.
fn moved(crowd: &mut Crowd) -> String {
    crowd.served();
    let all = crowd.rig.run("LRANGE all 0 -1");
    crowd.rig.run("FLUSHALL");
    all
}

#[test]
fn keys_are_served_in_the_order_in_which_they_were_pushed() {
    let mut crowd = Crowd::new();
    let orders: [[usize; 5]; 3] = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]];
    for (order, begins) in orders.into_iter().zip(["", "SWAPDB 5 6", "FLUSHDB"]) {
        for key in 0..5 {
            crowd.call(key, &format!("BLMOVE k{key} all RIGHT RIGHT 0"));
        }
        let pushes = order.map(|key| format!("RPUSH k{key} {key}"));
        let mut lines: Vec<&str> = pushes.iter().map(String::as_str).collect();
        if !begins.is_empty() {
            lines.insert(0, begins);
        }
        crowd.transact(&lines, 0);
        let expected: Vec<String> = order.iter().map(|key| format!("'{key}'")).collect();
        assert_eq!(moved(&mut crowd), format!("[{}]", expected.join(" ")));
    }
}

#[test]
fn a_key_counts_from_when_it_first_holds_what_is_waited_for() {
    let mut crowd = Crowd::new();
    for (first, order) in [
        ("SET k0 text", "['1' '0']"),
        ("ZADD k0 1 m", "['1' '0']"),
        ("LPUSH k0 gone", "['0' '1']"),
    ] {
        for key in 0..2 {
            crowd.call(key, &format!("BLMOVE k{key} all RIGHT RIGHT 0"));
        }
        crowd.transact(&[first, "RPUSH k1 1", "DEL k0", "RPUSH k0 0"], 0);
        assert_eq!(moved(&mut crowd), order, "{first}");
    }
}

#[test]
fn a_key_that_a_served_command_fills_is_served_after_those_that_were_pushed_before() {
    let mut crowd = Crowd::new();
    crowd.call(1, "BLMOVE k1 k2 RIGHT RIGHT 0");
    crowd.call(2, "BLMOVE k2 all RIGHT RIGHT 0");
    crowd.call(3, "BLMOVE k3 all RIGHT RIGHT 0");
    crowd.transact(&["RPUSH k1 1", "RPUSH k3 3"], 0);
    assert_eq!(moved(&mut crowd), "['3' '1']");
}

#[test]
fn of_several_keys_that_hold_something_the_first_argument_is_taken() {
    let mut crowd = Crowd::new();
    crowd.call(1, "BLPOP x y 0");
    crowd.call(2, "BLPOP y x 0");
    crowd.transact(&["RPUSH y 1", "RPUSH x 2"], 0);
    let served = [one(1, "['x' '2']"), one(2, "['y' '1']")].concat();
    assert_eq!(crowd.served(), served);
}

#[test]
fn a_key_that_dies_while_the_transaction_runs_serves_nobody() {
    let mut crowd = Crowd::new();
    for lines in [
        vec!["RPUSH k a", "PEXPIRE k 50"],
        vec![
            "RPUSH k a",
            "PEXPIRE k 50",
            "FLUSHDB",
            "RPUSH k b",
            "PEXPIRE k 50",
        ],
    ] {
        crowd.call(1, "BLPOP k 0");
        crowd.transact(&lines, 50);
        assert_eq!(crowd.served(), []);
        assert_eq!(crowd.rig.run("EXISTS k"), ":0");
        crowd.transact(&["RPUSH k c", "PEXPIRE k 50"], 49);
        assert_eq!(crowd.served(), one(1, "['k' 'c']"));
    }
}

/// Each list is a queue of elements and a queue of clients; one of the two is empty.
/// A call over a large stream would have run on a thread of its own, where nobody can wait, and
/// would have replied at once.
#[test]
fn a_reader_of_a_large_stream_waits() {
    let mut crowd = Crowd::new();
    for ms in 1..30_000 {
        crowd.rig.run(&format!("XADD s {ms}-0 field value"));
    }
    crowd.rig.run("XGROUP CREATE s g $");
    let lines = [
        "XREAD BLOCK 0 STREAMS s $",
        "XREAD BLOCK 0 STREAMS none s $ 29999-0",
        "XREADGROUP GROUP g c BLOCK 0 STREAMS s >",
        "XREAD BLOCK 0 COUNT 1 STREAMS s 40000",
    ];
    for (id, line) in (0..).zip(lines) {
        assert_eq!(crowd.call(id, line), None, "{line}");
        assert!(!crowd.tickets[&id].is_long(), "{line}");
    }
    crowd.rig.run("XADD s 30000-0 a b");
    let reply = "[['s' [['30000-0' ['a' 'b']]]]]";
    let mut served = crowd.served();
    served.sort_unstable();
    assert_eq!(
        served,
        [one(0, reply), one(1, reply), one(2, reply)].concat()
    );
}

/// Between two portions others have the lock, and a wait may end.
#[test]
fn one_entry_serves_a_thousand_readers_in_portions() {
    let mut crowd = Crowd::new();
    for id in 0..1_000 {
        let line = match id % 3 {
            0 => "XREAD BLOCK 0 STREAMS s $",
            1 => "XREAD BLOCK 0 STREAMS other s 0 0",
            _ => "XREAD BLOCK 0 STREAMS s 5",
        };
        assert_eq!(crowd.call(id, line), None);
    }
    crowd.rig.run("XADD s 3-0 a b");
    let served: BTreeSet<u64> = crowd.served().into_iter().map(|(id, _)| id).collect();
    assert_eq!(served, (0..1_000).filter(|id| id % 3 != 2).collect());
    assert_eq!(crowd.rig.keyspace.waiting(), 333);
    crowd.transact(&["XADD other 1-0 a b", "XADD s 6-0 a b", "BLPOP s 0"], 0);
    assert_eq!(crowd.served().len(), 333);
}

/// The times at which the public server ends it, too.
#[test]
fn a_reader_ends_when_its_group_is_gone() {
    for (change, why) in [
        ("DEL s", "NOGROUP"),
        ("XGROUP DESTROY s g", "NOGROUP"),
        ("SET s text", "WRONGTYPE"),
        ("FLUSHALL", "NOGROUP"),
        ("SWAPDB 0 1", "NOGROUP"),
        ("RENAME s other", "NOGROUP"),
        ("RENAME l s", "WRONGTYPE"),
        ("PEXPIREAT s 1", "NOGROUP"),
    ] {
        let mut crowd = Crowd::new();
        crowd.rig.run("RPUSH l a");
        crowd.rig.run("XGROUP CREATE s g $ MKSTREAM");
        crowd.call(1, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
        crowd.call(2, "XREAD BLOCK 0 STREAMS s $");
        crowd.rig.run(change);
        let served = crowd.served();
        assert_eq!(served.len(), 1, "{change}: {served:?}");
        assert!(
            served[0].0 == 1 && served[0].1.contains(why),
            "{change}: {served:?}"
        );
    }
}

/// Nobody asks for the key: the pass of expiry serves.
#[test]
fn a_reader_ends_when_its_key_expires() {
    let mut crowd = Crowd::new();
    crowd.rig.run("XGROUP CREATE s g $ MKSTREAM");
    crowd.call(1, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    crowd.rig.run("PEXPIRE s 5");
    crowd.rig.time.tick += 5;
    let rig = &mut crowd.rig;
    for shard in 0..rig.keyspace.shards() {
        rig.keyspace.expire(&mut rig.seat, shard, rig.time, 100);
    }
    assert!(crowd.served()[0].1.contains("NOGROUP"));
}

#[test]
fn pops_pushes_and_leavers_agree_with_a_model() {
    const KEYS: u64 = 3;
    let (mut crowd, mut dice) = (Crowd::new(), Dice::new(5));
    let mut elements: Vec<VecDeque<u64>> = vec![VecDeque::new(); KEYS as usize];
    // Clients in the order of their coming, with the two keys that each waits for.
    let mut waiting: VecDeque<(u64, [u64; 2])> = VecDeque::new();
    let mut given = BTreeSet::new();
    for id in 0..20_000 {
        let keys = [dice.below(KEYS), dice.below(KEYS)];
        match dice.below(5) {
            0 | 1 => {
                let got = crowd.call(id, &format!("BLPOP k{} k{} 0", keys[0], keys[1]));
                let first = keys.iter().find(|key| !elements[**key as usize].is_empty());
                let expected = first.map(|key| {
                    let element = elements[*key as usize].pop_front().expect("not empty");
                    assert!(given.insert(element));
                    format!("['k{key}' '{element}']")
                });
                assert_eq!(got, expected);
                if got.is_none() {
                    waiting.push_back((id, keys));
                }
            }
            2 | 3 => {
                let key = keys[0];
                let n = 1 + dice.below(3);
                let pushed: Vec<u64> = (0..n).map(|i| id * 10 + i).collect();
                let words: Vec<String> = pushed.iter().map(u64::to_string).collect();
                crowd.rig.run(&format!("RPUSH k{key} {}", words.join(" ")));
                elements[key as usize].extend(pushed);
                let mut expected = Vec::new();
                while let Some(at) = waiting.iter().position(|(_, keys)| keys.contains(&key))
                    && let Some(element) = elements[key as usize].pop_front()
                {
                    let (client, _) = waiting.remove(at).expect("it is there");
                    assert!(given.insert(element));
                    expected.push((client, format!("['k{key}' '{element}']")));
                }
                assert_eq!(crowd.served(), expected);
            }
            _ => {
                if let Some((id, _)) = waiting.pop_back() {
                    assert!(crowd.leave(id));
                }
            }
        }
        assert_eq!(crowd.rig.keyspace.waiting(), waiting.len());
    }
}
