//! The standard tokenizer: words by the rules of UAX #29, as Lucene's has them. Text of ASCII alone takes a short way.

use super::token::{Kind, Token};
use unicode_segmentation::UnicodeSegmentation;

/// Characters of a token; longer ones are cut into pieces.
pub(crate) const LENGTH_MAX: usize = 255;

/// The tokens of a text.
pub(crate) fn tokenize(text: &str, length_max: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut words = Words::new(text);
    while let Some((start, end, kind)) = words.next() {
        push_cut(&mut tokens, &text[start..end], start, kind, length_max);
    }
    tokens
}

fn push_cut(tokens: &mut Vec<Token>, word: &str, start: usize, kind: Kind, length_max: usize) {
    let mut rest = word;
    let mut at = start;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(length_max).map_or(rest.len(), |(index, _)| index);
        let mut token = Token::new(&rest[..end], at, tokens.len());
        token.kind = kind;
        tokens.push(token);
        at += end;
        rest = &rest[end..];
    }
}

/// Walks over the words of a text.
pub(crate) struct Words<'a> {
    text: &'a str,
    at: usize,
    /// The bounds of words of a text that is not ASCII, and one that was looked at and not taken.
    bounds: Option<std::iter::Peekable<unicode_segmentation::UWordBoundIndices<'a>>>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str) -> Words<'a> {
        let bounds = (!text.is_ascii()).then(|| text.split_word_bound_indices().peekable());
        Words { text, at: 0, bounds }
    }

    /// First byte, byte behind the last, and kind of the next word.
    pub(crate) fn next(&mut self) -> Option<(usize, usize, Kind)> {
        if self.bounds.is_some() { self.next_unicode() } else { self.next_ascii() }
    }

    fn next_ascii(&mut self) -> Option<(usize, usize, Kind)> {
        let bytes = self.text.as_bytes();
        loop {
            while self.at < bytes.len() && !is_word_byte(bytes[self.at]) {
                self.at += 1;
            }
            if self.at >= bytes.len() {
                return None;
            }
            let start = self.at;
            let mut letters = false;
            let mut digits = false;
            while self.at < bytes.len() {
                let byte = bytes[self.at];
                if is_word_byte(byte) {
                    letters |= byte.is_ascii_alphabetic();
                    digits |= byte.is_ascii_digit();
                    self.at += 1;
                } else if joins(bytes, self.at) {
                    self.at += 1;
                } else {
                    break;
                }
            }
            if letters || digits {
                return Some((start, self.at, if letters { Kind::Word } else { Kind::Number }));
            }
        }
    }

    fn next_unicode(&mut self) -> Option<(usize, usize, Kind)> {
        let bounds = self.bounds.as_mut()?;
        loop {
            let (start, word) = bounds.next()?;
            let Some(kind) = kind_of(word) else { continue };
            let mut end = start + word.len();
            if kind == Kind::SoutheastAsian {
                while let Some((_, more)) = bounds.peek()
                    && kind_of(more) == Some(Kind::SoutheastAsian)
                {
                    end += more.len();
                    bounds.next();
                }
            }
            return Some((start, end, kind));
        }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether the byte at a place joins the letters or the digits on both of its sides.
fn joins(bytes: &[u8], at: usize) -> bool {
    let (Some(before), Some(after)) = (at.checked_sub(1).map(|it| bytes[it]), bytes.get(at + 1))
    else {
        return false;
    };
    match bytes[at] {
        b'.' | b'\'' => {
            before.is_ascii_alphabetic() && after.is_ascii_alphabetic()
                || before.is_ascii_digit() && after.is_ascii_digit()
        }
        b':' => before.is_ascii_alphabetic() && after.is_ascii_alphabetic(),
        b',' | b';' => before.is_ascii_digit() && after.is_ascii_digit(),
        _ => false,
    }
}

/// The kind of a word, or none for what is no word.
fn kind_of(word: &str) -> Option<Kind> {
    let first = word.chars().find(|c| c.is_alphanumeric());
    let Some(first) = first else {
        return word.chars().next().filter(|c| is_emoji(*c)).map(|_| Kind::Emoji);
    };
    Some(match first as u32 {
        0x3041..=0x309F => Kind::Hiragana,
        0x30A0..=0x30FF | 0x31F0..=0x31FF | 0xFF66..=0xFF9D => Kind::Katakana,
        0x1100..=0x11FF | 0xAC00..=0xD7A3 | 0x3130..=0x318F => Kind::Hangul,
        0x2E80..=0x2FDF | 0x3005 | 0x3007 | 0x3021..=0x3029 => Kind::Ideographic,
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2FA1F => {
            Kind::Ideographic
        }
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF => Kind::SoutheastAsian,
        _ if word.chars().all(|c| c.is_numeric() || !c.is_alphanumeric()) => Kind::Number,
        _ => Kind::Word,
    })
}

fn is_emoji(c: char) -> bool {
    matches!(c as u32, 0x1F300..=0x1FAFF | 0x2600..=0x27BF | 0x1F1E6..=0x1F1FF | 0x2B50 | 0x2B55)
}

/// Standard tokens in lower case, one after another, without an allocation for each.
pub(crate) struct StandardStream<'a> {
    words: Words<'a>,
    pending: Option<(usize, usize)>,
    token: tantivy::tokenizer::Token,
}

impl<'a> StandardStream<'a> {
    pub(crate) fn new(text: &'a str) -> StandardStream<'a> {
        StandardStream {
            words: Words::new(text),
            pending: None,
            token: tantivy::tokenizer::Token::default(),
        }
    }
}

impl tantivy::tokenizer::TokenStream for StandardStream<'_> {
    fn advance(&mut self) -> bool {
        let next = match self.pending.take() {
            Some(rest) => Some(rest),
            None => self.words.next().map(|(start, end, _)| (start, end)),
        };
        let Some((start, mut end)) = next else { return false };
        let text = self.words.text;
        if end - start > LENGTH_MAX
            && let Some((cut, _)) = text[start..end].char_indices().nth(LENGTH_MAX)
        {
            self.pending = Some((start + cut, end));
            end = start + cut;
        }
        self.token.text.clear();
        lower_into(&text[start..end], &mut self.token.text);
        self.token.offset_from = start;
        self.token.offset_to = end;
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    fn token(&self) -> &tantivy::tokenizer::Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut tantivy::tokenizer::Token {
        &mut self.token
    }
}

/// Appends a text in lower case, character by character: the length in characters stays.
pub(crate) fn lower_into(text: &str, target: &mut String) {
    if text.is_ascii() {
        let from = target.len();
        target.push_str(text);
        target[from..].make_ascii_lowercase();
        return;
    }
    target.extend(text.chars().map(lower));
}

/// A character in lower case. `İ` has two characters in lower case; the first is taken, as Lucene does.
pub(crate) fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokenize(text, LENGTH_MAX).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn words_are_cut_by_the_rules_of_unicode() {
        assert_eq!(
            words("The quick, O'Neill's 3.14 foo_bar x:y a.b.c 1,000"),
            ["The", "quick", "O'Neill's", "3.14", "foo_bar", "x:y", "a.b.c", "1,000"]
        );
        assert_eq!(words("wi-fi and/or C++ _ ..."), ["wi", "fi", "and", "or", "C"]);
        assert_eq!(
            words("Grüße 東京 ひら カタカナ"),
            ["Grüße", "東", "京", "ひ", "ら", "カタカナ"]
        );
    }

    #[test]
    fn ascii_takes_the_same_cuts_as_unicode() {
        for text in
            ["a.b 1.2 a.1 1.a _a_ a_ 1_000 it's 'x' x' a:b a::b 1:2 a;b 1;2", "a-b--c x.y. z"]
        {
            let unicode: Vec<String> = tokenize(&format!("{text} é"), LENGTH_MAX)
                .into_iter()
                .map(|it| it.text)
                .filter(|it| it != "é")
                .collect();
            assert_eq!(words(text), unicode, "{text}");
        }
    }

    #[test]
    fn long_words_are_cut_into_pieces() {
        let tokens = tokenize(&"x".repeat(600), LENGTH_MAX);
        assert_eq!(tokens.iter().map(|it| it.text.len()).collect::<Vec<_>>(), [255, 255, 90]);
    }
}
