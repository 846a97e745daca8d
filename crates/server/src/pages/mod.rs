//! What a server shows over HTTP: metrics, and whether it is well.
//!
//! ```text
//! Prometheus, a balancer ──HTTP──► pages' thread ──RESP──► an event loop, as any client
//! ```
//!
//! One thread serves all requests. For what it shows it asks the server over a connection within
//! the process, as a client does: with INFO and LATENCY, as the user whose name and password the
//! request has. So nothing is shown that this user may not ask for, and no page touches the data.
//!
//! | path | who may | what |
//! |---|---|---|
//! | `/healthz` | anybody | 200 if an event loop answers within a second |
//! | `/readyz` | anybody | 200 if all data is loaded, and the log can be written |
//! | `/metrics` | who may run INFO and LATENCY HISTOGRAM | metrics as Prometheus reads them |
//!
//! | file | idea |
//! |---|---|
//! | `serve.rs` | the thread, its sockets and its limits |
//! | `routes.rs` | a path becomes a reply |
//! | `access.rs` | which requests are heard: their host, their user |
//! | `ask.rs` | a connection to the server within the process |
//! | `metrics.rs` | INFO as Prometheus reads it |

mod access;
mod ask;
mod metrics;
mod routes;
mod serve;

pub(crate) use self::serve::{Pages, files, open};
