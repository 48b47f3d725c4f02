//! Filters that make grams: pieces of tokens, and several tokens in one.

use crate::analysis::token::{Budget, Token};

/// All pieces of each token with lengths between two bounds, at the token's position.
pub(super) fn ngrams(tokens: &[Token], min: usize, max: usize) -> Vec<Token> {
    let mut grams = Vec::new();
    let mut budget = Budget::new();
    for token in tokens {
        let chars: Vec<char> = token.text.chars().collect();
        for from in 0..chars.len() {
            for length in min..=max.min(chars.len() - from) {
                if !budget.take(length) {
                    return grams;
                }
                grams.push(token.with_text(chars[from..from + length].iter().collect()));
            }
        }
    }
    grams
}

/// The beginnings, or the ends, of each token.
pub(super) fn edges(tokens: &[Token], min: usize, max: usize, back: bool) -> Vec<Token> {
    let mut grams = Vec::new();
    let mut budget = Budget::new();
    for token in tokens {
        let chars: Vec<char> = token.text.chars().collect();
        for length in min..=max.min(chars.len()) {
            if !budget.take(length) {
                return grams;
            }
            let from = if back { chars.len() - length } else { 0 };
            grams.push(token.with_text(chars[from..from + length].iter().collect()));
        }
    }
    grams
}

/// Whether shingles keep the single tokens.
#[derive(Clone, Copy)]
pub(super) struct Singles {
    pub(super) always: bool,
    /// Only where there are too few tokens for a shingle.
    pub(super) if_none: bool,
}

/// Joins neighbouring tokens. Dropped tokens between them show as the filler.
pub(super) fn shingles(
    tokens: &[Token],
    min: usize,
    max: usize,
    singles: Singles,
    separator: &str,
    filler: &str,
) -> Vec<Token> {
    let line = with_fillers(tokens, filler);
    let mut budget = Budget::new();
    let mut shingles = Vec::new();
    let singles_now = singles.always || (singles.if_none && line.len() < min);
    let mut position = 0;
    for from in 0..line.len() {
        let Some(first) = &line[from] else {
            continue_filler(&mut position, singles_now);
            continue;
        };
        let before = shingles.len();
        if singles_now {
            let mut token = first.clone();
            token.position = position;
            shingles.push(token);
        }
        for length in min..=max {
            let Some(last) = line.get(from + length - 1) else { break };
            let texts: Vec<&str> = line[from..from + length]
                .iter()
                .map(|it| it.as_ref().map_or(filler, |token| token.text.as_str()))
                .collect();
            let mut token = first.with_text(texts.join(separator));
            if !budget.take(token.text.len()) {
                return shingles;
            }
            token.end = last.as_ref().map_or(first.end, |it| it.end);
            token.position = position;
            token.length = if singles_now { length } else { 1 };
            shingles.push(token);
        }
        if shingles.len() > before || singles_now {
            position += 1;
        }
    }
    shingles
}

fn continue_filler(position: &mut usize, singles: bool) {
    if singles {
        *position += 1;
    }
}

/// The tokens one position after another, with nothing where tokens were dropped.
fn with_fillers(tokens: &[Token], filler: &str) -> Vec<Option<Token>> {
    let mut line: Vec<Option<Token>> = Vec::with_capacity(tokens.len());
    let mut next = tokens.first().map_or(0, |it| if filler.is_empty() { it.position } else { 0 });
    for token in tokens {
        while !filler.is_empty() && next < token.position && line.len() <= tokens.len() * 4 {
            line.push(None);
            next += 1;
        }
        line.push(Some(token.clone()));
        next = token.position + 1;
    }
    line
}
