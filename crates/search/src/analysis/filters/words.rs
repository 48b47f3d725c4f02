//! Filters that take words apart or join them: parts of compound words, parts between case changes, common pairs.

use super::Words;
use crate::analysis::standard::lower;
use crate::analysis::token::{Budget, Token};

/// Joins common words with their neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommonGrams {
    pub(crate) words: Words,
    pub(crate) ignore_case: bool,
    /// Whether words that are part of a pair are left out.
    pub(crate) query: bool,
}

impl CommonGrams {
    fn is_common(&self, token: &Token) -> bool {
        if self.ignore_case {
            return self.words.contains(&token.text.chars().map(lower).collect::<String>());
        }
        self.words.contains(&token.text)
    }

    pub(super) fn apply(&self, tokens: &[Token]) -> Vec<Token> {
        let mut out = Vec::new();
        let pair = |at: usize| -> bool {
            tokens.get(at + 1).is_some_and(|next| {
                next.position == tokens[at].position + 1
                    && (self.is_common(&tokens[at]) || self.is_common(next))
            })
        };
        for (at, token) in tokens.iter().enumerate() {
            let paired = pair(at);
            let before = at.checked_sub(1).is_some_and(pair);
            let covered = paired || (before && at + 1 == tokens.len());
            if !(self.query && covered) {
                out.push(token.clone());
            }
            if paired {
                let next = &tokens[at + 1];
                let mut gram = token.with_text(format!("{}_{}", token.text, next.text));
                gram.end = next.end;
                gram.length = 2;
                out.push(gram);
            }
        }
        out
    }
}

/// Finds words of a dictionary inside of longer ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decompounder {
    pub(crate) words: Words,
    pub(crate) word_min: usize,
    pub(crate) part_min: usize,
    pub(crate) part_max: usize,
    pub(crate) longest: bool,
}

impl Decompounder {
    pub(super) fn apply(&self, tokens: &[Token]) -> Vec<Token> {
        let known: std::collections::BTreeSet<String> =
            self.words.iter().map(|it| it.to_lowercase()).collect();
        let mut out = Vec::new();
        let mut budget = Budget::new();
        for token in tokens {
            out.push(token.clone());
            let chars: Vec<char> = token.text.chars().collect();
            if chars.len() < self.word_min {
                continue;
            }
            for from in 0..=chars.len().saturating_sub(self.part_min) {
                let mut best = None;
                for length in self.part_min..=self.part_max.min(chars.len() - from) {
                    let part: String = chars[from..from + length].iter().collect();
                    if known.contains(&part.to_lowercase()) && budget.take(part.len()) {
                        if self.longest {
                            best = Some(part);
                        } else {
                            out.push(token.with_text(part));
                        }
                    }
                }
                out.extend(best.map(|it| token.with_text(it)));
            }
        }
        out
    }
}

/// Splits words at case changes, digits and signs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WordDelimiter {
    pub(crate) parts: bool,
    pub(crate) numbers: bool,
    pub(crate) join_words: bool,
    pub(crate) join_numbers: bool,
    pub(crate) join_all: bool,
    pub(crate) split_case: bool,
    pub(crate) preserve: bool,
    pub(crate) split_numbers: bool,
    pub(crate) possessive: bool,
    pub(crate) protected: Words,
}

impl Default for WordDelimiter {
    fn default() -> WordDelimiter {
        WordDelimiter {
            parts: true,
            numbers: true,
            join_words: false,
            join_numbers: false,
            join_all: false,
            split_case: true,
            preserve: false,
            split_numbers: true,
            possessive: true,
            protected: Words::default(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Sign,
}

fn class(c: char) -> Class {
    match c {
        c if c.is_numeric() => Class::Digit,
        c if c.is_uppercase() => Class::Upper,
        c if c.is_alphabetic() => Class::Lower,
        _ => Class::Sign,
    }
}

impl WordDelimiter {
    pub(super) fn apply(&self, tokens: &[Token]) -> Vec<Token> {
        let mut out = Vec::new();
        let mut shift = 0;
        for token in tokens {
            let at = out.len();
            self.split(token, token.position + shift, &mut out);
            let last = out[at..].iter().map(|it| it.position).max();
            shift = last.map_or(shift, |last| last.saturating_sub(token.position).max(shift));
        }
        out
    }

    fn split(&self, token: &Token, position: usize, out: &mut Vec<Token>) {
        let parts = self.parts_of(&token.text);
        let whole = parts.len() == 1 && parts[0] == (0, token.text.len(), parts[0].2);
        if self.protected.contains(&token.text) || whole {
            out.push(Token { position, ..token.clone() });
            return;
        }
        if self.preserve {
            out.push(Token { position, ..token.clone() });
        }
        let piece = |from: usize, to: usize, position: usize| {
            let mut piece = token.with_text(token.text[from..to].to_owned());
            if token.end - token.start == token.text.len() {
                piece.start = token.start + from;
                piece.end = token.start + to;
            }
            piece.position = position;
            piece
        };
        let mut at = position;
        for (number, (from, to, digits)) in parts.iter().enumerate() {
            if (*digits && self.numbers) || (!digits && self.parts) {
                out.push(piece(*from, *to, at));
                at += 1;
            }
            let starts = number == 0 || parts[number - 1].2 != *digits;
            let run = parts[number..].iter().take_while(|it| it.2 == *digits).count();
            let join = if *digits { self.join_numbers } else { self.join_words };
            if join && starts && run > 1 {
                out.push(self.joined(token, &parts[number..number + run], at.saturating_sub(1)));
            }
        }
        if self.join_all && parts.len() > 1 {
            out.push(self.joined(token, &parts, position));
        }
    }

    fn joined(&self, token: &Token, parts: &[(usize, usize, bool)], position: usize) -> Token {
        let text = parts.iter().map(|(from, to, _)| &token.text[*from..*to]).collect();
        Token { position, ..token.with_text(text) }
    }

    /// First byte, byte behind the last, and whether it is a number, of every part.
    fn parts_of(&self, text: &str) -> Vec<(usize, usize, bool)> {
        let text = match text.strip_suffix("'s").or_else(|| text.strip_suffix("'S")) {
            Some(rest) if self.possessive => rest,
            _ => text,
        };
        let mut parts: Vec<(usize, usize, bool)> = Vec::new();
        let mut before = Class::Sign;
        for (at, c) in text.char_indices() {
            let now = class(c);
            let splits = match (before, now) {
                (Class::Sign, _) => true,
                (Class::Digit, Class::Digit) => false,
                (Class::Digit, _) | (_, Class::Digit) => self.split_numbers,
                (Class::Lower, Class::Upper) => self.split_case,
                _ => false,
            };
            if now != Class::Sign {
                match parts.last_mut() {
                    Some(part) if !splits => part.1 = at + c.len_utf8(),
                    _ => parts.push((at, at + c.len_utf8(), now == Class::Digit)),
                }
            }
            before = now;
        }
        parts
    }
}
