//! Character filters: they change a text before it is cut into tokens, and remember where each piece came from.

use super::token::{Token, boundary};
use regex::Regex;

/// One character filter.
#[derive(Clone, Debug)]
pub(crate) enum CharFilter {
    /// Takes out tags and comments, and puts characters in the place of their entities.
    HtmlStrip,
    /// Replaces the longest of several texts at each place.
    Mapping(Vec<(String, String)>),
    /// Replaces what a pattern matches.
    PatternReplace(Regex, String),
}

/// A text and, for each stretch of it, where the stretch came from.
pub(crate) struct Filtered<'a> {
    original: &'a str,
    text: Option<String>,
    /// Pairs of an offset in the text and the offset it came from, growing. Empty means that nothing has changed.
    corrections: Vec<(usize, usize)>,
}

impl Filtered<'_> {
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or(self.original)
    }

    /// Turns offsets in the filtered text into those of the original.
    pub(crate) fn correct(&self, tokens: &mut [Token]) {
        if self.text.is_none() {
            return;
        }
        for token in tokens {
            token.start = self.original_offset(token.start);
            token.end = self.original_offset(token.end).max(token.start);
        }
    }

    fn original_offset(&self, offset: usize) -> usize {
        let next = self.corrections.partition_point(|(at, _)| *at <= offset);
        let moved = match next.checked_sub(1).and_then(|it| self.corrections.get(it)) {
            Some((at, from)) => from + (offset - at),
            None => offset,
        };
        boundary(self.original, moved)
    }
}

/// Applies filters one after another.
pub(crate) fn apply_all<'a>(filters: &[CharFilter], text: &'a str) -> Filtered<'a> {
    let mut filtered = Filtered { original: text, text: None, corrections: Vec::new() };
    for filter in filters {
        let pieces = filter.pieces(filtered.text());
        let mut output = String::with_capacity(filtered.text().len());
        let mut corrections = Vec::with_capacity(pieces.len());
        for (from, piece) in &pieces {
            let before =
                if filtered.text.is_some() { filtered.original_offset(*from) } else { *from };
            corrections.push((output.len(), before));
            // A piece that was copied brings the corrections of the filter before with it.
            if filtered.text()[*from..].starts_with(piece.as_str()) {
                let inside = *from + 1..*from + piece.len();
                let first = filtered.corrections.partition_point(|(at, _)| *at < inside.start);
                let earlier = filtered.corrections[first..].iter();
                for (at, origin) in earlier.take_while(|(at, _)| inside.contains(at)) {
                    corrections.push((output.len() + at - from, *origin));
                }
            }
            output.push_str(piece);
        }
        filtered.text = Some(output);
        filtered.corrections = corrections;
    }
    filtered
}

impl CharFilter {
    /// The text that a filter makes, piece by piece, each with the offset it stands for.
    fn pieces(&self, text: &str) -> Vec<(usize, String)> {
        match self {
            CharFilter::HtmlStrip => html_pieces(text),
            CharFilter::Mapping(rules) => mapping_pieces(rules, text),
            CharFilter::PatternReplace(pattern, replacement) => {
                replace_pieces(pattern, replacement, text)
            }
        }
    }
}

fn mapping_pieces(rules: &[(String, String)], text: &str) -> Vec<(usize, String)> {
    let mut pieces: Vec<(usize, String)> = Vec::new();
    let mut at = 0;
    let mut copied = 0;
    while at < text.len() {
        let rest = &text[at..];
        let best = rules
            .iter()
            .filter(|(from, _)| rest.starts_with(from.as_str()))
            .max_by_key(|(from, _)| from.len());
        match best {
            Some((from, to)) => {
                if copied < at {
                    pieces.push((copied, text[copied..at].to_owned()));
                }
                pieces.push((at, to.clone()));
                at += from.len();
                copied = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if copied < text.len() {
        pieces.push((copied, text[copied..].to_owned()));
    }
    pieces.push((text.len(), String::new()));
    pieces
}

fn replace_pieces(pattern: &Regex, replacement: &str, text: &str) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    let mut copied = 0;
    for captures in pattern.captures_iter(text) {
        let Some(whole) = captures.get(0) else { continue };
        pieces.push((copied, text[copied..whole.start()].to_owned()));
        let mut expanded = String::new();
        captures.expand(replacement, &mut expanded);
        pieces.push((whole.start(), expanded));
        copied = whole.end();
    }
    pieces.push((copied, text[copied..].to_owned()));
    pieces.push((text.len(), String::new()));
    pieces
}

/// Tags that stand inside of words; all others part them.
const INLINE: [&str; 12] =
    ["a", "abbr", "b", "em", "font", "i", "s", "small", "span", "strong", "sub", "u"];

fn html_pieces(text: &str) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let next = rest.find(['<', '&']).unwrap_or(rest.len());
        if next > 0 {
            pieces.push((at, rest[..next].to_owned()));
            at += next;
            continue;
        }
        let (length, made) = markup(rest);
        pieces.push((at, made));
        at += length;
    }
    pieces.push((text.len(), String::new()));
    pieces
}

/// The length of the markup at the front of a text, and what stands for it.
fn markup(rest: &str) -> (usize, String) {
    if let Some(comment) = rest.strip_prefix("<!--") {
        let length = comment.find("-->").map_or(rest.len(), |it| it + 7);
        return (length, String::new());
    }
    if rest.starts_with('<') {
        return tag(rest).unwrap_or((1, "<".to_owned()));
    }
    let short = &rest[..boundary(rest, 12)];
    let Some(end) = short.find(';').filter(|it| *it > 1) else {
        return (1, "&".to_owned());
    };
    match entity(&rest[1..end]) {
        Some(c) => (end + 1, c.to_string()),
        None => (1, "&".to_owned()),
    }
}

fn tag(rest: &str) -> Option<(usize, String)> {
    let name = rest[1..].trim_start_matches('/');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
        return None;
    }
    let mut quote = None;
    let end = rest.char_indices().find(|(_, c)| match (quote, *c) {
        (Some(open), c) if open == c => {
            quote = None;
            false
        }
        (Some(_), _) => false,
        (None, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        (None, c) => c == '>',
    })?;
    let name: String = name.chars().take_while(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    let mut length = end.0 + 1;
    if (name == "script" || name == "style") && !rest.starts_with("</") {
        let close = format!("</{name}");
        let lower = rest.to_ascii_lowercase();
        if let Some(at) = lower.find(&close) {
            length = at + rest[at..].find('>').map_or(rest.len() - at, |it| it + 1);
        }
    }
    let made = if INLINE.contains(&name.as_str()) { "" } else { "\n" };
    Some((length, made.to_owned()))
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "copy" => '©',
        "reg" => '®',
        "eacute" => 'é',
        "egrave" => 'è',
        "agrave" => 'à',
        "aacute" => 'á',
        "ccedil" => 'ç',
        "ntilde" => 'ñ',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "auml" => 'ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "Auml" => 'Ä',
        "szlig" => 'ß',
        "euro" => '€',
        "hellip" => '…',
        "mdash" => '—',
        "ndash" => '–',
        _ => return None,
    })
}
