//! Every limit of the search engine, by name. The service's own ones are marked with where they are documented; the
//! others bound what one request can make the engine do.

/// Fields of an index, all levels together (service limits, S tiers).
pub const FIELDS_MAX: usize = 1_000;
/// Levels of complex fields (service limits).
pub const FIELD_DEPTH_MAX: usize = 10;
/// Complex collections of an index (service limits).
pub const COMPLEX_COLLECTIONS_MAX: usize = 40;
/// Elements of all complex collections of one document (service limits).
pub const COLLECTION_ELEMENTS_MAX: usize = 3_000;
/// Characters of a name of an index or a field (naming rules).
pub const NAME_CHARS_MAX: usize = 128;
/// Dimensions of a vector field (service limits).
pub const DIMENSIONS_MAX: usize = 4_096;
/// Scoring profiles of an index (service limits).
pub const SCORING_PROFILES_MAX: usize = 100;
/// Functions of a scoring profile (service limits).
pub const SCORING_FUNCTIONS_MAX: usize = 8;
/// Custom analyzers, tokenizers, filters or normalizers of one kind.
pub const CUSTOM_PARTS_MAX: usize = 50;
/// Rules of one synonym map (service limits, S tiers).
pub const SYNONYM_RULES_MAX: usize = 20_000;
/// Terms of one synonym rule (service limits).
pub const SYNONYM_TERMS_MAX: usize = 20;

/// Bytes of an indexed term; longer ones are not indexed (service limits).
pub const TERM_BYTES_MAX: usize = 32_766;
/// Bytes of a document's key (naming rules).
pub const KEY_BYTES_MAX: usize = 1_024;

/// Characters of a search text (service limits).
pub const SEARCH_CHARS_MAX: usize = 100_000;
/// Clauses of a parsed query, counted after fields and synonyms have multiplied them.
pub const QUERY_CLAUSES_MAX: usize = 3_000;
/// Levels of parentheses in a query.
pub const QUERY_DEPTH_MAX: usize = 64;
/// Characters of a prefix, wildcard or regular expression (service limits).
pub const PATTERN_CHARS_MAX: usize = 1_000;
/// States of the automaton of a regular expression.
pub const PATTERN_STATES_MAX: usize = 10_000;
/// Edits of a fuzzy term.
pub const FUZZY_EDITS_MAX: u8 = 2;
/// Terms of the index that one fuzzy term stands for (query syntax pages).
pub const FUZZY_EXPANSIONS_MAX: usize = 50;
/// Characters of a fuzzy term; the automaton grows with them.
pub const FUZZY_TERM_CHARS_MAX: usize = 100;

/// Characters of a filter.
pub const FILTER_CHARS_MAX: usize = 512 * 1024;
/// Levels of a filter.
pub const FILTER_DEPTH_MAX: usize = 64;
/// Clauses of a filter, without the values of `search.in`.
pub const FILTER_CLAUSES_MAX: usize = 3_000;
/// Clauses of an order (`$orderby`, service limits).
pub const ORDER_CLAUSES_MAX: usize = 32;
/// Points of a polygon.
pub const POLYGON_POINTS_MAX: usize = 1_000;

/// Facets of one request.
pub const FACETS_MAX: usize = 128;
/// Buckets that one facet returns.
pub const FACET_COUNT_MAX: usize = 10_000;
/// Buckets that one facet may have while it is counted.
pub const FACET_BUCKETS_MAX: usize = 1_000_000;
/// Fragments of a field's highlights.
pub const HIGHLIGHT_FRAGMENTS_MAX: usize = 1_000;
/// Characters of a field that are looked through for highlights.
pub const HIGHLIGHT_CHARS_MAX: usize = 1_000_000;
/// Hits that one page holds (service limits).
pub const TOP_MAX: usize = 1_000;
/// Hits that may be skipped (service limits).
pub const SKIP_MAX: usize = 100_000;

/// Characters of the text of suggestions and completions (service limits).
pub const SUGGEST_CHARS_MAX: usize = 100;
/// Suggestions or completions of one request (service limits).
pub const SUGGEST_TOP_MAX: usize = 100;
/// Documents that completions of several terms look into.
pub const COMPLETION_DOCUMENTS_MAX: usize = 1_000;
/// Terms of the dictionary that completions look at.
pub const COMPLETION_TERMS_MAX: usize = 100_000;

/// Vector queries of one request.
pub const VECTOR_QUERIES_MAX: usize = 10;
/// Neighbours of one vector query.
pub const VECTOR_NEIGHBOURS_MAX: usize = 10_000;
/// Documents from which on a segment gets a graph of neighbours; fewer vectors are compared one by one.
pub const GRAPH_DOCUMENTS_MIN: u32 = 10_000;

/// Characters of a text that `analyze` takes.
pub const ANALYZE_CHARS_MAX: usize = 1_000_000;
/// Tokens that one value may become; those behind them are not indexed.
pub const TOKENS_MAX: usize = 500_000;
/// Bytes of all tokens that one value may become.
pub const TOKEN_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Rules of a mapping of characters.
pub const MAPPINGS_MAX: usize = 1_000;
/// Different prefixes, wildcards, regular expressions and fuzzy terms of a query: each is an automaton in memory.
pub const QUERY_PATTERNS_MAX: usize = 64;
/// The greatest distance of a phrase.
pub const PHRASE_SLOP_MAX: u32 = 100_000;
/// The greatest weight of a part of a query.
pub const BOOST_MAX: f32 = 1_000_000.0;
