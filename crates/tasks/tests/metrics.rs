//! The `metrics` facade gets each count once, and the README says what each is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tidewheel_tasks::{ManualClock, MemoryStore, Retry, Task, TaskStore, Worker, wait};

#[test]
fn every_field_of_the_statistics_is_published_once_and_the_readme_says_what_it_is() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let clock = ManualClock::new();
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    let worker = Worker::builder(Arc::clone(&store))
        .name("mails")
        .retry(Retry::default().attempts(1));
    let worker = worker.manual(&clock, |run| match run.id() {
        "bad" => Err("down"),
        _ => Ok(()),
    });
    let worker = worker.expect("valid");
    for id in ["bad", "good"] {
        wait(store.schedule(Task::new(id, ""))).expect("taken");
    }
    worker.turn();
    clock.advance(Duration::from_millis(5));
    worker.turn();
    let publish = || metrics::with_local_recorder(&recorder, || worker.publish_metrics());
    publish();
    publish();
    let (told, readme) = (
        snapshotter.snapshot().into_vec(),
        include_str!("../README.md"),
    );
    let mut values = HashMap::new();
    for (key, _, help, value) in told {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels: Vec<_> = key.key().labels().collect();
        assert_eq!((labels[0].key(), labels[0].value()), ("worker", "mails"));
        let (name, help) = (key.key().name().to_owned(), help.unwrap_or_default());
        let row = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` | {kind} |")));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| {help} |"))),
            "{name}: {row:?}"
        );
        values.insert(name, value);
    }
    let stats = worker.stats();
    assert_eq!((stats.done, stats.dead), (1, 1), "{stats:?}");
    assert_eq!(values["tidewheel_tasks_done_total"], DebugValue::Counter(1));
    assert_eq!(values["tidewheel_tasks_dead_total"], DebugValue::Counter(1));
    match &values["tidewheel_tasks_lateness_seconds"] {
        DebugValue::Histogram(late) => assert_eq!(late.len(), 2),
        other => panic!("{other:?}"),
    }
    let printed = format!("{stats:#?}");
    let fields = printed
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(':'))
        .filter(|(field, _)| !field.starts_with(' '));
    let mut count = 0;
    for (field, _) in fields {
        let field = field.trim_end_matches("_us");
        let names = ["_total", "", "_seconds"].map(|end| format!("tidewheel_tasks_{field}{end}"));
        assert!(
            names.iter().any(|name| values.contains_key(name)),
            "{field}"
        );
        count += 1;
    }
    assert_eq!(count, values.len());
}
