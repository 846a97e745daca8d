//! What is invalid stands behind the answers of commands that have waited: within a bound.

use tidewheel_resp::Reply;

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;
use crate::loops::loop_core::INVALID_MAX;

const WAITERS: usize = 1_000;

/// A thousand clients of loop 0 wait for a stream, the last of which tracks keys `key…`. Another
/// client is on loop 1.
fn crowded() -> (Rig, Vec<Peer>, Peer) {
    let mut rig = Rig::new(2, Settings::default());
    let waiters: Vec<_> = (0..WAITERS).map(|_| rig.connect(0)).collect();
    let tracker = waiters.last().expect("many");
    tracker.send(b"HELLO 3\r\nCLIENT TRACKING ON BCAST PREFIX key\r\n");
    for waiter in &waiters {
        waiter.send(b"XREAD BLOCK 0 STREAMS s $\r\n");
    }
    rig.settle();
    waiters.iter().for_each(|waiter| drop(waiter.take()));
    let writer = rig.connect(1);
    (rig, waiters, writer)
}

/// Loop 1 writes: an entry for which all wait, and then these keys.
fn write(rig: &mut Rig, writer: &Peer, keys: &[String]) {
    writer.send(b"XADD s 1-0 f v\r\n");
    for key in keys {
        writer.send(&bulk(&[b"SET", key.as_bytes(), b"v"]));
    }
    // Its replies are those to SET, and an id.
    while writer.wire.borrow().sent() < keys.len() * "+OK\r\n".len() + "$3\r\n1-0\r\n".len() {
        rig.turn(1);
    }
}

/// What the tracker has heard: whether its answer came first, and the keys that are invalid.
fn heard(bytes: &[u8]) -> Vec<String> {
    let (mut at, mut heard) = (0, Vec::new());
    while let Some((reply, used)) = Reply::read(&bytes[at..]).expect("replies") {
        at += used;
        heard.push(match reply {
            Reply::Push(parts) => match &parts[1] {
                Reply::Array(keys) => match &keys[..] {
                    [Reply::Bulk(key)] => String::from_utf8_lossy(key).into_owned(),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            },
            Reply::Map(_) => "the answer".to_owned(),
            other => panic!("{other:?}"),
        });
    }
    heard
}

fn expected(keys: &[String]) -> Vec<String> {
    let answer = std::iter::once("the answer".to_owned());
    answer.chain(keys.iter().cloned()).collect()
}

fn answered(waiters: &[Peer]) -> usize {
    let has_any = |waiter: &&Peer| waiter.wire.borrow().sent() > 0;
    waiters.iter().filter(has_any).count()
}

#[test]
fn little_that_is_invalid_waits_until_the_answers_before_it_were_given_in_portions() {
    let (mut rig, waiters, writer) = crowded();
    let keys: Vec<String> = (0..40).map(|i| format!("key:{i}")).collect();
    write(&mut rig, &writer, &keys);
    rig.turn(0);
    assert_eq!(
        answered(&waiters),
        128,
        "others have their turn between them"
    );
    let (left, bytes) = rig.loops[0].answers_left();
    assert_eq!(left, WAITERS - 128);
    assert!((1_000..INVALID_MAX / 10).contains(&bytes), "{bytes}");
    rig.settle();
    let tracker = waiters.last().expect("many");
    assert_eq!(heard(&tracker.take()), expected(&keys));
    assert_eq!(rig.loops[0].answers_left(), (0, 0));
}

/// It was unbounded once: each write added to what waited.
#[test]
fn much_that_is_invalid_has_all_answers_before_it_given_at_once() {
    let (mut rig, waiters, writer) = crowded();
    let long = "x".repeat(100_000);
    let keys: Vec<String> = (0..40).map(|i| format!("key:{long}{i}")).collect();
    write(&mut rig, &writer, &keys[..8]);
    rig.turn(0);
    assert_eq!(answered(&waiters), 128, "it is not much yet");
    let (left, bytes) = rig.loops[0].answers_left();
    assert_eq!(left, WAITERS - 128);
    assert!((8 * long.len()..INVALID_MAX).contains(&bytes), "{bytes}");
    for key in &keys[8..] {
        writer.send(&bulk(&[b"SET", key.as_bytes(), b"v"]));
        rig.turn(1);
    }
    rig.turn(0);
    assert_eq!(answered(&waiters), WAITERS, "all of them in one turn");
    assert_eq!(rig.loops[0].answers_left(), (0, 0), "and nothing is kept");
    rig.settle();
    let tracker = waiters.last().expect("many");
    assert_eq!(
        heard(&tracker.take()),
        expected(&keys),
        "in order, and none is missing"
    );
}
