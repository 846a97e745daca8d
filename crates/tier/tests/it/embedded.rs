//! Caches share an engine in this process: these tests need no server.

use std::time::Duration;

use tidewheel_tier::{Codec, CodecError, Embedded, EngineError, Given, Life, Raw, Tier};

use crate::support::{MS, Texts, cache};

fn tier(engine: &Embedded) -> Tier<String> {
    Tier::new("shop", engine.clone(), Raw)
}

fn open(engine: &Embedded) -> Texts {
    cache(tier(engine).negative_ttl(Duration::from_secs(30)))
}

fn nothing() -> Result<Option<Given<String>>, ()> {
    Ok(None)
}

/// They panicked.
#[test]
fn a_loader_that_knows_no_absence_runs_though_another_process_remembers_one() {
    let engine = Embedded::new();
    let (one, other) = (open(&engine), open(&engine));
    assert_eq!(one.get_or_load_with("tea".into(), nothing), Ok(None));
    assert_eq!(other.get_or_load("tea".into(), || "7".into()), "7");
    let three = open(&engine);
    assert_eq!(
        three.try_get_or_load("tea".into(), || Ok::<_, ()>("8".into())),
        Ok("8".into())
    );
    let four = open(&engine);
    let load = four.get_or_load_async("tea".into(), async { "9".into() });
    assert_eq!(smol::block_on(load), "9");
}

#[test]
fn so_does_one_that_has_waited_for_a_load_that_finds_nothing() {
    let engine = Embedded::new();
    let (one, other) = (open(&engine), open(&engine));
    std::thread::scope(|scope| {
        let (began, begun) = std::sync::mpsc::channel();
        scope.spawn(move || {
            one.get_or_load_with("tea".into(), || {
                began.send(()).expect("somebody listens");
                std::thread::sleep(300 * MS);
                nothing()
            })
        });
        begun.recv().expect("it begins");
        assert_eq!(other.get_or_load("tea".into(), || "7".into()), "7");
        assert_eq!(
            other.tier_stats().waits,
            1,
            "one load has waited, however often it looked"
        );
    });
}

/// Writes what is short.
struct Short;

impl Codec<String> for Short {
    fn write(&self, value: &String, out: &mut Vec<u8>) -> Result<(), CodecError> {
        if value.len() > 3 {
            return Err("too long".into());
        }
        Raw.write(value, out)
    }

    fn read(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Raw.read(bytes)
    }
}

/// It said that all was well, and the value was nowhere.
#[test]
fn a_value_that_cannot_be_stored_is_an_error_and_the_old_one_is_gone() {
    let cache = cache(Tier::new("shop", Embedded::new(), Short));
    let key = "tea".to_owned();
    let is_unstorable = |value: &str, life: Life| {
        cache.insert(key.clone(), "7".into()).expect("it is short");
        let answer = cache.insert_with(key.clone(), value.into(), life);
        assert!(
            matches!(answer, Err(EngineError::Unstorable(_))),
            "{answer:?}"
        );
        assert_eq!(cache.get(&key), None);
    };
    is_unstorable("much", Life::configured());
    let many = (0..33).map(|tag| tag.to_string());
    is_unstorable("8", many.fold(Life::configured(), Life::tag));
    is_unstorable("8", Life::configured().tag("x".repeat(65_536)));
    let same = (0..40).fold(Life::configured(), |life, _| life.tag("same"));
    cache
        .insert_with(key.clone(), "8".into(), same)
        .expect("it has one tag");
    assert_eq!(cache.get_or_load("milk".into(), || "much".into()), "much");
    assert_eq!(cache.get(&"milk".into()), None, "it was for who waited");
}

/// The jitter of so long a time panicked.
#[test]
fn no_lifetime_is_too_long() {
    for jitter in [0.0, 0.05, 0.9] {
        let engine = Embedded::new();
        let cache = cache(
            tier(&engine)
                .jitter(jitter)
                .time_to_live(Duration::MAX)
                .negative_ttl(Duration::MAX),
        );
        assert_eq!(cache.get_or_load("tea".into(), || "7".into()), "7");
        let life = Life::ttl(Duration::MAX).stale_for(Duration::MAX);
        cache
            .insert_with("milk".into(), "8".into(), life)
            .expect("taken");
        assert_eq!(cache.get_or_load_with("salt".into(), nothing), Ok(None));
    }
}

/// It was the whole namespace.
#[test]
fn the_empty_tag_is_nobodys() {
    let engine = Embedded::new();
    let cache = open(&engine);
    let key = "tea".to_owned();
    let life = Life::configured().tag("");
    cache
        .insert_with(key.clone(), "7".into(), life)
        .expect("taken");
    cache.invalidate_tag("").expect("taken");
    assert_eq!(cache.get(&key).as_deref(), Some("7"));
    cache.clear().expect("taken");
    assert_eq!(cache.get(&key), None);
}

/// The first tier's old value was answered, which the engine had no more.
#[test]
fn what_another_process_has_invalidated_is_no_answer_to_an_error() {
    let invalidations: [fn(&Texts); 3] = [
        |cache| cache.invalidate(&"tea".to_owned()).expect("taken"),
        |cache| cache.invalidate_tag("menu").expect("taken"),
        |cache| cache.clear().expect("taken"),
    ];
    for (number, invalidate) in invalidations.iter().enumerate() {
        for is_past_its_end in [false, true] {
            let engine = Embedded::new();
            let (one, other) = (open(&engine), open(&engine));
            let ttl = if is_past_its_end { 20 } else { 60_000 } * MS;
            let life = Life::ttl(ttl).stale_for(Duration::from_secs(60));
            let stored = one.insert_with("tea".to_owned(), "7".to_owned(), life.tag("menu"));
            stored.expect("taken");
            assert_eq!(one.get(&"tea".to_owned()), Some("7".into()));
            std::thread::sleep(50 * MS);
            let fails = || one.try_get_or_load("tea".into(), || Err::<String, _>("down"));
            assert_eq!(fails(), Ok("7".into()));
            invalidate(&other);
            let said = fails();
            assert!(said.is_err(), "{number}, past its end: {is_past_its_end}");
        }
    }
}
