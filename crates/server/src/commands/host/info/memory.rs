//! INFO memory.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use tidewheel_keyspace::Stats;

use super::ratio;
use crate::commands::host::memory::MemoryUsage;
use crate::scripts::libraries::Table;
use crate::state::loop_state::LoopState;

/// The allocator of this build.
const ALLOCATOR: &str = if cfg!(target_os = "linux") {
    "jemalloc"
} else {
    "system"
};

pub(super) fn memory(state: &LoopState, stats: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let policy = server.keyspace.rules().policy().name();
    let total = crate::process::system::total_memory_bytes().unwrap_or(0);
    let max = state.settings.max_memory;
    let (scripts, script_bytes) = server.scripts.totals();
    let (libraries, functions, library_bytes) = server.libraries.look(Table::totals);
    let loops = server.loops.iter();
    let lua_bytes = loops.map(|handle| handle.lua_bytes.load(Ordering::Relaxed) as u64);
    let lua_bytes: u64 = lua_bytes.sum();
    let MemoryUsage {
        used,
        peak,
        peak_s,
        resident,
        clients,
        overhead,
        ..
    } = MemoryUsage::read(state, stats);
    lines!(
        text,
        "used_memory" = used,
        "used_memory_human" = Human(used),
        "used_memory_rss" = resident,
        "used_memory_rss_human" = Human(resident),
        "used_memory_peak" = peak,
        "used_memory_peak_human" = Human(peak),
        "used_memory_peak_time" = peak_s,
        "used_memory_peak_perc" = Percent(used, peak),
        "used_memory_overhead" = clients + overhead,
        "used_memory_startup" = 0,
        "used_memory_dataset" = used,
        "used_memory_dataset_perc" = Percent(used, used),
        "total_system_memory" = total,
        "total_system_memory_human" = Human(total),
        "used_memory_lua" = lua_bytes,
        "used_memory_lua_human" = Human(lua_bytes),
        "used_memory_vm_total" = lua_bytes,
        "used_memory_vm_total_human" = Human(lua_bytes),
        "used_memory_scripts_eval" = script_bytes,
        "used_memory_functions" = library_bytes,
        "used_memory_scripts" = script_bytes + library_bytes,
        "used_memory_scripts_human" = Human((script_bytes + library_bytes) as u64),
        "number_of_cached_scripts" = scripts,
        "number_of_functions" = functions,
        "number_of_libraries" = libraries,
        "maxmemory" = max,
        "maxmemory_human" = Human(max),
        "maxmemory_policy" = policy,
        "mem_fragmentation_ratio" = format_args!("{:.2}", ratio(resident, used)),
        "mem_fragmentation_bytes" = i128::from(resident) - i128::from(used),
        "mem_not_counted_for_evict" = clients + overhead,
        "mem_replication_backlog" = 0,
        "mem_total_replication_buffers" = 0,
        "mem_clients_slaves" = 0,
        "mem_clients_normal" = clients,
        "mem_clients_overhead" = overhead,
        "mem_tracking_tables" = server.keyspace.tracking_stats().bytes,
        "mem_cluster_links" = 0,
        "mem_aof_buffer" = server.keyspace.waiting_record_bytes(),
        "mem_allocator" = ALLOCATOR,
        "active_defrag_running" = 0,
        "lazyfree_pending_objects" = server.reclaimer.pending(),
        "lazyfreed_objects" = server.reclaimer.dropped(),
    );
    Ok(())
}

/// Bytes as people read them.
struct Human(u64);

impl std::fmt::Display for Human {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1024 => write!(f, "{}B", self.0),
            1024..1_048_576 => write!(f, "{:.2}K", bytes / 1024.0),
            1_048_576..1_073_741_824 => write!(f, "{:.2}M", bytes / 1_048_576.0),
            _ => write!(f, "{:.2}G", bytes / 1_073_741_824.0),
        }
    }
}

/// A part of a whole, in percent.
struct Percent(u64, u64);

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2}%", ratio(self.0, self.1) * 100.0)
    }
}
