//! Tasks in Postgres: the suite, transactions, and a server that is cut off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_engines::{Postgres, eventually};
use tidewheel_tasks::{
    Ask, Clock, Due, Failure, PostgresStore, Rate, Rhythm, State, StoreError, SystemClock, Task,
    TaskStore, Verdict, Worker, wait,
};
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

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

/// A server, the runtime of its clients, and a store.
fn start() -> Option<(Postgres, Runtime, PostgresStore)> {
    let (server, runtime) = (Postgres::start()?, runtime());
    let url = server.url();
    let connecting = PostgresStore::connect(&url, "tests");
    let store = runtime.block_on(connecting).expect("a connection");
    Some((server, runtime, store))
}

/// Changes rows as somebody else does.
fn by_hand(server: &Postgres, runtime: &Runtime, change: &str) {
    runtime.block_on(async {
        let connected = tokio_postgres::connect(&server.url(), NoTls).await;
        let (client, connection) = connected.expect("a client");
        tokio::spawn(connection);
        client.batch_execute(change).await.expect("changed");
    });
}

#[test]
fn postgres_does_what_every_store_must() {
    let Some((_server, _runtime, store)) = start() else {
        return;
    };
    suite(&store, MS(700), &|time| std::thread::sleep(time));
    assert_eq!(wait(store.count()), Ok(0));
}

#[test]
fn postgres_answers_as_the_model_does() {
    let Some((_server, _runtime, store)) = start() else {
        return;
    };
    models(&store, 20..30, &|time| std::thread::sleep(time));
    assert_eq!(wait(store.count()), Ok(0));
}

#[test]
fn an_idle_worker_gets_what_a_busy_one_cannot_begin() {
    let Some((_server, _runtime, store)) = start() else {
        return;
    };
    shares_what_is_due(&[store.clone(), store.clone()]);
    assert_eq!(wait(store.count()), Ok(0));
}

#[test]
fn a_limit_holds_over_processes() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    let url = server.url();
    let other = runtime.block_on(PostgresStore::connect(&url, "tests"));
    shares_a_limit(&[store, other.expect("a connection")]);
}

#[test]
fn a_task_comes_with_the_callers_transaction() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    runtime.block_on(async {
        let (mut client, connection) = tokio_postgres::connect(&server.url(), NoTls)
            .await
            .expect("a client");
        tokio::spawn(connection);
        for commits in [false, true] {
            let transaction = client.transaction().await.expect("a transaction");
            let task = Task::new("mail", "").after(Duration::from_secs(60));
            store
                .schedule_in(&transaction, task)
                .await
                .expect("enqueued");
            if commits {
                transaction.commit().await.expect("committed");
            } else {
                transaction.rollback().await.expect("rolled back");
            }
            assert_eq!(store.count().await, Ok(u64::from(commits)));
        }
    });
}

#[test]
fn tables_of_an_older_version_are_brought_up_and_keep_their_rows() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    let minute = Duration::from_secs(60);
    wait(store.schedule(Task::new("old", "payload").every(minute))).expect("scheduled");
    drop(store);
    runtime.block_on(async {
        let connected = tokio_postgres::connect(&server.url(), NoTls).await;
        let (client, connection) = connected.expect("a client");
        tokio::spawn(connection);
        let older = "ALTER TABLE tidewheel_tasks DROP COLUMN terms, DROP COLUMN lane;
            ALTER TABLE tidewheel_dead DROP COLUMN terms;
            COMMENT ON TABLE tidewheel_tasks IS NULL";
        client.batch_execute(older).await.expect("as it was");
    });
    let url = server.url();
    let connecting = PostgresStore::connect(&url, "tests");
    let store = runtime.block_on(connecting).expect("a connection");
    let ask = || Ask::new("w", MS(100), MS(5000), 10);
    let claims = wait(store.claim(ask())).expect("claims");
    assert_eq!((claims.len(), &*claims[0].payload), (1, &b"payload"[..]));
    assert_eq!(claims[0].terms.rhythm, Some(Rhythm::Every(minute)));
    let done = wait(store.done(&[Arc::new(claims[0].clone())])).expect("answered");
    assert!(done[0].is_accepted());
    assert_eq!(wait(store.count()), Ok(1));
}

/// Whoever connected waited for the transaction, and failed.
#[test]
fn an_open_transaction_with_a_task_holds_up_no_new_connection() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    runtime.block_on(async {
        let connected = tokio_postgres::connect(&server.url(), NoTls).await;
        let (mut client, connection) = connected.expect("a client");
        tokio::spawn(connection);
        let transaction = client.transaction().await.expect("a transaction");
        let task = Task::new("mail", "").after(Duration::from_secs(60));
        let enqueued = store.schedule_in(&transaction, task).await;
        enqueued.expect("enqueued");
        let other = PostgresStore::connect(&server.url(), "tests").await;
        let other = other.expect("a connection");
        assert_eq!(other.count().await, Ok(0));
        transaction.commit().await.expect("committed");
        assert_eq!(other.count().await, Ok(1));
    });
}

/// One such row, due in a year, hid all others for a year.
#[test]
fn a_row_that_is_damaged_is_listed_beside_the_others_and_named_to_who_looks() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    let later = |id: &str| Task::new(id, "payload").after(Duration::from_secs(9999));
    let ids = ["a", "b", "c"];
    wait(store.schedule_many(ids.map(later).to_vec())).expect("scheduled");
    by_hand(
        &server,
        &runtime,
        "UPDATE tidewheel_tasks SET checksum = 0 WHERE id = 'b'",
    );
    let list = wait(store.list(State::Pending, None, None, 10)).expect("listed");
    assert_eq!(list.iter().map(|look| &look.id).collect::<Vec<_>>(), ids);
    assert_eq!(
        list.iter()
            .map(|look| look.error.is_some())
            .collect::<Vec<_>>(),
        [false, true, false]
    );
    let error = wait(store.look("b")).expect_err("damaged").to_string();
    assert!(
        error.contains(r#""b""#) && error.contains("damaged"),
        "{error}"
    );
    assert_eq!(wait(store.cancel("b")), Ok(true));
    assert_eq!(
        wait(store.list(State::Pending, None, None, 10)).map(|list| list.len()),
        Ok(2)
    );
}

/// It was listed, and refused to whoever wanted to end it.
#[test]
fn a_row_whose_name_is_damaged_can_be_ended() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    let long = "y".repeat(300);
    for id in ["", &*long] {
        let later = Task::new("task", "payload").after(Duration::from_secs(9999));
        wait(store.schedule(later)).expect("scheduled");
        wait(store.schedule(Task::new("letter", "payload"))).expect("scheduled");
        let claims = wait(store.claim(Ask::new("w", MS(100), MS(5000), 10))).expect("claimed");
        let died = wait(store.fail(&claims[0], Failure::dead("no such address")));
        assert_eq!(died, Ok(Verdict::Accepted));
        for table in ["tidewheel_tasks", "tidewheel_dead"] {
            by_hand(
                &server,
                &runtime,
                &format!("UPDATE {table} SET id = '{id}'"),
            );
        }
        assert_eq!(wait(store.cancel(id)), Ok(true), "{id:?}");
        assert_eq!(wait(store.remove_dead(id)), Ok(true), "{id:?}");
        let again = [wait(store.cancel(id)), wait(store.remove_dead(id))];
        let is_refused = |answer: &Result<bool, _>| matches!(answer, Err(StoreError::Refused(_)));
        assert!(again.iter().all(is_refused), "{again:?}");
    }
    wait(store.pause("mails")).expect("paused");
    by_hand(
        &server,
        &runtime,
        &format!("UPDATE tidewheel_queues SET lane = '{long}'"),
    );
    assert_eq!(wait(store.resume(&long)), Ok(()));
    assert_eq!(wait(store.paused()), Ok(Vec::new()));
}

/// It was listed as one of a normal priority, and no worker ever claimed it.
#[test]
fn a_row_of_no_priority_says_that_it_is_damaged() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    wait(store.schedule_many(["a", "b", "c"].map(|id| Task::new(id, "")).to_vec()))
        .expect("scheduled");
    by_hand(
        &server,
        &runtime,
        "UPDATE tidewheel_tasks SET priority = 99 WHERE id = 'a'",
    );
    by_hand(
        &server,
        &runtime,
        "UPDATE tidewheel_tasks SET priority = -1 WHERE id = 'b'",
    );
    let list = wait(store.list(State::Pending, None, None, 10)).expect("listed");
    let damaged = list.iter().map(|look| look.error.is_some());
    assert_eq!(damaged.collect::<Vec<_>>(), [true, true, false]);
    assert!(wait(store.look("a")).is_err());
    assert_eq!(
        [wait(store.cancel("a")), wait(store.cancel("b"))],
        [Ok(true), Ok(true)]
    );
}

/// It said only that there was an error.
#[test]
fn a_server_that_is_not_there_is_an_error_that_says_why() {
    let url = "postgres://me:secret@127.0.0.1:1/tests";
    let error = runtime().block_on(PostgresStore::connect(url, "tests"));
    let error = error.expect_err("nobody is there").to_string();
    assert!(
        error.contains("refused") && !error.contains("secret"),
        "{error}"
    );
}

/// Such a letter looked like the others, and was a dead letter again as soon as it was tried.
#[test]
fn a_letter_that_is_damaged_says_so_and_is_not_tried_again() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    let ids = ["a", "b", "c"];
    let tasks = ids.map(|id| Task::new(id, "payload"));
    wait(store.schedule_many(tasks.to_vec())).expect("scheduled");
    let claims = wait(store.claim(Ask::new("w", MS(100), MS(5000), 10))).expect("claimed");
    for claim in &claims {
        let died = wait(store.fail(claim, Failure::dead("no such address")));
        assert_eq!(died, Ok(Verdict::Accepted));
    }
    by_hand(
        &server,
        &runtime,
        "UPDATE tidewheel_dead SET payload = 'other' WHERE id = 'b'",
    );
    let letters = wait(store.dead_letters(10)).expect("letters");
    let listed = wait(store.list(State::Dead, None, None, 10)).expect("listed");
    let looks = ids.map(|id| wait(store.look(id)).expect("looked").expect("a letter"));
    let letters = letters.into_iter().map(|letter| (letter.id, letter.error));
    let looks = looks.into_iter().chain(listed);
    let looks = looks.map(|look| (look.id, look.error.unwrap_or_default()));
    for (id, error) in letters.chain(looks) {
        assert_eq!(error.contains("damaged"), id == "b", "{id}: {error}");
        assert!(error.contains("no such address"), "{id}: {error}");
    }
    let again = |id| wait(store.requeue(id, Due::After(Duration::ZERO)));
    let refused = again("b").expect_err("damaged").to_string();
    assert!(refused.contains("damaged"), "{refused}");
    assert_eq!((again("a"), again("c")), (Ok(true), Ok(true)));
    assert_eq!(wait(store.remove_dead("b")), Ok(true));
}

/// A byte that had changed ran as another payload.
#[test]
fn a_row_that_is_not_as_it_was_scheduled_becomes_a_dead_letter_and_never_runs() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    let ask = || Ask::new("w", MS(100), MS(5000), 10);
    // None of them has a run. A test that runs at the end of a week has bad luck.
    let rate = Rate::new(1, Duration::from_secs(7 * 86_400));
    assert_eq!(wait(store.limit("mails", Some(rate))), Ok(()));
    for (id, change) in [
        ("payload", "payload = 'other'"),
        ("name", "id = 'name-of-another'"),
        ("checksum", "checksum = checksum + 1"),
    ] {
        let task = Task::new(id, "payload").queue("mails");
        wait(store.schedule(task)).expect("scheduled");
        by_hand(
            &server,
            &runtime,
            &format!("UPDATE tidewheel_tasks SET {change}"),
        );
        assert_eq!(wait(store.claim(ask())), Ok(Vec::new()), "{id}");
        let letters = wait(store.dead_letters(10)).expect("letters");
        assert_eq!(letters.len(), 1, "{id}: {letters:?}");
        assert!(letters[0].error.contains("damaged"), "{letters:?}");
        assert_eq!(letters[0].attempts, 0, "{letters:?}");
        let dead = letters[0].id.as_str();
        let again = wait(store.requeue(dead, Due::After(Duration::ZERO)));
        assert!(matches!(again, Err(StoreError::Refused(_))), "{again:?}");
        assert_eq!(wait(store.remove_dead(dead)), Ok(true), "{id}");
    }
    assert_eq!(wait(store.count()), Ok(0));
}

#[test]
fn what_was_claimed_runs_on_time_while_the_server_is_away() {
    let Some((mut server, _runtime, store)) = start() else {
        return;
    };
    let late = Arc::new(Mutex::new(Vec::new()));
    let lates = Arc::clone(&late);
    let worker = Worker::builder(store.clone()).threads(2);
    let worker = worker.start(move |run| lates.lock().expect("no panic").push(run.late()));
    let worker = worker.expect("a worker");
    for n in 0..300 {
        let task = Task::new(format!("{n}"), "").after(MS(1500 + n * 10));
        wait(store.schedule(task)).expect("scheduled");
    }
    eventually("all are claimed", || {
        (worker.stats().claimed == 300).then_some(())
    });
    server.restart_immediately();
    eventually("all have ended", || {
        (wait(store.count()) == Ok(0)).then_some(())
    });
    let stats = worker.stats();
    assert_eq!((stats.ran, stats.lapsed, stats.recalled), (300, 0, 0));
    assert_eq!(late.lock().expect("no panic").len(), 300);
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!(stopped.left, 0);
}

#[test]
fn a_connection_that_falls_silent_is_made_anew() {
    let Some((server, runtime, direct)) = start() else {
        return;
    };
    let url = server.url();
    let port = url
        .split("port=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let port = port.expect("a port");
    let proxy = Proxy::to(port.parse().expect("a port"));
    let url = url.replace(port, &proxy.port.to_string());
    let store = runtime.block_on(PostgresStore::connect(&url, "tests"));
    goes_on_after_silence(store.expect("a connection"), &direct, &proxy);
}

#[test]
fn an_open_transaction_that_replaces_a_running_task_holds_up_nothing_else() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    let (told, runs) = std::sync::mpsc::channel();
    let worker = Worker::builder(store.clone()).threads(2);
    let worker = worker.start(move |run| {
        let _ = told.send((run.id().to_owned(), run.late()));
        if run.payload() == b"slow" {
            std::thread::sleep(MS(500));
        }
    });
    let worker = worker.expect("a worker");
    wait(store.schedule(Task::new("digest", "slow"))).expect("scheduled");
    assert_eq!(runs.recv().expect("a run").0, "digest");
    runtime.block_on(async {
        let (mut client, connection) = tokio_postgres::connect(&server.url(), NoTls)
            .await
            .expect("a client");
        tokio::spawn(connection);
        let transaction = client.transaction().await.expect("a transaction");
        let task = Task::new("digest", "new").after(MS(4500));
        let kept = store.schedule_in(&transaction, task).await;
        kept.expect("enqueued");
        tokio::time::sleep(MS(600)).await;
        for n in 0..4 {
            let task = Task::new(format!("{n}"), "").after(MS(300));
            store.schedule(task).await.expect("scheduled");
            tokio::time::sleep(MS(500)).await;
        }
        // A call for the same id is not held up for ever.
        let clock = SystemClock::new();
        let begun = clock.now();
        assert!(store.schedule(Task::new("digest", "own")).await.is_err());
        assert!(clock.now() - begun < MS(4000));
        transaction.commit().await.expect("committed");
    });
    let ran: Vec<_> = runs.iter().take(5).collect();
    for (n, (id, late)) in ran.iter().take(4).enumerate() {
        assert_eq!(*id, format!("{n}"));
        assert!(*late < MS(400), "{ran:?}");
    }
    assert_eq!(ran[4].0, "digest");
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!((stopped.left, wait(store.count())), (0, Ok(0)));
}

/// The planner had last seen a table with nothing in it, and each claim walked all of it.
#[test]
fn many_tasks_are_claimed_in_time_though_the_table_was_nearly_empty_a_moment_ago() {
    let Some((server, runtime, store)) = start() else {
        return;
    };
    for id in 0..100 {
        wait(store.schedule(Task::new(id.to_string(), ""))).expect("scheduled");
    }
    let ask = |most| Ask::new("worker", MS(0), Duration::from_secs(60), most);
    let few = wait(store.claim(ask(100))).expect("claimed");
    let few: Vec<_> = few.into_iter().map(Arc::new).collect();
    assert_eq!(wait(store.done(&few)).expect("answered").len(), 100);
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls)
            .await
            .expect("a client");
        tokio::spawn(connection);
        let looked = client.batch_execute("ANALYZE tidewheel_tasks").await;
        looked.expect("statistics");
    });
    let many = (0..10_000).map(|id| Task::new(format!("many {id}"), ""));
    wait(store.schedule_many(many.collect())).expect("scheduled");
    let began = tidewheel_time::monotonic_nanos();
    let mut claims = Vec::new();
    while claims.len() < 10_000 {
        claims.extend(wait(store.claim(ask(2_000))).expect("claimed in time"));
    }
    let claims: Vec<_> = claims.into_iter().map(Arc::new).collect();
    for some in claims.chunks(2_000) {
        assert!(wait(store.done(some)).expect("ended in time")[0].is_accepted());
    }
    let took = tidewheel_engines::since(began);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn many_change_one_queue_of_postgres_at_once() {
    if let Some((_server, _runtime, store)) = start() {
        changes_one_queue(&store);
    }
}
