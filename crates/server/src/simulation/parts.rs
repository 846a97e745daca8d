//! Commands over very many names are run in parts: others are served in between, and the client's
//! replies stay in order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidewheel_resp::{Args, Reply};

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;
use crate::loop_handle::inbox::Target;
use crate::pubsub::subscriptions::SubscriptionKind;
use crate::time::clock;

const NAMES: usize = 5_000;

/// A part takes a third of a millisecond.
fn price(args: Args<'_>) -> Duration {
    match args[0].ends_with(b"SUBSCRIBE") || matches!(&args[0], b"RESET" | b"WATCH" | b"PUBSUB") {
        true => Duration::from_micros(300),
        false => Duration::ZERO,
    }
}

fn rig() -> Rig {
    let rig = Rig::new(1, Settings::default());
    rig.server.observer.set_cost(price);
    rig
}

fn name(i: usize) -> String {
    format!("name:{i:05}")
}

/// A command that names all channels.
fn many(command: &str) -> Vec<u8> {
    let names: Vec<String> = (0..NAMES).map(name).collect();
    let words = names.iter().map(String::as_bytes);
    let all: Vec<&[u8]> = std::iter::once(command.as_bytes()).chain(words).collect();
    bulk(&all)
}

/// The confirmations of a command, in RESP2; so many subscriptions of others the client has
/// besides.
fn confirmed(word: &str, counts: impl Iterator<Item = usize>) -> Vec<u8> {
    let confirm = |(i, count)| {
        let (len, name) = (word.len(), name(i));
        format!("*3\r\n${len}\r\n{word}\r\n$10\r\n{name}\r\n:{count}\r\n")
    };
    counts.enumerate().map(confirm).collect::<String>().into()
}

fn turn_us(rig: &mut Rig) -> u64 {
    let began = clock::micros(rig.server.clock.now());
    rig.turn(0);
    clock::micros(rig.server.clock.now()) - began
}

fn channels(rig: &Rig) -> usize {
    rig.server.hub.counts().0
}

/// Lets turns pass until a command over many names is about half done.
fn run_half(rig: &mut Rig) {
    let began = channels(rig);
    for _ in 0..6 {
        rig.turn(0);
    }
    let now = channels(rig);
    assert!(began.abs_diff(now) > NAMES / 5, "it has begun");
    assert!((1..NAMES).contains(&now), "it is not done");
}

/// A million channels in one call held the loop for two seconds.
#[test]
fn others_are_served_and_keys_expire_while_a_client_subscribes_to_very_many_channels() {
    for command in ["SUBSCRIBE", "UNSUBSCRIBE", "UNSUBSCRIBE of all", "RESET"] {
        let mut rig = rig();
        let [greedy, other, listener] = [(); 3].map(|()| rig.connect(0));
        rig.ask(&other, b"CONFIG SET notify-keyspace-events Ex\r\n");
        rig.ask(&listener, b"PSUBSCRIBE *:expired\r\n");
        if command != "SUBSCRIBE" {
            rig.ask(&greedy, &many("SUBSCRIBE"));
        }
        rig.ask(&other, b"SET k v PX 5\r\n");
        greedy.send(&match command {
            "RESET" => b"RESET\r\n".to_vec(),
            "UNSUBSCRIBE of all" => b"UNSUBSCRIBE\r\n".to_vec(),
            command => many(command),
        });
        greedy.send(b"PING\r\n");
        let mut turns = 0;
        let mut expired_in = 0;
        let mut replies = Vec::new();
        while !replies.ends_with(b"PONG\r\n") && !replies.ends_with(b"pong\r\n$0\r\n\r\n") {
            other.send(b"PING\r\n");
            let took = turn_us(&mut rig);
            assert!(took <= 1_300, "{command}: {took} us");
            assert_eq!(other.take(), b"+PONG\r\n", "{command}: in turn {turns}");
            if listener.take().ends_with(b"k\r\n") {
                expired_in = turns;
            }
            replies.extend(greedy.take());
            turns += 1;
            assert!(turns < 100, "{command}");
        }
        assert!(
            (1..turns - 1).contains(&expired_in),
            "{expired_in} of {turns}"
        );
        let rest: &[u8] = match command {
            "SUBSCRIBE" => b"*2\r\n$4\r\npong\r\n$0\r\n\r\n",
            "RESET" => b"+RESET\r\n+PONG\r\n",
            _ => b"+PONG\r\n",
        };
        let expected = match command {
            "SUBSCRIBE" => confirmed("subscribe", 1..=NAMES),
            "RESET" => Vec::new(),
            _ => confirmed("unsubscribe", (0..NAMES).rev()),
        };
        assert!(replies == [&expected, rest].concat(), "{command}");
    }
}

/// The replies and messages that a client has got, each as its last words.
fn told(peer: &Peer) -> Vec<String> {
    let (bytes, mut told, mut at) = (peer.take(), Vec::new(), 0);
    while let Some((reply, used)) = Reply::read(&bytes[at..]).expect("replies") {
        at += used;
        let parts = match reply {
            Reply::Push(parts) | Reply::Array(parts) => parts,
            other => vec![other],
        };
        let text = |part: &Reply| match part {
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Integer(n) => n.to_string(),
            other => format!("{other:?}"),
        };
        told.push(parts.iter().map(text).collect::<Vec<_>>().join(" "));
    }
    assert_eq!(at, bytes.len(), "replies are whole");
    told
}

#[test]
fn messages_arrive_between_the_confirmations_of_a_command_over_many_names() {
    for hello in ["HELLO 2\r\n", "HELLO 3\r\n"] {
        let mut rig = rig();
        let (greedy, speaker) = (rig.connect(0), rig.connect(0));
        rig.ask(&greedy, hello.as_bytes());
        rig.ask(&greedy, b"SUBSCRIBE before\r\n");
        greedy.send(&many("SUBSCRIBE"));
        greedy.send(b"UNSUBSCRIBE name:00001\r\n");
        run_half(&mut rig);
        let last = name(NAMES - 1);
        for (channel, receivers) in [("before", ":1"), ("name:00000", ":1"), (&last, ":0")] {
            speaker.send(format!("PUBLISH {channel} m\r\n").as_bytes());
            rig.turn(0);
            assert_eq!(speaker.take(), format!("{receivers}\r\n").into_bytes());
        }
        rig.settle();
        let told = told(&greedy);
        let place = |text: &str| told.iter().position(|line| line == text);
        let first = place("message before m").expect("it came");
        let second = place("message name:00000 m").expect("it came");
        assert!(place("subscribe name:00000 2") < Some(first) && first < second);
        assert!(second < told.len() - 2, "the command was not at its end");
        let ours = told
            .iter()
            .filter(|line| line.starts_with("subscribe name"));
        let expected = (0..NAMES).map(|i| format!("subscribe {} {}", name(i), i + 2));
        assert!(ours.cloned().eq(expected));
        assert_eq!(told.last().unwrap(), "unsubscribe name:00001 5000");
        assert_eq!(told.len(), NAMES + 2 + 1, "{hello}");
    }
}

#[test]
fn a_reply_that_is_skipped_is_that_of_the_whole_command() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"HELLO 3\r\n");
    rig.ask(&peer, b"CLIENT REPLY SKIP\r\n");
    peer.send(&many("SUBSCRIBE"));
    peer.send(b"PING\r\nCLIENT REPLY OFF\r\n");
    peer.send(&many("UNSUBSCRIBE"));
    peer.send(b"PING\r\nCLIENT REPLY ON\r\n");
    rig.settle();
    let told = told(&peer);
    assert_eq!(told.len(), NAMES + 1 + NAMES + 1);
    assert_eq!(told[NAMES], "Simple(\"PONG\")");
    assert_eq!(
        told[2 * NAMES],
        format!("unsubscribe {} 0", name(NAMES - 1))
    );
}

#[test]
fn whoever_leaves_while_it_subscribes_leaves_nothing_behind() {
    for way in ["reset", "unwritable", "killed", "half-closed"] {
        let mut rig = rig();
        let (leaver, other) = (rig.connect(0), rig.connect(0));
        leaver.send(&many("SUBSCRIBE"));
        run_half(&mut rig);
        let held = rig.server.loops[0].client_memory.load(Ordering::Relaxed);
        assert!(
            held > NAMES * 200 / 5,
            "{held} bytes: its names are counted"
        );
        match way {
            "reset" => leaver.wire.borrow_mut().reset(),
            "unwritable" => leaver.wire.borrow_mut().break_writes(),
            "killed" => other.send(b"CLIENT KILL TYPE pubsub\r\n"),
            _ => leaver.end(),
        }
        rig.settle();
        assert!(leaver.is_closed(), "{way}");
        assert_eq!(rig.server.hub.counts(), (0, 0), "{way}");
        let told = told(&leaver).len();
        assert_eq!(told == NAMES, way == "half-closed", "{way}: {told}");
        let sum = rig.server.loops[0].client_memory.load(Ordering::Relaxed);
        assert!(sum < 10_000, "{way}: {sum} bytes");
    }
}

#[test]
fn what_has_arrived_of_a_command_counts_for_its_client_until_it_is_done() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let command = many("UNSUBSCRIBE");
    peer.send(&command);
    rig.turn(0);
    let held = rig.server.loops[0].client_memory.load(Ordering::Relaxed);
    assert!(held >= command.len() + NAMES * 8, "{held} bytes");
    rig.settle();
    let held = rig.server.loops[0].client_memory.load(Ordering::Relaxed);
    assert!(held < 10_000, "{held} bytes");
}

#[test]
fn a_pause_lets_a_command_go_on_that_has_begun_and_holds_the_next_one() {
    let mut rig = rig();
    let (peer, boss) = (rig.connect(0), rig.connect(0));
    peer.send(&many("SUBSCRIBE"));
    peer.send(b"PING\r\n");
    run_half(&mut rig);
    boss.send(b"CLIENT PAUSE 1000 ALL\r\n");
    rig.settle();
    assert_eq!(told(&peer).len(), NAMES);
    rig.advance(Duration::from_secs(2));
    rig.settle();
    assert_eq!(told(&peer), ["pong "]);
}

#[test]
fn whoever_quits_behind_a_command_over_many_names_gets_all_of_its_replies() {
    let mut rig = rig();
    let peer = rig.connect(0);
    peer.send(&many("SUBSCRIBE"));
    peer.send(b"QUIT\r\nPING\r\n");
    rig.settle();
    assert!(peer.is_closed());
    assert_eq!(told(&peer).len(), NAMES + 1);
    assert_eq!(rig.server.hub.counts(), (0, 0));
}

#[test]
fn a_transaction_that_subscribes_to_many_channels_is_whole() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"MULTI\r\n");
    rig.ask(&peer, &many("SUBSCRIBE"));
    rig.ask(&peer, b"UNSUBSCRIBE\r\n");
    rig.ask(&peer, b"PING\r\n");
    peer.send(b"EXEC\r\n");
    rig.turn(0);
    rig.turn(0);
    assert!(peer.take().ends_with(b":0\r\n+PONG\r\n"));
}

#[test]
fn whoever_does_not_read_its_confirmations_subscribes_to_no_more() {
    let mut rig = rig();
    let peer = rig.connect(0);
    peer.wire.borrow_mut().narrow(0, usize::MAX);
    let long = |i: usize| format!("{i:01000}");
    let names: Vec<String> = (0..NAMES).map(long).collect();
    let words = names.iter().map(String::as_bytes);
    let all: Vec<&[u8]> = [&b"SUBSCRIBE"[..]].into_iter().chain(words).collect();
    peer.send(&bulk(&all));
    rig.settle();
    assert!(
        (1_000..1_500).contains(&channels(&rig)),
        "{}",
        channels(&rig)
    );
    peer.wire.borrow_mut().narrow(usize::MAX, usize::MAX);
    rig.settle();
    assert_eq!((channels(&rig), told(&peer).len()), (NAMES, NAMES));
}

/// With a million channels PUBSUB CHANNELS held the loop for 0.17 s.
#[test]
fn others_are_served_while_a_client_asks_for_very_many_channels() {
    const CHANNELS: usize = 60_000;
    let mut rig = rig();
    let [asker, other] = [(); 2].map(|()| rig.connect(0));
    for i in 0..CHANNELS {
        let name = format!("{}:{i:05}", ["even", "odd"][i % 2]);
        let target = Target { id: 99, slot: 99 };
        rig.server
            .hub
            .subscribe(SubscriptionKind::Channel, name.as_bytes(), 0, target);
    }
    asker.send(b"PUBSUB CHANNELS odd*\r\nPING\r\n");
    let (mut turns, mut reply) = (0, Vec::new());
    while !reply.ends_with(b"+PONG\r\n") {
        other.send(b"PING\r\n");
        rig.turn(0);
        assert_eq!(other.take(), b"+PONG\r\n", "in turn {turns}");
        reply.extend(asker.take());
        turns += 1;
        assert!(turns < 100);
    }
    assert!(turns > 3, "{turns}");
    let Ok(Some((Reply::Array(names), used))) = Reply::read(&reply) else {
        unreachable!("an array");
    };
    let mut names: Vec<_> = names.into_iter().map(|name| format!("{name:?}")).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(
        (names.len(), &reply[used..]),
        (CHANNELS / 2, &b"+PONG\r\n"[..])
    );
    rig.ask(&asker, b"MULTI\r\n");
    rig.ask(&asker, b"PUBSUB CHANNELS even*\r\n");
    asker.send(b"EXEC\r\n");
    rig.turn(0);
    assert!(
        asker.take().starts_with(b"*1\r\n*30000\r\n"),
        "a transaction is whole"
    );
}

/// Each name may be as long as an argument.
#[test]
fn long_names_make_parts_of_few() {
    let mut rig = rig();
    let (greedy, other) = (rig.connect(0), rig.connect(0));
    let names: Vec<String> = (0..100).map(|i| format!("{i:050000}")).collect();
    let words = names.iter().map(String::as_bytes);
    let all: Vec<&[u8]> = [&b"SUBSCRIBE"[..]].into_iter().chain(words).collect();
    greedy.send(&bulk(&all));
    let mut turns = 0;
    while channels(&rig) < 100 {
        other.send(b"PING\r\n");
        let (before, took) = (channels(&rig), turn_us(&mut rig));
        assert!(took <= 1_300, "{took} us");
        assert!(channels(&rig) - before <= 10);
        assert_eq!(other.take(), b"+PONG\r\n");
        turns += 1;
        assert!(turns < 200);
    }
}

/// WATCH of half a million keys held its event loop for a second.
#[test]
fn others_are_served_while_a_client_begins_to_watch_very_many_keys() {
    for (key, outcome) in [("name:00000", "*-1\r\n"), ("other", "*1\r\n+PONG\r\n")] {
        let mut rig = rig();
        let (greedy, other) = (rig.connect(0), rig.connect(0));
        greedy.send(&many("WATCH"));
        greedy.send(b"MULTI\r\nPING\r\nEXEC\r\n");
        let mut replies = Vec::new();
        let mut turns = 0;
        while replies.is_empty() {
            other.send(format!("SET {key} v\r\n").as_bytes());
            let took = turn_us(&mut rig);
            assert!(took <= 1_300, "{took} us");
            assert_eq!(other.take(), b"+OK\r\n");
            replies.extend(greedy.take());
            turns += 1;
        }
        assert!((5..100).contains(&turns), "{turns}");
        rig.settle();
        replies.extend(greedy.take());
        let text = String::from_utf8_lossy(&replies);
        assert_eq!(text, format!("+OK\r\n+OK\r\n+QUEUED\r\n{outcome}"));
    }
}
