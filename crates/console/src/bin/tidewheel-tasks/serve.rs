//! The page, served on the loopback interface.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tidewheel_console::Console;
use tidewheel_tasks::TaskStore;
use tokio::net::TcpListener;

use crate::print::say;

/// The time for a request's head; a connection on which nothing is asked for so long is closed,
/// too.
const HEAD: Duration = Duration::from_secs(30);

/// The time for what is being answered when the end is asked for.
const LAST: Duration = Duration::from_secs(5);

pub(crate) async fn serve<S: TaskStore>(store: S, listen: SocketAddr) -> Result<()> {
    if !listen.ip().is_loopback() {
        bail!(
            "{listen} is not on the loopback interface: mount the page in a service that knows its users"
        );
    }
    let listener = TcpListener::bind(listen);
    let listener = listener
        .await
        .with_context(|| format!("{listen} cannot be listened on"))?;
    let router = Console::new(Arc::new(store)).router();
    let router = router.layer(from_fn(only_this_host));
    // Who knows the address may ask for the end.
    let ends = ends().context("no signal can be waited for")?;
    say(&format!("http://{}/", listener.local_addr()?));
    answer(listener, router, ends).await;
    Ok(())
}

/// Answers until the end is asked for, and then what has been asked.
///
/// `axum::serve` has neither a time limit for a request's head nor an answer for who has said all
/// that it will.
async fn answer(mut listener: TcpListener, router: Router, ends: impl Future<Output = ()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    http.half_close(true);
    let graceful = GracefulShutdown::new();
    let mut ends = pin!(ends);
    loop {
        let (socket, _) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = &mut ends => break,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(socket), service);
        // A connection that fails concerns nobody else.
        tokio::spawn(graceful.watch(connection));
    }
    drop(listener);
    // Who has not read its answer by then does not get it.
    let _ = tokio::time::timeout(LAST, graceful.shutdown()).await;
}

/// The end is asked for: by the terminal, or by what has started the program.
#[cfg(unix)]
fn ends() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// The end is asked for by the terminal.
#[cfg(not(unix))]
fn ends() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// A page of somebody else's may give its own name this machine's address, and then ask as if it
/// were ours. Its requests have its name.
async fn only_this_host(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    match is_this_host(host) {
        true => next.run(request).await,
        false => (StatusCode::MISDIRECTED_REQUEST, "ask for localhost").into_response(),
    }
}

/// True for a loopback address or `localhost`, with a port or without. A name has no case, and may
/// end in a dot.
fn is_this_host(host: &str) -> bool {
    // The colons of an address in brackets are its own.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}
