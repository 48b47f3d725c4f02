//! Comparing values: by kind first, numbers by value whatever their type, objects whatever the order of their properties.

use std::cmp::Ordering;

use crate::node::{ArrayRef, Node, ObjectRef, ValueRef};

/// The order of all values. Kinds follow one another as [`crate::Kind`] declares them, false is before true, strings go by
/// code points, arrays element by element, and objects property by property after sorting them by name.
pub fn compare(one: ValueRef<'_>, two: ValueRef<'_>) -> Ordering {
    let (one, two) = (one.node(), two.node());
    one.kind().cmp(&two.kind()).then_with(|| compare_same_kind(&one, &two))
}

fn compare_same_kind(one: &Node<'_>, two: &Node<'_>) -> Ordering {
    if let (Some(one), Some(two)) = (one.as_number(), two.as_number()) {
        return one.compare(two);
    }
    match (one, two) {
        (Node::Bool(one), Node::Bool(two)) => one.cmp(two),
        (Node::String(one) | Node::Symbol(one), Node::String(two) | Node::Symbol(two)) => {
            one.cmp(two)
        }
        (Node::Array(one), Node::Array(two)) => compare_arrays(*one, *two),
        (Node::Object(one), Node::Object(two)) => compare_objects(*one, *two),
        (
            Node::Binary { subtype, bytes },
            Node::Binary { subtype: subtype_two, bytes: bytes_two },
        ) => (subtype, bytes).cmp(&(subtype_two, bytes_two)),
        (Node::ObjectId(one), Node::ObjectId(two)) => one.cmp(two),
        (Node::DateTime(one), Node::DateTime(two)) => one.cmp(two),
        (Node::Timestamp(one), Node::Timestamp(two)) => one.cmp(two),
        (
            Node::Regex { pattern, options },
            Node::Regex { pattern: pattern_two, options: options_two },
        ) => (pattern, options).cmp(&(pattern_two, options_two)),
        (Node::JavaScript(one), Node::JavaScript(two)) => one.cmp(two),
        // Null, the least key and the greatest key have one value each.
        _ => Ordering::Equal,
    }
}

fn compare_arrays(one: ArrayRef<'_>, two: ArrayRef<'_>) -> Ordering {
    let (mut one, mut two) = (one.iter(), two.iter());
    loop {
        match (one.next(), two.next()) {
            (Some(one), Some(two)) => match compare(one, two) {
                Ordering::Equal => {}
                decided => return decided,
            },
            (one, two) => return one.is_some().cmp(&two.is_some()),
        }
    }
}

fn compare_objects(one: ObjectRef<'_>, two: ObjectRef<'_>) -> Ordering {
    let (one, two) = (sorted(one), sorted(two));
    for ((name, value), (name_two, value_two)) in one.iter().zip(&two) {
        let decided = name.cmp(name_two).then_with(|| compare(*value, *value_two));
        if decided != Ordering::Equal {
            return decided;
        }
    }
    one.len().cmp(&two.len())
}

/// The properties of an object by name.
pub(crate) fn sorted(object: ObjectRef<'_>) -> Vec<(&str, ValueRef<'_>)> {
    let mut properties: Vec<_> = object.iter().collect();
    properties.sort_unstable_by_key(|(name, _)| *name);
    properties
}

/// The order of two values of one kind; none if their kinds differ.
pub fn compare_in_kind(one: ValueRef<'_>, two: ValueRef<'_>) -> Option<Ordering> {
    let (one, two) = (one.node(), two.node());
    (one.kind() == two.kind()).then(|| compare_same_kind(&one, &two))
}

/// Whether two values of one kind are the same; none if their kinds differ.
pub fn equal_in_kind(one: ValueRef<'_>, two: ValueRef<'_>) -> Option<bool> {
    let (one, two) = (one.node(), two.node());
    (one.kind() == two.kind()).then(|| equal_nodes(&one, &two))
}

/// Whether two values are the same: numbers by value, objects whatever the order of their properties.
pub fn equal(one: ValueRef<'_>, two: ValueRef<'_>) -> bool {
    equal_nodes(&one.node(), &two.node())
}

fn equal_nodes(one: &Node<'_>, two: &Node<'_>) -> bool {
    match (one, two) {
        (Node::Array(one), Node::Array(two)) => {
            let (mut one, mut two) = (one.iter(), two.iter());
            loop {
                match (one.next(), two.next()) {
                    (Some(one), Some(two)) if equal(one, two) => {}
                    (None, None) => return true,
                    _ => return false,
                }
            }
        }
        (Node::Object(one), Node::Object(two)) => compare_objects(*one, *two) == Ordering::Equal,
        _ => one.kind() == two.kind() && compare_same_kind(one, two) == Ordering::Equal,
    }
}
