//! Invalidations that the engine has not taken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::Cache;
use tidewheel_tier::{
    Answer, Backend, Embedded, EngineError, Filled, Given, InvalidationStream, Life, Look, Looked,
    Raw, ServerId, TagAnswer, Tier, Tiered, Wire,
};

use crate::support::{MS, Texts};

const AWAY: u8 = 1;
const TAGS_REFUSED: u8 = 2;
const KEYS_REFUSED: u8 = 4;
/// The engine runs its commands, and its answers do not come.
const SILENT: u8 = 3;

/// An engine that is away, refuses changes, or does not answer.
#[derive(Debug, Clone)]
struct Faulty {
    engine: Embedded,
    state: Arc<AtomicU8>,
}

impl Faulty {
    fn unless_away<'a, T: Send + 'a>(
        &self,
        answer: impl FnOnce() -> Answer<'a, T>,
    ) -> Answer<'a, T> {
        if self.state.load(SeqCst) == AWAY {
            return Box::pin(async { Err(EngineError::Away("it is away".into())) });
        }
        answer()
    }
}

impl Backend for Faulty {
    fn attach(&self, stream: Arc<InvalidationStream>) {
        self.engine.attach(stream);
    }

    fn detach(&self, stream: &Arc<InvalidationStream>) {
        self.engine.detach(stream);
    }

    fn look(&self, look: Look) -> Answer<'_, Looked> {
        let looked = self.unless_away(|| self.engine.look(look));
        if self.state.load(SeqCst) == SILENT {
            return Box::pin(std::future::pending());
        }
        looked
    }

    fn fill(&self, key: Wire, lease: u128, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Filled> {
        self.unless_away(|| self.engine.fill(key, lease, envelope, ttl_ms))
    }

    fn put(&self, key: Wire, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Option<ServerId>> {
        self.unless_away(|| self.engine.put(key, envelope, ttl_ms))
    }

    fn remove(&self, key: Wire) -> Answer<'_, Option<ServerId>> {
        if self.state.load(SeqCst) == KEYS_REFUSED {
            return Box::pin(async { Err(EngineError::Refused("too long".into())) });
        }
        self.unless_away(|| self.engine.remove(key))
    }

    fn release(&self, key: Wire, lease: u128) {
        self.engine.release(key, lease);
    }

    fn tag(&self, tag: Vec<u8>, version: u64, ttl_ms: u64) -> Answer<'_, TagAnswer> {
        self.unless_away(|| self.engine.tag(tag, version, ttl_ms))
    }

    fn invalidate_tag(
        &self,
        tag: Vec<u8>,
        version: u64,
        ttl_ms: u64,
    ) -> Answer<'_, Option<ServerId>> {
        if self.state.load(SeqCst) == TAGS_REFUSED {
            return Box::pin(async { Err(EngineError::Refused("no room".into())) });
        }
        self.unless_away(|| self.engine.invalidate_tag(tag, version, ttl_ms))
    }

    fn pause(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.engine.pause(time)
    }
}

fn faulty() -> (Faulty, Texts) {
    let engine = Faulty {
        engine: Embedded::new(),
        state: Arc::default(),
    };
    let tier = Tier::new("test", engine.clone(), Raw);
    let cache = Cache::builder()
        .no_default_ttl()
        .max_capacity(100_000)
        .tiered(tier);
    (engine, cache.expect("valid"))
}

/// Invalidates so many keys while the engine is away, the last ones first; a hundred have values.
/// Then it is back.
fn read_after_an_outage(count: usize) {
    let (engine, cache) = faulty();
    for key in 0..100 {
        let stored = cache.insert(key.to_string(), "old".into());
        stored.expect("taken");
    }
    engine.state.store(AWAY, SeqCst);
    for key in (0..count).rev() {
        assert!(cache.invalidate(&key.to_string()).is_err());
    }
    assert!(cache.invalidations_waiting() <= 10_000);
    engine.state.store(0, SeqCst);
    // Longer than the engine is left alone.
    std::thread::sleep(Duration::from_millis(2100));
    for key in 0..100 {
        assert_eq!(cache.get(&key.to_string()), None, "{key} of {count}");
    }
    assert_eq!(cache.invalidations_waiting(), 0);
}

#[test]
fn all_that_wait_are_made_up_for_before_anything_is_read() {
    read_after_an_outage(1_000);
}

#[test]
fn too_many_become_one_of_everything_however_many_follow() {
    read_after_an_outage(20_000);
}

#[test]
fn nothing_is_read_while_an_invalidation_is_refused() {
    let (engine, cache) = faulty();
    let insert = cache.insert("tea".into(), "old".into());
    insert.expect("taken");
    engine.state.store(TAGS_REFUSED, SeqCst);
    assert!(cache.clear().is_err());
    for _ in 0..3 {
        assert_eq!(cache.get(&"tea".into()), None);
        assert_eq!(cache.invalidations_waiting(), 1);
    }
    assert_eq!(cache.get_or_load("tea".into(), || "new".into()), "new");
    engine.state.store(0, SeqCst);
    assert_eq!(cache.get(&"cup".into()), None);
    assert_eq!(cache.invalidations_waiting(), 0);
}

#[test]
fn a_write_that_is_taken_is_followed_by_what_waits() {
    let (engine, cache) = faulty();
    engine.state.store(AWAY, SeqCst);
    assert!(cache.invalidate(&"tea".into()).is_err());
    engine.state.store(0, SeqCst);
    let insert = cache.insert("cup".into(), "1".into());
    insert.expect("taken");
    assert_eq!(cache.invalidations_waiting(), 0);
}

/// The waiting invalidation took it away again.
#[test]
fn a_value_that_is_written_after_an_invalidation_that_waits_stays() {
    let (engine, cache) = faulty();
    let key = "tea".to_owned();
    let tagged = || Life::configured().tag("menu");
    engine.state.store(AWAY, SeqCst);
    assert!(cache.invalidate(&key).is_err());
    assert!(cache.invalidate_tag("menu").is_err());
    assert_eq!(cache.invalidations_waiting(), 2);
    engine.state.store(0, SeqCst);
    cache
        .insert_with(key.clone(), "new".into(), tagged())
        .expect("taken");
    assert_eq!(cache.invalidations_waiting(), 0);
    assert_eq!(cache.get(&key), Some("new".into()));
}

/// Its invalidation would take it away again.
#[test]
fn a_value_is_not_written_while_an_invalidation_of_it_is_refused() {
    let (engine, cache) = faulty();
    engine.state.store(TAGS_REFUSED, SeqCst);
    assert!(cache.invalidate_tag("menu").is_err());
    let insert = |key: &str, life| cache.insert_with(key.to_owned(), "new".into(), life);
    assert!(insert("tea", Life::configured().tag("menu")).is_err());
    insert("coffee", Life::configured()).expect("it has not this tag");
}

/// The others waited for the whole lease.
#[test]
fn a_load_that_is_given_up_before_the_engine_has_answered_gives_its_lease_back() {
    let (engine, cache) = faulty();
    cache.get(&"warm".to_owned());
    engine.state.store(SILENT, SeqCst);
    let load = cache.get_or_load_async("tea".into(), async { "7".into() });
    let given_up = smol::block_on(smol::future::poll_once(load));
    assert_eq!(given_up, None);
    engine.state.store(0, SeqCst);
    let began = tidewheel_time::monotonic_nanos();
    assert_eq!(cache.get_or_load("tea".into(), || "8".into()), "8");
    assert!(tidewheel_engines::since(began) < Duration::from_secs(5));
}

/// It was stored for as long as nothing watches.
#[test]
fn a_load_without_the_engine_is_not_stored_when_its_tag_was_invalidated_meanwhile() {
    let (engine, cache) = faulty();
    engine.state.store(AWAY, SeqCst);
    let load = |does_invalidate: bool| {
        let load = || {
            assert!(!does_invalidate || cache.invalidate_tag("menu").is_err());
            let value = Given::new("7".to_owned(), Life::configured().tag("menu"));
            Ok::<_, ()>(Some(value))
        };
        let loaded = cache.get_or_load_with("tea".into(), load);
        assert_eq!(loaded, Ok(Some("7".to_owned())));
        cache.get_local("tea")
    };
    assert_eq!(load(true), None);
    assert_eq!(load(false), Some("7".into()));
    assert!(cache.invalidate_tag("menu").is_err());
    assert_eq!(cache.get_local("tea"), None);
}

/// Once an old value was answered, its tags were forgotten.
#[test]
fn what_this_process_has_invalidated_is_no_answer_to_an_error_while_the_engine_is_away() {
    let invalidations: [fn(&Texts); 2] = [
        |cache| assert!(cache.invalidate_tag("menu").is_err()),
        |cache| assert!(cache.clear().is_err()),
    ];
    for invalidate in invalidations {
        let (engine, cache) = faulty();
        engine.state.store(AWAY, SeqCst);
        let life = Life::ttl(20 * MS).stale_for(Duration::from_secs(60));
        let load = || Ok::<_, ()>(Some(Given::new("7".to_owned(), life.tag("menu"))));
        assert!(cache.get_or_load_with("tea".into(), load).is_ok());
        std::thread::sleep(50 * MS);
        let fails = || cache.try_get_or_load("tea".into(), || Err::<String, _>("down"));
        assert_eq!(fails(), Ok("7".into()));
        invalidate(&cache);
        assert!(fails().is_err());
    }
}

/// It is the way out when an engine goes on refusing one of them.
#[test]
fn nothing_waits_any_more_once_everything_was_invalidated() {
    let (engine, cache) = faulty();
    engine.state.store(KEYS_REFUSED, SeqCst);
    assert!(cache.invalidate(&"tea".to_owned()).is_err());
    cache.clear().expect("taken");
    assert_eq!(cache.invalidations_waiting(), 0);
}
