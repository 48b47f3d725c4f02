//! Text into tokens.

use lazuli_engine::Result;

use super::bad;
use crate::limits::FILTER_CHARS_MAX;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A keyword or a name, as it was written.
    Word(String),
    /// A name in brackets or double quotes, which is never a keyword.
    Name(String),
    Integer(i64),
    Double(f64),
    Text(String),
    Symbol(&'static str),
    End,
}

/// Symbols, the longer ones first.
const SYMBOLS: &[&str] =
    &["<=", ">=", "<>", "!=", "=", "<", ">", "(", ")", ",", ".", ";", "+", "-", "*", "/", "%"];

/// The tokens of a text, with [`Token::End`] at the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>> {
    let characters = text.chars().count();
    if characters > FILTER_CHARS_MAX {
        let most = FILTER_CHARS_MAX;
        return Err(bad(format!("a text of {characters} characters; {most} are allowed")));
    }
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '\'' => quoted(rest, '\'').map(|(text, length)| (Token::Text(text), length))?,
            '"' => quoted(rest, '"').map(|(text, length)| (Token::Name(text), length))?,
            '[' => quoted(rest, ']').map(|(text, length)| (Token::Name(text), length))?,
            '0'..='9' => number(rest)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest)?,
            _ if first.is_alphabetic() || first == '_' => {
                let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | '$');
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                (Token::Word(rest[..length].to_owned()), length)
            }
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => (Token::Symbol(symbol), symbol.len()),
                None => return Err(bad(format!("'{first}' is not expected here"))),
            },
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    tokens.push(Token::End);
    Ok(tokens)
}

/// What stands behind the first character up to the closing one, which is doubled where it is meant.
fn quoted(text: &str, close: char) -> Result<(String, usize)> {
    let mut content = String::new();
    let mut rest = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = rest.next() {
        if character != close {
            content.push(character);
        } else if rest.next_if(|(_, next)| *next == close).is_some() {
            content.push(close);
        } else {
            return Ok((content, at + close.len_utf8()));
        }
    }
    Err(bad(format!("there is no closing {close}")))
}

fn number(text: &str) -> Result<(Token, usize)> {
    let digits = |at: usize| {
        let rest = &text[at..];
        at + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
    };
    let mut end = digits(0);
    let mut is_double = false;
    if text[end..].starts_with('.') {
        is_double = true;
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent == end + 1 + sign {
            return Err(bad("a number without digits behind its E"));
        }
        (is_double, end) = (true, exponent);
    }
    let written = &text[..end];
    let token = match is_double {
        true => written.parse().ok().filter(|value: &f64| value.is_finite()).map(Token::Double),
        // Larger than a long: the service takes it as a double.
        false => written.parse().ok().map(Token::Integer).or_else(|| {
            written.parse().ok().filter(|value: &f64| value.is_finite()).map(Token::Double)
        }),
    };
    token.map(|token| (token, end)).ok_or_else(|| bad("a number is too large"))
}
