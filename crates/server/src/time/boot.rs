//! The name of this start of the machine.

/// Names this start of the machine.
#[cfg(target_os = "linux")]
pub(super) fn id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Nothing names the start of the machine here.
#[cfg(not(target_os = "linux"))]
pub(super) fn id() -> Option<String> {
    None
}
