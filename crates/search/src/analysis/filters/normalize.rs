//! Filters that give letters of one script one form, by the published rules of Lucene's filters of the same names.

use crate::analysis::token::Token;

/// Changes characters one by one; none drops the character.
pub(super) fn each(tokens: Vec<Token>, change: impl Fn(char) -> Option<char>) -> Vec<Token> {
    super::map(tokens, |text| text.chars().filter_map(&change).collect())
}

/// Letters of Arabic: one form of alef, yeh and teh marbuta, no vowel marks, no tatweel.
pub(super) fn arabic(c: char) -> Option<char> {
    match c {
        '\u{622}' | '\u{623}' | '\u{625}' => Some('\u{627}'),
        '\u{649}' => Some('\u{64A}'),
        '\u{629}' => Some('\u{647}'),
        '\u{640}' | '\u{64B}'..='\u{652}' => None,
        c => Some(c),
    }
}

/// Letters of Persian that have an Arabic form.
pub(super) fn persian(c: char) -> Option<char> {
    match c {
        '\u{6CC}' | '\u{6D2}' => Some('\u{64A}'),
        '\u{6A9}' => Some('\u{643}'),
        '\u{6C0}' | '\u{6C1}' => Some('\u{647}'),
        '\u{654}' => None,
        c => Some(c),
    }
}

/// Letters of Hindi: no nukta, one form of nasal marks and of short and long vowels.
pub(super) fn hindi(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let made = match chars[at] {
            // A nasal consonant with a virama becomes the nasal mark.
            '\u{928}' if chars.get(at + 1) == Some(&'\u{94D}') => {
                at += 1;
                Some('\u{902}')
            }
            '\u{901}' => Some('\u{902}'),
            '\u{93C}' | '\u{94D}' | '\u{200C}' | '\u{200D}' => None,
            '\u{929}' => Some('\u{928}'),
            '\u{931}' => Some('\u{930}'),
            '\u{934}' => Some('\u{933}'),
            '\u{958}' => Some('\u{915}'),
            '\u{959}' => Some('\u{916}'),
            '\u{95A}' => Some('\u{917}'),
            '\u{95B}' => Some('\u{91C}'),
            '\u{95C}' => Some('\u{921}'),
            '\u{95D}' => Some('\u{922}'),
            '\u{95E}' => Some('\u{92B}'),
            '\u{95F}' => Some('\u{92F}'),
            '\u{945}' | '\u{946}' => Some('\u{947}'),
            '\u{949}' | '\u{94A}' => Some('\u{94B}'),
            '\u{90D}' | '\u{90E}' => Some('\u{90F}'),
            '\u{911}' | '\u{912}' => Some('\u{913}'),
            '\u{972}' => Some('\u{905}'),
            '\u{906}' => Some('\u{905}'),
            '\u{908}' => Some('\u{907}'),
            '\u{90A}' => Some('\u{909}'),
            '\u{960}' => Some('\u{90B}'),
            '\u{961}' => Some('\u{90C}'),
            '\u{910}' => Some('\u{90F}'),
            '\u{914}' => Some('\u{913}'),
            '\u{940}' => Some('\u{93F}'),
            '\u{942}' => Some('\u{941}'),
            '\u{944}' => Some('\u{943}'),
            '\u{963}' => Some('\u{962}'),
            '\u{948}' => Some('\u{947}'),
            '\u{94C}' => Some('\u{94B}'),
            c => Some(c),
        };
        out.extend(made);
        at += 1;
    }
    out
}

/// German: umlauts and their two-letter forms become the plain vowel, `ß` becomes `ss`.
pub(super) fn german(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // An `e` is dropped behind `a` and `o`, and behind a `u` that no vowel or `q` comes before.
    let (mut after_vowel, mut after_u) = (false, false);
    for c in text.chars() {
        let (drop, next) = match c {
            'a' | 'o' => (false, (false, true)),
            'u' => (false, (false, !after_vowel && !after_u)),
            'e' => (after_u, (true, false)),
            'i' | 'q' | 'y' => (false, (true, false)),
            _ => (false, (false, false)),
        };
        match c {
            'ä' => out.push('a'),
            'ö' => out.push('o'),
            'ü' => out.push('u'),
            'ß' => out.push_str("ss"),
            _ if drop => {}
            c => out.push(c),
        }
        let umlaut = matches!(c, 'ä' | 'ö' | 'ü');
        (after_vowel, after_u) = if umlaut { (true, false) } else { next };
    }
    out
}

/// Scandinavian letters: one of their forms, or the plain letter.
pub(super) fn scandinavian(text: &str, fold: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let next = chars.get(at + 1).map(|it| it.to_ascii_lowercase());
        let upper = c.is_uppercase();
        let letter = |lower: char, capital: char| if upper { capital } else { lower };
        let (made, pair) = match (c.to_lowercase().next().unwrap_or(c), next) {
            ('å', _) if fold => (letter('a', 'A'), false),
            ('ä' | 'æ', _) => (if fold { letter('a', 'A') } else { letter('æ', 'Æ') }, false),
            ('ö' | 'ø', _) => (if fold { letter('o', 'O') } else { letter('ø', 'Ø') }, false),
            ('a', Some('a')) => (if fold { letter('a', 'A') } else { letter('å', 'Å') }, true),
            ('a', Some('e' | 'o')) if fold => (letter('a', 'A'), true),
            ('a', Some('e')) => (letter('æ', 'Æ'), true),
            ('a', Some('o')) => (letter('å', 'Å'), true),
            ('o', Some('e' | 'o')) => {
                (if fold { letter('o', 'O') } else { letter('ø', 'Ø') }, true)
            }
            _ => (c, false),
        };
        out.push(made);
        at += if pair { 2 } else { 1 };
    }
    out
}

/// Wide forms of ASCII and narrow forms of Katakana become the usual ones.
pub(super) fn width(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c as u32 {
            0xFF01..=0xFF5E | 0xFF65..=0xFF9F => {
                let folded: String = std::iter::once(c).nfkc().collect();
                // A narrow mark joins the letter before it.
                match (c, out.pop()) {
                    ('\u{FF9E}' | '\u{FF9F}', Some(before)) => {
                        let mark = if c == '\u{FF9E}' { '\u{3099}' } else { '\u{309A}' };
                        out.extend([before, mark].into_iter().nfc());
                    }
                    (_, before) => {
                        out.extend(before);
                        out.push_str(&folded);
                    }
                }
            }
            _ => out.push(c),
        }
    }
    out
}

/// Pairs of neighbouring characters of Chinese, Japanese and Korean.
pub(super) fn bigrams(tokens: &[Token], unigrams: bool) -> Vec<Token> {
    use crate::analysis::token::Kind;
    let cjk = |it: &Token| {
        matches!(it.kind, Kind::Ideographic | Kind::Hiragana | Kind::Katakana | Kind::Hangul)
    };
    let mut out: Vec<Token> = Vec::new();
    let mut position = 0;
    let mut at = 0;
    while at < tokens.len() {
        if !cjk(&tokens[at]) {
            out.push(Token { position, ..tokens[at].clone() });
            position += 1;
            at += 1;
            continue;
        }
        let mut run: Vec<Token> = Vec::new();
        while at < tokens.len()
            && cjk(&tokens[at])
            && run.last().is_none_or(|it| it.end == tokens[at].start)
        {
            let token = &tokens[at];
            let width = token.end - token.start == token.text.len();
            run.extend(token.text.char_indices().map(|(offset, c)| {
                let mut piece = token.with_text(c.to_string());
                if width {
                    piece.start = token.start + offset;
                    piece.end = piece.start + c.len_utf8();
                }
                piece
            }));
            at += 1;
        }
        let single = run.len() == 1;
        for (number, token) in run.iter().enumerate() {
            if unigrams || single {
                out.push(Token { position, ..token.clone() });
            }
            if let Some(next) = run.get(number + 1) {
                let mut pair = token.with_text(format!("{}{}", token.text, next.text));
                pair.end = next.end;
                pair.position = position;
                pair.length = if unigrams { 2 } else { 1 };
                out.push(pair);
                position += 1;
            } else if unigrams || single {
                position += 1;
            }
        }
    }
    out
}

/// Turkish has an `i` with and one without a dot, in both cases.
pub(super) fn turkish_lower(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            'İ' => out.push('i'),
            'I' if chars.next_if_eq(&'\u{307}').is_some() => out.push('i'),
            'I' => out.push('ı'),
            c => out.push(crate::analysis::standard::lower(c)),
        }
    }
    out
}

/// Greek in lower case, without accents, with one form of sigma.
pub(super) fn greek_lower(c: char) -> char {
    match c {
        'ς' => 'σ',
        'Ά' | 'ά' => 'α',
        'Έ' | 'έ' => 'ε',
        'Ή' | 'ή' => 'η',
        'Ί' | 'Ϊ' | 'ί' | 'ϊ' | 'ΐ' => 'ι',
        'Ύ' | 'Ϋ' | 'ύ' | 'ϋ' | 'ΰ' => 'υ',
        'Ό' | 'ό' => 'ο',
        'Ώ' | 'ώ' => 'ω',
        'Ϣ' => 'ϣ',
        c => crate::analysis::standard::lower(c),
    }
}

/// Irish in lower case: an `n` or `t` in front of a capital vowel is set apart by a dash.
pub(super) fn irish_lower(text: &str) -> String {
    let mut chars = text.chars();
    let prefix = matches!(chars.next(), Some('n' | 't'));
    let vowel = chars.next().is_some_and(|c| "AEIOUÁÉÍÓÚ".contains(c));
    let lowered: String = text.chars().map(crate::analysis::standard::lower).collect();
    if prefix && vowel { format!("{}-{}", &lowered[..1], &lowered[1..]) } else { lowered }
}

/// The ASCII form of a digit of any script.
pub(super) fn decimal_digit(c: char) -> char {
    const ZEROS: [u32; 20] = [
        0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50,
        0xED0, 0xF20, 0x1040, 0x17E0, 0x1810, 0xFF10, 0x1946,
    ];
    let code = c as u32;
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code));
    zero.and_then(|zero| char::from_digit(code - zero, 10)).unwrap_or(c)
}
