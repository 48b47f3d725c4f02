//! Functions on arrays and sets.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use lazuli_value::{
    ArrayRef, Kind, Object, ObjectRef, Value, ValueRef, canonical_hash, compare, equal,
};

use super::limits::ARRAY_ELEMENTS_MAX;
use super::{Call, Function, three_valued};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("ARRAY_AVG", 1, 1, average),
    Function::new("ARRAY_CONCAT", 2, usize::MAX, concat),
    Function::new("ARRAY_CONTAINS", 2, 3, contains),
    Function::new("ARRAY_CONTAINS_ALL", 2, usize::MAX, contains_all).with_undefined(),
    Function::new("ARRAY_CONTAINS_ANY", 2, usize::MAX, contains_any).with_undefined(),
    Function::new("ARRAY_LENGTH", 1, 1, length),
    Function::new("ARRAY_MAX", 1, 1, |call| extreme(call, Ordering::Greater)),
    Function::new("ARRAY_MEDIAN", 1, 1, median),
    Function::new("ARRAY_MIN", 1, 1, |call| extreme(call, Ordering::Less)),
    Function::new("ARRAY_SLICE", 2, 3, slice),
    Function::new("ARRAY_SUM", 1, 1, sum),
    Function::new("OBJECTTOARRAY", 1, 3, object_to_array),
    Function::new("SETDIFFERENCE", 2, 2, set_difference),
    Function::new("SETEQUAL", 2, 2, set_equal),
    Function::new("SETINTERSECT", 2, 2, set_intersect),
    Function::new("SETUNION", 2, 2, set_union),
];

fn length(call: &Call<'_>) -> Option<Value> {
    Value::number(call.array(0)?.len() as f64)
}

fn concat(call: &Call<'_>) -> Option<Value> {
    let arrays: Vec<_> =
        (0..call.arguments.len()).map(|place| call.array(place)).collect::<Option<_>>()?;
    let all = arrays.iter().flat_map(|array| array.iter());
    let elements: Vec<Value> =
        all.take(ARRAY_ELEMENTS_MAX + 1).map(|element| element.to_value()).collect();
    (elements.len() <= ARRAY_ELEMENTS_MAX).then_some(Value::Array(elements))
}

/// Whether an element is the value. With `true` as the third argument an object is also found if an element has all its
/// properties, and others besides.
fn contains(call: &Call<'_>) -> Option<Value> {
    let (array, sought) = (call.array(0)?, call.value(1)?);
    let is_partial = call.has(2) && call.bool(2)?;
    let found = match sought.as_object() {
        Some(sought) if is_partial => array.iter().any(|element| includes(element, sought)),
        _ => array.iter().any(|element| equal(element, sought)),
    };
    Some(found.into())
}

fn includes(element: ValueRef<'_>, sought: ObjectRef<'_>) -> bool {
    let Some(element) = element.as_object() else { return false };
    sought.iter().all(|(name, value)| element.get(name).is_some_and(|found| equal(found, value)))
}

fn contains_all(call: &Call<'_>) -> Option<Value> {
    three_valued::all(found(call)?)
}

fn contains_any(call: &Call<'_>) -> Option<Value> {
    three_valued::any(found(call)?)
}

/// For each argument after the array whether it is an element, or nothing if it is undefined.
fn found<'c>(call: &Call<'c>) -> Option<impl Iterator<Item = Option<bool>>> {
    /// With more values than these it is faster to make a set of the elements first.
    const FEW: usize = 4;
    let array = call.array(0)?;
    let set = if call.arguments.len() > FEW { Some(hashes(array)) } else { None };
    let sought = call.arguments.iter().skip(1);
    Some(sought.map(move |sought| {
        let sought = sought.as_ref()?.as_ref();
        Some(match &set {
            Some(set) => set.contains(&canonical_hash(sought)),
            None => array.iter().any(|element| equal(element, sought)),
        })
    }))
}

/// A part of an array. A negative start counts from the end.
fn slice(call: &Call<'_>) -> Option<Value> {
    let array = call.array(0)?;
    let length = array.len();
    let start = call.number(1)?.trunc();
    let start = if start < 0.0 { (length as f64 + start).max(0.0) } else { start };
    let count = if call.has(2) { call.number(2)?.trunc() } else { length as f64 };
    // A float that is negative or too large becomes the nearest number that is not.
    let (start, count) = (start as usize, count as usize);
    let part = array.iter().skip(start).take(count).map(|element| element.to_value());
    Some(Value::Array(part.collect()))
}

/// The elements as numbers, if all of them are.
fn numbers(call: &Call<'_>) -> Option<Vec<f64>> {
    call.array(0)?.iter().map(ValueRef::as_f64).collect()
}

fn sum(call: &Call<'_>) -> Option<Value> {
    Value::number(numbers(call)?.iter().sum())
}

fn average(call: &Call<'_>) -> Option<Value> {
    let numbers = numbers(call)?;
    Value::number(numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn median(call: &Call<'_>) -> Option<Value> {
    let mut numbers = numbers(call)?;
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    if numbers.len() % 2 == 1 {
        return Value::number(upper);
    }
    let lower = *numbers.get(middle.checked_sub(1)?)?;
    Value::number((lower + upper) / 2.0)
}

/// The greatest or least element. Arrays and objects have no place in that order.
fn extreme(call: &Call<'_>, wanted: Ordering) -> Option<Value> {
    let mut best: Option<ValueRef<'_>> = None;
    for element in call.array(0)?.iter() {
        if matches!(element.kind(), Kind::Array | Kind::Object) {
            return None;
        }
        if best.is_none_or(|best| compare(element, best) == wanted) {
            best = Some(element);
        }
    }
    best.map(|best| best.to_value())
}

/// An array with an object for each property: its name, and its value.
fn object_to_array(call: &Call<'_>) -> Option<Value> {
    let object = call.object(0)?;
    let name_of = |place, default| match call.has(place) {
        true => call.string(place),
        false => Some(default),
    };
    let (key, value) = (name_of(1, "k")?, name_of(2, "v")?);
    let pair = |(name, inside): (&str, ValueRef<'_>)| {
        let mut pair = Object::new();
        pair.insert(key, name.into());
        pair.insert(value, inside.to_value());
        Value::Object(pair)
    };
    Some(Value::Array(object.iter().map(pair).collect()))
}

fn hashes(array: ArrayRef<'_>) -> BTreeSet<u128> {
    array.iter().map(canonical_hash).collect()
}

/// The elements that pass, each value once, in their order.
fn distinct(
    array: ArrayRef<'_>,
    seen: &mut BTreeSet<u128>,
    passes: impl Fn(u128) -> bool,
) -> Vec<Value> {
    let mut kept = Vec::new();
    for element in array.iter() {
        let hash = canonical_hash(element);
        if passes(hash) && seen.insert(hash) {
            kept.push(element.to_value());
        }
    }
    kept
}

fn set_union(call: &Call<'_>) -> Option<Value> {
    let (one, two) = (call.array(0)?, call.array(1)?);
    let mut seen = BTreeSet::new();
    let mut all = distinct(one, &mut seen, |_| true);
    all.extend(distinct(two, &mut seen, |_| true));
    Some(Value::Array(all))
}

/// In the order of the second array, as the service has it.
fn set_intersect(call: &Call<'_>) -> Option<Value> {
    let (one, two) = (hashes(call.array(0)?), call.array(1)?);
    Some(Value::Array(distinct(two, &mut BTreeSet::new(), |hash| one.contains(&hash))))
}

fn set_difference(call: &Call<'_>) -> Option<Value> {
    let (one, two) = (call.array(0)?, hashes(call.array(1)?));
    Some(Value::Array(distinct(one, &mut BTreeSet::new(), |hash| !two.contains(&hash))))
}

fn set_equal(call: &Call<'_>) -> Option<Value> {
    Some((hashes(call.array(0)?) == hashes(call.array(1)?)).into())
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn arrays_are_measured_cut_and_joined() {
        check_all(&[
            ("ARRAY_LENGTH([70, 86, 92])", "3"),
            ("ARRAY_LENGTH([])", "0"),
            ("ARRAY_LENGTH('abc')", "undefined"),
            ("ARRAY_LENGTH(undefined)", "undefined"),
            ("ARRAY_CONCAT([1], ['a'], [])", "[1,\"a\"]"),
            ("ARRAY_CONCAT([1], 2)", "undefined"),
            ("ARRAY_CONCAT([1], undefined)", "undefined"),
            ("ARRAY_SLICE([70, 86, 92, 99], 1)", "[86,92,99]"),
            ("ARRAY_SLICE([70, 86, 92, 99], 0, 2)", "[70,86]"),
            ("ARRAY_SLICE([70, 86, 92, 99], -2)", "[92,99]"),
            ("ARRAY_SLICE([70, 86, 92, 99], -9, 1)", "[70]"),
            ("ARRAY_SLICE([70, 86, 92, 99], 1, -1)", "[]"),
            ("ARRAY_SLICE([70, 86, 92, 99], 7, 1)", "[]"),
            ("ARRAY_SLICE([70, 86, 92, 99], 1, 1000)", "[86,92,99]"),
            ("ARRAY_SLICE([70], '1')", "undefined"),
            ("ARRAY_SLICE(null, 1)", "undefined"),
        ]);
    }

    #[test]
    fn elements_are_found_by_value() {
        check_all(&[
            ("ARRAY_CONTAINS(['coats', 'jackets'], 'coats')", "true"),
            ("ARRAY_CONTAINS(['coats', 'jackets'], 'hoodies')", "false"),
            ("ARRAY_CONTAINS([1, null], null)", "true"),
            ("ARRAY_CONTAINS([{'a':1,'b':2}], {'a':1})", "false"),
            ("ARRAY_CONTAINS([{'a':1,'b':2}], {'a':1}, true)", "true"),
            ("ARRAY_CONTAINS([{'a':1,'b':2}], {'a':2}, true)", "false"),
            ("ARRAY_CONTAINS([{'a':1,'b':2}], {'b':2,'a':1}, false)", "true"),
            ("ARRAY_CONTAINS([[1, 2]], [1, 2])", "true"),
            ("ARRAY_CONTAINS([], 1)", "false"),
            ("ARRAY_CONTAINS('abc', 'a')", "undefined"),
            ("ARRAY_CONTAINS([1], undefined)", "undefined"),
            ("ARRAY_CONTAINS([1], 1, 'yes')", "undefined"),
            ("ARRAY_CONTAINS_ANY([1, 2, 'a'], 'a', 7)", "true"),
            ("ARRAY_CONTAINS_ANY([1, 2], 7, 8)", "false"),
            ("ARRAY_CONTAINS_ANY([1, 2], 1, undefined)", "true"),
            ("ARRAY_CONTAINS_ANY([1, 2], 7, undefined)", "undefined"),
            ("ARRAY_CONTAINS_ANY(5, 7)", "undefined"),
            ("ARRAY_CONTAINS_ALL([1, 2, 'a'], 'a', 1)", "true"),
            ("ARRAY_CONTAINS_ALL([1, 2], 1, 7)", "false"),
            ("ARRAY_CONTAINS_ALL([1, 2], 1, undefined)", "undefined"),
            ("ARRAY_CONTAINS_ALL([1, 2], 7, undefined)", "false"),
            ("ARRAY_CONTAINS_ALL([1, 2, 3, 4, 5], 5, 4, 3.0, 2, 1)", "true"),
            ("ARRAY_CONTAINS_ALL([1, 2, 3, 4, 5], 5, 4, 3, 2, 0)", "false"),
            ("ARRAY_CONTAINS_ANY(['a', {'b':1}], 1, 2, 3, {'b':1.0}, undefined)", "true"),
        ]);
    }

    #[test]
    fn numbers_of_an_array_are_summed_up() {
        check_all(&[
            ("ARRAY_SUM([1, 2, 3, 4])", "10"),
            ("ARRAY_SUM([])", "0"),
            ("ARRAY_SUM(['abc', 1])", "undefined"),
            ("ARRAY_AVG([1, 2, 3, 4])", "2.5"),
            ("ARRAY_AVG([1.0, 2.0, 3.3, 4.7])", "2.75"),
            ("ARRAY_AVG([])", "undefined"),
            ("ARRAY_AVG([12, 'abc', true])", "undefined"),
            ("ARRAY_MEDIAN([4, 1, 3, 2])", "2.5"),
            ("ARRAY_MEDIAN([1.0, 2.0, 3.3, 4.7, 7.8])", "3.3"),
            ("ARRAY_MEDIAN([1, -2.7, 3, -4])", "-0.8500000000000001"),
            ("ARRAY_MEDIAN([])", "undefined"),
            ("ARRAY_MEDIAN(['abc'])", "undefined"),
            ("ARRAY_MAX([1, 2, 3, 4])", "4"),
            ("ARRAY_MAX(['abc', 'ABC'])", "\"abc\""),
            ("ARRAY_MAX([12, 'abc', true, null])", "\"abc\""),
            ("ARRAY_MAX([])", "undefined"),
            ("ARRAY_MAX([1, [2]])", "undefined"),
            ("ARRAY_MIN([1, -2.7, 3])", "-2.7"),
            ("ARRAY_MIN([12, 'abc', true, null])", "null"),
            ("ARRAY_MIN(5)", "undefined"),
        ]);
    }

    #[test]
    fn sets_have_each_value_once() {
        check_all(&[
            ("SETUNION([1, 2, 3, 4], [3, 4, 5, 6])", "[1,2,3,4,5,6]"),
            ("SETUNION([1, 2, 'A', 'B'], ['A', 1])", "[1,2,\"A\",\"B\"]"),
            ("SETUNION([1, 1.0], [])", "[1]"),
            ("SETINTERSECT([1, 2, 3, 4], [3, 4, 5, 6])", "[3,4]"),
            ("SETINTERSECT([1, 2, 3, 4], [1, 1, 1, 1])", "[1]"),
            ("SETINTERSECT([1, 2, 'A', 'B'], ['A', 1])", "[\"A\",1]"),
            ("SETINTERSECT([{'a':1,'b':2}], [{'b':2,'a':1}])", "[{\"b\":2,\"a\":1}]"),
            ("SETDIFFERENCE([1, 2, 3, 3, 4], [3, 5])", "[1,2,4]"),
            ("SETDIFFERENCE([1, 2], [])", "[1,2]"),
            ("SETEQUAL([1, 2, 2], [2, 1])", "true"),
            ("SETEQUAL([1, 2], [1])", "false"),
            ("SETEQUAL([], [])", "true"),
            ("SETEQUAL([1], 'a')", "undefined"),
            ("SETUNION([1], null)", "undefined"),
            ("SETDIFFERENCE([1], undefined)", "undefined"),
        ]);
    }

    #[test]
    fn objects_become_arrays_of_pairs() {
        check_all(&[
            (
                "OBJECTTOARRAY({'a':'12345','b':67890})",
                "[{\"k\":\"a\",\"v\":\"12345\"},{\"k\":\"b\",\"v\":67890}]",
            ),
            ("OBJECTTOARRAY({'a':1}, 'name', 'value')", "[{\"name\":\"a\",\"value\":1}]"),
            ("OBJECTTOARRAY({})", "[]"),
            ("OBJECTTOARRAY([1])", "undefined"),
            ("OBJECTTOARRAY({'a':1}, 5)", "undefined"),
        ]);
    }
}
