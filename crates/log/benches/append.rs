//! What it costs to append, to sync and to read: `cargo bench -p tidewheel-log --bench append`.
//!
//! It writes up to a gigabyte into a new folder of the working folder, or of the one that
//! `TIDEWHEEL_LOG_BENCH` names, and removes it.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidewheel_log::{Log, Moment, RealFolder};

const MIB: f64 = (1 << 20) as f64;

fn main() -> Result<(), Box<dyn Error>> {
    let parent = std::env::var_os("TIDEWHEEL_LOG_BENCH").unwrap_or_else(|| ".".into());
    let folder = PathBuf::from(parent).join(format!("log-bench-{}", std::process::id()));
    let measured = measure(&folder);
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn measure(folder: &Path) -> Result<(), Box<dyn Error>> {
    for (length, count) in [(100, 1_000_000), (64 * 1024, 8_000)] {
        for run in 0..3 {
            let folder = folder.join(format!("{length}-{run}"));
            let mut log = Log::open(RealFolder::new(&folder)?)?.begin_writing(b"")?;
            let payload = vec![7; length];
            let start = Instant::now();
            for _ in 0..count {
                log.append(Moment::default(), &payload)?;
            }
            let appended = start.elapsed();
            log.sync()?;
            let synced = start.elapsed();
            let bytes = log.written() as f64;
            drop(log);
            let start = Instant::now();
            let mut opened = Log::open(RealFolder::new(&folder)?)?;
            while opened.next_frame()?.is_some() {}
            let read = start.elapsed();
            println!(
                "{length} bytes: {:.0} ns a frame, {:.0} MiB/s; with a sync at the end {:.0} MiB/s; read {:.0} MiB/s",
                appended.as_nanos() as f64 / f64::from(count),
                bytes / MIB / appended.as_secs_f64(),
                bytes / MIB / synced.as_secs_f64(),
                bytes / MIB / read.as_secs_f64(),
            );
            drop(opened);
            std::fs::remove_dir_all(&folder)?;
        }
    }
    for length in [100, 64 * 1024] {
        let folder = folder.join(format!("sync-{length}"));
        let mut log = Log::open(RealFolder::new(&folder)?)?.begin_writing(b"")?;
        let payload = vec![7; length];
        let mut times = Vec::new();
        for _ in 0..1000 {
            log.append(Moment::default(), &payload)?;
            let start = Instant::now();
            log.sync()?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let at = |share: usize| times.get(share).copied().unwrap_or(Duration::ZERO);
        println!(
            "sync of {length} bytes: median {:?}, p99 {:?}, longest {:?}",
            at(500),
            at(990),
            at(999)
        );
    }
    Ok(())
}
