//! The page, over a store in memory with tasks that run, repeat and fail.
//!
//! `cargo run -p tidewheel-console --example page`, and open the address that it prints.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_console::Console;
use tidewheel_tasks::{MemoryStore, Rate, Retry, Task, TaskStore, Worker};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryStore::new());
    let worker = Worker::builder(Arc::clone(&store))
        .retry(Retry::default().attempts(2))
        .start(|run| match run.payload() {
            b"to: nobody" => Err("no such mailbox"),
            _ => Ok(()),
        })?;
    for n in 0..200 {
        let after = Duration::from_millis(50 * n);
        store
            .schedule(
                Task::new(format!("mail-{n}"), "to: you")
                    .after(after)
                    .queue("mails"),
            )
            .await?;
    }
    store
        .schedule(Task::new("mail-bounced", "to: nobody").queue("mails"))
        .await?;
    let minute = Duration::from_secs(60);
    store
        .schedule(
            Task::new("report", "all orders")
                .after(minute)
                .every(minute),
        )
        .await?;
    store
        .limit("mails", Some(Rate::new(20, Duration::from_secs(1))))
        .await?;
    store.pause("newsletters").await?;
    let page = Console::new(store)
        .worker("here", move || worker.stats())
        .router();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, page).await?;
    Ok(())
}
