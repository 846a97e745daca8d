//! The order of a sorted set costs a bounded number of bytes, however its members came.

use tidewheel_collections::{Change, Limits, NewDeadline, ZSet};
use tidewheel_store::KeyHasher;

const MEMBERS: u64 = 60_000;

/// The set with these scores, and its bytes a member.
fn filled(score: impl Fn(u64) -> f64) -> (ZSet, u64) {
    let hasher = KeyHasher::new(1);
    let limits = Limits {
        entries: 0,
        value: 0,
        integers: 0,
    };
    let change = Change {
        now: 0,
        limits,
        hasher: &hasher,
    };
    let mut set = ZSet::new();
    for i in 0..MEMBERS {
        set.insert(&i.to_be_bytes(), score(i), NewDeadline::None, &change);
    }
    set.get().validate();
    let bytes = set.bytes() as u64 / MEMBERS;
    (set, bytes)
}

#[test]
fn members_that_rise_or_fall_fill_their_leaves() {
    for direction in [1.0, -1.0] {
        let (_, bytes) = filled(|i| direction * i as f64);
        assert!(bytes < 50, "{bytes} bytes a member");
    }
}

#[test]
fn members_at_random_leave_few_gaps() {
    let (mut set, bytes) = filled(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as f64);
    assert!(bytes < 54, "{bytes} bytes a member");
    for i in (0..MEMBERS).filter(|i| i % 10 > 0) {
        set.remove(&i.to_be_bytes());
    }
    while set.maintain(100) {}
    set.get().validate();
    let bytes = set.bytes() as u64 / (MEMBERS / 10);
    assert!(bytes < 80, "{bytes} bytes a member after removals");
}
