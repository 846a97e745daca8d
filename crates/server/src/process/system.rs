//! Reads what the operating system counts for this process: memory, processor time, open files.

/// How much later than others a thread is run whose work nobody waits for.
#[cfg(target_os = "linux")]
const BACKGROUND: i32 = 10;

/// Processor time spent so far, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

/// Returns the memory of the process that is in RAM, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

/// Returns nothing: the memory in RAM is unknown here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_bytes() -> Option<u64> {
    None
}

/// Returns the memory of the machine, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn total_memory_bytes() -> Option<u64> {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit).checked_mul(info.totalram)
}

/// Returns nothing: the memory of the machine is unknown here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn total_memory_bytes() -> Option<u64> {
    None
}

/// Returns the processor time, to the system's tick (10 ms).
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

/// Returns nothing: the processor time is unknown here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_seconds() -> Option<Cpu> {
    None
}

/// Descriptors of each event loop: its poller, twice, its waker and its alarm.
const PER_LOOP: usize = 4;

/// Descriptors of the thread that waits for signals.
const SIGNALS: usize = 2;

/// Descriptors for what is kept over a restart, whether it is asked for now or by CONFIG SET later:
/// the locks of the snapshot and of the log, a segment, and while a base is begun another segment,
/// the base, and a manifest or a folder that is synced.
const KEEPING: usize = 6;

/// Descriptors that stay free: to accept a client that is then refused, and to read the system's
/// counts.
const SPARE: usize = 4;

/// Descriptors that a server needs for itself: what it was started with, and what it opens before
/// it serves anybody.
pub(crate) fn own_files(loops: usize, listeners: usize) -> usize {
    inherited_files() + PER_LOOP * loops + listeners + SIGNALS + KEEPING + SPARE
}

/// Descriptors that are open, as far as they are in the way of new ones: those have the lowest free
/// numbers.
#[cfg(target_os = "linux")]
fn inherited_files() -> usize {
    const STANDARD: usize = 3;
    let Ok(files) = std::fs::read_dir("/proc/self/fd") else {
        return STANDARD;
    };
    let numbers = files.filter_map(|file| file.ok()?.file_name().to_str()?.parse::<u64>().ok());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let low = numbers.filter(|number| limit.current.is_none_or(|current| *number < current));
    // One of them is the folder.
    low.count().saturating_sub(1)
}

/// Returns the number of standard descriptors.
#[cfg(not(target_os = "linux"))]
fn inherited_files() -> usize {
    3
}

/// The limit of open files, and the connections that fit into it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFiles {
    pub(crate) limit: u64,
    /// The connections that fit, besides the server's own descriptors.
    pub(crate) connections: usize,
}

/// Raises the limit of open files to what `wanted` connections need beside the server's `own`
/// descriptors, as far as the system lets.
#[cfg(unix)]
pub(crate) fn raise_open_files(wanted: usize, own: usize) -> OpenFiles {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let old = getrlimit(Resource::Nofile);
    let needed = (wanted as u64).saturating_add(own as u64);
    let mut limit = old.current.unwrap_or(u64::MAX);
    if limit < needed {
        let most = old.maximum.unwrap_or(u64::MAX).min(needed);
        let raised = Rlimit {
            current: Some(most),
            maximum: old.maximum,
        };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit = most;
        }
    }
    let left = usize::try_from(limit.saturating_sub(own as u64)).unwrap_or(usize::MAX);
    OpenFiles {
        limit,
        connections: left.min(wanted),
    }
}

/// Returns a limit that allows everything: the real one is unknown here.
#[cfg(not(unix))]
pub(crate) fn raise_open_files(wanted: usize, _: usize) -> OpenFiles {
    OpenFiles {
        limit: u64::MAX,
        connections: wanted,
    }
}

/// Has the system give this process pages of the usual size only. Where huge ones are given unasked
/// (`always` in `/sys/kernel/mm/transparent_hugepage/enabled`), the memory of keys that are gone
/// comes back by itself: the kernel puts one huge page in the place of a few pages in use and many
/// that were given back. Returns whether it did.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_huge_pages() -> bool {
    rustix::thread::disable_transparent_huge_pages(true).is_ok()
}

/// Returns whether the system gives this process no huge pages unasked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_huge_pages() -> bool {
    true
}

/// Returns whether a process of that number runs. This one wrote nothing before it began.
#[cfg(target_os = "linux")]
pub(crate) fn runs(process: u32) -> bool {
    process != std::process::id() && std::path::Path::new(&format!("/proc/{process}")).exists()
}

/// Returns true, since nothing is known here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn runs(_: u32) -> bool {
    true
}

/// Lets others go first where there are fewer processors than threads that want one: for a thread
/// whose work nobody waits for.
pub(crate) fn go_last() {
    // Linux lowers the priority of the calling thread only.
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::process::nice(BACKGROUND) {
        tracing::debug!(%why, "cannot lower the priority of a thread");
    }
}
