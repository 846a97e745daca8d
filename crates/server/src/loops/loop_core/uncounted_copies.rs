//! Counts copied messages until their connections' accounts include them.

use std::sync::atomic::Ordering;

use crate::loop_handle::LoopHandle;

/// The bytes that are copied between two checks of the memory of all clients.
const PORTION: usize = 1 << 20;

/// Copies that are in no connection's account yet, in bytes.
#[derive(Debug, Default)]
pub(super) struct UncountedCopies {
    /// Bytes copied since the last portion was complete.
    portion: usize,
    /// Complete portions, which are in the loop's sum.
    told: usize,
}

impl UncountedCopies {
    /// Bytes were copied. True when that completes a portion: it is then added to the loop's sum.
    pub(super) fn add(&mut self, bytes: usize, handle: &LoopHandle) -> bool {
        self.portion += bytes;
        if self.portion < PORTION {
            return false;
        }
        let portion = std::mem::take(&mut self.portion);
        handle.client_memory.fetch_add(portion, Ordering::Relaxed);
        self.told += portion;
        true
    }

    /// Takes the portions out of the loop's sum: every copy is in its connection's account now.
    pub(super) fn settle(&mut self, handle: &LoopHandle) {
        self.portion = 0;
        let told = std::mem::take(&mut self.told);
        if told > 0 {
            handle.client_memory.fetch_sub(told, Ordering::Relaxed);
        }
    }
}
