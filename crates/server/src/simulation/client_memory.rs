//! The server knows how much memory each client holds, and closes the one that holds most.

use std::time::Duration;

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;

const LIMIT: u64 = 1 << 20;

fn rig() -> Rig {
    let settings = Settings {
        max_memory_clients: LIMIT,
        ..Settings::default()
    };
    Rig::new(2, settings)
}

/// All but the end of a long command.
fn unfinished(bytes: usize) -> Vec<u8> {
    let mut part = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", bytes + 10).into_bytes();
    part.resize(part.len() + bytes, b'x');
    part
}

/// A client that holds this many bytes of a command which does not end. They take up to twice as
/// much memory.
fn holder(rig: &mut Rig, owner: usize, bytes: usize) -> Peer {
    let peer = rig.connect(owner);
    peer.send(&unfinished(bytes));
    rig.turn(owner);
    peer
}

/// A new tick of one loop, while the other is stuck.
fn tick(rig: &mut Rig, index: usize) {
    rig.advance(Duration::from_millis(1));
    rig.turn(index);
}

fn held(rig: &Rig) -> usize {
    let clients = rig.server.clients.snapshot();
    let held = clients.iter().map(|c| c.facts.lock().holds.total());
    held.sum()
}

#[test]
fn a_loop_closes_none_of_its_own_clients_when_another_loop_has_a_bigger_one() {
    let mut rig = Rig::new(2, Settings::default());
    let small: Vec<Peer> = (0..3).map(|_| holder(&mut rig, 0, 100_000)).collect();
    let big = holder(&mut rig, 1, 2 << 20);
    let limit = |settings: &mut Settings| {
        settings.max_memory_clients = LIMIT;
        Ok::<(), ()>(())
    };
    assert_eq!(rig.server.config.change(limit, |_| ()), Ok(()));
    for _ in 0..20 {
        tick(&mut rig, 0);
    }
    assert!(!big.is_closed(), "its loop has had no turn yet");
    tick(&mut rig, 1);
    assert!(big.is_closed());
    rig.settle();
    assert!(small.iter().all(|peer| !peer.is_closed()));
    assert_eq!(rig.server.totals().evicted_clients, 1);
}

#[test]
fn only_as_many_clients_are_closed_as_necessary_the_biggest_first() {
    let mut rig = rig();
    let sizes = [500_000, 400_000, 300_000, 200_000, 100_000];
    let peers: Vec<Peer> = sizes
        .iter()
        .enumerate()
        .map(|(i, bytes)| holder(&mut rig, i % 2, *bytes))
        .collect();
    for index in [0, 1].repeat(20) {
        tick(&mut rig, index);
    }
    let left: Vec<bool> = peers.iter().map(|peer| !peer.is_closed()).collect();
    let first_open = left.iter().position(|open| *open).expect("some are left");
    assert!(left[first_open..].iter().all(|open| *open), "{left:?}");
    assert!(first_open > 0 && held(&rig) as u64 <= LIMIT, "{left:?}");
}

#[test]
fn a_client_with_no_evict_is_not_closed() {
    let mut rig = rig();
    let kept = rig.connect(0);
    assert_eq!(rig.ask(&kept, b"CLIENT NO-EVICT ON\r\n"), b"+OK\r\n");
    kept.send(&unfinished(900_000));
    let other = holder(&mut rig, 1, 800_000);
    for index in [0, 1].repeat(5) {
        tick(&mut rig, index);
    }
    assert_eq!((kept.is_closed(), other.is_closed()), (false, true));
}

#[test]
fn subscriptions_and_what_the_parser_knows_are_held() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    let names: Vec<String> = (0..1_000).map(|i| format!("channel:{i}")).collect();
    let mut words = vec![&b"SUBSCRIBE"[..]];
    words.extend(names.iter().map(|name| name.as_bytes()));
    rig.ask(&peer, &bulk(&words));
    assert!((150_000..600_000).contains(&held(&rig)), "{}", held(&rig));
    rig.ask(&peer, b"UNSUBSCRIBE\r\n");
    assert_eq!(held(&rig), 0);
    let arguments = 20_000;
    let part = [b"*30000\r\n".to_vec(), b"$0\r\n\r\n".repeat(arguments)].concat();
    rig.ask(&peer, &part);
    assert!(held(&rig) >= part.len() + 8 * arguments, "{}", held(&rig));
    let mut handles = rig.server.loops.iter();
    let sum = handles
        .next()
        .expect("one loop")
        .client_memory
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(sum, held(&rig), "the loop's sum is the same");
}

#[test]
fn the_names_that_a_client_gives_itself_are_held() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    let long = vec![b'x'; 100_000];
    let wishes: [&[&[u8]]; 4] = [
        &[b"CLIENT", b"SETNAME", &long],
        &[b"HELLO", b"2", b"SETNAME", &long[..90_000]],
        &[b"CLIENT", b"SETINFO", b"LIB-NAME", &long[..5_000]],
        &[b"CLIENT", b"SETINFO", b"lib-ver", &long[..600]],
    ];
    for (wish, sum) in wishes.iter().zip([100_000, 90_000, 95_000, 95_600]) {
        rig.ask(&peer, &bulk(wish));
        assert_eq!((held(&rig), told(&rig)), (sum, sum));
    }
    rig.ask(&peer, b"RESET\r\n");
    assert_eq!((held(&rig), told(&rig)), (5_600, 5_600));
}

#[test]
fn names_that_are_too_long_close_their_client() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let other = holder(&mut rig, 1, 10_000);
    rig.ask(
        &peer,
        &bulk(&[b"CLIENT", b"SETNAME", &vec![b'x'; LIMIT as usize]]),
    );
    tick(&mut rig, 0);
    rig.settle();
    assert_eq!((peer.is_closed(), other.is_closed()), (true, false));
}

fn told(rig: &Rig) -> usize {
    let loops = rig.server.loops.iter();
    loops
        .map(|handle| {
            handle
                .client_memory
                .load(std::sync::atomic::Ordering::Relaxed)
        })
        .sum()
}

#[test]
fn when_the_limit_is_lowered_one_look_closes_all_clients_beyond_it() {
    let mut rig = Rig::new(2, Settings::default());
    let peers: Vec<Peer> = (1..=20)
        .map(|i| holder(&mut rig, i % 2, i * 50_000))
        .collect();
    let asker = rig.connect(0);
    rig.settle();
    let answer = rig.ask(&asker, b"CONFIG SET maxmemory-clients 1mb\r\n");
    assert_eq!(answer, b"+OK\r\n");
    let left: Vec<bool> = peers.iter().map(|peer| !peer.is_closed()).collect();
    let open = left.iter().filter(|open| **open).count();
    assert!(left[..open].iter().all(|open| *open), "{left:?}");
    assert!(open > 2 && told(&rig) as u64 <= LIMIT, "{open} are open");
    assert_eq!(rig.server.totals().evicted_clients as usize, 20 - open);
}

#[test]
fn a_loop_does_not_sleep_while_clients_hold_too_much() {
    let mut rig = rig();
    let peers: Vec<Peer> = (0..8).map(|i| holder(&mut rig, i % 2, 500_000)).collect();
    for index in [0, 1].repeat(3) {
        let until = rig.turn(index);
        assert!(
            until.is_none_or(|tick| tick <= rig.loops[index].now() + 1)
                || told(&rig) as u64 <= LIMIT
        );
    }
    tick(&mut rig, 0);
    rig.settle();
    assert!(told(&rig) as u64 <= LIMIT, "{}", told(&rig));
    let open = peers.iter().filter(|peer| !peer.is_closed()).count();
    assert!(open > 0, "no more than it takes are closed");
}

#[test]
fn loops_sleep_when_nobody_may_be_closed() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"CLIENT NO-EVICT ON\r\n");
    peer.send(&unfinished(2 << 20));
    rig.settle();
    tick(&mut rig, 0);
    tick(&mut rig, 1);
    rig.settle();
    let later = Some(rig.loops[0].now() + 10);
    assert!(rig.turn(0) > later && rig.turn(1) > later);
    assert!(!peer.is_closed());
}

#[test]
fn a_client_that_switches_no_evict_off_can_be_closed() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"CLIENT NO-EVICT ON\r\n");
    peer.send(&[b"CLIENT NO-EVICT OFF\r\n".to_vec(), unfinished(2 << 20)].concat());
    rig.settle();
    tick(&mut rig, 0);
    rig.settle();
    assert!(peer.is_closed());
}

/// The address space for the rest of an announced command was counted as held: 256 bytes for each
/// byte that had arrived.
#[test]
fn bytes_that_were_announced_and_have_not_arrived_are_not_counted_as_held() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    let mut part = b"*2\r\n$4\r\nECHO\r\n$268435456\r\n".to_vec();
    part.resize(part.len() + (100 << 10), b'x');
    rig.ask(&peer, &part);
    rig.ask(&peer, &vec![b'x'; 100 << 10]);
    let came = part.len() + (100 << 10);
    assert!((came..came + 4096).contains(&held(&rig)), "{}", held(&rig));
    assert_eq!(told(&rig), held(&rig));
}

/// The buffer of a long command was kept for the few bytes that followed it.
#[test]
fn what_follows_a_long_command_does_not_keep_its_memory() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    let long = bulk(&[b"SET", b"large", &vec![b'x'; 8 << 20]]);
    assert_eq!(
        rig.ask(&peer, &[&long[..], b"*1\r\n$4\r\n"].concat()),
        b"+OK\r\n"
    );
    rig.ask(&peer, b"PI");
    assert!(held(&rig) < 256 << 10, "{}", held(&rig));
    let buffers = rig.loops[0]
        .connections()
        .filter_map(|conn| conn.pending.as_ref());
    assert!(buffers.map(|held| held.bytes.capacity()).sum::<usize>() < 256 << 10);
    assert_eq!(rig.ask(&peer, b"NG\r\n"), b"+PONG\r\n");
}

/// A reply of 3 MB that waits to be read.
fn unread(rig: &mut Rig, owner: usize) -> Peer {
    let peer = rig.connect(owner);
    rig.ask(&peer, &bulk(&[b"SET", b"large", &vec![b'v'; 3 << 20]]));
    peer.wire.borrow_mut().narrow(0, usize::MAX);
    rig.ask(&peer, b"GET large\r\n");
    assert!(held(rig) >= 3 << 20);
    peer
}

#[test]
fn a_client_that_has_read_everything_holds_nothing() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = unread(&mut rig, 0);
    peer.wire.borrow_mut().narrow(2 << 20, usize::MAX);
    rig.settle();
    assert!(held(&rig) >= 1 << 20, "a part is left");
    peer.wire.borrow_mut().narrow(usize::MAX, usize::MAX);
    rig.settle();
    assert_eq!((held(&rig), told(&rig)), (0, 0));
}

#[test]
fn a_subscriber_that_has_read_everything_holds_only_its_subscriptions() {
    let mut rig = Rig::new(1, Settings::default());
    let listener = rig.connect(0);
    rig.ask(&listener, b"SUBSCRIBE news\r\n");
    let before = held(&rig);
    listener.wire.borrow_mut().narrow(0, usize::MAX);
    let other = rig.connect(0);
    rig.ask(&other, &bulk(&[b"PUBLISH", b"news", &vec![b'x'; 2 << 20]]));
    assert!(held(&rig) >= 2 << 20);
    listener.wire.borrow_mut().narrow(usize::MAX, usize::MAX);
    rig.settle();
    assert_eq!((held(&rig), told(&rig)), (before, before));
}

#[test]
fn a_client_that_has_read_everything_is_not_closed_for_what_it_held_before() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = unread(&mut rig, 0);
    peer.wire.borrow_mut().narrow(usize::MAX, usize::MAX);
    rig.settle();
    let asker = rig.connect(0);
    rig.ask(&asker, b"CONFIG SET maxmemory-clients 1mb\r\n");
    tick(&mut rig, 0);
    rig.settle();
    assert!(!peer.is_closed());
}

/// Vectors that doubled held twice what was queued, and the client was closed for it.
#[test]
fn a_transaction_may_queue_nearly_as_much_as_clients_may_hold() {
    for length in [1, 1_000, 90_000] {
        let mut rig = rig();
        let peer = rig.connect(0);
        assert_eq!(rig.ask(&peer, b"MULTI\r\n"), b"+OK\r\n");
        let command = bulk(&[b"SET", b"k", &vec![b'v'; length]]);
        // A copy takes 8 bytes for each argument, and 16 for the command.
        let copy = 4 + length + 3 * 8 + 16;
        for _ in 0..LIMIT as usize * 8 / 10 / copy {
            assert_eq!(rig.ask(&peer, &command), b"+QUEUED\r\n", "{length}");
            assert!(held(&rig) as u64 <= LIMIT);
        }
        tick(&mut rig, 0);
        tick(&mut rig, 1);
        assert!(rig.ask(&peer, b"EXEC\r\n").starts_with(b"*"), "{length}");
    }
}

#[test]
fn a_transaction_in_the_making_never_holds_more_than_clients_may() {
    for length in [1, 1_000, 90_000, 600_000] {
        let mut rig = rig();
        let (peer, other) = (rig.connect(0), rig.connect(1));
        assert_eq!(rig.ask(&peer, b"MULTI\r\n"), b"+OK\r\n");
        let command = bulk(&[b"SET", b"k", &vec![b'v'; length]]);
        let refused = loop {
            let answer = rig.ask(&peer, &command);
            assert!(held(&rig) as u64 <= LIMIT, "{} are held", held(&rig));
            if answer != b"+QUEUED\r\n" {
                break answer;
            }
        };
        let why = b"-ERR the queued commands exceed maxmemory-clients\r\n";
        assert_eq!(refused, why, "{length}");
        assert!(held(&rig) < 100, "nothing of it is kept");
        assert!(rig.ask(&peer, b"EXEC\r\n").starts_with(b"-EXECABORT"));
        assert!(!peer.is_closed() && !other.is_closed());
        // Whoever is never closed for it may go on.
        rig.ask(&peer, b"CLIENT NO-EVICT ON\r\n");
        rig.ask(&peer, b"MULTI\r\n");
        let many = command.repeat(2 + (LIMIT as usize / length).min(1_000));
        assert!(rig.ask(&peer, &many).starts_with(b"+QUEUED\r\n"));
        assert!(!peer.is_closed());
    }
}
