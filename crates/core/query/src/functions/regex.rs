//! Functions on regular expressions.
//!
//! Patterns are those of the crate `regex-lite`: matching takes time in proportion to the text, whatever the pattern, and
//! there are no back-references and no look-around. A pattern that it does not know gives undefined. Classes such as `\w`
//! and the flag `i` know ASCII, as the service's library does unless it is told otherwise. The crate `regex` matches
//! faster and compiles many times slower, and has a megabyte of Unicode tables.

use std::cell::RefCell;
use std::rc::Rc;

use lazuli_value::Value;
use regex_lite::{Regex, RegexBuilder};

use super::limits::{ARRAY_ELEMENTS_MAX, PATTERN_BYTES_MAX, PATTERN_DEPTH_MAX, TEXT_BYTES_MAX};
use super::types::integer;
use super::{Call, Function};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("REGEXEXTRACT", 2, 4, extract),
    Function::new("REGEXEXTRACTALL", 2, 4, extract_all),
    Function::new("REGEXMATCH", 2, 3, |call| {
        Some(pattern(call, 2)?.is_match(call.string(0)?).into())
    }),
    Function::new("REGEXREPLACE", 3, 4, |call| replace(call, 1)),
    Function::new("REGEXREPLACEALL", 3, 4, |call| replace(call, usize::MAX)),
];

thread_local! {
    /// The last pattern and its flags, compiled: a query calls a function with the same pattern for each row.
    static LAST: RefCell<Option<(String, String, Rc<Regex>)>> = const { RefCell::new(None) };
}

/// The pattern of a call, which is its second argument, with the flags at a place.
fn pattern(call: &Call<'_>, flags: usize) -> Option<Rc<Regex>> {
    let text = call.string(1)?;
    let flags = if call.has(flags) { call.string(flags)? } else { "" };
    LAST.with_borrow_mut(|last| {
        if let Some((last_text, last_flags, regex)) = last.as_ref()
            && last_text == text
            && last_flags == flags
        {
            return Some(Rc::clone(regex));
        }
        let regex = Rc::new(compile(text, flags)?);
        *last = Some((text.to_owned(), flags.to_owned(), Rc::clone(&regex)));
        Some(regex)
    })
}

fn compile(text: &str, flags: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(PATTERN_BYTES_MAX).nest_limit(PATTERN_DEPTH_MAX);
    for flag in flags.chars() {
        match flag {
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            _ => return None,
        };
    }
    builder.build().ok()
}

/// The group that is asked for; zero is the whole match.
fn group(call: &Call<'_>) -> Option<usize> {
    if !call.has(3) {
        return Some(0);
    }
    usize::try_from(integer(call.value(3)?.as_number()?)?).ok()
}

fn extract(call: &Call<'_>) -> Option<Value> {
    let (regex, group) = (pattern(call, 2)?, group(call)?);
    let found = regex.captures(call.string(0)?)?;
    Some(found.get(group)?.as_str().into())
}

fn extract_all(call: &Call<'_>) -> Option<Value> {
    let (regex, group) = (pattern(call, 2)?, group(call)?);
    let all = regex.captures_iter(call.string(0)?);
    let found = all.filter_map(|captures| captures.get(group).map(|it| it.as_str().into()));
    let found: Vec<Value> = found.take(ARRAY_ELEMENTS_MAX + 1).collect();
    (found.len() <= ARRAY_ELEMENTS_MAX).then_some(Value::Array(found))
}

/// Replaces so many matches by a text that stands for itself.
fn replace(call: &Call<'_>, count: usize) -> Option<Value> {
    let (text, by, regex) = (call.string(0)?, call.string(2)?, pattern(call, 3)?);
    let (mut out, mut end) = (String::new(), 0);
    for found in regex.find_iter(text).take(count) {
        out.push_str(&text[end..found.start()]);
        out.push_str(by);
        end = found.end();
        if out.len() > TEXT_BYTES_MAX {
            return None;
        }
    }
    out.push_str(&text[end..]);
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use crate::functions::check::check_all;

    #[test]
    fn patterns_match_with_modifiers() {
        check_all(&[
            ("REGEXMATCH('abcd', 'ABC')", "false"),
            ("REGEXMATCH('abcd', 'ABC', 'i')", "true"),
            ("REGEXMATCH('abcd', 'ab.', '')", "true"),
            ("REGEXMATCH('abcd', 'ab c', 'x')", "true"),
            ("REGEXMATCH('abcd', 'aB c', 'ix')", "true"),
            ("REGEXMATCH('03a', '[0-9]')", "true"),
            ("REGEXMATCH('salt3824908', 'salt{1}')", "true"),
            ("REGEXMATCH('a\\nb', '^b$')", "false"),
            ("REGEXMATCH('a\\nb', '^b$', 'm')", "true"),
            ("REGEXMATCH('a\\nb', 'a.b')", "false"),
            ("REGEXMATCH('a\\nb', 'a.b', 's')", "true"),
            ("REGEXMATCH('a', 'a', 'q')", "undefined"),
            ("REGEXMATCH('a', '(')", "undefined"),
            ("REGEXMATCH('a', '(?=b)')", "undefined"),
            ("REGEXMATCH(5, 'a')", "undefined"),
            ("REGEXMATCH('a', null)", "undefined"),
            ("REGEXMATCH('a', undefined)", "undefined"),
        ]);
    }

    #[test]
    fn matches_are_taken_out_and_replaced() {
        check_all(&[
            ("REGEXEXTRACT('SKU-93821-BLUE', '[0-9]+')", "\"93821\""),
            ("REGEXEXTRACT('sku-12', 'SKU-([0-9]+)', 'i', 1)", "\"12\""),
            ("REGEXEXTRACT('sku-12', 'SKU-([0-9]+)', 'i', 2)", "undefined"),
            ("REGEXEXTRACT('sku', '[0-9]+')", "undefined"),
            ("REGEXEXTRACT('sku', '[0-9]+', '', -1)", "undefined"),
            ("REGEXEXTRACTALL('A12-B34-C56', '[0-9]+')", "[\"12\",\"34\",\"56\"]"),
            ("REGEXEXTRACTALL('A12-B34', '([A-Z])[0-9]+', '', 1)", "[\"A\",\"B\"]"),
            ("REGEXEXTRACTALL('abc', '[0-9]+')", "[]"),
            ("REGEXREPLACE('A12-B34-C56', '[0-9]+', '#')", "\"A#-B34-C56\""),
            ("REGEXREPLACE('abc', 'x', '#')", "\"abc\""),
            ("REGEXREPLACEALL('A12-B34-C56', '[0-9]+', '#')", "\"A#-B#-C#\""),
            ("REGEXREPLACEALL('abc', 'B', '$0', 'i')", "\"a$0c\""),
            ("REGEXREPLACEALL('abc', 'b', 5)", "undefined"),
        ]);
    }

    #[test]
    fn a_pattern_that_would_be_too_large_is_not_compiled() {
        check_all(&[
            ("REGEXMATCH('a', '((a{1000}){1000}){1000}')", "undefined"),
            ("REGEXMATCH('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', '(a+)+$')", "false"),
        ]);
    }
}
