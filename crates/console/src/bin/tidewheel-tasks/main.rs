//! `tidewheel-tasks`: looks into a store of durable tasks, and mends what is stuck.

mod commands;
mod print;
mod serve;

use std::future::Future;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tidewheel_tasks::TaskStore;

use self::commands::Command;

/// Looks into a store of durable tasks: what waits, what is dead, which queues are paused.
#[derive(Parser)]
#[command(name = "tidewheel-tasks", version)]
struct Arguments {
    /// The store: `file:PATH`, which no other program may have open; `postgres://…`; `nats://…`.
    #[arg(long, env = "TIDEWHEEL_TASKS_STORE", hide_env_values = true)]
    store: String,
    /// The space, for Postgres and NATS: the name that the program gave it.
    #[arg(long, env = "TIDEWHEEL_TASKS_SPACE", default_value = "tasks")]
    space: String,
    /// Answers are JSON, one line each.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match tokio::runtime::Runtime::new()
        .context("no threads")
        .and_then(|runtime| runtime.block_on(open(arguments)))
    {
        Ok(found) => found,
        Err(error) => {
            print::complain(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Opens the store, and carries the command out.
async fn open(arguments: Arguments) -> Result<ExitCode> {
    let Arguments {
        store,
        space,
        json,
        command,
    } = arguments;
    match store.split_once(':') {
        #[cfg(feature = "file")]
        Some(("file", path)) => {
            // A command that looks makes no file, and nothing of an empty one.
            match std::fs::metadata(path) {
                Ok(file) if file.is_file() && file.len() == 0 => bail!("{path}: the file is empty"),
                Err(_) => bail!("{path}: there is no such file"),
                Ok(_) => {}
            }
            run(command, json, async {
                tidewheel_tasks::FileStore::open(path)
            })
            .await
        }
        #[cfg(feature = "postgres")]
        Some(("postgres" | "postgresql", _)) => {
            let connects = tidewheel_tasks::PostgresStore::connect(&store, &space);
            run(command, json, connects).await
        }
        #[cfg(feature = "nats")]
        Some(("nats" | "tls", _)) => {
            // Neither does one make a stream.
            let builder = tidewheel_tasks::NatsStore::builder(space).only_there();
            let connects = builder.connect(&*store);
            run(command, json, connects).await
        }
        _ => {
            // What was given instead may have a password.
            let _ = space;
            bail!(
                "the store is none: file:PATH, postgres://… or nats://…, if this program was built with that feature"
            )
        }
    }
}

async fn run<S: TaskStore>(
    command: Command,
    json: bool,
    opens: impl Future<Output = Result<S, tidewheel_tasks::StoreError>>,
) -> Result<ExitCode> {
    let store = opens.await.context("the store cannot be opened")?;
    commands::run(command, json, store).await
}
