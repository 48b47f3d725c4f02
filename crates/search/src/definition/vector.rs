//! The part of a definition that says how vectors are compared and searched.

use super::reader::Reader;
use crate::error::Result;

/// How two vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    Cosine,
    Euclidean,
    DotProduct,
    Hamming,
}

/// How neighbours are found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VectorAlgorithm {
    pub name: String,
    pub metric: Metric,
    /// The parameters of the graph; none for an exhaustive search.
    pub graph: Option<Graph>,
}

/// The parameters of a graph of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    pub m: usize,
    pub ef_construction: usize,
    pub ef_search: usize,
}

/// A name that fields refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VectorProfile {
    pub name: String,
    pub algorithm: String,
}

/// Profiles and algorithms of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct VectorSearch {
    pub profiles: Vec<VectorProfile>,
    pub algorithms: Vec<VectorAlgorithm>,
}

impl VectorSearch {
    pub(super) fn parse(reader: &Reader<'_>) -> Result<VectorSearch> {
        let Some(item) = reader.object_of("vectorSearch")? else {
            return Ok(VectorSearch::default());
        };
        let mut algorithms: Vec<VectorAlgorithm> = Vec::new();
        for entry in item.objects("algorithms")? {
            algorithms.push(parse_algorithm(&entry)?);
        }
        let mut profiles = Vec::new();
        for entry in item.objects("profiles")? {
            let name = entry.required_string("name")?;
            let algorithm = entry.required_string("algorithm")?;
            if !algorithms.iter().any(|it| it.name == algorithm) {
                return Err(entry.wrong("algorithm", &format!("'{algorithm}' is not defined")));
            }
            profiles.push(VectorProfile { name, algorithm });
        }
        Ok(VectorSearch { profiles, algorithms })
    }

    /// The profile of a name.
    pub(crate) fn profile(&self, name: &str) -> Option<&VectorProfile> {
        self.profiles.iter().find(|it| it.name == name)
    }

    /// The algorithm of the profile of a name.
    pub(crate) fn algorithm(&self, profile: &str) -> Option<&VectorAlgorithm> {
        let profile = self.profile(profile)?;
        self.algorithms.iter().find(|it| it.name == profile.algorithm)
    }
}

fn parse_algorithm(entry: &Reader<'_>) -> Result<VectorAlgorithm> {
    let name = entry.required_string("name")?;
    let kind = entry.required_string("kind")?;
    let parameters = match kind.as_str() {
        "hnsw" => entry.object_of("hnswParameters")?,
        "exhaustiveKnn" => entry.object_of("exhaustiveKnnParameters")?,
        _ => return Err(entry.wrong("kind", "must be 'hnsw' or 'exhaustiveKnn'")),
    };
    let mut metric = Metric::Cosine;
    let mut graph = Graph { m: 4, ef_construction: 400, ef_search: 500 };
    if let Some(parameters) = parameters {
        metric = match parameters.string("metric")?.as_deref() {
            None | Some("cosine") => Metric::Cosine,
            Some("euclidean") => Metric::Euclidean,
            Some("dotProduct") => Metric::DotProduct,
            Some("hamming") => Metric::Hamming,
            Some(_) => {
                let what = "must be 'cosine', 'euclidean', 'dotProduct' or 'hamming'";
                return Err(parameters.wrong("metric", what));
            }
        };
        graph.m = parameters.whole("m", 4, 10)?.unwrap_or(graph.m);
        graph.ef_construction =
            parameters.whole("efConstruction", 100, 1_000)?.unwrap_or(graph.ef_construction);
        graph.ef_search = parameters.whole("efSearch", 100, 1_000)?.unwrap_or(graph.ef_search);
    }
    let graph = (kind == "hnsw").then_some(graph);
    Ok(VectorAlgorithm { name, metric, graph })
}
