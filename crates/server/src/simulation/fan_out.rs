//! Messages for many receivers: the copies stay within the limits of each receiver and of all
//! clients.

use super::rig::{Peer, Rig, bulk};
use crate::config::{OutputLimit, Settings};

const MESSAGE: usize = 1 << 20;

/// A server whose clients together may hold a few messages.
fn rig_with_memory_for_four() -> Rig {
    let settings = Settings {
        max_memory_clients: 4 * MESSAGE as u64,
        ..Settings::default()
    };
    Rig::new(2, settings)
}

/// Hears everything that is published to the channel.
fn listener(rig: &mut Rig) -> Peer {
    let peer = rig.connect(0);
    rig.ask(&peer, b"SUBSCRIBE news\r\n");
    peer
}

/// Hears it without reading.
fn silent_listener(rig: &mut Rig) -> Peer {
    let peer = listener(rig);
    peer.wire.borrow_mut().narrow(0, usize::MAX);
    peer
}

/// Publishes from the other loop. The listeners' loop has not looked at it yet.
fn publish(rig: &mut Rig, speaker: &Peer, times: usize) {
    let words = [&b"PUBLISH"[..], b"news", &vec![b'x'; MESSAGE]];
    for _ in 0..times {
        speaker.send(&bulk(&words));
        for _ in 0..40 {
            rig.turn(1);
        }
        assert!(speaker.take().starts_with(b":"), "it is published");
    }
}

fn copied(rig: &mut Rig) -> usize {
    let all = rig.loops[0].connections();
    all.map(|conn| conn.output.capacity()).sum()
}

/// All clients together may hold 16 MB. One message of 4 MB to 500 silent subscribers took 1.9 GB
/// before anybody was closed.
#[test]
fn a_message_for_many_silent_subscribers_is_not_copied_far_beyond_what_all_clients_may_hold() {
    let mut rig = rig_with_memory_for_four();
    let all: Vec<Peer> = (0..40).map(|_| silent_listener(&mut rig)).collect();
    let speaker = rig.connect(1);
    publish(&mut rig, &speaker, 1);
    rig.loops[0].take_inbox();
    let copied = copied(&mut rig);
    assert!(copied <= 6 * MESSAGE, "{copied} bytes are copied");
    rig.settle();
    let open = all.iter().filter(|peer| !peer.is_closed()).count();
    assert!((2..5).contains(&open), "{open} are left");
    assert_eq!(rig.server.totals().evicted_clients as usize, 40 - open);
}

#[test]
fn a_subscriber_that_reads_is_not_closed_for_copies_that_others_do_not_read() {
    let mut rig = rig_with_memory_for_four();
    let readers: Vec<(Peer, Peer)> = (0..10)
        .map(|_| (listener(&mut rig), silent_listener(&mut rig)))
        .collect();
    let speaker = rig.connect(1);
    for _ in 0..3 {
        publish(&mut rig, &speaker, 1);
        rig.settle();
    }
    for (reader, _) in &readers {
        assert!(!reader.is_closed());
        assert!(reader.take().len() > 3 * MESSAGE);
    }
}

#[test]
fn a_subscriber_that_reads_is_not_closed_for_messages_that_come_all_at_once() {
    let mut settings = Settings::default();
    settings.output_limits.pubsub = OutputLimit {
        hard: 2 * MESSAGE as u64,
        soft: 0,
        soft_seconds: 0,
    };
    let mut rig = Rig::new(2, settings);
    let (reader, silent) = (listener(&mut rig), silent_listener(&mut rig));
    let speaker = rig.connect(1);
    publish(&mut rig, &speaker, 20);
    rig.settle();
    assert!(silent.is_closed());
    assert!(!reader.is_closed());
    assert!(reader.take().len() > 20 * MESSAGE);
    assert_eq!(rig.server.totals().output_limit_closes, 1);
}

/// Another loop has chosen the client to be closed, and the client's own loop is still copying
/// messages.
#[test]
fn a_client_that_is_about_to_be_closed_gets_no_more_copies() {
    let mut rig = rig_with_memory_for_four();
    silent_listener(&mut rig);
    silent_listener(&mut rig);
    let speaker = rig.connect(1);
    publish(&mut rig, &speaker, 1);
    let condemned = rig.server.clients.kill_biggest(0);
    assert_eq!(condemned.len(), 2, "subscriptions are held");
    rig.loops[0].take_inbox();
    assert_eq!(copied(&mut rig), 0);
}
