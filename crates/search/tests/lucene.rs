//! The engine beside Lucene: tokens of every analyzer, parsed queries of both syntaxes, and ranked documents with their
//! scores. Where the two differ stands in `tests/lucene/differences.txt`, strictly: a difference that is not listed fails,
//! and so does a listed one that is none. `cargo xtask search-lucene` runs it.

use lazuli_search_engine::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Documents of the corpus.
const DOCUMENTS: u64 = 300;

const WORDS: [&str; 12] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lucene")
}

/// Title and body of a document: frequent words come often, lengths differ.
fn texts(number: u64) -> (String, String) {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let mut line = |least: u64, more: u64| {
        let count = least + next(more);
        let words = (0..count).map(|_| {
            let spread = next(12) + 1;
            WORDS[next(spread) as usize]
        });
        words.collect::<Vec<_>>().join(" ")
    };
    (line(2, 4), line(5, 60))
}

struct Ours {
    definition: Arc<IndexDefinition>,
    single: IndexDefinition,
    shards: Vec<ShardSnapshot>,
    _folder: tempfile::TempDir,
}

impl Ours {
    fn new() -> Ours {
        let field = |name: &str| json!({"name": name, "type": "Edm.String", "filterable": false, "sortable": false, "facetable": false});
        let key = json!({"name": "id", "type": "Edm.String", "key": true, "searchable": false});
        let definition = json!({"name": "corpus", "fields": [key, field("title"), field("body")]});
        let single = json!({"name": "single", "fields": [key, field("f")]});
        let definition = Arc::new(IndexDefinition::parse(&definition).expect("a definition"));
        let single = IndexDefinition::parse(&single).expect("a definition");
        let folder = tempfile::tempdir().expect("a folder");
        let shard = ShardIndex::open(folder.path(), definition.clone(), ShardSettings::default())
            .expect("open");
        for number in 0..DOCUMENTS {
            let (title, body) = texts(number);
            let document =
                json!({"id": number.to_string(), "title": title, "body": body}).to_string();
            shard
                .apply(&[DocumentChange::Upsert { document: Arc::from(document) }], "1")
                .expect("applied");
        }
        shard.commit().expect("committed");
        let shards = vec![shard.snapshot()];
        Ours { definition, single, shards, _folder: folder }
    }

    fn answer(&self, request: &str) -> String {
        let parts: Vec<&str> = request.split('\t').collect();
        match parts[0] {
            "T" => self.tokens(parts[1], &parts[2..].join("\t")),
            "Q" => {
                let (kind, mode) = syntax(parts[1], parts[2]);
                explain(&self.single, &SynonymMaps::new(), parts[3], kind, mode)
                    .unwrap_or_else(|_| "ERROR".to_owned())
            }
            _ => self.ranked(&parts),
        }
    }

    fn tokens(&self, analyzer: &str, text: &str) -> String {
        let body = json!({"analyzer": analyzer, "text": text});
        let tokens = analyze(&self.definition, &body).expect("the analyzer is known");
        let shown = tokens.iter().map(|it| {
            format!("{}@{}[{}-{}]", it.token, it.position, it.start_offset, it.end_offset)
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    fn ranked(&self, parts: &[&str]) -> String {
        let (query_type, search_mode) = syntax(parts[1], parts[2]);
        let request = SearchRequest {
            search: Some(parts[3].to_owned()),
            query_type,
            search_mode,
            top: 10,
            ..SearchRequest::default()
        };
        let synonyms = SynonymMaps::new();
        let context = SearchContext {
            definition: &self.definition,
            shards: &self.shards,
            synonyms: &synonyms,
            now_ms: 0,
        };
        match search(&context, &request) {
            Ok(results) => {
                let hits = results.hits.iter().map(|it| format!("{}={:.3}", it.key, it.score));
                hits.collect::<Vec<_>>().join(" ")
            }
            Err(_) => "ERROR".to_owned(),
        }
    }
}

fn syntax(kind: &str, mode: &str) -> (QueryType, SearchMode) {
    let kind = if kind == "full" { QueryType::Full } else { QueryType::Simple };
    (kind, if mode == "all" { SearchMode::All } else { SearchMode::Any })
}

/// Scores are printed with three digits; the last may be rounded either way.
fn same(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        (ours.split(' ').collect(), theirs.split(' ').collect());
    let close = |(a, b): (&&str, &&str)| match (a.split_once('='), b.split_once('=')) {
        (Some((key, score)), Some((other, expected))) => {
            let number = |it: &str| it.parse::<f64>().unwrap_or(f64::NAN);
            key == other && (number(score) - number(expected)).abs() < 0.002
        }
        _ => false,
    };
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(close)
}

/// Compiles the Java program and gives it all requests.
fn ask_lucene(jars: &str, requests: &[String]) -> Vec<String> {
    let build = tempfile::tempdir().expect("a folder");
    let compiled = Command::new("javac")
        .args(["-encoding", "UTF-8", "-cp", jars, "-d"])
        .arg(build.path())
        .arg(folder().join("Oracle.java"))
        .status()
        .expect("javac runs");
    assert!(compiled.success(), "the Java program compiles");
    let path = format!("{jars}:{}", build.path().display());
    let mut java = Command::new("java")
        .args(["-cp", &path, "Oracle"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("java runs");
    let mut input = java.stdin.take().expect("a pipe");
    let mut text = String::new();
    for number in 0..DOCUMENTS {
        let (title, body) = texts(number);
        text.push_str(&format!("D\t{number}\t{title}\t{body}\n"));
    }
    for request in requests {
        text.push_str(&format!("{request}\n"));
    }
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = java.wait_with_output().expect("java ends");
    writer.join().expect("no panic").expect("java reads everything");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().skip(DOCUMENTS as usize).map(str::to_owned).collect()
}

#[test]
#[ignore = "needs Java and the jars of Lucene: cargo xtask search-lucene"]
fn tokens_queries_and_ranks_are_those_of_lucene_but_for_the_listed_differences() {
    let jars = std::env::var("LAZULI_LUCENE_JARS").expect("LAZULI_LUCENE_JARS names the jars");
    let requests = fs::read_to_string(folder().join("requests.txt")).expect("requests");
    let requests: Vec<String> = requests
        .lines()
        .filter(|it| !it.starts_with('#') && !it.is_empty())
        .map(str::to_owned)
        .collect();
    let listed = fs::read_to_string(folder().join("differences.txt")).unwrap_or_default();
    let mut listed: BTreeSet<&str> =
        listed.lines().filter(|it| !it.starts_with('#') && !it.is_empty()).collect();
    let theirs = ask_lucene(&jars, &requests);
    assert_eq!(theirs.len(), requests.len(), "one answer for each request");
    let ours = Ours::new();
    let mut wrong = Vec::new();
    for (request, theirs) in requests.iter().zip(&theirs) {
        let answer = ours.answer(request);
        let differs = !same(&answer, theirs);
        if differs != listed.remove(request.as_str()) {
            let what =
                if differs { "an unlisted difference" } else { "a listed difference that is none" };
            wrong.push(format!("{what}: {request}\n  ours   {answer}\n  theirs {theirs}"));
        }
    }
    wrong.extend(listed.iter().map(|it| format!("a listed difference without a request: {it}")));
    assert!(wrong.is_empty(), "{} findings\n{}", wrong.len(), wrong.join("\n"));
    let claimed: BTreeSet<&str> =
        predefined_names().into_iter().filter(|it| !it.ends_with(".microsoft")).collect();
    let asked: BTreeSet<&str> = requests
        .iter()
        .filter(|it| it.starts_with("T\t"))
        .filter_map(|it| it.split('\t').nth(1))
        .collect();
    assert_eq!(claimed, asked, "every analyzer that is no alias is compared");
}
