//! The entities that are written and read: an order of a shop, about 180 bytes of JSON.

use std::fmt::Write;

/// As many as a page of a query holds.
pub(super) const ENTITIES_PER_PARTITION: u64 = 1_000;

/// The keys of the entity with this number in a filled table.
pub(super) fn keys(number: u64) -> (String, String) {
    (partition(number / ENTITIES_PER_PARTITION), format!("r{:06}", number % ENTITIES_PER_PARTITION))
}

pub(super) fn partition(number: u64) -> String {
    format!("p{number:06}")
}

/// The whole entity as JSON.
pub(super) fn write(text: &mut String, partition: &str, row: &str, number: u64) {
    let state = ["open", "paid", "sent", "back"][(number % 4) as usize];
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Customer\":\"customer {number:x}\",\
         \"Count\":{},\"Price\":{}.25,\"State\":\"{state}\",\"Express\":{}}}",
        number % 10_000,
        number % 977,
        number.is_multiple_of(3),
    );
}
