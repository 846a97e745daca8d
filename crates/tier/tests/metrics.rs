//! The `metrics` facade gets each count once, and the README says what each is.

use std::collections::HashMap;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tidewheel::Cache;
use tidewheel_tier::{Embedded, Raw, Tier, Tiered, TieredCache};

#[test]
fn every_field_of_the_statistics_is_published_once_and_the_readme_says_what_it_is() {
    let recorder = DebuggingRecorder::new();
    let cache: TieredCache<u64, u64> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .tiered(Tier::new("shop", Embedded::new(), Raw))
        .expect("valid");
    assert_eq!(cache.get_or_load(7, || 7), 7);
    let publish = || metrics::with_local_recorder(&recorder, || cache.publish_metrics());
    publish();
    publish();
    let (told, readme) = (
        recorder.snapshotter().snapshot().into_vec(),
        include_str!("../README.md"),
    );
    let mut values = HashMap::new();
    for (key, _, help, value) in told {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (name, help) = (key.key().name().to_owned(), help.unwrap_or_default());
        if !name.starts_with("tidewheel_tier_") {
            assert!(key.key().labels().any(|label| label.key() == "cache"));
            continue;
        }
        let labels: Vec<_> = key.key().labels().collect();
        assert_eq!((labels[0].key(), labels[0].value()), ("tier", "shop"));
        let row = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` | {kind} |")));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| {help} |"))),
            "{name}: {row:?}"
        );
        values.insert(name, value);
    }
    assert_eq!(values["tidewheel_tier_loads_total"], DebugValue::Counter(1));
    assert_eq!(
        values["tidewheel_tier_watched"],
        DebugValue::Gauge(1.0.into())
    );
    let printed = format!("{:#?}", cache.tier_stats());
    let fields: Vec<_> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(':'))
        .collect();
    for (field, _) in &fields {
        assert!(
            values.contains_key(&format!("tidewheel_tier_{field}_total")),
            "{field}"
        );
    }
    assert_eq!(values.len(), fields.len() + 3);
}
