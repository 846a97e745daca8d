//! Tasks in NATS JetStream: the suite on one node, and the guarantees while leaders are elected.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tidewheel_engines::{Nats, eventually, within};
use tidewheel_tasks::{
    Ask, Clock, Due, Failure, NatsStore, Rhythm, State, StoreError, SystemClock, Task, TaskStore,
    Verdict, Worker, wait,
};
use tokio::runtime::Runtime;

use crate::common::proxy::Proxy;
use crate::common::{
    MS, changes_one_queue, goes_on_after_silence, shares_a_limit, shares_what_is_due,
};
use crate::conformance::suite;
use crate::model::models;

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
}

#[test]
fn jetstream_does_what_every_store_must() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let builder = NatsStore::builder("suite")
        .lookahead(MS(100))
        .lease(MS(1500));
    let store = runtime
        .block_on(builder.connect(nats.urls()))
        .expect("a connection");
    suite(&store, MS(1500), &|time| std::thread::sleep(time));
}

/// Each was scheduled alone, and asked about alone: on a busy node the call took too long.
#[test]
fn fifty_tasks_that_are_due_at_once_go_in_one_batch() {
    use futures_util::{FutureExt, StreamExt};
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("at-once").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let calls = runtime.block_on(async {
        let client = async_nats::connect(nats.urls()).await.expect("a client");
        let calls = client.subscribe("$JS.API.>").await;
        let mut calls = calls.expect("subscribed");
        client.flush().await.expect("the server knows");
        let tasks = (0..50).map(|n| Task::new(format!("{n}"), ""));
        let dues = store.schedule_many(tasks.collect()).await;
        assert_eq!(dues.expect("scheduled").len(), 50);
        client.flush().await.expect("the server has told");
        std::iter::from_fn(|| calls.next().now_or_never().flatten()).count()
    });
    assert!(calls < 5, "{calls}");
    let ask = Ask::new("w", MS(1000), Duration::from_secs(60), 50);
    let mut claimed = 0;
    eventually("all are claimed", || {
        claimed += wait(store.claim(ask.clone())).unwrap_or_default().len();
        (claimed == 50).then_some(())
    });
}

/// What was given back went to the same process once more, which ended with it: it was there for
/// others only when the lease was over.
#[test]
fn what_a_worker_gives_back_at_its_end_is_for_others_at_once() {
    const TASKS: usize = 200;
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtimes = [runtime(), runtime()];
    let [ends, other] = [0, 1].map(|n| {
        let connecting = NatsStore::builder("ends").connect(nats.urls());
        runtimes[n].block_on(connecting).expect("a connection")
    });
    let tasks = (0..TASKS).map(|n| Task::new(format!("{n}"), "").after(MS(8000)));
    wait(ends.schedule_many(tasks.collect())).expect("scheduled");
    let worker = Worker::builder(ends).start(|_| {}).expect("a worker");
    eventually("all are held", || {
        (worker.stats().held == TASKS).then_some(())
    });
    assert_eq!(worker.stop(MS(5000)).released, TASKS as u64);
    let [own, _runtime] = runtimes;
    own.shutdown_background();
    let mut claimed = 0;
    within(MS(4000), "all are claimed", || {
        let ask = Ask::new("w", MS(10_000), Duration::from_secs(60), TASKS);
        claimed += wait(other.claim(ask)).unwrap_or_default().len();
        (claimed == TASKS).then_some(())
    });
}

/// A server refuses a batch of more than a thousand letters.
#[test]
fn a_batch_whose_tasks_have_four_letters_each_is_kept() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("letters").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let hour = Duration::from_secs(3600);
    let tasks = (0..500).map(|n| Task::new(format!("{n}"), "").after(hour));
    let unique = tasks.clone().map(|task| task.unique_for(hour));
    // The second time each has a mark, a record, and a blank instead of the first.
    for tasks in [tasks.collect::<Vec<_>>(), unique.collect()] {
        let dues = wait(store.schedule_many(tasks)).expect("scheduled");
        assert_eq!(dues.iter().flatten().count(), 500);
    }
}

/// A space that was mistyped was made, and the lease of one that was there was changed.
#[test]
fn who_only_looks_makes_and_changes_nothing() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let looks = |space: &str| {
        let builder = NatsStore::builder(space).only_there();
        runtime.block_on(builder.connect(nats.urls()))
    };
    for _ in 0..2 {
        let refused = looks("looks").expect_err("it is not there");
        assert_eq!(
            refused.to_string(),
            "it is refused: there is no stream TW_looks"
        );
    }
    let builder = NatsStore::builder("looks").lease(MS(5000));
    let made = runtime.block_on(builder.connect(nats.urls()));
    let made = made.expect("a connection");
    let store = looks("looks").expect("a connection");
    for id in ["a", "b"] {
        wait(store.schedule(Task::new(id, ""))).expect("scheduled");
    }
    for store in [made, store] {
        let ask = || Ask::new("w", MS(100), MS(9000), 1);
        let claim = eventually("it is claimed", || {
            wait(store.claim(ask())).expect("claims").pop()
        });
        // Three quarters of it are believed in.
        assert_eq!(claim.lease, MS(3750));
    }
    let long = looks(&"x".repeat(201)).expect_err("it is too long");
    let long = long.to_string();
    assert!(
        long.contains("200 bytes") && !long.contains("lease"),
        "{long}"
    );
}

#[test]
fn what_is_handed_over_is_claimed_at_once_whatever_the_workers_lookahead_is() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let builder = NatsStore::builder("ahead").lookahead(MS(1000));
    let store = runtime
        .block_on(builder.connect(nats.urls()))
        .expect("a connection");
    let due = wait(store.schedule(Task::new("a", "").after(MS(1300)))).expect("scheduled");
    let ask = || Ask::new("w", MS(100), MS(5000), 10);
    let claim = eventually("it is claimed", || {
        wait(store.claim(ask())).expect("claims").pop()
    });
    let ahead = due.since(wait(store.now()).expect("the time"));
    // A second delivery would cost a record.
    assert_eq!(claim.receipt.split('.').nth(4), Some("1"));
    assert!(ahead > MS(200), "{ahead:?}");
}

#[test]
fn jetstream_answers_as_the_model_does() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let builder = NatsStore::builder("model").lookahead(MS(100));
    let connecting = builder.lease(Duration::from_secs(120)).connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    models(&store, 20..30, &|time| std::thread::sleep(time));
}

#[test]
fn an_idle_worker_gets_what_a_busy_one_cannot_begin() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connect = |_| {
        let connecting = NatsStore::builder("share").connect(nats.urls());
        runtime.block_on(connecting).expect("a connection")
    };
    shares_what_is_due(&[0, 1].map(connect));
}

#[test]
fn a_limit_holds_over_processes() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connect = |_| {
        let connecting = NatsStore::builder("limit").connect(nats.urls());
        runtime.block_on(connecting).expect("a connection")
    };
    shares_a_limit(&[0, 1].map(connect));
}

/// A batch failed as a whole, and what had ended in it was refused when it was told again.
#[test]
fn an_end_that_fails_leaves_the_verdicts_of_the_others() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("batch").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let ask = || Ask::new("w", MS(100), MS(5000), 1);
    let claims = ["a", "b", "c"].map(|id| {
        wait(store.schedule(Task::new(id, ""))).expect("scheduled");
        let mut claim = eventually("it is claimed", || {
            wait(store.claim(ask())).expect("claims").pop()
        });
        if id == "b" {
            // Its next run is too large for a message.
            claim.terms.rhythm = Some(Rhythm::Every(MS(1000)));
            claim.payload = vec![0; 2_000_000];
        }
        Arc::new(claim)
    });
    let done = wait(store.done(&claims)).expect("answered");
    assert_eq!(done, [Verdict::Accepted, Verdict::Busy, Verdict::Accepted]);
    assert!(wait(store.done(&claims[1..2])).is_err());
}

/// A message that somebody else had written ran as a task.
#[test]
fn a_message_that_is_not_as_it_was_scheduled_becomes_a_dead_letter_and_never_runs() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("strange").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let mut headers = async_nats::HeaderMap::new();
    for (name, value) in [("Tw-Due", "1"), ("Tw-Attempt", "1"), ("Tw-Every", "1000")] {
        headers.insert(name, value);
    }
    for (id, sum) in [("none", None), ("wrong", Some("7"))] {
        let mut headers = headers.clone();
        sum.into_iter()
            .for_each(|sum| headers.insert("Tw-Sum", sum));
        runtime.block_on(async {
            let stranger = async_nats::connect(nats.urls()).await.expect("a client");
            let subject = format!("tw.strange.d.1.{id}.1");
            let put = stranger.publish_with_headers(subject, headers, "payload".into());
            put.await.expect("sent");
            stranger.flush().await.expect("sent");
        });
        let letter = eventually("a letter", || {
            let ask = Ask::new("w", MS(100), MS(5000), 10);
            assert_eq!(wait(store.claim(ask)), Ok(Vec::new()), "{id}");
            wait(store.dead_letters(10)).expect("letters").pop()
        });
        assert!(
            letter.error.contains("damaged") && letter.id == id,
            "{letter:?}"
        );
        assert_eq!(letter.payload, b"payload");
        let refused = wait(store.requeue(id, Due::After(MS(0)))).expect_err("damaged");
        assert!(refused.to_string().contains("damaged"), "{refused}");
        assert_eq!(wait(store.remove_dead(id)), Ok(true));
    }
}

/// It was in no list, and for who needed its task that was no dead letter.
#[test]
fn a_letter_whose_headers_are_gone_is_listed_as_damaged() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("bare").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    wait(store.schedule(Task::new("a", "payload"))).expect("scheduled");
    let claim = eventually("it is claimed", || {
        let ask = Ask::new("w", MS(100), MS(5000), 1);
        wait(store.claim(ask)).expect("claims").pop()
    });
    let failed = wait(store.fail(&claim, Failure::dead("gone")));
    assert_eq!(failed, Ok(Verdict::Accepted));
    runtime.block_on(async {
        let stranger = async_nats::connect(nats.urls()).await.expect("a client");
        let kept = stranger.request("tw.bare.x.a", "else".into()).await;
        let kept = kept.expect("answered").payload;
        assert!(!kept.windows(5).any(|word| word == b"error"), "{kept:?}");
    });
    let letters = wait(store.dead_letters(9)).expect("letters");
    let [letter] = &*letters else {
        panic!("{letters:?}");
    };
    assert_eq!((&*letter.id, &*letter.payload), ("a", &b"else"[..]));
    assert!(letter.error.starts_with("it is damaged"), "{letter:?}");
    let look = wait(store.look("a")).expect("answered");
    let listed = wait(store.list(State::Dead, None, None, 9)).expect("a list");
    assert_eq!(listed.into_iter().next(), look);
    assert_eq!(look.map(|look| look.state), Some(State::Dead));
    let refused = wait(store.requeue("a", Due::After(MS(0)))).expect_err("damaged");
    assert!(refused.to_string().contains("damaged"), "{refused}");
    assert_eq!(wait(store.remove_dead("a")), Ok(true));
}

/// It was not there for a look, nor for who cancelled it.
#[test]
fn a_task_whose_time_is_damaged_can_be_cancelled() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("timeless").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Tw-Due", "soon");
    runtime.block_on(async {
        let stranger = async_nats::connect(nats.urls()).await.expect("a client");
        let put = stranger.publish_with_headers("tw.timeless.s.a.1", headers, "".into());
        put.await.expect("sent");
        stranger.flush().await.expect("sent");
    });
    let error = eventually("it is kept", || wait(store.look("a")).err());
    assert!(error.to_string().contains("damaged"), "{error}");
    assert_eq!(wait(store.cancel("a")), Ok(true));
    assert_eq!(wait(store.look("a")), Ok(None));
}

/// Some were in no list, and of those that were, nothing was there for who looked, cancelled or
/// removed.
#[test]
fn what_another_program_put_into_the_stream_is_seen_and_can_be_removed() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("foreign").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let long = format!("tw.foreign.x.{}", "a.".repeat(150) + "b");
    let strange = [
        (State::Pending, "tw.foreign.s.a:b.1", "tw.foreign.s.a:b.1"),
        (State::Pending, "tw.foreign.s.a.soon", "tw.foreign.s.a.soon"),
        (State::Pending, "tw.foreign.s.%zz.1", "tw.foreign.s.%zz.1"),
        (State::Pending, "tw.foreign.s.a.b.1", "tw.foreign.s.a.b.1"),
        (State::Pending, "tw.foreign.s.plain.1", "plain"),
        (
            State::Claimed,
            "tw.foreign.d.1.a:b.1",
            "tw.foreign.d.1.a:b.1",
        ),
        (
            State::Claimed,
            "tw.foreign.d.1.%zz.1",
            "tw.foreign.d.1.%zz.1",
        ),
        (
            State::Claimed,
            "tw.foreign.d.1.a.soon",
            "tw.foreign.d.1.a.soon",
        ),
        (State::Claimed, "tw.foreign.d.1", "tw.foreign.d.1"),
        (State::Claimed, "tw.foreign.d.1.other.1", "other"),
        (State::Dead, "tw.foreign.x.a:b", "tw.foreign.x.a:b"),
        (State::Dead, "tw.foreign.x.a.b", "tw.foreign.x.a.b"),
        (State::Dead, "tw.foreign.x.%zz", "tw.foreign.x.%zz"),
        (State::Dead, "tw.foreign.x.%41", "tw.foreign.x.%41"),
        (State::Dead, &long, &long),
        (State::Dead, "tw.foreign.x.plain", "plain"),
    ];
    // What is ours stays.
    wait(store.schedule(Task::new("ours", "").after(MS(3_600_000)))).expect("scheduled");
    let list = |state| {
        let list = wait(store.list(state, None, None, 9)).expect("a list");
        list.into_iter().filter(|look| look.id != "ours")
    };
    let put = |subject: &str| {
        runtime.block_on(async {
            let stranger = async_nats::connect(nats.urls()).await.expect("a client");
            let kept = stranger.request(subject.to_owned(), "hi".into()).await;
            let kept = kept.expect("answered").payload;
            assert!(!kept.windows(5).any(|word| word == b"error"), "{kept:?}");
        });
    };
    let remove = |state, id: &str| match state {
        State::Dead => wait(store.remove_dead(id)),
        _ => wait(store.cancel(id)),
    };
    for (state, subject, id) in strange {
        put(subject);
        let listed: Vec<_> = list(state).collect();
        let [look] = &*listed else {
            panic!("{subject}: {listed:?}");
        };
        let error = look.error.as_deref().unwrap_or_default();
        assert!(error.starts_with("it is damaged"), "{look:?}");
        assert_eq!((&*look.id, &*look.payload), (id, &b"hi"[..]), "{subject}");
        assert!(wait(store.list(state, None, Some(id), 9)).is_ok());
        match wait(store.look(id)) {
            Ok(look) => assert_eq!(look, listed.into_iter().next()),
            Err(error) => assert!(error.to_string().contains("damaged"), "{error}"),
        }
        assert_eq!(remove(state, id), Ok(true), "{subject}");
        assert_eq!(wait(store.look(id)), Ok(None), "{subject}");
        assert_eq!(remove(state, id), Ok(false), "{subject}");
        assert_eq!(list(state).count(), 0, "{subject}");
    }
    // An id that looks like many subjects is none.
    put("tw.foreign.x.%zz");
    for id in ["tw.foreign.x.*", "tw.foreign.x.>", "tw.foreign.x."] {
        assert_eq!(wait(store.remove_dead(id)), Ok(false), "{id}");
        assert_eq!(wait(store.look(id)), Ok(None), "{id}");
    }
    let taken = wait(store.schedule(Task::new("tw.foreign.x.%zz", "")));
    assert!(matches!(taken, Err(StoreError::Refused(_))), "{taken:?}");
    assert_eq!(remove(State::Dead, "tw.foreign.x.%zz"), Ok(true));
    // A worker makes letters of what it is given.
    for (subject, id) in [
        ("tw.foreign.d.1.%yy.1", "tw.foreign.d.1.%yy.1"),
        ("tw.foreign.d.1.third.1", "third"),
    ] {
        put(subject);
        let letter = eventually("a letter", || {
            let ask = Ask::new("w", MS(100), MS(5000), 10);
            assert_eq!(wait(store.claim(ask)), Ok(Vec::new()), "{id}");
            wait(store.dead_letters(10)).expect("letters").pop()
        });
        assert_eq!((&*letter.id, &*letter.payload), (id, &b"hi"[..]));
        assert_eq!(list(State::Claimed).count(), 0, "{subject}");
        assert_eq!(wait(store.remove_dead(id)), Ok(true), "{id}");
    }
    assert_eq!(wait(store.cancel("ours")), Ok(true));
}

/// A wall clock that somebody sets.
#[derive(Debug)]
struct Set(SystemClock, Arc<AtomicU64>);

impl Clock for Set {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wall(&self) -> SystemTime {
        let hours = self.1.load(Relaxed);
        self.0.wall() - MS(3_600_000) + MS(3_600_000 * hours)
    }
}

#[test]
fn a_wall_clock_that_jumps_while_tasks_are_held_moves_no_run() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("jumps").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let hours = Arc::new(AtomicU64::new(1));
    let (early, ran) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (too_early, runs) = (Arc::clone(&early), Arc::clone(&ran));
    let clock = Set(SystemClock::new(), Arc::clone(&hours));
    let worker = Worker::builder(store.clone()).clock(clock);
    let worker = worker.start(move |run| {
        let is_early = SystemClock::new().wall() < run.due().to_system_time();
        too_early.fetch_add(is_early.into(), Relaxed);
        runs.fetch_add(1, Relaxed);
    });
    let worker = worker.expect("a worker");
    let tasks = (0..60).map(|n| Task::new(format!("{n}"), "").after(MS(50 * n)));
    wait(store.schedule_many(tasks.collect())).expect("scheduled");
    // An hour ahead, an hour behind, and right again.
    for (after, hour) in [(10, 2), (25, 0), (40, 1)] {
        eventually("some have run", || {
            (ran.load(Relaxed) >= after).then_some(())
        });
        hours.store(hour, Relaxed);
    }
    eventually("all have run", || (ran.load(Relaxed) >= 60).then_some(()));
    assert_eq!(worker.stop(MS(5000)).left, 0);
    assert_eq!((ran.load(Relaxed), early.load(Relaxed)), (60, 0));
}

/// The client gave up its connection when it read such a message, and no list was answered.
#[test]
fn headers_that_are_none_hide_no_other_letter() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("bent").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let mut stranger = TcpStream::connect(nats.urls()[0].trim_start_matches("nats://"))
        .expect("the server is there");
    let hello = r#"CONNECT {"headers":true,"verbose":false}"#;
    let bent = "NATS/1.0\r\n\r\nbent\r\n\r\n";
    let (head, all) = (bent.len(), bent.len() + 2);
    let ask = format!(
        "{hello}\r\nPUB tw.bent.x.a 2\r\nhi\r\nHPUB tw.bent.x.b {head} {all}\r\n{bent}hi\r\n\
         PUB tw.bent.x.c 2\r\nhi\r\nPING\r\n"
    );
    stranger.write_all(ask.as_bytes()).expect("sent");
    eventually("they are kept", || {
        let letters = wait(store.dead_letters(9)).expect("letters");
        (letters.len() == 3).then_some(())
    });
    let listed = wait(store.list(State::Dead, None, None, 9)).expect("a list");
    let ids: Vec<_> = listed.iter().map(|look| &*look.id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(wait(store.counts()).expect("counted")[""].dead, 3);
    assert_eq!(wait(store.remove_dead("b")), Ok(true));
}

/// The server's error came as one of the engine, which is to be called again. What has just room
/// can also become a dead letter with the longest error.
#[test]
fn a_task_whose_headers_the_server_does_not_take_is_refused() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connecting = NatsStore::builder("headers").connect(nats.urls());
    let store = runtime.block_on(connecting).expect("a connection");
    let id = "ä".repeat(100);
    let task = |of: String, count| {
        let of = (0..count).map(|n| format!("{n:02}{of}"));
        Task::new(&*id, "").queue("ü".repeat(32)).waits_for(of)
    };
    let long = task(" ".repeat(198), 99);
    let alone = wait(store.schedule(long.clone()));
    assert!(matches!(alone, Err(StoreError::Refused(_))), "{alone:?}");
    let many = wait(store.schedule_many(vec![long]));
    assert!(matches!(many, Err(StoreError::Refused(_))), "{many:?}");
    let fits = task("ö".repeat(99), 99).unique_for(MS(60_000));
    wait(store.schedule(fits)).expect("scheduled");
    let claim = eventually("it is claimed", || {
        let ask = Ask::new("w", MS(100), MS(5000), 1);
        wait(store.claim(ask)).expect("claims").pop()
    });
    let put_off = wait(store.fail(&claim, Failure::put_off(Due::After(MS(0)))));
    assert_eq!(put_off, Ok(Verdict::Accepted));
    let claim = eventually("it is claimed again", || {
        let ask = Ask::new("w", MS(100), MS(5000), 1);
        wait(store.claim(ask)).expect("claims").pop()
    });
    let failed = wait(store.fail(&claim, Failure::dead("ß".repeat(500))));
    assert_eq!(failed, Ok(Verdict::Accepted));
    assert_eq!(wait(store.requeue(&id, Due::After(MS(60_000)))), Ok(true));
}

/// A queue for whose consumers the server had no room ended the claims from all others, for good.
#[test]
fn a_queue_too_many_is_refused_and_the_others_go_on() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connect = || {
        let connecting = NatsStore::builder("many-queues").connect(nats.urls());
        runtime.block_on(connecting).expect("a connection")
    };
    let store = connect();
    wait(store.schedule(Task::new("before", ""))).expect("scheduled");
    let far = |n| {
        let task = Task::new(format!("{n}"), "").queue(format!("{n}"));
        wait(store.schedule(task.after(Duration::from_secs(600))))
    };
    let refused = (0..1000).find_map(|n| far(n).err());
    assert!(
        matches!(refused, Some(StoreError::Refused(_))),
        "{refused:?}"
    );
    let other = connect();
    wait(other.schedule(Task::new("after", ""))).expect("scheduled");
    let mut ids = Vec::new();
    eventually("both are claimed", || {
        let ask = Ask::new("w", MS(100), MS(60_000), 9);
        // The first question has to look at all queues, and may take too long.
        let claims = wait(other.claim(ask)).unwrap_or_default();
        ids.extend(claims.into_iter().map(|claim| claim.id));
        (ids.len() == 2).then_some(())
    });
}

/// Claims ended, and nobody was told.
#[test]
fn a_consumer_that_a_stranger_deletes_is_noticed_and_made_anew() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let connect = || {
        let connecting = NatsStore::builder("deleted").connect(nats.urls());
        runtime.block_on(connecting).expect("a connection")
    };
    let (first, second) = (connect(), connect());
    let delete = || {
        runtime.block_on(async {
            let stranger = async_nats::connect(nats.urls()).await.expect("a client");
            let deleted = stranger.request("$JS.API.CONSUMER.DELETE.TW_deleted.p1", "".into());
            deleted.await.expect("deleted");
        });
    };
    let ask = || Ask::new("w", MS(100), MS(5000), 1);
    let claim = |store: &NatsStore| {
        let claimed = || wait(store.claim(ask())).ok()?.pop().map(Arc::new);
        eventually("it is claimed", claimed)
    };
    wait(first.schedule(Task::new("a", "payload"))).expect("scheduled");
    // Now nobody takes a task for older than its consumer.
    std::thread::sleep(MS(1200));
    wait(first.schedule(Task::new("a", "payload"))).expect("scheduled");
    let old = claim(&first);
    let _ = wait(first.leave());
    delete();
    let new = claim(&second);
    assert!(new.fence > old.fence, "{old:?} {new:?}");
    assert_eq!(wait(first.done(&[old])), Ok(vec![Verdict::Refused]));
    assert_eq!(wait(second.done(&[new])), Ok(vec![Verdict::Accepted]));
    let worker = Worker::builder(second).threads(2);
    let worker = worker.start(|_| ()).expect("a worker");
    eventually("it asks", || (worker.stats().offset_us != 0).then_some(()));
    std::thread::sleep(MS(1500));
    delete();
    wait(first.schedule(Task::new("b", ""))).expect("scheduled");
    eventually("it ran", || (worker.stats().done == 1).then_some(()));
    assert!(worker.stats().errors >= 1, "{:?}", worker.stats());
    let stopped = worker.stop(MS(2000));
    assert_eq!(stopped.left, 0);
}

/// Of the 14 that a second worker got after a restart, the first began 3 under the lower fence.
#[test]
fn after_a_restart_no_run_begins_under_a_lower_fence() {
    let Some(mut nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let begun = Arc::new(Mutex::new(Vec::new()));
    let worker = || {
        let connecting = NatsStore::builder("restart").connect(nats.urls());
        let store = runtime.block_on(connecting).expect("a connection");
        let runs = Arc::clone(&begun);
        let worker = Worker::builder(store.clone()).threads(2);
        let worker = worker.start(move |run| {
            let run = (run.id().to_owned(), run.fence());
            runs.lock().expect("no panic").push(run);
        });
        (store, worker.expect("a worker"))
    };
    let (store, first) = worker();
    let (_, second) = worker();
    let tasks = (0..400).map(|n| Task::new(format!("{n}"), "").after(MS(2000 + n * 10)));
    wait(store.schedule_many(tasks.collect())).expect("scheduled");
    let claimed = || first.stats().claimed + second.stats().claimed;
    eventually("all are claimed", || (claimed() >= 400).then_some(()));
    nats.nodes[0].kill();
    nats.nodes[0].restart();
    let done = || first.stats().done + second.stats().done;
    eventually("all have ended", || (done() >= 400).then_some(()));
    let (again, recalled) = (
        claimed() - 400,
        first.stats().recalled + second.stats().recalled,
    );
    println!("{again} were claimed again, {recalled} of them not begun by who had them before");
    let mut latest = std::collections::HashMap::new();
    for (id, fence) in begun.lock().expect("no panic").iter() {
        let before = latest.insert(id.clone(), *fence);
        assert!(
            before.is_none_or(|before| before < *fence),
            "{id}: {before:?}, {fence:?}"
        );
    }
    assert_eq!(
        (first.stop(MS(3000)).left, second.stop(MS(3000)).left),
        (0, 0)
    );
}

#[test]
fn what_was_claimed_runs_on_time_while_a_leader_is_elected() {
    let Some(mut nats) = Nats::cluster() else {
        return;
    };
    let runtime = runtime();
    let builder = NatsStore::builder("election").replicas(3);
    let store = runtime
        .block_on(builder.connect(nats.urls()))
        .expect("a connection");
    let worker = Worker::builder(store.clone()).threads(2);
    let worker = worker.start(|_| ()).expect("a worker");
    for n in 0..300 {
        let task = Task::new(format!("{n}"), "").after(MS(3000 + n * 10));
        wait(store.schedule(task)).expect("scheduled");
    }
    eventually("all are claimed", || {
        (worker.stats().claimed == 300).then_some(())
    });
    nats.nodes[0].kill();
    std::thread::sleep(MS(500));
    nats.nodes[0].restart();
    eventually("all have ended", || {
        (worker.stats().done == 300).then_some(())
    });
    let stats = worker.stats();
    assert_eq!(
        (stats.ran, stats.lapsed, stats.refused),
        (300, 0, 0),
        "{stats:?}"
    );
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!(stopped.left, 0);
}

#[test]
fn a_connection_that_falls_silent_is_made_anew() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let url = nats.urls().remove(0);
    let (_, port) = url.rsplit_once(':').expect("a port");
    let proxy = Proxy::to(port.parse().expect("a port"));
    let runtime = runtime();
    let connect = |port: u16| {
        let builder = NatsStore::builder("silent").options(|| {
            // Otherwise it learns of the way without the proxy.
            async_nats::ConnectOptions::new().ignore_discovered_servers()
        });
        let connecting = builder.connect(format!("nats://127.0.0.1:{port}"));
        runtime.block_on(connecting).expect("a connection")
    };
    let direct = connect(port.parse().expect("a port"));
    goes_on_after_silence(connect(proxy.port), &direct, &proxy);
}

#[test]
fn many_change_one_queue_of_jetstream_at_once() {
    let Some(nats) = Nats::single() else {
        return;
    };
    let runtime = runtime();
    let builder = NatsStore::builder("rules");
    let store = runtime.block_on(builder.connect(nats.urls()));
    changes_one_queue(&store.expect("a connection"));
}
