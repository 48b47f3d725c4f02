//! Tokenizers by their names, and as indexes define them.

use super::{CharClass, Tokenizer};
use crate::analysis::custom;
use crate::analysis::standard::LENGTH_MAX;
use crate::definition::Reader;
use crate::error::Result;
use regex::Regex;

/// The tokenizer of a name, with its defaults.
pub(crate) fn predefined(name: &str) -> Option<Tokenizer> {
    Some(match name {
        "classic" => Tokenizer::Classic { length_max: LENGTH_MAX },
        "edgeNGram" => Tokenizer::NGram { min: 1, max: 2, edge: true, chars: Vec::new() },
        "keyword" | "keyword_v2" => Tokenizer::Keyword,
        "letter" => Tokenizer::Letter { lower: false },
        "lowercase" => Tokenizer::Letter { lower: true },
        // The originals cut words of many languages; the rules of Unicode are the nearest that is public.
        "microsoft_language_tokenizer" | "microsoft_language_stemming_tokenizer" => {
            Tokenizer::Standard { length_max: LENGTH_MAX }
        }
        "nGram" => Tokenizer::NGram { min: 1, max: 2, edge: false, chars: Vec::new() },
        "path_hierarchy" | "path_hierarchy_v2" => {
            Tokenizer::PathHierarchy { delimiter: '/', replacement: '/', skip: 0, reverse: false }
        }
        "pattern" => Tokenizer::Pattern { pattern: non_words(), group: -1 },
        "standard" | "standard_v2" => Tokenizer::Standard { length_max: LENGTH_MAX },
        "uax_url_email" => Tokenizer::UaxUrlEmail { length_max: LENGTH_MAX },
        "whitespace" => Tokenizer::Whitespace { length_max: LENGTH_MAX },
        _ => return None,
    })
}

/// Everything between words.
pub(crate) fn non_words() -> Regex {
    Regex::new(r"[^0-9A-Za-z_]+").expect("the pattern is constant")
}

/// A tokenizer that an index defines.
pub(crate) fn parse(item: &Reader<'_>, kind: &str) -> Result<Tokenizer> {
    let length = |max: u64| item.whole("maxTokenLength", 1, max);
    Ok(match kind {
        "ClassicTokenizer" => Tokenizer::Classic { length_max: length(300)?.unwrap_or(LENGTH_MAX) },
        "EdgeNGramTokenizer" => ngram(item, true)?,
        "NGramTokenizer" => ngram(item, false)?,
        "KeywordTokenizer" | "KeywordTokenizerV2" => Tokenizer::Keyword,
        "LetterTokenizer" => Tokenizer::Letter { lower: false },
        "LowercaseTokenizer" => Tokenizer::Letter { lower: true },
        "MicrosoftLanguageTokenizer" | "MicrosoftLanguageStemmingTokenizer" => {
            Tokenizer::Standard { length_max: length(300)?.unwrap_or(LENGTH_MAX) }
        }
        "PathHierarchyTokenizer" | "PathHierarchyTokenizerV2" => {
            let delimiter = character(item, "delimiter")?.unwrap_or('/');
            Tokenizer::PathHierarchy {
                delimiter,
                replacement: character(item, "replacement")?.unwrap_or(delimiter),
                skip: item.whole("skip", 0, 1_000)?.unwrap_or(0),
                reverse: item.boolean("reverse")?.unwrap_or(false),
            }
        }
        "PatternTokenizer" => {
            let text = item.string("pattern")?;
            let flags = item.string("flags")?.unwrap_or_default();
            let group = match item.number("group")? {
                None => -1,
                Some(group) if (-1.0..100.0).contains(&group) => group as i32,
                Some(_) => return Err(item.wrong("group", "must be -1 or the number of a group")),
            };
            let pattern = match text {
                Some(text) => custom::pattern(item, "pattern", &text, &flags)?,
                None => non_words(),
            };
            Tokenizer::Pattern { pattern, group }
        }
        "StandardTokenizer" | "StandardTokenizerV2" => {
            Tokenizer::Standard { length_max: length(300)?.unwrap_or(LENGTH_MAX) }
        }
        "UaxUrlEmailTokenizer" => {
            Tokenizer::UaxUrlEmail { length_max: length(300)?.unwrap_or(LENGTH_MAX) }
        }
        _ => return Err(item.wrong("@odata.type", &format!("'{kind}' is unknown"))),
    })
}

fn ngram(item: &Reader<'_>, edge: bool) -> Result<Tokenizer> {
    let min = item.whole("minGram", 1, 300)?.unwrap_or(1);
    let max = item.whole("maxGram", 1, 300)?.unwrap_or(2);
    if min > max {
        return Err(item.wrong("minGram", "must not be greater than 'maxGram'"));
    }
    let mut chars = Vec::new();
    for name in item.strings("tokenChars")? {
        chars.push(match name.as_str() {
            "letter" => CharClass::Letter,
            "digit" => CharClass::Digit,
            "whitespace" => CharClass::Whitespace,
            "punctuation" => CharClass::Punctuation,
            "symbol" => CharClass::Symbol,
            _ => return Err(item.wrong("tokenChars", &format!("'{name}' is unknown"))),
        });
    }
    Ok(Tokenizer::NGram { min, max, edge, chars })
}

fn character(item: &Reader<'_>, property: &str) -> Result<Option<char>> {
    let Some(text) = item.string(property)? else { return Ok(None) };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(Some(c)),
        _ => Err(item.wrong(property, "must be one character")),
    }
}
