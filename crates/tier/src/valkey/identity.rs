//! A server tells its name and its role.

use crate::core::server::ServerId;

/// Asks a server that is in no Cluster.
pub(super) const INFO: [&[u8]; 2] = [b"INFO", b"server"];

/// The run id, of the answer to that.
pub(super) fn run_id(info: &[u8]) -> Option<ServerId> {
    let mut lines = info.split(|byte| *byte == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"run_id:"))?;
    Some(ServerId::of(id.trim_ascii_end()))
}

/// Asks a server that nobody else speaks for what it is. Who may ask for the one section may ask
/// for the other.
pub(super) const ROLE: [&[u8]; 2] = [b"INFO", b"replication"];

/// True if it is a replica, by the answer to that.
pub(super) fn is_replica(info: &[u8]) -> bool {
    let mut lines = info.split(|byte| *byte == b'\n');
    lines.any(|line| line.trim_ascii_end() == b"role:slave")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_id_is_found() {
        let info = b"# Server\r\nredis_version:7.0.15\r\nrun_id:0a1b\r\ntcp_port:1\r\n";
        assert_eq!(run_id(info), Some(ServerId::of(b"0a1b")));
        assert_eq!(run_id(b"# Server\r\n"), None);
    }

    #[test]
    fn the_role_is_found() {
        assert!(is_replica(
            b"# Replication\r\nrole:slave\r\nmaster_host:a\r\n"
        ));
        assert!(!is_replica(b"# Replication\r\nrole:master\r\n"));
    }
}
