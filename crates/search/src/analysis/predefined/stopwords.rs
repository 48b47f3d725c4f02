//! Lists of stop words by language, one word a line. `data/stopwords/README.md` says where they come from.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Languages and their lists.
const LISTS: &[(&str, &str)] = &[
    ("arabic", include_str!("../../../data/stopwords/arabic.txt")),
    ("armenian", include_str!("../../../data/stopwords/armenian.txt")),
    ("basque", include_str!("../../../data/stopwords/basque.txt")),
    ("brazilian", include_str!("../../../data/stopwords/brazilian.txt")),
    ("bulgarian", include_str!("../../../data/stopwords/bulgarian.txt")),
    ("catalan", include_str!("../../../data/stopwords/catalan.txt")),
    ("czech", include_str!("../../../data/stopwords/czech.txt")),
    ("danish", include_str!("../../../data/stopwords/danish.txt")),
    ("dutch", include_str!("../../../data/stopwords/dutch.txt")),
    ("english", include_str!("../../../data/stopwords/english.txt")),
    ("finnish", include_str!("../../../data/stopwords/finnish.txt")),
    ("french", include_str!("../../../data/stopwords/french.txt")),
    ("galician", include_str!("../../../data/stopwords/galician.txt")),
    ("german", include_str!("../../../data/stopwords/german.txt")),
    ("greek", include_str!("../../../data/stopwords/greek.txt")),
    ("hindi", include_str!("../../../data/stopwords/hindi.txt")),
    ("hungarian", include_str!("../../../data/stopwords/hungarian.txt")),
    ("indonesian", include_str!("../../../data/stopwords/indonesian.txt")),
    ("irish", include_str!("../../../data/stopwords/irish.txt")),
    ("italian", include_str!("../../../data/stopwords/italian.txt")),
    ("latvian", include_str!("../../../data/stopwords/latvian.txt")),
    ("norwegian", include_str!("../../../data/stopwords/norwegian.txt")),
    ("persian", include_str!("../../../data/stopwords/persian.txt")),
    ("portuguese", include_str!("../../../data/stopwords/portuguese.txt")),
    ("romanian", include_str!("../../../data/stopwords/romanian.txt")),
    ("russian", include_str!("../../../data/stopwords/russian.txt")),
    ("sorani", include_str!("../../../data/stopwords/sorani.txt")),
    ("spanish", include_str!("../../../data/stopwords/spanish.txt")),
    ("swedish", include_str!("../../../data/stopwords/swedish.txt")),
    ("thai", include_str!("../../../data/stopwords/thai.txt")),
    ("turkish", include_str!("../../../data/stopwords/turkish.txt")),
];

/// The stop words of a language.
pub(crate) fn stop_words(language: &str) -> Option<Arc<BTreeSet<String>>> {
    let (_, list) = LISTS.iter().find(|(name, _)| *name == language)?;
    Some(Arc::new(list.lines().map(str::to_owned).filter(|it| !it.is_empty()).collect()))
}
