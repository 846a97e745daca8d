//! The answers to the page, and the changes that it asks for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tidewheel_tasks::{Due, StoreError, TaskStore};

use crate::{Console, shown};

/// Tasks, or dead letters, that one answer has.
const ROWS: usize = 100;
const ROWS_MAX: usize = 10_000;

/// The page loads nothing from elsewhere, and nobody shows it within his own.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

type Shared<S> = State<Arc<Console<S>>>;

/// Why there is no answer.
pub(crate) enum Failed {
    Store(StoreError),
    NotThere,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::NotThere => (StatusCode::NOT_FOUND, "it is not there".to_owned()),
            Self::Store(error @ (StoreError::Engine(_) | StoreError::TimedOut)) => {
                (StatusCode::BAD_GATEWAY, error.to_string())
            }
            Self::Store(error) => (StatusCode::BAD_REQUEST, error.to_string()),
        };
        (status, text).into_response()
    }
}

type Answer = Result<Json<Value>, Failed>;

#[derive(Deserialize)]
struct Id {
    id: String,
}

#[derive(Deserialize)]
struct Queue {
    queue: String,
}

#[derive(Deserialize)]
struct List {
    state: Option<String>,
    queue: Option<String>,
    after: Option<String>,
    most: Option<usize>,
}

#[derive(Deserialize)]
struct Page {
    after: Option<String>,
    most: Option<usize>,
}

pub(crate) fn router<S: TaskStore>(console: Arc<Console<S>>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/api/now", get(now::<S>))
        .route("/api/dead", get(dead::<S>))
        .route("/api/task", get(task::<S>))
        .route("/api/tasks", get(tasks::<S>))
        .route("/api/counts", get(counts::<S>))
        .route("/api/cancel", post(cancel::<S>))
        .route("/api/run", post(run::<S>))
        .route("/api/requeue", post(requeue::<S>))
        .route("/api/remove", post(remove::<S>))
        .route("/api/pause", post(pause::<S>))
        .route("/api/resume", post(resume::<S>))
        .layer(from_fn(guard))
        .with_state(console)
}

/// No answer is kept by anybody.
async fn guard(request: Request, next: Next) -> Response {
    let mut response = match refusal(&request) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        header::HeaderValue::from_static("nosniff"),
    );
    response
}

/// A form of another page can send a `POST`, but no header of ours. Another site may link to the
/// page, and cannot read what it asks for beside that: the store would have its cost.
fn refusal(request: &Request) -> Option<&'static str> {
    let says = |name, what| {
        request
            .headers()
            .get(name)
            .is_some_and(|value| value == what)
    };
    let is_strange = says("sec-fetch-site", "cross-site") && !says("sec-fetch-dest", "document");
    let is_bare = request.method() == Method::POST && !says("x-tidewheel", "1");
    match (is_bare, is_strange) {
        (true, _) => Some("the header x-tidewheel: 1 is needed"),
        (_, true) => Some("another site asks"),
        _ => None,
    }
}

async fn page() -> impl IntoResponse {
    (
        [(header::CONTENT_SECURITY_POLICY, POLICY)],
        Html(include_str!("page.html")),
    )
}

async fn now<S: TaskStore>(State(console): Shared<S>) -> Answer {
    let now = console.store.now().await?;
    let queues = console.store.queue_rules().await?;
    let queues = queues
        .iter()
        .map(|(name, rules)| (name.clone(), shown::rules(rules)));
    let queues: serde_json::Map<_, _> = queues.collect();
    let workers = console.workers.iter();
    let workers: Vec<_> = workers
        .map(|(name, stats)| shown::stats(name, &stats()))
        .collect();
    Ok(Json(
        json!({ "now_us": now.0, "queues": queues, "workers": workers }),
    ))
}

async fn dead<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Page>) -> Answer {
    let most = query.most.unwrap_or(ROWS).min(ROWS_MAX);
    let (dead, after) = (tidewheel_tasks::State::Dead, query.after.as_deref());
    let letters = console.store.list(dead, None, after, most).await?;
    Ok(Json(letters.iter().map(shown::letter).collect()))
}

async fn task<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Id>) -> Answer {
    let task = console.store.look(&query.id).await?;
    task.map_or(Err(Failed::NotThere), |task| Ok(Json(shown::task(&task))))
}

async fn tasks<S: TaskStore>(State(console): Shared<S>, Query(query): Query<List>) -> Answer {
    let state = query.state.as_deref().unwrap_or("pending");
    let state = shown::state(state)
        .ok_or_else(|| StoreError::refused("a state is pending, claimed, done or dead"))?;
    let (queue, after) = (query.queue.as_deref(), query.after.as_deref());
    let most = query.most.unwrap_or(ROWS).min(ROWS_MAX);
    let tasks = console.store.list(state, queue, after, most).await?;
    Ok(Json(tasks.iter().map(shown::task).collect()))
}

async fn counts<S: TaskStore>(State(console): Shared<S>) -> Answer {
    let counts = console.store.counts().await?;
    let counts = counts
        .iter()
        .map(|(name, counts)| (name.clone(), shown::counts(counts)));
    let counts: serde_json::Map<_, _> = counts.collect();
    Ok(Json(Value::Object(counts)))
}

/// The answer of a call that says whether there was something to do.
async fn done(call: impl Future<Output = Result<bool, StoreError>>) -> Answer {
    match call.await? {
        true => Ok(Json(json!({ "done": true }))),
        false => Err(Failed::NotThere),
    }
}

async fn cancel<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Id>) -> Answer {
    done(console.store.cancel(&query.id)).await
}

async fn run<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Id>) -> Answer {
    done(
        console
            .store
            .reschedule(&query.id, Due::After(Duration::ZERO)),
    )
    .await
}

async fn requeue<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Id>) -> Answer {
    done(console.store.requeue(&query.id, Due::After(Duration::ZERO))).await
}

async fn remove<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Id>) -> Answer {
    done(console.store.remove_dead(&query.id)).await
}

async fn pause<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Queue>) -> Answer {
    console.store.pause(&query.queue).await?;
    Ok(Json(json!({ "done": true })))
}

async fn resume<S: TaskStore>(State(console): Shared<S>, Query(query): Query<Queue>) -> Answer {
    console.store.resume(&query.queue).await?;
    Ok(Json(json!({ "done": true })))
}
