//! Bytes in hexadecimal digits.

/// A word that stands for some bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    "~x".to_owned() + &digits(bytes)
}

pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(|pair| byte(pair).expect("a byte")).collect()
}

/// The digits of some bytes.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
