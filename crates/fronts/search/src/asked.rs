//! What a query asks for, from its posted body or from the parameters of its address: the same notions under names that differ
//! a little.

use serde_json::{Map, Value};

use crate::error::{Fault, Result};
use crate::options::Options;

/// Parameters of queries by any of their names.
pub(crate) enum Asked<'a> {
    Posted(Map<String, Value>),
    Address(&'a Options),
}

/// A parameter of an operation: its name in a body, and in an address where it has another one there.
pub(crate) struct Parameter {
    posted: &'static str,
    address: &'static str,
}

const fn same(name: &'static str) -> Parameter {
    Parameter { posted: name, address: name }
}

pub(crate) const SEARCH: Parameter = same("search");
pub(crate) const FILTER: Parameter = same("filter");
pub(crate) const ORDER_BY: Parameter = same("orderby");
pub(crate) const SELECT: Parameter = same("select");
pub(crate) const TOP: Parameter = same("top");
pub(crate) const SKIP: Parameter = same("skip");
pub(crate) const COUNT: Parameter = same("count");
pub(crate) const FACETS: Parameter = Parameter { posted: "facets", address: "facet" };
pub(crate) const HIGHLIGHT: Parameter = same("highlight");
pub(crate) const PRE_TAG: Parameter = same("highlightPreTag");
pub(crate) const POST_TAG: Parameter = same("highlightPostTag");
pub(crate) const COVERAGE: Parameter = same("minimumCoverage");
pub(crate) const QUERY_TYPE: Parameter = same("queryType");
pub(crate) const SEARCH_MODE: Parameter = same("searchMode");
pub(crate) const SEARCH_FIELDS: Parameter = same("searchFields");
pub(crate) const STATISTICS: Parameter = same("scoringStatistics");
pub(crate) const PROFILE: Parameter = same("scoringProfile");
pub(crate) const SCORING: Parameter =
    Parameter { posted: "scoringParameters", address: "scoringParameter" };
pub(crate) const SUGGESTER: Parameter = same("suggesterName");
pub(crate) const FUZZY: Parameter = same("fuzzy");
pub(crate) const COMPLETION_MODE: Parameter = same("autocompleteMode");

/// What the service has and this server has not. A value that switches the feature off is taken.
const GAPS: [(&str, &str); 12] = [
    ("debug", "Debug information of queries"),
    ("queryLanguage", "Languages of queries"),
    ("semanticConfiguration", "Semantic configurations"),
    ("semanticQuery", "Semantic queries"),
    ("semanticErrorHandling", "Semantic queries"),
    ("semanticMaxWaitInMilliseconds", "Semantic queries"),
    ("semanticFields", "Semantic queries"),
    ("answers", "Semantic answers"),
    ("captions", "Semantic captions"),
    ("speller", "Spelling corrections"),
    ("queryRewrites", "Query rewrites"),
    ("hybridSearch", "Options of hybrid searches"),
];

impl<'a> Asked<'a> {
    pub(crate) fn new(posted: Option<Value>, options: &'a Options) -> Result<Self> {
        let asked = match posted {
            None => Self::Address(options),
            Some(Value::Object(body)) => Self::Posted(body),
            Some(_) => return Err(Fault::invalid("body", "The body must be a JSON object.")),
        };
        for (name, what) in GAPS {
            let value = asked.value(&same(name))?;
            let is_off = |value: &Value| matches!(value.as_str(), Some("none" | "disabled"));
            if value.is_some_and(|value| !is_off(&value)) {
                return Err(Fault::gap(what));
            }
        }
        Ok(asked)
    }

    /// Refuses parameters that the operation does not have. Addresses have parameters of other kinds too.
    pub(crate) fn check(&self, operation: &str, known: &[&str]) -> Result<()> {
        let Self::Posted(body) = self else { return Ok(()) };
        let is_known = |name: &&String| {
            known.contains(&name.as_str()) || GAPS.iter().any(|(gap, _)| name == gap)
        };
        match body.keys().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => Err(Fault::bad_request(format!(
                "The parameter '{name}' in the request payload is not a valid parameter for the operation \
                 '{operation}'."
            ))),
        }
    }

    /// The value of a parameter; null is none.
    pub(crate) fn value(&self, parameter: &Parameter) -> Result<Option<Value>> {
        Ok(match self {
            Self::Posted(body) => body.get(parameter.posted).filter(|it| !it.is_null()).cloned(),
            Self::Address(options) => options.get(parameter.address).map(Value::from),
        })
    }

    pub(crate) fn text(&self, parameter: &Parameter) -> Result<Option<String>> {
        match self.value(parameter)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(parameter, "a string")),
        }
    }

    /// Names with commas between them. Some clients send an array of them instead.
    pub(crate) fn list(&self, parameter: &Parameter) -> Result<Option<String>> {
        match self.value(parameter)? {
            Some(Value::Array(_)) => self.texts(parameter).map(|names| Some(names.join(","))),
            _ => self.text(parameter),
        }
    }

    /// One of a few words, in any case.
    pub(crate) fn word<T: Copy>(
        &self,
        parameter: &Parameter,
        words: &[(&str, T)],
    ) -> Result<Option<T>> {
        let Some(text) = self.text(parameter)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text));
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let expected = || wrong(parameter, &format!("one of {}", names.join(", ")));
        found.map(|(_, value)| Some(*value)).ok_or_else(expected)
    }

    /// A whole number up to a limit.
    pub(crate) fn number(&self, parameter: &Parameter, most: usize) -> Result<Option<usize>> {
        let number = match self.value(parameter)? {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) if matches!(self, Self::Address(_)) => text.parse().ok(),
            Some(_) => None,
        };
        let number = number.and_then(|it| usize::try_from(it).ok()).filter(|it| *it <= most);
        number.map(Some).ok_or_else(|| wrong(parameter, &format!("a number from 0 to {most}")))
    }

    pub(crate) fn switch(&self, parameter: &Parameter) -> Result<bool> {
        match self.value(parameter)? {
            None => Ok(false),
            Some(Value::Bool(is)) => Ok(is),
            Some(Value::String(text)) if matches!(self, Self::Address(_)) => {
                text.parse().map_err(|_| wrong(parameter, "true or false"))
            }
            Some(_) => Err(wrong(parameter, "true or false")),
        }
    }

    /// Several texts: an array in a body, the parameter several times in an address.
    pub(crate) fn texts(&self, parameter: &Parameter) -> Result<Vec<String>> {
        let expected = || wrong(parameter, "an array of strings");
        match self {
            Self::Address(options) => Ok(options.all(parameter.address)),
            Self::Posted(_) => match self.value(parameter)? {
                None => Ok(Vec::new()),
                Some(Value::Array(texts)) => {
                    let text = |it: Value| it.as_str().map(str::to_owned).ok_or_else(expected);
                    texts.into_iter().map(text).collect()
                }
                Some(_) => Err(expected()),
            },
        }
    }

    /// A percentage.
    pub(crate) fn percentage(&self, parameter: &Parameter) -> Result<Option<f64>> {
        let number = match self.value(parameter)? {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) if matches!(self, Self::Address(_)) => text.parse().ok(),
            Some(_) => None,
        };
        let number = number.filter(|number| (0.0..=100.0).contains(number));
        number.map(Some).ok_or_else(|| wrong(parameter, "a number from 0 to 100"))
    }

    /// As a body, for the next page.
    pub(crate) fn to_body(&self) -> Map<String, Value> {
        match self {
            Self::Posted(body) => body.clone(),
            Self::Address(options) => {
                let mut body = Map::new();
                for parameter in [
                    SEARCH,
                    FILTER,
                    ORDER_BY,
                    SELECT,
                    HIGHLIGHT,
                    PRE_TAG,
                    POST_TAG,
                    QUERY_TYPE,
                    SEARCH_MODE,
                    SEARCH_FIELDS,
                    STATISTICS,
                    PROFILE,
                ] {
                    if let Some(value) = options.get(parameter.address) {
                        body.insert(parameter.posted.to_owned(), value.into());
                    }
                }
                for parameter in [FACETS, SCORING] {
                    let all = options.all(parameter.address);
                    if !all.is_empty() {
                        body.insert(parameter.posted.to_owned(), all.into());
                    }
                }
                if options.get(COUNT.address) == Some("true") {
                    body.insert(COUNT.posted.to_owned(), true.into());
                }
                body
            }
        }
    }
}

fn wrong(parameter: &Parameter, expected: &str) -> Fault {
    let name = parameter.posted;
    Fault::invalid(name, &format!("The value of the parameter '{name}' must be {expected}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn posted(body: Value) -> Result<Asked<'static>> {
        static NOTHING: std::sync::LazyLock<Options> = std::sync::LazyLock::new(Options::default);
        Asked::new(Some(body), &NOTHING)
    }

    #[test]
    fn values_of_another_type_are_refused_by_name() {
        let asked =
            posted(json!({"top": "5", "search": 1, "count": "true", "facets": [1]})).unwrap();
        assert!(asked.number(&TOP, 9).unwrap_err().message.contains("'top'"));
        assert!(asked.text(&SEARCH).is_err() && asked.switch(&COUNT).is_err());
        assert!(asked.texts(&FACETS).is_err());
        assert!(posted(json!({"top": 10})).unwrap().number(&TOP, 9).is_err());
        assert!(posted(json!({"top": -1})).unwrap().number(&TOP, 9).is_err());
        let asked = posted(json!({"select": ["a", "b"]})).unwrap();
        assert_eq!(asked.list(&SELECT).unwrap().as_deref(), Some("a,b"));
        assert_eq!(posted(json!({"top": null})).unwrap().number(&TOP, 9).unwrap(), None);
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name_unless_it_is_switched_off() {
        let refused = posted(json!({"semanticConfiguration": "c"})).err().unwrap();
        assert!(refused.message.contains("Semantic"));
        assert!(posted(json!({"speller": "none", "answers": null})).is_ok());
        let unknown = posted(json!({"serch": "x"})).unwrap().check("search", &["search"]);
        assert!(unknown.unwrap_err().message.contains("'serch'"));
    }
}
