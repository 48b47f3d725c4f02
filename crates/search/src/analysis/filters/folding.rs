//! Folding of letters with marks into plain ones.

use crate::analysis::token::Token;
use unicode_normalization::UnicodeNormalization;

/// Folds every token; where `preserve` is set a changed one also keeps its first form.
pub(super) fn ascii(tokens: Vec<Token>, preserve: bool) -> Vec<Token> {
    let mut folded = Vec::with_capacity(tokens.len());
    for token in tokens {
        if token.text.is_ascii() {
            folded.push(token);
            continue;
        }
        let text: String = fold(&token.text);
        let changed = text != token.text;
        let plain = token.with_text(text);
        folded.push(plain);
        if preserve && changed {
            folded.push(token);
        }
    }
    folded
}

/// The text with each character folded.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, &mut folded);
    }
    folded
}

fn fold_char(c: char, target: &mut String) {
    if c.is_ascii() {
        target.push(c);
        return;
    }
    if let Some(plain) = special(c) {
        target.push_str(plain);
        return;
    }
    let mut parts = std::iter::once(c).nfkd();
    match (parts.next(), parts.all(|it| is_mark(it) || it.is_ascii())) {
        (Some(first), true) if first.is_ascii() => {
            target.extend(std::iter::once(c).nfkd().filter(char::is_ascii));
        }
        _ => target.push(c),
    }
}

fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x300..=0x36F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF)
}

/// Letters that do not decompose into a plain one and marks.
fn special(c: char) -> Option<&'static str> {
    Some(match c {
        'Æ' | 'Ǽ' | 'Ǣ' => "AE",
        'æ' | 'ǽ' | 'ǣ' => "ae",
        'Ø' | 'Ǿ' => "O",
        'ø' | 'ǿ' => "o",
        'Œ' => "OE",
        'œ' => "oe",
        'ß' => "ss",
        'ẞ' => "SS",
        'Þ' => "TH",
        'þ' => "th",
        'Ð' | 'Đ' => "D",
        'ð' | 'đ' => "d",
        'Ħ' => "H",
        'ħ' => "h",
        'ı' => "i",
        'Ł' => "L",
        'ł' => "l",
        'Ŋ' => "N",
        'ŋ' => "n",
        'Ŧ' => "T",
        'ŧ' => "t",
        'Ĳ' => "IJ",
        'ĳ' => "ij",
        '‘' | '’' | '‚' | '‛' | '′' | '‹' | '›' => "'",
        '“' | '”' | '„' | '″' | '«' | '»' => "\"",
        '‐' | '‑' | '‒' | '–' | '—' => "-",
        '⁄' => "/",
        _ => return None,
    })
}
