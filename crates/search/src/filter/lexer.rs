//! The words of filters and orders.

use crate::error::{Result, SearchError};
use crate::value::parse_date_ms;

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lexeme {
    /// A name, with dots where it has some (`search.in`).
    Name(String),
    Text(String),
    Int(i64),
    Double(f64),
    Date(i64),
    /// `geography'…'` with what stands between the quotes.
    Geography(String),
    Open,
    Close,
    Comma,
    Colon,
    Slash,
    End,
}

/// Cuts a text into words, one at a time.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    pub(crate) current: Lexeme,
    /// Where the current word begins, in bytes.
    pub(crate) start: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Lexer<'a>> {
        let mut lexer = Lexer { text, at: 0, current: Lexeme::End, start: 0 };
        lexer.advance()?;
        Ok(lexer)
    }

    /// The error that something else was expected here.
    pub(crate) fn unexpected(&self, expected: &str) -> SearchError {
        let found = match &self.current {
            Lexeme::End => "the end".to_owned(),
            _ => format!("'{}'", &self.text[self.start..self.at]),
        };
        SearchError::invalid(format!(
            "{expected} was expected at position {} but {found} was found",
            self.text[..self.start].chars().count()
        ))
    }

    /// Goes on to the next word and returns the one before.
    pub(crate) fn advance(&mut self) -> Result<Lexeme> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.start = self.at;
        let next = self.read()?;
        Ok(std::mem::replace(&mut self.current, next))
    }

    /// Takes a word if it is the given one.
    pub(crate) fn take(&mut self, lexeme: &Lexeme) -> Result<bool> {
        if self.current == *lexeme {
            self.advance()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes a name if it is the given one.
    pub(crate) fn take_name(&mut self, name: &str) -> Result<bool> {
        if matches!(&self.current, Lexeme::Name(it) if it == name) {
            self.advance()?;
            return Ok(true);
        }
        Ok(false)
    }

    pub(crate) fn expect(&mut self, lexeme: &Lexeme, what: &str) -> Result<()> {
        if self.take(lexeme)? { Ok(()) } else { Err(self.unexpected(what)) }
    }

    pub(crate) fn expect_text(&mut self) -> Result<String> {
        match self.current.clone() {
            Lexeme::Text(text) => {
                self.advance()?;
                Ok(text)
            }
            _ => Err(self.unexpected("a string")),
        }
    }

    fn read(&mut self) -> Result<Lexeme> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(Lexeme::End) };
        let single = match first {
            '(' => Some(Lexeme::Open),
            ')' => Some(Lexeme::Close),
            ',' => Some(Lexeme::Comma),
            ':' => Some(Lexeme::Colon),
            '/' => Some(Lexeme::Slash),
            _ => None,
        };
        if let Some(lexeme) = single {
            self.at += 1;
            return Ok(lexeme);
        }
        if first == '\'' {
            return self.quoted().map(Lexeme::Text);
        }
        if first.is_ascii_digit() || ((first == '-' || first == '+') && rest.len() > 1) {
            return self.number(rest);
        }
        if first.is_ascii_alphabetic() || first == '_' || first == '$' {
            return self.name(rest);
        }
        Err(SearchError::invalid(format!(
            "the character '{first}' at position {} has no meaning",
            self.text[..self.at].chars().count()
        )))
    }

    fn name(&mut self, rest: &str) -> Result<Lexeme> {
        let takes = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        let length = rest.find(|c| !takes(c)).unwrap_or(rest.len());
        self.at += length;
        let name = &rest[..length];
        if name == "geography" && self.text[self.at..].starts_with('\'') {
            return self.quoted().map(Lexeme::Geography);
        }
        Ok(match name {
            "NaN" => Lexeme::Double(f64::NAN),
            "INF" => Lexeme::Double(f64::INFINITY),
            _ => Lexeme::Name(name.to_owned()),
        })
    }

    fn quoted(&mut self) -> Result<String> {
        let mut text = String::new();
        let mut rest = &self.text[self.at + 1..];
        loop {
            let Some(quote) = rest.find('\'') else {
                return Err(SearchError::invalid("a string has no closing quote"));
            };
            text.push_str(&rest[..quote]);
            rest = &rest[quote + 1..];
            match rest.strip_prefix('\'') {
                Some(more) => {
                    text.push('\'');
                    rest = more;
                }
                None => break,
            }
        }
        self.at = self.text.len() - rest.len();
        Ok(text)
    }

    fn number(&mut self, rest: &str) -> Result<Lexeme> {
        let takes = |c: char| c.is_ascii_alphanumeric() || "+-.:".contains(c);
        let length = rest.find(|c| !takes(c)).unwrap_or(rest.len());
        let word = &rest[..length];
        self.at += length;
        if word == "-INF" {
            return Ok(Lexeme::Double(f64::NEG_INFINITY));
        }
        let wrong = || SearchError::invalid(format!("'{word}' is neither a number nor a date"));
        if let Ok(number) = word.parse::<i64>() {
            return Ok(Lexeme::Int(number));
        }
        let numeric = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let typed = word.trim_end_matches(['L', 'l', 'f', 'F', 'd', 'D', 'm', 'M']);
        if typed.chars().all(numeric)
            && let Ok(number) = typed.parse::<f64>()
        {
            let whole = word.ends_with(['L', 'l']).then(|| typed.parse::<i64>().ok()).flatten();
            return Ok(whole.map_or(Lexeme::Double(number), Lexeme::Int));
        }
        parse_date_ms(word).map(Lexeme::Date).ok_or_else(wrong)
    }
}
