//! The stems of English words, by Porter's algorithm of 1980: `bicycles`, `bicycle` and `bicycling` are one word.
//!
//! A word is a sequence of consonants and vowels, `[C](VC)^m[V]`. A rule removes or replaces an ending if what is left has
//! enough of these pairs, its measure `m`.

use super::limits::STEM_LETTERS_MAX;

/// The stem of a word in lower case. A very long word, and one with other letters than those of English, stays as it is.
pub(super) fn stem(word: &str) -> String {
    let has_stem = (3..=STEM_LETTERS_MAX).contains(&word.len());
    if !has_stem || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word(word.to_owned());
    word.plural();
    word.past();
    word.final_y();
    word.replace_first(DOUBLE_SUFFIXES, 0);
    word.replace_first(SINGLE_SUFFIXES, 0);
    word.remove_suffix();
    word.tidy();
    word.0
}

/// Endings made of two, and what remains of them.
const DOUBLE_SUFFIXES: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const SINGLE_SUFFIXES: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Endings that are removed where enough of the word is left.
const LAST_SUFFIXES: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

struct Word(String);

impl Word {
    fn is_consonant(&self, place: usize) -> bool {
        match self.0.as_bytes()[place] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => place == 0 || !self.is_consonant(place - 1),
            _ => true,
        }
    }

    /// How many times a consonant follows a vowel in the first letters.
    fn measure(&self, length: usize) -> usize {
        let follows = |place: &usize| self.is_consonant(*place) && !self.is_consonant(place - 1);
        (1..length).filter(follows).count()
    }

    fn has_vowel(&self, length: usize) -> bool {
        (0..length).any(|place| !self.is_consonant(place))
    }

    fn ends_in_double_consonant(&self) -> bool {
        let bytes = self.0.as_bytes();
        let length = bytes.len();
        length >= 2 && bytes[length - 1] == bytes[length - 2] && self.is_consonant(length - 1)
    }

    /// Whether the first letters end in consonant, vowel, consonant, and the last is none of w, x and y.
    fn ends_short(&self, length: usize) -> bool {
        length >= 3
            && self.is_consonant(length - 3)
            && !self.is_consonant(length - 2)
            && self.is_consonant(length - 1)
            && !matches!(self.0.as_bytes()[length - 1], b'w' | b'x' | b'y')
    }

    /// How many letters are before an ending, if the word has it.
    fn before(&self, suffix: &str) -> Option<usize> {
        self.0.strip_suffix(suffix).map(str::len)
    }

    fn set_end(&mut self, length: usize, suffix: &str) {
        self.0.truncate(length);
        self.0.push_str(suffix);
    }

    fn plural(&mut self) {
        for (suffix, by) in [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")] {
            if let Some(length) = self.before(suffix) {
                return self.set_end(length, by);
            }
        }
    }

    fn past(&mut self) {
        if let Some(length) = self.before("eed") {
            if self.measure(length) > 0 {
                self.set_end(length, "ee");
            }
            return;
        }
        let found = ["ed", "ing"].iter().find_map(|suffix| self.before(suffix));
        let Some(length) = found.filter(|length| self.has_vowel(*length)) else { return };
        self.0.truncate(length);
        if ["at", "bl", "iz"].iter().any(|end| self.0.ends_with(end)) {
            self.0.push('e');
        } else if self.ends_in_double_consonant() && !self.0.ends_with(['l', 's', 'z']) {
            self.0.pop();
        } else if self.measure(self.0.len()) == 1 && self.ends_short(self.0.len()) {
            self.0.push('e');
        }
    }

    fn final_y(&mut self) {
        if let Some(length) = self.before("y").filter(|length| self.has_vowel(*length)) {
            self.set_end(length, "i");
        }
    }

    /// Applies the rule of the first ending that the word has.
    fn replace_first(&mut self, rules: &[(&str, &str)], least: usize) {
        let found = rules.iter().find_map(|(suffix, by)| Some((self.before(suffix)?, by)));
        if let Some((length, by)) = found.filter(|(length, _)| self.measure(*length) > least) {
            self.set_end(length, by);
        }
    }

    fn remove_suffix(&mut self) {
        let found = LAST_SUFFIXES.iter().find_map(|suffix| Some((self.before(suffix)?, suffix)));
        let Some((length, suffix)) = found else { return };
        let allows = *suffix != "ion" || self.0[..length].ends_with(['s', 't']);
        if allows && self.measure(length) > 1 {
            self.0.truncate(length);
        }
    }

    fn tidy(&mut self) {
        if let Some(length) = self.before("e") {
            let measure = self.measure(length);
            if measure > 1 || (measure == 1 && !self.ends_short(length)) {
                self.0.truncate(length);
            }
        }
        if self.0.ends_with("ll") && self.measure(self.0.len()) > 1 {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn words_of_the_paper_have_their_stems() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("ties", "ti"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("fizzed", "fizz"),
            ("failing", "fail"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("rational", "ration"),
            ("digitizer", "digit"),
            ("radically", "radic"),
            ("vietnamization", "vietnam"),
            ("operator", "oper"),
            ("feudalism", "feudal"),
            ("decisiveness", "decis"),
            ("hopefulness", "hope"),
            ("sensibiliti", "sensibl"),
            ("triplicate", "triplic"),
            ("formative", "form"),
            ("electrical", "electr"),
            ("goodness", "good"),
            ("revival", "reviv"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("communism", "commun"),
            ("effective", "effect"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controlling", "control"),
            ("roll", "roll"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        assert_eq!(stem("bicycles"), stem("bicycle"));
        assert_eq!(stem("connected"), stem("connections"));
        assert_eq!(stem("räder"), "räder");
        assert_eq!(stem("42s"), "42s");
        assert_eq!(stem("is"), "is");
        assert_eq!(stem(&"y".repeat(1_000_000)).len(), 1_000_000);
        for word in ["", "a", "y", "yy", "yyy", "sss", "ed", "eed", "ing", "ion", "eee", "ly"] {
            let _ = stem(word);
        }
    }
}
