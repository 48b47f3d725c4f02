//! Limits of built-in functions. A function whose result would be larger is undefined.

/// Characters of what REPLICATE makes, as the service has it.
pub const REPLICATED_CHARACTERS_MAX: usize = 10_000;

/// Bytes of a text that a function makes of its arguments: an item, twice.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Elements of an array that a function makes of its arguments.
pub const ARRAY_ELEMENTS_MAX: usize = 250_000;

/// Bytes of a compiled regular expression. The time of a match is at most in proportion to them and to the text.
pub const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// Groups of a regular expression inside of one another.
pub const PATTERN_DEPTH_MAX: u32 = 50;

/// Points of a line or a polygon, as the service has it.
pub const POINTS_MAX: usize = 4096;

/// Rings of a polygon, and polygons of a multipolygon.
pub const PARTS_MAX: usize = 1024;

/// Words of a term that is sought in a text.
pub const TERM_WORDS_MAX: usize = 64;

/// Characters of a word that may have typing errors; a longer one is compared as it is.
pub const FUZZY_CHARACTERS_MAX: usize = 64;

/// Letters of a word that is reduced to its stem.
pub const STEM_LETTERS_MAX: usize = 64;

/// Typing errors that a term of a fuzzy search may have, as the service has it.
pub const FUZZY_DISTANCE_MAX: usize = 2;
