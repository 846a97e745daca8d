//! What a server shows over HTTP: a page of time, metrics, and whether it is well.
//!
//! ```text
//! a browser, Prometheus, a balancer ──HTTP──► pages' thread ──RESP──► an event loop, as any client
//! ```
//!
//! One thread serves all requests. For what it shows it asks the server over a connection within
//! the process, as a client does: with INFO, EXPIRY FORECAST, SCAN and others, as the user whose
//! name and password the request has. So nothing is shown that this user may not ask for, and no
//! page touches the data. Once a second the thread also reads the counters that INFO reads, for
//! the last hour; only who may run INFO is shown them.
//!
//! | path | who may | what |
//! |---|---|---|
//! | `/healthz` | anybody | 200 if an event loop answers within a second |
//! | `/readyz` | anybody | 200 if all data is loaded, and the log can be written |
//! | `/metrics` | who may run INFO and LATENCY HISTOGRAM | metrics as Prometheus reads them |
//! | `/`, `/page.css`, `/page.js` | whoever is known; anybody | the page, without any data |
//! | `/sign-in` | whoever is known | leads to `/`, so a browser asks for a name |
//! | `/now` | each part: who may run its command | this moment: numbers, forecast, clients, slow log … |
//! | `/events` | the same | numbers and forecast once a second, until the viewer goes |
//! | `/hour?every=` | who may run INFO | the last hour, one row of so many seconds |
//! | `/forecast?from=&to=&cursor=` | who may run SCAN and PTTL | keys that are due in a window, by a walk |
//! | `/largest?cursor=` | who may run SCAN and MEMORY USAGE | the largest keys of a walk |
//! | `/key?key=` | each part: who may run its command | one key |
//!
//! All that tell of keys take `db=` too. A request that is being answered ends at once, unsent
//! bytes included, when it would not be answered so any more: when its user is removed, switched
//! off or has another password, or may not run one of its commands.
//!
//! | file | idea |
//! |---|---|
//! | `serve.rs` | the thread, its sockets and its limits |
//! | `guests.rs` | who is connected, and who leaves when there is no place |
//! | `routes.rs` | a path becomes a reply |
//! | `reply.rs` | a reply's body and headers |
//! | `desk.rs` | what all requests share |
//! | `access.rs` | which requests are heard: their host, their user |
//! | `rights.rs` | what its user must go on to be allowed |
//! | `query.rs` | what stands behind the question mark |
//! | `ask.rs` | a connection to the server within the process |
//! | `parts.rs` | replies become JSON |
//! | `hour.rs` | the last hour, a row of numbers for each second |
//! | `moment.rs`, `events.rs` | this moment; a stream of moments |
//! | `walk.rs`, `keys.rs` | a bounded walk over keys; what is looked for on it |
//! | `key.rs` | one key |
//! | `metrics.rs` | INFO as Prometheus reads it |
//! | `page/` | the page: HTML, CSS and JavaScript, as they are |

mod access;
mod ask;
mod desk;
mod events;
mod guests;
mod hour;
mod key;
mod keys;
mod metrics;
mod moment;
mod parts;
mod query;
mod reply;
mod rights;
mod routes;
mod serve;
mod walk;

pub(crate) use self::serve::{Pages, files, open};
