//! A layer that caches the pages of an axum service, and a client that counts what it spares.
//!
//! Concurrent requests of one page cause one run of its handler. A page lives for as long as its
//! `Cache-Control: max-age` says, and all pages with a tag can be invalidated at once.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::{Router, get, post};
use tidewheel::{Cache, Lifetime, Loaded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, Service};

/// Longer pages are passed on, not cached.
const PAGE_MAX: usize = 1 << 20;

/// A response that can be given to many.
#[derive(Debug, Clone)]
struct Page {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

type Pages = Cache<String, Arc<Page>>;

/// Caches what a service answers to GET.
#[derive(Clone)]
struct CacheLayer(Pages);

impl<S> Layer<S> for CacheLayer {
    type Service = CacheService<S>;

    fn layer(&self, inner: S) -> CacheService<S> {
        CacheService {
            pages: self.0.clone(),
            inner,
        }
    }
}

#[derive(Clone)]
struct CacheService<S> {
    pages: Pages,
    inner: S,
}

impl<S> Service<Request> for CacheService<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The service that was polled is the one to call; the clone takes its place.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        if request.method() != Method::GET {
            return Box::pin(async move { inner.call(request).await });
        }
        let pages = self.pages.clone();
        let key = request.uri().to_string();
        Box::pin(async move {
            let load = async move {
                let response = inner.call(request).await;
                let response = response.unwrap_or_else(|never| match never {});
                let (page, ttl) = page_of(response).await;
                // What may not be kept is given to those who wait for it, and ends at once.
                let lifetime = Lifetime::ttl(ttl).tag("pages");
                Loaded::new(Arc::new(page), lifetime)
            };
            let page = pages.get_or_load_with_async(key, load).await;
            let mut response = Response::new(Body::from(page.body.clone()));
            *response.status_mut() = page.status;
            *response.headers_mut() = page.headers.clone();
            Ok(response)
        })
    }
}

/// Reads a response, and how long it may be kept.
async fn page_of(response: Response) -> (Page, Duration) {
    let (head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, PAGE_MAX).await else {
        let page = Page {
            status: StatusCode::BAD_GATEWAY,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"the page is too long, or broke off"),
        };
        return (page, Duration::ZERO);
    };
    let max_age = head
        .headers
        .get(CACHE_CONTROL)
        .and_then(|value| value.to_str().ok()?.strip_prefix("max-age="))
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(0);
    let page = Page {
        status: head.status,
        headers: head.headers,
        body,
    };
    (page, Duration::from_secs(max_age))
}

/// Runs of the handler.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU64>);

async fn article(State(runs): State<Runs>, Path(id): Path<u64>) -> (HeaderMap, String) {
    let run = runs.0.fetch_add(1, Relaxed) + 1;
    // A slow origin.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let age = HeaderValue::from_static("max-age=60");
    let headers = HeaderMap::from_iter([(CACHE_CONTROL, age)]);
    (headers, format!("article {id}, written by run {run}"))
}

async fn ask(address: SocketAddr, method: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pages: Pages = Cache::builder()
        .max_capacity(64 << 20)
        .weigher(|key: &String, page: &Arc<Page>| {
            u32::try_from(key.len() + page.body.len() + 256).unwrap_or(u32::MAX)
        })
        .no_default_ttl()
        .name("pages")
        .build()?;
    let runs = Runs::default();
    let purged = pages.clone();
    let purge = move || async move {
        let any = purged.invalidate_tag("pages");
        format!("purged: {any}")
    };
    let app = Router::new()
        .route("/article/{id}", get(article).with_state(runs.clone()))
        .route("/purge", post(purge))
        .layer(CacheLayer(pages.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let asked: Vec<_> = (0..100)
        .map(|_| tokio::spawn(ask(address, "GET", "/article/7")))
        .collect();
    for response in asked {
        let response = response.await??;
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
        assert!(
            response.ends_with("article 7, written by run 1"),
            "{response}"
        );
    }
    println!(
        "100 requests at once: {} run of the handler",
        runs.0.load(Relaxed)
    );
    assert_eq!(runs.0.load(Relaxed), 1);

    for _ in 0..100 {
        ask(address, "GET", "/article/7").await?;
    }
    println!("100 more, one after another: {} run", runs.0.load(Relaxed));
    assert_eq!(runs.0.load(Relaxed), 1);

    let purge = ask(address, "POST", "/purge").await?;
    assert!(purge.ends_with("purged: true"), "{purge}");
    let response = ask(address, "GET", "/article/7").await?;
    assert!(
        response.ends_with("article 7, written by run 2"),
        "{response}"
    );
    println!("after the purge: {} runs", runs.0.load(Relaxed));

    let stats = pages.stats();
    println!("hit ratio {:.3}, {} loads", stats.hit_ratio(), stats.loads);
    assert_eq!(stats.loads, 2);
    assert!(stats.hits >= 100);
    server.abort();
    Ok(())
}
