//! The dense encoding: six bits a register, the lowest bits first. Four registers take three bytes.

use super::{REGISTERS, Rank};

const BITS: usize = 6;
const RANK_MAX: u16 = (1 << BITS) - 1;

pub(super) fn get(dense: &[u8], register: usize) -> u8 {
    let (at, shift) = place(register);
    (pair(dense, at) >> shift & RANK_MAX) as u8
}

pub(super) fn set(dense: &mut [u8], new: Rank) {
    let (at, shift) = place(new.register);
    let changed = pair(dense, at) & !(RANK_MAX << shift) | u16::from(new.rank) << shift;
    let bytes = changed.to_le_bytes();
    dense[at..]
        .iter_mut()
        .zip(bytes)
        .for_each(|(b, new)| *b = new);
}

pub(super) fn for_each(dense: &[u8], mut visit: impl FnMut(u8)) {
    let (fours, _) = dense.as_chunks::<3>();
    for &[a, b, c] in fours {
        let four = u32::from_le_bytes([a, b, c, 0]);
        for i in 0..4 {
            visit((four >> (BITS * i)) as u8 & RANK_MAX as u8);
        }
    }
}

/// Raises each register to its rank here. The compiler makes vector instructions of the inner loop.
pub(super) fn merge(dense: &[u8], registers: &mut [u8; REGISTERS]) {
    let (fours, _) = dense.as_chunks::<3>();
    let (olds, _) = registers.as_chunks_mut::<4>();
    for (old, &[a, b, c]) in olds.iter_mut().zip(fours) {
        let four = u32::from_le_bytes([a, b, c, 0]);
        for (i, old) in old.iter_mut().enumerate() {
            *old = ((four >> (BITS * i)) as u8 & RANK_MAX as u8).max(*old);
        }
    }
}

/// Appends all registers.
pub(super) fn write(registers: &[u8; REGISTERS], bytes: &mut Vec<u8>) {
    let (fours, _) = registers.as_chunks::<4>();
    for four in fours {
        let ranks = four.iter().rev().map(|rank| u32::from(*rank));
        let packed = ranks.fold(0, |packed, rank| packed << BITS | rank);
        bytes.extend_from_slice(&packed.to_le_bytes()[..3]);
    }
}

/// A register's first byte, and its place there.
fn place(register: usize) -> (usize, usize) {
    let bit = register * BITS;
    (bit / 8, bit % 8)
}

/// Two bytes; a zero stands for the one behind the end.
fn pair(dense: &[u8], at: usize) -> u16 {
    let second = dense.get(at + 1).copied().unwrap_or_default();
    u16::from_le_bytes([dense[at], second])
}
