//! Names of predefined analyzers.

/// Names that stand for the nearest analyzer of Lucene: the originals are not published.
pub const ALIASES: &[(&str, &str)] = &[
    ("ar.microsoft", "ar.lucene"),
    ("bn.microsoft", "standard.lucene"),
    ("bg.microsoft", "bg.lucene"),
    ("ca.microsoft", "ca.lucene"),
    ("zh-Hans.microsoft", "zh-Hans.lucene"),
    ("zh-Hant.microsoft", "zh-Hant.lucene"),
    ("hr.microsoft", "standardasciifolding.lucene"),
    ("cs.microsoft", "cs.lucene"),
    ("da.microsoft", "da.lucene"),
    ("nl.microsoft", "nl.lucene"),
    ("en.microsoft", "en.lucene"),
    ("et.microsoft", "standard.lucene"),
    ("fi.microsoft", "fi.lucene"),
    ("fr.microsoft", "fr.lucene"),
    ("de.microsoft", "de.lucene"),
    ("el.microsoft", "el.lucene"),
    ("gu.microsoft", "standard.lucene"),
    ("he.microsoft", "standard.lucene"),
    ("hi.microsoft", "hi.lucene"),
    ("hu.microsoft", "hu.lucene"),
    ("is.microsoft", "standard.lucene"),
    ("id.microsoft", "id.lucene"),
    ("it.microsoft", "it.lucene"),
    ("ja.microsoft", "ja.lucene"),
    ("kn.microsoft", "standard.lucene"),
    ("ko.microsoft", "ko.lucene"),
    ("lv.microsoft", "lv.lucene"),
    ("lt.microsoft", "standard.lucene"),
    ("ml.microsoft", "standard.lucene"),
    ("ms.microsoft", "standard.lucene"),
    ("mr.microsoft", "hi.lucene"),
    ("nb.microsoft", "no.lucene"),
    ("pl.microsoft", "pl.lucene"),
    ("pt-BR.microsoft", "pt-BR.lucene"),
    ("pt-PT.microsoft", "pt-PT.lucene"),
    ("pa.microsoft", "standard.lucene"),
    ("ro.microsoft", "ro.lucene"),
    ("ru.microsoft", "ru.lucene"),
    ("sr-cyrillic.microsoft", "standard.lucene"),
    ("sr-latin.microsoft", "standardasciifolding.lucene"),
    ("sk.microsoft", "cs.lucene"),
    ("sl.microsoft", "standardasciifolding.lucene"),
    ("es.microsoft", "es.lucene"),
    ("sv.microsoft", "sv.lucene"),
    ("ta.microsoft", "standard.lucene"),
    ("te.microsoft", "standard.lucene"),
    ("th.microsoft", "th.lucene"),
    ("tr.microsoft", "tr.lucene"),
    ("uk.microsoft", "standard.lucene"),
    ("ur.microsoft", "standard.lucene"),
    ("vi.microsoft", "standard.lucene"),
];

/// Analyzers of languages.
const LANGUAGES: &[&str] = &[
    "ar.lucene",
    "hy.lucene",
    "eu.lucene",
    "bg.lucene",
    "ca.lucene",
    "zh-Hans.lucene",
    "zh-Hant.lucene",
    "cs.lucene",
    "da.lucene",
    "nl.lucene",
    "en.lucene",
    "fi.lucene",
    "fr.lucene",
    "gl.lucene",
    "de.lucene",
    "el.lucene",
    "hi.lucene",
    "hu.lucene",
    "id.lucene",
    "ga.lucene",
    "it.lucene",
    "ja.lucene",
    "ko.lucene",
    "lv.lucene",
    "no.lucene",
    "fa.lucene",
    "pl.lucene",
    "pt-BR.lucene",
    "pt-PT.lucene",
    "ro.lucene",
    "ru.lucene",
    "es.lucene",
    "sv.lucene",
    "th.lucene",
    "tr.lucene",
];

/// Analyzers of no language.
const PLAIN: &[&str] = &[
    "keyword",
    "pattern",
    "simple",
    "standard.lucene",
    "standardasciifolding.lucene",
    "stop",
    "whitespace",
];

/// All names of predefined analyzers.
pub fn predefined_names() -> Vec<&'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    LANGUAGES.iter().chain(PLAIN).copied().chain(aliases).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_predefined_name_has_an_analyzer() {
        let names = predefined_names();
        assert_eq!(names.len(), 93);
        for name in names {
            assert!(super::super::analyzer(name).is_some(), "{name}");
        }
    }
}
