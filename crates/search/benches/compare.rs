//! The engine against Lucene on one synthetic corpus and the same queries, in one run: `cargo xtask bench-compare search`.
//!
//! Both sides read the same files. Each query is read from text, searched, and the stored documents of the ten best are
//! loaded. Bounds: indexing, terms and OR queries at least twice Lucene's rate; a missed one fails the run.

use lazuli_search_engine::*;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Documents of the corpus, without `LAZULI_BENCH_DOCUMENTS`.
const DOCUMENTS: usize = 100_000;
/// Different words.
const VOCABULARY: usize = 20_000;
/// Queries of each kind, which are asked again and again.
const QUERIES: usize = 200;
/// How long each kind is measured.
const MEASURED: Duration = Duration::from_secs(4);
/// The least share of ours over Lucene's in what has a bound.
const BOUND: f64 = 2.0;

/// Kinds of queries: name, search mode, counted, filtered, faceted, ordered, with a bound.
const KINDS: [(&str, bool); 8] = [
    ("term", true),
    ("or", true),
    ("or-count", true),
    ("and-count", false),
    ("phrase", false),
    ("term-range-count", false),
    ("term-facets", false),
    ("order-price", false),
];

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number between 0 and 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A word; the n-th one is drawn about n times less often than the first.
    fn word(&mut self) -> String {
        let rank = ((VOCABULARY as f64 + 1.0).powf(self.share()) - 1.0) as usize;
        format!("w{}", rank.min(VOCABULARY - 1))
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

/// Writes the corpus, one document a line: id, title, body, price, category.
fn write_corpus(path: &Path, documents: usize) -> u64 {
    let mut chance = Chance(0x5EED_0001);
    let mut text = String::new();
    for number in 0..documents {
        let (title, body) = (chance.words(8), chance.words(140));
        let price = chance.next() % 100_000;
        let category = chance.next() % 20;
        let _ = writeln!(text, "{number}\t{title}\t{body}\t{price}\tc{category}");
    }
    fs::write(path, &text).expect("the corpus is written");
    text.len() as u64
}

/// Writes the queries, one a line: kind, text, lower and upper bound of the price.
fn write_queries(path: &Path) {
    let mut chance = Chance(0x5EED_0002);
    let mut text = String::new();
    for (kind, _) in KINDS {
        for _ in 0..QUERIES {
            let words = match kind {
                "term" | "term-range-count" | "term-facets" => chance.word(),
                "order-price" => "*".to_owned(),
                "phrase" => format!("\"{}\"", chance.words(2)),
                _ => chance.words(2),
            };
            let low = chance.next() % 80_000;
            let _ = writeln!(text, "{kind}\t{words}\t{low}\t{}", low + 20_000);
        }
    }
    fs::write(path, text).expect("the queries are written");
}

fn definition() -> Arc<IndexDefinition> {
    let text = |name: &str| json!({"name": name, "type": "Edm.String", "filterable": false, "sortable": false, "facetable": false});
    let value = json!({"name": "bench", "fields": [
        {"name": "id", "type": "Edm.String", "key": true, "searchable": false, "filterable": false, "sortable": false, "facetable": false},
        text("title"), text("body"),
        {"name": "price", "type": "Edm.Double", "facetable": false},
        {"name": "category", "type": "Edm.String", "searchable": false, "sortable": false}
    ]});
    Arc::new(IndexDefinition::parse(&value).expect("the definition is right"))
}

/// Documents per second of one pass.
fn index(shard: &ShardIndex, corpus: &str) -> f64 {
    let mut documents: Vec<DocumentChange> = Vec::new();
    for line in corpus.lines() {
        let mut parts = line.split('\t');
        let mut part = || parts.next().unwrap_or_default();
        let (id, title, body) = (part(), part(), part());
        let price: f64 = part().parse().unwrap_or_default();
        let document =
            json!({"id": id, "title": title, "body": body, "price": price, "category": part()});
        documents.push(DocumentChange::Upsert { document: Arc::from(document.to_string()) });
    }
    let start = Instant::now();
    for batch in documents.chunks(1_000) {
        shard.apply(batch, "1").expect("applied");
    }
    shard.commit().expect("committed");
    documents.len() as f64 / start.elapsed().as_secs_f64()
}

fn request(kind: &str, parts: &[&str]) -> SearchRequest {
    let mut request =
        SearchRequest { search: Some(parts[1].to_owned()), top: 10, ..SearchRequest::default() };
    match kind {
        "or-count" => request.count = true,
        "and-count" => {
            request.count = true;
            request.search_mode = SearchMode::All;
        }
        "term-range-count" => {
            request.count = true;
            request.filter = Some(format!("price ge {} and price lt {}", parts[2], parts[3]));
        }
        "term-facets" => request.facets = vec!["category".to_owned()],
        "order-price" => request.order_by = Some("price".to_owned()),
        _ => {}
    }
    request
}

/// Queries per second, and the times of half and of 99 of 100 in microseconds.
fn measure(
    snapshot: &ShardSnapshot,
    definition: &IndexDefinition,
    requests: &[SearchRequest],
) -> (f64, u64, u64) {
    let synonyms = SynonymMaps::new();
    let shards = [snapshot.clone()];
    let context = SearchContext { definition, shards: &shards, synonyms: &synonyms, now_ms: 0 };
    for request in requests {
        search(&context, request).expect("the query is right");
    }
    let mut times = Vec::new();
    let start = Instant::now();
    'all: loop {
        for request in requests {
            let before = Instant::now();
            search(&context, request).expect("the query is right");
            times.push(before.elapsed().as_micros() as u64);
            if start.elapsed() > MEASURED {
                break 'all;
            }
        }
    }
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    times.sort_unstable();
    (rate, times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Rates of Lucene by kind, and of indexing.
fn measure_lucene(jars: &str, folder: &Path) -> Vec<(String, f64, u64, u64)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lucene/Bench.java");
    let compiled = Command::new("javac")
        .args(["-encoding", "UTF-8", "-cp", jars, "-d"])
        .arg(folder)
        .arg(source)
        .status();
    assert!(compiled.expect("javac runs").success(), "the Java program compiles");
    let path = format!("{jars}:{}", folder.display());
    let seconds = MEASURED.as_secs().to_string();
    let output = Command::new("java")
        .args(["-Xmx4g", "-cp", &path, "Bench"])
        .arg(folder)
        .arg(seconds)
        .output();
    let output = output.expect("java runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text.lines().filter_map(|line| {
        let mut parts = line.split('\t');
        let kind = parts.next()?.to_owned();
        Some((
            kind,
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
        ))
    });
    rows.collect()
}

fn main() {
    // `cargo test` passes arguments of its own; without the jars there is nothing to compare with.
    let Ok(jars) = std::env::var("LAZULI_LUCENE_JARS") else { return };
    let documents = std::env::var("LAZULI_BENCH_DOCUMENTS").ok().and_then(|it| it.parse().ok());
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = write_corpus(&folder.path().join("corpus.tsv"), documents.unwrap_or(DOCUMENTS));
    write_queries(&folder.path().join("queries.tsv"));
    println!("corpus: {} MB", bytes / 1_000_000);
    let corpus = fs::read_to_string(folder.path().join("corpus.tsv")).expect("the corpus");
    let definition = definition();
    let settings =
        ShardSettings { threads: 2, memory_bytes: 128 << 20, ..ShardSettings::default() };
    let shard =
        ShardIndex::open(&folder.path().join("ours"), definition.clone(), settings).expect("open");
    let first = index(&shard, &corpus);
    let second = index(&shard, &corpus);
    shard.rest().expect("rested");
    let mut ours =
        vec![("index-first".to_owned(), first, 0, 0), ("index-again".to_owned(), second, 0, 0)];
    let queries = fs::read_to_string(folder.path().join("queries.tsv")).expect("the queries");
    for (kind, _) in KINDS {
        let lines =
            queries.lines().map(|it| it.split('\t').collect::<Vec<_>>()).filter(|it| it[0] == kind);
        let requests: Vec<SearchRequest> = lines.map(|parts| request(kind, &parts)).collect();
        let (rate, half, most) = measure(&shard.snapshot(), &definition, &requests);
        ours.push((kind.to_owned(), rate, half, most));
    }
    let theirs = measure_lucene(&jars, folder.path());
    report(&ours, &theirs);
}

fn report(ours: &[(String, f64, u64, u64)], theirs: &[(String, f64, u64, u64)]) {
    println!(
        "| case | engine per second (p50/p99 us) | Lucene per second (p50/p99 us) | share |\n|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for (kind, rate, half, most) in ours {
        let Some((_, other, their_half, their_most)) = theirs.iter().find(|it| it.0 == *kind)
        else {
            continue;
        };
        let share = rate / other;
        println!(
            "| {kind} | {rate:.0} ({half}/{most}) | {other:.0} ({their_half}/{their_most}) | {share:.2} |"
        );
        let bound =
            kind.starts_with("index") || KINDS.iter().any(|(name, bound)| name == kind && *bound);
        if bound && share < BOUND {
            missed.push(format!("{kind}: {share:.2} times Lucene, {BOUND} wanted"));
        }
    }
    if !missed.is_empty() {
        println!("missed: {}", missed.join("; "));
        std::process::exit(1);
    }
}
