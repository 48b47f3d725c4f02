//! Functions on strings, by tables of calls.

use crate::functions::check::check_all;

#[test]
fn texts_are_compared_in_their_case_or_in_any() {
    check_all(&[
        ("CONTAINS('AdventureWorks', 'Works')", "true"),
        ("CONTAINS('AdventureWorks', 'works')", "false"),
        ("CONTAINS('AdventureWorks', 'works', false)", "false"),
        ("CONTAINS('AdventureWorks', 'works', true)", "true"),
        ("CONTAINS('abc', '')", "true"),
        ("CONTAINS('abc', null)", "undefined"),
        ("CONTAINS('abc', 'a', 'yes')", "undefined"),
        ("STARTSWITH('AdventureWorks', 'adv', true)", "true"),
        ("STARTSWITH('AdventureWorks', 'adv')", "false"),
        ("STARTSWITH(5, 'a')", "undefined"),
        ("ENDSWITH('AdventureWorks', 'Works')", "true"),
        ("ENDSWITH('AdventureWorks', 'WORKS', true)", "true"),
        ("ENDSWITH(undefined, 'a')", "undefined"),
        ("STRINGEQUALS('abc', 'aBC')", "false"),
        ("STRINGEQUALS('abc', 'aBC', true)", "true"),
        ("STRINGEQUALS('abc', 5)", "undefined"),
    ]);
}

#[test]
fn several_texts_are_sought_at_once() {
    check_all(&[
        ("CONTAINS_ALL_CI('Have a nice day!', 'HAVE', 'NICE', 'DAY!')", "true"),
        ("CONTAINS_ALL_CI('Have a nice day!', 'had', 'nice')", "false"),
        ("CONTAINS_ALL_CI('Have a nice day!', undefined, 'nice')", "undefined"),
        ("CONTAINS_ALL_CI('Have a nice day!', undefined, 'had')", "false"),
        ("CONTAINS_ALL_CS('Have a nice day!', 'HAVE', 'nice')", "false"),
        ("CONTAINS_ALL_CS('Have a nice day!', 'Have', 'nice')", "true"),
        ("CONTAINS_ANY_CI('Have a nice day!', 'had', 'NICE')", "true"),
        ("CONTAINS_ANY_CI('Have a nice day!', undefined, 'nice')", "true"),
        ("CONTAINS_ANY_CI('Have a nice day!', undefined, 'had')", "undefined"),
        ("CONTAINS_ANY_CS('Have a nice day!', 'HAVE', 'NICE')", "false"),
        ("CONTAINS_ANY_CS(5, 'a')", "undefined"),
    ]);
}

#[test]
fn texts_are_found_by_place() {
    check_all(&[
        ("INDEX_OF('AdventureWorks', 'A')", "0"),
        ("INDEX_OF('AdventureWorks', 'Works')", "9"),
        ("INDEX_OF('AdventureWorks', 'Cosmos')", "-1"),
        ("INDEX_OF('AdventureWorks', 'Works', 5)", "9"),
        ("INDEX_OF('AdventureWorks', 'Adventure', 5)", "-1"),
        ("INDEX_OF('äbä', 'ä', 1)", "2"),
        ("INDEX_OF('abc', 'c', 100)", "-1"),
        ("INDEX_OF('abc', 'c', 'x')", "undefined"),
        ("INDEX_OF(null, 'c')", "undefined"),
        ("LASTINDEXOF('abcabc', 'b')", "4"),
        ("LASTINDEXOF('abcabc', 'b', 3)", "1"),
        ("LASTINDEXOF('abcabc', 'b', 4)", "4"),
        ("LASTINDEXOF('abcdeabc', 'abc')", "5"),
        ("LASTINDEXOF('abcdeabc', 'abc', 6)", "0"),
        ("LASTINDEXOF('abcdeabc', 'abc', 7)", "5"),
        ("LASTINDEXOF('abcabc', 'x')", "-1"),
        ("LASTINDEXOF('äbäb', 'b')", "3"),
        ("LASTINDEXOF('abc', 'a', -1)", "-1"),
        ("LENGTH('AdventureWorks')", "14"),
        ("LENGTH('')", "0"),
        ("LENGTH('äß')", "2"),
        ("LENGTH(5)", "undefined"),
    ]);
}

#[test]
fn parts_of_texts_are_cut_out() {
    check_all(&[
        ("LEFT('AdventureWorks', 9)", "\"Adventure\""),
        ("LEFT('abc', 100)", "\"abc\""),
        ("LEFT('abc', -1)", "\"\""),
        ("LEFT('abc', 'a')", "undefined"),
        ("RIGHT('AdventureWorks', 5)", "\"Works\""),
        ("RIGHT('äöü', 2)", "\"öü\""),
        ("RIGHT('abc', -1)", "\"\""),
        ("RIGHT(null, 1)", "undefined"),
        ("SUBSTRING('AdventureWorks', 9, 5)", "\"Works\""),
        ("SUBSTRING('AdventureWorks', 0, -1)", "\"\""),
        ("SUBSTRING('äöü', 1, 1)", "\"ö\""),
        ("SUBSTRING('abc', 1)", "\"bc\""),
        ("SUBSTRING('abc', 5, 1)", "\"\""),
        ("SUBSTRING('abc', 1, 'x')", "undefined"),
        ("SUBSTRINGAFTER('contoso|north|2026', '|')", "\"north|2026\""),
        ("SUBSTRINGBEFORE('contoso|north|2026', '|')", "\"contoso\""),
        ("LASTSUBSTRINGAFTER('bike::touring::frame', '::')", "\"frame\""),
        ("LASTSUBSTRINGBEFORE('bike::touring::frame', '::')", "\"bike::touring\""),
        ("SUBSTRINGAFTER('abc', '|')", "undefined"),
        ("SUBSTRINGBEFORE('abc', 5)", "undefined"),
    ]);
}

#[test]
fn texts_are_changed() {
    check_all(&[
        ("LOWER('ABC ÄÖ')", "\"abc äö\""),
        ("UPPER('abc äö')", "\"ABC ÄÖ\""),
        ("UPPER(1)", "undefined"),
        ("LOWER(null)", "undefined"),
        ("REVERSE('Abc')", "\"cbA\""),
        ("REVERSE([1])", "undefined"),
        ("TRIM('   a b   ')", "\"a b\""),
        ("LTRIM('   abc ')", "\"abc \""),
        ("RTRIM(' abc   ')", "\" abc\""),
        ("TRIM('AdventureWorks', 'Adventure')", "\"Works\""),
        ("LTRIM('AdventureWorks', 'Adventure')", "\"Works\""),
        ("RTRIM('AdventureWorks', 'Works')", "\"Adventure\""),
        ("TRIM('abc', null)", "undefined"),
        ("TRIM(undefined)", "undefined"),
        ("REPLACE('This is a Test', 'Test', 'desk')", "\"This is a desk\""),
        ("REPLACE('aaa', 'a', '')", "\"\""),
        ("REPLACE('aaa', '', 'b')", "\"aaa\""),
        ("REPLACE('aaa', 'a', null)", "undefined"),
        ("REPLICATE('a', 3)", "\"aaa\""),
        ("REPLICATE('a', 0)", "\"\""),
        ("REPLICATE('a', -1)", "undefined"),
        ("REPLICATE('a', 10001)", "undefined"),
        ("REPLICATE('', 1e300)", "\"\""),
        ("REPLICATE(5, 1)", "undefined"),
    ]);
}

#[test]
fn texts_are_joined_and_split() {
    check_all(&[
        ("CONCAT('Adventure', 'Works')", "\"AdventureWorks\""),
        ("CONCAT('a', '', 'b', 'c')", "\"abc\""),
        ("CONCAT('a', 5)", "undefined"),
        ("CONCAT('a', undefined)", "undefined"),
        ("STRINGJOIN(['hello', 'world'], ' ')", "\"hello world\""),
        ("STRINGJOIN([], ', ')", "\"\""),
        ("STRINGJOIN(['a', 5], ' ')", "undefined"),
        ("STRINGJOIN('a', ' ')", "undefined"),
        ("STRINGSPLIT('Handlebar', 'e')", "[\"Handl\",\"bar\"]"),
        ("STRINGSPLIT('xenmoun mountain bike', 'moun')", "[\"xen\",\" \",\"tain bike\"]"),
        ("STRINGSPLIT('Helmet', '')", "[\"Helmet\"]"),
        ("STRINGSPLIT('', '')", "[\"\"]"),
        ("STRINGSPLIT('a', undefined)", "undefined"),
        ("STRINGSPLIT(null, 'a')", "undefined"),
    ]);
}

#[test]
fn a_text_that_would_be_too_large_is_not_made() {
    use lazuli_value::Value;

    use crate::functions::call;
    let large: Value = "a".repeat(1024 * 1024).into();
    let arguments: Vec<_> = std::iter::repeat_n(Some(large.clone()), 5).collect();
    assert_eq!(call("CONCAT", &arguments), None);
    assert_eq!(
        call("REPLACE", &[Some(large.clone()), Some("a".into()), Some(large.clone())]),
        None
    );
    assert_eq!(call("STRINGSPLIT", &[Some(large.clone()), Some("a".into())]), None);
    let parts = Value::Array(vec![large.clone(); 5]);
    assert_eq!(call("STRINGJOIN", &[Some(parts), Some("".into())]), None);
}
