//! Analyzers that an index defines for itself: chains of parts, each predefined or defined in the same index.

use super::char_filter::CharFilter;
use super::filters::{TokenFilter, options as filter_options};
use super::tokenizer::{Tokenizer, options as tokenizer_options};
use super::{Analysis, Analyzer, Normalizer, predefined};
use crate::definition::Reader;
use crate::error::{Result, SearchError};
use crate::limits;
use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tokenizers and filters of an index, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    tokenizers: BTreeMap<String, Tokenizer>,
    filters: BTreeMap<String, TokenFilter>,
    char_filters: BTreeMap<String, CharFilter>,
}

/// What the types of custom parts begin with.
const PREFIX: &str = "#Microsoft.Azure.Search.";

/// Bytes that the program of a pattern may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Reads the analyzers, tokenizers, filters and normalizers of an index.
pub(super) fn parse(reader: &Reader<'_>) -> Result<Analysis> {
    let mut analysis = Analysis::default();
    for item in checked(reader, "charFilters")? {
        let filter = parse_char_filter(&item, &kind_of(&item)?)?;
        analysis.parts.char_filters.insert(name_of(&item)?, filter);
    }
    for item in checked(reader, "tokenizers")? {
        let tokenizer = tokenizer_options::parse(&item, &kind_of(&item)?)?;
        analysis.parts.tokenizers.insert(name_of(&item)?, tokenizer);
    }
    for item in checked(reader, "tokenFilters")? {
        let filter = filter_options::parse(&item, &kind_of(&item)?)?;
        analysis.parts.filters.insert(name_of(&item)?, filter);
    }
    for item in checked(reader, "analyzers")? {
        let analyzer = parse_analyzer(&analysis, &item)?;
        analysis.analyzers.insert(name_of(&item)?, Arc::new(analyzer));
    }
    for item in checked(reader, "normalizers")? {
        let normalizer = parse_normalizer(&analysis, &item)?;
        analysis.normalizers.insert(name_of(&item)?, Arc::new(normalizer));
    }
    Ok(analysis)
}

fn checked<'a>(reader: &Reader<'a>, property: &str) -> Result<Vec<Reader<'a>>> {
    let items = reader.objects(property)?;
    if items.len() > limits::CUSTOM_PARTS_MAX {
        let what = format!("has more than {} entries", limits::CUSTOM_PARTS_MAX);
        return Err(reader.wrong(property, &what));
    }
    Ok(items)
}

fn name_of(item: &Reader<'_>) -> Result<String> {
    let name = item.required_string("name")?;
    if name.is_empty() || name.chars().count() > limits::NAME_CHARS_MAX {
        return Err(item.wrong("name", "must have 1 to 128 characters"));
    }
    Ok(name)
}

fn kind_of(item: &Reader<'_>) -> Result<String> {
    let kind = item.required_string("@odata.type")?;
    match kind.strip_prefix(PREFIX) {
        Some(kind) => Ok(kind.to_owned()),
        None => Err(item.wrong("@odata.type", &format!("'{kind}' is unknown"))),
    }
}

/// A pattern of the index's owner, with bounded cost.
pub(super) fn pattern(item: &Reader<'_>, property: &str, text: &str, flags: &str) -> Result<Regex> {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(PATTERN_BYTES_MAX);
    for flag in flags.split('|').filter(|it| !it.is_empty()) {
        match flag {
            "CASE_INSENSITIVE" => builder.case_insensitive(true),
            "MULTILINE" => builder.multi_line(true),
            "DOTALL" => builder.dot_matches_new_line(true),
            "COMMENTS" => builder.ignore_whitespace(true),
            "UNICODE_CASE" | "UNIX_LINES" => &mut builder,
            _ => return Err(item.wrong("flags", &format!("'{flag}' is not supported"))),
        };
    }
    builder.build().map_err(|_| item.wrong(property, "is not a pattern that is supported"))
}

fn parse_char_filter(item: &Reader<'_>, kind: &str) -> Result<CharFilter> {
    match kind {
        "MappingCharFilter" => {
            let mut rules = Vec::new();
            let mappings = item.strings("mappings")?;
            if mappings.len() > limits::MAPPINGS_MAX {
                let what = format!("has more than {} rules", limits::MAPPINGS_MAX);
                return Err(item.wrong("mappings", &what));
            }
            for rule in mappings {
                let (from, to) = rule
                    .split_once("=>")
                    .ok_or_else(|| item.wrong("mappings", "must be of the form 'a=>b'"))?;
                if from.is_empty() {
                    return Err(item.wrong("mappings", "must have a text before '=>'"));
                }
                rules.push((unescaped(from), unescaped(to)));
            }
            Ok(CharFilter::Mapping(rules))
        }
        "PatternReplaceCharFilter" => {
            let text = item.required_string("pattern")?;
            let replacement = item.required_string("replacement")?;
            let pattern = pattern(item, "pattern", &text, "")?;
            Ok(CharFilter::PatternReplace(pattern, replacement))
        }
        _ => Err(item.wrong("@odata.type", &format!("'{kind}' is unknown"))),
    }
}

/// Mappings write characters also as `\uXXXX`.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).and_then(|it| u32::from_str_radix(it, 16).ok());
        match code.and_then(char::from_u32) {
            Some(c) => {
                out.push(c);
                rest = &rest[at + 6..];
            }
            None => {
                out.push_str("\\u");
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn parse_analyzer(analysis: &Analysis, item: &Reader<'_>) -> Result<Analyzer> {
    let kind = kind_of(item)?;
    match kind.as_str() {
        "CustomAnalyzer" => {
            let tokenizer = item.required_string("tokenizer")?;
            let filters = item.strings("tokenFilters")?;
            let char_filters = item.strings("charFilters")?;
            analysis
                .chain(&tokenizer, &filters, &char_filters)
                .map_err(|error| error.within(item.place()))
        }
        "PatternAnalyzer" => {
            let text = item.string("pattern")?.unwrap_or_else(|| r"\W+".to_owned());
            let flags = item.string("flags")?.unwrap_or_default();
            let tokenizer =
                Tokenizer::Pattern { pattern: pattern(item, "pattern", &text, &flags)?, group: -1 };
            let mut filters = Vec::new();
            if item.boolean("lowercase")?.unwrap_or(true) {
                filters.push(TokenFilter::LowerCase);
            }
            push_stop(&mut filters, item)?;
            Ok(Analyzer { char_filters: Vec::new(), tokenizer, filters })
        }
        "StandardAnalyzer" => {
            let length_max = item.whole("maxTokenLength", 1, 300)?.unwrap_or(255);
            let mut filters = vec![TokenFilter::LowerCase];
            push_stop(&mut filters, item)?;
            let tokenizer = Tokenizer::Standard { length_max };
            Ok(Analyzer { char_filters: Vec::new(), tokenizer, filters })
        }
        "StopAnalyzer" => {
            let mut filters = Vec::new();
            if item.array("stopwords")?.is_empty() {
                filters.push(predefined::stop("english"));
            }
            push_stop(&mut filters, item)?;
            let tokenizer = Tokenizer::Letter { lower: true };
            Ok(Analyzer { char_filters: Vec::new(), tokenizer, filters })
        }
        _ => Err(item.wrong("@odata.type", &format!("'{kind}' is unknown"))),
    }
}

fn push_stop(filters: &mut Vec<TokenFilter>, item: &Reader<'_>) -> Result<()> {
    let words = item.strings("stopwords")?;
    if !words.is_empty() {
        let words = Arc::new(words.into_iter().collect());
        filters.push(TokenFilter::Stop { words, ignore_case: false, trailing: true });
    }
    Ok(())
}

fn parse_normalizer(analysis: &Analysis, item: &Reader<'_>) -> Result<Normalizer> {
    let kind = kind_of(item)?;
    if kind != "CustomNormalizer" {
        return Err(item.wrong("@odata.type", &format!("'{kind}' is unknown")));
    }
    let mut filters = Vec::new();
    for name in item.strings("tokenFilters")? {
        let filter = analysis.filter(&name).map_err(|error| error.within(item.place()))?;
        if !filter.keeps_one_token() {
            return Err(item.wrong("tokenFilters", &format!("'{name}' is not for normalizers")));
        }
        filters.push(filter);
    }
    let char_filters = item
        .strings("charFilters")?
        .iter()
        .map(|it| analysis.char_filter(it))
        .collect::<Result<_>>()?;
    Ok(Normalizer { char_filters, filters })
}

impl Analysis {
    /// A chain of parts by their names.
    pub(crate) fn chain(
        &self,
        tokenizer: &str,
        filters: &[String],
        char_filters: &[String],
    ) -> Result<Analyzer> {
        let known = self.parts.tokenizers.get(tokenizer).cloned();
        let tokenizer =
            known.or_else(|| tokenizer_options::predefined(tokenizer)).ok_or_else(|| {
                SearchError::invalid(format!("the tokenizer '{tokenizer}' is unknown"))
            })?;
        Ok(Analyzer {
            char_filters: char_filters
                .iter()
                .map(|it| self.char_filter(it))
                .collect::<Result<_>>()?,
            tokenizer,
            filters: filters.iter().map(|it| self.filter(it)).collect::<Result<_>>()?,
        })
    }

    fn filter(&self, name: &str) -> Result<TokenFilter> {
        let known = self.parts.filters.get(name).cloned();
        known
            .or_else(|| filter_options::predefined(name))
            .ok_or_else(|| SearchError::invalid(format!("the token filter '{name}' is unknown")))
    }

    fn char_filter(&self, name: &str) -> Result<CharFilter> {
        let known = self.parts.char_filters.get(name).cloned();
        known
            .or_else(|| (name == "html_strip").then_some(CharFilter::HtmlStrip))
            .ok_or_else(|| SearchError::invalid(format!("the char filter '{name}' is unknown")))
    }
}
