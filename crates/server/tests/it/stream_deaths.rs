//! Checks that a group delivers each entry to one consumer, and that readers without a group miss
//! none, while clients die that wait.
//!
//! Four connections add numbered entries. Sixty consumers wait for them in one group, each under a
//! name of its own, and one of four dies in the end: its socket is closed, or it is killed. In the
//! end each entry is pending for the consumer that received it. For a consumer that died, up to a
//! call's more may be pending: they were on their way. Readers without a group read on from the
//! last id that they have seen, and compare all that they have got with the stream.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{scope, yield_now};

use crate::common::{Client, Reply, Server, text};

const ADDERS: u64 = 4;
const ADDITIONS: u64 = 1_500;
const THREADS: u64 = 6;
/// Entries of one call, at most.
const MOST: usize = 3;

/// One consumer or reader, and the ids that it got.
#[derive(Default)]
struct Life {
    name: String,
    got: Vec<String>,
    died: bool,
}

fn items(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) => items,
        other => panic!("{other:?}"),
    }
}

/// The ids of the entries of one stream.
fn ids(reply: &Reply) -> Vec<String> {
    let entries = match reply {
        Reply::Null => return Vec::new(),
        reply => &items(&items(reply)[0])[1],
    };
    let ids = items(entries).iter();
    ids.map(|entry| text(&items(entry)[0])).collect()
}

fn add(port: u16, adder: u64) {
    let mut client = Client::connect(port);
    for number in 0..ADDITIONS {
        let value = format!("{adder}:{number}");
        if number % 7 == 0 {
            client.call(&["MULTI"]);
            client.call(&["XADD", "s", "*", "n", &value]);
            client.call(&["XADD", "s", "*", "n", &value]);
            assert_eq!(items(&client.call(&["EXEC"])).len(), 2);
        } else {
            client.call(&["XADD", "s", "*", "n", &value]);
        }
        if number % 16 == 0 {
            yield_now();
        }
    }
}

/// One thread's consumers, one after the other.
fn consume(port: u16, lives: &AtomicU64, done: &AtomicBool) -> Vec<Life> {
    let (mut all, mut admin) = (Vec::new(), Client::connect(port));
    while !done.load(Relaxed) {
        let number = lives.fetch_add(1, Relaxed);
        let mut life = Life {
            name: format!("c{number}"),
            ..Life::default()
        };
        let mut client = Client::connect(port);
        let id = match client.call(&["CLIENT", "ID"]) {
            Reply::Integer(id) => id.to_string(),
            other => panic!("{other:?}"),
        };
        let call = |block| {
            let most = ["1", "2", "3"][number as usize % MOST];
            let group = ["XREADGROUP", "GROUP", "g", &life.name, "COUNT", most];
            crate::common::command(&[&group[..], &["BLOCK", block, "STREAMS", "s", ">"]].concat())
        };
        for _ in 0..1 + number % 9 {
            client.send(&call("20"));
            let got = ids(&client.read());
            life.got.extend(got);
        }
        if number.is_multiple_of(4) {
            life.died = true;
            client.send(&call("0"));
            if number % 8 == 4 {
                admin.call(&["CLIENT", "KILL", "ID", &id]);
            }
        }
        all.push(life);
    }
    all
}

/// Reads all entries, in order.
fn read(port: u16, done: &AtomicBool) -> Vec<String> {
    let (mut all, mut client, mut last) = (Vec::new(), Client::connect(port), "0".to_owned());
    loop {
        let call = [
            "XREAD", "COUNT", "9", "BLOCK", "20", "STREAMS", "none", "s", "$", &last,
        ];
        let over = done.load(Relaxed);
        let got = ids(&client.call(&call));
        match got.last() {
            Some(id) => last.clone_from(id),
            None if over => return all,
            None => {}
        }
        all.extend(got);
    }
}

#[test]
fn a_group_delivers_once_and_readers_miss_nothing_while_those_who_wait_die() {
    let server = Server::start(&[]);
    let (mut admin, port) = (server.client(), server.port);
    admin.call(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]);
    let (lives, added, done) = (
        AtomicU64::new(0),
        AtomicBool::new(false),
        AtomicBool::new(false),
    );
    let (consumers, readers) = scope(|scope| {
        let consumers: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| consume(port, &lives, &done)))
            .collect();
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(|| read(port, &added))).collect();
        let adders: Vec<_> = (0..ADDERS)
            .map(|adder| scope.spawn(move || add(port, adder)))
            .collect();
        adders
            .into_iter()
            .for_each(|adder| adder.join().expect("it adds"));
        added.store(true, Relaxed);
        let readers: Vec<_> = readers
            .into_iter()
            .map(|one| one.join().expect("it reads"))
            .collect();
        // All that is left is delivered, if anybody waits.
        crate::common::eventually("all is delivered", || {
            let groups = admin.call(&["XINFO", "GROUPS", "s"]);
            let group = items(&items(&groups)[0]);
            (group[11] == Reply::Integer(0)).then_some(())
        });
        done.store(true, Relaxed);
        let consumers = consumers
            .into_iter()
            .flat_map(|one| one.join().expect("it reads"));
        (consumers.collect::<Vec<_>>(), readers)
    });
    let all = admin.call(&["XRANGE", "s", "-", "+"]);
    let all: Vec<String> = items(&all)
        .iter()
        .map(|entry| text(&items(entry)[0]))
        .collect();
    assert_eq!(
        all.len() as u64,
        ADDERS * (ADDITIONS + ADDITIONS.div_ceil(7))
    );
    for got in readers {
        assert_eq!(got, all, "in order, without a gap");
    }
    let (mut delivered, mut died) = (BTreeSet::new(), 0);
    for life in consumers {
        let call = ["XPENDING", "s", "g", "-", "+", "100000", &life.name];
        let pending = admin.call(&call);
        let pending: BTreeSet<String> = (items(&pending).iter())
            .map(|entry| text(&items(entry)[0]))
            .collect();
        let got: BTreeSet<String> = life.got.iter().cloned().collect();
        assert_eq!(got.len(), life.got.len(), "{} got one twice", life.name);
        assert!(
            got.is_subset(&pending),
            "{} got what is not its own",
            life.name
        );
        let unheard = pending.len() - got.len();
        assert!(
            unheard <= if life.died { MOST } else { 0 },
            "{unheard} for {}",
            life.name
        );
        died += usize::from(life.died);
        for id in pending {
            assert!(delivered.insert(id), "delivered twice");
        }
    }
    assert_eq!(delivered.len(), all.len(), "all is delivered");
    assert!(died > 10, "{died} have died");
}
