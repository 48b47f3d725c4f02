//! The alert rules and the dashboard name nothing that `/metrics` does not have.

use std::collections::BTreeSet;

use crate::program::{PUBLISHED_KEY, Server, ask};

const FILES: [(&str, &str); 2] = [
    ("prometheus-rules.yaml", include_str!("../../../../../packaging/prometheus-rules.yaml")),
    ("grafana.json", include_str!("../../../../../packaging/grafana.json")),
];

/// What the names of a histogram's series end with.
const OF_HISTOGRAMS: [&str; 3] = ["_bucket", "_sum", "_count"];

#[test]
fn alerts_and_dashboard_name_metrics_and_labels_that_exist() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    // Series of requests are there once there was a request.
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", "/devstoreaccount1/Tables", "").0, 200);
    let (status, page) = ask(&server.endpoint("admin"), "GET", "/metrics", &[], "");
    assert_eq!(status, 200);
    let families: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for (file, text) in FILES {
        let text = text.replace("\\\"", "\"");
        let named = names(&text);
        assert!(named.len() >= 8, "{file}: {named:?}");
        for name in named {
            let family = OF_HISTOGRAMS.iter().find_map(|end| name.strip_suffix(end));
            let family = family.filter(|family| families.contains(family)).unwrap_or(&name);
            assert!(families.contains(family), "{file} names {name}, which /metrics does not have");
        }
        for (name, label) in labels(&text) {
            let has = |line: &str| line.starts_with(&name) && line.contains(&format!("{label}=\""));
            // The server that scrapes adds the instance.
            let exists = label == "instance" || page.lines().any(has);
            assert!(exists, "{file} names the label {label} of {name}");
        }
    }
}

/// Every name of ours in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let words = text.split(is_end).filter(|word| word.starts_with("lazuli_"));
    words.map(str::to_owned).collect()
}

/// Every label in braces behind one of our names.
fn labels(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("lazuli_") {
        let rest = &text[at..];
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap();
        let Some(matchers) = rest[length..].strip_prefix('{') else { continue };
        let matchers = &matchers[..matchers.find('}').unwrap()];
        for matcher in matchers.split(',') {
            let label = matcher.split(['=', '!']).next().unwrap().trim();
            found.push((rest[..length].to_owned(), label.to_owned()));
        }
    }
    assert!(!found.is_empty());
    found
}
