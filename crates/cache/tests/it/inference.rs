//! The compiler infers the type of a loader's value: it is the cache's, so nothing has to be
//! annotated.

use std::sync::Arc;
use std::time::Duration;

use tidewheel::{Cache, Lifetime, Loaded, ManualClock, Ttl};

use crate::loading::by_hand;
use crate::manual_poll::block_on;

const MINUTE: Duration = Duration::from_secs(60);

fn cache<V: Send + Sync + 'static>() -> Cache<u32, V> {
    by_hand(&ManualClock::new()).build().expect("builds")
}

/// As in every port from moka: the value is made by `into`, by `collect`, by a coercion.
#[test]
fn a_plain_loaders_value_is_inferred() {
    let texts = cache::<String>();
    assert_eq!(texts.get_or_load(1, || "a".into()), "a");
    assert_eq!(
        texts
            .optionally_get_or_load(2, || Some("b".into()))
            .as_deref(),
        Some("b")
    );
    let parsed = texts.try_get_or_load(3, || "c".parse());
    assert_eq!(parsed.as_deref(), Ok("c"));
    assert_eq!(texts.get_or_load(4, Default::default), "");
    assert_eq!(
        texts.get_or_load(5, || ["d", "e"].into_iter().collect()),
        "de"
    );

    let shared = cache::<Arc<dyn Fn() -> u32 + Send + Sync>>();
    assert_eq!(shared.get_or_load(1, || Arc::new(|| 7))(), 7);
    let found = shared.try_get_or_load(2, || Ok::<_, ()>(Arc::new(|| 8)));
    assert_eq!(found.map(|found| found()), Ok(8));
}

#[test]
fn a_plain_futures_value_is_inferred() {
    let texts = cache::<String>();
    block_on(async {
        assert_eq!(texts.get_or_load_async(1, async { "a".into() }).await, "a");
        let found = texts.optionally_get_or_load_async(2, async { Some("b".into()) });
        assert_eq!(found.await.as_deref(), Some("b"));
        let parsed = texts.try_get_or_load_async(3, async { "c".parse() });
        assert_eq!(parsed.await.as_deref(), Ok("c"));
    });
}

#[test]
fn a_plain_closures_value_is_inferred() {
    let texts = cache::<String>();
    assert_eq!(texts.entry(1).or_insert("a".into()), "a");
    assert_eq!(texts.entry(2).or_insert_with(|| "b".into()), "b");
    let longer = |old: &String| format!("{old}{old}");
    assert_eq!(
        texts
            .entry(2)
            .and_update(longer)
            .or_insert_with(|| "c".into()),
        "bb"
    );
    assert_eq!(texts.update(&2, |_| "d".into()).as_deref(), Some("d"));
}

/// One method for all four shapes of a loader; its answer has the same shape.
#[test]
fn a_loader_with_a_lifetime_answers_in_its_own_shape() {
    let texts = cache::<String>();
    let minute = || Lifetime::ttl(MINUTE);
    let plain: String = texts
        .fetch(1)
        .load_with(|| Loaded::new("a".into(), minute()))
        .value;
    assert_eq!(plain, "a");
    let maybe: Option<String> = texts.fetch(2).load_with(|| None::<Loaded<_>>).value;
    assert_eq!(maybe, None);
    let failed = texts
        .fetch(3)
        .load_with(|| Err::<Loaded<_>, _>("down"))
        .value;
    assert_eq!(failed, Err(Arc::new("down")));
    let both = texts
        .fetch(4)
        .load_with(|| {
            let number: u32 = "4".parse()?;
            Ok::<_, std::num::ParseIntError>(Some(Loaded::new(number.to_string(), minute())))
        })
        .value;
    assert_eq!(both, Ok(Some("4".into())));
    let later = texts
        .fetch(5)
        .load_with_async(async { Some(Loaded::new("e".into(), minute())) });
    assert_eq!(block_on(later).value.as_deref(), Some("e"));
    for key in [1, 4, 5] {
        assert_eq!(texts.ttl(&key), Ttl::Left(MINUTE), "of {key}");
    }
    let inserted = texts
        .entry(6)
        .or_insert_loaded(|| Loaded::new("f".into(), minute()));
    assert_eq!((inserted.as_str(), texts.ttl(&6)), ("f", Ttl::Left(MINUTE)));
}
