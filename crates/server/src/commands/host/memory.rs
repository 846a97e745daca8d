//! MEMORY STATS, DOCTOR, PURGE and MALLOC-STATS.

use tidewheel_keyspace::Stats;

use super::HandlerResult;
use super::info::ratio;
use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};
use crate::process::system;
use crate::state::loop_state::LoopState;

/// A keyspace that holds less says nothing about the memory around it.
const LITTLE: u64 = 5 << 20;

/// Bytes that are held.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryUsage {
    /// Bytes of the data.
    pub(super) used: u64,
    /// The most bytes of the data, and the wall time of that, in seconds.
    pub(super) peak: u64,
    pub(super) peak_s: i64,
    /// Bytes of the process, as the system counts.
    pub(super) resident: u64,
    /// Bytes of the clients' buffers.
    pub(super) clients: u64,
    /// Bytes of the clients' own structures.
    pub(super) overhead: u64,
    pub(super) connections: u64,
    pub(super) keys: u64,
}

impl MemoryUsage {
    pub(super) fn read(state: &LoopState, stats: &Stats) -> Self {
        let (server, used) = (&state.server, stats.used_memory);
        server.memory_marks.note(&server.keyspace, state.time);
        let (peak, peak_s) = server.memory_marks.peak();
        let clients = server.clients.snapshot();
        let held = clients
            .iter()
            .map(|client| client.facts.lock().holds.total() as u64);
        let connections = clients.len() as u64;
        let each = size_of::<crate::clients::registry::Client>() + size_of::<Connection>();
        Self {
            used,
            peak: peak.max(used),
            peak_s,
            resident: system::resident_bytes().unwrap_or(0),
            clients: held.sum(),
            overhead: connections * each as u64,
            connections,
            keys: stats.databases.iter().map(|db| db.keys).sum(),
        }
    }
}

/// A figure of MEMORY STATS.
enum Figure {
    Bytes(u64),
    Signed(i64),
    Ratio(f64),
}

impl Turn<'_> {
    /// Answers MEMORY STATS. Features that do not exist here, such as a replication backlog, take
    /// no memory. The allocator's inner memory is unknown.
    pub(super) fn memory_stats(&mut self) -> HandlerResult {
        let stats = self.state.server.keyspace.stats(self.state.time);
        let figures = figures(&MemoryUsage::read(self.state, &stats));
        let used = |(_, db): &(usize, &tidewheel_keyspace::DatabaseStats)| db.keys > 0;
        let databases: Vec<usize> = stats
            .databases
            .iter()
            .enumerate()
            .filter(used)
            .map(|(number, _)| number)
            .collect();
        self.out.map(figures.len() + databases.len());
        for (name, figure) in figures {
            self.out.bulk(name.as_bytes());
            match figure {
                Figure::Bytes(bytes) => self.out.integer(i64::try_from(bytes).unwrap_or(i64::MAX)),
                Figure::Signed(bytes) => self.out.integer(bytes),
                Figure::Ratio(ratio) => self.out.double(ratio),
            }
        }
        for number in databases {
            // Keys and their deadlines are in the same tables, so there is no overhead to report.
            self.out.bulk(format!("db.{number}").as_bytes());
            self.out.map(2);
            for name in ["overhead.hashtable.main", "overhead.hashtable.expires"] {
                self.out.bulk(name.as_bytes());
                self.out.integer(0);
            }
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn memory_doctor(&mut self) -> HandlerResult {
        let stats = self.state.server.keyspace.stats(self.state.time);
        let text = diagnose(&MemoryUsage::read(self.state, &stats));
        self.out.verbatim("txt", text.as_bytes());
        Ok(CommandStep::Done)
    }

    /// Asks the loops to tidy their shards. The allocator gives free pages back by itself.
    pub(super) fn memory_purge(&mut self) -> HandlerResult {
        for handle in self.state.server.loops.iter() {
            handle.becomes_untidy();
        }
        self.done()
    }

    pub(super) fn memory_malloc_stats(&mut self) -> HandlerResult {
        let text = "The allocator (jemalloc, on Linux) was built without statistics.\n";
        self.out.verbatim("txt", text.as_bytes());
        Ok(CommandStep::Done)
    }
}

fn figures(memory: &MemoryUsage) -> Vec<(&'static str, Figure)> {
    let MemoryUsage {
        used,
        peak,
        resident,
        clients,
        overhead,
        keys,
        ..
    } = *memory;
    let beyond = i128::from(resident) - i128::from(used);
    let mut figures = vec![
        ("peak.allocated", Figure::Bytes(peak)),
        ("total.allocated", Figure::Bytes(used)),
        ("startup.allocated", Figure::Bytes(0)),
    ];
    let absent = [
        "replication.backlog",
        "clients.slaves",
        "cluster.links",
        "aof.buffer",
        "lua.caches",
        "functions.caches",
    ];
    figures.extend(absent.map(|name| (name, Figure::Bytes(0))));
    figures.extend([
        ("clients.normal", Figure::Bytes(clients)),
        ("overhead.total", Figure::Bytes(clients + overhead)),
        ("keys.count", Figure::Bytes(keys)),
        (
            "keys.bytes-per-key",
            Figure::Bytes(used.checked_div(keys).unwrap_or(0)),
        ),
        ("dataset.bytes", Figure::Bytes(used)),
        (
            "dataset.percentage",
            Figure::Ratio(ratio(used, used) * 100.0),
        ),
        ("peak.percentage", Figure::Ratio(ratio(used, peak) * 100.0)),
        ("fragmentation", Figure::Ratio(ratio(resident, used))),
        (
            "fragmentation.bytes",
            Figure::Signed(i64::try_from(beyond).unwrap_or(i64::MAX)),
        ),
    ]);
    figures
}

fn diagnose(memory: &MemoryUsage) -> String {
    let MemoryUsage {
        used,
        peak,
        resident,
        clients,
        connections,
        ..
    } = *memory;
    if used < LITTLE {
        return "There is too little data to say anything about its memory.\n".to_owned();
    }
    let mut text = String::new();
    if peak > used + used / 2 {
        text.push_str(
            "The data was half as big again, or more. Memory of that time goes back while the server is idle.\n",
        );
    }
    if ratio(resident, used) > 1.4 {
        text.push_str(
            "The process holds more than 1.4 times what the data takes. If that does not change within a minute \
             without load, something other than data takes it: see mem_clients_normal.\n",
        );
    }
    if connections > 0 && clients / connections > 200 << 10 {
        text.push_str(
            "Clients hold more than 200 KiB each. Somebody does not read its replies, or sends long commands: see \
             CLIENT LIST.\n",
        );
    }
    if text.is_empty() {
        text.push_str("Nothing about the memory looks wrong.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doctor_names_what_is_wrong() {
        let well = MemoryUsage {
            used: 10 << 20,
            peak: 11 << 20,
            peak_s: 0,
            resident: 12 << 20,
            clients: 1 << 20,
            overhead: 0,
            connections: 10,
            keys: 1,
        };
        assert!(diagnose(&well).starts_with("Nothing"));
        let peaked = MemoryUsage {
            peak: 20 << 20,
            ..well
        };
        assert!(diagnose(&peaked).contains("half as big"));
        let torn = MemoryUsage {
            resident: 20 << 20,
            ..well
        };
        assert!(diagnose(&torn).contains("1.4 times"));
        let hoarding = MemoryUsage {
            clients: 10 << 20,
            ..well
        };
        assert!(diagnose(&hoarding).contains("200 KiB"));
        let empty = MemoryUsage {
            used: 1,
            ..hoarding
        };
        assert!(diagnose(&empty).contains("too little"));
    }
}
