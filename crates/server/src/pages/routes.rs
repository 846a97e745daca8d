//! A request becomes a reply.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::header::{
    ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, LOCATION,
    TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, StatusCode};

use super::access::{Credentials, credentials, is_foreign, is_host};
use super::ask::{Asker, NoAnswer};
use super::desk::Desk;
use super::guests::{Guest, Stage};
use super::moment::Wanted;
use super::query::Query;
use super::reply::{Page, json, json_text, own, text, whole};
use super::rights::{Call, Rights};
use super::{events, key, keys, metrics, moment};
use crate::config::{ClientAccess, DENIED};
use crate::state::log::Trouble;
use crate::state::server::Server;

/// The form of metrics that every Prometheus reads.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Where a stream of events is.
const EVENTS: &str = "/events";

const HISTOGRAM: Call<'_> = &[b"LATENCY", b"HISTOGRAM"];
const FORECAST: Call<'_> = &[b"EXPIRY", b"FORECAST", b"65"];

const PATHS: &str = "There are /, /metrics, /healthz and /readyz.\n";

/// Answers a request.
pub(super) async fn answer<B>(
    desk: &Arc<Desk>,
    (peer, guest): (SocketAddr, &Guest),
    request: &Request<B>,
) -> Page {
    let settings = desk.server.config.current();
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // These tell nothing, and balancers name no host.
    let is_health = matches!(request.uri().path(), "/healthz" | "/readyz");
    let is_one = headers.get_all(HOST).iter().count() == 1;
    let is_ours = |host: &str| is_host(host, &settings.http_hosts);
    // A proxy may ask for `http://HOST/PATH`, and then this is the name that counts.
    let named = request.uri().authority().map(|named| named.as_str());
    let is_ours = is_one && host.is_some_and(is_ours) && named.is_none_or(is_ours);
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
    if has_body(headers) {
        let mut page = text(StatusCode::BAD_REQUEST, "A request has no body here.\n");
        let close = HeaderValue::from_static("close");
        page.headers_mut().insert(CONNECTION, close);
        return page;
    }
    let outcome = match request.uri().path() {
        "/healthz" => health(&desk.server).await,
        "/readyz" => Ok(readiness(&desk.server)),
        "/page.css" => Ok(own("text/css; charset=utf-8", STYLE)),
        "/page.js" => Ok(own("text/javascript; charset=utf-8", SCRIPT)),
        _ if desk.server.config.access(&peer.into()) == ClientAccess::Denied => {
            Err(NoAnswer::Denied(DENIED.to_owned()))
        }
        "/" => front(&desk.server, headers).await,
        "/sign-in" => sign_in(&desk.server, headers).await,
        path => data(desk, guest, path, request).await,
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

/// The page of time. It tells nothing itself, but a browser asks for a password here, if the
/// server needs one.
async fn front(server: &Arc<Server>, headers: &HeaderMap) -> Result<Page, NoAnswer> {
    let known = async {
        let mut asker = Asker::connect(server, user(headers)?.as_ref()).await?;
        asker.ask(&[b"INFO", b"server"]).await
    };
    match known.await {
        Err(NoAnswer::Unknown) => Err(NoAnswer::Unknown),
        _ => Ok(own("text/html; charset=utf-8", HTML)),
    }
}

/// Has the browser ask who somebody is, also where the default user needs no password.
async fn sign_in(server: &Arc<Server>, headers: &HeaderMap) -> Result<Page, NoAnswer> {
    let user = user(headers)?.ok_or(NoAnswer::Unknown)?;
    Asker::connect(server, Some(&user)).await?;
    let mut page = text(StatusCode::SEE_OTHER, "You are known.\n");
    page.headers_mut()
        .insert(LOCATION, HeaderValue::from_static("/"));
    Ok(page)
}

/// What a user may know, by the commands that it may run.
async fn data<B>(
    desk: &Arc<Desk>,
    guest: &Guest,
    path: &str,
    request: &Request<B>,
) -> Result<Page, NoAnswer> {
    let headers = request.headers();
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if is_foreign(site) {
        let why = "this is for the page of this server only".to_owned();
        return Err(NoAnswer::Denied(why));
    }
    let known = [
        "/metrics",
        "/now",
        "/hour",
        EVENTS,
        "/key",
        "/forecast",
        "/largest",
    ];
    if !known.contains(&path) {
        return Ok(text(StatusCode::NOT_FOUND, PATHS));
    }
    let query = Query::of(request.uri().query());
    let user = user(headers)?;
    let mut asker = Asker::connect(&desk.server, user.as_ref()).await?;
    let key = query.bytes("key").unwrap_or_default();
    let settings = desk.server.config.current();
    let of_key: [Call<'_>; 2] = [&[b"TYPE", key], &[b"PTTL", key]];
    let calls = match path {
        "/key" => &of_key,
        _ => calls(path),
    };
    let db = query.number("db").and_then(|db| db.try_into().ok());
    let place = desk.server.place(db.unwrap_or(0));
    let rights = Rights::of(&settings.users, user.as_ref(), (calls, place));
    guest.needs(rights.ok_or(NoAnswer::Unknown)?);
    // Who may not run SELECT may be shown the first database all the same.
    if let Some(db) = query.bytes("db").filter(|db| *db != b"0") {
        asker.ask(&[b"SELECT", db]).await?;
    }
    match path {
        "/metrics" => metrics_of(&mut asker).await,
        "/now" => Ok(json(
            &moment::now(desk, &mut asker, &Wanted::of(&query)).await?,
        )),
        "/hour" => {
            // The numbers are INFO's.
            asker.ask(&[b"INFO", b"server"]).await?;
            let every = query.number("every").unwrap_or(1).clamp(1, 3_600);
            Ok(json_text(desk.hour.lock().write(every as usize)))
        }
        EVENTS => {
            let page = events::open(desk, asker, Wanted::of(&query)).await?;
            guest.reach(Stage::Stays);
            Ok(page)
        }
        "/key" => Ok(json(&key::inspect(&mut asker, key).await?)),
        "/forecast" => Ok(json(&keys::due(desk, &mut asker, &query).await?)),
        "/largest" => Ok(json(&keys::largest(desk, &mut asker, &query).await?)),
        _ => Ok(text(StatusCode::NOT_FOUND, PATHS)),
    }
}

/// The calls that show what there is at a path; those of one key name it.
fn calls(path: &str) -> &'static [Call<'static>] {
    match path {
        "/metrics" => &[&[b"INFO", b"everything"], HISTOGRAM, FORECAST],
        "/hour" => &[&[b"INFO", b"server"]],
        EVENTS => &[&[b"INFO", b"keyspace"], FORECAST],
        "/now" => &[
            &[b"INFO", b"keyspace"],
            FORECAST,
            HISTOGRAM,
            &[b"SLOWLOG", b"GET"],
            &[b"CLIENT", b"LIST"],
        ],
        "/forecast" | "/largest" => &[&[b"SCAN", b"0"]],
        _ => &[],
    }
}

async fn metrics_of(asker: &mut Asker) -> Result<Page, NoAnswer> {
    let info = asker.text(&[b"INFO", b"everything"]).await?;
    // A user may lack these rights, and while data is loaded there is no forecast.
    let times = asker.ask(HISTOGRAM).await.ok();
    let forecast = asker.ask(FORECAST).await.ok();
    let text = metrics::write(&info, times.as_ref(), forecast.as_ref());
    Ok(whole(StatusCode::OK, METRICS, text))
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
