//! The items that are written and read: an order of a shop, about 1 KiB of JSON, with twenty values that are all indexed.

use std::fmt::Write;

/// As many as the query of one partition key gives.
pub(super) const ITEMS_PER_KEY: u64 = 100;
/// The states of orders, each of which a quarter of them have.
pub(super) const STATES: [&str; 4] = ["open", "paid", "sent", "back"];
/// Items with the same customer, who are spread over the keys.
pub(super) const ITEMS_PER_CUSTOMER: u64 = 10;

/// Fills an item up to about 1 KiB.
const REMARK: &str = "The parcel is to be left with the neighbours on the ground floor if nobody opens the door, \
    or in the shed behind the house, whose door is never locked. Ring twice, please: the bell is old and the \
    dog is not. If the street is closed for the market, which it is on Tuesdays and on Saturdays, the lane \
    behind the church leads to the back of the house. Whoever signs for it writes the date beside the name. \
    Nothing in it breaks, but it should not lie in the rain, nor in the sun for a whole afternoon.";

/// The key and the id of the item with this number in a filled container.
pub(super) fn place(number: u64) -> (String, String) {
    (key(number / ITEMS_PER_KEY), id(number))
}

pub(super) fn key(number: u64) -> String {
    format!("key-{number:06}")
}

pub(super) fn id(number: u64) -> String {
    format!("item-{number:08}")
}

pub(super) fn customer(number: u64) -> String {
    format!("customer {number:06x}")
}

/// The whole item as JSON; `number` is also what it is ordered by, `all` how many items there are.
pub(super) fn write(text: &mut String, key: &str, id: &str, number: u64, all: u64) {
    let state = STATES[(number % 4) as usize];
    let customer = customer(number % (all / ITEMS_PER_CUSTOMER).max(1));
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{{\"id\":\"{id}\",\"pk\":\"{key}\",\"number\":{number},\"customer\":\"{customer}\",\
         \"state\":\"{state}\",\"price\":{}.25,\"count\":{},\"express\":{},\"coupon\":null,\
         \"address\":{{\"street\":\"Harbour Road {}\",\"city\":\"Port {}\",\"zip\":\"{:05}\"}},\
         \"lines\":[{{\"sku\":\"sku-{:04}\",\"pieces\":{}}},{{\"sku\":\"sku-{:04}\",\"pieces\":1}}],\
         \"tags\":[\"t{}\",\"u{}\"],\"created\":\"2026-11-{:02}T{:02}:00:00Z\",\"remark\":\"{REMARK}\"}}",
        number % 977,
        number % 10_000,
        number.is_multiple_of(3),
        number % 300,
        number % 60,
        number % 99_999,
        number % 5_000,
        number % 7 + 1,
        number % 4_999,
        number % 10,
        number % 100,
        number % 28 + 1,
        number % 24,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_json_of_about_a_kibibyte() {
        let mut text = String::new();
        let (key, id) = place(1_234);
        write(&mut text, &key, &id, 1_234, 10_000);
        let item: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&item["id"], &item["pk"]), (&"item-00001234".into(), &"key-000012".into()));
        assert!((800..1_100).contains(&text.len()), "{}", text.len());
    }
}
