//! Glob-style patterns, matched without recursion.

mod wide;

/// Steps that a match may take one by one, beside [`STEPS_PER_BYTE`]: each is over one byte of the
/// pattern.
const STEPS: usize = 1 << 10;

/// Steps for each byte of the text. Usual patterns take about one. Those that take more
/// (`*aaaa…ab`, or long classes after a `*`) are matched with many bytes of the pattern at once.
const STEPS_PER_BYTE: usize = 8;

/// The most bytes between the brackets of a class; with more, nothing matches. All 256 bytes, each
/// with a backslash, are half of that.
const CLASS_MAX: usize = 1024;

/// The most runs of `*` in one pattern, as in the public protocol's servers; with more, nothing
/// matches.
const STARS_MAX: usize = 1000;

/// True if the whole of `text` matches `pattern`: `*` is any bytes, `?` one byte, `[a-c]` and
/// `[^x]` classes, `\` takes the next byte literally. Bytes, not characters; case-sensitive.
///
/// For example, `a*bc` and `axbxbc`: `a` matches, `*` matches nothing, and `b` fails at `x`. So the
/// `*` takes one byte more, until `bc` matches at the end. Only the last `*` ever takes more: what
/// came before it has matched. That is at most pattern × text steps, where plain recursion takes
/// exponentially many. When the steps turn out to be many, sixty-four of them are done at once.
#[must_use]
pub fn glob_match(pattern: &[u8], text: &[u8]) -> bool {
    step_by_step(pattern, text).unwrap_or_else(|| wide::matches(pattern, text))
}

/// `None` if that takes too many steps.
fn step_by_step(pattern: &[u8], text: &[u8]) -> Option<bool> {
    let (mut p, mut t) = (0, 0);
    // Where to go on when the part after the latest `*` fails.
    let mut star: Option<(usize, usize)> = None;
    let mut stars = 0;
    let mut left = STEPS + STEPS_PER_BYTE * text.len();
    while left > 0 {
        left -= 1;
        if pattern.get(p) == Some(&b'*') {
            while pattern.get(p) == Some(&b'*') {
                p += 1;
            }
            if p == pattern.len() {
                return Some(true);
            }
            stars += 1;
            if stars > STARS_MAX {
                return Some(false);
            }
            star = Some((p, t));
            continue;
        }
        if t == text.len() {
            return Some(p == pattern.len());
        }
        if let Some((next, matched)) = match_one(pattern, p, text[t]) {
            left = left.saturating_sub(next - p - 1);
            if matched {
                (p, t) = (next, t + 1);
                continue;
            }
        }
        let Some((after, from)) = star else {
            return Some(false);
        };
        star = Some((after, from + 1));
        (p, t) = (after, from + 1);
    }
    None
}

/// The end of the pattern's element at `p` (not a `*`), and true if it matches a byte. `None`
/// if there is none.
fn match_one(pattern: &[u8], p: usize, byte: u8) -> Option<(usize, bool)> {
    Some(match (pattern.get(p)?, pattern.get(p + 1)) {
        (b'?', _) => (p + 1, true),
        (b'[', _) => match_class(pattern, p + 1, byte),
        (b'\\', Some(&literal)) => (p + 2, literal == byte),
        (&literal, _) => (p + 1, literal == byte),
    })
}

/// As [`match_one`], after the `[`. A class that is not closed ends with the pattern. One that is
/// too long reports an end so far away that no steps are left.
fn match_class(pattern: &[u8], mut p: usize, byte: u8) -> (usize, bool) {
    let end = p + CLASS_MAX;
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut found = false;
    while p <= end {
        match pattern.get(p..).unwrap_or_default() {
            [] => return (p, found != negated),
            [b']', ..] => return (p + 1, found != negated),
            [b'\\', literal, ..] => {
                found |= *literal == byte;
                p += 2;
            }
            [from, b'-', to, ..] => {
                found |= (*from.min(to)..=*from.max(to)).contains(&byte);
                p += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                p += 1;
            }
        }
    }
    (usize::MAX, false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_the_protocol_says() {
        let yes = [
            ("", ""),
            ("*", ""),
            ("*", "anything"),
            ("**", ""),
            ("a*c", "abbc"),
            ("a*c", "ac"),
            ("*a*b*", "xaxbx"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-c]llo", "hbllo"),
            ("h[c-a]llo", "hbllo"),
            ("[a\\]c]", "]"),
            ("[\\a]", "a"),
            ("\\*", "*"),
            ("a\\", "a\\"),
            ("[^]", "x"),
            ("[abc", "c"),
            ("[a-", "-"),
            ("a[", "a["),
            ("*?", "a"),
            ("foo*bar*baz", "foo_bar_bar_baz"),
        ];
        for (pattern, text) in yes {
            let matched = glob_match(pattern.as_bytes(), text.as_bytes());
            assert_eq!(matched, (pattern, text) != ("a[", "a["), "{pattern} {text}");
        }
        let no = [
            ("", "a"),
            ("a", ""),
            ("?", ""),
            ("a*c", "abcd"),
            ("h[^e]llo", "hello"),
            ("[]", "]"),
            ("[a-c]", "d"),
            ("A", "a"),
            ("\\*", "a"),
            ("*?", ""),
        ];
        for (pattern, text) in no {
            assert!(
                !glob_match(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern = "a*".repeat(10_000) + "b";
        let text = "a".repeat(100_000);
        assert!(!glob_match(pattern.as_bytes(), text.as_bytes()));
    }

    /// A pattern and a key of 120 KB each took half a minute.
    #[test]
    fn long_classes_cost_as_much_as_they_are_long() {
        let match_at_the_end = |class: usize, text: usize| {
            let pattern = format!("*[{}b]", "a".repeat(class));
            glob_match(pattern.as_bytes(), ("c".repeat(text) + "b").as_bytes())
        };
        assert!(match_at_the_end(100, 10_000));
        assert!(match_at_the_end(CLASS_MAX - 1, 1_000));
        assert!(
            !match_at_the_end(CLASS_MAX, 1),
            "longer than any class need be"
        );
        assert!(match_at_the_end(CLASS_MAX - 1, 100_000));
    }

    /// A pattern of 3,000 bytes took nine milliseconds on a key of 1,500.
    #[test]
    fn patterns_that_nearly_match_everywhere_are_compared_a_word_at_a_time() {
        let text = "a".repeat(60_000) + "b";
        let nearly = |len: usize| format!("*{}b*", "a".repeat(len));
        assert!(glob_match(nearly(1_000).as_bytes(), text.as_bytes()));
        assert!(!glob_match(nearly(60_001).as_bytes(), text.as_bytes()));
        let all = format!("*{}b*", "?".repeat(1_000));
        assert!(glob_match(all.as_bytes(), text.as_bytes()));
        assert!(
            !glob_match(nearly(30_000).as_bytes(), text.as_bytes()),
            "too much work all the same"
        );
    }

    #[test]
    fn a_thousand_stars_match_and_one_more_does_not() {
        let text = vec![b'a'; 1001];
        for matches in [glob_match, wide::matches] {
            assert!(matches("*?".repeat(1000).as_bytes(), &text));
            assert!(matches(("*?".repeat(1000) + "*").as_bytes(), &text));
            assert!(!matches("*?".repeat(1001).as_bytes(), &text));
        }
    }

    #[test]
    fn a_part_of_several_words_is_found_where_it_lies() {
        let text = format!("{}b{}c", "a".repeat(150), "ab".repeat(40));
        for len in [1, 62, 63, 64, 65, 127, 128, 129, 150, 151] {
            let pattern = format!("*{}[b]a?a*c", "a".repeat(len));
            let matched = wide::matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(matched, len <= 150, "{len}");
        }
    }

    /// The textbook's recursion.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            _ => text.split_first().is_some_and(|(byte, rest)| {
                match_one(pattern, 0, *byte)
                    .is_some_and(|(next, matched)| matched && naive(&pattern[next..], rest))
            }),
        }
    }

    proptest! {
        #[test]
        fn glob_match_agrees_with_a_recursive_one(
            pattern in "[ab*?\\[\\]^\\\\-]{0,10}", text in "[ab\\]\\[-]{0,10}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(glob_match(pattern, text), naive(pattern, text));
            prop_assert_eq!(wide::matches(pattern, text), naive(pattern, text));
        }
    }
}
