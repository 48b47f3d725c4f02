//! The distance of two vectors.

use lazuli_value::{ArrayRef, ObjectRef, Value, ValueRef};

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[Function::new("VECTORDISTANCE", 2, 4, vector_distance)];

/// The measure of the service: larger is nearer for the first two, smaller is nearer for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Cosine,
    DotProduct,
    Euclidean,
}

impl Measure {
    fn read(name: &str) -> Option<Self> {
        let measures = [
            ("cosine", Self::Cosine),
            ("dotproduct", Self::DotProduct),
            ("euclidean", Self::Euclidean),
        ];
        measures.iter().find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, measure)| *measure)
    }

    /// The measure that the options of a call name, or the usual one.
    fn of_options(options: ObjectRef<'_>) -> Option<Self> {
        match options.get("distanceFunction") {
            Some(name) => Self::read(name.as_str()?),
            None => Some(Self::Cosine),
        }
    }

    fn of(self, one: &[f64], two: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        match self {
            Self::DotProduct => dot(one, two),
            Self::Cosine => dot(one, two) / (dot(one, one).sqrt() * dot(two, two).sqrt()),
            Self::Euclidean => {
                one.iter().zip(two).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
            }
        }
    }
}

/// Whether a larger distance means that vectors are nearer to each other, given the options of the call.
pub(super) fn larger_is_nearer(options: Option<ValueRef<'_>>) -> bool {
    let measure = options.and_then(ValueRef::as_object).and_then(Measure::of_options);
    measure != Some(Measure::Euclidean)
}

/// Types of the components that the service knows. Distances are computed with doubles whatever the type.
const TYPES: [&str; 4] = ["float32", "float16", "int8", "uint8"];

/// The third argument chooses between index and scan; the result is the same.
fn vector_distance(call: &Call<'_>) -> Option<Value> {
    if call.has(2) {
        call.bool(2)?;
    }
    let mut measure = Measure::Cosine;
    if call.has(3) {
        let options = call.object(3)?;
        measure = Measure::of_options(options)?;
        if let Some(name) = options.get("dataType") {
            let name = name.as_str()?;
            TYPES.iter().find(|it| it.eq_ignore_ascii_case(name))?;
        }
    }
    let (one, two) = (components(call.array(0)?)?, components(call.array(1)?)?);
    if one.len() != two.len() || one.is_empty() {
        return None;
    }
    Value::number(measure.of(&one, &two))
}

/// The components of a vector, which are finite numbers.
fn components(array: ArrayRef<'_>) -> Option<Vec<f64>> {
    array.iter().map(|element| element.as_f64().filter(|number| number.is_finite())).collect()
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn distances_are_computed_in_three_ways() {
        check_all(&[
            ("VECTORDISTANCE([1, 0], [1, 0])", "1"),
            ("VECTORDISTANCE([1, 0], [0, 2])", "0"),
            ("VECTORDISTANCE([1, 0], [-3, 0], true)", "-1"),
            ("VECTORDISTANCE([1, 2], [3, 4], false, {'distanceFunction':'DotProduct'})", "11"),
            ("VECTORDISTANCE([1, 2], [4, 6], false, {'distanceFunction':'euclidean'})", "5"),
            ("VECTORDISTANCE([3, 4], [3, 4], false, {'dataType':'Float32'})", "1"),
        ]);
    }

    #[test]
    fn what_is_no_pair_of_vectors_gives_nothing() {
        check_all(&[
            ("VECTORDISTANCE([1, 2], [1])", "undefined"),
            ("VECTORDISTANCE([], [])", "undefined"),
            ("VECTORDISTANCE([0, 0], [1, 0])", "undefined"),
            ("VECTORDISTANCE([[1]], [[1]])", "undefined"),
            ("VECTORDISTANCE([1, 'a'], [1, 2])", "undefined"),
            ("VECTORDISTANCE('a', [1, 2])", "undefined"),
            ("VECTORDISTANCE(undefined, [1, 2])", "undefined"),
            ("VECTORDISTANCE([1], [1], false, {'distanceFunction':'manhattan'})", "undefined"),
            ("VECTORDISTANCE([1], [1], 'no')", "undefined"),
        ]);
    }
}
