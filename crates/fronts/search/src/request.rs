//! The operations of the service: a closed enum, made of the method and the address.

use lazuli_http::Method;

use crate::address::{Address, Collection, IndexPart};
use crate::error::{Fault, Result};

/// What is done with named things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    List,
    Create,
    Put,
    Read,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    ReadServiceStatistics,
    ListIndexStatistics,
    Named {
        verb: Verb,
        collection: Collection,
        name: Option<String>,
    },
    ReadIndexStatistics(String),
    AnalyzeText(String),
    ReadScale(String),
    SetScale(String),
    ReadSlices(String),
    ExplainQuery(String),
    WriteDocuments(String),
    /// With its parameters in the address, or posted.
    SearchDocuments {
        index: String,
        is_posted: bool,
    },
    SuggestDocuments {
        index: String,
        is_posted: bool,
    },
    CompleteText {
        index: String,
        is_posted: bool,
    },
    ReadDocument {
        index: String,
        key: String,
    },
    CountDocuments(String),
    /// A browser asks whether a page may send a request.
    AskForOrigin(String),
}

impl Operation {
    /// The index that it is about, if it is about its documents.
    pub(crate) fn documents_of(&self) -> Option<&str> {
        match self {
            Self::WriteDocuments(index)
            | Self::SearchDocuments { index, .. }
            | Self::SuggestDocuments { index, .. }
            | Self::CompleteText { index, .. }
            | Self::ReadDocument { index, .. }
            | Self::CountDocuments(index) => Some(index),
            Self::ReadServiceStatistics
            | Self::ListIndexStatistics
            | Self::Named { .. }
            | Self::ReadIndexStatistics(_)
            | Self::AnalyzeText(_)
            | Self::ReadScale(_)
            | Self::SetScale(_)
            | Self::ReadSlices(_)
            | Self::ExplainQuery(_)
            | Self::AskForOrigin(_) => None,
        }
    }

    pub(crate) fn parse(method: &Method, address: Address) -> Result<Self> {
        let method = method.as_str();
        let refuse = || {
            let message = format!("The method {method} is not allowed here.");
            let status = lazuli_http::StatusCode::METHOD_NOT_ALLOWED;
            Fault::new(status, "MethodNotAllowed", message)
        };
        let named = |verb, collection, name| Ok(Self::Named { verb, collection, name });
        match (address, method) {
            (Address::ServiceStatistics, "GET") => Ok(Self::ReadServiceStatistics),
            (Address::Statistics, "GET") => Ok(Self::ListIndexStatistics),
            (Address::All(collection), "GET") => named(Verb::List, collection, None),
            (Address::All(collection), "POST") => named(Verb::Create, collection, None),
            (Address::One(collection, name), "GET") => named(Verb::Read, collection, Some(name)),
            (Address::One(collection, name), "PUT") => named(Verb::Put, collection, Some(name)),
            (Address::One(collection, name), "DELETE") => {
                named(Verb::Delete, collection, Some(name))
            }
            (Address::Index(index, part), method) => {
                Self::of_index(index, part, method).ok_or_else(refuse)
            }
            _ => Err(refuse()),
        }
    }

    fn of_index(index: String, part: IndexPart, method: &str) -> Option<Self> {
        let is_posted = method == "POST";
        Some(match (part, method) {
            (IndexPart::Statistics, "GET") => Self::ReadIndexStatistics(index),
            (IndexPart::Analyze, "POST") => Self::AnalyzeText(index),
            (IndexPart::Scale, "GET") => Self::ReadScale(index),
            (IndexPart::Scale, "PUT") => Self::SetScale(index),
            (IndexPart::Slices, "GET") => Self::ReadSlices(index),
            (IndexPart::Explain, "POST") => Self::ExplainQuery(index),
            (IndexPart::Write, "POST") => Self::WriteDocuments(index),
            (IndexPart::Documents, "GET") => Self::SearchDocuments { index, is_posted },
            (IndexPart::Search, "GET" | "POST") => Self::SearchDocuments { index, is_posted },
            (IndexPart::Suggest, "GET" | "POST") => Self::SuggestDocuments { index, is_posted },
            (IndexPart::Autocomplete, "GET" | "POST") => Self::CompleteText { index, is_posted },
            (IndexPart::Document(key), "GET") => Self::ReadDocument { index, key },
            (IndexPart::Count, "GET") => Self::CountDocuments(index),
            (_, "OPTIONS") => Self::AskForOrigin(index),
            // A document may have a key that reads like an operation.
            (IndexPart::Write, "GET") => Self::ReadDocument { index, key: "index".to_owned() },
            _ => return None,
        })
    }

    /// The name in metrics and in `operations.toml`.
    pub(crate) fn name(&self) -> &'static str {
        use Collection::{Aliases, Indexes, QueryKeys, SynonymMaps};
        match self {
            Self::ReadServiceStatistics => "ReadServiceStatistics",
            Self::ListIndexStatistics => "ListIndexStatistics",
            Self::Named { verb, collection, .. } => match (verb, collection) {
                (Verb::List, Indexes) => "ListIndexes",
                (Verb::Create, Indexes) => "CreateIndex",
                (Verb::Put, Indexes) => "PutIndex",
                (Verb::Read, Indexes) => "ReadIndex",
                (Verb::Delete, Indexes) => "DeleteIndex",
                (Verb::List, SynonymMaps) => "ListSynonymMaps",
                (Verb::Create, SynonymMaps) => "CreateSynonymMap",
                (Verb::Put, SynonymMaps) => "PutSynonymMap",
                (Verb::Read, SynonymMaps) => "ReadSynonymMap",
                (Verb::Delete, SynonymMaps) => "DeleteSynonymMap",
                (Verb::List, Aliases) => "ListAliases",
                (Verb::Create, Aliases) => "CreateAlias",
                (Verb::Put, Aliases) => "PutAlias",
                (Verb::Read, Aliases) => "ReadAlias",
                (Verb::Delete, Aliases) => "DeleteAlias",
                (Verb::List, QueryKeys) => "ListQueryKeys",
                (Verb::Create, QueryKeys) => "CreateQueryKey",
                (Verb::Put, QueryKeys) => "PutQueryKey",
                (Verb::Read, QueryKeys) => "ReadQueryKey",
                (Verb::Delete, QueryKeys) => "DeleteQueryKey",
            },
            Self::AskForOrigin(_) => "AskForOrigin",
            Self::ReadIndexStatistics(_) => "ReadIndexStatistics",
            Self::AnalyzeText(_) => "AnalyzeText",
            Self::ReadScale(_) => "ReadScale",
            Self::SetScale(_) => "SetScale",
            Self::ReadSlices(_) => "ReadSlices",
            Self::ExplainQuery(_) => "ExplainQuery",
            Self::WriteDocuments(_) => "WriteDocuments",
            Self::SearchDocuments { .. } => "SearchDocuments",
            Self::SuggestDocuments { .. } => "SuggestDocuments",
            Self::CompleteText { .. } => "CompleteText",
            Self::ReadDocument { .. } => "ReadDocument",
            Self::CountDocuments(_) => "CountDocuments",
        }
    }

    /// Whether a key for queries is enough.
    pub(crate) fn is_query(&self) -> bool {
        matches!(
            self,
            Self::SearchDocuments { .. }
                | Self::SuggestDocuments { .. }
                | Self::CompleteText { .. }
                | Self::ReadDocument { .. }
                | Self::CountDocuments(_)
                | Self::ExplainQuery(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_operations_says_what_the_code_does() {
        let table: toml::Table = include_str!("../operations.toml").parse().unwrap();
        for row in table["operation"].as_array().unwrap() {
            let text = |name: &str| row[name].as_str().unwrap();
            let method = text("method").parse().unwrap();
            let parsed =
                Address::parse(text("path")).and_then(|address| Operation::parse(&method, address));
            match text("status") {
                "gap" => assert_eq!(parsed.unwrap_err().status.as_u16(), 501, "{row:?}"),
                _ => assert_eq!(parsed.unwrap().name(), text("name"), "{row:?}"),
            }
        }
    }

    #[test]
    fn queries_are_what_a_query_key_allows() {
        let parse = |method: &str, path: &str| {
            Operation::parse(&method.parse().unwrap(), Address::parse(path).unwrap()).unwrap()
        };
        assert!(parse("GET", "/indexes/a/docs/1").is_query());
        assert!(parse("POST", "/indexes/a/docs/search").is_query());
        for (method, path) in [
            ("POST", "/indexes/a/docs/index"),
            ("GET", "/indexes/a"),
            ("GET", "/lazuli.querykeys"),
            ("GET", "/servicestats"),
        ] {
            assert!(!parse(method, path).is_query(), "{path}");
        }
    }
}
