//! Functions on strings. Characters are Unicode characters; the first one has the number zero.

use lazuli_value::{Value, ValueRef};

use super::limits::{ARRAY_ELEMENTS_MAX, REPLICATED_CHARACTERS_MAX, TEXT_BYTES_MAX};
use super::{Call, Function, three_valued};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("CONCAT", 2, usize::MAX, concat),
    Function::new("CONTAINS", 2, 3, |call| compare(call, |text, part| text.contains(part))),
    Function::new("CONTAINS_ALL_CI", 2, usize::MAX, |call| three_valued::all(found(call, true)?))
        .with_undefined(),
    Function::new("CONTAINS_ALL_CS", 2, usize::MAX, |call| three_valued::all(found(call, false)?))
        .with_undefined(),
    Function::new("CONTAINS_ANY_CI", 2, usize::MAX, |call| three_valued::any(found(call, true)?))
        .with_undefined(),
    Function::new("CONTAINS_ANY_CS", 2, usize::MAX, |call| three_valued::any(found(call, false)?))
        .with_undefined(),
    Function::new("ENDSWITH", 2, 3, |call| compare(call, |text, end| text.ends_with(end))),
    Function::new("INDEX_OF", 2, 3, index_of),
    Function::new("LASTINDEXOF", 2, 3, last_index_of),
    Function::new("LASTSUBSTRINGAFTER", 2, 2, |call| {
        divided(call, |t, d| Some(t.rsplit_once(d)?.1))
    }),
    Function::new("LASTSUBSTRINGBEFORE", 2, 2, |call| {
        divided(call, |t, d| Some(t.rsplit_once(d)?.0))
    }),
    Function::new("LEFT", 2, 2, left),
    Function::new("LENGTH", 1, 1, |call| Value::number(call.string(0)?.chars().count() as f64)),
    Function::new("LOWER", 1, 1, |call| Some(call.string(0)?.to_lowercase().into())),
    Function::new("LTRIM", 1, 2, |call| trim(call, true, false)),
    Function::new("REPLACE", 3, 3, replace),
    Function::new("REPLICATE", 2, 2, replicate),
    Function::new("REVERSE", 1, 1, |call| {
        Some(call.string(0)?.chars().rev().collect::<String>().into())
    }),
    Function::new("RIGHT", 2, 2, right),
    Function::new("RTRIM", 1, 2, |call| trim(call, false, true)),
    Function::new("STARTSWITH", 2, 3, |call| compare(call, |text, start| text.starts_with(start))),
    Function::new("STRINGEQUALS", 2, 3, |call| compare(call, |one, two| one == two)),
    Function::new("STRINGJOIN", 2, 2, join),
    Function::new("STRINGSPLIT", 2, 2, split),
    Function::new("SUBSTRING", 2, 3, substring),
    Function::new("SUBSTRINGAFTER", 2, 2, |call| divided(call, |t, d| Some(t.split_once(d)?.1))),
    Function::new("SUBSTRINGBEFORE", 2, 2, |call| divided(call, |t, d| Some(t.split_once(d)?.0))),
    Function::new("TRIM", 1, 2, |call| trim(call, true, true)),
    Function::new("UPPER", 1, 1, |call| Some(call.string(0)?.to_uppercase().into())),
];

fn concat(call: &Call<'_>) -> Option<Value> {
    let mut all = String::new();
    for place in 0..call.arguments.len() {
        let part = call.string(place)?;
        if all.len() + part.len() > TEXT_BYTES_MAX {
            return None;
        }
        all.push_str(part);
    }
    Some(all.into())
}

/// Compares two texts; with `true` as the third argument, in whatever case they are.
fn compare(call: &Call<'_>, test: impl FnOnce(&str, &str) -> bool) -> Option<Value> {
    let (one, two) = (call.string(0)?, call.string(1)?);
    let ignores_case = call.has(2) && call.bool(2)?;
    Some(
        match ignores_case {
            true => test(&one.to_lowercase(), &two.to_lowercase()),
            false => test(one, two),
        }
        .into(),
    )
}

/// For each argument after the text whether it is in it, or nothing if it is no text.
fn found<'c>(call: &Call<'c>, ignores_case: bool) -> Option<impl Iterator<Item = Option<bool>>> {
    let fold = move |text: &str| if ignores_case { text.to_lowercase() } else { text.to_owned() };
    let text = fold(call.string(0)?);
    let sought = call.arguments.iter().skip(1);
    Some(sought.map(move |sought| {
        let sought = sought.as_ref()?.as_ref().as_str()?;
        Some(text.contains(&fold(sought)))
    }))
}

/// Where a character begins, in bytes; the end of the text if it has fewer.
fn offset(text: &str, place: usize) -> usize {
    if text.is_ascii() {
        return place.min(text.len());
    }
    text.char_indices().nth(place).map_or(text.len(), |(at, _)| at)
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

/// A number of characters: negative ones are none.
fn count(call: &Call<'_>, place: usize) -> Option<usize> {
    // A float that is negative or too large becomes the nearest number that is not.
    call.number(place).map(|number| number.trunc() as usize)
}

/// The place of the first occurrence, or -1. The search may begin later in the text.
fn index_of(call: &Call<'_>) -> Option<Value> {
    let (text, sought) = (call.string(0)?, call.string(1)?);
    let start = if call.has(2) { count(call, 2)? } else { 0 };
    if start > characters(text) {
        return Some(Value::Int64(-1));
    }
    let from = offset(text, start);
    Some(place(text, text[from..].find(sought).map(|at| from + at)))
}

/// The place of the last occurrence, or -1. The character at which it ends at the latest may be given.
fn last_index_of(call: &Call<'_>) -> Option<Value> {
    let (text, sought) = (call.string(0)?, call.string(1)?);
    let mut end = text.len();
    if call.has(2) {
        let last = call.number(2)?.trunc();
        if last < 0.0 {
            return Some(Value::Int64(-1));
        }
        end = offset(text, (last as usize).saturating_add(1));
    }
    Some(place(text, text[..end].rfind(sought)))
}

/// An offset in bytes as the number of its character.
fn place(text: &str, at: Option<usize>) -> Value {
    at.map_or(Value::Int64(-1), |at| Value::Int64(characters(&text[..at]) as i64))
}

fn left(call: &Call<'_>) -> Option<Value> {
    let (text, count) = (call.string(0)?, count(call, 1)?);
    Some(text[..offset(text, count)].into())
}

fn right(call: &Call<'_>) -> Option<Value> {
    let (text, count) = (call.string(0)?, count(call, 1)?);
    Some(text[offset(text, characters(text).saturating_sub(count))..].into())
}

/// A part of a text, from a character on; to the end if no length is given.
fn substring(call: &Call<'_>) -> Option<Value> {
    let (text, start) = (call.string(0)?, count(call, 1)?);
    let rest = &text[offset(text, start)..];
    let length = if call.has(2) { count(call, 2)? } else { usize::MAX };
    Some(rest[..offset(rest, length)].into())
}

/// The text on one side of a delimiter. Where the delimiter does not occur, there is none.
fn divided(
    call: &Call<'_>,
    divide: impl for<'t> FnOnce(&'t str, &'t str) -> Option<&'t str>,
) -> Option<Value> {
    divide(call.string(0)?, call.string(1)?).map(Value::from)
}

/// Removes white space, or the characters of the second argument, at the ends.
fn trim(call: &Call<'_>, at_start: bool, at_end: bool) -> Option<Value> {
    let mut text = call.string(0)?;
    let set = if call.has(1) { Some(call.string(1)?) } else { None };
    let is_out = |letter: char| match set {
        Some(set) => set.contains(letter),
        None => letter.is_whitespace(),
    };
    if at_start {
        text = text.trim_start_matches(is_out);
    }
    if at_end {
        text = text.trim_end_matches(is_out);
    }
    Some(text.into())
}

fn replace(call: &Call<'_>) -> Option<Value> {
    let (text, sought, by) = (call.string(0)?, call.string(1)?, call.string(2)?);
    if sought.is_empty() {
        return Some(text.into());
    }
    if by.len() > sought.len() {
        let more = text.matches(sought).count().checked_mul(by.len() - sought.len())?;
        if text.len().checked_add(more)? > TEXT_BYTES_MAX {
            return None;
        }
    }
    Some(text.replace(sought, by).into())
}

fn replicate(call: &Call<'_>) -> Option<Value> {
    let (text, times) = (call.string(0)?, call.number(1)?.trunc());
    if times < 0.0 {
        return None;
    }
    let times = times as usize;
    let length = characters(text).checked_mul(times)?;
    (length <= REPLICATED_CHARACTERS_MAX)
        .then(|| if length == 0 { "".into() } else { text.repeat(times).into() })
}

fn join(call: &Call<'_>) -> Option<Value> {
    let parts: Vec<&str> = call.array(0)?.iter().map(ValueRef::as_str).collect::<Option<_>>()?;
    let between = call.string(1)?;
    let bytes = parts.iter().map(|part| part.len() + between.len()).sum::<usize>();
    (bytes <= TEXT_BYTES_MAX).then(|| parts.join(between).into())
}

fn split(call: &Call<'_>) -> Option<Value> {
    let (text, delimiter) = (call.string(0)?, call.string(1)?);
    if delimiter.is_empty() {
        return Some(Value::Array(vec![text.into()]));
    }
    let parts = text.split(delimiter).take(ARRAY_ELEMENTS_MAX + 1);
    let parts: Vec<Value> = parts.map(Value::from).collect();
    (parts.len() <= ARRAY_ELEMENTS_MAX).then_some(Value::Array(parts))
}

#[cfg(test)]
mod tests;
