//! Filters that drop tokens. Positions of the others stay, so that phrases know of the gaps.

use super::Words;
use crate::analysis::standard::lower;
use crate::analysis::token::Kind;
use crate::analysis::token::Token;
use regex::Regex;
use std::collections::{BTreeMap, HashSet};

/// Drops stop words. A stop word at the end stays where `trailing` is false, as half-typed words may be one.
pub(super) fn stop(
    tokens: Vec<Token>,
    words: &Words,
    ignore_case: bool,
    trailing: bool,
) -> Vec<Token> {
    let is_stop = |token: &Token| {
        if ignore_case {
            words.contains(&token.text.chars().map(lower).collect::<String>())
        } else {
            words.contains(&token.text)
        }
    };
    let last = tokens.len().saturating_sub(1);
    let keep = |(number, token): &(usize, Token)| !is_stop(token) || (!trailing && *number == last);
    tokens.into_iter().enumerate().filter(keep).map(|(_, token)| token).collect()
}

/// Drops tokens whose text came before, anywhere or at the same position.
pub(super) fn unique(tokens: Vec<Token>, same_position: bool) -> Vec<Token> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut position = None;
    let mut kept = Vec::with_capacity(tokens.len());
    for token in tokens {
        if same_position && position != Some(token.position) {
            seen.clear();
            position = Some(token.position);
        }
        if seen.insert(token.text.clone()) {
            kept.push(token);
        }
    }
    kept
}

fn contains(words: &Words, text: &str, ignore_case: bool) -> bool {
    if ignore_case {
        let text: String = text.chars().map(lower).collect();
        return words.iter().any(|it| it.to_lowercase() == text);
    }
    words.contains(text)
}

/// Keeps only some words.
pub(super) fn keep(mut tokens: Vec<Token>, words: &Words, ignore_case: bool) -> Vec<Token> {
    tokens.retain(|it| contains(words, &it.text, ignore_case));
    tokens
}

/// Marks words that stemmers leave alone.
pub(super) fn mark(mut tokens: Vec<Token>, words: &Words, ignore_case: bool) -> Vec<Token> {
    for token in &mut tokens {
        token.keyword |= contains(words, &token.text, ignore_case);
    }
    tokens
}

/// Every token twice, once as a keyword.
pub(super) fn repeat(tokens: Vec<Token>) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len() * 2);
    for token in tokens {
        out.push(Token { keyword: true, ..token.clone() });
        out.push(token);
    }
    out
}

/// Cuts an article in front of an apostrophe.
pub(super) fn elision(text: &str, articles: &Words) -> String {
    let Some((at, mark)) = text.char_indices().find(|(_, c)| matches!(c, '\'' | '’')) else {
        return text.to_owned();
    };
    let article: String = text[..at].chars().map(lower).collect();
    if articles.contains(&article) {
        text[at + mark.len_utf8()..].to_owned()
    } else {
        text.to_owned()
    }
}

/// Cuts `'s` from the end of a word.
pub(super) fn possessive(text: &str) -> String {
    let mut chars = text.chars().rev();
    let s = matches!(chars.next(), Some('s' | 'S'));
    match chars.next() {
        Some(mark @ ('\'' | '’' | '＇')) if s => {
            text[..text.len() - 1 - mark.len_utf8()].to_owned()
        }
        _ => text.to_owned(),
    }
}

/// Cuts `'s` from words with an apostrophe, and the dots from acronyms.
pub(super) fn classic(mut tokens: Vec<Token>) -> Vec<Token> {
    for token in &mut tokens {
        match token.kind {
            Kind::Apostrophe => token.text = possessive(&token.text),
            Kind::Acronym => token.text.retain(|c| c != '.'),
            _ => {}
        }
    }
    tokens
}

/// The groups of patterns as tokens of their own.
pub(super) fn capture(tokens: &[Token], patterns: &[Regex], preserve: bool) -> Vec<Token> {
    let mut out = Vec::new();
    for token in tokens {
        if preserve {
            out.push(token.clone());
        }
        let before = out.len();
        for pattern in patterns {
            for captures in pattern.captures_iter(&token.text) {
                for group in captures.iter().skip(1).flatten() {
                    if !group.as_str().is_empty() && group.as_str() != token.text {
                        out.push(token.with_text(group.as_str().to_owned()));
                    }
                }
            }
        }
        if out.len() == before && !preserve {
            out.push(token.clone());
        }
    }
    out
}

/// Gives words the stems of a list, and keeps stemmers away from them.
pub(super) fn override_stems(
    mut tokens: Vec<Token>,
    rules: &BTreeMap<String, String>,
) -> Vec<Token> {
    for token in tokens.iter_mut().filter(|it| !it.keyword) {
        if let Some(stem) = rules.get(&token.text) {
            token.text = stem.clone();
            token.keyword = true;
        }
    }
    tokens
}

/// Puts synonyms in the place of words.
pub(super) fn synonyms(
    tokens: &[Token],
    rules: &BTreeMap<String, Vec<String>>,
    ignore_case: bool,
) -> Vec<Token> {
    let mut out = Vec::new();
    for token in tokens {
        let text: String = match ignore_case {
            true => token.text.chars().map(lower).collect(),
            false => token.text.clone(),
        };
        match rules.get(&text) {
            Some(others) => out.extend(others.iter().map(|it| token.with_text(it.clone()))),
            None => out.push(token.clone()),
        }
    }
    out
}
