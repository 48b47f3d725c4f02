//! The analyzers and normalizers that every index knows by name.

use super::char_filter::CharFilter;
use super::filters::{Stemming, TokenFilter};
use super::tokenizer::{Tokenizer, options};
use super::{Analyzer, Normalizer, standard};
use frostem::Algorithm;
use std::collections::BTreeMap;
use std::sync::Arc;

mod names;
mod stopwords;

pub use names::{ALIASES, predefined_names};
pub(crate) use stopwords::stop_words;

/// The filter that drops the stop words of a language.
pub(crate) fn stop(language: &str) -> TokenFilter {
    let words = stop_words(language).unwrap_or_default();
    TokenFilter::Stop { words, ignore_case: false, trailing: true }
}

/// The filter that cuts the articles of a language.
pub(crate) fn elision(language: &str) -> TokenFilter {
    let articles: &[&str] = match language {
        "catalan" => &["d", "l", "m", "n", "s", "t"],
        "irish" => &["d", "m", "b"],
        "italian" => &[
            "c", "l", "all", "dall", "dell", "nell", "sull", "coll", "pell", "gl", "agl", "dagl",
            "degl", "negl", "sugl", "un", "m", "t", "s", "v", "d",
        ],
        _ => &["l", "m", "t", "qu", "n", "s", "j", "d", "c", "jusqu", "quoiqu", "lorsqu", "puisqu"],
    };
    TokenFilter::Elision(Arc::new(articles.iter().map(|it| (*it).to_owned()).collect()))
}

/// The predefined analyzer of a name.
pub(super) fn analyzer(name: &str) -> Option<Arc<Analyzer>> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    let standard = || Tokenizer::Standard { length_max: standard::LENGTH_MAX };
    let (tokenizer, filters) = match name {
        "standard.lucene" | "standard" => (standard(), vec![TokenFilter::LowerCase]),
        "standardasciifolding.lucene" => {
            let folding = TokenFilter::AsciiFolding { preserve: false };
            (standard(), vec![TokenFilter::LowerCase, folding])
        }
        "keyword" => (Tokenizer::Keyword, vec![]),
        "pattern" => {
            let pattern = Tokenizer::Pattern { pattern: options::non_words(), group: -1 };
            (pattern, vec![TokenFilter::LowerCase])
        }
        "simple" => (Tokenizer::Letter { lower: true }, vec![]),
        "stop" => (Tokenizer::Letter { lower: true }, vec![stop("english")]),
        "whitespace" => (Tokenizer::Whitespace { length_max: standard::LENGTH_MAX }, vec![]),
        _ => (standard(), language(name)?),
    };
    // Parts of Persian words are joined by a character without width, which parts them here.
    let joiner = || CharFilter::Mapping(vec![("\u{200C}".to_owned(), " ".to_owned())]);
    let char_filters = if name == "fa.lucene" { vec![joiner()] } else { Vec::new() };
    Some(Arc::new(Analyzer { char_filters, tokenizer, filters }))
}

/// The filters of a language's analyzer.
fn language(name: &str) -> Option<Vec<TokenFilter>> {
    use TokenFilter::{Arabic, DecimalDigit, German, Hindi, LowerCase, Persian, Possessive, Stem};
    let snowball = TokenFilter::Snowball;
    // Lower case, stop words, Snowball: the chain of most languages.
    let plain = |language: &str, algorithm| vec![LowerCase, stop(language), snowball(algorithm)];
    Some(match name {
        "ar.lucene" => {
            vec![LowerCase, DecimalDigit, stop("arabic"), Arabic, Stem(Stemming::Arabic)]
        }
        "bg.lucene" => vec![LowerCase, stop("bulgarian")],
        "ca.lucene" => {
            let mut chain = plain("catalan", Algorithm::Catalan);
            chain.insert(0, elision("catalan"));
            chain
        }
        "cs.lucene" => plain("czech", Algorithm::Czech),
        "da.lucene" => plain("danish", Algorithm::Danish),
        "de.lucene" => vec![LowerCase, stop("german"), German, Stem(Stemming::LightGerman)],
        "el.lucene" => {
            vec![TokenFilter::GreekLowerCase, stop("greek"), snowball(Algorithm::Greek)]
        }
        "en.lucene" => vec![Possessive, LowerCase, stop("english"), snowball(Algorithm::Porter)],
        "es.lucene" => vec![LowerCase, stop("spanish"), Stem(Stemming::LightSpanish)],
        "eu.lucene" => plain("basque", Algorithm::Basque),
        "fa.lucene" => vec![LowerCase, DecimalDigit, Arabic, Persian, stop("persian")],
        "fi.lucene" => plain("finnish", Algorithm::Finnish),
        "fr.lucene" => {
            vec![elision("french"), LowerCase, stop("french"), Stem(Stemming::LightFrench)]
        }
        "ga.lucene" => {
            let filters = [TokenFilter::IrishLowerCase, stop("irish"), snowball(Algorithm::Irish)];
            std::iter::once(elision("irish")).chain(filters).collect()
        }
        "gl.lucene" => vec![LowerCase, stop("galician")],
        "hi.lucene" => {
            vec![LowerCase, DecimalDigit, Hindi, stop("hindi"), snowball(Algorithm::Hindi)]
        }
        "hu.lucene" => plain("hungarian", Algorithm::Hungarian),
        "hy.lucene" => plain("armenian", Algorithm::Armenian),
        "id.lucene" => plain("indonesian", Algorithm::Indonesian),
        "it.lucene" => {
            vec![elision("italian"), LowerCase, stop("italian"), Stem(Stemming::LightItalian)]
        }
        "lv.lucene" => vec![LowerCase, stop("latvian")],
        "nl.lucene" => {
            let filters = [dutch_exceptions(), snowball(Algorithm::DutchPorter)];
            [LowerCase, stop("dutch")].into_iter().chain(filters).collect()
        }
        "no.lucene" => plain("norwegian", Algorithm::Norwegian),
        "pl.lucene" => vec![LowerCase, snowball(Algorithm::Polish)],
        "pt-BR.lucene" => plain("brazilian", Algorithm::Portuguese),
        "pt-PT.lucene" => plain("portuguese", Algorithm::Portuguese),
        "ro.lucene" => plain("romanian", Algorithm::Romanian),
        "ru.lucene" => plain("russian", Algorithm::Russian),
        "sv.lucene" => plain("swedish", Algorithm::Swedish),
        "th.lucene" => vec![LowerCase, DecimalDigit, stop("thai")],
        "tr.lucene" => {
            let filters = [TokenFilter::TurkishLowerCase, stop("turkish")];
            let stem = snowball(Algorithm::Turkish);
            std::iter::once(TokenFilter::Apostrophe).chain(filters).chain([stem]).collect()
        }
        // Dictionaries of words of Chinese, Japanese and Korean are not part of this engine: pairs of characters are.
        "zh-Hans.lucene" | "zh-Hant.lucene" | "ja.lucene" | "ko.lucene" => {
            let pairs = TokenFilter::CjkBigram { unigrams: false };
            vec![TokenFilter::CjkWidth, LowerCase, pairs, stop("english")]
        }
        _ => return None,
    })
}

/// Words of Dutch whose stems the algorithm gets wrong.
fn dutch_exceptions() -> TokenFilter {
    let words =
        [("fiets", "fiets"), ("bromfiets", "bromfiets"), ("ei", "eier"), ("kind", "kinder")];
    let rules = words.into_iter().map(|(word, stem)| (word.to_owned(), stem.to_owned()));
    TokenFilter::StemmerOverride(Arc::new(rules.collect::<BTreeMap<_, _>>()))
}

/// The predefined normalizer of a name.
pub(super) fn normalizer(name: &str) -> Option<Arc<Normalizer>> {
    let folding = TokenFilter::AsciiFolding { preserve: false };
    let filters = match name {
        "asciifolding" => vec![folding],
        "elision" => vec![elision("french")],
        "lowercase" => vec![TokenFilter::LowerCase],
        "standard" => vec![TokenFilter::LowerCase, folding],
        "uppercase" => vec![TokenFilter::UpperCase],
        _ => return None,
    };
    Some(Arc::new(Normalizer { char_filters: Vec::new(), filters }))
}
