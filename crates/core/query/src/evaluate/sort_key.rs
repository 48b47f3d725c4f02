//! Keys that rows are sorted, grouped and told apart by: order keys, inverted where the order is descending.

use lazuli_value::{Node, ValueRef, order_key, undefined_key};

/// Appends the order key of a value that may be undefined. Order keys say where they end, so inverted ones sort the other
/// way round even if more follows.
pub(crate) fn append_sort_key(value: Option<ValueRef<'_>>, is_descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        Some(value) => order_key(value, out),
        None => undefined_key(out),
    }
    if is_descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// About how many bytes a value takes in memory.
pub(crate) fn value_bytes(value: ValueRef<'_>) -> usize {
    const ONE: usize = 40;
    ONE + match value.node() {
        Node::String(text) | Node::Symbol(text) | Node::JavaScript(text) => text.len(),
        Node::Binary { bytes, .. } => bytes.len(),
        Node::Array(array) => array.iter().map(value_bytes).sum(),
        Node::Object(object) => {
            object.iter().map(|(name, value)| ONE + name.len() + value_bytes(value)).sum()
        }
        _ => 0,
    }
}
