//! The tree of a search text before analysis: what was written, not yet what it means for a field.

use super::expr::Occurs;

/// One part of a search text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Syntax {
    /// Nothing was asked for.
    Nothing,
    /// Every document.
    Everything,
    Bool(Vec<(Occurs, Syntax)>),
    /// Words to be analyzed. Quoted ones are a phrase.
    Words {
        field: Option<String>,
        text: String,
        quoted: bool,
        slop: u32,
    },
    Prefix {
        field: Option<String>,
        text: String,
    },
    /// `*` and `?` stand for other characters; a backslash takes their meaning away.
    Wildcard {
        field: Option<String>,
        text: String,
    },
    Regex {
        field: Option<String>,
        text: String,
    },
    Fuzzy {
        field: Option<String>,
        text: String,
        edits: u8,
    },
    Boost(Box<Syntax>, f32),
}
