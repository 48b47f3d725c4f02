//! LIKE: `%` any characters, `_` one, `[a-f]` one of a set, `[^abc]` one of none of them.

use crate::error::QueryError;
use crate::limits::LIKE_STEPS_MAX;

/// One part of a pattern.
#[derive(Debug)]
enum Part {
    Any,
    One,
    Exactly(char),
    Set { is_not: bool, ranges: Vec<(char, char)> },
}

fn parts(pattern: &str, escape: Option<char>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        let part = match next {
            _ if Some(next) == escape => Part::Exactly(rest.next().unwrap_or(next)),
            '%' => Part::Any,
            '_' => Part::One,
            '[' => match set(rest.as_str()) {
                Some((part, behind)) => {
                    rest = behind.chars();
                    part
                }
                // A bracket that is never closed stands for itself.
                None => Part::Exactly('['),
            },
            other => Part::Exactly(other),
        };
        if !(matches!(part, Part::Any) && matches!(parts.last(), Some(Part::Any))) {
            parts.push(part);
        }
    }
    parts
}

/// A set behind its opening bracket, and what follows it.
fn set(text: &str) -> Option<(Part, &str)> {
    let (is_not, body) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = body.find(']')?;
    let characters: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        if at + 2 < characters.len() && characters[at + 1] == '-' {
            ranges.push((characters[at], characters[at + 2]));
            at += 3;
        } else {
            ranges.push((characters[at], characters[at]));
            at += 1;
        }
    }
    Some((Part::Set { is_not, ranges }, &body[end + 1..]))
}

impl Part {
    fn fits(&self, character: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Exactly(wanted) => *wanted == character,
            Self::Set { is_not, ranges } => {
                let is_in = ranges.iter().any(|(low, high)| (*low..=*high).contains(&character));
                is_in != *is_not
            }
        }
    }
}

/// Whether a text fits a pattern. Long patterns with many `%` on long texts are given up.
pub fn is_like(text: &str, pattern: &str, escape: Option<char>) -> Result<bool, QueryError> {
    let parts = parts(pattern, escape);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut part) = (0, 0);
    // Where to go on if the rest does not fit: behind the last `%`, which then takes one character more.
    let mut retry: Option<(usize, usize)> = None;
    let mut steps = 0;
    while at < text.len() {
        steps += 1;
        if steps > LIKE_STEPS_MAX {
            let message = "A LIKE pattern needs more steps on one text than its limit.";
            return Err(QueryError::too_large(message));
        }
        match parts.get(part) {
            Some(Part::Any) => {
                part += 1;
                retry = Some((part, at));
            }
            Some(one) if one.fits(text[at]) => {
                part += 1;
                at += 1;
            }
            _ => match retry {
                Some((behind, from)) => {
                    part = behind;
                    at = from + 1;
                    retry = Some((behind, from + 1));
                }
                None => return Ok(false),
            },
        }
    }
    Ok(parts[part..].iter().all(|part| matches!(part, Part::Any)))
}

/// The text that everything that fits begins with, and whether exactly all texts that begin so fit.
pub fn prefix_of_pattern(pattern: &str, escape: Option<char>) -> (String, bool) {
    let parts = parts(pattern, escape);
    let mut prefix = String::new();
    for (place, part) in parts.iter().enumerate() {
        match part {
            Part::Exactly(character) => prefix.push(*character),
            Part::Any => return (prefix, place + 1 == parts.len()),
            _ => return (prefix, false),
        }
    }
    (prefix, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_the_service_says() {
        let cases = [
            ("fruit", "f%t", true),
            ("fruit", "%ui%", true),
            ("fruit", "_ruit", true),
            ("fruit", "_uit", false),
            ("fruit", "[a-f]%", true),
            ("fruit", "[^a-f]%", false),
            ("fruit", "fru[xi]t", true),
            ("", "%", true),
            ("", "_", false),
            ("abab", "%ab", true),
            ("aXbXc", "a%b%c", true),
            ("[x", "[x", true),
            ("é", "_", true),
        ];
        for (text, pattern, fits) in cases {
            assert_eq!(is_like(text, pattern, None), Ok(fits), "{text} LIKE {pattern}");
        }
        assert_eq!(is_like("50%", "50!%", Some('!')), Ok(true));
        assert_eq!(is_like("500", "50!%", Some('!')), Ok(false));
    }

    #[test]
    fn the_prefix_of_a_pattern_is_known() {
        assert_eq!(prefix_of_pattern("ab%", None), ("ab".into(), true));
        assert_eq!(prefix_of_pattern("ab%c", None), ("ab".into(), false));
        assert_eq!(prefix_of_pattern("a!%b%", Some('!')), ("a%b".into(), true));
        assert_eq!(prefix_of_pattern("%x", None), (String::new(), false));
        assert_eq!(prefix_of_pattern("ab", None), ("ab".into(), false));
    }

    #[test]
    fn many_wildcards_take_little_time() {
        let pattern = "%a".repeat(2000);
        assert_eq!(is_like(&"a".repeat(1999), &pattern, None), Ok(false));
        let pattern = format!("%{}b%", "a".repeat(10_000));
        assert!(is_like(&"a".repeat(1_000_000), &pattern, None).is_err());
    }
}
