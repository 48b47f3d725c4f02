//! Functions that make texts of values and values of texts.

use lazuli_value::{Kind, Value};

use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("STRINGTOARRAY", 1, 1, |call| read(call, Kind::Array)),
    Function::new("STRINGTOBOOLEAN", 1, 1, |call| read(call, Kind::Bool)),
    Function::new("STRINGTONULL", 1, 1, |call| read(call, Kind::Null)),
    Function::new("STRINGTONUMBER", 1, 1, |call| read(call, Kind::Number)),
    Function::new("STRINGTOOBJECT", 1, 1, |call| read(call, Kind::Object)),
    Function::new("TOSTRING", 1, 1, to_string),
];

/// The value of a JSON text, if it is of the kind.
fn read(call: &Call<'_>, kind: Kind) -> Option<Value> {
    let value = Value::from_json(call.string(0)?.as_bytes()).ok()?;
    (lazuli_value::ValueRef::from(&value).kind() == kind).then_some(value)
}

/// A text stays as it is; everything else is written as JSON.
fn to_string(call: &Call<'_>) -> Option<Value> {
    let value = call.value(0)?;
    Some(match value.as_str() {
        Some(text) => text.into(),
        None => value.to_json().into(),
    })
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn texts_become_values_of_the_kind_asked_for() {
        check_all(&[
            ("STRINGTOARRAY('[]')", "[]"),
            ("STRINGTOARRAY('[1, [2], null]')", "[1,[2],null]"),
            ("STRINGTOARRAY('1')", "undefined"),
            ("STRINGTOARRAY('[1')", "undefined"),
            ("STRINGTOARRAY([1])", "undefined"),
            ("STRINGTOBOOLEAN('true')", "true"),
            ("STRINGTOBOOLEAN('  false ')", "false"),
            ("STRINGTOBOOLEAN('TRUE')", "undefined"),
            ("STRINGTOBOOLEAN('1')", "undefined"),
            ("STRINGTOBOOLEAN(undefined)", "undefined"),
            ("STRINGTONULL('null')", "null"),
            ("STRINGTONULL('  null ')", "null"),
            ("STRINGTONULL('NULL')", "undefined"),
            ("STRINGTONUMBER('1.0')", "1.0"),
            ("STRINGTONUMBER('  60 ')", "60"),
            ("STRINGTONUMBER('-1.79e+308')", "-1.79e308"),
            ("STRINGTONUMBER('0x1')", "undefined"),
            ("STRINGTONUMBER('100 USD')", "undefined"),
            ("STRINGTONUMBER('NaN')", "undefined"),
            ("STRINGTONUMBER('')", "undefined"),
            ("STRINGTOOBJECT('{}')", "{}"),
            ("STRINGTOOBJECT('5')", "undefined"),
            ("STRINGTOOBJECT('{a:1}')", "undefined"),
            ("STRINGTOOBJECT(null)", "undefined"),
        ]);
    }

    #[test]
    fn values_become_texts() {
        check_all(&[
            ("TOSTRING('abc')", "\"abc\""),
            ("TOSTRING(1.5)", "\"1.5\""),
            ("TOSTRING(-10)", "\"-10\""),
            ("TOSTRING(true)", "\"true\""),
            ("TOSTRING(null)", "\"null\""),
            ("TOSTRING([1, 'a'])", "\"[1,\\\"a\\\"]\""),
            ("TOSTRING({'a':1})", "\"{\\\"a\\\":1}\""),
            ("TOSTRING(undefined)", "undefined"),
        ]);
    }
}
