//! The entries as far as the policy sees them.

/// The facts that the policy asks about an entry whose turn has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident {
    pub(crate) state: u8,
    pub(crate) is_pinned: bool,
    pub(crate) weight: u32,
}

/// The entries of a store, by their ids.
pub(crate) trait Residents {
    /// The entry's state, of which the policy uses the low four bits; `None` when the slot is
    /// vacant.
    fn state(&self, id: u32) -> Option<u8>;
    /// Overwrites the entry's state.
    fn set_state(&mut self, id: u32, state: u8);
    /// Returns whether the entry must stay.
    fn is_pinned(&self, id: u32) -> bool;
    /// The entry's share of the capacity.
    fn weight(&self, id: u32) -> u32;
    /// State, pin and weight by one look; `None` when the slot is vacant.
    #[inline(always)]
    fn resident(&self, id: u32) -> Option<Resident> {
        Some(Resident {
            state: self.state(id)?,
            is_pinned: self.is_pinned(id),
            weight: self.weight(id),
        })
    }
    /// 32 well-mixed bits of the key's hash; `None` when the key cannot be hashed. It hashes the
    /// key, so the policy asks for it only when a slot may have got another entry.
    fn fingerprint(&self, id: u32) -> Option<u32>;
    /// All ids are below this; there may be vacant slots between.
    fn end(&self) -> u32;
}
