//! The keyspace beside the model, step by step.

use crate::model::{Expect, Model};
use crate::op::{Call, Step};
use crate::rig::Rig;
use tidewheel_resp::Reply;

/// Calls of one SCAN; more means that it does not end.
const SCAN_CALLS_MAX: usize = 10_000;

/// Runs the steps on both and compares after each.
pub fn against_model(mut rig: Rig, steps: &[Step]) {
    let mut model = Model::new();
    let mut expired = 0;
    for step in steps {
        match step {
            Step::Call(call) => {
                sync(&mut model, &rig);
                // What is dead but not removed yet is counted, and may be flushed in silence.
                if matches!(call, Call::DbSize | Call::FlushDb | Call::FlushAll) {
                    expire_all(&mut rig, &mut model);
                }
                let words = call.words(rig.wall_ms());
                let expect = model.run(call);
                let reply = rig.command(&words);
                check(&mut rig, call, &words, &expect, reply);
            }
            other => rig.step(other),
        }
        sync(&mut model, &rig);
        check_next_deadline(&rig, &model);
        expired += expired_events(&rig);
    }
    expire_all(&mut rig, &mut model);
    expired += expired_events(&rig);
    assert_eq!(expired, model.expired(), "expired events");
    let keys: usize = (0..3_u8)
        .map(|db| {
            rig.command(&[b"SELECT".to_vec(), vec![b'0' + db]]);
            match rig.command(&[b"DBSIZE".to_vec()]) {
                Reply::Integer(keys) => keys as usize,
                other => panic!("DBSIZE answered {other:?}"),
            }
        })
        .sum();
    assert_eq!(
        keys,
        model.len(),
        "keys left when all that is due has been expired"
    );
}

/// Expires all that is due. While time stands still nothing is removed, so it has to go on first.
fn expire_all(rig: &mut Rig, model: &mut Model) {
    rig.resume();
    sync(model, rig);
    rig.expire_all();
}

fn sync(model: &mut Model, rig: &Rig) {
    let (tick, begun) = rig.engine();
    model.at(tick, begun, rig.wall_ms());
}

fn check(rig: &mut Rig, call: &Call, words: &[Vec<u8>], expect: &Expect, reply: Reply) {
    match expect {
        Expect::Reply(expect) => assert_eq!(&reply, expect, "{call:?}"),
        Expect::Keys(expect) => assert_eq!(&sorted(reply), expect, "{call:?}"),
        Expect::OneOf(keys) => match reply {
            Reply::Null => assert!(keys.is_empty(), "RANDOMKEY found none of {keys:?}"),
            Reply::Bulk(key) => assert!(keys.contains(&key), "RANDOMKEY found {key:?}"),
            other => panic!("RANDOMKEY answered {other:?}"),
        },
        Expect::Scan(expect) => {
            let mut found = Vec::new();
            let (mut cursor, keys) = page(reply);
            found.extend(keys);
            for calls in 0.. {
                if cursor == b"0" {
                    break;
                }
                assert!(calls < SCAN_CALLS_MAX, "SCAN does not end");
                let mut words = words.to_vec();
                words[1] = cursor;
                let (next, keys) = page(rig.command(&words));
                found.extend(keys);
                cursor = next;
            }
            found.sort();
            found.dedup();
            assert_eq!(&found, expect);
        }
    }
}

fn page(reply: Reply) -> (Vec<u8>, Vec<Vec<u8>>) {
    match reply {
        Reply::Array(mut parts) if parts.len() == 2 => {
            let keys = sorted(parts.remove(1));
            match parts.remove(0) {
                Reply::Bulk(cursor) => (cursor, keys),
                other => panic!("SCAN answered the cursor {other:?}"),
            }
        }
        other => panic!("SCAN answered {other:?}"),
    }
}

fn sorted(reply: Reply) -> Vec<Vec<u8>> {
    let Reply::Array(items) = reply else {
        panic!("no array of keys: {reply:?}");
    };
    let mut keys: Vec<_> = items
        .into_iter()
        .map(|item| match item {
            Reply::Bulk(key) => key,
            other => panic!("no key: {other:?}"),
        })
        .collect();
    keys.sort();
    keys
}

/// A sleeper must never sleep past a deadline.
fn check_next_deadline(rig: &Rig, model: &Model) {
    let (Some(behind), Some(earliest)) = (rig.behind(), model.next_deadline()) else {
        return;
    };
    let shards = 0..rig.keyspace.shards();
    let published = shards.map(|shard| rig.keyspace.next_deadline(shard)).min();
    let published = published.expect("at least one shard");
    assert!(
        i128::from(published) <= earliest + i128::from(behind),
        "published {published}, earliest {earliest} + {behind}"
    );
}

fn expired_events(rig: &Rig) -> u64 {
    rig.events()
        .iter()
        .filter(|event| event.name == "expired")
        .count() as u64
}
