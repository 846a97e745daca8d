//! CRC-64 with the polynomial of Jones (0xad93d23594c935a9), lowest bits first, by tables for eight bytes at a time.

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

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(0, |crc, word| {
        let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        let parts = mixed.iter().rev().zip(&TABLES);
        parts.fold(0, |sum, (byte, table)| sum ^ table[*byte as usize])
    });
    rest.iter().fold(crc, |crc: u64, byte| {
        crc >> 8 ^ TABLES[0][(crc as u8 ^ byte) as usize]
    })
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
}
