//! Describes the machine that a figure comes from, for readers.

use std::fs;

use serde_json::{Value, json};

/// Processor, cores, memory and kernel; what cannot be found out is null.
pub(crate) fn facts() -> Value {
    json!({
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "kernel": first_line("/proc/sys/kernel/osrelease"),
        "cpu": field("/proc/cpuinfo", "model name"),
        "cores": std::thread::available_parallelism().ok().map(usize::from),
        "memory_mib": memory_kib().map(|kib| kib / 1_024),
    })
}

fn memory_kib() -> Option<u64> {
    let text = field("/proc/meminfo", "MemTotal")?;
    text.strip_suffix("kB")?.trim().parse().ok()
}

/// Describes this machine in one line, for above a table; what is not known is left out.
pub(crate) fn line() -> String {
    let facts = facts();
    let text = |key: &str, unit: &str| match &facts[key] {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        number => Some(format!("{number} {unit}")),
    };
    let parts = [("cpu", ""), ("cores", "cores"), ("memory_mib", "MiB")];
    let parts = parts
        .into_iter()
        .chain(["os", "kernel", "arch"].map(|key| (key, "")));
    let parts: Vec<String> = parts.filter_map(|(key, unit)| text(key, unit)).collect();
    parts.join(", ")
}

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}
