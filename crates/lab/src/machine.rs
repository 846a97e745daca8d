//! What a reader must know about the machine that a figure comes from.

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
        "memory_mib": field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.strip_suffix("kB").and_then(|kib| kib.trim().parse::<u64>().ok()))
            .map(|kib| kib / 1_024),
    })
}

/// This machine in one line, for above a table.
pub(crate) fn line() -> String {
    describe(&facts())
}

/// A machine in one line; what is not known is left out.
pub(crate) fn describe(facts: &Value) -> String {
    let text = |key: &str| match &facts[key] {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    let with = |key: &str, unit: &str| text(key).map(|text| format!("{text} {unit}"));
    let system = [text("os"), text("kernel"), text("arch")];
    let system: Vec<String> = system.into_iter().flatten().collect();
    let parts = [
        text("cpu"),
        with("cores", "cores"),
        with("memory_mib", "MiB"),
        (!system.is_empty()).then(|| system.join(" ")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "an unknown machine".to_owned(),
        false => parts.join(", "),
    }
}

fn first_line(path: &str) -> Option<String> {
    Some(
        fs::read_to_string(path)
            .ok()?
            .lines()
            .next()?
            .trim()
            .to_owned(),
    )
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}
