//! The `metrics` facade gets everything once. This is a binary of its own, because a process has
//! one recorder.

use std::collections::HashMap;
use std::time::Duration;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tidewheel::{Cache, Driver, ManualClock};

const MS: Duration = Duration::from_millis(1);

/// The metrics of one cache; counters since the last call.
fn published(snapshotter: &Snapshotter, cache: &str) -> HashMap<String, DebugValue> {
    snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(key, ..)| {
            let mut labels = key.key().labels();
            labels.any(|label| label.key() == "cache" && label.value() == cache)
        })
        .map(|(key, _, _, value)| (key.key().name().to_string(), value))
        .collect()
}

#[test]
fn every_count_is_published_once() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let clock = ManualClock::new();
        let cache: Cache<u64, u64> = Cache::builder()
            .max_capacity(10)
            .time_to_live(10 * MS)
            .name("users")
            .clock(clock.clone())
            .driver(Driver::Manual)
            .build()
            .expect("valid");
        for key in 0..15 {
            cache.insert(key, key);
        }
        cache.get(&14);
        cache.get(&100);
        cache.get_or_load(200, || {
            clock.advance(2 * MS);
            1u64
        });
        let failed = cache.try_get_or_load(300, || Err::<u64, &str>("down"));
        assert!(failed.is_err());
        clock.advance(11 * MS);
        cache.publish_metrics();
        let first = published(&snapshotter, "users");
        let counter = |name: &str| match first.get(name) {
            Some(DebugValue::Counter(count)) => *count,
            other => panic!("{name}: {other:?}"),
        };
        let stats = cache.stats();
        assert_eq!(counter("tidewheel_hits_total"), stats.hits);
        assert_eq!(counter("tidewheel_misses_total"), stats.misses);
        assert_eq!(counter("tidewheel_loads_total"), 2);
        assert_eq!(counter("tidewheel_load_errors_total"), 1);
        assert_eq!(counter("tidewheel_evictions_total"), 6);
        assert_eq!(counter("tidewheel_expirations_total"), 0);
        assert_eq!(counter("tidewheel_inserts_total"), 16);
        for name in [
            "negative_hits",
            "rejected",
            "listener_panics",
            "drop_panics",
        ] {
            assert_eq!(counter(&format!("tidewheel_{name}_total")), 0, "{name}");
        }
        let gauge = |name: &str| match first.get(name) {
            Some(DebugValue::Gauge(value)) => value.into_inner(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(gauge("tidewheel_entries"), 10.0);
        assert_eq!(gauge("tidewheel_weight"), 10.0);
        assert!((gauge("tidewheel_backlog_seconds") - 0.003).abs() < 1e-9);
        match &first["tidewheel_load_duration_seconds"] {
            DebugValue::Histogram(took) => {
                let took: Vec<f64> = took.iter().map(|took| took.into_inner()).collect();
                assert!(took.len() == 2 && took[0] == 0.0, "{took:?}");
                assert!((0.002..0.002_25).contains(&took[1]), "{took:?}");
            }
            other => panic!("{other:?}"),
        }

        while cache.advance(cache.now(), 1000).backlog {}
        cache.publish_metrics();
        let second = published(&snapshotter, "users");
        let expirations = &second["tidewheel_expirations_total"];
        assert_eq!(*expirations, DebugValue::Counter(10));
        assert_eq!(second["tidewheel_hits_total"], DebugValue::Counter(0));
        assert_eq!(second["tidewheel_evictions_total"], DebugValue::Counter(0));
        match &second["tidewheel_expiry_lateness_seconds"] {
            DebugValue::Histogram(late) => {
                assert_eq!(late.len(), 10);
                let of_3_ms = late.iter().filter(|late| late.into_inner() == 0.003);
                // The loaded one was 2 ms younger.
                assert_eq!(of_3_ms.count(), 9);
            }
            other => panic!("{other:?}"),
        }
    });
}

/// An exporter's HELP lines: a metric without one is a riddle to whoever meets it on a dashboard.
#[test]
fn every_field_of_the_statistics_is_published_and_described_as_in_the_readme() {
    let readme = include_str!("../README.md");
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let stats = metrics::with_local_recorder(&recorder, || {
        let clock = ManualClock::new();
        let cache: Cache<u64, u64> = Cache::builder()
            .unbounded()
            .time_to_live(MS)
            .negative_ttl(10 * MS)
            .clock(clock.clone())
            .driver(Driver::Manual)
            .build()
            .expect("valid");
        cache.insert(1, 1);
        assert_eq!(cache.optionally_get_or_load(2, || None), None);
        clock.advance(MS);
        assert_eq!(cache.run_due(), 1);
        cache.publish_metrics();
        cache.stats()
    });
    let mut published = HashMap::new();
    for (key, _, help, value) in snapshotter.snapshot().into_vec() {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (name, help) = (key.key().name(), help.as_deref().unwrap_or_default());
        let start = format!("| `{name}` | {kind} |");
        let row = readme.lines().find(|line| line.starts_with(&start));
        let is_described = row.is_some_and(|row| row.ends_with(&format!("| {help} |")));
        assert!(is_described, "{name}: {row:?}");
        published.insert(name.to_string(), value);
    }
    let printed = format!("{stats:#?}");
    let fields = printed
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(':'))
        .filter(|(field, _)| !field.starts_with(' '));
    let mut count = 0;
    for (field, _) in fields {
        let name = match field {
            "refreshes_begun" => "refreshes",
            "lateness" => "expiry_lateness",
            other => other,
        };
        let names = ["_total", "", "_seconds"].map(|end| format!("tidewheel_{name}{end}"));
        assert!(
            names.iter().any(|name| published.contains_key(name)),
            "{field}"
        );
        count += 1;
    }
    // Durations of loads are measured for this alone.
    assert!(published.contains_key("tidewheel_load_duration_seconds"));
    assert_eq!((count + 1, published.len()), (29, 29));
    let negatives = DebugValue::Gauge(1.0.into());
    assert_eq!(published["tidewheel_negatives"], negatives);
}

#[test]
fn the_driver_publishes_while_it_is_awake() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().expect("the first of this process");
    let cache: Cache<u64, u64> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .name("awake")
        .build()
        .expect("valid");
    for key in 0..100 {
        cache.insert_with_ttl(key, key, 5 * MS);
    }
    let mut expired = 0;
    for round in 0..1000 {
        if let Some(DebugValue::Counter(count)) =
            published(&snapshotter, "awake").get("tidewheel_expirations_total")
        {
            expired += count;
        }
        if expired >= 100 {
            break;
        }
        // Something to wake up for.
        cache.insert_with_ttl(round + 1000, 0, MS);
        std::thread::sleep(10 * MS);
    }
    assert!(expired >= 100, "{expired}");
}
