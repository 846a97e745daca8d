//! The sparse encoding: runs of equal registers.
//!
//! | bits | run |
//! |---|---|
//! | `00llllll` | `l + 1` registers that are zero |
//! | `01llllll llllllll` | `l + 1` registers that are zero |
//! | `1rrrrrll` | `l + 1` registers of rank `r + 1` |

use std::fmt::Write;

use super::header::{HEADER, SPARSE_MAX};
use super::{Corrupt, REGISTERS, Rank};

const SHORT_ZEROS_MAX: usize = 64;
const RANK_MAX: u8 = 32;
const RANKED_MAX: usize = 4;

/// After a change, runs are merged among this many, from the one before the change on.
const MERGED: usize = 5;

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SparseRun {
    rank: u8,
    /// The number of registers.
    len: usize,
    /// The bytes that the run takes.
    bytes: usize,
}

impl SparseRun {
    /// The run that begins with the first byte.
    fn read(runs: &[u8]) -> Result<Self, Corrupt> {
        let (first, rest) = runs.split_first().ok_or(Corrupt)?;
        let low = usize::from(first & 0x3f);
        let (rank, len, bytes) = match first >> 6 {
            0 => (0, low + 1, 1),
            1 => (
                0,
                (low << 8 | usize::from(*rest.first().ok_or(Corrupt)?)) + 1,
                2,
            ),
            _ => ((first >> 2 & 0x1f) + 1, (low & 3) + 1, 1),
        };
        Ok(Self { rank, len, bytes })
    }

    /// Appends runs of that many registers.
    fn write(rank: u8, mut len: usize, out: &mut Vec<u8>) {
        while rank > 0 && len > 0 {
            let now = len.min(RANKED_MAX);
            out.push(0x80 | (rank - 1) << 2 | (now - 1) as u8);
            len -= now;
        }
        if len > SHORT_ZEROS_MAX {
            out.extend_from_slice(&(0x4000 | (len - 1) as u16).to_be_bytes());
        } else if len > 0 {
            out.push((len - 1) as u8);
        }
    }
}

/// Calls `visit` with the rank and the length of each run, until they exceed the registers.
pub(super) fn for_each_run(runs: &[u8], mut visit: impl FnMut(u8, usize)) -> Result<(), Corrupt> {
    if runs.len() > SPARSE_MAX - HEADER {
        return Err(Corrupt);
    }
    let (mut rest, mut left) = (runs, REGISTERS);
    while !rest.is_empty() {
        let run = SparseRun::read(rest)?;
        left = left.checked_sub(run.len).ok_or(Corrupt)?;
        visit(run.rank, run.len);
        rest = &rest[run.bytes..];
    }
    if left == 0 { Ok(()) } else { Err(Corrupt) }
}

/// The position of a register's run.
struct FoundRun {
    run: SparseRun,
    /// Its start, in bytes.
    at: usize,
    /// The start of the run before it.
    previous: usize,
    /// The number of its registers before the one that is sought.
    before: usize,
}

fn find(runs: &[u8], register: usize) -> Result<FoundRun, Corrupt> {
    let (mut at, mut previous, mut first) = (0, 0, 0);
    loop {
        let run = SparseRun::read(&runs[at..])?;
        if register < first + run.len {
            let before = register - first;
            return Ok(FoundRun {
                run,
                at,
                previous,
                before,
            });
        }
        previous = at;
        at += run.bytes;
        first += run.len;
    }
}

/// The outcome of raising a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RaiseOutcome {
    /// It is as high already.
    AsHigh,
    Done,
    /// This encoding cannot hold the rank, or would become too long. Nothing was done.
    TooLarge,
}

/// Raises a register, unless it is as high already. The string does not become longer than
/// `longest`.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    new: Rank,
    longest: usize,
) -> Result<RaiseOutcome, Corrupt> {
    let FoundRun {
        run,
        at,
        previous,
        before,
    } = find(&bytes[HEADER..], new.register)?;
    if run.rank >= new.rank {
        return Ok(RaiseOutcome::AsHigh);
    }
    if new.rank > RANK_MAX {
        return Ok(RaiseOutcome::TooLarge);
    }
    let mut split = Vec::with_capacity(5);
    SparseRun::write(run.rank, before, &mut split);
    SparseRun::write(new.rank, 1, &mut split);
    SparseRun::write(run.rank, run.len - before - 1, &mut split);
    let grown = bytes.len() + split.len() - run.bytes;
    if split.len() > run.bytes && grown > longest {
        return Ok(RaiseOutcome::TooLarge);
    }
    let at = HEADER + at;
    bytes.splice(at..at + run.bytes, split);
    merge(bytes, HEADER + previous);
    Ok(RaiseOutcome::Done)
}

/// Merges neighbours of equal rank, from that byte on.
fn merge(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGED {
        let Ok(run) = SparseRun::read(&bytes[at..]) else {
            return;
        };
        let next = at + run.bytes;
        let behind = SparseRun::read(&bytes[next..]);
        let both = behind.ok().filter(|behind| {
            run.rank > 0 && behind.rank == run.rank && run.len + behind.len <= RANKED_MAX
        });
        match both {
            Some(behind) => {
                let mut merged = Vec::with_capacity(1);
                SparseRun::write(run.rank, run.len + behind.len, &mut merged);
                bytes.splice(at..next + behind.bytes, merged);
            }
            None => at = next,
        }
    }
}

/// Appends all registers. False, and something is appended, if this encoding cannot hold one of
/// them.
pub(super) fn write(registers: &[u8; REGISTERS], bytes: &mut Vec<u8>) -> bool {
    for run in registers.chunk_by(|a, b| a == b) {
        if run[0] > RANK_MAX {
            return false;
        }
        SparseRun::write(run[0], run.len(), bytes);
    }
    true
}

/// The runs in the public server's notation: `z` and `Z` are zeros, `v` is a rank.
pub(crate) fn describe(bytes: &[u8]) -> Result<String, Corrupt> {
    let mut text = String::new();
    let (mut rest, mut left) = (&bytes[HEADER..], REGISTERS);
    while !rest.is_empty() {
        let SparseRun { rank, len, bytes } = SparseRun::read(rest)?;
        left = left.checked_sub(len).ok_or(Corrupt)?;
        // Writing to a string cannot fail.
        let _ = match (rank, bytes) {
            (0, 1) => write!(text, "z:{len} "),
            (0, _) => write!(text, "Z:{len} "),
            _ => write!(text, "v:{rank},{len} "),
        };
        rest = &rest[bytes..];
    }
    text.truncate(text.trim_end().len());
    if left == 0 { Ok(text) } else { Err(Corrupt) }
}
