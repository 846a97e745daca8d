//! What a server calls itself.

use crate::core::server::ServerId;

/// Asks a server that is in no Cluster.
pub(super) const INFO: [&[u8]; 2] = [b"INFO", b"server"];

/// The run id, of the answer to that.
pub(super) fn run_id(info: &[u8]) -> Option<ServerId> {
    let mut lines = info.split(|byte| *byte == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"run_id:"))?;
    Some(ServerId::of(id.trim_ascii_end()))
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
}
