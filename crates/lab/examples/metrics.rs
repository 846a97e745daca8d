//! Figures of a cache, a scheduler and a worker of tasks, for Prometheus: `curl 127.0.0.1:9464`.
//! `cargo run -p tidewheel-lab --example metrics 9464`
use std::io::{BufRead, BufReader, Write};
use std::{error::Error, net::TcpListener, time::Duration};

use metrics_exporter_prometheus::PrometheusBuilder as Exporter;
use tidewheel::Cache;
use tidewheel_scheduler::{CatchUp, Scheduler};
use tidewheel_tasks::{MemoryStore, Outcome, Task, TaskStore, Worker, wait};

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("which port?")?.parse()?;
    serve(&TcpListener::bind(("127.0.0.1", port))?)
}

pub(crate) fn serve(listener: &TcpListener) -> Result<(), Box<dyn Error>> {
    // From 64 µs to 67 s. Without bounds the exporter makes quantiles, which cannot be added up.
    let bounds: [f64; 21] = std::array::from_fn(|power| (64u64 << power) as f64 / 1e6);
    let exporter = Exporter::new().set_buckets(&bounds)?.install_recorder()?;
    let pages = Cache::builder().name("pages").unbounded();
    let pages = pages.time_to_live(Duration::from_millis(90)).build()?;
    let (read, visits) = (pages.clone(), Scheduler::builder().name("visits"));
    let visits = visits.start(move |_, run| drop(read.get_or_load(run.key, || run.value)))?;
    for key in 1..=20 {
        let (page, period) = (key.to_string(), Duration::from_millis(10 * key));
        visits.set_periodic(key, page, period, period, CatchUp::Skip)?;
    }
    let mails = Worker::builder(MemoryStore::new()).name("mails");
    let mails = mails.start(|_| Outcome::dead("no address"))?;
    wait(mails.store().schedule(Task::new("lost", "")))?;
    for mut stream in listener.incoming().flatten() {
        let mut head = BufReader::new(&stream).lines().map_while(Result::ok);
        head.any(|line| line.is_empty());
        pages.publish_metrics();
        visits.publish_metrics();
        mails.publish_metrics();
        write!(stream, "HTTP/1.0 200 OK\r\n\r\n{}", exporter.render())?;
    }
    Ok(())
}
