//! Indexing policies: which values of an item have entries in the index, as the service writes them.

use lazuli_engine::{Error, Result};
use lazuli_value::{Object, Value};

use super::item::IndexDirective;
use super::limits::{COMPOSITE_PATHS_MAX, COMPOSITES_MAX, POLICY_PATHS_MAX};
use super::path::{Path, Reach, Step};
use super::reason::DocumentReason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingMode {
    /// Entries are written with the item.
    Consistent,
    /// As [`IndexingMode::Consistent`]: that entries come late is allowed, not required.
    Lazy,
    /// There is no index.
    None,
}

/// One path of a composite index, and whether it descends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositePath {
    pub path: Path,
    pub descends: bool,
}

/// A path of the policy, with what it stands for.
pub type PolicyPath = (Path, Reach);

#[derive(Clone, Debug, PartialEq)]
pub struct IndexingPolicy {
    pub mode: IndexingMode,
    pub automatic: bool,
    pub included: Vec<PolicyPath>,
    pub excluded: Vec<PolicyPath>,
    pub composites: Vec<Vec<CompositePath>>,
    /// Kept and shown: spatial functions read what other paths select.
    pub spatial: Vec<Value>,
    /// What else the policy says, kept as it is: indexes of vectors and texts.
    pub others: Vec<(String, Value)>,
}

impl Default for IndexingPolicy {
    /// Everything but the etag, which changes with every write.
    fn default() -> Self {
        Self {
            mode: IndexingMode::Consistent,
            automatic: true,
            included: vec![(Path::default(), Reach::Below)],
            excluded: vec![(Path::new(vec![Step::Name("_etag".into())]), Reach::Value)],
            composites: Vec::new(),
            spatial: Vec::new(),
            others: Vec::new(),
        }
    }
}

impl IndexingPolicy {
    /// Whether items have entries at all.
    pub fn is_on(&self) -> bool {
        self.mode != IndexingMode::None
    }

    /// Whether an item has entries. A policy that is not automatic indexes only what requests ask for.
    pub fn takes(&self, directive: IndexDirective) -> bool {
        self.is_on()
            && match directive {
                IndexDirective::Policy => self.automatic,
                IndexDirective::Exclude => false,
                IndexDirective::Include => true,
            }
    }

    /// Whether the value at these steps has an entry: the longest path of the policy that leads there decides, and among
    /// equals the one that names the value itself. What no path leads to has none.
    pub fn indexes(&self, steps: &[Step]) -> bool {
        let best = |paths: &[PolicyPath]| {
            let fits = paths.iter().filter(|(path, reach)| leads(path, *reach, steps));
            fits.map(|(path, reach)| (path.steps().len(), *reach == Reach::Value)).max()
        };
        match (best(&self.included), best(&self.excluded)) {
            (Some(included), Some(excluded)) => included > excluded,
            (included, _) => included.is_some(),
        }
    }

    /// Reads a policy as the service writes it. What is missing is as in the default policy.
    pub fn from_value(value: &Value) -> Result<Self> {
        let Value::Object(object) = value else { return Err(bad("the policy is no object")) };
        let mut policy = Self { included: Vec::new(), excluded: Vec::new(), ..Self::default() };
        for (name, value) in object.iter() {
            match name.as_str() {
                "indexingMode" => policy.mode = mode(value)?,
                "automatic" => {
                    let Value::Bool(is) = value else { return Err(bad("automatic is a boolean")) };
                    policy.automatic = *is;
                }
                "includedPaths" => policy.included = paths(value)?,
                "excludedPaths" => policy.excluded = paths(value)?,
                "compositeIndexes" => policy.composites = composites(value)?,
                "spatialIndexes" => policy.spatial = list(value)?.to_vec(),
                _ => policy.others.push((name.clone(), value.clone())),
            }
        }
        if object.get("includedPaths").is_none() && object.get("excludedPaths").is_none() {
            if policy.mode != IndexingMode::None {
                let Self { included, excluded, .. } = Self::default();
                (policy.included, policy.excluded) = (included, excluded);
            }
        } else if policy.mode != IndexingMode::None {
            policy.check_root()?;
        }
        Ok(policy)
    }

    /// Every policy says what becomes of the values that no other path leads to.
    fn check_root(&self) -> Result<()> {
        let is_root =
            |(path, reach): &PolicyPath| path.steps().is_empty() && *reach == Reach::Below;
        let count = self.included.iter().chain(&self.excluded).filter(|path| is_root(path)).count();
        match count {
            1 => Ok(()),
            0 => Err(bad("the special mandatory indexing path \"/\" is not provided")),
            _ => Err(bad("the path \"/*\" is both included and excluded")),
        }
    }

    /// As the service writes it.
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        let mode = match self.mode {
            IndexingMode::Consistent => "consistent",
            IndexingMode::Lazy => "lazy",
            IndexingMode::None => "none",
        };
        object.insert("indexingMode", mode.into());
        object.insert("automatic", self.automatic.into());
        let show = |paths: &[PolicyPath]| {
            let one = |(path, reach): &PolicyPath| {
                let end = if *reach == Reach::Value { "/?" } else { "/*" };
                of("path", format!("{path}{end}").into())
            };
            Value::Array(paths.iter().map(one).collect())
        };
        object.insert("includedPaths", show(&self.included));
        object.insert("excludedPaths", show(&self.excluded));
        if !self.composites.is_empty() {
            let path = |one: &CompositePath| {
                let order = if one.descends { "descending" } else { "ascending" };
                let mut object = Object::new();
                object.insert("path", one.path.to_string().into());
                object.insert("order", order.into());
                Value::Object(object)
            };
            let all = |paths: &Vec<CompositePath>| Value::Array(paths.iter().map(path).collect());
            let composites = self.composites.iter().map(all).collect();
            object.insert("compositeIndexes", Value::Array(composites));
        }
        if !self.spatial.is_empty() {
            object.insert("spatialIndexes", Value::Array(self.spatial.clone()));
        }
        for (name, value) in &self.others {
            object.insert(name.clone(), value.clone());
        }
        Value::Object(object)
    }
}

fn of(name: &str, value: Value) -> Value {
    Value::Object(Object::from_properties(vec![(name.to_owned(), value)]))
}

/// Whether a path of a policy leads to the value at these steps.
fn leads(path: &Path, reach: Reach, steps: &[Step]) -> bool {
    match reach {
        Reach::Value => path.steps() == steps,
        Reach::Below => steps.starts_with(path.steps()),
    }
}

fn mode(value: &Value) -> Result<IndexingMode> {
    let Value::String(text) = value else { return Err(bad("indexingMode is a text")) };
    match text.to_ascii_lowercase().as_str() {
        "consistent" => Ok(IndexingMode::Consistent),
        "lazy" => Ok(IndexingMode::Lazy),
        "none" => Ok(IndexingMode::None),
        _ => Err(bad("indexingMode is consistent, lazy or none")),
    }
}

fn list(value: &Value) -> Result<&[Value]> {
    match value {
        Value::Array(elements) => Ok(elements),
        _ => Err(bad("the lists of an indexing policy are arrays")),
    }
}

fn path_of(value: &Value) -> Result<&str> {
    match value {
        Value::Object(object) => match object.get("path") {
            Some(Value::String(path)) => Ok(path),
            _ => Err(bad("a path of the policy has no text")),
        },
        _ => Err(bad("a path of the policy is no object")),
    }
}

fn paths(value: &Value) -> Result<Vec<PolicyPath>> {
    let all = list(value)?;
    if all.len() > POLICY_PATHS_MAX {
        return Err(bad("the policy has too many paths"));
    }
    let read = |value| {
        let text = path_of(value)?;
        let (path, reach) = Path::parse_reach(text)?;
        // The root alone means everything; any other path must say what it stands for.
        match reach {
            Some(reach) => Ok((path, reach)),
            None if path.steps().is_empty() => Ok((path, Reach::Below)),
            None => Err(bad("a path of the policy ends in /? or /*")),
        }
    };
    all.iter().map(read).collect()
}

fn composites(value: &Value) -> Result<Vec<Vec<CompositePath>>> {
    let all = list(value)?;
    if all.len() > COMPOSITES_MAX {
        return Err(bad("the policy has too many composite indexes"));
    }
    let read = |value: &Value| {
        let order = match value {
            Value::Object(object) => object.get("order"),
            _ => None,
        };
        let descends = match order {
            None => false,
            Some(Value::String(order)) if order.eq_ignore_ascii_case("ascending") => false,
            Some(Value::String(order)) if order.eq_ignore_ascii_case("descending") => true,
            Some(_) => return Err(bad("the order of a composite path")),
        };
        Ok(CompositePath { path: Path::parse(path_of(value)?)?, descends })
    };
    let index = |value: &Value| {
        let paths: Vec<CompositePath> = list(value)?.iter().map(read).collect::<Result<_>>()?;
        if !(2..=COMPOSITE_PATHS_MAX).contains(&paths.len()) {
            return Err(bad("a composite index has two to eight paths"));
        }
        Ok(paths)
    };
    all.iter().map(index).collect()
}

fn bad(message: &str) -> Error {
    Error::invalid(DocumentReason::BadDefinition, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Result<IndexingPolicy> {
        IndexingPolicy::from_value(&Value::from_json(text.as_bytes()).unwrap())
    }

    fn indexes(policy: &IndexingPolicy, path: &str) -> bool {
        policy.indexes(Path::parse_reach(path).unwrap().0.steps())
    }

    #[test]
    fn the_longest_path_decides_and_a_value_beats_what_is_below() {
        let policy = policy(
            r#"{"includedPaths":[{"path":"/*"},{"path":"/a/b/*"},{"path":"/x/?"}],
                "excludedPaths":[{"path":"/a/*"},{"path":"/a/b/c/?"},{"path":"/x/*"}]}"#,
        )
        .unwrap();
        let cases = [
            ("/z", true),
            ("/a", false),
            ("/a/z", false),
            ("/a/b", true),
            ("/a/b/c", false),
            ("/a/b/c/d", true),
            ("/x", true),
            ("/x/y", false),
        ];
        for (path, expected) in cases {
            assert_eq!(indexes(&policy, path), expected, "{path}");
        }
    }

    #[test]
    fn a_policy_survives_its_text_and_nonsense_is_refused() {
        let text = r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/_etag/?"}],"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b/c","order":"descending"}]]}"#;
        let read = policy(text).unwrap();
        assert_eq!(read.to_value().to_json(), text);
        assert_eq!(policy("{}").unwrap(), IndexingPolicy::default());
        for bad in [
            "[]",
            r#"{"indexingMode":"often"}"#,
            r#"{"includedPaths":[{"path":"/a/?"}]}"#,
            r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/*"}]}"#,
            r#"{"includedPaths":[{"path":"/a"}]}"#,
            r#"{"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a"}]]}"#,
        ] {
            assert_eq!(policy(bad).unwrap_err().code(), "document-definition", "{bad}");
        }
    }
}
