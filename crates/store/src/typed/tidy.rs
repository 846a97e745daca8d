//! Tidying: entries leave sparse pages, so that memory goes back.

use tidewheel_timer::TimerQueue;

use super::store::TypedStore;
use super::view::{View, hashed};
use crate::shared::look_again;
use crate::slot::Slot;

impl<K, V> TypedStore<K, V> {
    /// Tidies: moves entries off sparse pages and drops dead timer records. Does about `budget`
    /// units of work at most, and returns whether more is worth doing.
    pub fn maintain(&mut self, budget: u32, place_of: &impl Fn(&K) -> u32) -> bool {
        look_again();
        let mut more = self.wheel.maintain(&mut self.slots, budget / 8 + 1);
        for _ in 0..budget {
            let Some(id) = self.slots.sparse() else {
                return more;
            };
            more = true;
            self.move_entry(id, place_of);
        }
        more
    }

    /// Moves an entry to a lower page.
    fn move_entry(&mut self, id: u32, place_of: &impl Fn(&K) -> u32) {
        let Some(place) = hashed(place_of, self.key(Slot(id))).or_else(|| self.index.place_of(id))
        else {
            return;
        };
        let timer = tidewheel_timer::Timers::timer(&self.slots, id);
        if let Some(timer) = timer {
            // The timer's record names the old slot. It is dead from now on, and another one is
            // filed.
            self.wheel.cancel(&mut self.slots, id, timer);
        }
        // If this is the page's last entry, the page goes, and its columns with it. So copy them
        // first.
        let attributes = self
            .slots
            .has_columns(id)
            .then(|| (self.attributes(Slot(id)), self.version(Slot(id))));
        if attributes.is_some() {
            self.slots.strip_columns(id);
        }
        let Some(mut entry) = self.slots.release(id) else {
            return;
        };
        entry.forget_deadline();
        let new = self.slots.allocate(entry);
        if let Some((attributes, version)) = attributes {
            self.write_columns(new, &attributes);
            if let Some(version) = version {
                let (columns, at, len) = self.slots.columns_mut(new);
                columns.set_version(at, version, len);
            }
        }
        self.index.replace(place, id, new);
        if let Some(timer) = timer {
            let now = self.wheel.elapsed();
            self.wheel.insert(&mut self.slots, new, timer.deadline, now);
            if let Some(entry) = self.slots.get(new) {
                entry.set_deadline(Some(timer.deadline));
            }
        }
        let view = View {
            slots: &mut self.slots,
            place_of,
            kept: 0,
        };
        let fingerprint = place;
        self.policy.moved(&view, new, fingerprint);
    }
}
