//! Another server takes over, and lacks the last writes of the one before.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock};
use tidewheel_tier::{
    Answer, Backend, Embedded, Filled, InvalidationStream, Look, Looked, Owners, Raw, ServerId,
    TagAnswer, Tier, Tiered, Wire,
};

use crate::support::{MS, Texts};

const BOUND: Duration = Duration::from_millis(400);

/// One process's way to two servers.
#[derive(Debug, Clone)]
struct Pair {
    servers: [Embedded; 2],
    /// The server to which its data connection leads.
    at: Arc<AtomicUsize>,
    stream: Arc<Mutex<Option<Arc<InvalidationStream>>>>,
}

fn id(server: usize) -> ServerId {
    ServerId::of(&[server as u8])
}

impl Pair {
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Embedded) -> Answer<'_, T>,
        sign: fn(T, Option<ServerId>) -> T,
    ) -> Answer<'static, T> {
        let at = self.at.load(SeqCst);
        // An embedded engine has answered when it returns.
        let mut answer = question(&self.servers[at]);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(answer) = answer.as_mut().poll(&mut context) else {
            unreachable!("it has answered");
        };
        Box::pin(std::future::ready(
            answer.map(|answer| sign(answer, Some(id(at)))),
        ))
    }

    fn stream(&self) -> Arc<InvalidationStream> {
        self.stream
            .lock()
            .expect("whole")
            .clone()
            .expect("attached")
    }

    /// The watching connection leads to this server.
    fn watches(&self, source: u32, server: usize) {
        let stream = self.stream();
        stream.connected(source, id(server));
        for _ in 0..2 {
            stream.heard(source, stream.now());
        }
    }

    /// This process notices that the second server has taken over.
    fn notices(&self) {
        self.stream().owned(Owners::One(1));
        self.at.store(1, SeqCst);
        self.watches(1, 1);
    }
}

impl Backend for Pair {
    fn attach(&self, stream: Arc<InvalidationStream>) {
        *self.stream.lock().expect("whole") = Some(stream);
        self.stream().owned(Owners::One(0));
        self.watches(0, 0);
    }

    fn detach(&self, _: &Arc<InvalidationStream>) {
        self.stream.lock().expect("whole").take();
    }

    fn look(&self, look: Look) -> Answer<'_, Looked> {
        let sign = |looked, server| Looked { server, ..looked };
        self.ask(|engine| engine.look(look), sign)
    }

    fn fill(&self, key: Wire, lease: u128, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Filled> {
        let sign = |filled, server| Filled { server, ..filled };
        self.ask(|engine| engine.fill(key, lease, envelope, ttl_ms), sign)
    }

    fn put(&self, key: Wire, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Option<ServerId>> {
        self.ask(
            |engine| engine.put(key, envelope, ttl_ms),
            |_, server| server,
        )
    }

    fn remove(&self, key: Wire) -> Answer<'_, Option<ServerId>> {
        self.ask(|engine| engine.remove(key), |_, server| server)
    }

    fn release(&self, key: Wire, lease: u128) {
        self.servers[self.at.load(SeqCst)].release(key, lease);
    }

    fn tag(&self, tag: Vec<u8>, version: u64, ttl_ms: u64) -> Answer<'_, TagAnswer> {
        let sign = |said, server| TagAnswer { server, ..said };
        self.ask(|engine| engine.tag(tag, version, ttl_ms), sign)
    }

    fn invalidate_tag(
        &self,
        tag: Vec<u8>,
        version: u64,
        ttl_ms: u64,
    ) -> Answer<'_, Option<ServerId>> {
        let sign = |_, server| server;
        self.ask(|engine| engine.invalidate_tag(tag, version, ttl_ms), sign)
    }

    fn pause(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.servers[0].pause(time)
    }
}

/// Two processes, a clock, and a replica that has the old value of `tea` for good.
struct Town {
    clock: ManualClock,
    ways: [Pair; 2],
    caches: [Texts; 2],
}

impl Town {
    fn new(lag: Duration) -> Self {
        let clock = ManualClock::new();
        clock.advance(MS);
        let servers = [(); 2].map(|()| Embedded::with_clock(clock.clone()));
        let way = || Pair {
            servers: servers.clone(),
            at: Arc::default(),
            stream: Arc::default(),
        };
        let ways = [way(), way()];
        let cache = |engine: &dyn Fn() -> Tier<String>| {
            Cache::builder()
                .max_capacity(1000)
                .no_default_ttl()
                .clock(clock.clone())
                .driver(Driver::Manual)
                .tiered(
                    engine()
                        .clock(clock.clone())
                        .staleness(BOUND)
                        .failover_lag(lag),
                )
                .expect("valid")
        };
        let caches = [0, 1].map(|process| cache(&|| Tier::new("test", ways[process].clone(), Raw)));
        for server in &servers {
            let on_it = cache(&|| Tier::new("test", server.clone(), Raw));
            on_it.insert("tea".into(), "7".into()).expect("taken");
        }
        Self {
            clock,
            ways,
            caches,
        }
    }
}

fn tea() -> String {
    "tea".into()
}

const LAG: Duration = Duration::from_secs(10);

/// A second of acknowledged invalidations was lost with the server before, and nobody was told.
#[test]
fn what_is_lost_with_the_primary_is_repeated_before_anybody_reads() {
    type Change = fn(&Texts);
    let changes: [Change; 3] = [
        |cache| cache.invalidate(&tea()).expect("taken"),
        |cache| cache.insert(tea(), "8".into()).expect("taken"),
        |cache| cache.clear().expect("taken"),
    ];
    for change in changes {
        let town = Town::new(LAG);
        let [one, other] = &town.caches;
        change(one);
        town.ways[1].notices();
        assert_eq!(
            other.get(&tea()),
            None,
            "the others may not have repeated yet"
        );
        assert_eq!(other.get_or_load(tea(), || "8".into()), "8");
        town.clock.advance(BOUND - MS);
        assert_eq!(other.get(&tea()).as_deref(), Some("8"));
        town.ways[0].notices();
        assert_eq!(one.invalidations_waiting(), 1);
        assert_eq!(one.get(&tea()), None, "settles what waits");
        assert_eq!(one.invalidations_waiting(), 0);
        town.clock.advance(BOUND);
        assert_eq!(one.get(&tea()), None);
        assert_ne!(other.get(&tea()).as_deref(), Some("7"));
        assert_eq!(one.get_or_load(tea(), || "9".into()), "9");
        assert_eq!(one.get(&tea()).as_deref(), Some("9"), "it is read again");
    }
}

#[test]
fn what_was_taken_longer_ago_than_the_lag_is_not_repeated() {
    let town = Town::new(LAG);
    town.caches[0].invalidate(&tea()).expect("taken");
    town.clock.advance(LAG + MS);
    town.ways[0].notices();
    assert_eq!(town.caches[0].invalidations_waiting(), 0);
}

#[test]
fn without_a_lag_nothing_is_repeated_and_reads_go_on() {
    let town = Town::new(Duration::ZERO);
    town.caches[0].invalidate(&tea()).expect("taken");
    town.ways[0].notices();
    assert_eq!(town.caches[0].get(&tea()).as_deref(), Some("7"), "lost");
}

/// The data connection follows the Sentinels by itself, and may be there first.
#[test]
fn a_server_that_is_not_watched_yet_is_neither_read_nor_counts_as_told() {
    let town = Town::new(LAG);
    let cache = &town.caches[0];
    cache.invalidate(&tea()).expect("taken");
    town.ways[0].at.store(1, SeqCst);
    assert_eq!(cache.get(&tea()), None, "the server before has it not");
    assert!(cache.insert("milk".into(), "9".into()).is_err());
    assert!(cache.invalidate(&"milk".into()).is_err());
    assert_eq!(cache.invalidations_waiting(), 1);
    town.ways[0].stream().owned(Owners::One(1));
    assert_eq!(cache.invalidations_waiting(), 2);
    assert_eq!(cache.get(&tea()), None, "nobody is watched");
    assert_eq!(cache.invalidations_waiting(), 2);
    town.ways[0].watches(1, 1);
    town.clock.advance(BOUND);
    assert_eq!(cache.get(&tea()), None);
    assert_eq!(cache.invalidations_waiting(), 0);
    cache.insert(tea(), "9".into()).expect("taken");
    assert_eq!(cache.get(&tea()).as_deref(), Some("9"));
}

/// With data of a while ago, or as a replica behind one address.
#[test]
fn what_a_server_has_lost_that_starts_again_is_repeated() {
    let town = Town::new(LAG);
    let cache = &town.caches[0];
    cache.invalidate(&tea()).expect("taken");
    town.ways[0].stream().lost(0);
    town.ways[0].at.store(1, SeqCst);
    assert_eq!(cache.get(&tea()), None, "it is another one");
    town.ways[0].watches(0, 1);
    assert_eq!(cache.get(&tea()), None, "it was repeated");
    cache.insert(tea(), "9".into()).expect("taken");
    assert_eq!(
        cache.get(&tea()).as_deref(),
        Some("9"),
        "nobody else's place was taken"
    );
}
