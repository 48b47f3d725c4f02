//! Patterns as KEYS, SCAN and PSUBSCRIBE know them: `*`, `?`, `[a-c]`, `[^x]`, and `\` before what stands for itself.

/// Whether a text matches a pattern. The time is bounded by the product of both lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where to go on after a failure: behind the last star, which then takes one byte more.
    let mut again: Option<(usize, usize)> = None;
    let (mut p, mut t) = (0, 0);
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            again = Some((p, t));
            continue;
        }
        if t == text.len() {
            return p >= pattern.len();
        }
        let step = if p < pattern.len() { one(&pattern[p..], text[t]) } else { None };
        if let Some(width) = step {
            p += width;
            t += 1;
        } else if let Some((behind, from)) = again {
            p = behind;
            t = from + 1;
            again = Some((behind, t));
        } else {
            return false;
        }
    }
}

/// The same for texts whose case does not matter, as names of settings.
pub(crate) fn matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}

/// The bytes of the pattern that stand for this byte, if they do.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => class(rest, byte).map(|width| width + 1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [own, ..] => (*own == byte).then_some(1),
        [] => None,
    }
}

/// The bytes up to the end of a class, if it holds the byte. A class that is not closed ends with the pattern.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let is_negated = pattern.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut holds = false;
    loop {
        match pattern.get(at..).unwrap_or_default() {
            [] => break,
            [b'\\', escaped, ..] => {
                holds |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [from, b'-', to, ..] => {
                let (low, high) = (*from.min(to), *from.max(to));
                holds |= (low..=high).contains(&byte);
                at += 3;
            }
            [own, ..] => {
                holds |= *own == byte;
                at += 1;
            }
        }
    }
    (holds != is_negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_documented() {
        let cases = [
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("**a*", "bab", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("[]", "a", false),
            ("[abc", "b", true),
            ("\\", "\\", true),
        ];
        for (pattern, text, expected) in cases {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let text = vec![b'a'; 20_000];
        let pattern = [b"a*".repeat(50), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &text));
    }
}
