//! Token filters by their names, and as indexes define them.

use super::words::{CommonGrams, Decompounder, WordDelimiter};
use super::{Stemming, TokenFilter};
use crate::analysis::custom;
use crate::analysis::predefined::{self, stop_words};
use crate::definition::Reader;
use crate::error::Result;
use frostem::Algorithm;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The filter of a name, with its defaults.
pub(crate) fn predefined(name: &str) -> Option<TokenFilter> {
    Some(match name {
        "apostrophe" => TokenFilter::Apostrophe,
        "arabic_normalization" => TokenFilter::Arabic,
        "asciifolding" => TokenFilter::AsciiFolding { preserve: false },
        "cjk_bigram" => TokenFilter::CjkBigram { unigrams: false },
        "cjk_width" => TokenFilter::CjkWidth,
        "classic" => TokenFilter::Classic,
        "edgeNGram" | "edgeNGram_v2" => TokenFilter::EdgeNGram { min: 1, max: 2, back: false },
        "elision" => predefined::elision("french"),
        "german_normalization" => TokenFilter::German,
        "hindi_normalization" => TokenFilter::Hindi,
        "keyword_repeat" => TokenFilter::KeywordRepeat,
        "length" => TokenFilter::Length { min: 0, max: 300 },
        "limit" => TokenFilter::Limit { count: 1 },
        "lowercase" => TokenFilter::LowerCase,
        "nGram" | "nGram_v2" => TokenFilter::NGram { min: 1, max: 2 },
        "persian_normalization" => TokenFilter::Persian,
        "porter_stem" => TokenFilter::Snowball(Algorithm::Porter),
        "reverse" => TokenFilter::Reverse,
        "scandinavian_normalization" => TokenFilter::Scandinavian { fold: false },
        "scandinavian_folding" => TokenFilter::Scandinavian { fold: true },
        "shingle" => TokenFilter::Shingle {
            min: 2,
            max: 2,
            unigrams: true,
            unigrams_if_none: false,
            separator: " ".to_owned(),
            filler: "_".to_owned(),
        },
        "snowball" => TokenFilter::Snowball(Algorithm::English),
        "stopwords" => predefined::stop("english"),
        "trim" => TokenFilter::Trim,
        "truncate" => TokenFilter::Truncate { length: 300 },
        "unique" => TokenFilter::Unique { same_position: false },
        "uppercase" => TokenFilter::UpperCase,
        "word_delimiter" => TokenFilter::WordDelimiter(WordDelimiter::default()),
        _ => return None,
    })
}

/// A filter that an index defines.
pub(crate) fn parse(item: &Reader<'_>, kind: &str) -> Result<TokenFilter> {
    let set = |property: &str| -> Result<Arc<BTreeSet<String>>> {
        Ok(Arc::new(item.strings(property)?.into_iter().collect()))
    };
    let truth = |property: &str, default: bool| -> Result<bool> {
        Ok(item.boolean(property)?.unwrap_or(default))
    };
    Ok(match kind {
        "AsciiFoldingTokenFilter" => {
            TokenFilter::AsciiFolding { preserve: truth("preserveOriginal", false)? }
        }
        "CjkBigramTokenFilter" => {
            TokenFilter::CjkBigram { unigrams: truth("outputUnigrams", false)? }
        }
        "CommonGramTokenFilter" => TokenFilter::CommonGrams(CommonGrams {
            words: set("commonWords")?,
            ignore_case: truth("ignoreCase", false)?,
            query: truth("queryMode", false)?,
        }),
        "DictionaryDecompounderTokenFilter" => TokenFilter::Decompounder(Decompounder {
            words: set("wordList")?,
            word_min: item.whole("minWordSize", 1, 300)?.unwrap_or(5),
            part_min: item.whole("minSubwordSize", 1, 300)?.unwrap_or(2),
            part_max: item.whole("maxSubwordSize", 1, 300)?.unwrap_or(15),
            longest: truth("onlyLongestMatch", false)?,
        }),
        "EdgeNGramTokenFilter" | "EdgeNGramTokenFilterV2" => {
            let (min, max) = grams(item)?;
            let back = match item.string("side")?.as_deref() {
                None | Some("front") => false,
                Some("back") => true,
                Some(_) => return Err(item.wrong("side", "must be 'front' or 'back'")),
            };
            TokenFilter::EdgeNGram { min, max, back }
        }
        "NGramTokenFilter" | "NGramTokenFilterV2" => {
            let (min, max) = grams(item)?;
            TokenFilter::NGram { min, max }
        }
        "ElisionTokenFilter" => TokenFilter::Elision(set("articles")?),
        "KeepTokenFilter" => TokenFilter::Keep {
            words: set("keepWords")?,
            ignore_case: truth("keepWordsCase", false)?,
        },
        "KeywordMarkerTokenFilter" => TokenFilter::KeywordMarker {
            words: set("keywords")?,
            ignore_case: truth("ignoreCase", false)?,
        },
        "LengthTokenFilter" => TokenFilter::Length {
            min: item.whole("min", 0, 300)?.unwrap_or(0),
            max: item.whole("max", 0, 300)?.unwrap_or(300),
        },
        "LimitTokenFilter" => {
            TokenFilter::Limit { count: item.whole("maxTokenCount", 1, 1 << 31)?.unwrap_or(1) }
        }
        _ => return parse_rest(item, kind),
    })
}

/// The filters that change or join words.
fn parse_rest(item: &Reader<'_>, kind: &str) -> Result<TokenFilter> {
    let truth = |property: &str, default: bool| -> Result<bool> {
        Ok(item.boolean(property)?.unwrap_or(default))
    };
    Ok(match kind {
        "PatternCaptureTokenFilter" => {
            let texts = item.strings("patterns")?;
            let patterns = texts.iter().map(|it| custom::pattern(item, "patterns", it, ""));
            TokenFilter::PatternCapture {
                patterns: patterns.collect::<Result<_>>()?,
                preserve: truth("preserveOriginal", true)?,
            }
        }
        "PatternReplaceTokenFilter" => {
            let text = item.required_string("pattern")?;
            let pattern = custom::pattern(item, "pattern", &text, "")?;
            TokenFilter::PatternReplace {
                pattern,
                replacement: item.required_string("replacement")?,
            }
        }
        "ShingleTokenFilter" => shingle(item)?,
        "SnowballTokenFilter" => {
            let language = item.required_string("language")?;
            let algorithm = snowball(&language)
                .ok_or_else(|| item.wrong("language", &format!("'{language}' is unknown")))?;
            TokenFilter::Snowball(algorithm)
        }
        "StemmerTokenFilter" => {
            let language = item.required_string("language")?;
            stemmer(&language).ok_or_else(|| {
                item.wrong("language", &format!("'{language}' is unknown or not supported"))
            })?
        }
        "StemmerOverrideTokenFilter" => TokenFilter::StemmerOverride(overrides(item)?),
        "StopwordsTokenFilter" => stopwords(item)?,
        "SynonymTokenFilter" => synonyms(item)?,
        "TruncateTokenFilter" => {
            TokenFilter::Truncate { length: item.whole("length", 1, 300)?.unwrap_or(300) }
        }
        "UniqueTokenFilter" => {
            TokenFilter::Unique { same_position: truth("onlyOnSamePosition", false)? }
        }
        "WordDelimiterTokenFilter" => word_delimiter(item)?,
        "PhoneticTokenFilter" => {
            return Err(item.wrong("@odata.type", "'PhoneticTokenFilter' is not supported"));
        }
        _ => return Err(item.wrong("@odata.type", &format!("'{kind}' is unknown"))),
    })
}

fn word_delimiter(item: &Reader<'_>) -> Result<TokenFilter> {
    let truth = |property: &str, default: bool| -> Result<bool> {
        Ok(item.boolean(property)?.unwrap_or(default))
    };
    let protected = item.strings("protectedWords")?;
    Ok(TokenFilter::WordDelimiter(WordDelimiter {
        parts: truth("generateWordParts", true)?,
        numbers: truth("generateNumberParts", true)?,
        join_words: truth("catenateWords", false)?,
        join_numbers: truth("catenateNumbers", false)?,
        join_all: truth("catenateAll", false)?,
        split_case: truth("splitOnCaseChange", true)?,
        preserve: truth("preserveOriginal", false)?,
        split_numbers: truth("splitOnNumerics", true)?,
        possessive: truth("stemEnglishPossessive", true)?,
        protected: Arc::new(protected.into_iter().collect()),
    }))
}

fn grams(item: &Reader<'_>) -> Result<(usize, usize)> {
    let min = item.whole("minGram", 1, 300)?.unwrap_or(1);
    let max = item.whole("maxGram", 1, 300)?.unwrap_or(2);
    if min > max {
        return Err(item.wrong("minGram", "must not be greater than 'maxGram'"));
    }
    Ok((min, max))
}

fn shingle(item: &Reader<'_>) -> Result<TokenFilter> {
    let max = item.whole("maxShingleSize", 2, 10)?.unwrap_or(2);
    let min = item.whole("minShingleSize", 2, 10)?.unwrap_or(2);
    if min > max {
        return Err(item.wrong("minShingleSize", "must not be greater than 'maxShingleSize'"));
    }
    Ok(TokenFilter::Shingle {
        min,
        max,
        unigrams: item.boolean("outputUnigrams")?.unwrap_or(true),
        unigrams_if_none: item.boolean("outputUnigramsIfNoShingles")?.unwrap_or(false),
        separator: item.string("tokenSeparator")?.unwrap_or_else(|| " ".to_owned()),
        filler: item.string("filterToken")?.unwrap_or_else(|| "_".to_owned()),
    })
}

fn overrides(item: &Reader<'_>) -> Result<Arc<BTreeMap<String, String>>> {
    let mut rules = BTreeMap::new();
    for rule in item.strings("rules")? {
        let (word, stem) =
            rule.split_once("=>").ok_or_else(|| item.wrong("rules", "must be 'word => stem'"))?;
        rules.insert(word.trim().to_owned(), stem.trim().to_owned());
    }
    Ok(Arc::new(rules))
}

fn stopwords(item: &Reader<'_>) -> Result<TokenFilter> {
    let own = item.strings("stopwords")?;
    let list = item.string("stopwordsList")?.unwrap_or_else(|| "english".to_owned());
    let words = if own.is_empty() {
        stop_words(&list)
            .ok_or_else(|| item.wrong("stopwordsList", &format!("'{list}' is not supported")))?
    } else {
        Arc::new(own.into_iter().collect())
    };
    Ok(TokenFilter::Stop {
        words,
        ignore_case: item.boolean("ignoreCase")?.unwrap_or(false),
        trailing: item.boolean("removeTrailing")?.unwrap_or(true),
    })
}

/// Synonyms of single words. Longer ones need a graph of tokens and are refused.
fn synonyms(item: &Reader<'_>) -> Result<TokenFilter> {
    let ignore_case = item.boolean("ignoreCase")?.unwrap_or(false);
    let expand = item.boolean("expand")?.unwrap_or(true);
    let mut rules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in item.strings("synonyms")? {
        let words = |text: &str| -> Vec<String> {
            text.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
        };
        let (from, to) = match rule.split_once("=>") {
            Some((from, to)) => (words(from), words(to)),
            None => {
                let all = words(&rule);
                let to = if expand { all.clone() } else { all.iter().take(1).cloned().collect() };
                (all, to)
            }
        };
        if from.iter().chain(&to).any(|it| it.contains(char::is_whitespace)) {
            return Err(item.wrong("synonyms", "of several words are not supported here"));
        }
        for word in from {
            let word = if ignore_case { word.to_lowercase() } else { word };
            let known = rules.entry(word).or_default();
            for other in &to {
                if !known.contains(other) {
                    known.push(other.clone());
                }
            }
        }
    }
    Ok(TokenFilter::Synonyms { rules: Arc::new(rules), ignore_case })
}

/// The algorithm of a language of the Snowball filter.
fn snowball(language: &str) -> Option<Algorithm> {
    Some(match language.to_ascii_lowercase().as_str() {
        "armenian" => Algorithm::Armenian,
        "basque" => Algorithm::Basque,
        "catalan" => Algorithm::Catalan,
        "danish" => Algorithm::Danish,
        "dutch" => Algorithm::DutchPorter,
        "english" => Algorithm::English,
        "finnish" => Algorithm::Finnish,
        "french" => Algorithm::French,
        "german" | "german2" => Algorithm::German,
        "hungarian" => Algorithm::Hungarian,
        "italian" => Algorithm::Italian,
        "lovins" => Algorithm::Lovins,
        "norwegian" => Algorithm::Norwegian,
        "porter" => Algorithm::Porter,
        "portuguese" => Algorithm::Portuguese,
        "romanian" => Algorithm::Romanian,
        "russian" => Algorithm::Russian,
        "spanish" => Algorithm::Spanish,
        "swedish" => Algorithm::Swedish,
        "turkish" => Algorithm::Turkish,
        _ => return None,
    })
}

/// The filter of a language of the stemmer filter.
fn stemmer(language: &str) -> Option<TokenFilter> {
    Some(match language {
        "porter2" => TokenFilter::Snowball(Algorithm::English),
        "english" => TokenFilter::Snowball(Algorithm::Porter),
        "possessiveEnglish" => TokenFilter::Possessive,
        "lightEnglish" | "minimalEnglish" => TokenFilter::Stem(Stemming::MinimalEnglish),
        "lightFrench" => TokenFilter::Stem(Stemming::LightFrench),
        "lightGerman" => TokenFilter::Stem(Stemming::LightGerman),
        "lightSpanish" => TokenFilter::Stem(Stemming::LightSpanish),
        "lightItalian" => TokenFilter::Stem(Stemming::LightItalian),
        "dutchKp" => TokenFilter::Snowball(Algorithm::Dutch),
        other => TokenFilter::Snowball(snowball(other)?),
    })
}
