//! Tokenizers: they cut a text into tokens.

pub(crate) mod options;

use super::standard;
use super::token::{Budget, Kind, Token};
use regex::Regex;

/// One tokenizer with its parameters.
#[derive(Clone, Debug)]
pub(crate) enum Tokenizer {
    Standard {
        length_max: usize,
    },
    Classic {
        length_max: usize,
    },
    UaxUrlEmail {
        length_max: usize,
    },
    Keyword,
    Whitespace {
        length_max: usize,
    },
    Letter {
        lower: bool,
    },
    NGram {
        min: usize,
        max: usize,
        edge: bool,
        chars: Vec<CharClass>,
    },
    PathHierarchy {
        delimiter: char,
        replacement: char,
        skip: usize,
        reverse: bool,
    },
    /// The pattern splits (`group` −1) or says what a token is.
    Pattern {
        pattern: Regex,
        group: i32,
    },
}

/// Kinds of characters that n-grams are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CharClass {
    Letter,
    Digit,
    Whitespace,
    Punctuation,
    Symbol,
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Tokenizer) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl CharClass {
    fn contains(self, c: char) -> bool {
        match self {
            CharClass::Letter => c.is_alphabetic(),
            CharClass::Digit => c.is_numeric(),
            CharClass::Whitespace => c.is_whitespace(),
            CharClass::Punctuation => {
                c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c)
                    || matches!(c as u32, 0x2010..=0x2027 | 0x2030..=0x205E | 0x3001..=0x3003)
            }
            CharClass::Symbol => {
                "$+<=>^`|~".contains(c)
                    || matches!(c as u32, 0x20A0..=0x20CF | 0x2100..=0x214F | 0x2190..=0x23FF)
            }
        }
    }
}

impl Tokenizer {
    pub(crate) fn tokenize(&self, text: &str) -> Vec<Token> {
        match self {
            Tokenizer::Standard { length_max } => standard::tokenize(text, *length_max),
            Tokenizer::Classic { length_max } => classic(text, *length_max),
            Tokenizer::UaxUrlEmail { length_max } => url_email(text, *length_max),
            Tokenizer::Keyword => vec![Token::whole(text)],
            Tokenizer::Whitespace { length_max } => runs(text, *length_max, |c| !c.is_whitespace()),
            Tokenizer::Letter { lower } => letters(text, *lower),
            Tokenizer::NGram { min, max, edge, chars } => ngrams(text, *min, *max, *edge, chars),
            Tokenizer::PathHierarchy { delimiter, replacement, skip, reverse } => {
                paths(text, *delimiter, *replacement, *skip, *reverse)
            }
            Tokenizer::Pattern { pattern, group } => by_pattern(text, pattern, *group),
        }
    }
}

/// Runs of characters that a rule takes, cut where they are too long.
fn runs(text: &str, length_max: usize, takes: impl Fn(char) -> bool) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut start = None;
    let mut count = 0;
    for (at, c) in text.char_indices().chain([(text.len(), '\0')]) {
        let inside = at < text.len() && takes(c);
        if let Some(from) = start
            && (!inside || count == length_max)
        {
            tokens.push(Token::new(&text[from..at], from, tokens.len()));
            start = None;
        }
        if inside && start.is_none() {
            start = Some(at);
            count = 0;
        }
        count += 1;
    }
    tokens
}

fn letters(text: &str, lower: bool) -> Vec<Token> {
    let mut tokens = runs(text, standard::LENGTH_MAX, char::is_alphabetic);
    if lower {
        for token in &mut tokens {
            token.text = token.text.chars().map(standard::lower).collect();
        }
    }
    tokens
}

fn ngrams(text: &str, min: usize, max: usize, edge: bool, chars: &[CharClass]) -> Vec<Token> {
    let takes = |c: char| chars.is_empty() || chars.iter().any(|class| class.contains(c));
    let mut tokens = Vec::new();
    let mut budget = Budget::new();
    for run in runs(text, usize::MAX, takes) {
        let mut bounds: Vec<usize> = run.text.char_indices().map(|(at, _)| at).collect();
        bounds.push(run.text.len());
        let starts = if edge { 1 } else { bounds.len() };
        for from in 0..starts.min(bounds.len()) {
            for length in min..=max {
                let Some(end) = bounds.get(from + length) else { break };
                let piece = &run.text[bounds[from]..*end];
                if !budget.take(piece.len()) {
                    return tokens;
                }
                tokens.push(Token::new(piece, run.start + bounds[from], tokens.len()));
            }
        }
    }
    tokens
}

fn paths(text: &str, delimiter: char, replacement: char, skip: usize, reverse: bool) -> Vec<Token> {
    let cuts: Vec<usize> = text.match_indices(delimiter).map(|(at, _)| at).collect();
    let width = delimiter.len_utf8();
    let replaced = |part: &str| part.replace(delimiter, &replacement.to_string());
    let mut tokens = Vec::new();
    let mut budget = Budget::new();
    let mut push = |from: usize, to: usize| {
        if from < to && budget.take(to - from) {
            let mut token = Token::new(&text[from..to], from, 0);
            token.text = replaced(&token.text);
            tokens.push(token);
        }
    };
    if reverse {
        let end = match skip {
            0 => text.len(),
            _ if skip <= cuts.len() => cuts[cuts.len() - skip] + width,
            _ => return tokens,
        };
        push(0, end);
        for cut in cuts.iter().filter(|it| **it + width < end) {
            push(cut + width, end);
        }
    } else {
        let leading = cuts.first() == Some(&0);
        let skipped = if leading { skip } else { skip.saturating_sub(1) };
        let from = if skip == 0 { 0 } else { cuts.get(skipped).copied().unwrap_or(text.len()) };
        for cut in cuts.iter().filter(|it| **it > from) {
            push(from, *cut);
        }
        push(from, text.len());
    }
    tokens
}

fn by_pattern(text: &str, pattern: &Regex, group: i32) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut push = |from: usize, to: usize| {
        if from < to {
            tokens.push(Token::new(&text[from..to], from, tokens.len()));
        }
    };
    let Ok(group) = usize::try_from(group) else {
        let mut from = 0;
        for found in pattern.find_iter(text) {
            push(from, found.start());
            from = found.end();
        }
        push(from, text.len());
        return tokens;
    };
    for captures in pattern.captures_iter(text) {
        if let Some(found) = captures.get(group) {
            push(found.start(), found.end());
        }
    }
    tokens
}

/// The grammar of the classic tokenizer: acronyms, companies, hosts and numbers with hyphens stay whole.
fn classic(text: &str, length_max: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut position = 0;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_alphanumeric()) {
        let from = text.len() - rest.len() + start;
        let (length, kind) = classic_word(&text[from..]);
        let word = &text[from..from + length];
        if word.chars().count() <= length_max {
            let mut token = Token::new(word, from, position);
            token.kind = kind;
            tokens.push(token);
        }
        position += 1;
        rest = &text[from + length..];
    }
    tokens
}

/// The length of the word at the front of a text.
fn classic_word(text: &str) -> (usize, Kind) {
    let first = text.chars().next().unwrap_or(' ');
    if is_cjk(first) {
        return (first.len_utf8(), Kind::Ideographic);
    }
    let run = |text: &str| -> usize {
        text.char_indices()
            .find(|(_, c)| !c.is_alphanumeric() || is_cjk(*c))
            .map_or(text.len(), |(at, _)| at)
    };
    let alpha = |part: &str| part.chars().all(char::is_alphabetic);
    let digit = |part: &str| part.chars().any(char::is_numeric);
    let mut end = run(text);
    let mut kind = Kind::Word;
    let mut parts = vec![&text[..end]];
    loop {
        let mut rest = text[end..].chars();
        let Some(joint) = rest.next().filter(|c| "'.@&-_/,".contains(*c)) else { break };
        let next = &text[end + 1..];
        let more = run(next);
        let part = &next[..more];
        let last = parts.last().copied().unwrap_or_default();
        let joined = match joint {
            _ if more == 0 => false,
            '\'' => alpha(last) && alpha(part),
            '@' | '.' => true,
            '&' => alpha(last) && alpha(part) && parts.len() == 1,
            _ => digit(last) || digit(part),
        };
        if !joined {
            break;
        }
        if joint == '\'' {
            kind = Kind::Apostrophe;
        }
        parts.push(part);
        end += 1 + more;
    }
    let single = parts.len() > 1 && parts.iter().all(|it| it.chars().count() == 1 && alpha(it));
    if single && text[end..].starts_with('.') {
        return (end + 1, Kind::Acronym);
    }
    (end, kind)
}

fn is_cjk(c: char) -> bool {
    matches!(c as u32, 0x3040..=0x318F | 0x3300..=0x337F | 0x3400..=0x3D2D
        | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0xAC00..=0xD7AF | 0x1100..=0x11FF)
}

/// Standard tokens, with addresses of pages and mailboxes in one piece.
fn url_email(text: &str, length_max: usize) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut from = 0;
    for run in runs(text, usize::MAX, |c| !c.is_whitespace() && !"<>\"()".contains(c)) {
        let trimmed = run.text.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']);
        if trimmed.chars().count() > length_max || !(is_url(trimmed) || is_email(trimmed)) {
            continue;
        }
        push_standard(&mut tokens, text, from, run.start, length_max);
        tokens.push(Token::new(trimmed, run.start, tokens.len()));
        from = run.start + trimmed.len();
    }
    push_standard(&mut tokens, text, from, text.len(), length_max);
    tokens
}

fn push_standard(tokens: &mut Vec<Token>, text: &str, from: usize, to: usize, length_max: usize) {
    for mut token in standard::tokenize(&text[from..to], length_max) {
        token.start += from;
        token.end += from;
        token.position = tokens.len();
        tokens.push(token);
    }
}

fn is_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let scheme = ["http://", "https://", "ftp://", "file://"];
    if let Some(host) = scheme.iter().find_map(|it| lower.strip_prefix(it)) {
        return host.starts_with(|c: char| c.is_alphanumeric());
    }
    let host = lower.split(['/', ':', '?', '#']).next().unwrap_or_default();
    is_host(host)
}

/// Whether a name ends in a domain that is well known.
fn is_host(host: &str) -> bool {
    const TOP: [&str; 24] = [
        "com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "io", "de", "uk", "fr",
        "us", "eu", "jp", "cn", "ru", "it", "es", "nl", "ch", "se", "dev",
    ];
    let labels: Vec<&str> = host.split('.').collect();
    let good = |label: &&str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    labels.len() > 1 && labels.iter().all(good) && labels.last().is_some_and(|it| TOP.contains(it))
}

fn is_email(text: &str) -> bool {
    let Some((local, host)) = text.split_once('@') else { return false };
    let good = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c);
    !local.is_empty() && local.chars().all(good) && is_host(&host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        tokenizer.tokenize(text).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn paths_are_all_beginnings_or_all_ends() {
        let path = |skip, reverse| Tokenizer::PathHierarchy {
            delimiter: '/',
            replacement: '/',
            skip,
            reverse,
        };
        assert_eq!(texts(&path(0, false), "/a/b/c"), ["/a", "/a/b", "/a/b/c"]);
        assert_eq!(texts(&path(1, false), "/a/b/c"), ["/b", "/b/c"]);
        assert_eq!(texts(&path(0, true), "a/b/c"), ["a/b/c", "b/c", "c"]);
    }

    #[test]
    fn ngrams_are_made_of_runs_of_the_classes_of_characters() {
        let grams = |edge, chars| Tokenizer::NGram { min: 1, max: 2, edge, chars };
        assert_eq!(texts(&grams(false, vec![]), "abc"), ["a", "ab", "b", "bc", "c"]);
        assert_eq!(texts(&grams(true, vec![CharClass::Letter]), "ab1c"), ["a", "ab", "c"]);
    }

    #[test]
    fn addresses_stay_whole() {
        let tokenizer = Tokenizer::UaxUrlEmail { length_max: 255 };
        assert_eq!(
            texts(&tokenizer, "Mail a.b@example.com, see https://example.com/x?y=1."),
            ["Mail", "a.b@example.com", "see", "https://example.com/x?y=1"]
        );
    }
}
