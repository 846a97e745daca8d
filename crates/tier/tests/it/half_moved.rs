//! A cluster's slot that is half moved: some of its keys are at the source, some at the target.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tidewheel_engines::{Cluster, Engine, within};

use crate::cluster::{open, slot};
use crate::support::Texts;

/// A slot on its way from one primary to another.
struct Moving<'a> {
    cluster: &'a Cluster,
    slot: String,
    from: usize,
    to: usize,
}

impl<'a> Moving<'a> {
    /// The slot of a key, all of which is at the source still.
    fn begin(cluster: &'a Cluster, key: &str) -> Self {
        let slot = slot(cluster, key);
        let from = cluster.owner(slot).expect("an owner");
        let to = (from + 1) % 3;
        let moving = Self {
            cluster,
            slot: slot.to_string(),
            from,
            to,
        };
        let [from_id, to_id] = [from, to].map(|node| moving.cluster.id(node));
        moving.set(to, "IMPORTING", &from_id);
        moving.set(from, "MIGRATING", &to_id);
        moving
    }

    fn set(&self, node: usize, state: &str, id: &str) {
        let mut client = self.cluster.nodes[node].client();
        let said = client.text(&["CLUSTER", "SETSLOT", &self.slot, state, id]);
        assert_eq!(said, "OK");
    }

    /// One key goes to the target, of the engine's names.
    fn carry(&self, wire: &str) {
        let port = self.cluster.nodes[self.to].port.to_string();
        let mut client = self.cluster.nodes[self.from].client();
        let said = client.text(&["MIGRATE", "127.0.0.1", &port, wire, "0", "5000"]);
        assert_eq!(said, "OK");
    }

    fn end(&self) {
        let id = self.cluster.id(self.to);
        self.set(self.to, "NODE", &id);
        self.set(self.from, "NODE", &id);
    }
}

fn insert(cache: &Texts, key: &str, value: &str) {
    let done = cache.insert(key.into(), value.into());
    assert_eq!(done, Ok(()), "{key} {value}");
}

fn sees(cache: &Texts, value: Option<&str>) {
    within(Duration::from_secs(1), "what the other has written", || {
        (cache.get(&"tea".into()).as_deref() == value).then_some(())
    });
}

/// Ends those that ask, also when the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Asks for keys of all slots, as fast as it can, until it is told to end.
fn ask_for_others(cache: &Texts, is_over: &AtomicBool) {
    for key in 0u64.. {
        if is_over.load(SeqCst) {
            return;
        }
        cache.get(&(key % 10_000).to_string());
    }
}

/// A load that an invalidation overtakes stores nothing. `meanwhile` happens while the loader runs,
/// and before that.
fn is_overtaken(one: &Texts, other: &Texts, meanwhile: impl FnOnce()) {
    assert_eq!(one.invalidate(&"tea".into()), Ok(()));
    let load = || {
        meanwhile();
        assert_eq!(other.invalidate(&"tea".into()), Ok(()));
        "old".into()
    };
    assert_eq!(one.get_or_load("tea".into(), load), "old");
    assert_eq!(one.get(&"tea".into()), None);
    assert_eq!(other.get(&"tea".into()), None);
}

/// Each answer was awaited for 0.7 s and was none; after some, the whole cluster was left alone.
fn is_read_and_written(one: &Texts, other: &Texts) {
    for turn in 0..8 {
        sees(one, Some("7"));
        let text = turn.to_string();
        insert(other, "tea", &text);
        sees(one, Some(&text));
        assert_eq!(other.invalidate(&"tea".into()), Ok(()));
        sees(one, None);
        assert_eq!(one.get_or_load("tea".into(), || "7".into()), "7");
        let of_all = other.get_or_load("tea".into(), || panic!("it was loaded"));
        assert_eq!(of_all, "7");
        is_overtaken(one, other, || {});
        assert_eq!(one.get_or_load("tea".into(), || "7".into()), "7");
        assert_eq!(one.get(&"milk".into()).as_deref(), Some("1"));
    }
    for cache in [one, other] {
        assert!(!cache.is_engine_left_alone());
        assert_eq!(cache.tier_stats().engine_errors, 0);
        assert_eq!(cache.invalidations_waiting(), 0);
    }
}

#[test]
fn a_slot_that_is_half_moved_is_read_and_written() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let cluster = Cluster::start(&engine);
    let (one, other) = (open(&cluster), open(&cluster));
    insert(&one, "tea", "7");
    insert(&one, "milk", "1");
    for is_carried in [false, true] {
        let moving = Moving::begin(&cluster, "tea");
        if is_carried {
            moving.carry("test:v:{=tea}");
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| ask_for_others(&one, &is_over));
            }
            let _over = Over(&is_over);
            is_read_and_written(&one, &other);
        });
        moving.end();
        within(Duration::from_secs(5), "the value at its new owner", || {
            (one.get(&"tea".into())? == "7").then_some(())
        });
    }
    let mut moving = None;
    is_overtaken(&one, &other, || {
        moving = Some(Moving::begin(&cluster, "tea"));
    });
    assert!(
        moving.is_some(),
        "the slot began to move while the loader ran"
    );
}
