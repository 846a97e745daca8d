//! `maxmemory` is met while nobody writes, as soon as something may go.

use std::time::Duration;

use tidewheel_keyspace::Policy;

use super::rig::{Rig, bulk};
use crate::config::Settings;

#[test]
fn a_key_that_becomes_evictable_is_evicted_in_the_next_tick() {
    let settings = Settings {
        max_memory_policy: Policy::VolatileTtl,
        ..Settings::default()
    };
    let mut rig = Rig::new(1, settings);
    let peer = rig.connect(0);
    for key in [b"a", b"b"] {
        assert_eq!(rig.ask(&peer, &bulk(&[b"SET", key, b"v"])), b"+OK\r\n");
    }
    // Nothing may go, and the loop finds rest all the same.
    let lowered = rig.ask(&peer, &bulk(&[b"CONFIG", b"SET", b"maxmemory", b"1"]));
    assert_eq!(lowered, b"+OK\r\n");
    assert_eq!(rig.ask(&peer, b"EXISTS a b\r\n"), b":2\r\n");
    assert_eq!(rig.ask(&peer, b"EXPIRE a 1000\r\n"), b":1\r\n");
    assert_eq!(rig.turn(0), Some(rig.server.clock.now().tick + 1));
    rig.advance(Duration::from_millis(1));
    rig.settle();
    assert_eq!(rig.ask(&peer, b"EXISTS a b\r\n"), b":1\r\n");
    // The remaining key may not be evicted. After one more attempt the loop does not wake for it
    // again.
    rig.advance(Duration::from_millis(1));
    rig.turn(0);
    let until = rig.turn(0).expect("nothing to do");
    assert!(until > rig.server.clock.now().tick + 1);
}
