//! The compose file of docs/fleet.md, as far as it can be checked without containers: its references resolve, a node starts
//! with exactly its variables, and the commands of the page have the flags that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lazuli_postgres_server::Server as Postgres;

use crate::program::{Server, lazuli, run, stderr, stdout};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(docs().join(name)).unwrap()
}

/// The words of the file behind a mark, such as the names of all aliases behind `*`.
fn marked(text: &str, mark: char) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix(mark));
    let names = words.map(|word| word.chars().take_while(|c| is_name(*c)).collect::<String>());
    names.filter(|name| !name.is_empty()).collect()
}

/// The lines below a key, as far as they are further in than it.
fn below<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with(key));
    let Some(head) = lines.next() else { return vec![] };
    lines.take_while(|line| line.trim().is_empty() || indent(line) > indent(head)).collect()
}

fn pairs<'a>(lines: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    let pairs = lines.into_iter().filter_map(|line| line.trim().split_once(": "));
    pairs.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned())).collect()
}

#[test]
fn what_the_compose_file_refers_to_is_there() {
    let text = read("fleet/compose.yaml");
    let without_comments: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let text = without_comments.join("\n");
    assert!(!text.contains('\t'), "YAML has no tabs");
    assert_eq!(marked(&text, '*'), marked(&text, '&'), "every alias has an anchor, and is used");
    let services: BTreeSet<&str> = below(&text, "services:")
        .into_iter()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.trim().trim_end_matches(':'))
        .collect();
    assert_eq!(services, BTreeSet::from(["east", "west", "node-1", "node-2", "node-3"]));
    for line in below(&text, "depends_on:") {
        assert!(services.contains(line.trim().split(':').next().unwrap()), "{line}");
    }
    let named = |key: &str| pairs(text.lines())[key].clone();
    let folder = docs().join("fleet").join(named("context"));
    let dockerfile = std::fs::read_to_string(folder.join(named("dockerfile"))).unwrap();
    assert!(folder.join("crates/app/cli/Cargo.toml").exists());
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    assert!(dockerfile.contains("--profile dist") && manifest.contains("[profile.dist]"));
    assert!(dockerfile.contains("--path crates/app/cli"));
    // The ports that are published are those that the fronts have by default.
    let folder = tempfile::tempdir().unwrap();
    let settings = stdout(&run(folder.path(), &["config", "--json"]));
    for line in text.lines().filter(|line| line.trim().starts_with("ports:")) {
        for pair in line.split('"').filter(|part| part.contains(':') && !part.contains('[')) {
            let port = pair.rsplit(':').next().unwrap();
            assert!(settings.contains(&format!("\"{port}\"")), "no front listens on {port}");
        }
    }
}

#[test]
fn a_node_starts_with_the_variables_of_the_compose_file_and_takes_the_shard_of_the_page() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let compose = read("fleet/compose.yaml");
    let database = pairs(below(&compose, "x-database:"));
    let (user, password) = (&database["POSTGRES_USER"], &database["POSTGRES_PASSWORD"]);
    // The image makes a superuser of this name, and a database of the same name.
    let create = format!("CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'");
    postgres.psql("postgres", &create).unwrap();
    postgres.psql("postgres", &format!("CREATE DATABASE {user} OWNER {user}")).unwrap();
    let here = |text: &str| text.replace("@east/", &format!("@{}/", postgres.host()));
    let mut variables = pairs(below(&compose, "environment: &environment"));
    variables.insert("LAZULI_NODE_NAME".into(), "node-1".into());
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| (name.clone(), here(value))).collect();
    assert!(variables.len() > 5, "{variables:?}");
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let folder = tempfile::tempdir().unwrap();
    let node = Server::start_with(folder.path(), &[], &variables);
    let page = read("fleet.md");
    let (_, command) = page.split_once("exec node-1 lazuli ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let command = here(command).replace('\'', "");
    let words: Vec<&str> = command.split_whitespace().collect();
    let added = lazuli(folder.path(), &words).envs(variables.iter().copied()).output().unwrap();
    assert!(added.status.success(), "{words:?}: {}{}", stderr(&added), node.log());
    assert!(stdout(&added).contains("added shard e1"), "{}", stdout(&added));
}

#[test]
fn every_command_of_the_page_has_the_flags_that_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let page = read("fleet.md");
    let mut seen = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("$ lazuli ")) {
        let command = line.split(" #").next().unwrap();
        let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let words: Vec<&str> = command.split_whitespace().collect();
        let most = if words[0] == "serve" || words[0] == "rebalance" { 1 } else { 2 };
        let names: Vec<&str> = words.iter().copied().take(most).take_while(is_name).collect();
        let help = run(folder.path(), &[&names[..], &["--help"]].concat());
        assert!(help.status.success(), "{line}: {}", stderr(&help));
        let help = stdout(&help);
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            let named = |text: &str| text.split([' ', ',', '=']).any(|word| word == *flag);
            assert!(help.lines().any(named), "{line}: no {flag} in\n{help}");
        }
        seen += 1;
    }
    assert!(seen > 8, "only {seen} commands were found");
}
