//! Patterns that name a key, or a field of a hash, for each element: `weight_*`, `object_*->name`,
//! `#`.

/// A pattern of BY or GET.
pub(super) enum Pattern<'b> {
    /// The element itself.
    Element,
    /// The same key for all, which means nothing.
    Constant,
    /// A key with the element in it.
    Key {
        before: &'b [u8],
        behind: &'b [u8],
        field: Option<&'b [u8]>,
    },
}

/// The value that a pattern names for one element.
pub(super) enum Operand<'e> {
    Element(&'e [u8]),
    Nothing,
    Key {
        name: Vec<u8>,
        field: Option<&'e [u8]>,
    },
}

const ARROW: &[u8] = b"->";

impl<'b> Pattern<'b> {
    pub(super) fn new(text: &'b [u8]) -> Self {
        if text == b"#" {
            return Self::Element;
        }
        let Some(star) = text.iter().position(|byte| *byte == b'*') else {
            return Self::Constant;
        };
        let (before, behind) = (&text[..star], &text[star + 1..]);
        let arrow = behind.windows(ARROW.len()).position(|pair| pair == ARROW);
        let (behind, field) = match arrow {
            Some(at) if at + ARROW.len() < behind.len() => {
                (&behind[..at], Some(&behind[at + ARROW.len()..]))
            }
            _ => (behind, None),
        };
        Self::Key {
            before,
            behind,
            field,
        }
    }

    /// True if BY orders by it: `#` has no place for the element.
    pub(super) fn varies(&self) -> bool {
        self.reads_keys()
    }

    pub(super) fn reads_keys(&self) -> bool {
        matches!(self, Self::Key { .. })
    }

    pub(super) fn operand<'e>(&'e self, element: &'e [u8]) -> Operand<'e> {
        match self {
            Self::Element => Operand::Element(element),
            Self::Constant => Operand::Nothing,
            Self::Key {
                before,
                behind,
                field,
            } => Operand::Key {
                name: [before, element, behind].concat(),
                field: *field,
            },
        }
    }
}
