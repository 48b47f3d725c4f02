//! What the Table service takes. Each number is the service's own and can be raised by settings.

use std::time::Duration;

/// The limits of the service. Plain data, so that settings can fill it in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most bytes of a request's body.
    pub body_bytes_max: usize,
    /// The most UTF-16 units of a partition key or a row key (1 KiB).
    pub key_units_max: usize,
    /// The most properties of an entity beside the two keys and the timestamp.
    pub property_count_max: usize,
    /// The most UTF-16 units of a property's name.
    pub property_name_units_max: usize,
    /// The most bytes of one value; text counts as UTF-16.
    pub value_bytes_max: usize,
    /// The most bytes of an entity, counted as the service counts them.
    pub entity_bytes_max: usize,
    /// The most operations of a transaction.
    pub transaction_operations_max: usize,
    /// The most bytes of a transaction's body.
    pub transaction_bytes_max: usize,
    /// The most entities or tables in one answer.
    pub page_items_max: usize,
    /// A page ends after the entity with which its text passes this size.
    pub page_bytes_max: usize,
    /// A query ends its page, however few it found, after looking at this many entities.
    pub scan_entities_max: usize,
    /// A query ends its page, however few it found, when it has taken this long.
    pub scan_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 4 * 1024 * 1024,
            key_units_max: 512,
            property_count_max: 252,
            property_name_units_max: 255,
            value_bytes_max: 64 * 1024,
            entity_bytes_max: 1024 * 1024,
            transaction_operations_max: 100,
            transaction_bytes_max: 4 * 1024 * 1024,
            page_items_max: 1000,
            page_bytes_max: 4 * 1024 * 1024,
            scan_entities_max: 20_000,
            scan_time_max: Duration::from_secs(5),
        }
    }
}

/// The shortest and the longest name of a table.
pub const TABLE_NAME_LENGTHS: std::ops::RangeInclusive<usize> = 3..=63;
/// The longest `$filter`.
pub const FILTER_BYTES_MAX: usize = 32 * 1024;
/// How deep parentheses and `not` may nest in a `$filter`.
pub const FILTER_DEPTH_MAX: usize = 200;
/// The most names in a `$select`.
pub const SELECT_NAMES_MAX: usize = 255;
