//! Reads from Linux the resident memory and the processor time of a process.
//!
//! Elsewhere every reading is `None`, and the figures that rest on it are left out.

use std::collections::HashMap;
use std::ffi::OsString;
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

/// Processor time (user and system) of a process, to the nanosecond.
///
/// The sum over its threads, since the process-wide figure has a resolution of 10 ms. A thread
/// that has ended keeps its last reading, so that the sum never falls.
#[derive(Debug)]
struct CpuMeter {
    pid: u32,
    threads: HashMap<OsString, u64>,
}

impl CpuMeter {
    fn new(pid: u32) -> Self {
        let threads = HashMap::new();
        Self { pid, threads }
    }

    fn read_ns(&mut self) -> Option<u64> {
        if self.pid == NOBODY {
            return Some(0);
        }
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?;
        for thread in threads.flatten() {
            // One that has just ended tells nothing more.
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let ran = text.split_ascii_whitespace().next();
            if let Some(ns) = ran.and_then(|ns| ns.parse().ok()) {
                self.threads.insert(thread.file_name(), ns);
            }
        }
        Some(self.threads.values().sum())
    }
}

/// Processor time of the whole machine, idle time left out.
fn machine_busy_ns() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields = stat.lines().next()?.split_ascii_whitespace().skip(1);
    let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|&at| ticks.get(at));
    Some(busy.sum::<u64>() * NS_PER_USER_TICK)
}

/// Stands for a server's process where there is none: its processor time is 0.
pub(crate) const NOBODY: u32 = 0;

/// Measures the processor time of a server and of others.
#[derive(Debug)]
pub(crate) struct Meter {
    server: CpuMeter,
    start_ns: u64,
    server_then_ns: Option<u64>,
    others_then_ns: Option<u64>,
}

/// The time and processor time since the meter was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) wall_ns: u64,
    pub(crate) server_ns: Option<f64>,
    /// The noise of a run: processes other than this one and the server.
    pub(crate) others_ns: Option<u64>,
}

impl Meter {
    pub(crate) fn start(pid: u32) -> Self {
        let mut server = CpuMeter::new(pid);
        let server_then_ns = server.read_ns();
        Self {
            server,
            start_ns: clock::mono_ns(),
            server_then_ns,
            others_then_ns: others_ns(server_then_ns),
        }
    }

    /// The server's processor time since the start.
    pub(crate) fn server_ns(&mut self) -> Option<f64> {
        let now_ns = self.server.read_ns()?;
        Some(now_ns.saturating_sub(self.server_then_ns?) as f64)
    }

    pub(crate) fn read(&mut self) -> Taken {
        let wall_ns = clock::mono_ns() - self.start_ns;
        let server_ns = self.server_ns();
        let others = others_ns(self.server.read_ns());
        let others = others.zip(self.others_then_ns);
        Taken {
            wall_ns,
            server_ns,
            // 0 at least, since the counters are coarse.
            others_ns: others.map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Processor time of all processes but this one and the server.
fn others_ns(server_ns: Option<u64>) -> Option<u64> {
    Some(machine_busy_ns()?.saturating_sub(clock::process_cpu_ns() + server_ns?))
}

impl Taken {
    /// The percentage of a core.
    pub(crate) fn server_percent(&self) -> Option<f64> {
        Some(self.server_ns? / self.wall_ns.max(1) as f64 * 100.0)
    }

    /// Tells how busy the machine was with other things, in percent of a core; not of less than a
    /// second, for which the clocks behind it are too coarse.
    pub(crate) fn others_percent(&self) -> Option<f64> {
        let others_ns = self.others_ns.filter(|_| self.wall_ns >= 1_000_000_000)?;
        Some(others_ns as f64 / self.wall_ns as f64 * 100.0)
    }
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
