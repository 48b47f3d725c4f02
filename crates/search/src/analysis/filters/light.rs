//! Light stemmers: they take plural and gender endings off and leave the rest of a word alone. The rules are the
//! published ones of J. Savoy, which Lucene's light filters follow.

/// The light stemmers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stemming {
    MinimalEnglish,
    LightFrench,
    LightGerman,
    LightSpanish,
    LightItalian,
    Arabic,
}

impl Stemming {
    pub(super) fn stem(self, text: &str) -> String {
        let mut word: Vec<char> = text.chars().collect();
        match self {
            Stemming::MinimalEnglish => english(&mut word),
            Stemming::LightFrench => french(&mut word),
            Stemming::LightGerman => german(&mut word),
            Stemming::LightSpanish => spanish(&mut word),
            Stemming::LightItalian => italian(&mut word),
            Stemming::Arabic => arabic(&mut word),
        }
        word.into_iter().collect()
    }
}

fn ends(word: &[char], end: &str) -> bool {
    let end: Vec<char> = end.chars().collect();
    word.ends_with(&end)
}

fn english(word: &mut Vec<char>) {
    let length = word.len();
    if length < 3 || word[length - 1] != 's' {
        return;
    }
    match word[length - 2] {
        'u' | 's' => {}
        'e' if length > 3 && word[length - 3] == 'i' && !matches!(word[length - 4], 'a' | 'e') => {
            word.truncate(length - 3);
            word.push('y');
        }
        'e' if matches!(word[length - 3], 'i' | 'a' | 'o' | 'e') => {}
        _ => word.truncate(length - 1),
    }
}

fn german(word: &mut Vec<char>) {
    for c in word.iter_mut() {
        *c = match *c {
            'ä' | 'à' | 'á' | 'â' => 'a',
            'ö' | 'ò' | 'ó' | 'ô' => 'o',
            'ï' | 'ì' | 'í' | 'î' => 'i',
            'ü' | 'ù' | 'ú' | 'û' => 'u',
            c => c,
        };
    }
    // First a plural or case ending, then one of comparison.
    let s_ending = |c: char| "bdfghklmnt".contains(c);
    let length = word.len();
    let cut = if length > 5 && ends(word, "ern") {
        3
    } else if length > 4 && ["em", "en", "er", "es"].iter().any(|it| ends(word, it)) {
        2
    } else if length > 3 && (ends(word, "e") || (ends(word, "s") && s_ending(word[length - 2]))) {
        1
    } else {
        0
    };
    word.truncate(length - cut);
    let length = word.len();
    let st_ending = |c: char| "bdfghklmnt".contains(c);
    let cut = if length > 5 && ends(word, "est") {
        3
    } else if length > 4
        && (ends(word, "er")
            || ends(word, "en")
            || (ends(word, "st") && st_ending(word[length - 3])))
    {
        2
    } else {
        0
    };
    word.truncate(length - cut);
}

fn spanish(word: &mut Vec<char>) {
    let length = word.len();
    if length < 5 {
        return;
    }
    for c in word.iter_mut() {
        *c = match *c {
            'à' | 'á' | 'â' | 'ä' => 'a',
            'ò' | 'ó' | 'ô' | 'ö' => 'o',
            'è' | 'é' | 'ê' | 'ë' => 'e',
            'ù' | 'ú' | 'û' | 'ü' => 'u',
            'ì' | 'í' | 'î' | 'ï' => 'i',
            c => c,
        };
    }
    match word[length - 1] {
        'o' | 'a' | 'e' => word.truncate(length - 1),
        's' => match word[length - 2] {
            'e' if word[length - 3] == 's' && word[length - 4] == 'e' => {
                word.truncate(length - 2);
            }
            'e' if word[length - 3] == 'c' => {
                word[length - 3] = 'z';
                word.truncate(length - 2);
            }
            'o' | 'a' | 'e' => word.truncate(length - 2),
            _ => {}
        },
        _ => {}
    }
}

fn italian(word: &mut Vec<char>) {
    let length = word.len();
    if length < 6 {
        return;
    }
    for c in word.iter_mut() {
        *c = match *c {
            'à' | 'á' | 'â' | 'ä' => 'a',
            'ò' | 'ó' | 'ô' | 'ö' => 'o',
            'è' | 'é' | 'ê' | 'ë' => 'e',
            'ù' | 'ú' | 'û' | 'ü' => 'u',
            'ì' | 'í' | 'î' | 'ï' => 'i',
            c => c,
        };
    }
    let before = word[length - 2];
    let cut = match word[length - 1] {
        'e' if matches!(before, 'i' | 'h') => 2,
        'e' => 1,
        'i' if matches!(before, 'h' | 'i') => 2,
        'i' => 1,
        'a' if before == 'i' => 2,
        'a' => 1,
        'o' if before == 'i' => 2,
        'o' => 1,
        _ => 0,
    };
    word.truncate(length - cut);
}

/// Endings of the French stemmer: the ending, what replaces it, and the length that a word must have.
const FRENCH: &[(&str, &str, usize)] =
    &[("ives", "if", 5), ("ive", "if", 4), ("euses", "eux", 6), ("euse", "eux", 5)];

fn french(word: &mut Vec<char>) {
    if word.len() > 5 && ends(word, "x") {
        let length = word.len();
        if ends(word, "aux") && word[length - 4] != 'e' {
            word[length - 2] = 'l';
        }
        word.pop();
    }
    if word.len() > 3 && ends(word, "s") {
        word.pop();
    }
    for (end, replacement, length) in FRENCH {
        if word.len() > *length && ends(word, end) {
            word.truncate(word.len() - end.chars().count());
            word.extend(replacement.chars());
            break;
        }
    }
    for c in word.iter_mut() {
        *c = match *c {
            'à' | 'á' | 'â' => 'a',
            'ô' => 'o',
            'è' | 'é' | 'ê' => 'e',
            'ù' | 'û' => 'u',
            'î' => 'i',
            'ç' => 'c',
            c => c,
        };
    }
    let mut last = None;
    word.retain(|c| {
        let same = last == Some(*c) && c.is_alphabetic();
        last = Some(*c);
        !same
    });
    if word.len() > 4 && ends(word, "ie") {
        word.truncate(word.len() - 2);
    }
    for end in ["r", "e", "e"] {
        if word.len() > 4 && ends(word, end) {
            word.pop();
        }
    }
}

/// Arabic: one article or conjunction from the front, then endings, one after another.
fn arabic(word: &mut Vec<char>) {
    const FRONTS: [&str; 7] = ["ال", "وال", "بال", "كال", "فال", "لل", "و"];
    const ENDS: [&str; 10] = ["ها", "ان", "ات", "ون", "ين", "يه", "ية", "ه", "ة", "ي"];
    for front in FRONTS {
        let front: Vec<char> = front.chars().collect();
        let least = if front.len() == 1 { 4 } else { front.len() + 2 };
        if word.len() >= least && word.starts_with(&front) {
            word.drain(..front.len());
            break;
        }
    }
    for end in ENDS {
        let length = end.chars().count();
        if word.len() >= length + 2 && ends(word, end) {
            word.truncate(word.len() - length);
        }
    }
}
