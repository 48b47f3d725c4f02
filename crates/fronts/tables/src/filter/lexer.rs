//! The words of a filter: names, operators, parentheses, literals of every type.

use lazuli_azure::odata::{Guid, Value};
use lazuli_http::date::parse_iso8601;

use super::{BadFilter, Comparison};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Compare(Comparison),
    Literal(Value<'static>),
    Name(String),
}

/// All tokens of the text. At most one per byte, so the text's limit bounds them.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, BadFilter> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let (token, tail) = match first {
            '(' => (Token::Open, &rest[1..]),
            ')' => (Token::Close, &rest[1..]),
            '\'' => {
                let (text, tail) = quoted(rest)?;
                (Token::Literal(Value::String(text.into())), tail)
            }
            _ => word(rest)?,
        };
        tokens.push(token);
        rest = tail;
    }
}

/// Text between quotation marks, where two of them stand for one. `text` begins with the first.
fn quoted(text: &str) -> Result<(String, &str), BadFilter> {
    let mut out = String::new();
    let mut rest = text.strip_prefix('\'').ok_or(BadFilter("a quotation mark is missing"))?;
    loop {
        let (piece, tail) =
            rest.split_once('\'').ok_or(BadFilter("a quotation mark is not closed"))?;
        out.push_str(piece);
        match tail.strip_prefix('\'') {
            Some(tail) => {
                out.push('\'');
                rest = tail;
            }
            None => return Ok((out, tail)),
        }
    }
}

fn word(text: &str) -> Result<(Token, &str), BadFilter> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '\'' | ',');
    let (word, tail) = text.split_at(text.find(ends).unwrap_or(text.len()));
    if tail.starts_with('\'') {
        let (quoted, tail) = quoted(tail)?;
        return Ok((Token::Literal(typed(word, &quoted)?), tail));
    }
    let token = match word {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "eq" => Token::Compare(Comparison::Equal),
        "ne" => Token::Compare(Comparison::NotEqual),
        "gt" => Token::Compare(Comparison::Greater),
        "ge" => Token::Compare(Comparison::GreaterOrEqual),
        "lt" => Token::Compare(Comparison::Less),
        "le" => Token::Compare(Comparison::LessOrEqual),
        "true" => Token::Literal(Value::Boolean(true)),
        "false" => Token::Literal(Value::Boolean(false)),
        "NaN" => Token::Literal(Value::Double(f64::NAN)),
        "INF" | "Infinity" => Token::Literal(Value::Double(f64::INFINITY)),
        "-INF" | "-Infinity" => Token::Literal(Value::Double(f64::NEG_INFINITY)),
        _ if word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            Token::Literal(number(word).ok_or(BadFilter("a number can't be read"))?)
        }
        _ if is_name(word) => Token::Name(word.to_owned()),
        _ => return Err(BadFilter("a word can't be read")),
    };
    Ok((token, tail))
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A literal with its type before it, such as `datetime'…'`.
fn typed(kind: &str, text: &str) -> Result<Value<'static>, BadFilter> {
    let value = match kind {
        "datetime" => parse_iso8601(text).map(Value::DateTime),
        "guid" => Guid::parse(text).map(Value::Guid),
        "X" | "x" | "binary" => hex(text).map(|bytes| Value::Binary(bytes.into())),
        _ => None,
    };
    value.ok_or(BadFilter("a typed literal can't be read"))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<_>>>()?;
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    Some(pairs.map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// `1` is an Int32 if it fits and an Int64 otherwise, `1L` an Int64, and all else a Double.
fn number(word: &str) -> Option<Value<'static>> {
    if let Some(digits) = word.strip_suffix(['L', 'l']) {
        return digits.parse().ok().map(Value::Int64);
    }
    if let Ok(value) = word.parse() {
        return Some(Value::Int32(value));
    }
    if let Ok(value) = word.parse() {
        return Some(Value::Int64(value));
    }
    let word = word.strip_suffix(['D', 'd', 'F', 'f']).unwrap_or(word);
    word.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Double)
}
