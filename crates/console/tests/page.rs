//! The page's answers, asked for as a browser does.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tidewheel_console::Console;
use tidewheel_tasks::{Ask, Failure, MemoryStore, Rate, Task, TaskStore, Worker};
use tower::ServiceExt as _;

const HOUR: Duration = Duration::from_secs(3600);

async fn ask(page: &Router, method: &str, path: &str) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("x-tidewheel", "1").body(Body::empty());
    let answer = page.clone().oneshot(request.expect("a request")).await;
    let answer = answer.expect("infallible");
    let status = answer.status();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

async fn json_of(page: &Router, path: &str) -> Value {
    let (status, text) = ask(page, "GET", path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// A store with a task of an hour's time, and one that has died.
async fn store() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let later = Task::new("later", "to: you")
        .after(HOUR)
        .every(HOUR)
        .queue("mails");
    store.schedule(later).await.expect("scheduled");
    store
        .schedule(Task::new("a/b c&d", "<b>&"))
        .await
        .expect("scheduled");
    let ask = Ask::new("w", Duration::ZERO, HOUR, 9);
    let claims = store.claim(ask).await.expect("claims");
    let died = store.fail(&claims[0], Failure::dead("no <route>")).await;
    assert!(died.is_ok());
    store
}

#[tokio::test]
async fn a_task_is_shown_run_and_cancelled() {
    let store = store().await;
    let page = Console::new(Arc::clone(&store)).router();
    let task = json_of(&page, "/api/task?id=later").await;
    for (member, value) in [
        ("id", json!("later")),
        ("queue", json!("mails")),
        ("rhythm", json!("every 3600s")),
        ("payload", json!("to: you")),
        ("bytes", json!(7)),
    ] {
        assert_eq!(task[member], value, "{member}");
    }
    let now = json_of(&page, "/api/now").await["now_us"].as_u64();
    assert!(task["due_us"].as_u64() > now);
    assert_eq!(
        ask(&page, "POST", "/api/run?id=later").await.0,
        StatusCode::OK
    );
    let task = json_of(&page, "/api/task?id=later").await;
    assert!(task["due_us"].as_u64() < now.map(|now| now + 60_000_000));
    assert_eq!(
        ask(&page, "POST", "/api/cancel?id=later").await.0,
        StatusCode::OK
    );
    for (method, path) in [
        ("GET", "/api/task?id=later"),
        ("POST", "/api/cancel?id=later"),
    ] {
        assert_eq!(ask(&page, method, path).await.0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn tasks_are_listed_page_by_page_and_counted() {
    let store = store().await;
    for n in 0..5 {
        let task = Task::new(format!("n{n}"), "").after(HOUR);
        store.schedule(task).await.expect("scheduled");
    }
    let page = Console::new(Arc::clone(&store)).router();
    let ids = async |path: &str| {
        let tasks = json_of(&page, path).await;
        let tasks = tasks.as_array().expect("a list").iter();
        tasks
            .map(|task| task["id"].as_str().expect("text").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("/api/tasks?most=3").await, ["later", "n0", "n1"]);
    assert_eq!(ids("/api/tasks?most=3&after=n1").await, ["n2", "n3", "n4"]);
    assert_eq!(ids("/api/tasks?queue=mails").await, ["later"]);
    assert_eq!(ids("/api/tasks?state=dead").await, ["a/b c&d"]);
    let (status, why) = ask(&page, "GET", "/api/tasks?state=lost").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
    let counts = json_of(&page, "/api/counts").await;
    assert_eq!(
        (&counts[""]["pending"], &counts[""]["dead"]),
        (&json!(5), &json!(1))
    );
    assert_eq!(counts["mails"]["pending"], 1);
}

#[tokio::test]
async fn a_dead_letter_is_tried_again_or_removed() {
    let store = store().await;
    let page = Console::new(Arc::clone(&store)).router();
    let dead = json_of(&page, "/api/dead").await;
    assert_eq!(dead[0]["error"], "no <route>");
    assert_eq!(dead[0]["payload"], "<b>&");
    let id = "a%2Fb%20c%26d";
    let again = format!("/api/requeue?id={id}");
    assert_eq!(ask(&page, "POST", &again).await.0, StatusCode::OK);
    assert_eq!(json_of(&page, "/api/dead").await, json!([]));
    assert_eq!(
        json_of(&page, &format!("/api/task?id={id}")).await["attempt"],
        1
    );
    let remove = format!("/api/remove?id={id}");
    assert_eq!(ask(&page, "POST", &remove).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_queue_is_paused_and_resumed() {
    let store = store().await;
    store
        .limit("mails", Some(Rate::new(3, HOUR)))
        .await
        .expect("limited");
    let page = Console::new(Arc::clone(&store)).router();
    assert_eq!(
        ask(&page, "POST", "/api/pause?queue=mails").await.0,
        StatusCode::OK
    );
    let queues = json_of(&page, "/api/now").await["queues"].clone();
    let limit = json!({ "times": 3, "period_ms": 3_600_000 });
    assert_eq!(
        queues,
        json!({ "mails": { "paused": true, "limit": limit } })
    );
    assert_eq!(
        ask(&page, "POST", "/api/resume?queue=mails").await.0,
        StatusCode::OK
    );
    assert_eq!(store.paused().await, Ok(vec![]));
    let long = "x".repeat(99);
    let (status, why) = ask(&page, "POST", &format!("/api/pause?queue={long}")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
}

#[tokio::test]
async fn workers_are_shown_with_their_lateness() {
    let store = Arc::new(MemoryStore::new());
    let worker = Worker::builder(Arc::clone(&store))
        .start(|_| ())
        .expect("starts");
    store.schedule(Task::new("a", "")).await.expect("scheduled");
    while worker.stats().done == 0 {
        tokio::task::yield_now().await;
    }
    let page = Console::new(store)
        .worker("w", move || worker.stats())
        .router();
    let shown = json_of(&page, "/api/now").await["workers"][0].clone();
    assert_eq!((&shown["name"], &shown["done"]), (&json!("w"), &json!(1)));
    assert!(shown["late_max_us"].as_u64() > Some(0));
}

/// A form of somebody else's page could send one, and whoever is signed in would not know.
#[tokio::test]
async fn a_post_without_our_header_changes_nothing() {
    let store = store().await;
    let page = Console::new(Arc::clone(&store)).router();
    for header in [None, Some("0"), Some("")] {
        let mut request = Request::post("/api/cancel?id=later");
        if let Some(value) = header {
            request = request.header("x-tidewheel", value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = page.clone().oneshot(request).await.expect("infallible");
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{header:?}");
    }
    let (status, _) = ask(&page, "GET", "/api/cancel?id=later").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(store.look("later").await.expect("looked").is_some());
}

#[tokio::test]
async fn the_page_is_one_file_that_loads_nothing_from_elsewhere() {
    let page = Router::new().nest("/tasks", Console::new(store().await).router());
    let request = Request::get("/tasks")
        .body(Body::empty())
        .expect("a request");
    let answer = page.clone().oneshot(request).await.expect("infallible");
    let policy = answer.headers()["content-security-policy"]
        .to_str()
        .expect("text");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    let text = String::from_utf8_lossy(&body);
    assert!(!text.contains("://") && !text.contains("innerHTML"));
    assert_eq!(ask(&page, "GET", "/tasks/api/dead").await.0, StatusCode::OK);
}

/// An image of another site's could have the store count all tasks.
#[tokio::test]
async fn what_another_site_asks_for_is_refused() {
    let page = Console::new(store().await).router();
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        page.clone().oneshot(request).await.expect("infallible")
    };
    let strange = ("sec-fetch-site", "cross-site");
    let refused = ask("/api/counts", &[strange, ("sec-fetch-dest", "image")]).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(refused.headers()["x-content-type-options"], "nosniff");
    for headers in [
        &[][..],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-dest", "empty"),
        ],
        &[strange, ("sec-fetch-dest", "document")],
    ] {
        assert_eq!(
            ask("/", headers).await.status(),
            StatusCode::OK,
            "{headers:?}"
        );
    }
}

/// All that was listed was in memory at once, for each who looked.
#[tokio::test]
async fn a_page_of_large_tasks_is_short_and_another_one_follows() {
    let store = Arc::new(MemoryStore::new());
    for n in 0..6 {
        let large = Task::new(format!("{n}"), vec![b'x'; 900_000]);
        store.schedule(large).await.expect("scheduled");
    }
    let page = Console::new(Arc::clone(&store)).router();
    let ids = async |path| {
        let rows = json_of(&page, path).await;
        let ids = rows.as_array().expect("rows").iter();
        ids.map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids("/api/tasks?most=10000").await.len(), 5);
    assert_eq!(ids("/api/tasks?most=10000&after=4").await, ["5"]);
    let ask = Ask::new("w", Duration::ZERO, HOUR, 9);
    for claim in store.claim(ask).await.expect("claims") {
        assert!(store.fail(&claim, Failure::dead("no")).await.is_ok());
    }
    assert_eq!(ids("/api/dead?most=10000").await.len(), 5);
    assert_eq!(ids("/api/dead?after=4").await, ["5"]);
}
