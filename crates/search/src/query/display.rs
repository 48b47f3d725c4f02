//! Queries as Lucene prints them, so that both can be compared.

use super::expr::{Expr, Occurs};
use std::fmt;

impl fmt::Display for Expr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Nothing => Ok(()),
            Expr::Everything => formatter.write_str("*:*"),
            Expr::Bool(clauses) => write_clauses(formatter, clauses),
            Expr::Term { field, text } => write!(formatter, "{field}:{text}"),
            Expr::Synonyms { field, texts } => {
                let parts: Vec<String> = texts.iter().map(|it| format!("{field}:{it}")).collect();
                write!(formatter, "Synonym({})", parts.join(" "))
            }
            Expr::Phrase { field, terms, slop } => {
                write!(formatter, "{field}:\"")?;
                let mut at = 0;
                for (position, texts) in terms {
                    while at < *position {
                        formatter.write_str("? ")?;
                        at += 1;
                    }
                    match texts.as_slice() {
                        [text] => formatter.write_str(text)?,
                        _ => write!(formatter, "({})", texts.join(" "))?,
                    }
                    at += 1;
                    let last = terms.last().is_some_and(|(it, _)| it == position);
                    formatter.write_str(if last { "\"" } else { " " })?;
                }
                if *slop > 0 { write!(formatter, "~{slop}") } else { Ok(()) }
            }
            Expr::Prefix { field, text } => write!(formatter, "{field}:{text}*"),
            Expr::Wildcard { field, text } => write!(formatter, "{field}:{text}"),
            Expr::Regex { field, text } => write!(formatter, "{field}:/{text}/"),
            Expr::Fuzzy { field, text, edits } => write!(formatter, "{field}:{text}~{edits}"),
            Expr::FuzzyPrefix { field, text, edits } => {
                write!(formatter, "{field}:{text}~{edits}*")
            }
            Expr::Boost(inner, boost) => write!(formatter, "({inner})^{boost:?}"),
        }
    }
}

fn write_clauses(formatter: &mut fmt::Formatter<'_>, clauses: &[(Occurs, Expr)]) -> fmt::Result {
    for (number, (occurs, clause)) in clauses.iter().enumerate() {
        if number > 0 {
            formatter.write_str(" ")?;
        }
        formatter.write_str(match occurs {
            Occurs::Must => "+",
            Occurs::Should => "",
            Occurs::MustNot => "-",
        })?;
        match clause {
            Expr::Bool(_) => write!(formatter, "({clause})")?,
            _ => write!(formatter, "{clause}")?,
        }
    }
    Ok(())
}
