//! Text into tokens.

use lazuli_value::Value;

use crate::error::{QueryError, Span, code};

/// The smallest pieces of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A keyword or a name.
    Word(String),
    Number(Value),
    Text(String),
    /// A parameter, with its `@`.
    Parameter(String),
    Symbol(&'static str),
    End,
}

/// Symbols, the longer ones first.
const SYMBOLS: &[&str] = &[
    ">>>", "<<", ">>", "<=", ">=", "<>", "!=", "??", "||", "=", "<", ">", "?", ":", ",", ".", "(",
    ")", "[", "]", "{", "}", "+", "-", "*", "/", "%", "&", "|", "^", "~",
];

/// The tokens of a text and where they are, with [`Token::End`] at the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, QueryError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        tokens.push((token, Span::new(start, lexer.at)));
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Goes over characters as long as they are of a kind.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn fail<T>(&self, code: &'static str, start: usize, near: &str) -> Result<T, QueryError> {
        let end = (start + near.len()).min(self.text.len());
        let message = match code {
            code::BAD_LITERAL => format!("Syntax error, invalid literal '{near}'."),
            _ => format!("Syntax error, incorrect syntax near '{near}'."),
        };
        Err(QueryError::invalid(message).at(code, Span::new(start, end)))
    }

    /// Spaces and comments.
    fn skip(&mut self) -> Result<(), QueryError> {
        loop {
            self.take(char::is_whitespace);
            if self.rest().starts_with("--") {
                self.take(|character| character != '\n');
            } else if self.rest().starts_with("/*") {
                match self.rest().find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return self.fail(code::SYNTAX, self.at, "/*"),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, QueryError> {
        let start = self.at;
        let Some(first) = self.peek() else { return Ok(Token::End) };
        if is_name_start(first) {
            return Ok(Token::Word(self.take(is_name_part).to_owned()));
        }
        let next_is_digit = || self.rest()[1..].starts_with(|next: char| next.is_ascii_digit());
        if first.is_ascii_digit() || (first == '.' && next_is_digit()) {
            return self.number();
        }
        if first == '"' || first == '\'' {
            return self.string(first);
        }
        if first == '@' {
            self.at += 1;
            self.take(|character| is_name_part(character) || character == '-');
            if self.at == start + 1 {
                return self.fail(code::SYNTAX, start, "@");
            }
            return Ok(Token::Parameter(self.text[start..self.at].to_owned()));
        }
        match SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) {
            Some(symbol) => {
                self.at += symbol.len();
                Ok(Token::Symbol(symbol))
            }
            None => self.fail(code::SYNTAX, start, &first.to_string()),
        }
    }

    fn number(&mut self) -> Result<Token, QueryError> {
        let start = self.at;
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.at += 2;
            let digits = self.take(|character| character.is_ascii_hexdigit());
            return match u64::from_str_radix(digits, 16) {
                Ok(number) => Ok(Token::Number(whole(number))),
                Err(_) => self.fail(code::BAD_LITERAL, start, &self.text[start..self.at]),
            };
        }
        let is_digit = |character: char| character.is_ascii_digit();
        self.take(is_digit);
        let mut is_whole = true;
        if self.peek() == Some('.') {
            is_whole = false;
            self.at += 1;
            self.take(is_digit);
        }
        let rest = self.rest().as_bytes();
        if let Some(b'e' | b'E') = rest.first() {
            let signed = matches!(rest.get(1), Some(b'+' | b'-'));
            let digits_at = if signed { 2 } else { 1 };
            if rest.get(digits_at).is_some_and(u8::is_ascii_digit) {
                is_whole = false;
                self.at += digits_at;
                self.take(is_digit);
            }
        }
        let text = &self.text[start..self.at];
        if self.peek().is_some_and(is_name_start) {
            return self.fail(code::SYNTAX, start, text);
        }
        let integer = if is_whole { text.parse::<i64>().ok() } else { None };
        match (integer, text.parse::<f64>()) {
            (Some(number), _) => Ok(Token::Number(Value::Int64(number))),
            (None, Ok(number)) if number.is_finite() => Ok(Token::Number(Value::Double(number))),
            _ => self.fail(code::BAD_LITERAL, start, text),
        }
    }

    fn string(&mut self, quote: char) -> Result<Token, QueryError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.take(|character| character != quote && character != '\\'));
            match self.peek() {
                None => return self.fail(code::BAD_LITERAL, start, &self.text[start..]),
                Some('\\') => self.escape(&mut text)?,
                Some(_) => {
                    self.at += 1;
                    return Ok(Token::Text(text));
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), QueryError> {
        let start = self.at;
        self.at += 1;
        let escaped = match self.peek() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(same @ ('\'' | '"' | '\\' | '/')) => same,
            Some('u') => return self.unicode(text),
            _ => return self.fail(code::BAD_LITERAL, start, "\\"),
        };
        text.push(escaped);
        self.at += 1;
        Ok(())
    }

    /// `uXXXX`, or two of them that make a pair.
    fn unicode(&mut self, text: &mut String) -> Result<(), QueryError> {
        let start = self.at;
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 4)?;
            let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if plain { u16::from_str_radix(digits, 16).ok() } else { None }
        };
        let first = unit(start + 1);
        let pair = self.text.get(start + 5..start + 7) == Some("\\u");
        let second = if pair { unit(start + 7) } else { None };
        let units = [first.unwrap_or(0xd800), second.unwrap_or(0)];
        let is_pair = (0xd800..0xdc00).contains(&units[0]);
        let units = if is_pair { &units[..] } else { &units[..1] };
        match char::decode_utf16(units.iter().copied()).next() {
            Some(Ok(character)) => {
                text.push(character);
                self.at += if is_pair { 11 } else { 5 };
                Ok(())
            }
            _ => self.fail(code::BAD_LITERAL, start, "u"),
        }
    }
}

fn whole(number: u64) -> Value {
    match i64::try_from(number) {
        Ok(number) => Value::Int64(number),
        Err(_) => Value::Double(number as f64),
    }
}

fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

pub(crate) fn is_name_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Token> {
        tokens(text).unwrap().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn words_numbers_texts_and_symbols_are_told_apart() {
        let word = |text: &str| Token::Word(text.to_owned());
        assert_eq!(
            all("c.x>>>-1.5e3 -- rest\n@p"),
            [
                word("c"),
                Token::Symbol("."),
                word("x"),
                Token::Symbol(">>>"),
                Token::Symbol("-"),
                Token::Number(Value::Double(1500.0)),
                Token::Parameter("@p".into()),
                Token::End
            ]
        );
        assert_eq!(all("0xFF")[0], Token::Number(Value::Int64(255)));
        assert_eq!(all(r#"'it\'s'"#)[0], Token::Text("it's".into()));
        assert_eq!(all(r#""\ud83d\ude00é""#)[0], Token::Text("😀é".into()));
        assert_eq!(all("/* a */ .5")[0], Token::Number(Value::Double(0.5)));
    }

    #[test]
    fn what_is_no_token_is_refused_at_its_place() {
        for text in ["'abc", "1e999", "#", "'\\ud83d'", "'\\x'", "@", "/* a", "1abc", "0x"] {
            let error = tokens(text).expect_err(text);
            assert!(error.span.is_some_and(|span| span.end <= text.len()), "{text}");
        }
    }
}
