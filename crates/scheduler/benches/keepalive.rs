//! A pool of TCP connections that are closed when their heartbeats stop, by three kinds of timer
//! side by side: a task for each connection in one scheduler, a tokio timer for each, a scan of all
//! every second.
//!
//! `cargo bench -p tidewheel-scheduler --bench keepalive -- --connections 10000 --scale 1` is the
//! whole experiment: 30 s of silence close a connection, within 5 s. Without arguments it
//! is a small one of a few seconds. The clients are a process of their own.

use std::error::Error;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidewheel_scheduler::{Clock, Handle, Scheduler, SystemClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Silence that closes a connection, how late that may be, and the scan's period; all times
/// `--scale`.
const SILENCE: Duration = Duration::from_secs(30);
const LATE_MAX: Duration = Duration::from_secs(5);
const SCAN: Duration = Duration::from_secs(1);
/// Heartbeats within the silence that is allowed.
const BEATS: u32 = 3;
/// Connections that are opened between two pauses of a few milliseconds.
const CONNECTING: u32 = 64;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimerKind {
    Wheel,
    TimerEach,
    Scan,
}

#[derive(Debug, Clone)]
struct Options {
    connections: u32,
    scale: f64,
    /// This process is the clients, and the pool is there.
    client_of: Option<SocketAddr>,
}

impl Options {
    fn parse() -> Result<Self, Failure> {
        let mut options = Self {
            connections: 2_000,
            scale: 0.05,
            client_of: None,
        };
        // `cargo bench` says `--bench` too.
        let mut arguments = std::env::args()
            .skip(1)
            .filter(|argument| argument != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments
                .next()
                .ok_or_else(|| format!("{name} takes a value"))?;
            match name.as_str() {
                "--connections" => options.connections = value.parse()?,
                "--scale" => options.scale = value.parse()?,
                "--client-of" => options.client_of = Some(value.parse()?),
                _ => return Err(format!("unknown: {name}").into()),
            }
        }
        let sound =
            (1..=19_000).contains(&options.connections) && (0.001..=10.0).contains(&options.scale);
        if !sound {
            return Err("--connections lies in 1..=19000, --scale in 0.001..=10".into());
        }
        Ok(options)
    }

    fn scaled(&self, duration: Duration) -> Duration {
        duration.mul_f64(self.scale)
    }
}

fn main() -> Result<(), Failure> {
    let options = Options::parse()?;
    if let Some(pool) = options.client_of {
        return clients(&options, pool);
    }
    println!(
        "{} connections, closed after {:?} of silence, {:?} late at most",
        options.connections,
        options.scaled(SILENCE),
        options.scaled(LATE_MAX)
    );
    for kind in [TimerKind::Wheel, TimerKind::TimerEach, TimerKind::Scan] {
        pool(&options, kind)?;
    }
    Ok(())
}

/// The state that the connections of a pool share.
struct Pool {
    clock: SystemClock,
    silence: Duration,
    /// In microseconds of the clock, by connection.
    last_heard: Vec<AtomicU64>,
    close: Vec<Notify>,
    heartbeats: AtomicU64,
    closed: AtomicU64,
    lost: AtomicU64,
    late_us: Mutex<Vec<u64>>,
    all_closed: Notify,
}

impl Pool {
    fn now_us(&self) -> u64 {
        self.clock.now().as_micros() as u64
    }

    /// Microseconds since the connection's silence was over; `None` while it is not.
    fn overdue_us(&self, id: u32) -> Option<u64> {
        let heard = self.last_heard[id as usize].load(Relaxed);
        self.now_us()
            .checked_sub(heard + self.silence.as_micros() as u64)
    }

    fn ended(&self, count: &AtomicU64) {
        count.fetch_add(1, Relaxed);
        if self.closed.load(Relaxed) + self.lost.load(Relaxed) == self.close.len() as u64 {
            self.all_closed.notify_one();
        }
    }
}

fn pool(options: &Options, kind: TimerKind) -> Result<(), Failure> {
    let count = options.connections;
    let pool = Arc::new(Pool {
        clock: SystemClock::new(),
        silence: options.scaled(SILENCE),
        last_heard: (0..count).map(|_| AtomicU64::new(0)).collect(),
        close: (0..count).map(|_| Notify::new()).collect(),
        heartbeats: AtomicU64::new(0),
        closed: AtomicU64::new(0),
        lost: AtomicU64::new(0),
        late_us: Mutex::new(Vec::new()),
        all_closed: Notify::new(),
    });
    let closing = Arc::clone(&pool);
    let scheduler = Scheduler::<u32, ()>::builder()
        .workers(1)
        .start(move |_, run| closing.close[run.key as usize].notify_one())?;
    let cpu_before = cpu_seconds();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut child = runtime.block_on(serve(options, kind, &pool, scheduler.handle()))?;
    child.wait()?;
    let cpu = cpu_before
        .zip(cpu_seconds())
        .map(|(before, after)| after - before);

    let mut late = pool.late_us.lock().unwrap_or_else(PoisonError::into_inner);
    late.sort_unstable();
    let at = |part: usize| late.get((late.len() * part / 100).min(late.len().saturating_sub(1)));
    let ms = |us: Option<&u64>| us.map_or(0.0, |us| *us as f64 / 1e3);
    let bound = options.scaled(LATE_MAX).as_micros() as u64;
    println!(
        "{kind:?}: {} closed, {} lost, {} heartbeats; late p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms, \
         {} beyond the bound; processor {:.2} s",
        pool.closed.load(Relaxed),
        pool.lost.load(Relaxed),
        pool.heartbeats.load(Relaxed),
        ms(at(50)),
        ms(at(99)),
        ms(late.last()),
        late.iter().filter(|late| **late > bound).count(),
        cpu.unwrap_or(f64::NAN),
    );
    Ok(())
}

async fn serve(
    options: &Options,
    kind: TimerKind,
    pool: &Arc<Pool>,
    scheduler: Handle<u32, ()>,
) -> Result<Child, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let child = Command::new(std::env::current_exe()?)
        .args(["--client-of", &listener.local_addr()?.to_string()])
        .args(["--connections", &options.connections.to_string()])
        .args(["--scale", &options.scale.to_string()])
        .stdin(Stdio::null())
        .spawn()?;
    if kind == TimerKind::Scan {
        tokio::spawn(scan(Arc::clone(pool), options.scaled(SCAN)));
    }
    tokio::spawn(report(Arc::clone(pool), options.scaled(SILENCE) / 2));
    for id in 0..options.connections {
        let (stream, _) = listener.accept().await?;
        pool.last_heard[id as usize].store(pool.now_us(), Relaxed);
        if kind == TimerKind::Wheel {
            scheduler.set(id, (), pool.silence)?;
        }
        tokio::spawn(connection(
            stream,
            id,
            kind,
            Arc::clone(pool),
            scheduler.clone(),
        ));
    }
    pool.all_closed.notified().await;
    Ok(child)
}

async fn connection(
    mut stream: TcpStream,
    id: u32,
    kind: TimerKind,
    pool: Arc<Pool>,
    scheduler: Handle<u32, ()>,
) {
    let mut bytes = [0; 64];
    loop {
        let heard = if kind == TimerKind::TimerEach {
            timeout(pool.silence, stream.read(&mut bytes)).await.ok()
        } else {
            tokio::select! {
                read = stream.read(&mut bytes) => Some(read),
                () = pool.close[id as usize].notified() => None,
            }
        };
        match heard {
            Some(Ok(1..)) => {
                pool.heartbeats.fetch_add(1, Relaxed);
                pool.last_heard[id as usize].store(pool.now_us(), Relaxed);
                if kind == TimerKind::Wheel && !scheduler.move_to(&id, pool.silence) {
                    // Its time had come, and the heartbeat with it: the notice is on its way.
                    continue;
                }
            }
            Some(Ok(0) | Err(_)) => {
                scheduler.remove(&id);
                pool.ended(&pool.lost);
                return;
            }
            None => break,
        }
    }
    let late = pool.overdue_us(id).unwrap_or(0);
    pool.late_us
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(late);
    pool.ended(&pool.closed);
}

/// Looks at every connection, again and again.
async fn scan(pool: Arc<Pool>, period: Duration) {
    loop {
        sleep(period).await;
        for id in 0..pool.close.len() as u32 {
            let was_accepted = pool.last_heard[id as usize].load(Relaxed) > 0;
            if was_accepted && pool.overdue_us(id).is_some() {
                pool.close[id as usize].notify_one();
            }
        }
    }
}

async fn report(pool: Arc<Pool>, period: Duration) {
    loop {
        sleep(period).await;
        let accepted = pool
            .last_heard
            .iter()
            .filter(|heard| heard.load(Relaxed) > 0);
        let ended = pool.closed.load(Relaxed) + pool.lost.load(Relaxed);
        println!(
            "  {:5.1} s: {} open, {} closed, {} heartbeats",
            pool.clock.now().as_secs_f64(),
            (accepted.count() as u64).saturating_sub(ended),
            pool.closed.load(Relaxed),
            pool.heartbeats.load(Relaxed),
        );
    }
}

/// Connects, sends heartbeats for one to two times the silence, then is silent until it is closed.
fn clients(options: &Options, pool: SocketAddr) -> Result<(), Failure> {
    let silence = options.scaled(SILENCE);
    let count = options.connections;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let mut running = Vec::new();
        for id in 0..count {
            // The listener's queue is short: no more at a time than it takes.
            if id % CONNECTING == 0 {
                sleep(Duration::from_millis(5)).await;
            }
            let stream = TcpStream::connect(pool).await?;
            running.push(tokio::spawn(client(stream, id, count, silence)));
        }
        for client in running {
            client.await??;
        }
        Ok(())
    })
}

async fn client(
    mut stream: TcpStream,
    id: u32,
    count: u32,
    silence: Duration,
) -> Result<(), std::io::Error> {
    let part = f64::from(id) / f64::from(count);
    let beat = silence / BEATS;
    // Out of step with the others.
    sleep(beat.mul_f64(part)).await;
    for _ in 0..BEATS + (f64::from(BEATS) * part) as u32 {
        stream.write_all(b"k").await?;
        sleep(beat).await;
    }
    let mut bytes = [0; 1];
    // Closed, or reset: both are the end.
    drop(stream.read(&mut bytes).await);
    Ok(())
}

/// Seconds of processor time that this process has used, on Linux.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).take(2);
    let (user, system) = (times.next()?, times.next()?);
    // In hundredths of a second on every Linux.
    let ticks = user.parse::<u64>().ok()? + system.parse::<u64>().ok()?;
    Some(ticks as f64 / 100.0)
}
