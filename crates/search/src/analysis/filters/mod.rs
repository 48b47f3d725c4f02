//! Token filters: they change, drop or add tokens.

mod cut;
mod folding;
mod grams;
mod light;
mod normalize;
pub(crate) mod options;
mod words;

pub(crate) use light::Stemming;

use super::standard;
use super::token::Token;
use frostem::{Algorithm, Stemmer};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A set of words.
pub(crate) type Words = Arc<BTreeSet<String>>;

/// One token filter with its parameters.
#[derive(Clone, Debug)]
pub(crate) enum TokenFilter {
    LowerCase,
    TurkishLowerCase,
    GreekLowerCase,
    IrishLowerCase,
    UpperCase,
    /// Digits of all scripts become those of ASCII.
    DecimalDigit,
    AsciiFolding {
        preserve: bool,
    },
    Stop {
        words: Words,
        ignore_case: bool,
        trailing: bool,
    },
    Length {
        min: usize,
        max: usize,
    },
    Trim,
    Reverse,
    Truncate {
        length: usize,
    },
    Unique {
        same_position: bool,
    },
    Limit {
        count: usize,
    },
    NGram {
        min: usize,
        max: usize,
    },
    EdgeNGram {
        min: usize,
        max: usize,
        back: bool,
    },
    Shingle {
        min: usize,
        max: usize,
        unigrams: bool,
        unigrams_if_none: bool,
        separator: String,
        filler: String,
    },
    Snowball(Algorithm),
    Stem(Stemming),
    /// Cuts what follows an apostrophe.
    Apostrophe,
    /// Cuts articles in front of an apostrophe.
    Elision(Words),
    /// Cuts the English `'s`.
    Possessive,
    /// Cuts `'s`, and the dots of acronyms.
    Classic,
    Arabic,
    Persian,
    Hindi,
    German,
    Scandinavian {
        fold: bool,
    },
    CjkWidth,
    CjkBigram {
        unigrams: bool,
    },
    Keep {
        words: Words,
        ignore_case: bool,
    },
    KeywordMarker {
        words: Words,
        ignore_case: bool,
    },
    KeywordRepeat,
    PatternCapture {
        patterns: Vec<Regex>,
        preserve: bool,
    },
    PatternReplace {
        pattern: Regex,
        replacement: String,
    },
    StemmerOverride(Arc<BTreeMap<String, String>>),
    Synonyms {
        rules: Arc<BTreeMap<String, Vec<String>>>,
        ignore_case: bool,
    },
    CommonGrams(words::CommonGrams),
    Decompounder(words::Decompounder),
    WordDelimiter(words::WordDelimiter),
}

impl PartialEq for TokenFilter {
    fn eq(&self, other: &TokenFilter) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl TokenFilter {
    pub(crate) fn apply(&self, mut tokens: Vec<Token>) -> Vec<Token> {
        match self {
            TokenFilter::LowerCase => {
                for token in &mut tokens {
                    let mut lower = String::with_capacity(token.text.len());
                    standard::lower_into(&token.text, &mut lower);
                    token.text = lower;
                }
                tokens
            }
            TokenFilter::UpperCase => map(tokens, |text| {
                let upper = |c: char| {
                    let mut all = c.to_uppercase();
                    if all.len() == 1 { all.next().unwrap_or(c) } else { c }
                };
                text.chars().map(upper).collect()
            }),
            TokenFilter::AsciiFolding { preserve } => folding::ascii(tokens, *preserve),
            TokenFilter::Stop { words, ignore_case, trailing } => {
                cut::stop(tokens, words, *ignore_case, *trailing)
            }
            TokenFilter::Length { min, max } => {
                tokens.retain(|it| (*min..=*max).contains(&it.text.chars().count()));
                tokens
            }
            TokenFilter::Trim => map(tokens, |text| text.trim().to_owned()),
            TokenFilter::Reverse => map(tokens, |text| text.chars().rev().collect()),
            TokenFilter::Truncate { length } => {
                map(tokens, |text| text.chars().take(*length).collect())
            }
            TokenFilter::Unique { same_position } => cut::unique(tokens, *same_position),
            TokenFilter::Limit { count } => {
                tokens.truncate(*count);
                tokens
            }
            TokenFilter::NGram { min, max } => grams::ngrams(&tokens, *min, *max),
            TokenFilter::EdgeNGram { min, max, back } => grams::edges(&tokens, *min, *max, *back),
            TokenFilter::Shingle { min, max, unigrams, unigrams_if_none, separator, filler } => {
                let singles = grams::Singles { always: *unigrams, if_none: *unigrams_if_none };
                grams::shingles(&tokens, *min, *max, singles, separator, filler)
            }
            TokenFilter::Snowball(algorithm) => {
                let stemmer = Stemmer::new(*algorithm);
                stem(tokens, |text| stemmer.stem(text).into_owned())
            }
            TokenFilter::Stem(stemming) => stem(tokens, |text| stemming.stem(text)),
            _ => self.apply_rest(tokens),
        }
    }

    fn apply_rest(&self, tokens: Vec<Token>) -> Vec<Token> {
        match self {
            TokenFilter::TurkishLowerCase => map(tokens, normalize::turkish_lower),
            TokenFilter::GreekLowerCase => {
                map(tokens, |text| text.chars().map(normalize::greek_lower).collect())
            }
            TokenFilter::IrishLowerCase => map(tokens, normalize::irish_lower),
            TokenFilter::DecimalDigit => {
                map(tokens, |text| text.chars().map(normalize::decimal_digit).collect())
            }
            TokenFilter::Apostrophe => {
                map(tokens, |text| text.split(['\'', '’']).next().unwrap_or_default().to_owned())
            }
            TokenFilter::Elision(articles) => map(tokens, |text| cut::elision(text, articles)),
            TokenFilter::Possessive => map(tokens, cut::possessive),
            TokenFilter::Classic => cut::classic(tokens),
            TokenFilter::Arabic => normalize::each(tokens, normalize::arabic),
            TokenFilter::Persian => normalize::each(tokens, normalize::persian),
            TokenFilter::Hindi => map(tokens, normalize::hindi),
            TokenFilter::German => map(tokens, normalize::german),
            TokenFilter::Scandinavian { fold } => {
                map(tokens, |text| normalize::scandinavian(text, *fold))
            }
            TokenFilter::CjkWidth => map(tokens, normalize::width),
            TokenFilter::CjkBigram { unigrams } => normalize::bigrams(&tokens, *unigrams),
            TokenFilter::Keep { words, ignore_case } => cut::keep(tokens, words, *ignore_case),
            TokenFilter::KeywordMarker { words, ignore_case } => {
                cut::mark(tokens, words, *ignore_case)
            }
            TokenFilter::KeywordRepeat => cut::repeat(tokens),
            TokenFilter::PatternCapture { patterns, preserve } => {
                cut::capture(&tokens, patterns, *preserve)
            }
            TokenFilter::PatternReplace { pattern, replacement } => {
                map(tokens, |text| pattern.replace_all(text, replacement.as_str()).into_owned())
            }
            TokenFilter::StemmerOverride(rules) => cut::override_stems(tokens, rules),
            TokenFilter::Synonyms { rules, ignore_case } => {
                cut::synonyms(&tokens, rules, *ignore_case)
            }
            TokenFilter::CommonGrams(filter) => filter.apply(&tokens),
            TokenFilter::Decompounder(filter) => filter.apply(&tokens),
            TokenFilter::WordDelimiter(filter) => filter.apply(&tokens),
            _ => tokens,
        }
    }

    /// Whether the filter looks at single characters, so that it may also be applied to a part of a word.
    pub(crate) fn is_per_character(&self) -> bool {
        matches!(
            self,
            TokenFilter::LowerCase
                | TokenFilter::TurkishLowerCase
                | TokenFilter::GreekLowerCase
                | TokenFilter::IrishLowerCase
                | TokenFilter::UpperCase
                | TokenFilter::DecimalDigit
                | TokenFilter::AsciiFolding { .. }
                | TokenFilter::Arabic
                | TokenFilter::Persian
                | TokenFilter::Hindi
                | TokenFilter::German
                | TokenFilter::Scandinavian { .. }
                | TokenFilter::CjkWidth
        )
    }

    /// Whether one token stays one, so that the filter can be part of a normalizer.
    pub(crate) fn keeps_one_token(&self) -> bool {
        self.is_per_character()
            || matches!(
                self,
                TokenFilter::Elision(_)
                    | TokenFilter::Trim
                    | TokenFilter::Truncate { .. }
                    | TokenFilter::Apostrophe
                    | TokenFilter::PatternReplace { .. }
            )
    }
}

/// Changes the text of every token.
fn map(mut tokens: Vec<Token>, change: impl Fn(&str) -> String) -> Vec<Token> {
    for token in &mut tokens {
        token.text = change(&token.text);
    }
    tokens
}

/// Changes the text of every token that is no keyword.
fn stem(mut tokens: Vec<Token>, change: impl Fn(&str) -> String) -> Vec<Token> {
    for token in tokens.iter_mut().filter(|it| !it.keyword) {
        token.text = change(&token.text);
    }
    tokens
}
