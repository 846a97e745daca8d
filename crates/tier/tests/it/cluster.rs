//! A cluster of six nodes.

use std::time::Duration;

use tidewheel_engines::{Cluster, Engine, within};
use tidewheel_tier::{Life, Valkey};

use crate::support::{Texts, cache, tier, url, wait_watched, warm};

pub(crate) fn open(cluster: &Cluster) -> Texts {
    let urls: Vec<_> = cluster.ports().into_iter().map(url).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let cache = cache(tier(Valkey::cluster(&urls).expect("addresses")));
    wait_watched(&cache);
    cache
}

pub(crate) fn slot(cluster: &Cluster, key: &str) -> u16 {
    let wire = format!("test:v:{{={key}}}");
    let said = cluster.nodes[0]
        .client()
        .text(&["CLUSTER", "KEYSLOT", &wire]);
    said.parse().expect("a slot")
}

#[test]
fn every_primary_tells_of_changes_and_a_tag_is_of_all_slots() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let cluster = Cluster::start(&engine);
    let (one, other) = (open(&cluster), open(&cluster));
    let keys: Vec<_> = (0..30).map(|key| key.to_string()).collect();
    for key in &keys {
        let life = Life::configured().tag("all");
        one.insert_with(key.clone(), key.clone(), life)
            .expect("taken");
        within(Duration::from_secs(5), "a value in the first tier", || {
            assert_eq!(other.get(key).as_ref(), Some(key));
            other.get_local(key)
        });
    }
    one.invalidate(&keys[7]).expect("taken");
    within(Duration::from_secs(1), "the message of the change", || {
        other.get_local(&keys[7]).is_none().then_some(())
    });
    one.invalidate_tag("all").expect("taken");
    within(Duration::from_secs(1), "the message of the tag", || {
        let gone = keys.iter().all(|key| other.get_local(key).is_none());
        gone.then_some(())
    });
    assert!(keys.iter().all(|key| other.get(key).is_none()));
}

/// H9.
#[test]
fn the_new_owner_of_a_slot_is_believed_and_the_old_one_is_not() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let cluster = Cluster::start(&engine);
    let (one, other) = (open(&cluster), open(&cluster));
    warm(&one, "tea", "7");
    let slot = slot(&cluster, "tea");
    let owner = cluster.owner(slot).expect("an owner");
    cluster.move_slot(slot, (owner + 1) % 3);
    within(Duration::from_secs(5), "a write to the new owner", || {
        other.insert("tea".into(), "8".into()).ok()
    });
    // The bound, and what is believed beyond it.
    within(Duration::from_millis(1000), "the new value", || {
        (one.get(&"tea".into()).as_deref() == Some("8")).then_some(())
    });
    warm(&one, "tea", "8");
}

#[test]
fn a_killed_primary_is_replaced_on_both_planes() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let mut cluster = Cluster::start(&engine);
    let (one, other) = (open(&cluster), open(&cluster));
    warm(&one, "tea", "7");
    let owner = cluster.owner(slot(&cluster, "tea")).expect("an owner");
    cluster.nodes[owner].process.kill();
    within(Duration::from_secs(20), "a write to the replica", || {
        other.insert("tea".into(), "8".into()).ok()
    });
    within(Duration::from_secs(5), "the new value", || {
        (one.get(&"tea".into()).as_deref() == Some("8")).then_some(())
    });
    wait_watched(&one);
    warm(&one, "tea", "8");
}
