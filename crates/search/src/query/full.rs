//! The full syntax: that of Lucene's classic parser, without ranges. Clauses are joined as it does: `AND` makes both its
//! sides required, `NOT` forbids, and there is no precedence between `AND` and `OR`.

use super::SearchMode;
use super::expr::Occurs;
use super::syntax::Syntax;
use crate::error::{Result, SearchError};
use crate::limits;

/// Reads a text.
pub(super) fn parse(text: &str, mode: SearchMode) -> Result<Syntax> {
    if text.trim() == "*" || text.trim().is_empty() {
        return Ok(Syntax::Everything);
    }
    let chars: Vec<char> = text.chars().collect();
    let mut parser = Parser { chars: &chars, at: 0, mode, depth: 0, clauses: 0 };
    let parsed = parser.clauses(None)?;
    if parser.at < chars.len() {
        return Err(parser.wrong());
    }
    if let Syntax::Bool(clauses) = &parsed
        && clauses.iter().all(|(occurs, _)| *occurs == Occurs::MustNot)
    {
        return Err(SearchError::invalid(
            "Failed to parse query string: a query cannot consist of negated clauses only.",
        ));
    }
    Ok(parsed)
}

struct Parser<'a> {
    chars: &'a [char],
    at: usize,
    mode: SearchMode,
    depth: usize,
    clauses: usize,
}

/// How two clauses are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conjunction {
    None,
    And,
    Or,
}

/// A sign in front of a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Modifier {
    None,
    Not,
    Required,
}

impl Parser<'_> {
    fn wrong(&self) -> SearchError {
        SearchError::invalid(format!(
            "Failed to parse query string at line 1, column {}. See https://aka.ms/azure-search-full-query for \
             supported syntax.",
            self.at + 1
        ))
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, c)| self.chars.get(self.at + offset) == Some(&c))
    }

    /// Takes a word operator (`AND`) or its sign (`&&`).
    fn take_operator(&mut self, word: &str, sign: &str) -> bool {
        let length = word.chars().count();
        let ends = self.chars.get(self.at + length).is_none_or(|c| !is_term_char(*c) && *c != '\\');
        if self.starts_with(word) && ends {
            self.at += length;
            return true;
        }
        if self.starts_with(sign) {
            self.at += sign.len();
            return true;
        }
        false
    }

    /// Clauses up to a closing parenthesis or the end.
    fn clauses(&mut self, field: Option<&str>) -> Result<Syntax> {
        self.depth += 1;
        if self.depth > limits::QUERY_DEPTH_MAX {
            return Err(SearchError::invalid("Failed to parse query string: it nests too deeply."));
        }
        let mut clauses: Vec<(Occurs, Syntax)> = Vec::new();
        let mut first = true;
        loop {
            self.skip_spaces();
            if self.peek().is_none_or(|c| c == ')') {
                break;
            }
            let conjunction = if first {
                Conjunction::None
            } else if self.take_operator("AND", "&&") {
                Conjunction::And
            } else if self.take_operator("OR", "||") {
                Conjunction::Or
            } else {
                Conjunction::None
            };
            self.skip_spaces();
            let modifier = self.modifier();
            self.skip_spaces();
            let part = self.clause(field)?;
            self.add(&mut clauses, conjunction, modifier, part);
            first = false;
        }
        if first {
            return Err(self.wrong());
        }
        self.depth -= 1;
        // One clause that is wanted is the whole query.
        if clauses.len() == 1 && clauses[0].0 != Occurs::MustNot {
            let (occurs, only) = clauses.remove(0);
            if occurs == Occurs::Should || self.mode == SearchMode::All {
                return Ok(only);
            }
            clauses.push((occurs, only));
        }
        if clauses.is_empty() {
            return Ok(Syntax::Nothing);
        }
        Ok(Syntax::Bool(clauses))
    }

    fn modifier(&mut self) -> Modifier {
        match self.peek() {
            Some('+') => {
                self.at += 1;
                Modifier::Required
            }
            Some('-') => {
                self.at += 1;
                Modifier::Not
            }
            _ if self.take_operator("NOT", "!") => Modifier::Not,
            _ => Modifier::None,
        }
    }

    fn add(
        &self,
        clauses: &mut Vec<(Occurs, Syntax)>,
        conjunction: Conjunction,
        modifier: Modifier,
        part: Syntax,
    ) {
        let all = self.mode == SearchMode::All;
        if let Some(last) = clauses.last_mut()
            && last.0 != Occurs::MustNot
        {
            if conjunction == Conjunction::And {
                last.0 = Occurs::Must;
            } else if conjunction == Conjunction::Or && all {
                last.0 = Occurs::Should;
            }
        }
        let required = if all {
            conjunction != Conjunction::Or
        } else {
            modifier == Modifier::Required || conjunction == Conjunction::And
        };
        let occurs = match modifier {
            Modifier::Not => Occurs::MustNot,
            _ if required => Occurs::Must,
            _ => Occurs::Should,
        };
        clauses.push((occurs, part));
    }

    fn clause(&mut self, field: Option<&str>) -> Result<Syntax> {
        self.clauses += 1;
        if self.clauses > limits::QUERY_CLAUSES_MAX {
            return Err(SearchError::invalid("Failed to parse query string: too many clauses."));
        }
        let named = self.field_name();
        let field = named.as_deref().or(field);
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inner = self.clauses(field)?;
                if self.peek() != Some(')') {
                    return Err(self.wrong());
                }
                self.at += 1;
                self.boosted(inner)
            }
            Some('"') => self.phrase(field),
            Some('/') => self.regex(field),
            _ => self.term(field),
        }
    }

    /// The name in front of a colon, with slashes where it is a path.
    fn field_name(&mut self) -> Option<String> {
        let takes = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '/';
        let rest = &self.chars[self.at..];
        let length = rest.iter().take_while(|it| takes(it)).count();
        let starts = rest.first().is_some_and(char::is_ascii_alphabetic);
        if starts && rest.get(length) == Some(&':') {
            self.at += length + 1;
            self.skip_spaces();
            return Some(rest[..length].iter().collect());
        }
        None
    }

    fn phrase(&mut self, field: Option<&str>) -> Result<Syntax> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.wrong()),
                Some('"') => break,
                Some('\\') => {
                    self.at += 1;
                    text.push(self.peek().ok_or_else(|| self.wrong())?);
                }
                Some(c) => text.push(c),
            }
            self.at += 1;
        }
        self.at += 1;
        let mut slop = 0;
        if self.peek() == Some('~') {
            self.at += 1;
            slop = self.number()?.map_or(0.0, f32::floor) as u32;
            slop = slop.min(limits::PHRASE_SLOP_MAX);
        }
        let field = field.map(str::to_owned);
        self.boosted(Syntax::Words { field, text, quoted: true, slop })
    }

    fn regex(&mut self, field: Option<&str>) -> Result<Syntax> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.wrong()),
                Some('/') => break,
                Some('\\') if self.chars.get(self.at + 1) == Some(&'/') => {
                    self.at += 1;
                    text.push('/');
                }
                Some(c) => text.push(c),
            }
            self.at += 1;
        }
        self.at += 1;
        self.check_pattern(&text)?;
        self.boosted(Syntax::Regex { field: field.map(str::to_owned), text })
    }

    fn check_pattern(&self, text: &str) -> Result<()> {
        if text.chars().count() > limits::PATTERN_CHARS_MAX {
            let max = limits::PATTERN_CHARS_MAX;
            let what = format!("A pattern has more than {max} characters.");
            return Err(SearchError::invalid(what));
        }
        Ok(())
    }

    fn term(&mut self, field: Option<&str>) -> Result<Syntax> {
        let mut raw = String::new();
        let mut text = String::new();
        let (mut wild, mut last_star) = (false, false);
        let start = self.at;
        while let Some(c) = self.peek() {
            let first = self.at == start;
            if c == '\\' {
                self.at += 1;
                let next = self.peek().ok_or_else(|| self.wrong())?;
                raw.push('\\');
                raw.push(next);
                text.push(next);
                last_star = false;
            } else if c == '*' || c == '?' {
                wild |= c == '?' || last_star || self.more_follows();
                last_star = c == '*';
                raw.push(c);
                text.push(c);
            } else if is_term_char(c) && !(first && (c == '-' || c == '+')) {
                raw.push(c);
                text.push(c);
                last_star = false;
            } else {
                break;
            }
            self.at += 1;
        }
        if raw.is_empty() {
            return Err(self.wrong());
        }
        let field = field.map(str::to_owned);
        let part = if text == "*" && last_star {
            Syntax::Everything
        } else if wild || last_star {
            if raw.starts_with(['*', '?']) {
                self.at = start;
                return Err(SearchError::invalid(
                    "Failed to parse query string: '*' or '?' is not allowed as the first character of a term.",
                ));
            }
            self.check_pattern(&text)?;
            match wild {
                true => Syntax::Wildcard { field, text: raw },
                false => Syntax::Prefix { field, text: text[..text.len() - 1].to_owned() },
            }
        } else if self.peek() == Some('~') {
            self.at += 1;
            let edits = self.number()?.unwrap_or(2.0);
            Syntax::Fuzzy { field, edits: edits_of(edits, &text), text }
        } else {
            Syntax::Words { field, text, quoted: false, slop: 0 }
        };
        self.boosted(part)
    }

    /// Whether the term goes on behind the current character.
    fn more_follows(&self) -> bool {
        self.chars
            .get(self.at + 1)
            .is_some_and(|c| is_term_char(*c) || matches!(*c, '*' | '?' | '\\'))
    }

    fn boosted(&mut self, part: Syntax) -> Result<Syntax> {
        // Spaces may stand in front of the sign.
        let spaces = self.chars[self.at..].iter().take_while(|it| is_space(**it)).count();
        if self.chars.get(self.at + spaces) != Some(&'^') {
            return Ok(part);
        }
        self.at += spaces + 1;
        let boost = self.number()?.filter(|it| *it <= limits::BOOST_MAX);
        let boost = boost.ok_or_else(|| self.wrong())?;
        Ok(Syntax::Boost(Box::new(part), boost))
    }

    fn number(&mut self) -> Result<Option<f32>> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            self.at += 1;
        }
        if start == self.at {
            return Ok(None);
        }
        let text: String = self.chars[start..self.at].iter().collect();
        match text.parse::<f32>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.wrong()),
        }
    }
}

/// The edits of a fuzzy term. Numbers below one are the similarity of old, in shares of the term's length.
fn edits_of(number: f32, text: &str) -> u8 {
    if number >= 1.0 {
        return (number as u8).min(limits::FUZZY_EDITS_MAX);
    }
    if number == 0.0 {
        return 0;
    }
    let edits = ((1.0 - f64::from(number)) * text.chars().count() as f64) as u8;
    edits.min(limits::FUZZY_EDITS_MAX)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{3000}')
}

/// Whether a character may stand inside of a term without a backslash.
fn is_term_char(c: char) -> bool {
    !is_space(c) && !"!():^[]\"{}~*?\\/".contains(c)
}
