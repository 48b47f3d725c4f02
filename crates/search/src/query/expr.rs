//! The tree of a query after analysis: terms of fields.

use std::collections::BTreeSet;

/// How a clause takes part in a boolean expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurs {
    Must,
    Should,
    MustNot,
}

/// One part of a query. Fields are paths of the definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// No document.
    Nothing,
    /// Every document, with the score 1.
    Everything,
    Bool(Vec<(Occurs, Expr)>),
    Term {
        field: String,
        text: String,
    },
    /// Terms at one place that stand for each other.
    Synonyms {
        field: String,
        texts: Vec<String>,
    },
    /// Terms with their places.
    Phrase {
        field: String,
        terms: Vec<(usize, Vec<String>)>,
        slop: u32,
    },
    Prefix {
        field: String,
        text: String,
    },
    Wildcard {
        field: String,
        text: String,
    },
    Regex {
        field: String,
        text: String,
    },
    Fuzzy {
        field: String,
        text: String,
        edits: u8,
    },
    /// Terms whose beginning differs in at most some edits.
    FuzzyPrefix {
        field: String,
        text: String,
        edits: u8,
    },
    Boost(Box<Expr>, f32),
}

impl Expr {
    /// The number of leaves.
    pub(crate) fn clauses(&self) -> usize {
        match self {
            Expr::Bool(clauses) => clauses.iter().map(|(_, it)| it.clauses()).sum(),
            Expr::Boost(inner, _) => inner.clauses(),
            Expr::Synonyms { texts, .. } => texts.len(),
            Expr::Phrase { terms, .. } => terms.iter().map(|(_, it)| it.len()).sum(),
            _ => 1,
        }
    }

    /// Collects what needs an automaton, without the fields.
    pub(crate) fn patterns(&self, found: &mut BTreeSet<(u8, u8, String)>) {
        let pattern = match self {
            Expr::Bool(clauses) => {
                clauses.iter().for_each(|(_, it)| it.patterns(found));
                return;
            }
            Expr::Boost(inner, _) => return inner.patterns(found),
            Expr::Prefix { text, .. } => (0, 0, text),
            Expr::Wildcard { text, .. } => (1, 0, text),
            Expr::Regex { text, .. } => (2, 0, text),
            Expr::Fuzzy { text, edits, .. } => (3, *edits, text),
            Expr::FuzzyPrefix { text, edits, .. } => (4, *edits, text),
            _ => return,
        };
        found.insert((pattern.0, pattern.1, pattern.2.clone()));
    }

    /// A boolean expression, or its only clause where that says the same.
    pub(crate) fn any_of(mut parts: Vec<Expr>) -> Expr {
        match parts.len() {
            0 => Expr::Nothing,
            1 => parts.remove(0),
            _ => Expr::Bool(parts.into_iter().map(|it| (Occurs::Should, it)).collect()),
        }
    }

    /// The expression with a weight.
    pub(crate) fn boosted(self, boost: f32) -> Expr {
        if boost == 1.0 || self == Expr::Nothing {
            return self;
        }
        Expr::Boost(Box::new(self), boost)
    }
}
