//! One token of a text.

use crate::limits;

/// A term and where it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
    /// The number of the position; tokens at one position are alternatives.
    pub position: usize,
    /// How many positions the token covers.
    pub length: usize,
    /// Whether stemmers leave the token alone.
    pub keyword: bool,
    /// What kind of token the tokenizer saw.
    pub kind: Kind,
}

/// How much the tokens of one value may still grow. Grams and paths can be far longer than the text they are made of.
pub(crate) struct Budget {
    tokens: usize,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget { tokens: limits::TOKENS_MAX, bytes: limits::TOKEN_BYTES_MAX }
    }

    /// Whether there is room for one more token.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        if self.tokens == 0 || self.bytes < bytes {
            return false;
        }
        self.tokens -= 1;
        self.bytes -= bytes;
        true
    }
}

/// Kinds of tokens that some filters tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    Number,
    Ideographic,
    Hiragana,
    Katakana,
    Hangul,
    SoutheastAsian,
    Emoji,
    Acronym,
    Apostrophe,
}

/// The nearest place before a byte where a character begins.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Token {
    /// A token at a place.
    pub(crate) fn new(text: &str, start: usize, position: usize) -> Token {
        Token {
            text: text.to_owned(),
            start,
            end: start + text.len(),
            position,
            length: 1,
            keyword: false,
            kind: Kind::Word,
        }
    }

    /// A whole text as one token.
    pub(crate) fn whole(text: &str) -> Token {
        Token::new(text, 0, 0)
    }

    /// Another text at the same place.
    pub(crate) fn with_text(&self, text: String) -> Token {
        Token { text, ..self.clone() }
    }
}
