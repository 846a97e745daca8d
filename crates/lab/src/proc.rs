//! What Linux tells about a process: resident memory and processor time.
//!
//! Elsewhere every reading is `None`, and the figures that rest on it are left out.

use std::collections::HashMap;
use std::fs;

use crate::clock;

/// The kernel exports times in /proc in this unit on every architecture that Rust runs on.
const NS_PER_USER_TICK: u64 = 10_000_000;

/// Resident bytes of a process now.
pub(crate) fn rss_bytes(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The most resident bytes that a process has had.
pub(crate) fn peak_rss_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

/// Processor time (user and system) of a process, to the nanosecond.
///
/// The sum over its threads, since the process-wide figure has a resolution of 10 ms. A thread
/// that has ended keeps its last reading, so that the sum never falls.
#[derive(Debug)]
pub(crate) struct CpuMeter {
    pid: u32,
    threads: HashMap<String, u64>,
}

impl CpuMeter {
    pub(crate) fn new(pid: u32) -> Self {
        Self {
            pid,
            threads: HashMap::new(),
        }
    }

    pub(crate) fn read_ns(&mut self) -> Option<u64> {
        for entry in fs::read_dir(format!("/proc/{}/task", self.pid))
            .ok()?
            .flatten()
        {
            let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else {
                continue;
            };
            let ran = text
                .split_ascii_whitespace()
                .next()
                .and_then(|ns| ns.parse().ok());
            if let (Some(ns), Ok(thread)) = (ran, entry.file_name().into_string()) {
                self.threads.insert(thread, ns);
            }
        }
        Some(self.threads.values().sum())
    }
}

/// Processor time of the whole machine, idle time left out.
fn machine_busy_ns() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> = stat
        .lines()
        .next()?
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let busy: u64 = fields
        .iter()
        .take(8)
        .enumerate()
        .filter(|(i, _)| !matches!(i, 3 | 4))
        .map(|(_, t)| t)
        .sum();
    Some(busy * NS_PER_USER_TICK)
}

/// What processes other than this one and the server took meanwhile: the noise of a run.
#[derive(Debug)]
pub(crate) struct NoiseMeter {
    start: Option<(u64, u64)>,
}

impl NoiseMeter {
    /// Without a server its processor time is 0.
    pub(crate) fn start(server_cpu_ns: Option<u64>) -> Self {
        Self {
            start: machine_busy_ns().zip(known_ns(server_cpu_ns)),
        }
    }

    /// Others' processor time since the start; 0 at least, since the counters are coarse.
    pub(crate) fn others_ns(&self, server_cpu_ns: Option<u64>) -> Option<u64> {
        let (busy_then, known_then) = self.start?;
        let known = known_ns(server_cpu_ns)?.saturating_sub(known_then);
        Some(
            machine_busy_ns()?
                .saturating_sub(busy_then)
                .saturating_sub(known),
        )
    }
}

fn known_ns(server_cpu_ns: Option<u64>) -> Option<u64> {
    Some(clock::process_cpu_ns() + server_cpu_ns?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_grows_with_what_is_touched() {
        let pid = std::process::id();
        let before = rss_bytes(pid).expect("Linux tells");
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = rss_bytes(pid).expect("Linux tells");
        assert!(after >= before + (48 << 20), "{before} then {after}");
        assert!(peak_rss_bytes(pid).expect("Linux tells") >= 64 << 20);
        drop(block);
    }

    #[test]
    fn processor_time_grows_and_keeps_ended_threads() {
        let mut meter = CpuMeter::new(std::process::id());
        let before = meter.read_ns().expect("Linux tells");
        let (ready, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let busy = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut sum = 0_u64;
                for i in 0..20_000_000_u64 {
                    sum = std::hint::black_box(sum.wrapping_add(i));
                }
                ready.wait();
                go.wait();
            });
            ready.wait();
            let busy = meter.read_ns().expect("Linux tells");
            go.wait();
            busy
        });
        assert!(busy > before);
        assert!(meter.read_ns().expect("Linux tells") >= busy);
    }
}
