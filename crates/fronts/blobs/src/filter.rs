//! Filters over tags: comparisons of a tag with a text, all of which must hold, or any of several such groups.
//!
//! `"Project" = 'Lazuli' AND Status >= '5'` is written both in the header of a condition and in a search. A search knows
//! no `OR` and no `<>`, and may name the container to look in as `@container`.

use std::collections::BTreeSet;
use std::sync::Arc;

use lazuli_shapes::blob::TagTest;

use crate::address::check_container;
use crate::error::{Common, Fault, Result};
use crate::limits::{
    FILTER_BYTES_MAX, FILTER_TERMS_MAX, SEARCH_TAGS_MAX, TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX,
};
use crate::request::bad_header;
use crate::tags::is_tag_char;

const CONTAINER: &str = "@container";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A tag, compared with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagTerm {
    pub(crate) key: String,
    pub(crate) comparison: Comparison,
    pub(crate) value: String,
}

/// All comparisons of any of its groups must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagFilter(pub(crate) Vec<Vec<TagTerm>>);

impl TagFilter {
    /// A tag that is not there compares with nothing.
    pub(crate) fn matches(&self, tags: &[(String, String)]) -> bool {
        let holds = |term: &TagTerm| {
            let found = tags.iter().find(|(key, _)| *key == term.key);
            found.is_some_and(|(_, value)| match term.comparison {
                Comparison::Equal => *value == term.value,
                Comparison::NotEqual => *value != term.value,
                Comparison::Less => *value < term.value,
                Comparison::LessOrEqual => *value <= term.value,
                Comparison::Greater => *value > term.value,
                Comparison::GreaterOrEqual => *value >= term.value,
            })
        };
        self.0.iter().any(|terms| terms.iter().all(holds))
    }

    /// Whether a tag is compared with anything.
    pub(crate) fn names(&self, key: &str) -> bool {
        self.0.iter().flatten().any(|term| term.key == key)
    }

    /// As the shape takes it.
    pub(crate) fn test(self) -> TagTest {
        Arc::new(move |tags| self.matches(tags))
    }
}

/// A text that is no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadFilter;

/// What a search asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub(crate) filter: TagFilter,
    pub(crate) container: Option<String>,
    /// As it was sent, which the answer repeats.
    pub(crate) text: String,
}

/// The condition of a header such as `x-ms-if-tags`, which is about tags alone.
pub(crate) fn condition(header: &str, text: &str) -> Result<TagTest> {
    let filter = parse(text).ok().filter(|filter| !filter.names(CONTAINER));
    let bad = || bad_header(header).detail("HeaderValue", text);
    Ok(filter.ok_or_else(bad)?.test())
}

/// The expression of a search.
pub(crate) fn search(text: &str) -> Result<Search> {
    let refused = || {
        Fault::new(Common::InvalidQueryParameterValue)
            .say("The filter of tags can't be understood.")
    };
    let filter = parse(text).map_err(|BadFilter| refused())?;
    let Ok([terms]) = <[Vec<TagTerm>; 1]>::try_from(filter.0) else { return Err(refused()) };
    let (mut container, mut kept) = (None, Vec::new());
    for term in terms {
        match term.comparison {
            Comparison::NotEqual => return Err(refused()),
            Comparison::Equal if term.key == CONTAINER && container.is_none() => {
                check_container(&term.value)?;
                container = Some(term.value);
            }
            _ if term.key == CONTAINER => return Err(refused()),
            _ => kept.push(term),
        }
    }
    let tags: BTreeSet<&str> = kept.iter().map(|term| term.key.as_str()).collect();
    if tags.is_empty() {
        return Err(refused());
    }
    if tags.len() > SEARCH_TAGS_MAX {
        return Err(refused().say(format!("A search names {SEARCH_TAGS_MAX} tags at the most.")));
    }
    Ok(Search { filter: TagFilter(vec![kept]), container, text: text.to_owned() })
}

/// Any filter: groups that `OR` separates, of comparisons that `AND` separates.
pub(crate) fn parse(text: &str) -> std::result::Result<TagFilter, BadFilter> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(BadFilter);
    }
    let mut reader = Reader { rest: text.trim() };
    let (mut groups, mut terms) = (Vec::new(), Vec::new());
    for _ in 0..FILTER_TERMS_MAX {
        terms.push(reader.term()?);
        if reader.rest.is_empty() {
            groups.push(terms);
            return Ok(TagFilter(groups));
        }
        if reader.word("AND") {
            continue;
        }
        if !reader.word("OR") {
            return Err(BadFilter);
        }
        groups.push(std::mem::take(&mut terms));
    }
    Err(BadFilter)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn term(&mut self) -> std::result::Result<TagTerm, BadFilter> {
        let key = match self.quoted('"') {
            Some(key) => key,
            None => self.bare(),
        };
        let name = key.strip_prefix('@').unwrap_or(key);
        let is_container = key.starts_with('@');
        let plain = !name.is_empty() && name.chars().all(is_tag_char);
        if !plain || name.len() > TAG_KEY_CHARS_MAX || (is_container && key != CONTAINER) {
            return Err(BadFilter);
        }
        let comparison = self.comparison().ok_or(BadFilter)?;
        let value = self.quoted('\'').ok_or(BadFilter)?;
        // The value of `@container` may be a name of the service's own, which begins with a dollar sign.
        let is_value = |c: char| is_tag_char(c) || (is_container && c == '$');
        if value.len() > TAG_VALUE_CHARS_MAX || !value.chars().all(is_value) {
            return Err(BadFilter);
        }
        Ok(TagTerm { key: key.to_owned(), comparison, value: value.to_owned() })
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    /// What stands between two of these marks.
    fn quoted(&mut self, mark: char) -> Option<&'a str> {
        let (text, _) = self.rest.strip_prefix(mark)?.split_once(mark)?;
        self.skip(text.len() + 2);
        Some(text)
    }

    /// A key without marks around it.
    fn bare(&mut self) -> &'a str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let key = &self.rest[..end];
        self.skip(end);
        key
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let (sign, comparison) = [
            ("<>", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ]
        .into_iter()
        .find(|(sign, _)| self.rest.starts_with(sign))?;
        self.skip(sign.len());
        Some(comparison)
    }

    /// Takes a word, in any case, that something else follows.
    fn word(&mut self, word: &str) -> bool {
        let head = self.rest.get(..word.len());
        let follows = self.rest.get(word.len()..).and_then(|rest| rest.chars().next());
        let ends = follows.is_some_and(|c| c.is_whitespace() || c == '"' || c == '@');
        let found = head.is_some_and(|head| head.eq_ignore_ascii_case(word)) && ends;
        if found {
            self.skip(word.len());
        }
        found
    }
}

/// A filter as text, from which the same filter is read again.
#[cfg(any(test, fuzzing))]
pub(crate) fn write(filter: &TagFilter) -> String {
    let sign = |comparison| match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    };
    let term =
        |term: &TagTerm| format!("\"{}\" {} '{}'", term.key, sign(term.comparison), term.value);
    let group = |terms: &Vec<TagTerm>| terms.iter().map(term).collect::<Vec<_>>().join(" AND ");
    filter.0.iter().map(group).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(key: &str, comparison: Comparison, value: &str) -> TagTerm {
        TagTerm { key: key.into(), comparison, value: value.into() }
    }

    #[test]
    fn a_filter_is_groups_of_comparisons() {
        let (equal, less) = (Comparison::Equal, Comparison::Less);
        let read = parse("\"a b\"='c' and d<'e' OR f <> ''").unwrap();
        let first = vec![term("a b", equal, "c"), term("d", less, "e")];
        assert_eq!(read.0, vec![first, vec![term("f", Comparison::NotEqual, "")]]);
        assert_eq!(parse(&write(&read)), Ok(read));
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for bad in [
            "",
            "a",
            "a=",
            "a='b",
            "a=b",
            "='b'",
            "a='b' AND",
            "a='b' c='d'",
            "a='b' XOR c='d'",
            "(a='b')",
            "a='b'ANDc='d'",
            "@other='a'",
            "a='ä'",
            "\"\"='a'",
            "a=='b'",
            "a='b' AND AND c='d'",
        ] {
            assert_eq!(parse(bad), Err(BadFilter), "{bad}");
        }
        let many = |count: usize| vec!["a='b'"; count].join(" AND ");
        assert!(parse(&many(FILTER_TERMS_MAX)).is_ok());
        assert_eq!(parse(&many(FILTER_TERMS_MAX + 1)), Err(BadFilter));
        assert!(parse(&format!("a='{}'", "b".repeat(FILTER_BYTES_MAX))).is_err());
    }

    #[test]
    fn a_search_may_name_its_container() {
        let found = search("@container = 'con' AND \"a\" = 'b'").unwrap();
        assert_eq!(found.container.as_deref(), Some("con"));
        assert_eq!(found.filter.0, vec![vec![term("a", Comparison::Equal, "b")]]);
        for bad in [
            "a='b' OR c='d'",
            "a<>'b'",
            "@container='con'",
            "@container>'con' AND a='b'",
            "@container='con' AND @container='other' AND a='b'",
            "@container='NO' AND a='b'",
        ] {
            assert!(search(bad).is_err(), "{bad}");
        }
    }
}
