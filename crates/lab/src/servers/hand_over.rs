//! Measures the time from the push of an element to the client that has waited for it, when very
//! many wait for one key.
//!
//! All who wait are connections of one thread. Each element is the time at which its push was sent.
//! Who receives one waits again, so their number stays the same. In the end as many elements as
//! there are clients are pushed at once.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::Reply;

use crate::clock;
use crate::latency::Latencies;
use crate::proc::Meter;
use crate::progress;
use crate::report::{Figures, Report};
use crate::runner::Basics;
use crate::servers::client::Connection;
use crate::servers::crowd::{Crowd, Wait};
use crate::servers::server::{self, Target};

const WAIT: &[u8] = b"*3\r\n$5\r\nBLPOP\r\n$5\r\nqueue\r\n$1\r\n0\r\n";

/// Options of `hand-over`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Clients that wait for the one key (quick: 100).
    #[arg(long, default_value_t = 10_000)]
    #[arg(default_value_if("quick", "true", "100"))]
    waiters: usize,
    /// Elements (quick: 500).
    #[arg(long, default_value_t = 50_000)]
    #[arg(default_value_if("quick", "true", "500"))]
    pushes: u64,
    /// Elements a second.
    #[arg(long, default_value_t = 5_000)]
    rate: u64,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let &Args {
        waiters,
        pushes,
        rate,
        ..
    } = args;
    let (mut connection, facts) = server::meet(target)?;
    progress::say("connecting those who wait");
    let wait = Wait {
        request: WAIT,
        sent_ns,
    };
    let crowd = Crowd::start(target.port, waiters, pushes, wait)?;
    crowd.await_waiting(&mut connection)?;

    progress::say("pushing");
    let mut meter = Meter::start(target.pid);
    let start_ns = clock::mono_ns();
    for at in 0..pushes {
        clock::sleep_until(start_ns + at * 1_000_000_000 / rate.max(1));
        let sent = clock::mono_ns().to_string();
        connection.call(&["RPUSH", "queue", &sent])?;
    }
    crowd.await_received(pushes)?;
    let taken = meter.read();
    let all_ns = push_to_all(&mut connection, &crowd, pushes, waiters)?;
    let (one_by_one, _) = crowd.finish()?;

    let mut report = facts.report("hand-over", json!(args));
    let figures = &mut report.figures;
    hand_overs(figures, &one_by_one);
    figures.push("all_at_once_ms", all_ns as f64 / 1e6);
    let cpu = taken.server_ns.map(|ns| ns / 1e3 / pushes.max(1) as f64);
    figures.push("server_cpu_us_per_hand_over", cpu);
    figures.push_noise(taken);
    Ok(report)
}

fn hand_overs(figures: &mut Figures, latencies: &Latencies) {
    figures.push("received", latencies.count() as f64);
    for (name, us) in latencies.percentiles() {
        figures.push(format!("hand_over_{name}_us"), us);
    }
}

/// Pushes an element for each who waits, with one command. Returns how long it takes until all have
/// theirs.
fn push_to_all(
    connection: &mut Connection,
    crowd: &Crowd,
    received: u64,
    waiters: usize,
) -> Result<u64> {
    let element = clock::mono_ns().to_string();
    let mut call = vec!["RPUSH", "queue"];
    call.resize(2 + waiters, &element);
    let start_ns = clock::mono_ns();
    connection.call(&call)?;
    crowd.await_received(received + waiters as u64)?;
    Ok(crowd.last_ns().saturating_sub(start_ns))
}

/// The time at which the element of a reply was pushed.
fn sent_ns(reply: &Reply) -> Result<u64> {
    let element = match reply {
        Reply::Array(items) => items.get(1),
        _ => None,
    };
    let Some(Reply::Bulk(element)) = element else {
        bail!("BLPOP was answered with {reply:?}");
    };
    let text = String::from_utf8_lossy(element);
    text.parse().context("an element that nobody has pushed")
}
