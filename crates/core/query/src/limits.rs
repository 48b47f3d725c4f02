//! Limits on queries: the service's where it documents one, ours where memory or the stack asks for one.

/// Bytes of a query's text.
pub const TEXT_BYTES_MAX: usize = 512 * 1024;

/// JOINs of one query.
pub const JOINS_MAX: usize = 10;

/// Calls of user-defined functions in one query.
pub const UDF_CALLS_MAX: usize = 10;

/// Values in the list of one IN.
pub const IN_ITEMS_MAX: usize = 16_000;

/// Expressions and subqueries inside of one another.
pub const DEPTH_MAX: usize = 100;

/// Expressions of one ORDER BY or GROUP BY, as many as a composite index may have properties.
pub const SORT_EXPRESSIONS_MAX: usize = 8;

/// Bytes of rows that one page holds while it is gathered. A page ends before it would be larger.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows of one page if the caller leaves it to us.
pub const PAGE_ROWS_DEFAULT: usize = 1_000;

/// Rows of one page.
pub const PAGE_ROWS_MAX: usize = 10_000;

/// Bytes that a query may hold in memory: sort keys of skipped rows, groups, lists of aggregates, rows of subqueries.
/// A query beyond it is refused.
pub const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a value that an expression makes, and of a row. A document can be named many times in one text.
pub const MADE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Rows that JOINs may make of one item.
pub const ROWS_PER_ITEM_MAX: usize = 1_000_000;

/// Steps of matching one text with one LIKE pattern, some ten milliseconds.
pub const LIKE_STEPS_MAX: usize = 20_000_000;

/// Bytes of a continuation.
pub const CONTINUATION_BYTES_MAX: usize = 16 * 1024;

/// Bytes of aggregates that a continuation carries from one page to the next. Continuations are headers of responses, and some
/// clients take no more than 16 KiB of headers.
pub const PAUSED_BYTES_MAX: usize = 4 * 1024;

/// Groups of which a continuation carries the aggregates.
pub const PAUSED_GROUPS_MAX: usize = 64;
