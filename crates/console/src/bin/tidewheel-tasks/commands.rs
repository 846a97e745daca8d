//! The commands, each of which is a call or two of a store.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Subcommand;
use serde_json::Value;
use tidewheel_console::shown;
use tidewheel_tasks::{Due, Look, Rate, State, StoreError, TaskStore};

use crate::print::Printer;
use crate::serve::serve;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// One task.
    Look { id: String },
    /// Tasks, in the order of their ids; on NATS in that in which they were kept.
    List {
        /// `pending`, `claimed`, `done` (their results are kept) or `dead`.
        #[arg(default_value = "pending", value_parser = ["pending", "claimed", "done", "dead"])]
        state: String,
        /// Of this queue alone; the default queue's name is empty.
        #[arg(long, allow_hyphen_values = true)]
        queue: Option<String>,
        /// Those after this id.
        #[arg(long, allow_hyphen_values = true)]
        after: Option<String>,
        /// So many at most.
        #[arg(long, default_value_t = 100)]
        most: usize,
    },
    /// How many tasks each queue has, by state. On NATS it reads all of them.
    Counts,
    /// Dead letters.
    Dead {
        /// So many at most.
        #[arg(long, default_value_t = 100)]
        most: usize,
    },
    /// Ends tasks, pending or claimed.
    Cancel {
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Makes tasks due now.
    Run {
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Tries dead letters again.
    Requeue {
        /// All of them, 10,000 at most.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
    },
    /// Removes dead letters.
    Remove {
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Queues that are paused or limited.
    Queues,
    /// Pauses a queue; the default queue's name is empty.
    Pause { queue: String },
    /// Resumes a queue.
    Resume { queue: String },
    /// Limits a queue to so many runs in each period; without them, ends its limit.
    Limit {
        queue: String,
        #[arg(requires = "period_ms")]
        times: Option<u32>,
        period_ms: Option<u64>,
    },
    /// Serves the page, on the loopback interface alone: whoever can open it can do all of this.
    Serve {
        #[arg(long, default_value = "127.0.0.1:8080")]
        listen: SocketAddr,
    },
}

/// Carries a command out. The exit code is 1 where something was not there.
pub(crate) async fn run<S: TaskStore>(command: Command, json: bool, store: S) -> Result<ExitCode> {
    let mut printer = Printer::new(json, store.now().await?);
    let now = Due::After(Duration::ZERO);
    match command {
        Command::Look { id } => match store.look(&id).await? {
            Some(task) => printer.one(&shown::task(&task)),
            None => printer.not_there(&id),
        },
        Command::List {
            state,
            queue,
            after,
            most,
        } => {
            let state = shown::state(&state).context("it is one of four")?;
            let tasks = listed(&store, (state, queue), after, most, shown::task).await?;
            printer.rows(tasks.into_iter());
        }
        Command::Counts => {
            let counts = store.counts().await?;
            printer.rows(counts.iter().map(|(name, counts)| {
                let mut row = shown::counts(counts);
                row["queue"] = Value::from(name.clone());
                row
            }));
        }
        Command::Dead { most } => {
            let dead = (State::Dead, None);
            let letters = listed(&store, dead, None, most, shown::letter).await?;
            printer.rows(letters.into_iter());
        }
        Command::Cancel { ids } => {
            each(&store, &mut printer, "cancelled", ids, async |id| {
                store.cancel(id).await
            })
            .await?;
        }
        Command::Run { ids } => {
            each(&store, &mut printer, "due now", ids, async |id| {
                store.reschedule(id, now).await
            })
            .await?;
        }
        Command::Requeue { all, mut ids } => {
            if all {
                let id = |letter: &Look| letter.id.clone();
                ids = listed(&store, (State::Dead, None), None, 10_000, id).await?;
            }
            each(&store, &mut printer, "pending again", ids, async |id| {
                store.requeue(id, now).await
            })
            .await?;
        }
        Command::Remove { ids } => {
            each(&store, &mut printer, "removed", ids, async |id| {
                store.remove_dead(id).await
            })
            .await?;
        }
        Command::Queues => {
            let queues = store.queue_rules().await?;
            printer.rows(queues.iter().map(|(name, rules)| {
                let mut row = shown::rules(rules);
                row["queue"] = Value::from(name.clone());
                row
            }));
        }
        Command::Pause { queue } => store.pause(&queue).await?,
        Command::Resume { queue } => store.resume(&queue).await?,
        Command::Limit {
            queue,
            times,
            period_ms,
        } => {
            let rate = times.zip(period_ms);
            let rate = rate.map(|(times, ms)| Rate::new(times, Duration::from_millis(ms)));
            store.limit(&queue, rate).await?;
        }
        Command::Serve { listen } => serve(store, listen).await?,
    }
    Ok(printer.end())
}

/// The tasks in a state, each as it is shown: so many at most, read page by page, since they may be
/// large.
async fn listed<S: TaskStore, T>(
    store: &S,
    (state, queue): (State, Option<String>),
    mut after: Option<String>,
    most: usize,
    show: impl Fn(&Look) -> T,
) -> Result<Vec<T>> {
    let mut shown = Vec::new();
    loop {
        let left = most - shown.len();
        let page = store.list(state, queue.as_deref(), after.as_deref(), left);
        let page = page.await?;
        shown.extend(page.iter().map(&show));
        if page.len() >= left || !Look::is_cut(&page) {
            return Ok(shown);
        }
        after = page.into_iter().next_back().map(|look| look.id);
    }
}

/// Changes one after another. One that cannot be changed stops no other, an engine that does not
/// answer does.
async fn each<S: TaskStore>(
    store: &S,
    printer: &mut Printer,
    is: &str,
    ids: Vec<String>,
    call: impl AsyncFn(&str) -> Result<bool, StoreError>,
) -> Result<()> {
    for id in ids {
        match call(&id).await {
            Ok(true) => printer.done(&id, is),
            Ok(false) => printer.not_there(&id),
            Err(error) => {
                printer.failed(&id, &error);
                store.now().await?;
            }
        }
    }
    Ok(())
}
