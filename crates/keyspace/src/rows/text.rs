//! Reads text when compiling.

/// The text before the first `by`, and the text behind it.
pub(super) const fn split(text: &[u8], by: u8) -> (&[u8], &[u8]) {
    let mut at = 0;
    while at < text.len() && text[at] != by {
        at += 1;
    }
    let (before, behind) = text.split_at(at);
    match behind {
        [_, rest @ ..] => (before, rest),
        [] => (before, &[]),
    }
}

/// True if these are the bytes of that name.
pub(super) const fn is(text: &[u8], name: &str) -> bool {
    let name = name.as_bytes();
    let mut i = 0;
    while i < text.len() && i < name.len() && text[i] == name[i] {
        i += 1;
    }
    i == text.len() && i == name.len()
}
