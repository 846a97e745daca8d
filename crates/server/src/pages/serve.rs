//! The thread that serves pages, its sockets and its limits.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::desk::Desk;
use super::guests::{Guest, Guests, Stage};
use super::{hour, routes};
use crate::config::Settings;
use crate::net::listener;
use crate::state::server::Server;

/// The most connections at once. For one more another [leaves](Guests::make_room).
const CONNECTIONS_MAX: usize = 128;

/// The longest time in which the head of a request comes.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// The longest time that a connection stays.
const CONNECTION_TIME: Duration = Duration::from_secs(300);

/// The most bytes of a request's head.
const HEAD_MAX: usize = 16 << 10;

/// The wait after accepting has failed, for example because there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// The thread that serves pages.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Opens the socket, if `http-port` asks for one.
pub(crate) fn open(settings: &Settings) -> anyhow::Result<Option<TcpListener>> {
    if settings.http_port == 0 {
        return Ok(None);
    }
    let address = SocketAddr::new(settings.http_bind.ip(), settings.http_port);
    let listener = listener::listen(address, false).with_context(|| {
        format!("cannot listen on {address} for HTTP; choose another with --http-port")
    })?;
    Ok(Some(listener))
}

/// The most descriptors that it takes: each request has a socket, and a pair within the process.
pub(crate) fn files(settings: &Settings) -> usize {
    match settings.http_port {
        0 => 0,
        _ => 3 * CONNECTIONS_MAX + 8,
    }
}

impl Pages {
    /// Starts the thread.
    pub(crate) fn start(server: &Arc<Server>, listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let server = Arc::clone(server);
        let run = move || {
            crate::process::system::go_last();
            runtime.block_on(async {
                let desk = Arc::new(Desk::of(&server));
                let serving = serve(&desk, listener);
                tokio::select! {
                    why = serving => tracing::error!(?why, "pages are not served any more"),
                    () = hour::fill(&desk.hour, &server) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("pages".to_owned());
        let thread = thread.spawn(run).context("cannot start a thread")?;
        Ok(Self {
            address,
            stop,
            thread,
        })
    }

    /// Ends it. What is being sent is cut.
    pub(crate) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread that serves pages ended by a panic");
        }
    }
}

async fn serve(desk: &Arc<Desk>, listener: TcpListener) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut guests = Guests::default();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(why) => {
                tracing::debug!(%why, "a request was not accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        if room.available_permits() == 0 {
            guests.make_room();
        }
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return Ok(());
        };
        let (desk, guest) = (Arc::clone(desk), guests.welcome());
        let changes = desk.server.config.changes();
        tokio::spawn(async move {
            let answers = service_fn(|request| {
                guest.reach(Stage::Hears);
                let (desk, guest) = (Arc::clone(&desk), Arc::clone(&guest));
                async move {
                    let page = routes::answer(&desk, (peer, &guest), &request).await;
                    Ok::<_, std::convert::Infallible>(page)
                }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                // Who idles keeps nobody out.
                .keep_alive(false)
                // Who has said all is answered.
                .half_close(true)
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_MAX);
            let connection = http.serve_connection(TokioIo::new(stream), answers);
            tokio::select! {
                ended = timeout(CONNECTION_TIME, connection) => {
                    if let Ok(Err(why)) = ended {
                        tracing::debug!(%why, "a connection for pages has ended");
                    }
                }
                () = guest.told_to_leave() => {
                    tracing::debug!(%peer, "a connection for pages has made room");
                }
                () = lost_rights(&desk, &guest, changes) => {
                    tracing::debug!(%peer, "a request has ended with the rights of its user");
                }
            }
            drop(place);
        });
    }
}

/// Waits until a guest's user may not hear its reply any more. A guest that reads slowly is not
/// waited for: what is not sent by then is not sent.
async fn lost_rights(desk: &Desk, guest: &Guest, mut changes: watch::Receiver<()>) {
    while changes.changed().await.is_ok() {
        if !guest.may_hear(&desk.server.config.current().users) {
            return;
        }
    }
    // The settings live as long as the server.
    std::future::pending::<()>().await;
}
