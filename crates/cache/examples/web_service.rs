//! A web service before a slow origin. Requests of one page at the same time ask the origin once. A
//! page is fresh for 2 s; for 8 s more it is served while a task of the cache fetches the next one.
//!
//! `cargo run -p tidewheel --example web_service`, and `curl -i localhost:3000/tea` again and again

use std::{io, time::Duration};

use axum::extract::{Path, State};
use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use tidewheel::{Cache, Driver};
use tokio::time::sleep;

type Pages = Cache<String, String>;

async fn origin(path: String) -> io::Result<String> {
    println!("the origin is asked for {path}");
    sleep(Duration::from_millis(300)).await;
    Ok(format!("all about {path}\n"))
}

async fn page(State(pages): State<Pages>, Path(path): Path<String>) -> impl IntoResponse {
    let fetched = pages.fetch(path.clone()).try_load_async(origin(path)).await;
    let page = fetched
        .value
        .map_err(|why| (StatusCode::BAD_GATEWAY, why.to_string()));
    ([("x-cache", fetched.outcome.to_string())], page)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pages = Pages::builder()
        .max_capacity(10_000)
        .time_to_live(Duration::from_secs(10));
    let pages = pages.refresh_after(0.2).refresh_with_async(origin);
    let pages = pages.driver(Driver::Task).build()?;
    tokio::spawn(pages.drive(sleep));
    let routes = Router::new().route("/{path}", get(page)).with_state(pages);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, routes).await?)
}
