//! Keyspace events reach their listeners whatever becomes of the client that caused them.

use tidewheel_keyspace::NotifyFlags;

use super::rig::{Rig, bulk};
use crate::config::Settings;

#[test]
fn events_of_a_client_that_breaks_off_wait_for_nobody() {
    let settings = Settings {
        notify: NotifyFlags::parse(b"E$").expect("two classes"),
        ..Settings::default()
    };
    let mut rig = Rig::new(1, settings);
    let listener = rig.connect(0);
    rig.ask(&listener, b"SUBSCRIBE __keyevent@0__:set\r\n");
    let peer = rig.connect(0);
    // More than one read takes, so that some commands have run when the next read fails.
    let set = |i| bulk(&[b"SET", format!("{i:04}").as_bytes(), b"v"]);
    peer.send(&(0..4_000).flat_map(set).collect::<Vec<_>>());
    peer.wire.borrow_mut().break_off();
    rig.turn(0);
    rig.turn(0);
    assert!(peer.is_closed());
    let heard = listener.take();
    let last = heard.windows(4).rev().find_map(|key| {
        let digits = std::str::from_utf8(key).ok()?;
        digits.parse::<usize>().ok()
    });
    let observer = rig.connect(0);
    let size = rig.ask(&observer, b"DBSIZE\r\n");
    let ran = last.map_or(0, |last| last + 1);
    assert!(ran > 1_000, "{ran}");
    assert_eq!(size, format!(":{ran}\r\n").as_bytes(), "an event for each");
}
