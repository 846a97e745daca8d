//! A thousand callers, one cold page, one request to the origin.
//!
//! The origin is an HTTP/1.1 server on the loopback interface, a slow one (50 ms a page), which
//! counts its requests. A thousand threads ask the cache for the same page at the same time, and
//! again when it has expired; each time the origin is asked once. Then the origin goes down, and
//! the last page is served in place of the error for as long as was allowed.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidewheel::Cache;

const CALLERS: usize = 1000;

/// The longest page, and the longest line of a request, that is read.
const BYTES_MAX: u64 = 64 * 1024;

/// Why a page could not be had.
#[derive(Debug)]
enum FetchError {
    Network(io::Error),
    Answer(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(error) => write!(f, "the origin cannot be reached: {error}"),
            Self::Answer(line) => write!(f, "the origin answers {line:?}"),
        }
    }
}

impl std::error::Error for FetchError {}

impl From<io::Error> for FetchError {
    fn from(error: io::Error) -> Self {
        Self::Network(error)
    }
}

/// A web server that makes a page of the path and the number of the request.
struct Origin {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Origin {
    fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let requests = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (counted, stopped) = (Arc::clone(&requests), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(SeqCst) {
                    break;
                }
                serve(stream?, counted.fetch_add(1, SeqCst) + 1)?;
            }
            Ok(())
        });
        Ok(Self {
            address,
            requests,
            stop,
            thread,
        })
    }

    fn requests(&self) -> u64 {
        self.requests.load(SeqCst)
    }

    /// Stops listening: from now on connections are refused.
    fn stop(self) -> io::Result<()> {
        self.stop.store(true, SeqCst);
        // The server looks at the flag when somebody connects.
        drop(TcpStream::connect(self.address)?);
        match self.thread.join() {
            Ok(result) => result,
            Err(_) => Err(io::Error::other("the origin has panicked")),
        }
    }
}

fn serve(stream: TcpStream, number: u64) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?.take(BYTES_MAX));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let path = request.split(' ').nth(1).unwrap_or("/");
    let page = format!("<h1>{path}</h1> request number {number}");
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    // A slow origin: time enough for all callers to come.
    thread::sleep(Duration::from_millis(50));
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
        page.len(),
    )
}

/// Fetches a page from the origin.
fn fetch(address: SocketAddr, path: &str) -> Result<Arc<str>, FetchError> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.take(BYTES_MAX).read_to_string(&mut answer)?;
    let (head, page) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(FetchError::Answer(status.to_owned()));
    }
    Ok(page.into())
}

type Pages = Cache<String, Arc<str>>;

/// Asks for a page from a thousand threads at once, and checks that all get the same one.
fn rush(cache: &Pages, address: SocketAddr, path: &str) -> Result<Arc<str>, Arc<FetchError>> {
    let together = Barrier::new(CALLERS);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    cache.try_get_or_load(path.to_owned(), || fetch(address, path))
                })
            })
            .collect();
        let mut pages = callers.into_iter().map(|caller| match caller.join() {
            Ok(page) => page,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let first = pages.next().expect("there are callers")?;
        for page in pages {
            assert_eq!(page?, first, "all get the same page");
        }
        Ok(first)
    })
}

#[test]
fn a_thousand_callers_ask_the_origin_once() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let address = origin.address;
    let cache: Pages = Cache::builder()
        .max_capacity(1000)
        // Longer than a thousand threads take to ask, on a busy machine.
        .time_to_live(Duration::from_secs(3))
        .negative_ttl(Duration::from_secs(1))
        .stale_on_error(Duration::from_secs(60))
        .build()?;

    let page = rush(&cache, address, "/tides")?;
    println!(
        "{CALLERS} callers, cold cache: {page:?}, {} request to the origin",
        origin.requests()
    );
    assert_eq!(origin.requests(), 1);

    let page = rush(&cache, address, "/tides")?;
    println!(
        "{CALLERS} callers, warm cache: {page:?}, {} request in all",
        origin.requests()
    );

    while cache.contains_key("/tides") {
        thread::sleep(Duration::from_millis(5));
    }
    let before = origin.requests();
    let page = rush(&cache, address, "/tides")?;
    println!(
        "{CALLERS} callers, expired: {page:?}, {} requests in all",
        origin.requests()
    );
    assert_eq!(origin.requests(), before + 1);

    origin.stop()?;
    while cache.contains_key("/tides") {
        thread::sleep(Duration::from_millis(5));
    }
    let stale = rush(&cache, address, "/tides")?;
    println!("{CALLERS} callers, origin down: {stale:?}, served in place of the error");
    assert_eq!(stale, page);
    let error = match cache.try_get_or_load("/moon".to_owned(), || fetch(address, "/moon")) {
        Ok(page) => return Err(format!("nobody can have answered {page:?}").into()),
        Err(error) => error,
    };
    println!("a page that nobody has seen: {error}");

    let stats = cache.stats();
    println!(
        "{} hits, {} misses, {} loads, {} of them failed, {} answers past their end",
        stats.hits, stats.misses, stats.loads, stats.load_errors, stats.stale_hits,
    );
    cache.close();
    Ok(())
}
