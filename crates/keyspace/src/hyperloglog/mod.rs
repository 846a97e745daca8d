//! HyperLogLog in the public encoding: a string that estimates how many different elements it was
//! given.
//!
//! An element's hash names one of 16,384 registers, and the register keeps the highest *rank* that
//! it was given: one more than the number of zeros at the end of the rest of the hash. There are
//! two encodings behind a header of 16 bytes:
//!
//! - *sparse*: runs of equal registers, one or two bytes each;
//! - *dense*: six bits a register.
//!
//! The header keeps the last estimate until a register changes. Paper: P. Flajolet and others,
//! [HyperLogLog: the analysis of a near-optimal cardinality estimation
//! algorithm](https://doi.org/10.46298/dmtcs.3545), 2007.

mod dense;
mod estimate;
mod hash;
mod header;
mod sparse;

use self::header::HEADER;
pub(crate) use self::header::{Encoding, cached, encoding, invalidate, remember};
use self::sparse::RaiseOutcome;
pub(crate) use self::sparse::describe;

/// Registers of each.
pub(crate) const REGISTERS: usize = 1 << 14;

/// Bits of the hash that the rank is taken of.
const RANK_BITS: u32 = 64 - 14;

/// Bytes of the dense encoding.
pub(crate) const DENSE_LEN: usize = HEADER + REGISTERS * 6 / 8;

/// The runs do not add up to the registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// The rank of an element, and its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) register: usize,
    pub(crate) rank: u8,
}

impl Rank {
    pub(crate) fn of(element: &[u8]) -> Self {
        let hash = hash::murmur64(element);
        let rest = hash >> (64 - RANK_BITS) | 1 << RANK_BITS;
        Self {
            register: hash as usize % REGISTERS,
            rank: rest.trailing_zeros() as u8 + 1,
        }
    }
}

/// An empty one.
pub(crate) fn empty() -> Vec<u8> {
    let mut bytes = header::new(Encoding::Sparse);
    sparse::write(&[0; REGISTERS], &mut bytes);
    bytes
}

/// True if the register of a dense one is lower than that rank.
pub(crate) fn is_lower(dense: &[u8], new: Rank) -> bool {
    dense::get(&dense[HEADER..], new.register) < new.rank
}

/// Raises a register to a rank, unless it is as high already. Returns whether it was lower. A
/// sparse one that would become longer than `sparse_max` bytes becomes dense.
pub(crate) fn raise(
    bytes: &mut Vec<u8>,
    encoding: Encoding,
    new: Rank,
    sparse_max: usize,
) -> Result<bool, Corrupt> {
    if encoding == Encoding::Sparse {
        match sparse::raise(bytes, new, sparse_max)? {
            RaiseOutcome::AsHigh => return Ok(false),
            RaiseOutcome::Done => return Ok(true),
            RaiseOutcome::TooLarge => *bytes = to_dense(bytes)?,
        }
    }
    let lower = is_lower(bytes, new);
    if lower {
        dense::set(&mut bytes[HEADER..], new);
    }
    Ok(lower)
}

/// The same, dense. It keeps the header's estimate.
pub(crate) fn to_dense(bytes: &[u8]) -> Result<Vec<u8>, Corrupt> {
    let mut registers = Registers::default();
    registers.merge(bytes, Encoding::Sparse)?;
    let mut dense = registers.to_dense();
    header::copy_estimate(bytes, &mut dense);
    Ok(dense)
}

/// The estimate of how many different elements it was given.
pub(crate) fn count(bytes: &[u8], encoding: Encoding) -> Result<u64, Corrupt> {
    let mut histogram = [0; 64];
    match encoding {
        Encoding::Dense => dense::for_each(&bytes[HEADER..], |rank| histogram[rank as usize] += 1),
        Encoding::Sparse => {
            let add = |rank: u8, len: usize| histogram[rank as usize] += len as u32;
            sparse::for_each_run(&bytes[HEADER..], add)?;
        }
    }
    Ok(estimate::estimate(&histogram))
}

/// All registers, one byte each.
pub(crate) struct Registers(Box<[u8; REGISTERS]>);

impl Default for Registers {
    fn default() -> Self {
        Self(Box::new([0; REGISTERS]))
    }
}

impl Registers {
    /// Raises each register to its rank in another one.
    pub(crate) fn merge(&mut self, bytes: &[u8], encoding: Encoding) -> Result<(), Corrupt> {
        match encoding {
            Encoding::Dense => dense::merge(&bytes[HEADER..], &mut self.0),
            Encoding::Sparse => {
                let mut rest = &mut self.0[..];
                sparse::for_each_run(&bytes[HEADER..], |rank, len| {
                    let run = rest.split_off_mut(..len).unwrap_or_default();
                    if rank > 0 {
                        run.iter_mut().for_each(|old| *old = rank.max(*old));
                    }
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0[..]
    }

    /// The estimate of the union.
    pub(crate) fn count(&self) -> u64 {
        let mut histogram = [0; 64];
        self.0
            .iter()
            .for_each(|rank| histogram[*rank as usize % 64] += 1);
        estimate::estimate(&histogram)
    }

    /// The registers as a string, without an estimate: sparse if it is allowed and at most that
    /// long, dense otherwise.
    pub(crate) fn encode(&self, sparse_max: Option<usize>) -> Vec<u8> {
        if let Some(longest) = sparse_max {
            let mut bytes = header::new(Encoding::Sparse);
            if sparse::write(&self.0, &mut bytes) && bytes.len() <= longest {
                invalidate(&mut bytes);
                return bytes;
            }
        }
        let mut bytes = self.to_dense();
        invalidate(&mut bytes);
        bytes
    }

    fn to_dense(&self) -> Vec<u8> {
        let mut bytes = header::new(Encoding::Dense);
        dense::write(&self.0, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests;
