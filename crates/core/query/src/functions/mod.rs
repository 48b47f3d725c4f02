//! Built-in functions: one table per group, found by name at check time.
//!
//! A function gets its evaluated arguments and answers a value, or `None` for undefined. It is pure: time and chance come
//! from the [`Context`] of the call.

mod array;
mod calendar;
#[cfg(test)]
mod check;
mod conditional;
mod convert;
mod date;
mod integers;
pub mod limits;
mod math;
pub mod rank;
mod regex;
mod spatial;
mod stem;
mod strings;
mod text;
mod three_valued;
mod types;
mod vector;

use lazuli_value::{ArrayRef, ObjectRef, Value, ValueRef};

use crate::evaluate::{Context, Datum};

/// All groups of functions.
const GROUPS: &[&[Function]] = &[
    array::FUNCTIONS,
    conditional::FUNCTIONS,
    convert::FUNCTIONS,
    date::FUNCTIONS,
    integers::FUNCTIONS,
    math::FUNCTIONS,
    rank::FUNCTIONS,
    regex::FUNCTIONS,
    spatial::FUNCTIONS,
    strings::FUNCTIONS,
    text::FUNCTIONS,
    types::FUNCTIONS,
    vector::FUNCTIONS,
];

/// What happens if an argument is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// The result is undefined and the function is not called: the rule.
    Spreads,
    /// The function is called and sees it.
    IsPassed,
}

/// A built-in function.
#[derive(Debug)]
pub struct Function {
    /// In capitals; queries may write it as they like.
    pub name: &'static str,
    /// How many arguments it takes at least and at most.
    pub least: usize,
    pub most: usize,
    pub undefined: Undefined,
    /// Whether it gives the same result for the same arguments, so that a call with constants is made once.
    pub pure: bool,
    /// Whether it is a score, which only ORDER BY RANK may hold.
    pub ranks: bool,
    pub call: fn(&Call<'_>) -> Option<Value>,
}

impl Function {
    /// A pure function to which undefined arguments are not passed: what most of them are.
    pub const fn new(
        name: &'static str,
        least: usize,
        most: usize,
        call: fn(&Call<'_>) -> Option<Value>,
    ) -> Self {
        Self { name, least, most, undefined: Undefined::Spreads, pure: true, ranks: false, call }
    }

    /// The same function, called with undefined arguments too.
    pub const fn with_undefined(mut self) -> Self {
        self.undefined = Undefined::IsPassed;
        self
    }

    /// The same function as a score: only in ORDER BY RANK, for each row, with undefined arguments too.
    pub const fn ranking(mut self) -> Self {
        self.ranks = true;
        self.with_undefined().impure()
    }

    /// The same function, called for each row even if its arguments are constants.
    pub const fn impure(mut self) -> Self {
        self.pure = false;
        self
    }
}

/// The function of a name, in whatever case it is written.
pub fn find(name: &str) -> Option<&'static Function> {
    let mut all = GROUPS.iter().flat_map(|group| group.iter());
    all.find(|function| function.name.eq_ignore_ascii_case(name))
}

/// One call: evaluated arguments, of the number that the function takes.
pub struct Call<'c> {
    pub arguments: &'c [Option<Datum<'c>>],
    pub context: &'c Context,
}

impl<'c> Call<'c> {
    /// The argument at a place, if it is there and defined.
    pub fn value(&self, place: usize) -> Option<ValueRef<'c>> {
        self.arguments.get(place)?.as_ref().map(Datum::as_ref)
    }

    /// Whether an argument was given at a place, defined or not.
    pub fn has(&self, place: usize) -> bool {
        place < self.arguments.len()
    }

    pub fn string(&self, place: usize) -> Option<&'c str> {
        self.value(place)?.as_str()
    }

    /// A number that is finite.
    pub fn number(&self, place: usize) -> Option<f64> {
        self.value(place)?.as_f64().filter(|number| number.is_finite())
    }

    pub fn bool(&self, place: usize) -> Option<bool> {
        self.value(place)?.as_bool()
    }

    pub fn array(&self, place: usize) -> Option<ArrayRef<'c>> {
        self.value(place)?.as_array()
    }

    pub fn object(&self, place: usize) -> Option<ObjectRef<'c>> {
        self.value(place)?.as_object()
    }
}

/// Calls a function with values, for tests of functions.
#[cfg(test)]
pub(crate) fn call(name: &str, arguments: &[Option<Value>]) -> Option<Value> {
    let function = find(name).expect("the function exists");
    let context = Context::new(1_700_000_000_000, 1);
    assert!((function.least..=function.most).contains(&arguments.len()), "{name}");
    let missing = arguments.iter().any(Option::is_none);
    if missing && function.undefined == Undefined::Spreads {
        return None;
    }
    let arguments: Vec<_> =
        arguments.iter().map(|it| it.as_ref().map(|it| Datum::Ref(it.into()))).collect();
    (function.call)(&Call { arguments: &arguments, context: &context })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_any_case_and_have_one_name_each() {
        assert_eq!(find("abs").map(|it| it.name), Some("ABS"));
        assert!(find("NO_SUCH").is_none());
        let mut names: Vec<&str> =
            GROUPS.iter().flat_map(|it| it.iter()).map(|it| it.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| *name == name.to_uppercase()));
    }

    #[test]
    fn undefined_spreads_unless_a_function_asks_for_it() {
        assert_eq!(call("ABS", &[None]), None);
        assert_eq!(call("ABS", &[Some(Value::Int64(-3))]), Some(Value::Int64(3)));
        assert_eq!(call("LOWER", &[Some("ÄB".into())]), Some("äb".into()));
        assert_eq!(call("IS_DEFINED", &[None]), Some(Value::Bool(false)));
        assert_eq!(call("IS_DEFINED", &[Some(Value::Null)]), Some(Value::Bool(true)));
    }

    /// Values of all kinds, many of which some function must take care with.
    fn odd_values() -> Vec<Option<Value>> {
        let texts = [
            "null",
            "true",
            "0",
            "-1",
            "1.5",
            "1e308",
            "-1e-308",
            "9223372036854775807",
            "3000000000",
            "[]",
            "[1,2,3]",
            "[\"a\",null,{\"b\":[1]}]",
            "[1e308,1e308]",
            "{}",
            "{\"a\":{\"a\":1}}",
            "{\"_rid\":\"iAEeANrzNAAJAAAAAAAAAA==\"}",
            "{\"term\":\"word\",\"distance\":2}",
            "{\"distanceFunction\":\"euclidean\"}",
            "\"\"",
            "\"a\"",
            "\"aä😀\"",
            "\"word word\"",
            "\"yyyy\"",
            "\"ns\"",
            "\"i\"",
            "\"(a|b)*\"",
            "\"2020-02-29T23:59:59.9999999Z\"",
            "\"0001-01-01\"",
            "\"9999-12-31\"",
            "\"[1,{}]\"",
            "{\"type\":\"Point\",\"coordinates\":[180,-90]}",
            "{\"type\":\"LineString\",\"coordinates\":[[0,0],[180,0],[0,90]]}",
            "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[0,0],[0,0],[0,0]]]}",
            "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[10,0],[10,10],[0,10],[0,0]]]}",
            "{\"type\":\"Polygon\",\"coordinates\":[[[-180,-90],[180,-90],[180,90],[-180,90],[-180,-90]]]}",
        ];
        let values = texts.iter().map(|text| Value::from_json(text.as_bytes()).expect(text));
        let mut values: Vec<_> = values.map(Some).collect();
        values.extend([Value::Double(f64::NAN), Value::Double(f64::INFINITY)].map(Some));
        values.extend(
            [Value::MinKey, Value::DateTime(i64::MIN), Value::Decimal128([0xff; 16])].map(Some),
        );
        values.push(None);
        values
    }

    #[test]
    fn every_function_takes_any_values() {
        let values = odd_values();
        let mut random = lazuli_env::SplitMix64::new(1);
        for function in GROUPS.iter().flat_map(|it| it.iter()) {
            for _ in 0..3000 {
                let most = function.most.min(function.least + 3);
                let count = function.least + random.below(most - function.least + 1);
                let arguments: Vec<_> =
                    (0..count).map(|_| values[random.below(values.len())].clone()).collect();
                let found = call(function.name, &arguments);
                let finite = |value: &Value| value.encode().len() < 1024 * 1024;
                assert!(found.as_ref().is_none_or(finite), "{}: {arguments:?}", function.name);
            }
        }
    }

    /// The functions of the service's documentation, without the aggregates.
    const DOCUMENTED: &str = "ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY \
             ARRAY_LENGTH ARRAY_MAX ARRAY_MEDIAN ARRAY_MIN ARRAY_SLICE ARRAY_SUM CHOOSE \
             OBJECTTOARRAY SETDIFFERENCE SETEQUAL SETINTERSECT SETUNION IIF DOCUMENTID \
             FULLTEXTCONTAINS FULLTEXTCONTAINSALL FULLTEXTCONTAINSANY FULLTEXTSCORE RRF \
             VECTORDISTANCE DATETIMEADD DATETIMEBIN DATETIMEDIFF DATETIMEFORMAT DATETIMEFROMPARTS \
             DATETIMEPART DATETIMETOTICKS DATETIMETOTIMESTAMP DAY MONTH YEAR NOW AGO \
             GETCURRENTDATETIME GETCURRENTDATETIMESTATIC GETCURRENTTICKS GETCURRENTTICKSSTATIC \
             GETCURRENTTIMESTAMP GETCURRENTTIMESTAMPSTATIC TICKSTODATETIME TIMESTAMPTODATETIME ABS \
             ACOS ASIN ATAN ATN2 CEILING COS COT DEGREES EXP FLOOR LOG LOG10 NUMBERBIN PI POWER \
             RADIANS RAND ROUND SIGN SIN SQRT SQUARE TAN TRUNC INTADD INTSUB INTMUL INTDIV INTMOD \
             INTBITAND INTBITOR INTBITXOR INTBITNOT INTBITLEFTSHIFT INTBITRIGHTSHIFT ST_AREA \
             ST_DISTANCE ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_WITHIN CONCAT CONTAINS \
             CONTAINS_ALL_CI CONTAINS_ALL_CS CONTAINS_ANY_CI CONTAINS_ANY_CS ENDSWITH INDEX_OF \
             LASTINDEXOF LEFT LENGTH LOWER LTRIM REGEXMATCH REGEXEXTRACT REGEXEXTRACTALL REPLACE \
             REPLICATE REVERSE RIGHT RTRIM STARTSWITH STRINGEQUALS STRINGJOIN STRINGSPLIT \
             STRINGTOARRAY STRINGTOBOOLEAN STRINGTONULL STRINGTONUMBER STRINGTOOBJECT SUBSTRING \
             SUBSTRINGAFTER SUBSTRINGBEFORE LASTSUBSTRINGAFTER LASTSUBSTRINGBEFORE REGEXREPLACE \
             REGEXREPLACEALL TOSTRING TRIM UPPER IS_ARRAY IS_BOOL IS_DATETIME IS_DEFINED \
             IS_FINITE_NUMBER IS_INTEGER IS_NULL IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING";

    #[test]
    fn every_function_of_the_service_is_there() {
        let missing: Vec<&str> =
            DOCUMENTED.split_whitespace().filter(|name| find(name).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
