//! Secret text: it is masked wherever it is printed.

use std::fmt;

/// How every secret prints.
pub const MASK: &str = "********";

/// A key, a token, or a text that holds some. [`Secret::reveal`] is the only way to its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `other` is the same text, in a time that says nothing about where they differ.
    pub fn matches(&self, other: &str) -> bool {
        let (mine, theirs) = (self.0.as_bytes(), other.as_bytes());
        let mut differing = mine.len() ^ theirs.len();
        for (at, byte) in theirs.iter().enumerate() {
            let own = mine.get(at % mine.len().max(1)).copied().unwrap_or(0);
            differing |= usize::from(own ^ byte);
        }
        std::hint::black_box(differing) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_a_mask() {
        let secret = Secret::new("hush");
        assert_eq!(format!("{secret} {secret:?}"), "******** ********");
        assert_eq!(secret.reveal(), "hush");
    }

    #[test]
    fn only_the_same_text_matches() {
        let secret = Secret::new("hush");
        assert!(secret.matches("hush"));
        for other in ["", "h", "hus", "hushh", "hushhush", "husH"] {
            assert!(!secret.matches(other), "{other}");
        }
        assert!(Secret::new("").matches(""));
        assert!(!Secret::new("").matches("x"));
    }
}
