//! The `metrics` facade gets each count once, and the README says what each is.

use std::time::Duration;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tidewheel_scheduler::{ManualClock, Scheduler};

const MS: Duration = Duration::from_millis(1);

/// The value of a scheduler's metric; of counters and histograms, what was added since the last
/// snapshot.
fn value(snapshotter: &Snapshotter, metric: &str) -> DebugValue {
    let mut all = snapshotter.snapshot().into_vec().into_iter();
    let found = all.find(|(key, ..)| key.key().name() == metric);
    let (key, .., value) = found.unwrap_or_else(|| panic!("{metric} is not published"));
    let mut labels = key.key().labels();
    assert!(labels.any(|label| (label.key(), label.value()) == ("scheduler", "mails")));
    value
}

#[test]
fn every_count_is_published_once() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let clock = ManualClock::new();
        let builder = Scheduler::<u64, ()>::builder().name("mails");
        let scheduler = builder.manual(&clock, |_, _| {}).expect("valid");
        for key in 0..10 {
            scheduler.set(key, (), MS).expect("runs");
        }
        scheduler.set(10, (), 100 * MS).expect("runs");
        clock.advance(4 * MS);
        assert_eq!(scheduler.run_due(), 10);
        let read = |metric| {
            scheduler.publish_metrics();
            value(&snapshotter, metric)
        };
        match read("tidewheel_scheduler_lateness_seconds") {
            DebugValue::Histogram(late) => {
                assert_eq!(late.len(), 10);
                // Upper bounds of windows.
                let is_right = |late: f64| (0.003..0.003_4).contains(&late);
                assert!(
                    late.iter().all(|late| is_right(late.into_inner())),
                    "{late:?}"
                );
            }
            other => panic!("{other:?}"),
        }
        let pending = DebugValue::Gauge(1.0.into());
        assert_eq!(read("tidewheel_scheduler_pending"), pending);
        // It was published twice, and was told of once.
        let completed = "tidewheel_scheduler_completed_total";
        assert_eq!(read(completed), DebugValue::Counter(0));
        clock.advance(100 * MS);
        assert_eq!(scheduler.run_due(), 1);
        assert_eq!(read(completed), DebugValue::Counter(1));
    });
}

#[test]
fn every_field_of_the_statistics_is_published_and_the_readme_says_what_it_is() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let stats = metrics::with_local_recorder(&recorder, || {
        let clock = ManualClock::new();
        let scheduler = Scheduler::<u64, ()>::builder().manual(&clock, |_, _| {});
        let scheduler = scheduler.expect("valid");
        scheduler.set(7, (), MS).expect("runs");
        clock.advance(MS);
        assert_eq!(scheduler.run_due(), 1);
        scheduler.publish_metrics();
        scheduler.stats()
    });
    let told = snapshotter.snapshot().into_vec();
    let readme = include_str!("../README.md");
    for (key, _, help, _) in &told {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (name, help) = (key.key().name(), help.as_deref().unwrap_or_default());
        let row = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` | {kind} |")));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| {help} |"))),
            "{name}: {row:?}"
        );
    }
    let printed = format!("{stats:#?}");
    let fields = printed
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(':'))
        .filter(|(field, _)| !field.starts_with(' '));
    let mut count = 0;
    for (field, _) in fields {
        let names =
            ["_total", "", "_seconds"].map(|end| format!("tidewheel_scheduler_{field}{end}"));
        let is_told = told
            .iter()
            .any(|(key, ..)| names.iter().any(|name| name == key.key().name()));
        assert!(is_told, "{field}");
        count += 1;
    }
    assert_eq!(count, told.len());
}
