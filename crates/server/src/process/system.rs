//! What the operating system knows about this process.

/// Processor time spent so far, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

/// Memory that is in RAM.
#[cfg(target_os = "linux")]
pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

/// Memory that is in RAM.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_bytes() -> Option<u64> {
    None
}

/// Memory of the machine.
#[cfg(target_os = "linux")]
pub(crate) fn total_memory_bytes() -> Option<u64> {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit).checked_mul(info.totalram)
}

/// Memory of the machine.
#[cfg(not(target_os = "linux"))]
pub(crate) fn total_memory_bytes() -> Option<u64> {
    None
}

/// Processor time, to the system's tick (10 ms).
#[cfg(target_os = "linux")]
pub(crate) fn cpu_seconds() -> Option<Cpu> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may contain spaces.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / per_second);
    Some(Cpu {
        user: seconds()?,
        system: seconds()?,
    })
}

/// Processor time.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_seconds() -> Option<Cpu> {
    None
}

/// Raises the limit of open files to what `wanted` connections need, as far as the system lets, and
/// returns how many connections fit then.
#[cfg(unix)]
pub(crate) fn raise_open_files(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// Descriptors that are no connections: logs, pollers, timers, listeners.
    const RESERVED: u64 = 128;
    let limit = getrlimit(Resource::Nofile);
    let needed = (wanted as u64).saturating_add(RESERVED);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= needed {
        return wanted;
    }
    let most = limit.maximum.unwrap_or(u64::MAX).min(needed);
    let raised = Rlimit {
        current: Some(most),
        maximum: limit.maximum,
    };
    let got = if setrlimit(Resource::Nofile, raised).is_ok() {
        most
    } else {
        current
    };
    usize::try_from(got.saturating_sub(RESERVED)).unwrap_or(usize::MAX)
}

/// Returns how many connections fit.
#[cfg(not(unix))]
pub(crate) fn raise_open_files(wanted: usize) -> usize {
    wanted
}
