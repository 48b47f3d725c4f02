//! Which names of many are meant: `--include` and `--exclude` with patterns.

use clap::Args;

/// The longest pattern.
const PATTERN_BYTES_MAX: usize = 1024;

/// Patterns of names. `*` is any part of a name up to a slash, `**` any part, `?` one character. A pattern without a slash is
/// compared with the last part of a name.
#[derive(Clone, Debug, Default, Args)]
pub struct Choice {
    /// Only names that match this pattern, such as '*.csv' or 'logs/**'; may be given more than once
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub include: Vec<String>,
    /// Not names that match this pattern; may be given more than once
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub exclude: Vec<String>,
}

fn pattern(text: &str) -> std::result::Result<String, &'static str> {
    match text.len() {
        1..=PATTERN_BYTES_MAX => Ok(text.to_owned()),
        _ => Err("a pattern has 1 to 1024 bytes"),
    }
}

impl Choice {
    /// Whether a name is meant. It begins below the folder or prefix that the command is about.
    pub(super) fn has(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| is_match(pattern, name));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

fn is_match(pattern: &str, name: &str) -> bool {
    let name = if pattern.contains('/') { name } else { super::address::last(name) };
    let pattern: Vec<Sign> = signs(pattern);
    let name: Vec<char> = name.chars().collect();
    // Where a match of the signs so far may end: each sign moves the ends on, so the time is bounded by both lengths.
    let mut ends = vec![false; name.len() + 1];
    ends[0] = true;
    for sign in &pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            let before = at.checked_sub(1);
            next[at] = match sign {
                Sign::Any => before.is_some_and(|it| next[it]) || ends[at],
                Sign::AnyInPart => before.is_some_and(|it| next[it] && name[it] != '/') || ends[at],
                Sign::One => before.is_some_and(|it| ends[it] && name[it] != '/'),
                Sign::Is(letter) => before.is_some_and(|it| ends[it] && name[it] == *letter),
            };
        }
        ends = next;
    }
    ends[name.len()]
}

enum Sign {
    Any,
    AnyInPart,
    One,
    Is(char),
}

fn signs(pattern: &str) -> Vec<Sign> {
    let mut letters = pattern.chars().peekable();
    let mut signs = Vec::new();
    while let Some(letter) = letters.next() {
        signs.push(match letter {
            '*' if letters.next_if_eq(&'*').is_some() => Sign::Any,
            '*' => Sign::AnyInPart,
            '?' => Sign::One,
            other => Sign::Is(other),
        });
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_their_parts() {
        for (pattern, name) in [
            ("*.csv", "a.csv"),
            ("*.csv", "x/y/a.csv"),
            ("?.txt", "ä.txt"),
            ("logs/**", "logs/a/b"),
            ("logs/*", "logs/a"),
            ("**/b", "a/x/b"),
            ("a*b*c", "axxbyyc"),
            ("**", ""),
        ] {
            assert!(is_match(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.csv", "a.csv.gz"),
            ("logs/*", "logs/a/b"),
            ("logs/**", "log/a"),
            ("?", "ab"),
            ("a*b", "a/b"),
            ("a/?", "a//"),
        ] {
            assert!(!is_match(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_is_meant_if_it_is_included_and_not_excluded() {
        let choice = Choice {
            include: vec!["*.csv".to_owned(), "*.txt".to_owned()],
            exclude: vec!["old/**".to_owned()],
        };
        assert!(choice.has("a.csv") && choice.has("new/b.txt"));
        assert!(!choice.has("a.bin") && !choice.has("old/a.csv"));
        assert!(Choice::default().has("anything"));
    }

    #[test]
    fn long_patterns_take_a_bounded_time() {
        let pattern = "*a".repeat(500);
        assert!(!is_match(&pattern, &"a".repeat(400)));
    }
}
