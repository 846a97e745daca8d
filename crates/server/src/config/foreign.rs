//! Lines of other servers' configuration files that mean nothing here. A file may have them: they
//! are listed once when the server starts. What would have to do something, as a password of a
//! replica, is an error like any unknown line.

use std::collections::BTreeMap;

const NO_REPLICATION: &str = "there is no replication yet";

/// Why lines mean nothing, and their names.
static GROUPS: &[(&str, &[&str])] = &[
    (
        "it stays in the foreground: who starts it looks after its process",
        &[
            "always-show-logo",
            "crash-log-enabled",
            "crash-memcheck-enabled",
            "locale-collate",
            "oom-score-adj",
            "oom-score-adj-values",
            "pidfile",
            "proc-title-template",
            "set-proc-title",
            "supervised",
            "syslog-enabled",
            "syslog-facility",
            "syslog-ident",
        ],
    ),
    ("it has no huge pages", &["disable-thp"]),
    (
        "the log has a form of its own",
        &[
            "aof-load-truncated",
            "aof-rewrite-incremental-fsync",
            "aof-timestamp-enabled",
            "aof-use-rdb-preamble",
            "appendfilename",
            "no-appendfsync-on-rewrite",
        ],
    ),
    (
        "snapshots are written when somebody asks, uncompressed, with a checksum, and synced at the end",
        &[
            "rdb-del-sync-files",
            "rdb-save-incremental-fsync",
            "rdbchecksum",
            "rdbcompression",
            "stop-writes-on-bgsave-error",
        ],
    ),
    (
        NO_REPLICATION,
        &[
            "repl-backlog-size",
            "repl-backlog-ttl",
            "repl-disable-tcp-nodelay",
            "repl-diskless-load",
            "repl-diskless-sync",
            "repl-diskless-sync-delay",
            "repl-diskless-sync-max-replicas",
            "repl-ping-replica-period",
            "repl-timeout",
            "replica-ignore-maxmemory",
            "replica-lazy-flush",
            "replica-priority",
            "replica-read-only",
            "replica-serve-stale-data",
            "tls-client-cert-file",
            "tls-client-key-file",
            "tls-client-key-file-pass",
        ],
    ),
    (
        "TLS sessions are in tickets that clients keep, and keys are agreed on by elliptic curves",
        &[
            "tls-dh-params-file",
            "tls-session-cache-size",
            "tls-session-cache-timeout",
        ],
    ),
    (
        "it decides by itself",
        &[
            "active-defrag-cycle-max",
            "active-defrag-cycle-min",
            "active-defrag-ignore-bytes",
            "active-defrag-max-scan-fields",
            "active-defrag-threshold-lower",
            "active-defrag-threshold-upper",
            "activedefrag",
            "activerehashing",
            "io-threads",
            "io-threads-do-reads",
            "jemalloc-bg-thread",
            "tcp-backlog",
        ],
    ),
];

/// What a file has of such lines: their names, by the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForeignLines(BTreeMap<&'static str, Vec<String>>);

impl ForeignLines {
    /// Notes a line. Returns false if it is none of these.
    pub(super) fn note(&mut self, name: &str, value: &str) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let in_background = is("daemonize") && value == "yes";
        let of_replicas = ["replica ", "slave "]
            .iter()
            .any(|class| value.starts_with(class));
        let of_replicas = of_replicas && is("client-output-buffer-limit");
        let is_in = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let group = GROUPS.iter().find(|(_, names)| is_in(names));
        let group = group
            .or_else(|| GROUPS.first().filter(|_| in_background))
            .or_else(|| {
                GROUPS
                    .iter()
                    .find(|(why, _)| of_replicas && *why == NO_REPLICATION)
            });
        if let Some((why, _)) = group {
            self.0.entry(why).or_default().push(name.to_owned());
        }
        group.is_some()
    }

    /// Says which lines mean nothing, and why; `None` if all do something.
    pub(crate) fn text(&self) -> Option<String> {
        let groups = self.0.iter();
        let groups: Vec<_> = groups
            .map(|(why, names)| format!("{} ({why})", names.join(", ")))
            .collect();
        (!groups.is_empty()).then(|| groups.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::key;

    #[test]
    fn no_key_of_ours_is_foreign() {
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(key(name).is_none(), "{name}");
        }
    }

    #[test]
    fn lines_are_listed_by_their_reasons() {
        let mut lines = ForeignLines::default();
        assert!(lines.note("pidfile", "x") && lines.note("Daemonize", "yes"));
        assert!(lines.note("repl-timeout", "1"));
        assert!(!lines.note("daemonize", "no") && !lines.note("aclfile", "x"));
        let text = lines.text().expect("some");
        assert!(text.contains("pidfile, Daemonize (it stays"), "{text}");
        assert!(
            text.contains("; repl-timeout (") || text.starts_with("repl-"),
            "{text}"
        );
        assert_eq!(ForeignLines::default().text(), None);
    }
}
