//! A web service that answers from a cache before an origin: what a small CDN does, in one file.
//!
//! - Requests of one page at the same time cause one request to the origin.
//! - A page lives as its `Cache-Control` says: `max-age` is how long it is fresh,
//!   `stale-while-revalidate` how much longer it is served while a task of the cache asks for it
//!   again, and `stale-if-error` how much longer it stands in for an error.
//! - A failing origin is left alone for as long as its `Retry-After` says, and for 5 s at least
//!   while an old page stands in.
//! - A page that has changed in nothing is not sent again: `ETag` and "304 Not Modified".
//! - A page with `no-store` is for the one alone who has asked for it.
//! - That there is no such page is remembered too, as its `max-age` says, or else for 30 s.
//! - The header `X-Cache` tells where each answer comes from, `Warning` why it is an old one,
//!   `/cache/stats` how many there were, and `POST /cache/purge/{tag}` ends all pages whose
//!   `Cache-Tag` names the tag.
//! - At the end, requests in progress are answered, and the log gets its last lines.
//!
//! Origin, service and client are here, and talk over sockets. The cache's time is moved by hand,
//! so that an hour takes no time and every answer can be asserted.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, WARNING};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{Router, get, post};
use tidewheel::{
    BuildError, Cache, Driver, Fetched, Lifetime, Loaded, ManualClock, Outcome, Presence, Removal,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The least time for which a failing origin is left alone while an old page stands in.
const BACK_OFF: Duration = Duration::from_secs(5);

/// The time for which a page is believed to be absent, unless the origin says more.
const ABSENCE: Duration = Duration::from_secs(30);

/// The time that the origin may take.
const PATIENCE: Duration = Duration::from_secs(10);

const X_CACHE: HeaderName = HeaderName::from_static("x-cache");

// ---------------------------------------------------------------- A client, as little of HTTP as this file needs.

/// An answer over a socket.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// `Cache-Control: max-age=60, stale-while-revalidate=30`
    fn cache_control(&self, directive: &str) -> Option<&str> {
        let mut directives = self.header("cache-control")?.split(", ");
        directives.find_map(|one| one.strip_prefix(directive))
    }

    fn seconds(&self, directive: &str) -> Duration {
        let value = self.cache_control(directive);
        seconds(value.and_then(|rest| rest.strip_prefix('=')))
    }
}

fn seconds(text: Option<&str>) -> Duration {
    Duration::from_secs(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

async fn ask(address: SocketAddr, method: &str, path: &str) -> std::io::Result<Answer> {
    send(address, &format!("{method} {path} HTTP/1.1\r\n")).await
}

/// Asks for a page unless it is the one that the caller has.
async fn ask_if(address: SocketAddr, path: &str, etag: &str) -> std::io::Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nif-none-match: {etag}\r\n");
    send(address, &request).await
}

async fn send(address: SocketAddr, head: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("{head}host: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok(Answer {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

// ---------------------------------------------------------------- The service.

/// A page that can be given to many.
#[derive(Debug)]
struct Page {
    body: String,
    etag: Option<String>,
}

/// Why the origin gave no page.
#[derive(Debug)]
enum OriginError {
    Status { status: u16, retry_after: Duration },
    Unreachable(std::io::Error),
    TooSlow,
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status, .. } => write!(f, "the origin answers {status}"),
            Self::Unreachable(error) => write!(f, "the origin is not there: {error}"),
            Self::TooSlow => f.write_str("the origin takes too long"),
        }
    }
}

/// The origin, as the service sees it.
struct Origin {
    address: SocketAddr,
    asked: AtomicU64,
}

impl Origin {
    /// A page with the lifetime that its headers give it, or for how long there is none. `old` is
    /// the one that the cache has: if that is right still, the origin does not send it again.
    async fn page(
        &self,
        path: &str,
        old: Option<Arc<Page>>,
    ) -> Result<Presence<Arc<Page>>, OriginError> {
        self.asked.fetch_add(1, Relaxed);
        let answer = self.ask(path, old.as_deref()).await?;
        match (answer.status, old) {
            (304, Some(old)) => Ok(Loaded::unchanged(old, lifetime(&answer)).into()),
            (200, _) if answer.cache_control("no-store").is_some() => {
                Ok(Loaded::private(Page::of(answer)).into())
            }
            (200, _) => {
                let lifetime = lifetime(&answer);
                Ok(Loaded::new(Page::of(answer), lifetime).into())
            }
            (404, _) if answer.cache_control("max-age").is_some() => {
                Ok(Presence::AbsentFor(answer.seconds("max-age")))
            }
            (404, _) => Ok(Presence::Absent),
            (status, _) => Err(OriginError::Status {
                status,
                retry_after: seconds(answer.header("retry-after")),
            }),
        }
    }

    async fn ask(&self, path: &str, old: Option<&Page>) -> Result<Answer, OriginError> {
        let asking = async {
            match old.and_then(|old| old.etag.as_deref()) {
                Some(etag) => ask_if(self.address, path, etag).await,
                None => ask(self.address, "GET", path).await,
            }
        };
        let answer = timeout(PATIENCE, asking).await;
        let answer = answer.map_err(|_| OriginError::TooSlow)?;
        answer.map_err(OriginError::Unreachable)
    }
}

impl Page {
    fn of(answer: Answer) -> Arc<Self> {
        let etag = answer.header("etag").map(ToOwned::to_owned);
        let body = answer.body;
        Arc::new(Self { body, etag })
    }
}

/// Converts an answer's headers into a lifetime.
fn lifetime(answer: &Answer) -> Lifetime {
    let fresh = answer.seconds("max-age");
    let stale = answer.seconds("stale-while-revalidate");
    let lifetime = Lifetime::ttl(fresh + stale)
        .fresh_for(fresh)
        .stale_for(answer.seconds("stale-if-error"));
    let tags = answer.header("cache-tag").unwrap_or("").split_whitespace();
    tags.fold(lifetime, Lifetime::tag)
}

type Pages = Cache<String, Arc<Page>>;

/// The state that the handlers share.
#[derive(Clone)]
struct Service {
    pages: Pages,
    origin: Arc<Origin>,
}

/// One line for each page that left the cache.
type Log = Arc<Mutex<Vec<String>>>;

/// In a service, leave out the clock.
fn pages(origin: &Arc<Origin>, log: &Log, clock: &ManualClock) -> Result<Pages, BuildError> {
    let (origin, log) = (Arc::clone(origin), Arc::clone(log));
    Cache::builder()
        .name("pages")
        .max_capacity(64 << 20)
        .weigher(|path: &String, page: &Arc<Page>| {
            u32::try_from(path.len() + page.body.len() + 256).unwrap_or(u32::MAX)
        })
        // Each page says how long it lives, and how long it is fresh.
        .no_default_ttl()
        .refresh_after(1.0)
        .error_backoff(BACK_OFF)
        .negative_ttl(ABSENCE)
        .error_ttl(|error: &OriginError| match error {
            OriginError::Status { retry_after, .. } => *retry_after,
            _ => Duration::from_secs(1),
        })
        .refresh_with_old_async(move |path: String, old| {
            let origin = Arc::clone(&origin);
            // An error keeps the old page until its end, and an absence ends it.
            async move { origin.page(&path, Some(old)).await }
        })
        .eviction_listener_async(move |removal: Removal<String, Arc<Page>>| {
            let log = Arc::clone(&log);
            async move {
                // A log on a disk or in a network would be awaited here.
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push(format!("{} {:?}", removal.key, removal.cause));
            }
        })
        .clock(clock.clone())
        .driver(Driver::Task)
        .build()
}

/// Any page: from the cache, or else from the origin.
async fn page(State(service): State<Service>, uri: Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let load = |old| service.origin.page(path, old);
    let pages = service.pages.fetch_by_ref(path);
    answer(pages.load_with_old_async(load).await)
}

type Found = Result<Option<Arc<Page>>, Arc<OriginError>>;

fn answer(fetched: Fetched<Found, OriginError>) -> Response {
    let (status, body) = match fetched.value {
        Ok(Some(page)) => (StatusCode::OK, page.body.clone()),
        Ok(None) => (StatusCode::NOT_FOUND, "no such page".to_owned()),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    };
    let x_cache = [(X_CACHE, fetched.outcome.to_string())];
    match fetched.error {
        None => (status, x_cache, body).into_response(),
        Some(error) => {
            let warning = [(WARNING, format!("110 - \"{error}\""))];
            (status, x_cache, warning, body).into_response()
        }
    }
}

/// Many pages in one answer: what is missing is asked for in one go, by as few requests as there
/// are such pages.
async fn menu(State(service): State<Service>) -> String {
    let origin = &service.origin;
    let load = |missing: Vec<String>| async move {
        let mut pages = Vec::new();
        for path in missing {
            // What is left out is absent.
            if let Presence::Present(page) = origin.page(&path, None).await? {
                pages.push((path, page));
            }
        }
        Ok::<_, OriginError>(pages)
    };
    let pages = ["/tea", "/gold", "/cake"];
    let pages = service.pages.try_get_or_load_many_async(pages, load).await;
    let lines = pages.iter().map(|page| match page {
        Ok(Some(page)) => page.body.clone(),
        Ok(None) => "no such page".to_owned(),
        Err(error) => error.to_string(),
    });
    lines.collect::<Vec<_>>().join(", ")
}

async fn stats(State(service): State<Service>) -> String {
    service.pages.stats().to_string()
}

async fn purge(State(service): State<Service>, Path(tag): Path<String>) -> String {
    let pages = service.pages.count_tag(&tag);
    service.pages.invalidate_tag(&tag);
    format!("{pages} pages")
}

fn routes(service: Service) -> Router {
    Router::new()
        .route("/cache/menu", get(menu))
        .route("/cache/stats", get(stats))
        .route("/cache/purge/{tag}", post(purge))
        .fallback(get(page))
        .with_state(service)
}

// ---------------------------------------------------------------- The origin.

/// A shop whose prices change with each request.
#[derive(Default)]
struct Shop {
    is_down: AtomicBool,
    requests: AtomicU64,
}

async fn price(State(shop): State<Arc<Shop>>, uri: Uri, request: HeaderMap) -> Response {
    let number = shop.requests.fetch_add(1, Relaxed) + 1;
    // Long enough for others to come and ask for the same.
    sleep(Duration::from_millis(30)).await;
    if shop.is_down.load(Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "10")]).into_response();
    }
    let headers = match uri.path() {
        "/tea" => [
            (
                "cache-control",
                "max-age=60, stale-while-revalidate=30, stale-if-error=3600",
            ),
            ("cache-tag", "drinks hot"),
        ],
        "/juice" => [("cache-control", "max-age=600"), ("cache-tag", "drinks")],
        "/cake" => [("cache-control", "max-age=600"), ("cache-tag", "food")],
        "/basket" => [("cache-control", "no-store"), ("cache-tag", "")],
        "/bread" => {
            let headers = [
                (CACHE_CONTROL, "max-age=60, stale-while-revalidate=30"),
                (ETAG, "\"rye\""),
            ];
            return match request
                .get(IF_NONE_MATCH)
                .is_some_and(|etag| etag == "\"rye\"")
            {
                true => (StatusCode::NOT_MODIFIED, headers).into_response(),
                false => (headers, format!("bread costs {number}")).into_response(),
            };
        }
        "/silver" => {
            let headers = [(CACHE_CONTROL, "max-age=600")];
            return (StatusCode::NOT_FOUND, headers).into_response();
        }
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    (headers, format!("{} costs {number}", &uri.path()[1..])).into_response()
}

// ---------------------------------------------------------------- Both, and a client that checks what it is told.

/// A server that ends when it is told to, with the requests that it has begun.
struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn start(routes: Router) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, routes).with_graceful_shutdown(async {
            // In a service: Ctrl-C, or SIGTERM.
            drop(stopped.await);
        });
        let running = tokio::spawn(serving.into_future());
        Ok(Self {
            address,
            stop,
            running,
        })
    }

    async fn stop(self) -> Result<(), Box<dyn Error>> {
        drop(self.stop);
        Ok(self.running.await??)
    }
}

/// Everything there is.
struct Town {
    shop: Arc<Shop>,
    origin: Arc<Origin>,
    pages: Pages,
    clock: ManualClock,
    address: SocketAddr,
}

impl Town {
    /// A request, which must be answered like this, by so many requests to the origin.
    async fn expect(&self, path: &str, status: u16, outcome: Outcome, asked: u64) -> String {
        let before = self.origin.asked.load(Relaxed);
        let answer = ask(self.address, "GET", path).await.expect("it answers");
        let asked_now = self.origin.asked.load(Relaxed) - before;
        let x_cache = answer.header("x-cache").unwrap_or_default();
        let at = self.pages.now().as_secs();
        println!(
            "{at:5} s  {path:8} {} {x_cache:15} {:28} asked: {asked_now}",
            answer.status, answer.body
        );
        assert_eq!(answer.status, status);
        assert_eq!(x_cache, outcome.to_string());
        let warns = answer.header("warning").is_some();
        assert_eq!(warns, outcome == Outcome::StaleOnError);
        assert_eq!(asked_now, asked);
        answer.body
    }

    /// Time passes.
    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it happens soon");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_service_answers_as_cache_control_says() -> Result<(), Box<dyn Error>> {
    let shop = Arc::new(Shop::default());
    let origin_routes = Router::new().fallback(get(price));
    let at_origin = Server::start(origin_routes.with_state(Arc::clone(&shop))).await?;
    let origin = Arc::new(Origin {
        address: at_origin.address,
        asked: AtomicU64::new(0),
    });
    let (log, clock) = (Log::default(), ManualClock::new());
    let pages = pages(&origin, &log, &clock)?;
    let driving = tokio::spawn(pages.drive(sleep));
    let service = Service {
        pages: pages.clone(),
        origin: Arc::clone(&origin),
    };
    let server = Server::start(routes(service)).await?;
    let town = Town {
        shop,
        origin,
        pages,
        clock,
        address: server.address,
    };

    rush(&town).await?;
    stale_while_revalidate(&town).await;
    stale_on_error(&town).await;
    negative_answers(&town).await;
    purges(&town).await?;

    many_at_once(&town).await?;
    not_modified(&town).await;

    let answer = ask(town.address, "GET", "/cache/stats").await?;
    println!("stats: {}", answer.body);
    assert!(answer.body.contains("hits"), "{answer:?}");

    // The end: a request that is in progress is answered.
    town.pass(3600);
    let requests = town.shop.requests.load(Relaxed);
    let last = tokio::spawn(ask(town.address, "GET", "/cake"));
    until(|| town.shop.requests.load(Relaxed) > requests).await;
    server.stop().await?;
    let last = last.await??;
    assert_eq!((last.status, last.header("x-cache")), (200, Some("MISS")));
    // The cache hands its last entries to the log, and its task ends.
    town.pages.close_async().await;
    driving.await?;
    at_origin.stop().await?;
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    println!("log: {}", log.join(", "));
    assert!(log.contains(&"/cake Closed".to_owned()));
    assert!(!log.contains(&"/bread Replaced".to_owned()));
    let left = town.pages.stats();
    assert_eq!(
        log.len() as u64,
        left.inserts,
        "each page that came has left"
    );
    Ok(())
}

/// A hundred requests at once are one to the origin.
async fn rush(town: &Town) -> Result<(), Box<dyn Error>> {
    let asking: Vec<_> = (0..100)
        .map(|_| tokio::spawn(ask(town.address, "GET", "/tea")))
        .collect();
    let mut outcomes = BTreeMap::new();
    for answer in asking {
        let answer = answer.await??;
        assert_eq!((answer.status, &*answer.body), (200, "tea costs 1"));
        let outcome = answer.header("x-cache").unwrap_or_default().to_owned();
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    println!("100 requests at once: {outcomes:?}");
    assert_eq!(outcomes.get("MISS"), Some(&1));
    assert_eq!(town.origin.asked.load(Relaxed), 1);
    town.expect("/tea", 200, Outcome::Hit, 0).await;
    // What says that it must not be kept is not.
    town.expect("/basket", 200, Outcome::Loaded, 1).await;
    town.expect("/basket", 200, Outcome::Loaded, 1).await;
    let (mine, yours) = tokio::join!(
        ask(town.address, "GET", "/basket"),
        ask(town.address, "GET", "/basket")
    );
    assert_ne!(mine?.body, yours?.body, "each has its own");
    Ok(())
}

/// After `max-age` the old page is served at once, and replaced meanwhile.
async fn stale_while_revalidate(town: &Town) {
    town.pass(59);
    let page = town.expect("/tea", 200, Outcome::Hit, 0).await;
    assert_eq!(page, "tea costs 1");
    town.pass(1);
    let answer = ask(town.address, "GET", "/tea").await.expect("it answers");
    assert_eq!(answer.header("x-cache"), Some("STALE"));
    assert_eq!(answer.body, "tea costs 1");
    until(|| {
        let page = town.pages.peek("/tea");
        page.is_some_and(|page| page.body != "tea costs 1")
    })
    .await;
    assert_eq!(town.pages.stats().refreshes_begun, 1);
    let page = town.expect("/tea", 200, Outcome::Hit, 0).await;
    assert_eq!(page, "tea costs 6");
    // What nobody asks for is not refreshed: it ends.
    town.pass(90);
    let page = town.expect("/tea", 200, Outcome::Loaded, 1).await;
    assert_eq!(page, "tea costs 7");
}

/// The last page stands in while the origin fails, and the origin has time to recover.
async fn stale_on_error(town: &Town) {
    town.shop.is_down.store(true, Relaxed);
    town.pass(90);
    let page = town.expect("/tea", 200, Outcome::StaleOnError, 1).await;
    assert_eq!(page, "tea costs 7");
    town.pass(9);
    town.expect("/tea", 200, Outcome::StaleOnError, 0).await;
    town.pass(1);
    town.expect("/tea", 200, Outcome::StaleOnError, 1).await;
    // Nobody is given another one's basket.
    town.expect("/basket", 502, Outcome::Loaded, 1).await;
    // Of a page that nobody has seen there is nothing to serve.
    town.expect("/cake", 502, Outcome::Loaded, 1).await;
    town.pass(9);
    town.expect("/cake", 502, Outcome::Negative, 0).await;
    town.pass(1);
    town.expect("/cake", 502, Outcome::Loaded, 1).await;
    // When that time is over, too, the memory is free, although nobody has asked.
    town.pass(3600);
    until(|| town.pages.is_empty()).await;
    town.expect("/tea", 502, Outcome::Loaded, 1).await;
    town.shop.is_down.store(false, Relaxed);
    town.expect("/tea", 502, Outcome::Negative, 0).await;
    town.pass(10);
    town.expect("/tea", 200, Outcome::Loaded, 1).await;
    town.expect("/tea", 200, Outcome::Hit, 0).await;
}

/// An absence is an answer.
async fn negative_answers(town: &Town) {
    town.expect("/gold", 404, Outcome::Loaded, 1).await;
    town.pass(29);
    town.expect("/gold", 404, Outcome::Negative, 0).await;
    town.pass(1);
    town.expect("/gold", 404, Outcome::Loaded, 1).await;
    // This one says itself how long that holds.
    town.expect("/silver", 404, Outcome::Loaded, 1).await;
}

/// All pages with a tag end at once.
async fn purges(town: &Town) -> Result<(), Box<dyn Error>> {
    town.expect("/juice", 200, Outcome::Loaded, 1).await;
    town.expect("/cake", 200, Outcome::Loaded, 1).await;
    town.expect("/tea", 200, Outcome::Hit, 0).await;
    let answer = ask(town.address, "POST", "/cache/purge/drinks").await?;
    assert_eq!(answer.body, "2 pages");
    town.expect("/juice", 200, Outcome::Loaded, 1).await;
    town.expect("/tea", 200, Outcome::Loaded, 1).await;
    town.expect("/cake", 200, Outcome::Hit, 0).await;
    Ok(())
}

/// Of many pages only the missing ones are asked for.
async fn many_at_once(town: &Town) -> Result<(), Box<dyn Error>> {
    for missing in [0, 1] {
        let before = town.origin.asked.load(Relaxed);
        let answer = ask(town.address, "GET", "/cache/menu").await?;
        println!("menu: {}", answer.body);
        assert_eq!(answer.body, "tea costs 21, no such page, cake costs 19");
        assert_eq!(town.origin.asked.load(Relaxed) - before, missing);
        // The absence of gold is forgotten.
        town.pass(30);
    }
    Ok(())
}

/// A page that has not changed stays where it is, and lives on.
async fn not_modified(town: &Town) {
    town.expect("/silver", 404, Outcome::Negative, 0).await;
    let page = town.expect("/bread", 200, Outcome::Loaded, 1).await;
    for _ in 0..3 {
        town.pass(60);
        let done = town.pages.stats().refreshes_done;
        let answer = ask(town.address, "GET", "/bread").await.expect("answers");
        assert_eq!(answer.header("x-cache"), Some("STALE"));
        until(|| town.pages.stats().refreshes_done > done).await;
        assert_eq!(town.expect("/bread", 200, Outcome::Hit, 0).await, page);
    }
    town.pass(600);
    town.expect("/silver", 404, Outcome::Loaded, 1).await;
}
