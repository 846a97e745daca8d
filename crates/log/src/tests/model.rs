//! What a log must hold after a crash.

use crate::Moment;
use crate::frame::HEAD;
use crate::simulated::Dice;

/// All frames since the log was new: what is in the bases, and what is in the segments.
#[derive(Debug, Default)]
pub(super) struct Model {
    slots: Vec<Slot>,
    /// Frames that no crash may take.
    promised: usize,
    serials: u64,
}

/// The frame at some place of the order.
#[derive(Debug, Default)]
struct Slot {
    /// The frames whose append failed at this place.
    failed: Vec<u64>,
    /// The one whose append did not.
    frame: Option<u64>,
    /// The log's position behind it.
    position: u64,
}

/// Frames from this number on fill a sector each.
const EVEN: u64 = 1 << 32;

impl Model {
    /// Of frames that fill a sector each, or of any.
    pub(super) fn new(is_even: bool) -> Self {
        Self {
            serials: if is_even { EVEN } else { 0 },
            ..Self::default()
        }
    }

    /// A frame that never was.
    pub(super) fn next_frame(&mut self) -> (u64, Moment, Vec<u8>) {
        self.serials += 1;
        let (moment, payload) = frame(self.serials);
        (self.serials, moment, payload)
    }

    /// How many frames were appended.
    pub(super) fn len(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| slot.frame.is_some())
            .count()
    }

    /// An append that succeeded, and the position that it returned; or one that failed.
    pub(super) fn append(&mut self, serial: u64, position: Option<u64>) {
        if self.slots.last().is_none_or(|slot| slot.frame.is_some()) {
            self.slots.push(Slot::default());
        }
        let slot = self.slots.last_mut().expect("there is one");
        match position {
            Some(position) => (slot.frame, slot.position) = (Some(serial), position),
            None => slot.failed.push(serial),
        }
    }

    /// The log says that it is on disk up to this position.
    pub(super) fn promise(&mut self, synced: u64) {
        let is_synced = |slot: &Slot| slot.frame.is_some() && slot.position <= synced;
        while self.slots.get(self.promised).is_some_and(is_synced) {
            self.promised += 1;
        }
    }

    /// Compares what was read: the frames of the base, and those that followed.
    pub(super) fn check(&self, based: usize, read: &[u64]) -> Result<(), String> {
        let total = based + read.len();
        if total < self.promised {
            return Err(format!(
                "{total} frames, and {} were promised",
                self.promised
            ));
        }
        for (at, serial) in read.iter().enumerate() {
            let place = based + at;
            let slot = (self.slots.get(place)).ok_or_else(|| format!("frame {place} never was"))?;
            let is_right = slot.frame == Some(*serial);
            let may_fail = place + 1 == total && place >= self.promised;
            if !(is_right || may_fail && slot.failed.contains(serial)) {
                return Err(format!("frame {place} is {serial}, and was {slot:?}"));
            }
        }
        Ok(())
    }

    /// The log goes on behind these frames, and has promised them.
    pub(super) fn go_on(&mut self, based: usize, read: &[u64]) {
        self.promised = based + read.len();
        self.slots.truncate(self.promised);
        if let (Some(slot), Some(last)) = (self.slots.last_mut(), read.last()) {
            slot.frame = Some(*last);
        }
        for slot in &mut self.slots {
            slot.failed.clear();
        }
    }

    /// Whether it was promised that this many frames stay.
    pub(super) fn has_promised(&self, frames: usize) -> bool {
        frames <= self.promised
    }
}

/// The frame of a number.
pub(super) fn frame(serial: u64) -> (Moment, Vec<u8>) {
    let mut dice = Dice::new(serial);
    let moment = Moment {
        tick: serial,
        wall_ms: dice.number() as i64,
        boot_us: dice.number(),
    };
    let length = match dice.below(64) {
        _ if serial >= EVEN => 512 - HEAD as u64,
        0..8 => 0,
        8..40 => 40,
        40..60 => dice.below(200),
        60..63 => dice.below(9_000),
        _ => dice.below(4) * 22_000,
    };
    let mut payload: Vec<u8> = serial.to_le_bytes().repeat(length as usize / 8 + 1);
    payload.truncate(length as usize);
    // Ends that look like what a file is filled with.
    if dice.once_in(8) && length > 16 {
        payload[length as usize - 9..].fill(0);
    }
    (moment, payload)
}
