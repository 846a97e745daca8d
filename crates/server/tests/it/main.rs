//! The program as its clients see it. Each test has a server process of its own.

mod applications;
mod blocking;
mod blocking_deaths;
mod blocking_streams;
mod browser;
mod common;
mod compatibility;
mod connections;
mod diagnosis;
mod expired_streams;
mod expiry;
mod files_of_users;
mod functions;
mod hostile;
mod info;
mod inspect;
#[cfg(unix)]
mod killed;
mod loading;
mod log_tools;
mod logged;
mod monitor;
#[cfg(unix)]
mod open_files;
mod page;
mod pages;
mod persistence;
mod process;
mod protocol;
mod pubsub;
mod scripts;
#[cfg(target_os = "linux")]
mod sd_notify;
mod settings;
mod snapshot_tools;
mod stream_deaths;
mod tls;
mod tools;
mod top;
mod tracking;
mod transactions;
#[cfg(unix)]
mod unix_socket;
mod users;
