//! Commands that wait for keys, in virtual time: who is served, in which order, and that each is served once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tidewheel_keyspace::{Served, Session, Ticket, Unfinished, Waiter, resolve};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::common::{Rig, show};
use crate::oracle::Dice;

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
            Some(Unfinished::Walk(_)) => panic!("no walk"),
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
            Served::Reply(ticket, reply) => (ticket, reply),
            Served::Retry(ticket) => {
                let mut out = Writer::new(ticket.protocol);
                let ran = rig
                    .keyspace
                    .retry(&mut rig.seat, rig.time, &ticket, &mut out);
                if !ran {
                    return None;
                }
                (ticket, out.into_vec())
            }
        };
        assert!(!ticket.end(), "it is claimed");
        let id = ticket.waiter.id;
        self.tickets.remove(&id).expect("served once");
        rig.keyspace.leave(&mut rig.seat, rig.time, &ticket);
        Some((id, shown(&reply)))
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

/// Keys of different shards: the first is tried until one is found.
fn keys_of_two_shards(crowd: &mut Crowd) -> String {
    for i in 0..100 {
        crowd.rig.run("DEL from");
        let to = format!("to{i}");
        crowd.call(1, &format!("BLMOVE from {to} LEFT RIGHT 0"));
        crowd.rig.run("RPUSH from a");
        let back = matches!(crowd.rig.told.served.lock().unwrap()[0], Served::Retry(_));
        assert_eq!(crowd.served(), one(1, "'a'"));
        crowd.rig.run(&format!("DEL {to}"));
        if back {
            return to;
        }
    }
    panic!("all keys are in one shard");
}

#[test]
fn a_move_to_another_shard_keeps_its_place_until_it_has_run() {
    let mut crowd = Crowd::new();
    let to = keys_of_two_shards(&mut crowd);
    crowd.call(1, &format!("BLMOVE from {to} LEFT RIGHT 0"));
    crowd.call(2, "BLPOP from 0");
    crowd.rig.run("RPUSH from a");
    // Somebody else is quicker than its own thread.
    assert_eq!(crowd.rig.run("LPOP from"), "'a'");
    assert_eq!(crowd.served(), []);
    crowd.rig.run("RPUSH from b c");
    let served = crowd.served();
    assert_eq!(served, [one(1, "'b'"), one(2, "['from' 'c']")].concat());
    assert_eq!(crowd.rig.run(&format!("LRANGE {to} 0 -1")), "['b']");
}

#[test]
fn those_behind_a_move_are_served_if_its_client_leaves() {
    let mut crowd = Crowd::new();
    let to = keys_of_two_shards(&mut crowd);
    crowd.call(1, &format!("BLMOVE from {to} LEFT RIGHT 0"));
    crowd.call(2, "BLPOP from 0");
    crowd.rig.run("RPUSH from a");
    assert!(crowd.leave(1), "it was handed back, and has not run");
    assert_eq!(crowd.served(), one(2, "['from' 'a']"));
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

/// Each list is a queue of elements and a queue of clients; one of the two is empty.
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
