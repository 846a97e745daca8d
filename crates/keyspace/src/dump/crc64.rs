//! CRC-64 with the polynomial of Jones (0xad93d23594c935a9), lowest bits first, by tables for eight
//! bytes at a time.

/// The polynomial, its bits in reverse.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// `TABLES[k][b]` is the checksum of the byte `b` and `k` zeros behind it.
static TABLES: [[u64; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][before as u8 as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
};

/// Words of each of the lanes, whose checksums are computed side by side: each step waits for the
/// one before it.
const LANE: usize = 512;
const LANES: usize = 4;

/// The factor that appends a lane of zeros to a checksum: see [`times`].
const LANE_OF_ZEROS: u64 = {
    // One, its bits in reverse.
    let mut crc = 1 << 63;
    let mut bit = 0;
    while bit < LANE * 64 {
        crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
        bit += 1;
    }
    crc
};

/// A checksum of bytes that come in portions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crc64(u64);

impl Crc64 {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0 = crc64_behind(self.0, bytes);
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    crc64_behind(0, bytes)
}

/// The checksum of bytes, and of those before them, which is `crc`.
fn crc64_behind(crc: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (blocks, words) = words.as_chunks::<{ LANE * LANES }>();
    let crc = blocks.iter().fold(crc, |crc, block| {
        let (lanes, _) = block.as_chunks::<LANE>();
        let mut sums = [0; LANES];
        sums[0] = crc;
        for at in 0..LANE {
            for (sum, lane) in sums.iter_mut().zip(lanes) {
                *sum = with_word(*sum, &lane[at]);
            }
        }
        // As many zeros follow each lane as the next one has bytes, and checksums of equal lengths
        // add up.
        let joined = sums
            .into_iter()
            .reduce(|crc, next| times(crc, LANE_OF_ZEROS) ^ next);
        joined.unwrap_or(crc)
    });
    let crc = words.iter().fold(crc, with_word);
    rest.iter().fold(crc, |crc: u64, byte| {
        crc >> 8 ^ TABLES[0][(crc as u8 ^ byte) as usize]
    })
}

#[inline(always)]
fn with_word(crc: u64, word: &[u8; 8]) -> u64 {
    let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
    let parts = mixed.iter().rev().zip(&TABLES);
    parts.fold(0, |sum, (byte, table)| sum ^ table[*byte as usize])
}

/// The product of two polynomials, modulo that of the checksum, bits in reverse. A checksum times x
/// to the power of n is the checksum with n zeros behind it.
fn times(a: u64, mut b: u64) -> u64 {
    let mut product = 0;
    for bit in (0..64).rev() {
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = b >> 1 ^ if b & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_the_public_one() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(b""), 0);
        // Word by word, and byte by byte.
        let bytes: Vec<u8> = (0..100).collect();
        let slow = bytes.iter().fold(0_u64, |crc, byte| {
            crc >> 8 ^ TABLES[0][(crc as u8 ^ byte) as usize]
        });
        assert_eq!(crc64(&bytes), slow);
    }

    #[test]
    fn lanes_make_the_checksum_of_the_whole() {
        let block = LANE * LANES * 8;
        let bytes: Vec<u8> = (0..3 * block as u32 + 77)
            .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8)
            .collect();
        let mut slow = 0_u64;
        for (len, byte) in bytes.iter().enumerate() {
            let near = |edge: usize| len.abs_diff(edge) < 20;
            if (0..4).any(|blocks| near(blocks * block)) {
                assert_eq!(crc64(&bytes[..len]), slow, "{len} bytes");
            }
            slow = slow >> 8 ^ TABLES[0][(slow as u8 ^ byte) as usize];
        }
        assert_eq!(crc64(&bytes), slow);
    }
}
