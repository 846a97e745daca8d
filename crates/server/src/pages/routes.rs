//! A request becomes a reply.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap,
    HeaderValue, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};

use super::access::{Credentials, credentials, is_host};
use super::ask::{Asker, NoAnswer};
use super::metrics;
use crate::config::{ClientAccess, DENIED};
use crate::state::log::Trouble;
use crate::state::server::Server;

const TEXT: &str = "text/plain; charset=utf-8";

/// The form of metrics that every Prometheus reads.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) type Page = Response<Full<Bytes>>;

/// Answers a request.
pub(super) async fn answer<B>(
    server: &Arc<Server>,
    peer: SocketAddr,
    request: &Request<B>,
) -> Page {
    let settings = server.config.current();
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    // These tell nothing, and balancers name no host.
    let is_health = matches!(request.uri().path(), "/healthz" | "/readyz");
    let is_one = request.headers().get_all(HOST).iter().count() == 1;
    let is_ours = is_one && host.is_some_and(|host| is_host(host, &settings.http_hosts));
    let is_heard = is_health || is_ours;
    if !is_heard {
        return text(
            StatusCode::FORBIDDEN,
            "This server does not know itself by that name; see the setting http-hosts.\n",
        );
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut page = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        page.headers_mut().insert(ALLOW, allowed);
        return page;
    }
    if has_body(request.headers()) {
        let mut page = text(StatusCode::BAD_REQUEST, "A request has no body here.\n");
        let close = HeaderValue::from_static("close");
        page.headers_mut().insert(CONNECTION, close);
        return page;
    }
    let outcome = match request.uri().path() {
        "/healthz" => health(server).await,
        "/readyz" => Ok(readiness(server)),
        "/metrics" if server.config.access(&peer.into()) == ClientAccess::Denied => {
            Err(NoAnswer::Denied(DENIED.to_owned()))
        }
        "/metrics" => metrics_of(server, request.headers()).await,
        _ => Ok(text(
            StatusCode::NOT_FOUND,
            "There are /metrics, /healthz and /readyz.\n",
        )),
    };
    outcome.unwrap_or_else(refused)
}

/// True if something follows the head: it might be taken for another request.
fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

async fn health(server: &Arc<Server>) -> Result<Page, NoAnswer> {
    let mut asker = Asker::connect(server, None).await?;
    // Whoever answers is well, also who asks for a password first.
    asker.call(&[b"PING"]).await?;
    Ok(text(StatusCode::OK, "ok\n"))
}

fn readiness(server: &Server) -> Page {
    let lacks = if server.is_loading() {
        "loading data\n"
    } else if server.stopping.load(Ordering::Acquire) {
        "stopping\n"
    } else if server.log.is_on() && server.log.trouble() != Trouble::None {
        "the log cannot be written\n"
    } else {
        return text(StatusCode::OK, "ready\n");
    };
    text(StatusCode::SERVICE_UNAVAILABLE, lacks)
}

async fn metrics_of(server: &Arc<Server>, headers: &HeaderMap) -> Result<Page, NoAnswer> {
    let mut asker = Asker::connect(server, user(headers)?.as_ref()).await?;
    let info = asker.text(&[b"INFO", b"everything"]).await?;
    // A user may lack these rights, and while data is loaded there is no forecast.
    let times = asker.ask(&[b"LATENCY", b"HISTOGRAM"]).await.ok();
    let forecast = asker.ask(&[b"EXPIRY", b"FORECAST", b"65"]).await.ok();
    let text = metrics::write(&info, times.as_ref(), forecast.as_ref());
    Ok(page(StatusCode::OK, METRICS, text))
}

/// The user that a request names, if it does.
fn user(headers: &HeaderMap) -> Result<Option<Credentials>, NoAnswer> {
    match headers.get(AUTHORIZATION) {
        None => Ok(None),
        Some(header) => match credentials(header.as_bytes()) {
            Some(user) => Ok(Some(user)),
            None => Err(NoAnswer::Unknown),
        },
    }
}

fn refused(why: NoAnswer) -> Page {
    match why {
        NoAnswer::Unknown => {
            let mut page = text(StatusCode::UNAUTHORIZED, "Say who you are.\n");
            let asks = HeaderValue::from_static("Basic realm=\"tidewheel\", charset=\"UTF-8\"");
            page.headers_mut().insert(WWW_AUTHENTICATE, asks);
            page
        }
        NoAnswer::Denied(why) => text(StatusCode::FORBIDDEN, &format!("{why}\n")),
        NoAnswer::Fails(why) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n")),
    }
}

fn text(status: StatusCode, text: &str) -> Page {
    page(status, TEXT, text.to_owned())
}

fn page(status: StatusCode, kind: &'static str, body: String) -> Page {
    let mut page = Response::new(Full::new(Bytes::from(body)));
    *page.status_mut() = status;
    let headers = page.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    page
}
