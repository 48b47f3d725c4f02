//! What a request addresses. Paths come in two shapes, `/indexes('n')/docs('k')` and `/indexes/n/docs/k`; both are read.

use lazuli_http::uri::percent_decode;

use crate::error::{Fault, Result};

/// Named things that are kept beside the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    Indexes,
    SynonymMaps,
    Aliases,
    /// Keys for queries: an addition of this server, because the service keeps them in another API.
    QueryKeys,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    ServiceStatistics,
    /// Statistics of all indexes.
    Statistics,
    All(Collection),
    One(Collection, String),
    Index(String, IndexPart),
}

/// Below an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexPart {
    Statistics,
    Analyze,
    /// Partitions and replicas: an addition of this server, because the service sets them in another API.
    Scale,
    /// Documents and size of every slice: an addition of this server.
    Slices,
    /// What a search text means: an addition of this server.
    Explain,
    /// `/docs` alone: a search.
    Documents,
    Count,
    Write,
    Search,
    Suggest,
    Autocomplete,
    Document(String),
}

/// One part of a path: `name` or `name('argument')`.
struct Segment {
    name: String,
    argument: Option<String>,
}

/// What the service has and this server has not, by the first part of its paths.
const GAPS: [(&str, &str); 7] = [
    ("indexers", "Indexers"),
    ("datasources", "Data sources"),
    ("skillsets", "Skillsets"),
    ("knowledgebases", "Knowledge bases"),
    ("knowledgesources", "Knowledge sources"),
    ("agents", "Knowledge agents"),
    ("debugSessions", "Debug sessions"),
];

impl Address {
    pub(crate) fn parse(path: &str) -> Result<Self> {
        let segments = path.split('/').filter(|text| !text.is_empty());
        let segments = segments.map(Segment::parse).collect::<Result<Vec<_>>>()?;
        let mut parts = segments.into_iter();
        let Some(first) = parts.next() else { return Err(unknown(path)) };
        let collection = match first.name.as_str() {
            "servicestats" => return Ok(Self::ServiceStatistics),
            "indexstats" => return Ok(Self::Statistics),
            "indexes" => Collection::Indexes,
            "synonymmaps" => Collection::SynonymMaps,
            "aliases" => Collection::Aliases,
            "lazuli.querykeys" => Collection::QueryKeys,
            name => {
                let gap = GAPS.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
                return Err(gap.map_or_else(|| unknown(path), |(_, what)| Fault::gap(what)));
            }
        };
        // The name is the argument of the first part, or the second part.
        let name = match first.argument {
            Some(name) => Some(name),
            None => parts.next().map(Segment::plain).transpose()?,
        };
        let Some(name) = name else { return Ok(Self::All(collection)) };
        let Some(next) = parts.next() else { return Ok(Self::One(collection, name)) };
        if collection != Collection::Indexes {
            return Err(unknown(path));
        }
        let part = match next.name.as_str() {
            "search.stats" | "stats" => IndexPart::Statistics,
            "search.analyze" | "analyze" => IndexPart::Analyze,
            "lazuli.scale" => IndexPart::Scale,
            "lazuli.slices" => IndexPart::Slices,
            "lazuli.explain" => IndexPart::Explain,
            "docs" => match (next.argument, parts.next()) {
                (Some(key), _) => IndexPart::Document(key),
                (None, Some(segment)) => IndexPart::below_documents(segment)?,
                (None, None) => IndexPart::Documents,
            },
            _ => return Err(unknown(path)),
        };
        match parts.next() {
            Some(_) => Err(unknown(path)),
            None => Ok(Self::Index(name, part)),
        }
    }
}

impl IndexPart {
    fn below_documents(segment: Segment) -> Result<Self> {
        Ok(match segment.plain()?.as_str() {
            "$count" => Self::Count,
            "search.index" | "index" => Self::Write,
            "search.post.search" | "search" => Self::Search,
            "search.post.suggest" | "search.suggest" | "suggest" => Self::Suggest,
            "search.post.autocomplete" | "search.autocomplete" | "autocomplete" => {
                Self::Autocomplete
            }
            key => Self::Document(key.to_owned()),
        })
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self> {
        let malformed = || Fault::bad_request(format!("The path segment '{text}' is malformed."));
        let text = percent_decode(text).map_err(|_| malformed())?;
        let Some((name, rest)) = text.split_once("('") else {
            return Ok(Self { name: text.into_owned(), argument: None });
        };
        let argument = rest.strip_suffix("')").ok_or_else(malformed)?;
        Ok(Self { name: name.to_owned(), argument: Some(argument.replace("''", "'")) })
    }

    /// A part that is a name and nothing else.
    fn plain(self) -> Result<String> {
        match self.argument {
            None => Ok(self.name),
            Some(_) => Err(Fault::bad_request("The path is malformed.")),
        }
    }
}

fn unknown(path: &str) -> Fault {
    let path: String = path.chars().take(200).collect();
    Fault::not_found(format!("No resource has the path '{path}'."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(part: IndexPart) -> Address {
        Address::Index("hotels".into(), part)
    }

    #[test]
    fn both_shapes_of_paths_mean_the_same() {
        let key = || IndexPart::Document("k=1".into());
        for (odata, plain, expected) in [
            ("/indexes", "/indexes/", Address::All(Collection::Indexes)),
            (
                "/indexes('hotels')",
                "/indexes/hotels",
                Address::One(Collection::Indexes, "hotels".into()),
            ),
            (
                "/indexes('hotels')/docs/search.post.search",
                "/indexes/hotels/docs/search",
                index(IndexPart::Search),
            ),
            (
                "/indexes(%27hotels%27)/docs/search.index",
                "/indexes/hotels/docs/index",
                index(IndexPart::Write),
            ),
            ("/indexes('hotels')/docs('k=1')", "/indexes/hotels/docs/k%3D1", index(key())),
            (
                "/indexes('hotels')/docs/$count",
                "/indexes/hotels/docs/%24count",
                index(IndexPart::Count),
            ),
            (
                "/indexes('hotels')/search.stats",
                "/indexes/hotels/stats",
                index(IndexPart::Statistics),
            ),
            (
                "/synonymmaps('a''b')",
                "/synonymmaps/a'b",
                Address::One(Collection::SynonymMaps, "a'b".into()),
            ),
        ] {
            assert_eq!(Address::parse(odata).unwrap(), expected, "{odata}");
            assert_eq!(Address::parse(plain).unwrap(), expected, "{plain}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        for path in ["/indexers", "/indexers('x')/search.run", "/skillsets", "/datasources('d')"] {
            assert!(Address::parse(path).unwrap_err().message.contains("not supported"), "{path}");
        }
        for path in ["/", "/x", "/indexes('a')/x", "/indexes('a", "/aliases('a')/docs", "/%zz"] {
            assert!(Address::parse(path).is_err(), "{path}");
        }
    }
}
